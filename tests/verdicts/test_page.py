"""The book's page about the command: its screens are what the command prints, and its numbers are the package's."""

import math
import re

import pytest
from screens import EXAMPLES, SCREENS, name_of, shown

from minimind_edu.verdicts import curve, data, log
from tools.chapters import ROOT

PAGE = (ROOT / "book" / "check_mine.md").read_text(encoding="utf-8")
_VARIES = re.compile(
    r"\d\.\de[-+]\d\d|\(5\.\d+\.\d+\)|\b0 (?=\(the largest)|(?<=最多差 )0"
)  # of machines, and of transformers


def plain(text):
    """A screen without what machines differ in, nor where its lines end."""
    return re.sub(r"\s+", "", _VARIES.sub("~", text))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("example", EXAMPLES)
def test_a_screen_of_the_book_is_what_the_command_says(example, language, tmp_path):
    stored = (SCREENS / name_of(example, language)).read_text(encoding="utf-8")
    assert plain(shown(example, language, tmp_path)) == plain(stored), "python tests/verdicts/screens.py writes it anew"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_curve_of_the_book_is_what_the_command_draws(language, tmp_path):
    shown("log", language, tmp_path, "--picture", tmp_path / "curve.svg")
    stored = (SCREENS / name_of("curve", language, "svg")).read_text(encoding="utf-8")
    assert (tmp_path / "curve.svg").read_text(encoding="utf-8") == stored, "python tests/verdicts/screens.py"


def test_each_screen_stands_on_the_page():
    included = re.findall(r"screens/(\w+)\.html", PAGE)
    assert sorted(included) == sorted(EXAMPLES)
    chinese = (ROOT / "zh" / "book" / "check_mine.md").read_text(encoding="utf-8")
    assert re.findall(r"screens/(\w+)\.zh\.html", chinese) == included


def test_the_numbers_of_the_text_are_those_of_the_package(tmp_path):
    assert f"ln {curve.VOCABULARY:,} = {math.log(curve.VOCABULARY):.2f}" in PAGE
    assert f"MiniMind's rate of {curve.USUAL_RATES['dpo'][1]:g}".replace("e-0", "e-") in PAGE
    assert f"stands at {curve.LN2:.3f}" in PAGE
    assert {"pretraining", "SFT and LoRA", "DPO"} <= set(re.findall(r"for (pretraining|SFT and LoRA|DPO)", PAGE))
    assert set(data.MAX_LENGTH) <= set(log.STAGES)
    for text in ("100 6.44", "step 100 loss 6.44"):
        (tmp_path / "plain.log").write_text(text)
        assert f"`{text}`" in PAGE and log.read_log(tmp_path / "plain.log").points[0].loss == 6.44
