"""What the page needs of a tokenizer: the parts of a tokenizer.json that bpe.js understands, and a chat's frame.

The page has a byte-level BPE of its own. Whatever else a file asks for is refused here, by name, before anything is
written: a page whose tokens were nearly right would show a model that answers nearly right.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MARK = "\ue000the words\ue000"  # stands for what a reader will write, while a chat template is filled in
_INSTALL = "pip install 'transformers>=5' 'jinja2>=3.1.6'"  # jinja2: see pyproject.toml
_SPLITTING = {  # the pre-tokenizers that bpe.js has -> what each of their settings must be, where it has them
    "ByteLevel": {"add_prefix_space": (False,)},
    "Split": {"behavior": ("Isolated",), "invert": (False,)},
    "Digits": {},
}


@dataclass(frozen=True)
class PageTokenizer:
    """How a page reads and writes text."""

    kind: str  # "bpe", or "words": those of a small world
    content: dict[str, Any]  # of "bpe" what bpe.js reads, of "words" the words
    prefix: tuple[int, ...] = ()  # tokens before every text
    file: Path | None = None  # where it comes from
    chat: dict[str, str] | None = None  # what is before and after a user's words, if there is a template
    unframed: str = ""  # why there is no chat although there is a template, as a sentence


def find_tokenizer(place: Path) -> Path | None:
    """The tokenizer.json in a folder, or beside a file; None if there is none."""
    found = (place if place.is_dir() else place.parent) / "tokenizer.json"
    return found if found.is_file() else None


def read_tokenizer(file: Path, vocab_size: int) -> PageTokenizer:
    """The tokenizer of a tokenizer.json, with the chat template beside it.

    Args:
        file: as the tokenizers library writes it.
        vocab_size: of the model; it may have more tokens than the tokenizer, not fewer.

    Raises:
        ValueError: if the page could not read text as this file says; the message names the reason.
    """
    try:
        full = json.loads(file.read_text(encoding="utf-8"))
        if reason := _reason_against(full, vocab_size):
            raise ValueError(f"{file} {reason}")
        model = {name: full["model"].get(name) for name in ("vocab", "merges", "ignore_merges")}
        added = [{"id": one["id"], "content": one["content"]} for one in full.get("added_tokens") or []]
        prefix = _prefix(full.get("post_processor"))
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{file} is not a file of the tokenizers library ({type(error).__name__}: {error})") from error
    parts = {name: full.get(name) for name in ("normalizer", "pre_tokenizer")}
    content = {"model": model, "added_tokens": added, **parts}
    return PageTokenizer("bpe", content, prefix, file, *_chat(file.parent))


def _reason_against(full: Mapping[str, Any], vocab_size: int) -> str | None:
    """Why the page cannot read text as this file says, in words that follow its name."""
    model, added = full["model"], full.get("added_tokens") or []
    if model.get("type", "BPE") != "BPE" or not isinstance(model.get("merges"), list):
        return f"holds a tokenizer of the type {model.get('type')}; the page reads byte-level BPE"
    odd = [name for name in ("byte_fallback", "continuing_subword_prefix", "end_of_word_suffix") if model.get(name)]
    if odd:
        return f"asks for {odd[0]}; the page reads byte-level BPE without it"
    normalizer = full.get("normalizer")
    if normalizer and normalizer["type"] != "NFC":
        return f"normalizes text by {normalizer['type']}; the page knows NFC"
    splitting = list(_flat(full.get("pre_tokenizer")))
    if not any(part["type"] == "ByteLevel" for part in splitting):
        return "does not split text into bytes; the page reads byte-level BPE"
    for part in splitting:
        settings = _SPLITTING.get(part["type"])
        if settings is None:
            return f"splits text by {part['type']}; the page knows {', '.join(_SPLITTING)}"
        for name, allowed in settings.items():
            if part.get(name, allowed[0]) not in allowed:
                return f"splits text by {part['type']} with {name}={part[name]}; the page knows {allowed[0]}"
    for token in added:
        flags = [name for name in ("lstrip", "rstrip", "single_word") if token.get(name)]
        flags += ["normalized"] if token.get("normalized") and normalizer else []
        if flags:
            return f"gives the token {token['content']!r} the flag {flags[0]}, which the page does not know"
    largest = max([*model["vocab"].values(), *(token["id"] for token in added)])
    if largest >= vocab_size:
        return f"has the token id {largest:,}, but the model's vocabulary ends at {vocab_size - 1:,}: it is another's"
    return None


def _flat(part: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    """The parts of a sequence of sequences, in their order."""
    if not part:
        return []
    return [one for inner in part["pretokenizers"] for one in _flat(inner)] if part["type"] == "Sequence" else [part]


def _prefix(processor: Mapping[str, Any] | None) -> tuple[int, ...]:
    """The tokens that a template of the tokenizers library puts before a text, such as Llama's first one."""
    if not processor:
        return ()
    if processor["type"] == "Sequence":
        return tuple(id for one in processor["processors"] for id in _prefix(one))
    if processor["type"] != "TemplateProcessing":
        return ()
    found: list[int] = []
    for part in processor["single"]:
        if "Sequence" in part:
            break
        found += processor["special_tokens"][part["SpecialToken"]["id"]]["ids"]
    return tuple(found)


def _chat(folder: Path) -> tuple[dict[str, str] | None, str]:
    """What a chat template puts before and after the words of a user, or None and, if there is one, why not.

    The template is a program that came with the model: it runs here, in transformers' sandbox, and never in the page.
    """
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None, ""
    if not (isinstance(settings, dict) and settings.get("chat_template") or (folder / "chat_template.jinja").is_file()):
        return None, ""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None, f"it needs transformers: {_INSTALL}"
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        asked = [{"role": "user", "content": _MARK}]
        text = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    except Exception as error:  # a template may fail in any way; the page is useful without it
        reason = next(iter(str(error).splitlines()), "")
        return None, f"it fails ({type(error).__name__}{reason and f': {reason:.160}'})"
    before, mark, after = text.partition(_MARK)
    return ({"before": before, "after": after}, "") if mark else (None, "it leaves out what the user says")
