"""What a cell prints, compared as a reader would: words as words, numbers as numbers.

Another processor, a GPU or a second thread adds up in another order, and last digits differ. So

    text, and whole numbers   12, 1,024, 1e-05, 61 %, nan, True     exactly
    decimals                  0.4931, -1.2e-07, 6,283.2, 61.0 %     up to one unit of the last place that is printed
    behind ≈                  ≈58.1, ≈61 %, ≈1,200                  up to a fifth, or one unit of the last place

`pytest --nbval`, `tools.refresh` and the run with Colab's versions all ask here. `tools.run_unaided` takes this file
along to where nothing else of the project is, so it imports nothing of it.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

# With the spaces around it: columns give way to a minus sign and to a digit more. No part of a name or of a version
# is a number. torch prints tensor([1., 2.]) if all are whole, so those have decimals, too: as many as the other one.
NUMBER = re.compile(
    r" *(?P<measured>≈ ?)?(?<![\w.])(?P<sign>[-−+])?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)"
    r"(?:\.(?P<decimals>\d+|(?=[\],])))?(?:[eE](?P<exponent>[-+]?\d+))?(?!\d|\.\d) *"
)
FIFTH = Decimal("0.2")
NEAR_IN_A_PICTURE = 0.05  # of a point: nobody sees it


def _read(line: str) -> tuple[list[str], list[re.Match[str]]]:
    """What is between the numbers that may differ, and these numbers."""
    numbers = [found for found in NUMBER.finditer(line) if found["measured"] or found["decimals"] is not None]
    ends = [0, *(end for found in numbers for end in found.span()), len(line)]
    return [line[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)], numbers


def _value(number: re.Match[str]) -> Decimal:
    sign = "-" if number["sign"] in ("-", "−") else ""
    plain = f"{sign}{number['whole'].replace(',', '')}.{number['decimals'] or '0'}"
    return Decimal(plain).scaleb(int(number["exponent"] or 0))


def _written_alike(a: re.Match[str], b: re.Match[str]) -> bool:
    """Whether no more than the values differ: not the places, not the separators, not the kind of minus sign."""
    long = len(a["whole"]) > 3 and len(b["whole"]) > 3
    return (
        a["measured"] == b["measured"]
        and (a["exponent"] is None) == (b["exponent"] is None)
        and ("" in (a["decimals"], b["decimals"]) or len(a["decimals"] or "") == len(b["decimals"] or ""))
        and not (long and ("," in a["whole"]) != ("," in b["whole"]))
        and {a["sign"], b["sign"]} != {"-", "−"}
    )


def _is_near(computed: re.Match[str], stored: re.Match[str]) -> bool:
    if not _written_alike(computed, stored):
        return False
    places = max(len(number["decimals"] or "") for number in (computed, stored))
    power = min(int(number["exponent"] or 0) for number in (computed, stored))
    whole = computed["decimals"] == stored["decimals"] == ""
    room = Decimal(0) if whole else Decimal(1).scaleb(power - places)
    if stored["measured"]:
        room = max(room, FIFTH * abs(_value(stored)))
    return abs(_value(computed) - _value(stored)) <= room


def _settled_line(computed: str, stored: str) -> str:
    (words, numbers), (stored_words, stored_numbers) = _read(computed), _read(stored)
    if words != stored_words:
        return computed
    chosen = [b[0] if _is_near(a, b) else a[0] for a, b in zip(numbers, stored_numbers, strict=True)]
    return "".join(word + number for word, number in zip(words, [*chosen, ""], strict=True))


# What torch says of a tensor that is not on the CPU, where the stored ones are.
DEVICE = re.compile(r",\s+device='(?:cuda|mps)(?::\d+)?'")


def settled(computed: str, stored: str) -> str:
    """The computed text, with every number that is near the stored one in its place replaced by that one.

    So it equals the stored text if only such digits differ, and otherwise differs from it by what is wrong alone.
    """
    lines, stored_lines = DEVICE.sub("", computed).split("\n"), stored.split("\n")
    if len(lines) != len(stored_lines):
        return computed
    return "\n".join(map(_settled_line, lines, stored_lines))


def _drawing(svg: str) -> tuple[str, list[float]]:
    """A picture without its numbers, and the numbers. A path leaves out a coordinate that stays: H and V for L."""

    def whole_path(found: re.Match[str]) -> str:
        place, steps = ["0", "0"], []
        for command, numbers in re.findall(r"([A-Za-z])([^A-Za-z]*)", found[2]):
            values = numbers.split()
            if command in "HV":
                values = [values[0], place[1]] if command == "H" else [place[0], values[0]]
                command = "L"
            place = values[-2:] or place
            steps.append(f"{command} {' '.join(values)}")
        return found[1] + " ".join(steps)

    number = r"(?<![\w#.-])-?\d+(?:\.\d+)?(?=[\s\",)])"
    svg = re.sub(r"( d=\")([^\"]*)", whole_path, svg)
    return re.sub(number, "0", svg), [float(value) for value in re.findall(number, svg)]


def _is_same_picture(computed: str, stored: str) -> bool:
    (parts, numbers), (stored_parts, stored_numbers) = _drawing(computed), _drawing(stored)
    return parts == stored_parts and all(
        abs(a - b) <= NEAR_IN_A_PICTURE for a, b in zip(numbers, stored_numbers, strict=True)
    )


def _settled_value(kind: str, computed: Any, stored: Any) -> Any:
    if not (isinstance(computed, str) and isinstance(stored, str)):
        return computed
    if kind == "image/svg+xml":
        return stored if _is_same_picture(computed, stored) else computed
    return settled(computed, stored) if kind == "text" or kind.startswith("text/") else computed


def _settled_output(computed: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    output = {key: _settled_value(key, value, stored.get(key)) for key, value in computed.items()}
    if "data" in output:
        before = stored.get("data", {})
        output["data"] = {kind: _settled_value(kind, value, before.get(kind)) for kind, value in output["data"].items()}
    return output


def settled_outputs(computed: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same for all outputs of a cell, in their order: for what it prints, its values, its tables and pictures."""
    if len(computed) != len(stored):
        return [dict(output) for output in computed]
    return list(map(_settled_output, computed, stored))
