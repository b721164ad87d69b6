"""Part the Chinese of a chapter as its cells are parted: `python -m tools.parted 09 [--since COMMIT]`.

Cells that move from a lesson to a deeper page keep their ids, and with them their outputs and their Chinese: its
blocks follow them here, in the order of the cells, and their links from one folder deeper. What the chapter had at
COMMIT and no page has is listed.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from tools.chapters import CHAPTERS, ROOT, all_deeper_of
from tools.compared import load
from tools.touched import git
from tools.translated import MARK, Block, blocks_in, translation_of

_LINK = re.compile(r"\]\(((?:\.\./|\w+\.ipynb)[^)\s]*)")


def ids_of(notebook: dict) -> list[str]:
    """The ids of all cells in their order."""
    return [cell["id"] for cell in notebook["cells"]]


def written(blocks: dict[str, Block], order: list[str]) -> str:
    """A file with these blocks in this order; those of no cell come last."""
    names = [name for name in order if name in blocks] + [name for name in blocks if name not in order]
    marks = {name: f"{name} {blocks[name].fingerprint}" if blocks[name].fingerprint else name for name in names}
    return "\n\n".join(f"<!-- {marks[name]} -->\n{blocks[name].text}" for name in names) + "\n"


def from_deeper(text: str) -> str:
    """The Markdown of a chapter with its links to files as they are one folder deeper."""
    return _LINK.sub(lambda link: f"](../{link[1]}", text)


def part(lesson: Path, deeper: Path) -> list[str]:
    """Move the blocks whose cells stand on the deeper page, and only there; return their names."""
    here, there = translation_of(lesson), translation_of(deeper)
    text = here.read_text(encoding="utf-8")
    before = MARK.split(text)[0]  # what stands above the first block
    blocks, moved = blocks_in(text), blocks_in(there.read_text(encoding="utf-8")) if there.is_file() else {}
    of_lesson, of_deeper = ids_of(load(lesson)), ids_of(load(deeper))
    names = [name for name in blocks if name in of_deeper and name not in of_lesson]
    for name in names:
        block = blocks.pop(name)
        moved[name] = block._replace(text=from_deeper(block.text))
    there.parent.mkdir(parents=True, exist_ok=True)
    here.write_text(before + written(blocks, of_lesson), encoding="utf-8")
    there.write_text(written(moved, of_deeper), encoding="utf-8")
    return names


def nowhere(lesson: Path, deeper: list[Path], commit: str) -> list[str]:
    """The ids of the chapter's cells at a commit that none of these pages has any more.

    Raises:
        LookupError: if the commit has no such chapter.
    """
    earlier = git("show", f"{commit}:{lesson.relative_to(ROOT).as_posix()}")
    if earlier is None:
        raise LookupError(f"{commit} has no {lesson.relative_to(ROOT)}: name a commit before the chapter was parted")
    kept = {name for page in (lesson, *deeper) for name in ids_of(load(page))}
    return [name for name in ids_of(json.loads(earlier)) if name not in kept]


def main(arguments: list[str] | None = None) -> int:
    """Part the Chinese of one chapter, and say what is nowhere; return 1 if there is no such pair."""
    parser = argparse.ArgumentParser(prog="python -m tools.parted", description="Part the Chinese of a chapter.")
    parser.add_argument("chapter", metavar="09", help="how the chapter's name begins")
    parser.add_argument("--since", metavar="COMMIT", help="list ids that the chapter had there and no page has")
    options = parser.parse_args(arguments)
    lesson = next(iter(sorted(CHAPTERS.glob(f"{options.chapter}*.ipynb"))), None)
    deeper = all_deeper_of(lesson) if lesson else []
    if lesson is None or not deeper:
        print(f"No chapter whose name begins with {options.chapter} has a deeper page.", file=sys.stderr)
        return 1
    for page in deeper:
        moved = part(lesson, page)
        print(f"{len(moved)} blocks moved to {translation_of(page).relative_to(ROOT)}: {', '.join(moved) or 'none'}")
    if options.since:
        try:
            print(f"Nowhere: {', '.join(nowhere(lesson, deeper, options.since)) or 'none'}")
        except LookupError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
