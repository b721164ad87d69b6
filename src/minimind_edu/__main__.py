"""Look inside a model of your own, `python -m minimind_edu open MODEL`, or ask what is right and wrong: `check MODEL`.

MODEL is a folder or file that `from_checkpoint` reads; without one, `open` shows the book's own small model. The model
runs in the page; with --beside OTHER two do, on one text, and the page shows where they part. Without -o a server on
this machine shows it until Ctrl-C; with -o it is one file, which needs nothing else, also on another machine.
`python -m minimind_edu verse` is the same for a page on which the book's other model writes poems.

`check` says what is right and what is wrong with a model, with what training printed (--log), and with its data
(--data). It ends with 1 if something is wrong, with 2 if something cannot be read.
"""

import argparse
import contextlib
import re
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from minimind_edu import world
from minimind_edu.inside.beside import Side, shared_tokenizer, write_beside_page
from minimind_edu.inside.page import (
    BITS,
    LANGUAGES,
    LARGER,
    MOST_WEIGHTS,
    PARTS,
    check_fits,
    size_of,
    write_page,
)
from minimind_edu.inside.server import PageServer
from minimind_edu.inside.tokenizer import PageTokenizer, find_tokenizer, read_tokenizer
from minimind_edu.inside.verse import write_verse_page
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.notebook import language
from minimind_edu.trained import living
from minimind_edu.verdicts import command as verdicts
from minimind_edu.verdicts.lora import add_once, read_lora
from minimind_edu.web.living_model import QUESTION, TOLD
from minimind_edu.weights.checkpoints import Reading, read_checkpoint
from minimind_edu.weights.files import SUFFIXES
from minimind_edu.weights.hub import locate
from minimind_edu.weights.writing import file_to_write

FIRST_TEXTS = {  # of each language what goes on, and what is said to a model that answers
    "en": (
        "The model reads this sentence from left to right, and at every token it says what comes next",
        "Who are you?",
    ),
    "zh": ("模型从左到右读这句话，每读一个 token，就说出接下来会是什么", "你是谁？"),
}
FIRST_IDS = (1, 2, 3)
_NO_MEMORY = "there is not enough memory for this model"
# What libraries say when the memory ends: torch a RuntimeError, the system an error while a file is mapped.
_SAID_OF_MEMORY = re.compile("allocate memory|out of memory|not enough memory|bad_alloc", re.IGNORECASE)
_WIDEST = 4  # the most bytes of one weight in a file


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
    opening.add_argument("--bits", type=int, choices=BITS, default=8, help="of a weight; 4: a small file; 32: exact")
    opening.add_argument("--beside", metavar="OTHER", help="a second model of one tokenizer, on the same page")
    opening.add_argument("--beside-bits", type=int, choices=BITS, help="of OTHER's weights, if not those of --bits")
    opening.add_argument("--lora", type=Path, metavar="ADAPTER", help="merged into OTHER, which may be MODEL itself")
    opening.add_argument("--download", action="store_true", help="MODEL may be a name on the Hugging Face Hub")
    writing = commands.add_parser("verse", help="a page on which a model goes on from a line or a rhyme of yours")
    for command in (opening, writing):
        command.add_argument("--language", choices=LANGUAGES, default=language(), help="of the page")
        command.add_argument(
            "--book", metavar="ADDRESS", help="where its links to the book lead, if not to the published one"
        )
        command.add_argument(
            "-o", "--output", type=Path, metavar="PAGE.html", help="write one file instead of showing it"
        )
    checking = commands.add_parser("check", help="what is right and what is wrong with a model, a log, training data")
    verdicts.add_arguments(checking)
    given = parser.parse_args(arguments)
    try:
        with _ended_by_signals():
            {"open": _open, "verse": _write_verse, "check": _check}[given.command](given)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        if _is_of_memory(error):
            _stop(_NO_MEMORY)
        if isinstance(error, RuntimeError):
            raise
        _stop(str(error))
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None


def _is_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it was made of, says that the memory ends."""
    if error is None:
        return False
    return isinstance(error, MemoryError) or bool(_SAID_OF_MEMORY.search(str(error))) or _is_of_memory(error.__cause__)


def _stop(sentence: str) -> NoReturn:
    print(f"minimind-edu: {sentence}", file=sys.stderr)
    raise SystemExit(2)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Whatever ends the program from outside, it takes its files and its server with it.

    Ctrl-C, the end asked for by another program, and the closed terminal; what a caller ignores, such as nohup the
    last, stays ignored. While the program ends, another signal must not stop it from cleaning up.
    """

    def end(number: int, _: object) -> None:
        if not isinstance(sys.exc_info()[1], KeyboardInterrupt | SystemExit):
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number in numbers:
            if before[number] != signal.SIG_IGN:
                signal.signal(number, end)
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])


