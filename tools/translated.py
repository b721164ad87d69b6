"""The Chinese edition: what stands in zh/ is put in place of the English words.

A file in zh/ has the path of its original, with the ending .md. It is a row of blocks, each below a comment with the
name of a part of the original and the fingerprint of the English that it translates:

    <!-- two-tables 3f09ab12 -->
    The Chinese Markdown of the cell called two-tables.

A part is a cell of a notebook (by its id), a section of a page (by the anchor of its heading; "top" comes before the
second one), or a row of a table (by its first cell; its block has a line for each cell, but none for a first one that
is empty, nor for the last one, which says where the row leads). Below the name of a code cell stand words that its
readers see, on the page and in its pictures: lines `- English`, each followed by `  - Chinese`. Words that many pages
share stand in zh/words.md. `{}` in both stands for anything, such as a number. A part without a block stays English.

`python -m tools.translation` tells what is missing, stale or built differently.
"""

import ast
import copy
import csv
import hashlib
import json
import re
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes

from minimind_edu import checks
from minimind_edu.checks.language import in_chinese
from minimind_edu.figures.quiz import plain_questions
from minimind_edu.web.base import to_json
from minimind_edu.words import Words, breadth, folded, in_state, pairs_in, sentences_in
from tools.chapters import ROOT
from tools.places import plain

FOLDER = ROOT / "zh"
WORDS = FOLDER / "words.md"
README, README_TWIN = "README.md", "README.zh.md"
WHERE = "Where"  # the last column of a table, which holds no words

