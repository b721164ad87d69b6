"""Draw the pictures that others see first: the card of the book, and the page of a reader's own model.

    python -m tools.share_card

The card has the title, the question, and the strip of the chapters, in colors, drawn by a real Chromium: 1200 by 630
pixels, in `book/assets/share.png`. The page is that of the book's own model, at the address `OPENED`; its picture goes
to `book/own_model.png`. Both are drawn in Chinese as well, as `share.zh.png` and so on: that needs a font for it on
this machine.
"""

import argparse
import io
import re
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from minimind_edu import __main__ as program
from minimind_edu.figures import own_stylesheet, shared_stylesheet
from minimind_edu.figures.model_map import strip_drawing
from minimind_edu.web import palette

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("en", "zh")
WIDTH, HEIGHT = 1200, 630
OPENED = "ids=0.2.29.20.42.3.29.19.42.2.30.20.31.23.42.38.2.43.34&open=head.0.2"  # Mia is in the kitchen. …
OWN_SIZE = {"width": 1200, "height": 900}
COLORS = 96
LARGEST = 120_000  # bytes: some networks do not fetch more

TITLE = {"en": "MiniMind from the inside", "zh": "从内部看 MiniMind"}
QUESTION = {"en": "How does a language model choose the next word?", "zh": "语言模型怎样选出下一个词？"}
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

STYLE = """
body { margin: 0; padding: 34px 60px 0; background: %(bg)s; color: %(ink)s;
    font-family: Georgia, "Source Serif 4", "DejaVu Serif", serif; }
[lang=zh] body { font-family: "Source Sans 3", "DejaVu Sans", "Noto Sans CJK SC", "PingFang SC", sans-serif; }
h1 { margin: 0; font-size: 54px; line-height: 1.1; }
p { margin: 10px 0 0; font-size: 30px; line-height: 1.25; color: %(muted)s; }
.mm-fig.mm-fig { display: block; margin: 130px 0 0; padding: 0; border: 0; background: none; }
.mm-fig .mp-mini-map { width: 1080px; height: auto; }
"""


def card(language: str) -> Path:
    """The file of the card."""
    return _file("assets/share", language)


def own_model(language: str) -> Path:
    """The file of the picture of the page of a model."""
    return _file("own_model", language)


def _file(name: str, language: str) -> Path:
    ending = "png" if language == "en" else f"{language}.png"
    return ROOT / f"book/{name}.{ending}"


def page_of_the_card(language: str) -> str:
    """One HTML page with everything inside that shows title, question and the strip."""
    colors = {name: palette.PALETTE[name].light for name in ("bg", "ink", "muted")}
    return (
        f'<!doctype html><html lang="{language}" data-theme="light"><meta charset="utf-8">'
        f"<style>:root {{ color-scheme: light; {palette.css_variables()} }}"
        f"{shared_stylesheet()}{own_stylesheet('model_map')}{STYLE % colors}</style>"
        f"<h1>{TITLE[language]}</h1><p>{QUESTION[language]}</p>"
        f'<div class="mm-fig mp-strip mp-face" style="--read: 100%">{strip_drawing("")}</div>'
    )


def draw(browser: Browser, language: str) -> bytes:
    """The card as a PNG of at most 120 kB.

    Raises:
        ValueError: if it is larger than that.
    """
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
    page.set_content(page_of_the_card(language))
    drawn = page.screenshot()
    page.close()
    if len(drawn) > LARGEST:
        raise ValueError(f"the card must be at most {LARGEST:,} bytes, got {len(drawn):,}; draw less on it")
    return drawn


def draw_own(browser: Browser, language: str) -> bytes:
    """The page of the book's own model with a head of its first block open, as a PNG of few colors: a page shows it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "page.html")
        program.main(["open", "-o", str(file), "--language", language])
        page = browser.new_page(viewport=OWN_SIZE, reduced_motion="reduce")
        page.goto(f"{file.as_uri()}#{OPENED}")
        page.locator(".in-check", has_text=re.compile("Checked|已核对")).wait_for()
        page.locator('main[data-busy="false"] .st-open .st-title').wait_for()
        page.evaluate("scrollTo(0, 0)")
        picture = page.screenshot()
        page.close()
    small = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLORS).save(small, "png", optimize=True)
    return small.getvalue()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for language in LANGUAGES:
            drawn = {card(language): draw(browser, language), own_model(language): draw_own(browser, language)}
            for file, picture in drawn.items():
                file.write_bytes(picture)
                print(f"{file.relative_to(ROOT)}: {len(picture):,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
