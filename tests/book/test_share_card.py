"""The card that is shown when somebody shares the book: the size that networks ask for, and the book's own words."""

import base64
import re
import struct

import pytest

from minimind_edu.web import palette
from tools import share_card


def size_of(png: bytes) -> tuple[int, int]:
    """Width and height, from the header of a PNG."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", png[16:24])


def colors_of(browser, png: bytes) -> list[str]:
    """The colors of the palette that many pixels of a picture have."""
    page = browser.new_page()
    counts = page.evaluate(
        """async (address) => {
            const picture = await createImageBitmap(await (await fetch(address)).blob());
            const canvas = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
            canvas.drawImage(picture, 0, 0);
            const { data } = canvas.getImageData(0, 0, picture.width, picture.height);
            const counts = {};
            for (let i = 0; i < data.length; i += 4) {
                const hex = [0, 1, 2].map((at) => data[i + at].toString(16).padStart(2, "0")).join("");
                counts["#" + hex] = (counts["#" + hex] ?? 0) + 1;
            }
            return counts;
        }""",
        f"data:image/png;base64,{base64.b64encode(png).decode()}",
    )
    page.close()
    return [color.light for color in palette.PALETTE.values() if counts.get(color.light, 0) > 300]


@pytest.mark.parametrize("language", share_card.LANGUAGES)
def test_the_stored_cards_have_the_right_size(language):
    share = share_card.card(language).read_bytes()
    assert size_of(share) == (1200, 630)
    assert len(share) < share_card.LARGEST


@pytest.mark.parametrize("language", share_card.LANGUAGES)
def test_a_new_card_can_be_drawn(browser, language):
    card = share_card.draw(browser, language)
    assert size_of(card) == (1200, 630)
    assert len(set(colors_of(browser, card))) > 4, "the strip is on it, in its colors"


@pytest.mark.parametrize(("language", "page"), [("en", "book/index.md"), ("zh", "zh/book/index.md")])
def test_card_and_front_page_ask_the_same_question(language, page):
    index = (share_card.ROOT / page).read_text(encoding="utf-8")
    assert f"# {share_card.TITLE[language]}\n" in index
    assert share_card.QUESTION[language] in index


def test_the_logo_has_the_colors_of_the_strip():
    logo = (share_card.ROOT / "book/theme/static/logo.svg").read_text(encoding="utf-8")
    parts = {palette.PALETTE[name].either for name in ("stream", "v", "ffn", "norm")}
    assert set(re.findall(r"#[0-9a-f]{6}", logo)) == parts


@pytest.mark.parametrize("language", share_card.LANGUAGES)
def test_the_page_of_a_model_is_drawn_and_small(browser, language):
    stored, new = share_card.own_model(language).read_bytes(), share_card.draw_own(browser, language)
    assert size_of(stored) == size_of(new) == (1200, 900)
    assert 20_000 < len(new) < 60_000 > len(stored)
