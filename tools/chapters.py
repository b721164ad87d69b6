"""The chapters, each with what the book needs to know of it: order and short titles are in `_toc.yml`, the rest is in
the metadata of the notebook itself.

    "minimind": {"opening": ["MixtureWalk", {"top_k": 1}], "place": "experts", "teaches": ["experts"]}

A chapter whose proofs stand on a page of their own is a lesson: `chapters/09_mixture_of_experts.ipynb` has its deeper
page in `chapters/deeper/D09_mixture_of_experts.ipynb`. A subject of its own has another one, with the same number:
`D01_tokenizers.ipynb`. C1 to C3 correct the source notes.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = ROOT / "chapters"
DEEPER = CHAPTERS / "deeper"
METADATA = "minimind"  # the key in a notebook


@dataclass(frozen=True)
class Chapter:
    """A notebook that teaches."""

    page: str  # its name in the book, such as chapters/03_attention
    title: str  # with its number, as in the table of contents
    opening: tuple[str, dict[str, Any]]  # the figure at its head, in small, and the figure's arguments
    place: str  # the part of the map that is lit at its head
    teaches: list[str]  # what leads here from the map and from the page of the living model
    symbols: frozenset[str]  # what its letters stand for, see minimind_book.symbols

    @property
    def name(self) -> str:
        """The name of the notebook without its number: chapters change places. Its exercises have this name, too."""
        return self.page.partition("_")[2]

    @property
    def number(self) -> str:
        """The number that the chapter bears in the book, as it is written."""
        return self.title.split(" · ")[0]


def notebooks() -> list[Path]:
    """All notebooks in the order of their names: chapters, corrections, then deeper pages."""
    return [*sorted(CHAPTERS.glob("*.ipynb")), *sorted(DEEPER.glob("*.ipynb"))]


def that_teach() -> list[Path]:
    """The notebooks that teach: each chapter, and after them the deeper pages."""
    return [path for path in notebooks() if not path.name.startswith("C")]


def page_of(notebook: Path) -> str:
    """The name of a notebook's page in the book, such as chapters/03_attention."""
    return notebook.relative_to(ROOT).with_suffix("").as_posix()


def deeper_of(chapter: str | Path) -> Path | None:
    """The deeper page of a chapter, named by its page or its file; None if the chapter has none."""
    path = DEEPER / f"D{Path(chapter).stem}.ipynb"
    return path if path.is_file() else None


def all_deeper_of(chapter: str | Path) -> list[Path]:
    """All deeper pages of a chapter, that of its proofs first; none if the chapter has none."""
    proofs = deeper_of(chapter)
    number = Path(chapter).stem.partition("_")[0]
    return [proofs, *(path for path in sorted(DEEPER.glob(f"D{number}_*.ipynb")) if path != proofs)] if proofs else []


def lesson_of(deeper: Path) -> Path:
    """The lesson to which a deeper page belongs: the chapter with its number."""
    number = deeper.name.removeprefix("D").partition("_")[0]
    return next(CHAPTERS.glob(f"{number}_*.ipynb"), CHAPTERS / deeper.name.removeprefix("D"))


def numbered(stem: str) -> str:
    """The number that a notebook's file name gives it, as its title says it: 9, D9, C1."""
    kind, number = re.match(r"([CD]?)0*(\d+)", stem).groups()
    return kind + number


@cache
def contents() -> dict[str, str | None]:
    """The pages of the table of contents in their order, each with its short title, if it has one there."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = [page for part in toc["parts"] for page in part["chapters"]]
    return {page["file"]: page.get("title") for page in listed}


def chapter_of(page: str, title: str | None, stored: dict[str, Any]) -> Chapter:
    """The chapter in a stored notebook.

    Raises:
        ValueError: if it says what no chapter says, or leaves out what every chapter must say.
    """
    metadata = stored["metadata"][METADATA]
    heading = "".join(stored["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
    try:
        return Chapter(page, title or heading, **_typed(**metadata))
    except TypeError as error:
        raise ValueError(f"{page}.ipynb: metadata.{METADATA} does not fit ({error}); see tools.chapters") from None


def _typed(opening: list[Any], symbols: Iterable[str] = (), **others: Any) -> dict[str, Any]:
    figure, arguments = opening
    return others | {"opening": (figure, arguments | {"compact": True}), "symbols": frozenset(symbols)}


@cache
def chapters() -> dict[str, Chapter]:
    """All chapters in their order, by page: the notebooks of the table of contents that say what they are."""
    paths = {page: ROOT / f"{page}.ipynb" for page in contents()}
    stored = {page: json.loads(path.read_text(encoding="utf-8")) for page, path in paths.items() if path.is_file()}
    teaching = {page: notebook for page, notebook in stored.items() if METADATA in notebook["metadata"]}
    return {page: chapter_of(page, contents()[page], notebook) for page, notebook in teaching.items()}


def links(topics: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """For a figure on a page of `book/`: topic -> address and label of the chapter that teaches it."""
    return {
        topic: {"href": f"../{chapter.page}.html", "label": chapter.title}
        for chapter in chapters().values()
        for topic in chapter.teaches
        if topic in topics
    }
