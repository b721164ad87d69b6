"""The page on notation keeps its promise: the letters of all shapes are in its table, and formulas mean the same."""

import re
from collections.abc import Iterator

import pytest
from minimind_book import reference

from tools.chapters import ROOT, notebooks, that_teach
from tools.compared import load, text

PAGE = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
SHAPES, ALSO = PAGE.split("A few letters mean something else")
MEANINGS = dict(re.findall(r"^\| `([A-Z])` \| ([^|]*) \|", SHAPES, re.MULTILINE))
OTHERS = re.findall(r"^\| `([A-Z])` \| ([^|]*) \|", ALSO, re.MULTILINE)

AXIS = r"[A-Za-z0-9_]+(?: ?[*/+-] ?[A-Za-z0-9_]+|=\d+| [a-z]+)*"
SHAPE = re.compile(rf"\[({AXIS}(?:, ?{AXIS})*)\]")
_, FORMULAS = reference.rows_of("formulas")


def commented() -> Iterator[tuple[str, str]]:
    """Every comment and docstring of the package, every comment and code in the text of the chapters."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for found in re.findall(r'#.*|"""(?:.|\n)*?"""', source):
            yield path.relative_to(ROOT / "src" / "minimind_edu").as_posix(), found
    for path in that_teach():
        for cell in load(path)["cells"]:
            pattern = r"#.*" if cell["cell_type"] == "code" else r"`[^`\n]*`"
            for found in re.findall(pattern, text(cell)):
                yield path.name, found


def letters_of(comment: str) -> set[str]:
    """The capital letters that are sizes in the shapes of a comment; a shape has one at least."""
    axes = [axis for shape in SHAPE.findall(comment) for axis in shape.split(",")]
    return {letter for axis in axes for letter in re.findall(r"(?<![A-Za-z_])[A-Z](?![A-Za-z_])", axis)}


def test_letters_are_found_in_shapes_and_nowhere_else():
    assert letters_of("# [B, S, H*D] -> [B, H, S, D]") == {"B", "S", "H", "D"}
    assert letters_of("`[B, T=5, people]`, x[Q] of A") == {"B", "T", "Q"}
    assert letters_of("[L + 1, S, E]") == {"L", "S", "E"}


def test_every_letter_of_a_shape_is_in_the_table():
    found = {letter: where for where, comment in commented() for letter in letters_of(comment)}
    assert len(found) > 10
    assert not {letter: where for letter, where in found.items() if letter not in MEANINGS}


def test_n_counts_experts_only():
    """The letter that is tempting for whatever is counted stands where a mixture is spoken of."""
    found = {where for where, comment in commented() if "N" in letters_of(comment)}
    assert found == {
        "09_mixture_of_experts.ipynb",
        "D09_mixture_of_experts.ipynb",
        "model/moe.py",
        "hf/gguf.py",
        "trained/routing/phone_book.py",
        "trained/routing/__init__.py",
        "trained/routing/walk.py",
        "weights/state_dicts.py",
    }


def words(meaning: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]{4,}", meaning.lower())} - {"with", "this", "that"}


def described(letters: str, letter: str) -> str:
    """What a row of the formulas says of a letter: the words after it, up to those of the next."""
    parts = re.split(r"[,;]|(?<![A-Za-z])and(?= [A-Z])", letters)
    return " ".join(part for part in parts if re.search(rf"(?<![A-Za-z]){letter}(?![A-Za-z])", part))


@pytest.mark.parametrize("row", FORMULAS, ids=lambda row: row[0])
def test_a_letter_of_a_formula_means_what_the_page_says(row):
    name, formula, told = row[:3]
    bare = re.sub(r"\\(?:text|mathrm|operatorname)\{[^}]*\}|\\[A-Za-z]+|_\{?\\?[a-z]+\}?", " ", formula)
    for letter in set(re.findall(r"[A-Z]", bare)) & set(MEANINGS):
        allowed = words(MEANINGS[letter]) | {word for one, other in OTHERS if one == letter for word in words(other)}
        if "other letters as above" in told and not described(told, letter):
            continue
        assert words(described(told, letter)) & allowed, f"{name}: {letter} in {told!r}"


def small(letter: str, formula: str) -> bool:
    """Whether a small letter is in a formula as a letter: not within a word, nor only as an index."""
    bare = re.sub(r"\\(?:text|mathrm|operatorname)\{[^}]*\}|\\[A-Za-z]+|_\{?\\?[a-z]+\}?", " ", formula)
    return re.search(rf"(?<![A-Za-z]){letter}(?![A-Za-z])", bare) is not None


def test_m_and_n_are_the_positions_of_a_query_and_a_key():
    """Where there is no m, n may count anything: words that stay, weights, additions."""
    assert "A query is $\\mathbf{q}$ at position $m$, a key is $\\mathbf{k}$ at position $n$" in PAGE
    told = {row[0]: row[2] for row in FORMULAS if small("m", row[1])}
    assert len(told) >= 3
    assert not {name: letters for name, letters in told.items() if "at position m" not in letters}
    assert not {name: letters for name, letters in told.items() if "at position n" not in letters}


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_no_sum_runs_over_m(path):
    """A query's position is given; what a softmax sums over are keys."""
    for cell in load(path)["cells"]:
        assert not re.search(r"\\sum_\{?m\b", text(cell)), cell["id"]


def test_a_second_meaning_is_one_that_a_formula_has():
    for letter, other in OTHERS:
        told = [described(row[2], letter) for row in FORMULAS]
        assert any(words(other) & words(one) - words(MEANINGS[letter]) for one in told), (letter, other)
