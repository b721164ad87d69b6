"""Quiz: a few questions at the end of a chapter, each answer with its reason.

A question is a choice between options, or asks for a number that the notebook computed. Answers are judged in the page,
so the quiz works without a kernel; nothing is sent or stored.
"""

import math
import re
from html import escape
from typing import Any

from traitlets import Bunch, List, validate

from minimind_edu.notebook import language
from minimind_edu.web.base import Figure, rounded
from minimind_edu.words import in_state, translated

_CHOICE_KEYS = {"question", "options"}
_NUMBER_KEYS = {"question", "answer", "tolerance", "why"}
_UNITS = ("%", "KiB", "MiB", "GiB", "KB", "MB", "GB")
_OPTION_KEYS = {"text", "correct", "why"}


def choice(question: str, *options: tuple) -> dict[str, Any]:
    """A question between options, each (text, why), with True as a third for the right one."""
    return {"question": question, "options": [dict(zip(("text", "why", "correct"), o, strict=False)) for o in options]}


def _check_keys(given: dict, allowed: set[str], required: set[str], question: str) -> None:
    if unknown := sorted(set(given) - allowed):
        raise ValueError(
            f"unknown {', '.join(unknown)} in question {question!r}; known are {', '.join(sorted(allowed))}"
        )
    for key in sorted(required):
        if given.get(key) in (None, ""):
            raise ValueError(f"{key!r} is missing in question {question!r}")


def _checked_choice(given: dict, question: str) -> dict[str, Any]:
    _check_keys(given, _CHOICE_KEYS, {"options"}, question)
    options = []
    for option in given["options"]:
        _check_keys(option, _OPTION_KEYS, {"text"}, question)
        if not option.get("correct") and not option.get("why"):
            raise ValueError(f"the wrong option {option['text']!r} of question {question!r} needs a 'why'")
        options.append({"text": option["text"], "correct": bool(option.get("correct")), "why": option.get("why", "")})
    if len(options) < 3:
        raise ValueError(f"question {question!r} has {len(options)} options, but a choice needs at least 3")
    if (correct := sum(option["correct"] for option in options)) != 1:
        raise ValueError(f"question {question!r} has {correct} correct options, but exactly 1 must be correct")
    return {"question": question, "options": options}


def _checked_number(given: dict, question: str) -> dict[str, Any]:
    _check_keys(given, _NUMBER_KEYS | {"unit"}, _NUMBER_KEYS, question)
    if (unit := given.get("unit")) not in (None, *_UNITS):
        raise ValueError(f"the unit of question {question!r} must be one of {', '.join(_UNITS)}, got {unit!r}")
    answer, tolerance = float(given["answer"]), float(given["tolerance"])
    if not math.isfinite(answer) or not tolerance >= 0:
        raise ValueError(f"question {question!r} needs a finite answer and a tolerance >= 0, got {answer}, {tolerance}")
    shown = int(answer) if answer.is_integer() else rounded(answer)
    if abs(shown - answer) > tolerance:
        raise ValueError(
            f"the page holds {shown} for {answer} in question {question!r}: tolerance {tolerance} is too small"
        )
    asked_in = {"unit": unit} if unit else {}
    return {"question": question, "answer": shown, "tolerance": tolerance, "why": given["why"]} | asked_in


def _checked(given: Any) -> dict[str, Any]:
    """Validate one question and fill in what may be left out."""
    question = given.get("question") if isinstance(given, dict) else None
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"every question needs a text under 'question', got {given!r}")
    return _checked_choice(given, question) if "options" in given else _checked_number(given, question)


def _html(text: str) -> str:
    """Escaped text, with `code` between backticks as an element."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


_WORDS = {
    "en": {"answer": "Answer", "number": "(Answer with a number.)", "told": "{}. {}"},
    "zh": {"answer": "答案", "number": "（请回答一个数。）", "told": "{}。{}"},
}


def plain_questions(questions: list[dict[str, Any]], language: str = "en") -> str:
    """The questions for viewers without scripts."""
    return f"<ol>{''.join(_plain_question(item, _WORDS[language]) for item in questions)}</ol>"


def _plain_question(item: dict[str, Any], words: dict[str, str]) -> str:
    """One of them: the answer is folded below it."""
    if "options" in item:
        right = next(option for option in item["options"] if option["correct"])
        body = "<ul>" + "".join(f"<li>{_html(option['text'])}</li>" for option in item["options"]) + "</ul>"
        answer, why = right["text"], right["why"]
    else:
        body, answer, why = f"<p>{words['number']}</p>", str(item["answer"]), item["why"]
    return (
        f"<li><p>{_html(item['question'])}</p>{body}"
        f"<details><summary>{words['answer']}</summary>"
        f"<p>{words['told'].format(_html(answer), _html(why))}</p></details></li>"
    )


class Quiz(Figure):
    """Questions with reasons: `Quiz([{"question": ..., "options": [...]}, {"question": ..., "answer": ...}])`.

    Args:
        questions: each either a choice, `{"question", "options": [{"text", "correct", "why"}, ...]}` with at least
            three options, exactly one of them correct, and a `why` for each wrong one; or a number,
            `{"question", "answer", "tolerance", "why"}`, judged by its absolute distance from the answer; `"unit"`,
            such as "MiB" or "%", if the answer is in one: readers may type others.
            Text between backticks is shown as code.

    Raises:
        ValueError: naming the question that breaks one of these rules.
    """

    questions = List().tag(sync=True)

    def __init__(self, questions: list[dict[str, Any]]) -> None:
        super().__init__(questions=questions)

    @validate("questions")
    def _checked_questions(self, proposal: Bunch) -> list[dict[str, Any]]:
        if not proposal["value"]:
            raise ValueError("a quiz needs at least one question, got none")
        return in_state([_checked(question) for question in proposal["value"]], translated)

    def __repr__(self) -> str:
        return f"Quiz({len(self.questions)} questions)"

    def _fallback_html(self) -> str:
        return plain_questions(self.questions, language())
