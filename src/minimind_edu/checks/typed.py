"""Numbers as readers type them, in a check as in a quiz: figures/quiz/math.js reads alike."""

import math
import re

_SCALES = {"%": 0.01, "percent": 0.01, "k": 1e3, "thousand": 1e3, "million": 1e6, "billion": 1e9, "b": 1.0}
_SCALES |= {"byte": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?")


def read_number(text: str) -> float:
    """The number of a text such as "0,5", "1,024", "1.5 MiB" (in bytes), "25 %", "1/3", "2^20" or "e^2".

    A comma before groups of three digits separates thousands unless they follow a zero; any other is the point. A word
    that scales nothing, as nats, is let be.

    Raises:
        ValueError: if the text is no number.
    """
    plain = re.sub(r"[\s_]", "", re.sub("[−–]", "-", text.lower()))
    found = re.fullmatch(r"(.*\d\.?)((?:%|[^\W\d_])\D*)?", plain)
    if not found or found[1].count("/") > 1:
        raise ValueError(f"{text!r} is no number: write it like 0.25, 1/4, 1,024, 1.5 MiB or 25 %")
    above, _, below = found[1].partition("/")
    try:
        return _product(above) / (_product(below) if below else 1) * _SCALES.get(found[2] or "", 1.0)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"{text!r} is no number: write it like 0.25, 1/4, 1,024, 1.5 MiB or 25 %") from error


def _product(text: str) -> float:
    return math.prod(_power(factor) for factor in re.split("[*·×]", text))


def _power(text: str) -> float:
    base, _, exponent = text.partition("^")
    return _one(base) ** (_one(exponent) if exponent else 1)


def _one(text: str) -> float:
    if text == "e":
        return math.e
    plain = text.replace(",", "") if _GROUPED.fullmatch(text) else text.replace(",", ".", 1)
    if not _DECIMAL.fullmatch(plain):
        raise ValueError(text)
    return float(plain)
