"""`minimind-edu check`: which files are given, and what is said about each."""

import argparse
from collections.abc import Callable
from pathlib import Path

from minimind_edu.notebook import language
from minimind_edu.verdicts import curve, data, lora, model_file, picture, same_model
from minimind_edu.verdicts.log import STAGES, read_log
from minimind_edu.verdicts.opened import Opened, open_weights
from minimind_edu.verdicts.verdict import Verdict, in_language, is_any_wrong, screen
from minimind_edu.weights.writing import file_to_write

LANGUAGES = ("en", "zh")
Locate = Callable[[str], Path]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("model", nargs="?", help="a folder, or a .safetensors, .pth or .gguf file")
    parser.add_argument("--same-as", metavar="OTHER", help="whether MODEL is the model of this file or folder")
    parser.add_argument("--lora", type=Path, metavar="ADAPTER", help="whether MODEL is OTHER with this, merged once")
    parser.add_argument("--log", type=Path, metavar="FILE", help="what training printed")
    parser.add_argument("--stage", choices=STAGES, help="of the log, if it is not the one that is taken")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="the curve: a .png, an .svg, or a page (.html)")
    parser.add_argument("--data", type=Path, metavar="FILE", help="a JSONL for training")
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="of tokenizer.json, if not beside MODEL")
    parser.add_argument(
        "--max-length", type=int, metavar="N", help="tokens at which training cuts; none: MiniMind's own"
    )
    parser.add_argument("--rows", type=int, default=2000, metavar="N", help="of the data that are read; 0: all")
    parser.add_argument("--language", choices=LANGUAGES, default=language(), help="of the verdicts")
    parser.add_argument("--download", action="store_true", help="MODEL may be a name on the Hugging Face Hub")


def run(given: argparse.Namespace, locate: Locate, tell: Callable[[str], None]) -> bool:
    """Print the screen; whether nothing is wrong.

    Raises:
        FileNotFoundError, ValueError: as `groups_of` does.
    """
    groups = groups_of(given, locate, tell)
    print(screen(groups, given.language))
    return not is_any_wrong(groups)


def groups_of(given: argparse.Namespace, locate: Locate, tell: Callable[[str], None]) -> dict[str, list[Verdict]]:
    """The verdicts on all that is given, below the names of what they are about.

    Raises:
        FileNotFoundError, ValueError: for what cannot be read, or goes together with something that is missing.
    """
    _check_together(given)
    opened = open_weights(locate(given.model)) if given.model else None
    groups: dict[str, list[Verdict]] = {}
    if opened and not given.same_as:
        groups[opened.name] = model_file.check_file(opened, _tokenizer_if_any(opened, given.tokenizer))
    if opened and given.same_as:
        other = open_weights(locate(given.same_as))
        adapter = lora.read_lora(given.lora) if given.lora else None
        groups[f"{opened.name} = {other.name}?"] = same_model.compare(opened, other, adapter)
    if given.log:
        groups[given.log.name] = _of_log(given, opened, tell)
    if given.data:
        folder = given.tokenizer or (opened.place if opened else None)
        if folder is None:
            raise ValueError("--data is made into tokens: give MODEL with its tokenizer, or --tokenizer FOLDER")
        read = data.read_data(given.data, data.tokenizer_of(folder), given.max_length, given.rows)
        groups[given.data.name] = data.check_data(read)
    return groups


def _check_together(given: argparse.Namespace) -> None:
    if not (given.model or given.log or given.data):
        raise ValueError("there is nothing to check; give MODEL, --log FILE, --data FILE, or several of them")
    needs = {
        "--same-as": ("MODEL", given.same_as, given.model),
        "--lora": ("--same-as BASE, the model before it was merged", given.lora, given.same_as),
        "--picture": ("--log FILE, whose curve it draws", given.picture, given.log),
        "--stage": ("--log FILE", given.stage, given.log),
        "--max-length": ("--data FILE", given.max_length, given.data),
    }
    for name, (what, asked, there) in needs.items():
        if asked and not there:
            raise ValueError(f"{name} needs {what}")
    for name, value, least in (("--max-length", given.max_length, 3), ("--rows", given.rows, 0)):
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")


def _of_log(given: argparse.Namespace, opened: Opened | None, tell: Callable[[str], None]) -> list[Verdict]:
    if given.picture:
        if given.picture.suffix not in picture.SUFFIXES:
            raise ValueError(f"a picture's name must end in {', '.join(picture.SUFFIXES)}, got {given.picture.name!r}")
        file_to_write(given.picture)
    log, model = read_log(given.log), opened.model if opened else None
    vocab = model.config.vocab_size if model else None
    millions = model.num_parameters() / 1e6 if model else None
    verdicts = curve.check_log(log, vocab, given.stage, millions)
    if given.picture:
        kind = given.stage or curve.stage_of(log, vocab or curve.VOCABULARY)
        shown = picture.draw(log, verdicts, kind, vocab, given.language)
        picture.write(shown, verdicts, given.picture, given.language)
        tell(f"{in_language('the curve', given.language)}: {given.picture}")
    return verdicts


def _tokenizer_if_any(opened: Opened, folder: Path | None) -> object | None:
    """The tokenizer that is given, which must be one, or what lies beside the model, if it can be read."""
    if folder:
        return data.tokenizer_of(folder)
    try:
        return data.tokenizer_of(opened.place)
    except ValueError:
        return None
