"""Look after the Chinese edition: what is missing in zh/, stale, or built differently from the English.

    python -m tools.translation              list all of it
    python -m tools.translation 01 live      the files whose names begin so, with the words of the figures that they
                                             show and the answers of their checks; and figures whose names begin so
    python -m tools.translation --accept 01  write down that the blocks of these files fit the English of today, and of
                                             figures whose names begin so, the words

A line ends with the new fingerprint where the English has changed: whoever has adapted the Chinese block writes it
there, or lets `--accept` do so.
"""

import argparse
import calendar
import json
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

from minimind_edu import world
from minimind_edu.words import Words, pairs_in
from tools import answers, install_cell
from tools.chapters import METADATA, ROOT
from tools.translated import (
    FENCE,
    HEADING,
    MARK,
    TITLE,
    Block,
    Part,
    blocks_of,
    fingerprint,
    literals_in,
    merged_rows,
    original_of,
    parts_of,
    shared_words,
    texts_shown,
    translation_of,
    translations,
)

# What readers see in pictures and figures and what is no English word: names in code, units, the words of the world.
KEPT = re.compile(r"[\W\d]*(?:[\w.]*[_.]\w+|head_dim|softmax|logits|token|query|key|value|<s>)?[\W\d]*")

_WORLD = frozenset(world.WORDS)
PACKAGE = ROOT / "src" / "minimind_edu"
_AS_OF = re.compile(r"as of ([0-9a-f]{8})")
_FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL)
_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_CAPTION = re.compile(r"^:caption: .*$", re.MULTILINE)  # of a block of code: words
_REMARK = re.compile(r"(?<=\S) +# .*$", re.MULTILINE)  # beside a command: words
_PUBLISHED = install_cell.book_url()
_TWIN = re.compile(r"^zh/|\.zh(?=\.\w+$)")  # in a link to a translation, or to the Chinese twin of a picture
_TAG = re.compile(r"</?[a-z][^<>]*>")
_NUMBER = re.compile(r"(?<![A-Za-z\d.])([+-]?\d+(?:,\d{3})*(?:\.\d+)?)(?: ?(million|billion|thousand|万亿|万|亿))?")
_SCALE = {"": 1, "thousand": 1e3, "万": 1e4, "million": 1e6, "亿": 1e8, "billion": 1e9, "万亿": 1e12}
_SPELLED = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_VALUES = {word: str(value) for value, word in enumerate(_SPELLED.split())}
_VALUES |= {"nineteen": "19", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60"}
_VALUES |= {"once": "1", "twice": "2", "first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5"}
_VALUES |= {"hundred": "100", "thousand": "1000", "million": "1000000"}
_VALUES |= {name.lower(): str(month) for month, name in enumerate(calendar.month_name)}
_HAN_VALUES = dict(zip("一二两三四五六七八九十百千", "1 2 2 3 4 5 6 7 8 9 10 100 1000".split(), strict=True))

_HAN = "\u3400-\u9fff"
_FULL = "，。；：？！、（）《》“”"
# How Chinese is set here, beside Latin letters and between signs: pattern -> what is wrong.
_RULES = {
    re.compile(f"[{_HAN}][A-Za-z0-9]|[A-Za-z0-9%][{_HAN}]"): "no space between Han and Latin",
    re.compile(f"[{_HAN}] *[,;:?!](?!\\S*\\w)|[{_HAN}][,;:?!]"): "a half-width sign after Han",
    re.compile(f"[{_FULL}] +(?=[{_HAN}])|(?<=[{_HAN}]) +[{_FULL.replace('“', '').replace('（', '')}]"): (
        "a space beside a full-width sign"
    ),
    re.compile(f'[{_HAN}]"|"[{_HAN}]'): "straight quotation marks at Han",
}


def _value(digits: str, scale: str) -> str:
    """A number as it counts: 0.5 million and 50 万 are the same."""
    return f"{float(digits.replace(',', '')) * _SCALE[scale]:.10g}"


def bare(text: str, sign: str = " ") -> str:
    """Markdown without fences, formulas, code, addresses and tags, a sign in place of what stands in a sentence."""
    for pattern in (FENCE, _FORMULA, _CODE, _TAG):
        text = pattern.sub(sign, text)
    return _LINK.sub("]", text)


def compared_code(fence: str) -> str:
    """A block of code without what is words in it: its caption, remarks beside commands of a shell, a twin's file."""
    code = _CAPTION.sub("", fence)
    if fence.startswith(("```{literalinclude}", "```{raw}")):
        code = re.sub(r"\.zh(?=\.\w+$)", "", code, flags=re.MULTILINE)
    return _REMARK.sub("", code) if re.match(r"```(?:\{code-block\} )?bash\n", fence) else code


def features(text: str) -> dict[str, Counter]:
    """What must be the same in both languages."""
    unfenced = FENCE.sub("", text)
    formulas = _FORMULA.sub(" ", unfenced)
    words = bare(text)
    return {
        "headings": Counter(len(marks) for marks, _ in HEADING.findall(words)),
        "formulas": Counter(" ".join(found.split()) for found in _FORMULA.findall(unfenced)),
        "code": Counter(_CODE.findall(formulas)),
        "links": Counter(
            _TWIN.sub("", link.removeprefix(_PUBLISHED)) for link in _LINK.findall(_CODE.sub(" ", formulas))
        ),
        "numbers": Counter(_value(*found) for found in _NUMBER.findall(words)),
        "fences": Counter(compared_code(found[0]) for found in FENCE.finditer(text)),
        "rows of tables": Counter("|" * len(re.findall(r"^\|", words, re.MULTILINE))),
        "items of lists": Counter("-" * len(re.findall(r"^(?:> )?(?:-|\d+\.) ", words, re.MULTILINE))),
        "tags": Counter(_TAG.findall(_CODE.sub(" ", formulas))),
    }


def differences(english: str, chinese: str) -> Iterator[str]:
    """What only one of both has; a number that one language spells may stand in digits in the other."""
    before, after = features(english), features(chinese)
    spelled = Counter(_VALUES[word] for word in re.findall(r"[a-z]+", english.lower()) if word in _VALUES)
    for feature in before:
        lost = before[feature] - after[feature]
        if feature == "numbers":
            lost -= Counter({value: lost[value] for sign, value in _HAN_VALUES.items() if sign in chinese})
        if lost:
            yield f"lacks {feature}: {', '.join(map(str, lost.elements()))}"
        more = after[feature] - before[feature]
        if feature == "numbers":
            more -= Counter({value: more[value] for value in spelled})
        if more:
            yield f"has other {feature}: {', '.join(map(str, more.elements()))}"


def misprints(chinese: str) -> Iterator[str]:
    """Where the rules of setting Chinese are broken, each with the place."""
    text = bare(chinese, "$")
    for rule, wrong in _RULES.items():
        for found in rule.finditer(text):
            yield f"{wrong}: {text[max(found.start() - 8, 0) : found.end() + 8]!r}"
    tokens = MarkdownIt().enable("table").parse(bare(chinese, "码"))
    for place, token in enumerate(tokens):
        children = token.children or []
        plain = "".join(child.content for child in children if child.type == "text")
        if "**" in plain:
            yield f"bold words do not end, for the sign before the mark belongs after it: {plain[:40]!r}"
        is_guess = tokens[place - 2].type == "list_item_open"  # its answer begins with it: a script looks for it
        for before, child in zip(children, children[1:], strict=False):
            if before.type == "em_open" and re.search(f"[{_HAN}]", child.content) and not is_guess:
                yield f"italics on Han: {child.content!r}"


def of_block(english: str, block: Block) -> Iterator[str]:
    """What is wrong with the translation of a text."""
    if block.fingerprint != fingerprint(english):
        yield f"is stale, its English is {fingerprint(english)} now"
    if not re.search(f"[{_HAN}]", block.text) and len(re.findall(r"[A-Za-z]{2,}", bare(english))) > 3:
        yield "is still English"
    yield from differences(english, block.text)
    yield from misprints(block.text)


def shown_by(cell: dict) -> dict[str, bool]:
    """The texts that a code cell shows its readers, and whether each must be Chinese: what could be is in its code."""
    source = "".join(cell["source"])
    found = dict.fromkeys((literal.value for literal in literals_in(source)), False)
    if title := TITLE.search(source):
        found[title[1]] = True
    for output in cell["outputs"]:
        found |= dict.fromkeys(texts_shown(output), True)
    return found


def of_cell(cell: dict, block: Block | None) -> Iterator[str]:
    """What a code cell shows without Chinese, and what has Chinese and is shown no more."""
    pairs = pairs_in(block.text) if block else {}
    words, shown = Words(pairs, shared_words()), shown_by(cell)
    for text, must in shown.items():
        if must and words(text) is None and not KEPT.fullmatch(text) and not _WORLD.issuperset(text.split(", ")):
            yield f"shows words without Chinese: {text!r}"
    for english in pairs:
        alone = Words({english: "-"})
        if not any(alone(text) is not None for text in shown):
            yield f"shows no more: {english!r}"


def complaints(original: Path) -> Iterator[str]:
    """What is missing, stale or built differently in the translation of a file."""
    blocks, parts = blocks_of(original), parts_of(original)
    here = translation_of(original).relative_to(ROOT)
    cells = {}
    if original.suffix == ".ipynb":
        cells = {cell["id"]: cell for cell in json.loads(original.read_text(encoding="utf-8"))["cells"]}
    for name in blocks.keys() - parts.keys():
        yield f"{here}: there is no part called {name} any more"
    if original.suffix == ".tsv":
        try:
            merged_rows(original.read_text(encoding="utf-8"), blocks)
        except ValueError as error:
            yield f"{here}: {error}"
    for name, part in parts.items():
        yield from (f"{here}: {name} {wrong}" for wrong in of_part(part, blocks.get(name), cells.get(name)))


def of_part(part: Part, block: Block | None, cell: dict | None) -> Iterator[str]:
    """What is wrong with the translation of a part."""
    if part.is_code:
        yield from of_cell(cell or {}, block)
    elif block is None:
        yield "is missing"
    else:
        yield from of_block(part.english, block)


def of_contents() -> Iterator[str]:
    """Titles and captions of the table of contents that zh/words.md lacks; a page that is translated has its own."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    titles = [
        entry for part in toc["parts"] for entry in (part["caption"], *(page.get("title") for page in part["chapters"]))
    ]
    for title in filter(None, titles):
        if title not in shared_words():
            yield f"zh/words.md: lacks {title!r}, which _toc.yml has"


def of_scripts(figures: Collection[str] | None = None) -> Iterator[str]:
    """Words of these figures (None: of all) whose English is another than the one that their Chinese was made from."""
    for words in sorted(PACKAGE.rglob("words.js")):
        chosen = figures is None or words.parent.name in figures
        if chosen and not (twin := words.with_name("words.zh.js")).is_file():
            seen = fingerprint(words.read_text(encoding="utf-8"))
            yield f"{twin.relative_to(ROOT)}: is missing; it has the words in Chinese, `as of {seen}`"
    for twin in twins():
        if figures is not None and twin.parent.name not in figures:
            continue
        english = fingerprint(english_of(twin).read_text(encoding="utf-8"))
        if _AS_OF.search(twin.read_text(encoding="utf-8"))[1] != english:
            yield f"{twin.relative_to(ROOT)}: is stale, {english_of(twin).name} is {english} now"


def of_answers(checks: Collection[str] | None = None) -> Iterator[str]:
    """What is wrong with the Chinese of what these checks (None: all) answer."""
    for path, pairs, wrong in answers.of_checks():
        if checks is not None and path.name.partition(".")[0] not in checks:
            continue
        for english, chinese in pairs.items():
            printed = re.sub(r"\{\d\}", "{}", chinese.replace("*", "×"))  # no Markdown: these are stars of code
            wrong += [f"{fault} in {chinese!r}" for fault in (*differences(english, printed), *misprints(printed))]
        yield from (f"{path.relative_to(ROOT)}: {fault}" for fault in wrong)


def twins() -> list[Path]:
    """The files with the Chinese words of figures, words.zh.js beside words.js."""
    return sorted(PACKAGE.rglob("*.zh.js"))


def english_of(twin: Path) -> Path:
    """The file whose words a twin translates."""
    return twin.with_name(twin.name.replace(".zh.", "."))


def figures_on(original: Path) -> set[str]:
    """The figures that a page shows in its text or as outputs that are stored, and the one that opens a chapter."""
    stored = original.read_text(encoding="utf-8")
    shown = set(re.findall(r'data-figure=\\*"(\w+)', stored))
    shown |= {_folder(name) for name in re.findall(r"^```\{live-figure\} (\w+)", stored, re.MULTILINE)}
    if original.suffix == ".ipynb":
        opening = json.loads(stored)["metadata"].get(METADATA, {}).get("opening", ())
        shown |= {_folder(name) for name in opening[:1]}
    return shown


def _folder(name: str) -> str:
    """The folder of a figure by the name of its class."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def never_run(original: Path) -> list[str]:
    """The code cells of a chapter whose words nobody knows yet."""
    if original.suffix != ".ipynb":
        return []
    cells = json.loads(original.read_text(encoding="utf-8"))["cells"]
    return [cell["id"] for cell in cells if cell["cell_type"] == "code" and cell["execution_count"] is None]


def accept_scripts(names: tuple[str, ...]) -> None:
    """Write the fingerprints of today's English into the twins of the figures so named."""
    for twin in (path for path in twins() if path.parent.name.startswith(names)):
        seen = f"as of {fingerprint(english_of(twin).read_text(encoding='utf-8'))}"
        twin.write_text(_AS_OF.sub(seen, twin.read_text(encoding="utf-8"), count=1), encoding="utf-8")


def accept(original: Path) -> None:
    """Write the fingerprints of today's English into a translation."""
    path, parts = translation_of(original), parts_of(original)

    def marked(found: re.Match[str]) -> str:
        part = parts.get(found[1])
        seen = f" {fingerprint(part.english)}" if part and not part.is_code else ""
        return f"<!-- {found[1]}{seen} -->"

    path.write_text(MARK.sub(marked, path.read_text(encoding="utf-8")), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """List what is wrong; return 1 if there is something."""
    parser = argparse.ArgumentParser(prog="python -m tools.translation", description="Look after the Chinese edition.")
    parser.add_argument("names", nargs="*", help="beginnings of file names (default: all that is translated)")
    parser.add_argument("--accept", action="store_true", help="the translations fit the English of today")
    options = parser.parse_args(arguments)
    names = tuple(options.names)
    originals = [original_of(path) for path in translations() if not names or path.name.startswith(names)]
    if options.accept:
        accept_scripts(names or ("",))
        for original in originals:
            accept(original)
    if names:
        figures = {path.parent.name for path in PACKAGE.rglob("words.js") if path.parent.name.startswith(names)}
        figures = figures.union(*map(figures_on, originals))
        if not originals and not figures:
            print(f"Nothing that is translated has a name that begins with {' or '.join(names)}.")
            return 1
        checks = {original.stem.partition("_")[2] for original in originals if original.suffix == ".ipynb"}
        found = [*of_scripts(figures), *of_answers(checks)]
    else:
        found = [*of_contents(), *of_scripts(), *of_answers()]
    for original in originals:
        found += complaints(original)
    print("\n".join(found) or "The Chinese edition fits.")
    for original in originals:
        if cells := never_run(original):
            print(f"{original.name}: not looked at before `python -m tools.refresh` runs them: {', '.join(cells)}")
    if names:
        shown = f"the words of {', '.join(sorted(figures))}" if figures else "no words of figures"
        looked = ", ".join([original.name for original in originals] + [shown])
        print(f"Looked at: {looked}. Not looked at: all else; without a name, everything is.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
