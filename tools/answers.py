"""What the checks of the exercises answer, and whether its Chinese fits: `python -m tools.translation` tells.

A chapter whose checks answer in Chinese has a file `name.zh.md` beside them with a pair for every sentence; `{}` stands
for what is put into one, as in its f-string.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from minimind_edu.checks import language
from minimind_edu.words import pairs_in

_FILLED = "{}"


def texts_in(source: str) -> list[str]:
    """What learners may see of a file of checks: its strings of letters, but for questions, which help() shows.

    Lines of one string count each for itself.
    """
    tree = ast.parse(source)
    left_out: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and isinstance(node.body[0], ast.Expr):
            left_out.append(node.body[0].value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Exercise":
            left_out += node.args[:1]
        elif isinstance(node, ast.JoinedStr):
            left_out += [part for part in node.values if isinstance(part, ast.Constant)]
    skipped = {id(node) for node in left_out}
    texts = [_text(node) for node in ast.walk(tree) if id(node) not in skipped]
    lines = (line.strip() for text in texts for line in text.split("\n"))
    return list(dict.fromkeys(line for line in lines if re.search("[A-Za-z]{2}", line)))


def is_sentence(text: str) -> bool:
    """Whether it must be translated; a single word may be a name in code."""
    return " " in text


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else _FILLED for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def complaints(texts: list[str], pairs: dict[str, str]) -> Iterator[str]:
    """What is missing in the Chinese of these texts, what is answered no more, and places that do not fit."""
    for text in texts:
        if is_sentence(text) and text not in pairs:
            yield f"lacks {text!r}"
    for english, chinese in pairs.items():
        if english not in texts and re.search("[a-z]{2}", english):
            yield f"is answered no more: {english!r}"
        elif not _fits(english, chinese):
            yield f"has other places to fill: {chinese!r}"


def _fits(english: str, chinese: str) -> bool:
    """Whether the Chinese has a place for each of the English ones, or says by numbers which it has."""
    count, named = english.count(_FILLED), re.findall(r"\{(\d)\}", chinese)
    return all(int(number) < count for number in named) if named else chinese.count(_FILLED) == count


def files() -> list[Path]:
    """The files with the Chinese of checks."""
    return sorted(language.FOLDER.glob("*.zh.md"))


def of_checks() -> Iterator[tuple[Path, dict[str, str], list[str]]]:
    """Each of these files with its pairs, and what is wrong in it."""
    for path in files():
        name = path.name.removesuffix(".zh.md")
        modules = [name, "typed"] if name == language.SHARED else [name]
        sources = [language.FOLDER / f"{module}.py" for module in modules]
        texts = [text for source in sources for text in texts_in(source.read_text(encoding="utf-8"))]
        pairs = pairs_in(path.read_text(encoding="utf-8"))
        yield path, pairs, list(complaints(texts, pairs))
