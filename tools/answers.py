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


def sentences_in(source: str) -> list[str]:
    """The sentences of a file of checks that learners see: its strings of words, but questions, which help() shows.

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
            left_out += [part for part in ast.walk(node) if part is not node]
    skipped = {id(node) for node in left_out}
    texts = [_text(node) for node in ast.walk(tree) if id(node) not in skipped]
    lines = (line.strip() for text in texts for line in text.split("\n"))
    return list(dict.fromkeys(line for line in lines if re.search("[A-Za-z]{2}", line) and " " in line))


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else _FILLED for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def complaints(sentences: list[str], pairs: dict[str, str]) -> Iterator[str]:
    """What is missing in the Chinese of these sentences, what is answered no more, and places that do not fit."""
    for sentence in sentences:
        if sentence not in pairs:
            yield f"lacks {sentence!r}"
    for english, chinese in pairs.items():
        if english not in sentences and re.search("[a-z]{2}", english):
            yield f"is answered no more: {english!r}"
        elif _places(english) != _places(chinese):
            yield f"has other places to fill: {chinese!r}"


def _places(text: str) -> int:
    return len(re.findall(r"\{\d?\}", text))


def files() -> list[Path]:
    """The files with the Chinese of checks."""
    return sorted(language.FOLDER.glob("*.zh.md"))


def of_checks() -> Iterator[tuple[Path, dict[str, str], list[str]]]:
    """Each of these files with its pairs, and what is wrong in it."""
    for path in files():
        name = path.name.removesuffix(".zh.md")
        modules = [name, "typed"] if name == language.SHARED else [name]
        sources = [language.FOLDER / f"{module}.py" for module in modules]
        sentences = [one for source in sources for one in sentences_in(source.read_text(encoding="utf-8"))]
        pairs = pairs_in(path.read_text(encoding="utf-8"))
        yield path, pairs, list(complaints(sentences, pairs))
