"""Make the four fonts of the pages from their sources: `python -m tools.subset_fonts FOLDER`.

It needs fonttools and brotli, which nothing else does. FOLDER holds, anywhere below it, the variable Latin fonts of
Source Serif 4 and Source Sans 3 as Fontsource packs them, and texgyrepagella-math.otf of the TeX Gyre collection. Each
keeps the characters that the pages use and loses its name: a changed font may not carry the reserved one. The licenses
stand beside the fonts.
"""

import argparse
from io import BytesIO
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
TARGET = _ROOT / "book/theme/static/fonts"
CARRIED = _ROOT / "src/minimind_edu/web/fonts"  # what the page of a reader's own model has inside

LETTERS = [*range(0x20, 0x7F), *map(ord, "\u00a0°±²³·½×÷ßàäçèéêñöü–—‘’“”•…′″−→←≈≤≥√")]
_LATIN_MATH = [*range(0x1D41A, 0x1D468), 0x210E]  # small bold and all italic letters; the italic h stands apart
_GREEK_MATH = [*map(ord, "ΓΔΘΛΠΣΦΨΩ"), *range(0x1D6FC, 0x1D71C)]  # capitals upright, small letters in italics
_SIGNS = "¬±·×÷ˆ‖…′″−∂∇∈∏∑√∝∞≈≠≡≤≥≪≫⊙⊕⊤⋅⋮⋯←→↦⌈⌉⌊⌋⟨⟩∣⟂ℓℝ\u0302\u0304\u0332―"
FORMULAS = [*range(0x20, 0x7F), 0xA0, *_LATIN_MATH, *_GREEK_MATH, *map(ord, _SIGNS)]

TEXT_FEATURES = ["kern", "liga", "ccmp", "locl", "mark", "mkmk", "calt", "tnum", "lnum", "pnum"]
FONTS: dict[str, tuple[str, str, list[int], list[str], dict[str, Any]]] = {
    # file: (source, family, characters, features, limits of the axes)
    "text.woff2": ("source-serif-4-latin-wght-normal.woff2", "Book Text", LETTERS, TEXT_FEATURES, {"wght": (400, 700)}),
    "text-italic.woff2": ("source-serif-4-latin-wght-italic.woff2", "Book Text", LETTERS, TEXT_FEATURES, {"wght": 400}),
    "sans.woff2": ("source-sans-3-latin-wght-normal.woff2", "Book Sans", LETTERS, TEXT_FEATURES, {"wght": (400, 700)}),
    "math.woff2": ("texgyrepagella-math.otf", "Book Math", FORMULAS, ["dtls"], {}),
}
NAMES = {1, 3, 4, 6, 16}  # of the family and the font, in the table of names


def subset(source: Path, target: Path, family: str, characters: list[int], features: list[str], limits: dict) -> None:
    """Write `source` to `target` with these characters, features and limits, under the name `family`."""
    from fontTools import subset as cut
    from fontTools.ttLib import TTFont
    from fontTools.varLib import instancer

    font = TTFont(source)
    if limits:
        plain = BytesIO()
        font = instancer.instantiateVariableFont(font, limits)
        font.flavor = None
        font.save(plain)
        font = TTFont(BytesIO(plain.getvalue()))
    options = cut.Options(
        layout_features=features, hinting=False, desubroutinize=True, name_IDs=[0, 1, 2, 3, 4, 5, 6, 13, 14]
    )
    options.notdef_outline = True
    cutter = cut.Subsetter(options)
    cutter.populate(unicodes=characters)
    cutter.subset(font)
    for record in font["name"].names:
        if record.nameID in NAMES:
            record.string = family.replace(" ", "") if record.nameID == 6 else family
    font.flavor = "woff2"
    font.save(target)
    print(f"{target.name}: {target.stat().st_size:,} bytes, {len(font.getBestCmap())} characters")


def main(arguments: list[str] | None = None) -> None:
    """Make all four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args(arguments).folder
    for file, (source, *rest) in FONTS.items():
        found = next(folder.rglob(source), None)
        if found is None:
            raise SystemExit(f"there is no {source} below {folder}")
        subset(found, (CARRIED if (CARRIED / file).is_file() else TARGET) / file, *rest)


if __name__ == "__main__":
    main()
