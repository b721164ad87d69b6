"""Write what README.md and CITATION.cff take from elsewhere: `python -m tools.readme` (`make refresh` calls it).

The address of the published book and of the repository come from `_config.yml`; the table of the chapters takes their
order and titles from the notebooks, and their questions from the front page. README.zh.md gets the same in Chinese.
"""

import argparse
import re
import sys
from pathlib import Path

from minimind_edu.words import Words
from tools import install_cell
from tools.chapters import ROOT, chapters
from tools.refresh import write
from tools.translated import README, README_TWIN, shared_words, translation_of

FRONT = ROOT / "book" / "index.md"
_QUESTION = re.compile(r"\[([^\]]+)\]\(\.\./(chapters/\w+)\.ipynb\)")
_TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
# the chapter, its question, where its page is, where its notebook
HEAD = {README: ("", "Question", "Page", "Notebook"), README_TWIN: ("", "问题", "页面", "笔记本（英文）")}


def published(name: str, base: str) -> str:
    """Where the edition of a README is published, with a slash at its end."""
    return f"{base}zh/" if name == README_TWIN else base


def table(name: str, base: str) -> str:
    """The chapters, a row each: its question, with links to the page and to the notebook.

    Raises:
        ValueError: naming a chapter whose question is not on the front page.
    """
    page = translation_of(FRONT) if name == README_TWIN else FRONT
    questions = {chapter: question for question, chapter in _QUESTION.findall(page.read_text(encoding="utf-8"))}
    if missing := [chapter for chapter in chapters() if chapter not in questions]:
        raise ValueError(f"{page.name} must ask the question of each chapter, and lacks {missing[0]}")
    words = Words(shared_words()) if name == README_TWIN else lambda title: title
    rows = []
    for chapter in chapters().values():
        title = (words(chapter.title) or chapter.title).partition(" · ")[2]
        page_of_it = f"[{title}]({published(name, base)}{chapter.page}.html)"
        rows.append(f"| {chapter.number} | {questions[chapter.page]} | {page_of_it} | [ipynb]({chapter.page}.ipynb) |")
    return "\n".join([f"| {' | '.join(HEAD[name])} |".replace("|  |", "| |"), "|-:|:-|:-|:-|", *rows, ""])


def refreshed(name: str, text: str, base: str) -> str:
    """A README with its table made anew, and the published book at `base`, which its first link names.

    Raises:
        ValueError: if it has no such link, or no table.
    """
    first = re.search(r"\]\((https://[^)]+/)\)", text)
    if not first or not _TABLE.search(text):
        raise ValueError(f"{name} must begin with a link to the published book and have the table of the chapters")
    text = text.replace(first[1], published(name, base))
    return _TABLE.sub(lambda _: table(name, base), text, count=1)


def cited(text: str, repository: str, base: str) -> str:
    """CITATION.cff with the addresses of the repository and of the published book."""
    text = re.sub(r"^repository-code: .*", f"repository-code: {repository}", text, flags=re.MULTILINE)
    return re.sub(r"^url: .*", f"url: {base}", text, flags=re.MULTILINE)


def files() -> dict[Path, str]:
    """The three files, each with the text that it should have."""
    base = install_cell.book_url()
    read = lambda name: (ROOT / name).read_text(encoding="utf-8")  # noqa: E731
    made = {ROOT / name: refreshed(name, read(name), base) for name in (README, README_TWIN)}
    return made | {ROOT / "CITATION.cff": cited(read("CITATION.cff"), install_cell.repository_url(), base)}


def main(arguments: list[str] | None = None) -> int:
    """Write them, and say what changed."""
    argparse.ArgumentParser(prog="python -m tools.readme", description="Write the READMEs anew.").parse_args(arguments)
    for path, text in files().items():
        print(f"{path.name}: {'written' if write(path, text) else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
