"""Figures that several test modules look at: every one as it starts, a quiz, and one without meaning."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import traitlets

from minimind_edu.figures import Figure, ModelMap, Quiz, Roofline, class_of, figure_names
from minimind_edu.figures.roofline import stored_machine
from minimind_edu.web import host

CHOICE = {
    "question": "Which letter comes first? </script><b>bold</b>",
    "options": [
        {"text": "`b`", "why": "It comes second."},
        {"text": "`a`", "correct": True, "why": "Nothing comes before it."},
        {"text": "`c`", "why": "It comes third & last <here>."},
    ],
}
NUMBER = {"question": "What is 7 / 3?", "answer": 7 / 3, "tolerance": 0.01, "why": "Seven thirds."}
LARGE_NUMBER = {"question": "How many?", "answer": 25829888.0, "tolerance": 0, "why": "Counted."}
QUESTIONS = [CHOICE, NUMBER, LARGE_NUMBER]

EVERY_FIGURE = pytest.mark.parametrize("name", figure_names())


def example(name: str, **options) -> Figure:
    """The figure `name`, as it starts on a static page, or with these options."""
    if name == "quiz":
        return Quiz(QUESTIONS, **options)
    if name == "model_map":
        links = {"cache": {"href": "seven.html", "label": "7 · The KV cache"}}
        return ModelMap(**{"links": links, "here": "cache"} | options)
    return Roofline(stored_machine(), **options) if name == "roofline" else class_of(name)(**options)


class Probe(Figure):
    """A figure without meaning, to look at the base class and the host alone."""

    _module = "quiz"
    _repr_traits = ("values", "name")
    values = traitlets.List([1 / 3, -0.0, 12345678.9, 2, True]).tag(sync=True)
    name = traitlets.Unicode("a < b").tag(sync=True)
    hidden = traitlets.Float(float("nan"))
    counted = traitlets.Int(3, read_only=True).tag(sync=True)

    def _summary(self):
        return "A sentence & more.", [("<label>", "1 < 2")]


def state_in(html: str) -> dict:
    """The state that a figure's element holds."""
    return json.loads(re.search(f'<script type="{host.STATE_TYPE}">(.*?)</script>', html, re.DOTALL)[1])


def assert_refused(make: Callable[..., Figure], changes: dict[str, Any], message: str) -> None:
    """Neither as arguments nor by assignment are these values taken, and the figure stays as it was."""
    with pytest.raises(traitlets.TraitError, match=message):
        make(**changes)
    figure = make()
    before = figure.state()
    with pytest.raises(traitlets.TraitError, match=message), figure.hold_trait_notifications():
        for name, value in changes.items():
            setattr(figure, name, value)
    assert figure.state() == before
