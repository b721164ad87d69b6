"""The quiz refuses faulty questions, judges answers in the page, and can be read without scripts."""

from html.parser import HTMLParser

import pytest
from browser import open_figures
from figure_examples import CHOICE, LARGE_NUMBER, NUMBER, QUESTIONS

from minimind_edu.figures import Quiz, choice


def changed_options(**changes) -> dict:
    """CHOICE with its last option changed."""
    return {**CHOICE, "options": [*CHOICE["options"][:2], {**CHOICE["options"][2], **changes}]}


@pytest.mark.parametrize(
    "question, message",
    [
        ({**CHOICE, "options": CHOICE["options"][:2]}, "has 2 options, but a choice needs at least 3"),
        (changed_options(correct=True), "has 2 correct options, but exactly 1"),
        ({**CHOICE, "options": [CHOICE["options"][0]] * 3}, "has 0 correct options, but exactly 1"),
        (changed_options(why=""), "the wrong option '`c`' of question 'Which letter"),
        (changed_options(text=""), "'text' is missing in question 'Which letter"),
        (changed_options(reason="x"), "unknown reason in question 'Which letter"),
        ({**CHOICE, "answer": 1}, "unknown answer in question 'Which letter"),
        ({"options": CHOICE["options"]}, "needs a text under 'question'"),
        ("How many?", "needs a text under 'question', got 'How many\\?'"),
        ({"question": "How many?"}, "'answer' is missing in question 'How many\\?'"),
        ({**NUMBER, "why": ""}, "'why' is missing in question 'What is 7 / 3"),
        ({**NUMBER, "tolerance": -1.0}, "What is 7 / 3.*tolerance >= 0"),
        ({**NUMBER, "answer": float("inf")}, "What is 7 / 3.*finite answer"),
        ({**NUMBER, "unit": "miles"}, "the unit of question 'What is 7 / 3.*KiB, MiB.*got 'miles'"),
        ({**NUMBER, "tolerance": 0}, "holds 2.33333 for 2.333333.*tolerance 0.0 is too small"),
    ],
)
def test_quiz_refuses_a_faulty_question_by_its_text(question, message):
    with pytest.raises(ValueError, match=message):
        Quiz([NUMBER, question])
    quiz = Quiz([NUMBER])
    before = quiz.questions
    with pytest.raises(ValueError, match=message):
        quiz.questions = [NUMBER, question]
    assert quiz.questions == before


def test_a_choice_is_written_as_options_with_reasons_and_the_right_one():
    options = [{"text": "a", "why": "no"}, {"text": "b", "why": "yes", "correct": True}, {"text": "c", "why": "no"}]
    written = choice("Which?", ("a", "no"), ("b", "yes", True), ("c", "no"))
    assert written == {"question": "Which?", "options": options}
    assert [option["correct"] for option in Quiz([written]).questions[0]["options"]] == [False, True, False]


def test_quiz_refuses_to_be_empty():
    with pytest.raises(ValueError, match="at least one question"):
        Quiz([])


