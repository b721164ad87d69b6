"""checks.typed: what readers type for a number is read alike in a check and in a quiz."""

import math

import pytest

from minimind_edu import checks
from minimind_edu.checks.exercise import difference
from minimind_edu.checks.typed import read_number

NUMBERS = {
    "0,5": 0.5,
    ",5": 0.5,
    "7,39": 7.39,
    "1,0240": 1.024,
    "0,125": 0.125,  # no thousands: they never follow a zero
    "1,024": 1024,
    "12,288.5": 12288.5,
    "25,829,888": 25_829_888,
    "12 288": 12288,
    "12_288": 12288,
    " +2.34 ": 2.34,
    "−2.33": -2.33,
    "7/3": 7 / 3,
    "0,5/2": 0.25,
    "3e6": 3e6,
    "2e-3": 2e-3,
    "2^20": 2**20,
    "e^2": math.e**2,
    "3·10^6": 3e6,
    "3 million": 3e6,
    "384 MiB": 384 * 2**20,
    "1,5 KiB": 1536,
    "1.5mb": 1.5e6,
    "25 %": 0.25,
    "25\u00a0%": 0.25,
    "12,288 bytes": 12288,
}
NONE = [
    "",
    "seven",
    "1/0",
    "1//2",
    "1,2,3",
    "0x10",
    "infinity",
    "2^^3",
    "/2",
    "1/",
    "MiB",
    "1.2.3",
]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_read_in_a_check(text):
    assert read_number(text) == pytest.approx(NUMBERS[text], rel=1e-12)
    assert difference(text, NUMBERS[text]) is None


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_number_is_told_so(text):
    with pytest.raises(ValueError, match="is no number: write it like 0.25"):
        read_number(text)
    assert "is no number" in (difference(text, 1.0) or "")


def test_a_quiz_reads_the_same(node):
    read = node.each("figures/quiz/math", "readNumber", [[text] for text in NUMBERS])
    assert read == pytest.approx(list(NUMBERS.values()), rel=1e-12)
    none = node.each("figures/quiz/math", "readNumber", [[text] for text in NONE])
    assert not any(math.isfinite(number) for number in none)


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [("384 MiB", "MiB", 384), ("384", "MiB", 384), ("0.375 GiB", "MiB", 384), ("25 %", "%", 25), ("9 nats", "", 9)],
)
def test_a_quiz_knows_the_unit_of_its_question(node, text, unit, number):
    assert node.call("figures/quiz/math", "readNumber", [text, unit]) == pytest.approx(number)


def test_a_text_with_a_unit_answers_an_exercise(capsys):
    longest = checks.check_longest_text
    assert longest(lambda *given: str(longest.answer(*given))) is True
    assert longest(lambda *given: "many") is False
    assert "'many' is no number" in capsys.readouterr().out
