"""Look inside a model of your own: `python -m minimind_edu open MODEL`.

MODEL is a folder or file that `from_checkpoint` reads; without one, the book's own small model is opened. The model
runs in the page. Without -o a server on this machine shows it until Ctrl-C; with -o it is one file, which needs nothing
else, also on another machine.
"""

import argparse
import contextlib
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from minimind_edu import living, world
from minimind_edu.figures.inside.page import (
    BITS,
    LANGUAGES,
    LARGER,
    MOST_WEIGHTS,
    PARTS,
    check_fits,
    size_of,
    write_page,
)
from minimind_edu.figures.inside.server import PageServer
from minimind_edu.figures.inside.tokenizer import PageTokenizer, find_tokenizer, read_tokenizer
from minimind_edu.figures.living_model import QUESTION, TOLD
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.notebook import language
from minimind_edu.weights.checkpoints import from_checkpoint
from minimind_edu.weights.hub import locate

FIRST_TEXT = "The model reads this sentence from left to right, and at every token it says what comes next"
FIRST_IDS = "1 2 3"
_ENDINGS, _WIDEST = ("safetensors", "pth", "pt", "bin"), 4  # files of weights, and the most bytes of one weight


def main(arguments: list[str] | None = None) -> None:
    """What the command line asks for; ends the program with a sentence where that is impossible."""
    parser = argparse.ArgumentParser(
        prog="minimind-edu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    opening = commands.add_parser("open", help="a page in which a model runs, and every part of it can be opened")
    opening.add_argument("model", nargs="?", help="a folder, or a .safetensors or .pth file; none: the book's own")
    opening.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="the folder of its tokenizer.json")
    opening.add_argument("--text", help="what the page shows first")
    opening.add_argument("--at", choices=PARTS, help="the part that is open, or in sight, at first")
    opening.add_argument("--language", choices=LANGUAGES, default=language(), help="of the page")
    opening.add_argument("--bits", type=int, choices=BITS, default=8, help="of a weight; 4: a small file; 32: exact")
    opening.add_argument("--download", action="store_true", help="MODEL may be a name on the Hugging Face Hub")
    opening.add_argument("-o", "--output", type=Path, metavar="PAGE.html", help="write one file instead of showing it")
    given = parser.parse_args(arguments)
    try:
        with _ended_by(signal.SIGTERM):
            _open(given)
    except (ValueError, OSError, MemoryError) as error:
        _stop(str(error) or "there is not enough memory for this model")


def _stop(sentence: str) -> NoReturn:
    print(f"minimind-edu: {sentence}", file=sys.stderr)
    raise SystemExit(2)


@contextlib.contextmanager
def _ended_by(number: signal.Signals) -> Iterator[None]:
    """A signal ends the program as Ctrl-C does, so that it takes its files and its server with it."""

    def end(*_: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)


def _tell(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr, flush=True)


def _open(given: argparse.Namespace) -> None:
    if given.output and given.output.suffix != ".html":
        raise ValueError(f"a page's name must end in .html, got {given.output.name!r}")
    if given.output and not given.output.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {given.output.absolute().parent} to write {given.output.name} in")
    model, name, tokenizer = _own_model(given) if given.model else _living_model(given.language)
    text = given.text or (_living_text() if not given.model else FIRST_TEXT if tokenizer else FIRST_IDS)
    with contextlib.ExitStack() as stack:
        target = given.output or Path(stack.enter_context(tempfile.TemporaryDirectory()), "page.html")
        write_page(
            model,
            target,
            name=name,
            text=text,
            tokenizer=tokenizer,
            bits=given.bits,
            at=given.at,
            language=given.language,
            tell=_tell,
        )
        if given.output:
            _tell(f"{target}: {size_of(target)}, one file; nothing else is needed. It holds the weights and the text")
        else:
            _show(target)


def _own_model(given: argparse.Namespace) -> tuple[MiniMindForCausalLM, str, PageTokenizer | None]:
    place = locate(given.model, given.download, None, None)
    _check_small(place)
    _tell(f"reading {place}")
    model = from_checkpoint(place)
    check_fits(model)
    name = Path(given.model).resolve().name if place.is_dir() else place.stem
    file = find_tokenizer(given.tokenizer or place)
    if file is None:
        where = given.tokenizer or (place if place.is_dir() else place.parent)
        _tell(f"no tokenizer.json in {where}: the page takes token ids. --tokenizer FOLDER gives it words")
        return model, name, None
    try:
        return model, name, read_tokenizer(file, model.config.vocab_size)
    except ValueError as error:
        _tell(f"{error}. So the page takes token ids")
        return model, name, None


def _check_small(place: Path) -> None:
    """Refuse files that hold more than a page can, before they are read into memory."""
    files = [place] if place.is_file() else [file for ending in _ENDINGS for file in place.glob(f"*.{ending}")]
    size, most = sum(file.stat().st_size for file in files), _WIDEST * MOST_WEIGHTS
    if size > most:
        raise ValueError(
            f"the weights in {place} take {size / 1e9:,.1f} GB, and a page holds up to {MOST_WEIGHTS / 1e6:,.0f} "
            f"million of them, {most / 1e9:,.1f} GB in float32; {LARGER}"
        )


def _living_model(language: str) -> tuple[MiniMindForCausalLM, str, PageTokenizer]:
    words = PageTokenizer("words", {"words": list(world.WORDS)}, prefix=(0,))
    return living.living_model(), {"en": "the book's own model", "zh": "本书的模型"}[language], words


def _living_text() -> str:
    return f"{TOLD} {QUESTION}"


def _show(page: Path) -> None:
    """Until Ctrl-C."""
    with PageServer(page) as server:
        _tell(f"{server.address}\n  only this machine can open it; Ctrl-C ends it")
        webbrowser.open(server.address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


if __name__ == "__main__":
    main()