def _tell(sentence: str) -> None:
    print(f"  {sentence}", file=sys.stderr, flush=True)


def _check_output(given: argparse.Namespace) -> None:
    """Refuse a file that a page cannot be written to, before anything is computed."""
    if given.output and given.output.suffix != ".html":
        raise ValueError(f"a page's name must end in .html, got {given.output.name!r}")
    if given.output:
        file_to_write(given.output)


def _write_verse(given: argparse.Namespace) -> None:
    _check_output(given)
    _hand_over(given, lambda target: write_verse_page(target, given.language, given.book))


def _open(given: argparse.Namespace) -> None:
    _check_output(given)
    for option, value in (("--beside-bits", given.beside_bits), ("--lora", given.lora)):
        if value and not given.beside:
            raise ValueError(f"{option} needs --beside OTHER, the second model of the page")
    if given.beside:
        _open_beside(given)
        return
    model, name, tokenizer, preset = _own_model(given) if given.model else _living_model(given.language)
    first = _first_texts(tokenizer, given.language, model.config.vocab_size) if given.model else _living_text()
    text = given.text or first
    _check_text(next(iter([text] if isinstance(text, str) else text)), tokenizer, model.config.vocab_size)

    def write(target: Path) -> None:
        write_page(
            model,
            target,
            name=name,
            text=text,
            tokenizer=tokenizer,
            bits=given.bits,
            at=given.at,
            language=given.language,
            assumed=preset,
            book_at=given.book,
            tell=_tell,
        )

    yours = "this is the book's own model. Yours: python -m minimind_edu open FOLDER_OR_FILE"
    _hand_over(given, write, None if given.model else yours)


def _open_beside(given: argparse.Namespace) -> None:
    if given.at:
        raise ValueError("--at leads to a part in the page of one model; side by side, parts are chosen in the page")
    first = _side(given.model, given, given.bits) if given.model else _living_side(given)
    second = _side(given.beside, given, given.beside_bits or given.bits, given.lora)
    tokenizer, _ = shared_tokenizer(first, second)
    size = first.model.config.vocab_size
    text = given.text or (_first_texts(tokenizer, given.language, size) if given.model else _living_text())
    _check_text(next(iter([text] if isinstance(text, str) else text)), tokenizer, size)

    def write(target: Path) -> None:
        write_beside_page((first, second), target, text=text, language=given.language, book_at=given.book, tell=_tell)

    _hand_over(given, write)


def _living_side(given: argparse.Namespace) -> Side:
    model, name, tokenizer, _ = _living_model(given.language)
    return Side(model, name, tokenizer, given.bits)


def _side(source: str, given: argparse.Namespace, bits: int, adapter: Path | None = None) -> Side:
    """One of two models. What cannot be read of its tokenizer is an error here: ids of two tokenizers are no text."""
    place, name, reading = _read_own(source, given.download)
    file = given.tokenizer or find_tokenizer(place)
    tokenizer = _own_tokenizer(file, place, reading.model.config.vocab_size) if file else None
    model = reading.model
    if adapter:
        model, name = add_once(model, read_lora(adapter)), f"{name} + {adapter.stem}"
    return Side(model, name, tokenizer, bits, dict(reading.assumed) or None)


def _hand_over(given: argparse.Namespace, write: Callable[[Path], None], note: str | None = None) -> None:
    """Write the page where it was asked for, or show it until Ctrl-C; note: a sentence before that."""
    if given.output:
        write(given.output)
        size = size_of(given.output)
        _tell(f"{given.output}: {size}, one file; nothing else is needed. It holds the weights and the text")
        return
    served = False
    try:
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "page.html")
            write(target)
            if note:
                _tell(note)
            served = True
            _show(target)
    except KeyboardInterrupt:  # here, when the folder is gone
        if not served:
            raise


def _check(given: argparse.Namespace) -> None:
    if not verdicts.run(given, lambda name: _located(name, given.download), _tell):
        raise SystemExit(1)