MARK = re.compile(r"^<!-- ([\w./-]+)(?: ([0-9a-f]{8}))? -->$", re.MULTILINE)
FENCE = re.compile(r"^(```|~~~).*?^\1\s*?$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
TITLE = re.compile(r"^# @title (.*)$", re.MULTILINE)


class Block(NamedTuple):
    """A part of a translation."""

    fingerprint: str | None
    text: str


class Part(NamedTuple):
    """A part of an original; a code cell is none that is translated as a whole."""

    english: str
    is_code: bool = False


def fingerprint(text: str) -> str:
    """What a translation remembers of the English that it was made from; where lines end does not count."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:8]


def translation_of(original: Path) -> Path:
    """The file that translates a notebook, a page, a table, or README.md, whose twin readers look for beside it."""
    if original == ROOT / README:
        return ROOT / README_TWIN
    return FOLDER / original.relative_to(ROOT).with_suffix(f"{'.tsv' if original.suffix == '.tsv' else ''}.md")


def original_of(translation: Path) -> Path:
    """What a file in zh/ translates.

    Raises:
        ValueError: if there is no such page, notebook or table any more.
    """
    if translation == ROOT / README_TWIN:
        return ROOT / README
    path = ROOT / translation.relative_to(FOLDER)
    candidates = [path.with_suffix("")] if path.stem.endswith(".tsv") else [path, path.with_suffix(".ipynb")]
    found = [candidate for candidate in candidates if candidate.is_file()]
    if not found:
        raise ValueError(
            f"{translation.relative_to(ROOT)} translates nothing: rename it like its original, or remove it"
        )
    return found[0]


def translations() -> list[Path]:
    """README.zh.md, and all files in zh/ but the shared words, which translate no file of their own."""
    readme = [path for path in (ROOT / README_TWIN,) if path.is_file()]
    return readme + [path for path in sorted(FOLDER.rglob("*.md")) if path != WORDS]


def is_translated(original: Path) -> bool:
    """Whether a page, a notebook or a table has a Chinese version."""
    return translation_of(original).is_file()


def blocks_in(text: str) -> dict[str, Block]:
    """The blocks of a file, by the names of their parts."""
    parts = MARK.split(text)[1:]
    return {name: Block(seen, body.strip("\n")) for name, seen, body in zip(*[iter(parts)] * 3, strict=True)}


def blocks_of(original: Path) -> dict[str, Block]:
    """The blocks that translate an original; none, if it has no translation."""
    path = translation_of(original)
    return blocks_in(path.read_text(encoding="utf-8")) if path.is_file() else {}


@cache
def shared_words() -> dict[str, str]:
    """What stands in zh/words.md."""
    return pairs_in(WORDS.read_text(encoding="utf-8")) if WORDS.is_file() else {}


# The originals


def anchor(heading: str) -> str:
    """The name of a heading in an address."""
    return nodes.make_id(plain(heading))


def sections_in(page: str) -> dict[str, str]:
    """The sections of a page by their anchors; what comes before the second heading is called top."""
    hidden = FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), page)
    starts = list(HEADING.finditer(hidden))[1:]
    cuts = [0, *[found.start() for found in starts], len(page)]
    names = ["top", *[anchor(found[2]) for found in starts]]
    return {name: page[a:b].strip("\n") for name, a, b in zip(names, cuts, cuts[1:], strict=False)}


def rows_in(table: str) -> dict[str, list[str]]:
    """The rows of a table by the anchors of their first cells, numbered if they repeat; its titles are titles."""
    titles, *rows = csv.reader(table.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    found = {"titles": titles}
    for row in rows:
        name = anchor(row[0]) or "row"
        numbered = (f"{name}-{count}" for count in range(2, len(rows) + 2))
        found[name if name not in found else next(candidate for candidate in numbered if candidate not in found)] = row
    return found


def parts_of(original: Path) -> dict[str, Part]:
    """Every part of an original, by its name."""
    text = original.read_text(encoding="utf-8")
    if original.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return {cell["id"]: Part("".join(cell["source"]), cell["cell_type"] == "code") for cell in cells}
    if original.suffix == ".tsv":
        rows = rows_in(text)
        kept = len(rows["titles"]) - (rows["titles"][-1] == WHERE)
        return {name: Part("\n".join(row[:kept])) for name, row in rows.items()}
    return {name: Part(body) for name, body in sections_in(text).items()}


def anchors_of(original: Path) -> list[str]:
    """The anchors of the English headings in their order, which are those of the Chinese page too."""
    found: list[str] = []
    count = 0
    for part in parts_of(original).values():
        for _, heading in [] if part.is_code else HEADING.findall(FENCE.sub("", part.english)):
            name = anchor(heading)
            if not name or name in found:
                count += 1
                name = f"id{count}"  # as docutils names it
            found.append(name)
    return found


# Putting the Chinese in place


_ATTRIBUTE = re.compile(r'(?<= )(aria-label|alt|title|data-title)="([^"]*[A-Za-z]{2}[^"]*)"')
_TEXT_NODE = re.compile(r"(?<=>)(?![^<>]*</style)([^<>]*[A-Za-z]{2}[^<>]*)(?=<)")


def in_markup(markup: str, words: Words) -> str:
    """HTML or SVG with its text translated where there are words for it."""

    def text(found: re.Match[str]) -> str:
        new = words(unescape(found[1]))
        return found[1] if new is None else escape(new)  # quotes too, as figures write them

    def attribute(found: re.Match[str]) -> str:
        new = words(unescape(found[2]))
        return found[0] if new is None else f'{found[1]}="{escape(new)}"'

    return _ATTRIBUTE.sub(attribute, _TEXT_NODE.sub(text, markup))


def texts_in(markup: str) -> list[str]:
    """The texts of HTML or SVG that have words."""
    return [unescape(text) for text in _TEXT_NODE.findall(markup)]


# A name on two lines, as minimind_edu.measure.plotting writes it: two texts of one look.
_FOLDED = re.compile(
    r'(<text style="fill: [^"]*") transform="translate\((\S+) (\S+)\)">([^<]*)</text>\s*'
    r'\1 transform="translate\((\S+) (\S+)\)">([^<]*)</text>'
)


def _whole(found: re.Match[str]) -> str:
    """The name that stands on two lines."""
    return f"{found[4]}{'' if found[4].endswith('_') else ' '}{found[7]}"


def in_picture(svg: str, words: Words) -> str:
    """A picture with its words translated, those on two lines as one; what is shorter then stands between them."""

    def name(found: re.Match[str]) -> str:
        new = words(unescape(_whole(found)))
        if new is None:
            return found[0]
        room = (
            max(breadth(unescape(line)) for line in (found[4], found[7])) + 1
        )  # of the wide letters it was laid out in
        lines = folded(new, room).split("\n")
        between = f"{(float(found[3]) + float(found[6])) / 2:g}"
        heights = [found[3], found[6]] if len(lines) == 2 else [between]
        return "\n".join(
            f'{found[1]} transform="translate({min(found[2], found[5], key=float)} {height})">'
            f"{escape(line, quote=False)}</text>"
            for line, height in zip(lines, heights, strict=True)
        )

    return in_markup(_FOLDED.sub(name, svg), words)


def texts_of_picture(svg: str) -> list[str]:
    """The texts of a picture that have words, a name on two lines as one."""
    return texts_in(_FOLDED.sub(lambda found: f"<text>{_whole(found)}</text>", svg))


STATE = re.compile(r'(<script type="application/json"[^>]*>)(.*?)(</script>)', re.DOTALL)
FALLBACK = re.compile(r'(<div class="mm-fallback">)(.*?)(</div></div>)', re.DOTALL)
IS_QUIZ = 'data-figure="quiz"'


def in_figure(html: str, words: Words) -> str:
    """The element of a figure with the sentences of its state and its table translated."""

    def state(found: re.Match[str]) -> str:
        return found[1] + to_json(in_state(json.loads(found[2]), words)) + found[3]

    html = STATE.sub(state, html)
    if IS_QUIZ in html:  # its table has glued sentences: it is made anew from the state
        questions = json.loads(STATE.search(html)[2])["questions"]
        return FALLBACK.sub(lambda found: found[1] + plain_questions(questions, "zh") + found[3], html)
    return FALLBACK.sub(lambda found: found[1] + in_markup(found[2], words) + found[3], html)


def literals_in(source: str, but_names: bool = False) -> list[ast.Constant]:
    """The strings of a cell that are no part of another; `but_names`: not keys, what is compared or looped over.

    A word that is also a name in the same cell is a label only where it is handed to a call, as in `plot(x, "step")`:
    in `{"form": "form"}` the second may be looked up later.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic command
        return []
    left_out: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out += node.values
        elif but_names and isinstance(node, ast.Subscript):
            left_out += ast.walk(node.slice)
        elif but_names and isinstance(node, ast.Dict):
            left_out += node.keys
        elif but_names and isinstance(node, ast.For | ast.comprehension):
            left_out += ast.walk(node.iter)
        elif but_names and isinstance(node, ast.Compare):
            left_out += [node.left, *node.comparators]
    within = {id(node) for node in left_out}
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if but_names:
        names = {node.value for node in strings if id(node) in within}
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        handed = {id(given) for call in calls for given in (*call.args, *(keyword.value for keyword in call.keywords))}
        within |= {id(node) for node in strings if node.value in names and id(node) not in handed}
    return [node for node in strings if id(node) not in within]


def said_in_code(cell: dict[str, Any], pairs: dict[str, str]) -> dict[str, str]:
    """The words of a cell that its code says itself, and so may say in Chinese: not what it also prints, or names."""
    literals = {literal.value for literal in literals_in("".join(cell["source"]), but_names=True)}
    printed = "".join("".join(output.get("text", "")) for output in cell.get("outputs", []))
    return {english: chinese for english, chinese in pairs.items() if english in literals and english not in printed}


def in_code(source: str, chinese: dict[str, str], words: Words) -> str:
    """The code of a cell with what it says, and its title, in Chinese, all else as it is: keys are names in code."""
    raw = source.encode()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    edits = [
        (
            starts[literal.lineno - 1] + literal.col_offset,
            starts[literal.end_lineno - 1] + literal.end_col_offset,
            chinese[literal.value],
        )
        for literal in literals_in(source, but_names=True)
        if literal.value in chinese
    ]
    for begin, end, new in sorted(edits, reverse=True):
        raw = raw[:begin] + json.dumps(new, ensure_ascii=False).encode() + raw[end:]
    title = TITLE.search(source)
    new_title = words(title[1]) if title else None
    return raw.decode().replace(title[0], f"# @title {new_title}", 1) if title and new_title else raw.decode()


_ANSWER = re.compile(r"^(check_\w+)\n((?: {2,}.+\n?)+)", re.MULTILINE)


def in_answers(printed: str) -> str:
    """What a cell prints, with the answers of checks in Chinese, as far as they have it; all else is code's."""

    def answer(found: re.Match[str]) -> str:
        exercise = getattr(checks, found[1], None)
        return f"{found[1]}\n{in_chinese(found[2], exercise.chapter)}" if exercise else found[0]

    return _ANSWER.sub(answer, printed)


def merged_notebook(raw: dict[str, Any], blocks: dict[str, Block]) -> dict[str, Any]:
    """A notebook with the Chinese in place."""
    raw = copy.deepcopy(raw)
    for cell in raw["cells"]:
        block = blocks.get(cell["id"])
        if cell["cell_type"] == "markdown":
            cell["source"] = block.text if block else cell["source"]
            continue
        pairs = pairs_in(block.text) if block else {}
        words = Words(pairs, shared_words())
        cell["source"] = in_code("".join(cell["source"]), said_in_code(cell, pairs), words)
        cell["metadata"] = in_state(cell["metadata"], words)
        for output in cell["outputs"]:
            if "text" in output:
                output["text"] = in_answers("".join(output["text"]))
            data = output.get("data", {})
            if "image/svg+xml" in data:
                data["image/svg+xml"] = in_picture("".join(data["image/svg+xml"]), words)
            if "text/html" in data:
                data["text/html"] = in_figure("".join(data["text/html"]), words)
            before, sign, alt = "".join(data.get("text/plain", "")).partition("Picture: ")
            if sign and not before:
                data["text/plain"] = sign + (words(alt) or alt)
    return raw


def texts_shown(output: dict[str, Any]) -> list[str]:
    """What an output shows its readers in pictures and figures, in whole sentences and names."""
    data = {kind: "".join(value) for kind, value in output.get("data", {}).items() if isinstance(value, str | list)}
    html = data.get("text/html", "")
    texts = texts_of_picture(data.get("image/svg+xml", ""))
    if IS_QUIZ in html:
        texts += sentences_in(json.loads(STATE.search(html)[2]))
    elif fallback := FALLBACK.search(html):
        texts += texts_in(fallback[2])
    return [text.strip() for text in texts]


def words_to_learn(raw: dict[str, Any], blocks: dict[str, Block]) -> dict[str, str]:
    """What the pictures and figures of a notebook show that is not Chinese in its code: English -> Chinese."""
    found: dict[str, str] = {}
    for cell in raw["cells"]:
        texts = [text for output in cell.get("outputs", []) for text in texts_shown(output)]
        if not texts:
            continue
        pairs = pairs_in(blocks[cell["id"]].text) if cell["id"] in blocks else {}
        of_cell, shared = Words(pairs), Words(shared_words())  # a pattern of the cell's own goes before any shared one
        found = {text: new for text in texts if of_cell(text) is None and (new := shared(text))} | found
        by_code = said_in_code(cell, pairs)
        found |= {english: chinese for english, chinese in pairs.items() if english not in by_code}
    return found


def merged_page(text: str, blocks: dict[str, Block]) -> str:
    """A page with its Chinese sections in place."""
    return "\n\n".join(blocks[name].text if name in blocks else body for name, body in sections_in(text).items()) + "\n"


def merged_rows(text: str, blocks: dict[str, Block]) -> list[list[str]]:
    """The rows of a table, its titles first, with the Chinese in place and the last column, if it is `Where`, kept.

    Raises:
        ValueError: if a block has other cells than its row.
    """
    rows = rows_in(text)
    kept = len(rows["titles"]) - (rows["titles"][-1] == WHERE)
    merged = []
    for name, row in rows.items():
        cells = row[:kept]
        if name in blocks:  # of an empty first cell no line is left
            cells = [*([] if row[0] else [""]), *blocks[name].text.split("\n")]
        if len(cells) != kept:
            raise ValueError(f"{name} has {len(cells)} lines, and its row {kept} cells: a line for each")
        merged.append([*cells, *row[kept:]])
    return merged


def merged(original: Path, text: str) -> str:
    """The text of a page or a notebook, as Sphinx reads it, in Chinese."""
    blocks = blocks_of(original)
    if original.suffix == ".ipynb":
        return json.dumps(merged_notebook(json.loads(text), blocks), ensure_ascii=False)
    return merged_page(text, blocks)
