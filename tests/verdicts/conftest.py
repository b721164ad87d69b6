"""Every verdict that any of these tests brings about must have its Chinese."""

import re

import pytest

from minimind_edu.verdicts.verdict import Verdict, in_language
from minimind_edu.words import WIDE

SAME = {"NaN", "logits", "transformers", "llama.cpp", "LoRA", "ln 2", "DPO"}  # in both languages
SENTENCES_OF_OTHERS = re.compile("^(no model fits|not compared): ")  # of errors, which stay English
ENGLISH = re.compile(r"(?<![-\w.])[a-z]+ [a-z]+ [a-z]+(?![\w.])")


def untranslated(verdict):
    """What of a verdict a Chinese reader would read in English."""
    for said in (verdict.about, verdict.finding, verdict.advice):
        if said and said not in SAME and not said.startswith("pip install"):
            told = in_language(said, "zh")
            if not WIDE.search(told) or (ENGLISH.search(told) and not SENTENCES_OF_OTHERS.match(said)):
                yield told


@pytest.fixture(autouse=True)
def every_verdict_has_its_chinese(monkeypatch):
    made, before = [], Verdict.__init__

    def noted(self, *arguments, **more):
        before(self, *arguments, **more)
        made.append(self)

    monkeypatch.setattr(Verdict, "__init__", noted)
    yield
    assert [told for verdict in made for told in untranslated(verdict)] == []
