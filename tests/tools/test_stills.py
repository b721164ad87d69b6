"""The stored stills are what the figures draw today, all of them, and no others."""

import io
import re

import pytest
from browser import settle
from minimind_book.figures import STILLS
from PIL import Image, ImageChops

from minimind_edu.figures import own_stylesheet, shared_stylesheet
from minimind_edu.web import host
from tools import notebook_environment, stills

pytestmark = pytest.mark.timeout(300)

_NUMBER = re.compile(r"-?\d[\d.]*")


def words_and_shapes(html: str) -> list[str]:
    """Tags and words without numbers: other fonts set other widths, and another machine measures other times."""
    return re.findall(r"[^\s]+", _NUMBER.sub("#", html))


@pytest.fixture(scope="module")
def drawn(browser):
    notebook_environment.apply()
    return dict(stills.all_files(browser))


def by_figure(names) -> list[str]:
    return sorted(name.partition("-")[0] for name in names)


def test_every_figure_of_the_book_has_a_still_and_every_still_a_figure(drawn):
    assert by_figure(drawn) == by_figure(path.name for path in STILLS.iterdir()), "run `python -m tools.stills`"


def test_stills_are_what_the_figures_draw(drawn):
    stored = {path.name: path.read_text(encoding="utf-8") for path in STILLS.iterdir()}
    same = [name for name in drawn if name in stored]
    assert len(same) >= len(stored) - 4, "elements with measured numbers may be named otherwise, the rest may not"
    for name in same:
        assert words_and_shapes(drawn[name]) == words_and_shapes(stored[name]), f"{name}: run `python -m tools.stills`"


def test_an_element_whose_state_has_changed_is_noticed_and_drawn_anew(browser, monkeypatch, tmp_path):
    """A figure that stands in no notebook: what it computes may change, and its arguments stay."""
    for name in ("in_chapters", "directives"):
        monkeypatch.setattr(stills, name, lambda *_: [])
    monkeypatch.setattr(stills, "chapters", dict)
    monkeypatch.setattr(stills, "openings", lambda *_: [("TickTock", {"compact": True})])
    monkeypatch.setattr(stills, "STILLS", tmp_path)
    notebook_environment.apply()
    first = dict(stills.all_files(browser))
    [file] = [name for name in first if name.endswith(".element.html")]
    for name, html in first.items():
        (tmp_path / name).write_text(html + "\n", encoding="utf-8")
    [still] = [name for name in first if name.startswith("tick_tock") and not name.endswith(".zh.html")]
    (tmp_path / still).write_text("as it was\n", encoding="utf-8")
    assert dict(stills.all_files(browser, keep=True))[still] == "as it was"
    (tmp_path / file).write_text(first[file].replace("[2.0,0.0]", "[1.0,0.0]") + "\n", encoding="utf-8")
    assert (tmp_path / file).read_text(encoding="utf-8").rstrip("\n") != first[file]
    assert dict(stills.all_files(browser, keep=True))[file] == first[file]


def picture_of(page, html: str) -> Image.Image:
    page.set_content(html)
    page.wait_for_function("!document.querySelector('[data-figure]:not([data-state])')")
    settle(page)
    page.add_style_tag(content=".mm-data { display: none; }")
    return Image.open(io.BytesIO(page.screenshot())).convert("L")


def differing(one: Image.Image, other: Image.Image) -> float:
    """The share of the pixels that differ by more than an edge's softness."""
    counts = ImageChops.difference(one, other).histogram()
    return sum(counts[60:]) / sum(counts)


def test_a_still_looks_like_its_figure(browser):
    """Rounded, in steps and without its scripts, each whole figure of the chapters looks the same."""
    page = browser.new_page(viewport={"width": stills.BROAD, "height": 900}, reduced_motion="reduce")
    for name, state in stills.in_chapters():
        living = picture_of(page, stills.page_of(name, state))
        style = f"<style>{shared_stylesheet()}{own_stylesheet(name)}</style>"
        still = (STILLS / host.still_name(name, state)).read_text(encoding="utf-8")
        inside = f'<body style="margin:0"><div class="minimind-figure"><div class="mm-still">{still}</div></div>'
        resting = picture_of(page, f'<!doctype html><html lang="en" data-theme="light">{style}{inside}')
        assert differing(living, resting) < 0.001, name
    page.close()


def test_a_still_holds_nothing_that_acts(drawn):
    for name, html in drawn.items():
        if not name.endswith(".element.html"):
            assert not re.search(r"<script|\son\w+=|tabindex|aria-live", html), name
            ids = re.findall(r'\bid="([^"]+)"', html)
            assert len(ids) == len(set(ids)), name


def test_elements_hold_the_state_from_which_their_still_was_drawn():
    for path in STILLS.glob("*.element.html"):
        [(name, state)] = host.states_in(path.read_text(encoding="utf-8"))
        assert (STILLS / host.still_name(name, state)).is_file(), path.name


def test_only_what_is_missing_is_drawn_where_that_is_asked_for(browser, monkeypatch, tmp_path):
    left_out = next(STILLS.glob("strip-*.html"))
    for path in STILLS.iterdir():
        if path != left_out:
            (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    asked = []
    monkeypatch.setattr(stills, "STILLS", tmp_path)
    monkeypatch.setattr(stills, "drawn", lambda *given: asked.append(given) or "")
    monkeypatch.setattr(stills, "strip", lambda part: asked.append(part) or "drawn")
    found = dict(stills.all_files(browser, keep=True))
    assert asked == [left_out.stem.removeprefix("strip-")] * len(asked) and found[left_out.name] == "drawn"
    assert by_figure(found) == by_figure(path.name for path in STILLS.iterdir())
