"""Join one figure's ES module with the local helpers that it imports.

A module that runs from a blob URL (anywidget and our static host both do that) cannot import its siblings, so the
helpers are written in front of it. This is no bundler: it understands single-line named imports of files next to the
module, and exports in front of a declaration. Everything else is refused, so that what runs is what stands in the
sources.
"""

import re
from pathlib import Path

_IMPORT = re.compile(r'import \{ ([\w$, ]+) \} from "\./([\w-]+\.js)";')
_DECLARATION = re.compile(r"(export )?(?:async )?(?:function\*?|const|let|class) ([\w$]+)\b(?!,)")
_TOP_LEVEL_KEYWORD = re.compile(r"(import|export|async|function|const|let|var|class)\b")


def join(entry: Path) -> str:
    """Return the text of `entry` with its local imports inlined, each file once, helpers first.

    Raises:
        ValueError: if a line is an import, export or declaration of another form than the ones named above, if an
            imported name is not exported, or if two files declare the same name.
    """
    exported: dict[Path, set[str]] = {}
    declared_in: dict[str, str] = {}
    texts: list[str] = []

    def visit(path: Path) -> None:
        exported[path] = set()
        lines = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            where = f"{path.name}:{number}: {line.strip()}"
            if found := _IMPORT.fullmatch(line):
                _import(found, path, where)
                continue
            if line.lstrip().startswith("import") and re.match(r"import\b", line.lstrip()):
                raise ValueError(
                    f'{where}: only `import {{ a, b }} from "./file.js";` on one line is understood'
                )
            lines.append(_own(line, path, where))
        texts.append("\n".join(lines).strip() + "\n")

    def _import(found: re.Match, path: Path, where: str) -> None:
        helper = path.parent / found[2]
        if not helper.is_file():
            raise ValueError(f"{where}: there is no file {found[2]} next to {path.name}")
        if helper not in exported:
            visit(helper)
        if missing := {name.strip() for name in found[1].split(",")} - exported[helper]:
            raise ValueError(f"{where}: {found[2]} does not export {', '.join(sorted(missing))}")

    def _own(line: str, path: Path, where: str) -> str:
        if not _TOP_LEVEL_KEYWORD.match(line):
            return line
        if line.startswith("export default ") and path == entry:
            return line
        found = _DECLARATION.match(line)
        if not found:
            raise ValueError(
                f"{where}: only `function`, `const`, `let` and `class` with one plain name are understood"
            )
        if found[2] in declared_in:
            raise ValueError(
                f"{where}: {found[2]} is already declared in {declared_in[found[2]]}; rename one"
            )
        declared_in[found[2]] = path.name
        if found[1]:
            exported[path].add(found[2])
        return line.removeprefix("export ")

    visit(entry)
    return "\n".join(texts)
