"""The pages of corrections: one grade alone, by mouse or keyboard, with or without scripts, and from a folder."""

import re
from collections import Counter

import pytest
from book_builder import context_of

from tools.corrections import GRADES, corrections, notebooks, that_matter

ENTRIES = corrections()
PAGES = {f"chapters/{path.stem}": [entry.grade for entry in ENTRIES if entry.path == path] for path in notebooks()}
PAGES["book/reference/corrections"] = [entry.grade for entry in ENTRIES]
GRADED = ", ".join(f"article .grade-{grade}" for grade in GRADES)


def shown(page) -> Counter:
    """How many entries or rows of each grade can be seen."""
    classes = page.evaluate(
        "(graded) => [...document.querySelectorAll(graded)].filter((one) => one.checkVisibility())"
        ".map((one) => one.className.match(/grade-(\\w+)/)[1])",
        GRADED,
    )
    return Counter(classes)


@pytest.mark.parametrize("edition", ["", "zh/"])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_a_button_for_each_grade_with_its_count(html, name, edition):
    text = (html / f"{edition}{name}.html").read_text(encoding="utf-8")
    [buttons] = re.findall(r'<fieldset class="grades">(.*?)</fieldset>', text)
    told = {grade: int(count) for grade, count in re.findall(r'value="(\w+)".*?<span>(\d+)</span>', buttons)}
    assert told == {"all": len(PAGES[name]), **Counter(PAGES[name])}
    marked = re.findall(r'<(?:section|tr) [^>]*class="[^"]*?grade-(\w+)', text)
    assert marked == PAGES[name]
    words = re.findall(r"\*?>([^<>]+?) <span>", buttons)[1:]
    assert words == [said["zh" if edition else "en"] for said in GRADES.values()]


@pytest.mark.parametrize("over", ["http", "file"])
@pytest.mark.parametrize("name", PAGES)
def test_a_grade_is_seen_alone(page, html, http_address, over, name):
    page.goto(f"{http_address if over == 'http' else html.as_uri()}/{name}.html")
    assert shown(page) == Counter(PAGES[name])
    for grade in GRADES:
        page.locator(".grades label", has_text=GRADES[grade]["en"]).click()
        assert shown(page) == {grade: PAGES[name].count(grade)}
        parts = page.locator("article .graded").all()
        assert all(part.locator(f".grade-{grade}").count() for part in parts if part.is_visible()), "no empty part"
    page.locator(".grades label").first.click()
    assert shown(page) == Counter(PAGES[name])


def test_the_keyboard_chooses_a_grade(page, http_address):
    page.goto(f"{http_address}/chapters/C3_whole_model.html")
    page.locator(".grades input").first.focus()
    for grade in GRADES:
        page.keyboard.press("ArrowRight")
        assert list(shown(page)) == [grade]
    page.keyboard.press("ArrowRight")
    assert shown(page) == Counter(PAGES["chapters/C3_whole_model"])


def test_a_link_leads_to_an_entry_that_was_not_chosen(page, http_address):
    page.goto(f"{http_address}/chapters/C1_norms_and_positions.html")
    page.locator(".grades label").last.click()
    page.locator('#the-five-that-matter-most a[href^="#e39-"]').click()
    assert shown(page) == {"small": PAGES["chapters/C1_norms_and_positions"].count("small"), "wrong": 1}
    heading = page.locator("h3", has_text="E39 ·")
    box = heading.bounding_box()
    buttons = page.locator(".grades").bounding_box()
    assert buttons["y"] + buttons["height"] <= box["y"] < page.viewport_size["height"], (
        "not below what stays at the top"
    )


def test_without_scripts_all_is_shown_and_a_grade_can_be_chosen(browser, http_address):
    context = context_of(browser, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{http_address}/chapters/C3_whole_model.html")
    entries = page.locator("article section[class*=grade-]")
    assert sum(entry.is_visible() for entry in entries.all()) == len(PAGES["chapters/C3_whole_model"])
    page.locator(".grades label").nth(1).click()
    assert {entry.get_attribute("class") for entry in entries.all() if entry.is_visible()} == {"grade-wrong"}
    context.close()


@pytest.mark.parametrize("edition", ["", "zh/"])
def test_the_buttons_stand_in_one_line_on_a_phone(browser, http_address, edition):
    context = context_of(browser, viewport={"width": 360, "height": 740})
    page = context.new_page()
    for name in PAGES:
        page.goto(f"{http_address}/{edition}{name}.html")
        tops = {round(label.bounding_box()["y"]) for label in page.locator(".grades label").all()}
        assert len(tops) == 1, name
    context.close()


@pytest.mark.parametrize("edition", ["", "zh/"])
def test_the_page_of_all_corrections_begins_with_those_that_matter(html, edition):
    text = (html / edition / "book/reference/corrections.html").read_text(encoding="utf-8")
    [table] = re.findall(r'<table class="[^"]*reference-matter.*?</table>', text, re.DOTALL)
    assert re.findall(r">(E\d+)<", table) == that_matter_in_rows()


def that_matter_in_rows() -> list[str]:
    """Rows stand in the order of the entries, the links at the heads of the notebooks in that of their numbers."""
    return [entry.number for entry in ENTRIES if entry.number in that_matter()]
