"""Film the moving picture of README.md, a visit to the built front page: `python -m tools.moving_picture`.

It is filmed in both languages, as `book/hero.gif` and `book/hero.zh.gif`, and so the book must be built. The figure of
the page computes its answers there. The clock of its animations is set by hand, frame by frame, so that every machine
films the same; film again when the looks of that figure have changed.
"""

import argparse
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from minimind_edu.web.palette import PALETTE
from tools.chapters import ROOT

sys.path.append(str(ROOT / "tests"))

from browser import launch

LANGUAGES = ("en", "zh")
FIGURE = '.minimind-figure[data-figure="guess_first"]'
WIDTH, SCALE = 816, 1.2  # of the window, in pixels of the page; pixels of the picture for each
STEP = 60  # milliseconds of a frame
LIGHT = 1900  # until light and bars have arrived
READ = 2600  # how long the question stands still
# what is pressed, and how long what it brings stands still: a guess, a head silenced, the other language
PRESSES = ((f"{FIGURE} .gf-row >> nth=2", 2300), (f"{FIGURE} button.gf-go", 2300), (f"{FIGURE} button.gf-go", 3000))
AIM, PRESS = 500, 200  # how long a finger is above what it presses, and on it
LARGEST = 1_000_000  # bytes
COLORS = ("bg", "panel", "soft", "line", "muted", "ink", "v", "ffn", "good", "bad", "stream", "q")  # of the figure
SHADES = 9  # of each, down to the paper

_FINGER = """([x, y, isDown]) => {
    const dot = document.querySelector("#finger") ?? document.body.appendChild(document.createElement("div"));
    dot.id = "finger";
    dot.style.cssText = `position: fixed; z-index: 99; left: ${x - 11}px; top: ${y - 11}px; width: 22px; height: 22px;
        border: 2px solid #fff; border-radius: 50%; background: #a94b08; pointer-events: none;
        opacity: ${isDown ? 1 : 0.75}; transform: scale(${isDown ? 0.8 : 1})`;
}"""
_SET_CLOCK = "(now) => document.getAnimations().forEach((one) => { one.pause(); one.currentTime = now; })"
_SETTLE = "document.getAnimations().forEach((one) => one.finish())"


class Shot(NamedTuple):
    """A picture of the figure, as PNG, and how long it stands, in milliseconds."""

    png: bytes
    time: int


def target(language: str) -> Path:
    """The file of a moving picture."""
    return ROOT / "book" / ("hero.gif" if language == "en" else f"hero.{language}.gif")


def shots(page: Page) -> Iterator[Shot]:
    """A visit: the question, a guess, the answer, a head silenced, and the same question in the other language."""
    figure = page.locator(f"{FIGURE} .mm-fig")
    yield Shot(figure.screenshot(), READ)
    for press, read in PRESSES:
        box = page.locator(press).bounding_box()
        x, y = box["x"] + min(box["width"] / 2, 90), box["y"] + box["height"] / 2
        for is_down, time in ((False, AIM), (True, PRESS)):
            page.evaluate(_FINGER, [x, y, is_down])
            yield Shot(figure.screenshot(), time)
        page.evaluate("document.querySelector('#finger').remove()")
        page.evaluate("delete document.querySelector('.gf-fig').dataset.lit")
        page.locator(press).dispatch_event("click")
        page.wait_for_selector(".gf-fig[data-lit]")
        for now in range(0, LIGHT, STEP):
            page.evaluate(_SET_CLOCK, now)
            yield Shot(figure.screenshot(), STEP)
        page.evaluate(_SETTLE)
        yield Shot(figure.screenshot(), read)


def palette() -> Image.Image:
    """The book's colors, and steps between each and the paper: what a quantizer finds drops the small marks."""
    paper, *others = ([int(PALETTE[name].light[at : at + 2], 16) for at in (1, 3, 5)] for name in COLORS)
    mixed = [
        round(p + (c - p) * step / SHADES)
        for color in others
        for step in range(1, SHADES + 1)
        for p, c in zip(paper, color, strict=True)
    ]
    image = Image.new("P", (1, 1))
    image.putpalette([*paper, *mixed])
    return image


def joined(taken: list[Shot]) -> list[tuple[Image.Image, int]]:
    """The shots in few colors, with their times; what is the same as before stands longer."""
    colors = palette()
    kept: list[tuple[Image.Image, int]] = []
    for png, time in taken:
        picture = Image.open(io.BytesIO(png)).convert("RGB").quantize(palette=colors, dither=Image.Dither.NONE)
        if kept and kept[-1][0].tobytes() == picture.tobytes():
            kept[-1] = (picture, kept[-1][1] + time)
        else:
            kept.append((picture, time))
    return kept


def film(pages: Path, language: str) -> bytes:
    """The front page of a built book, as an animated GIF.

    Raises:
        ValueError: if it is larger than 1 MB.
    """
    address = pages / ("" if language == "en" else language) / "book" / "index.html"
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, device_scale_factor=SCALE)
        page.goto(address.as_uri())
        page.wait_for_selector(f"{FIGURE}[data-state=alive]")
        page.evaluate("document.fonts.ready")
        taken = list(shots(page))
        browser.close()
    (first, _), *others = pictures = joined(taken)
    made = io.BytesIO()
    first.save(
        made,
        "gif",
        save_all=True,
        append_images=[picture for picture, _ in others],
        duration=[time for _, time in pictures],
        loop=0,
        optimize=False,
        disposal=1,
    )
    if made.tell() > LARGEST:
        raise ValueError(
            f"the moving picture must be at most {LARGEST:,} bytes, got {made.tell():,}: film fewer frames"
        )
    return made.getvalue()


def main(arguments: list[str] | None = None) -> None:
    """Film both, and say how large they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    for language in LANGUAGES:
        made = film(ROOT / "_build" / "html", language)
        target(language).write_bytes(made)
        print(f"{target(language).relative_to(ROOT)}: {len(made):,} bytes")


if __name__ == "__main__":
    main()
