"""Join one figure's ES module with the local helpers that it imports.

A module that runs from a blob URL (anywidget and our static host both do that) cannot import its siblings, so the
helpers are written in front of it. This is no bundler: it understands named imports of files next to the
module or in a folder next to its own, and exports in front of a declaration. Everything else is refused, so that what
runs is what stands in the sources, but for indentation, comments and empty lines: a fifth of a page's scripts, which no
browser needs. Styles are joined in the same way.
"""

import re
from collections.abc import Iterator
from pathlib import Path

_IMPORT = re.compile(r'import \{ ([\w$]+(?:, [\w$]+)*),? \} from "((?:\.|(?:\.\./)*\.\.)/(?:[\w-]+/)*[\w-]+\.js)";')
_OTHER_IMPORT = re.compile(r"""\s*import\b|.*\bimport\(["'`]""")
_DECLARATION = re.compile(r"(export )?(?:async )?(?:function\*?|const|let|class) ([\w$]+)\b(?!,)")
_TOP_LEVEL = re.compile(r"(?:export|async|function|const|let|var|class)\b")
# Behind code; a string that holds the slashes would end behind them, with a quote.
_COMMENT_BEHIND = re.compile(r"""(?<=[;,{}()\[\]]) +// [^"'`/]*$""")
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def join(entry: Path, language: str = "en") -> str:
    """Return the text of `entry` with its local imports inlined, each file once, helpers first.

    Of a helper such as words.js that has a twin in `language`, words.zh.js, the twin is inlined.

    Raises:
        ValueError: if a line is an import, export or declaration of another form than the ones named above, if an
            imported name is not exported, if two files declare the same name, if a template literal goes on in the
            next line, where it might look like a comment, or if `entry` has no default export.
    """
    exported: dict[Path, set[str]] = {}  # every file that was read -> the names it exports
    declared_in: dict[str, str] = {}  # every top-level name -> the file that declares it
    texts: list[str] = []

    def read(path: Path) -> None:
        exported[path] = set()
        lines = _with_whole_imports(_without_comments(path.read_text(encoding="utf-8").splitlines()))
        kept = [one_line(line, path, f"{_named(path)}:{number}: {line.strip()}") for number, line in lines]
        bare = (_COMMENT_BEHIND.sub("", line).lstrip() for line in kept if line is not None)
        texts.append("\n".join(filter(None, bare)) + "\n")

    def one_line(line: str, path: Path, where: str) -> str | None:
        if found := _IMPORT.fullmatch(line):
            return inline(found[1].split(", "), (path.parent / found[2]).resolve(), where)
        if _OTHER_IMPORT.match(line):
            raise ValueError(f'{where}: only `import {{ a, b }} from "./file.js";` is understood')
        if _STRING.sub("", line).count("`") % 2:
            raise ValueError(f"{where}: a template literal must end on the line where it begins")
        if not _TOP_LEVEL.match(line) or (path == entry and line.startswith("export default ")):
            return line
        return declare(line, path, where)

    def inline(names: list[str], helper: Path, where: str) -> None:
        if not helper.is_file():
            raise ValueError(f"{where}: there is no file {_named(helper)}")
        twin = helper.with_suffix(f".{language}.js")
        helper = twin if twin.is_file() else helper
        if helper not in exported:
            read(helper)
        if missing := [name for name in names if name not in exported[helper]]:
            raise ValueError(f"{where}: {_named(helper)} does not export {', '.join(missing)}")

    def declare(line: str, path: Path, where: str) -> str:
        found = _DECLARATION.match(line)
        if not found:
            raise ValueError(f"{where}: only `function`, `const`, `let` and `class` with one plain name are understood")
        if found[2] in declared_in:
            raise ValueError(f"{where}: {found[2]} is already declared in {declared_in[found[2]]}; rename one")
        declared_in[found[2]] = _named(path)
        if found[1]:
            exported[path].add(found[2])
        return line.removeprefix("export ")

    read(entry)
    if "\nexport default " not in "\n" + texts[-1]:
        raise ValueError(f"{_named(entry)} has no default export, so it is no figure")
    return "\n".join(texts)


def styles(*paths: Path) -> str:
    """The text of these stylesheets, one after the other."""
    bare = (_STYLE_COMMENT.sub("", path.read_text(encoding="utf-8")) for path in paths)
    return "".join(f"{line.strip()}\n" for text in bare for line in text.splitlines() if line.strip())


def _named(path: Path) -> str:
    """The file with its folder: every figure has a figure.js."""
    return f"{path.parent.name}/{path.name}"


def _without_comments(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The lines that are not a comment from end to end, each with its number."""
    inside = False  # of /* ... */
    for number, line in enumerate(lines, 1):
        text = line.strip()
        starts = inside or text.startswith("/*")
        inside = starts and not text.endswith("*/")
        if not starts and not text.startswith("//"):
            yield number, line


def _with_whole_imports(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, with an import that the formatter has wrapped on one of them again."""
    for number, line in lines:
        if line == "import {":
            parts = [line]
            while not parts[-1].startswith("}") and (following := next(lines, None)):
                parts.append(following[1].strip())
            line = " ".join(parts)
        yield number, line
