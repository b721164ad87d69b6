"""Fonts of the system that stand in while the book's own are on their way, as wide and as high as they.

Nothing moves then when a font arrives, or hardly anything. The size of each is the width of the chapters' prose in the
book's font over that in the other one, both set in Chromium, for each cut by itself. Georgia was measured as Gelasio,
Times New Roman as Liberation Serif and Arial as Liberation Sans, which are made to be as wide. Helvetica Neue is taken
to be as wide as Arial, and the bold cut of Segoe UI to be as much wider than the regular one as ours is.

The sans has no italic, on purpose: browsers slant a dozen words of it in the whole book, and a font for them would be
nine kilobytes more for everybody.
"""

from collections.abc import Iterator

HEIGHTS = {"Text": (103.6, 33.5), "Sans": (102.4, 40.0)}  # percent of the size above and below the line

CUTS = ("", "font-weight: 600 900;", "font-style: italic;")
NAMES = ("", " Bold", " Italic")  # of the cuts, after the name of the family

# Which fonts, all equally wide, and their size in percent: regular, bold and, of the text, italic
FALLBACKS = {
    "Text Georgia": (["Georgia"], [106.8, 94.8, 96.5]),
    "Text Noto Serif": (["Noto Serif"], [99.0, 96.1, 93.5]),
    "Text Times New Roman": (["Times New Roman", "Liberation Serif"], [117.1, 113.9, 107.6]),
    "Text DejaVu Serif": (["DejaVu Serif"], [91.8, 85.8, 84.5]),
    "Sans Segoe UI": (["Segoe UI"], [93.5, 93.5]),
    "Sans Roboto": (["Roboto"], [93.3, 97.3]),
    "Sans Helvetica Neue": (["Helvetica Neue"], [92.1, 90.7]),
    "Sans Arial": (["Arial", "Liberation Sans"], [93.0, 91.6]),
    "Sans DejaVu Sans": (["DejaVu Sans"], [81.4, 76.3]),
}


def faces() -> Iterator[str]:
    """An `@font-face` for each cut of each of them."""
    for family, (fonts, sizes) in FALLBACKS.items():
        above, below = HEIGHTS[family.split()[0]]
        for cut, name, size in zip(CUTS, NAMES, sizes, strict=False):
            sources = ", ".join(f'local("{font}{name}")' for font in fonts)
            heights = f"ascent-override: {100 * above / size:.1f}%; descent-override: {100 * below / size:.1f}%;"
            yield (
                f'@font-face {{ font-family: "{family}"; src: {sources}; {cut} '
                f"size-adjust: {size}%; {heights} line-gap-override: 0%; }}"
            )
