"""Draw the picture that others show when somebody shares the book: its title, its question, and the strip.

    python -m tools.share_card

The strip is that of the chapters, in colors, drawn by a real Chromium. The same picture, 1200 by 630 pixels, goes to
`book/assets/share.png` for the pages and to `book/readme.png` for the README.
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from minimind_edu import palette
from minimind_edu.figures import own_stylesheet, shared_stylesheet
from minimind_edu.figures.model_map import strip_drawing

ROOT = Path(__file__).resolve().parents[1]
FILES = (ROOT / "book/assets/share.png", ROOT / "book/readme.png")
WIDTH, HEIGHT = 1200, 630
LARGEST = 120_000  # bytes: some networks do not fetch more

TITLE = "MiniMind from the inside"
QUESTION = "How does a language model choose the next word?"
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

STYLE = """
body { margin: 0; padding: 34px 60px 0; background: %(bg)s; color: %(ink)s;
    font-family: Georgia, "Source Serif 4", "DejaVu Serif", serif; }
h1 { margin: 0; font-size: 54px; line-height: 1.1; }
p { margin: 10px 0 0; font-size: 30px; line-height: 1.25; color: %(muted)s; }
.mm-fig.mm-fig { display: block; margin: 130px 0 0; padding: 0; border: 0; background: none; }
.mm-fig .mp-mini-map { width: 1080px; height: auto; }
"""


def page_of_the_card() -> str:
    """One HTML page with everything inside that shows title, question and the strip."""
    colors = {name: palette.PALETTE[name].light for name in ("bg", "ink", "muted")}
    return (
        '<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">'
        f"<style>:root {{ color-scheme: light; {palette.css_variables()} }}"
        f"{shared_stylesheet()}{own_stylesheet('model_map')}{STYLE % colors}</style>"
        f"<h1>{TITLE}</h1><p>{QUESTION}</p>"
        f'<div class="mm-fig mp-strip mp-face" style="--read: 100%">{strip_drawing("")}</div>'
    )


def draw(browser: Browser) -> bytes:
    """The card as a PNG of at most 120 kB.

    Raises:
        ValueError: if it is larger than that.
    """
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
    page.set_content(page_of_the_card())
    card = page.screenshot()
    page.close()
    if len(card) > LARGEST:
        raise ValueError(f"the card must be at most {LARGEST:,} bytes, got {len(card):,}; draw less on it")
    return card


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args(arguments)
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)), None)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        card = draw(browser)
        browser.close()
    for file in FILES:
        file.write_bytes(card)
        print(f"{file.relative_to(ROOT)}: {len(card):,} bytes")


if __name__ == "__main__":
    main()