class _Words(HTMLParser):
    """The text of a document as a viewer without scripts shows it."""

    def __init__(self, html: str):
        super().__init__()
        self.words, self.in_script = [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.in_script = tag == "script"

    def handle_endtag(self, tag):
        self.in_script = False

    def handle_data(self, data):
        if not self.in_script:
            self.words.append(data)


def test_quiz_is_readable_without_scripts():
    quiz = Quiz(QUESTIONS)
    words = " ".join(_Words(quiz.static_html()).words)
    assert repr(quiz) == "Quiz(3 questions)"
    assert CHOICE["question"] in words
    assert "2.33333" in words and "25829888" in words  # a large count keeps all its digits
    assert "<code>a</code>" in quiz.static_html()


def test_quiz_answers_with_the_reason_of_the_chosen_option(page):
    open_figures(page, Quiz(QUESTIONS))
    card = page.locator("form").nth(0)
    card.get_by_role("button", name="Check").click()
    assert card.get_by_role("status").inner_text() == "Choose an answer first."
    card.get_by_role("radio", name="c").check()
    card.get_by_role("button", name="Check").click()
    assert card.get_by_role("status").inner_text() == "Not yet. It comes third & last <here>."
    card.get_by_role("radio", name="a").check()
    assert card.get_by_role("status").inner_text() == ""  # a reason never stands beside another choice
    card.get_by_role("button", name="Check").click()
    assert card.get_by_role("status").inner_text() == "Right. Nothing comes before it."
    assert page.locator(".mm-readout dd").all_inner_texts() == ["1 of 3", "0 of 3"]


def test_quiz_judges_a_number_by_its_distance(page):
    open_figures(page, Quiz([NUMBER]))
    for typed, told in [
        ("2.33", "Right. Seven thirds."),
        ("2,33", "Right. Seven thirds."),
        ("2.36", "Not yet. 2.36 is too large."),
        ("7/3", "Right. Seven thirds."),
        ("233 %", "Right. Seven thirds."),
        ("−2.33", "Not yet. −2.33 is too small."),
        (" +2.34 ", "Right. Seven thirds."),
        ("2.33 %", "Not yet. 0.0233 is too small."),
        ("0,00233 KB", "Right. Seven thirds."),
        ("233e-2 tokens", "Right. Seven thirds."),
        ("3 million", "Not yet. 3000000 is too large."),
        ("e^2/3", "Not yet. 2.46301869964 is too large."),
        ("MiB", "Type a number, for example 0.25."),
        ("seven", "Type a number, for example 0.25."),
        ("2.33", "Right. Seven thirds."),
        ("", "Type a number, for example 0.25."),
        ("2.33", "Right. Seven thirds."),
        ("1/0", "Type a number, for example 0.25."),
    ]:
        page.get_by_role("textbox").fill(typed)
        page.keyboard.press("Enter")
        assert page.get_by_role("status").inner_text() == told, typed


def test_quiz_reads_thousands_and_gives_the_answer_only_when_asked(page):
    open_figures(page, Quiz([LARGE_NUMBER]))
    reveal = page.get_by_role("button", name="Show the answer")
    assert not reveal.is_visible()
    page.get_by_role("textbox").fill("25,829,889")
    page.get_by_role("button", name="Check").click()
    reveal.click()
    assert page.get_by_role("status").inner_text() == "The answer is 25829888. Counted."
    page.get_by_role("textbox").fill("25,829,888")
    page.get_by_role("button", name="Check").click()
    assert page.locator(".mm-readout dd").all_inner_texts() == ["1 of 1", "0 of 1"]
    page.get_by_role("button", name="Start again").click()
    assert page.locator(".mm-readout dd").all_inner_texts() == ["0 of 1", "0 of 1"]
    assert page.get_by_role("textbox").input_value() == ""
    assert page.evaluate("document.activeElement.type") == "text"


def test_quiz_can_be_answered_from_the_keyboard_alone(page):
    open_figures(page, Quiz(QUESTIONS))
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")  # moving between options is no answer yet
    assert page.get_by_role("status").first.inner_text() == ""
    page.keyboard.press("Enter")
    assert page.get_by_role("status").first.inner_text() == "Right. Nothing comes before it."
    for key in ("Tab", "Tab", *"2.33", "Enter"):
        page.keyboard.press(key)
    assert page.get_by_role("status").nth(1).inner_text() == "Right. Seven thirds."
    assert page.locator(".mm-readout dd").all_inner_texts() == ["2 of 3", "2 of 3"]


def test_quiz_hears_enter_where_jupyterlab_cancels_the_line_break(page):
    open_figures(page, Quiz([NUMBER]))
    cancel = "document.addEventListener('beforeinput', (e) => e.inputType === 'insertLineBreak' && e.preventDefault())"
    page.evaluate(cancel)
    page.get_by_role("textbox").fill("2.33")
    page.keyboard.press("Enter")
    assert page.locator(".mm-readout dd").all_inner_texts() == ["1 of 1", "1 of 1"]