Opened = tuple[MiniMindForCausalLM, str, PageTokenizer | None, dict[str, Any] | None]  # the last: what was assumed


def _read_own(source: str, download: bool) -> tuple[Path, str, Reading]:
    """Where a model is, what the page calls it, and the model."""
    place = _located(source, download)
    _check_small(place)
    _tell(f"reading {place}")
    reading = read_checkpoint(place)
    check_fits(reading.model)
    if reading.note:
        _tell(reading.note)
    return place, Path(source).resolve().name if place.is_dir() else place.stem, reading


def _own_model(given: argparse.Namespace) -> Opened:
    place, name, reading = _read_own(given.model, given.download)
    model = reading.model
    tokenizer = _own_tokenizer(given.tokenizer, place, model.config.vocab_size)
    if tokenizer and tokenizer.unframed:
        _tell(f"{name} has a chat template, but {tokenizer.unframed}. The page works without the chat")
    return model, name, tokenizer, dict(reading.assumed) or None


def _located(model: str, download: bool) -> Path:
    """Where the model is, in the words of the command line where it is nowhere."""
    try:
        return locate(model, download, None, None)
    except FileNotFoundError as error:
        more = "" if set(model) & set("/\\.") else "; on the Hub it is user/name, with --download"
        raise FileNotFoundError(str(error).replace("download=True", "--download") + more) from error


def _own_tokenizer(asked: Path | None, place: Path, vocab_size: int) -> PageTokenizer | None:
    """The tokenizer that was asked for, which must be one, or else what lies with the model."""
    if asked:
        file = asked if asked.is_file() else asked / "tokenizer.json"
        if not file.is_file():
            raise ValueError(f"there is no tokenizer.json in {asked}; --tokenizer is the folder of one")
        return read_tokenizer(file, vocab_size)
    file = find_tokenizer(place)
    if file is None:
        where = place if place.is_dir() else place.parent
        _tell(f"no tokenizer.json in {where}: the page takes token ids. --tokenizer FOLDER gives it words")
        return None
    try:
        return read_tokenizer(file, vocab_size)
    except ValueError as error:
        _tell(f"{error}. So the page takes token ids")
        return None


def _first_texts(tokenizer: PageTokenizer | None, language: str, vocab_size: int) -> str | dict[str, str]:
    """What the page shows first: the text of its language, and those of others, of which it may take one instead."""
    if tokenizer:
        languages = sorted(FIRST_TEXTS, key=lambda spoken: spoken != language)
        return {FIRST_TEXTS[spoken][bool(tokenizer.chat)]: FIRST_TEXTS[spoken][0] for spoken in languages}
    return " ".join(str(id) for id in FIRST_IDS if id < vocab_size) or "0"


def _check_text(text: str, tokenizer: PageTokenizer | None, vocab_size: int) -> None:
    """Refuse what the page could not show first."""
    if tokenizer and tokenizer.kind == "words":
        world.encode(text)
    ids = re.findall(r"[^\s,]+", text)
    if not tokenizer and not (ids and all(re.fullmatch("[0-9]+", token) and int(token) < vocab_size for token in ids)):
        raise ValueError(
            f"without a tokenizer --text is token ids from 0 to {vocab_size - 1}, such as 1 2 3, got {text!r}"
        )


def _check_small(place: Path) -> None:
    """Refuse files that hold more than a page can, before they are read into memory."""
    files = [place] if place.is_file() else [file for suffix in SUFFIXES for file in place.glob(f"*{suffix}")]
    size, most = sum(file.stat().st_size for file in files), _WIDEST * MOST_WEIGHTS
    if size > most:
        raise ValueError(
            f"the weights in {place} take {size / 1e9:,.1f} GB, and a page holds up to {MOST_WEIGHTS / 1e6:,.0f} "
            f"million of them, {most / 1e9:,.1f} GB in float32; {LARGER}"
        )


def _living_model(language: str) -> Opened:
    words = PageTokenizer("words", {"words": list(world.WORDS)}, prefix=(0,))
    return living.living_model(), {"en": "the book's own model", "zh": "本书的模型"}[language], words, None


def _living_text() -> str:
    return f"{TOLD} {QUESTION}"


def _show(page: Path) -> None:
    """Until Ctrl-C."""
    with PageServer(page) as server:
        _tell(f"{server.address}\n  only this machine can open it; Ctrl-C ends it")
        webbrowser.open(server.address)
        server.serve_forever()


if __name__ == "__main__":
    main()
