"""A variable is called what it holds, in the words of the field: message, token, logits, and never it or one."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.chapters import ROOT

EMPTY = {"it", "one", "told", "said", "own"}
FOLDERS = "src tools benchmarks book".split()

_EMPTY = "|".join(sorted(EMPTY))
_DECLARED = re.compile(rf'\b(?:const|let|function) ({_EMPTY})\b|(?<![\w."-])({_EMPTY}) =>')
# What is taken apart, and the parameters of a function; in `told: story` only story is bound.
_LISTED = re.compile(r'(?:const|let) ([\[{][^;]*?[\]}]) (?:=|of)|\(([^()"]*)\) (?:=>|\{)')
_IN_LIST = re.compile(rf"(?<![\w.-])({_EMPTY})(?=\s*(?:[,\]}}=]|$))")


def bound_in_python(text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each variable, parameter, attribute, function and import."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.alias(name=name, asname=other):
                yield node.lineno, other or name


def bound_in_javascript(text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each of the empty ones, as far as a pattern finds them: without lists in lists."""
    places = [(match.start(), match[1] or match[2]) for match in _DECLARED.finditer(text)]
    for found in _LISTED.finditer(text):
        begin = found.start(found.lastindex or 0)
        places += [(begin + match.start(), match[1]) for match in _IN_LIST.finditer(found[1] or found[2] or "")]
    for place, name in places:
        yield text.count("\n", 0, place) + 1, name


BOUND_IN = {".py": bound_in_python, ".js": bound_in_javascript}


def empty_in(path: Path) -> list[str]:
    """`file:line: name` of each name that says nothing."""
    bound = BOUND_IN[path.suffix](path.read_text(encoding="utf-8"))
    where = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return [f"{where}:{line}: {name}" for line, name in sorted(bound) if name in EMPTY]


@pytest.mark.parametrize("suffix", BOUND_IN)
def test_names_say_what_they_hold(suffix):
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob(f"*{suffix}"))]
    assert len(paths) > 80
    assert [name for path in paths for name in empty_in(path)] == []


@pytest.mark.parametrize(
    "file, text",
    [
        ("variable.py", "for x, one in pairs:\n    pass"),
        ("parameter.py", "def f(x, *, told=1):\n    pass"),
        ("inner.py", "[said for said in words if (own := said)]"),
        ("attribute.py", "self.it = 3"),
        ("function.py", "def said(x):\n    pass"),
        ("import.py", "from words import said"),
        ("declared.js", "const told = 1;"),
        ("arrow.js", "all.map((one) => one.x); all.map(own => 1)"),
        ("apart.js", "const { name: own, other } = tab;\nconst [\n  first,\n  it,\n] = pair;"),
        ("function.js", "function draw({ told, words }, said = 1) {\n}"),
    ],
)
def test_a_name_that_says_nothing_is_found(tmp_path, file, text):
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert empty_in(tmp_path / file)


@pytest.mark.parametrize(
    "file, text",
    [
        ("words.py", "say('one', told=x.said)  # it says one"),
        (
            "words.js",
            'const { told: story } = x; // one, told\nsay("one", (a) => `${a}, one`, { own: a, one: x.said });',
        ),
    ],
)
def test_words_and_keys_may_be_so_called(tmp_path, file, text):
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert not empty_in(tmp_path / file)
