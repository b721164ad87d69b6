"""What the page needs of a tokenizer: a tokenizer.json in the steps that bpe.js knows, and a chat's frame.

The page has a BPE of its own, over bytes or with bytes for what is in no token, and knows vocabularies of whole pieces
(WordLevel), as a model of single characters has one. Whatever else a file asks for is refused here, by name, before
anything is written: a page whose tokens were nearly right would show a model that answers nearly right. So each part of
a file is on one of the lists below with all of its settings, or the file is not read. What is left to each side is its
Unicode: the library normalizes by older tables than a browser, and newer characters may have other tokens in the page.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minimind_edu.inside.patterns import Pattern, PatternError, literal, translate
from minimind_edu.weights.files import read_json

_MARK = "\ue000the words\ue000"  # stands for what a reader will write, while a chat template is filled in
_INSTALL = "pip install 'transformers>=5' 'jinja2>=3.1.6'"  # jinja2: see pyproject.toml
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # that of ByteLevel
_LATER_PUNCTUATION = (  # of Unicode 9 and after: the library's table for Punctuation ends before
    r"\u{61d}\u{9fd}\u{a76}\u{c77}\u{c84}\u{1b4e}-\u{1b4f}\u{1b7d}-\u{1b7f}\u{2e43}-\u{2e4f}"
    r"\u{2e52}-\u{2e5d}\u{10d6e}\u{10ead}\u{10ed0}\u{10f55}-\u{10f59}\u{10f86}-\u{10f89}"
    r"\u{113d4}-\u{113d5}\u{113d7}-\u{113d8}\u{1144b}-\u{1144f}\u{1145a}-\u{1145b}\u{1145d}"
    r"\u{11660}-\u{1166c}\u{116b9}\u{1183b}\u{11944}-\u{11946}\u{119e2}\u{11a3f}-\u{11a46}"
    r"\u{11a9a}-\u{11a9c}\u{11a9e}-\u{11aa2}\u{11b00}-\u{11b09}\u{11be1}\u{11c41}-\u{11c45}"
    r"\u{11c70}-\u{11c71}\u{11ef7}-\u{11ef8}\u{11f43}-\u{11f4f}\u{11fff}\u{12ff1}-\u{12ff2}"
    r"\u{16d6d}-\u{16d6f}\u{16e97}-\u{16e9a}\u{16fe2}\u{1e5ff}\u{1e95e}-\u{1e95f}"
)
_PUNCTUATION = rf"(?![{_LATER_PUNCTUATION}])[!-\/:-@\[-`{{-~\p{{P}}\u{{166d}}\u{{111c9}}]"
_BEHAVIORS = ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext")
_MOST = 2**27  # bytes of a file; those of 250,000 tokens take a quarter
_COMPARED = 2000  # merged tokens of which the page's texts hold each once
_TOGETHER = 8  # of those in one text

Step = dict[str, Any]


@dataclass(frozen=True)
class PageTokenizer:
    """How a page reads and writes text."""

    kind: str  # "bpe", or "words": those of a small world
    content: dict[str, Any]  # of "bpe" what bpe.js reads, of "words" the words
    prefix: tuple[int, ...] = ()  # tokens before every text
    file: Path | None = None  # where it comes from
    chat: dict[str, str] | None = None  # what is before and after a user's words, if there is a template
    unframed: str = ""  # why there is no chat although there is a template, as a sentence
    suffix: tuple[int, ...] = ()  # tokens after every text


def find_tokenizer(place: Path) -> Path | None:
    """The tokenizer.json in a folder, or beside a file; None if there is none."""
    found = (place if place.is_dir() else place.parent) / "tokenizer.json"
    return found if os.path.lexists(found) else None  # one that cannot be read is there, too


def read_tokenizer(file: Path, vocab_size: int) -> PageTokenizer:
    """The tokenizer of a tokenizer.json, with the chat template beside it.

    Args:
        file: as the tokenizers library writes it.
        vocab_size: of the model; it may have more tokens than the tokenizer, not fewer.

    Raises:
        ValueError: if the page could not read text as this file says; the message names the reason.
    """
    full = read_json(file, _MOST)
    try:
        json.dumps(full, ensure_ascii=False).encode()  # halves of characters, which the library does not read
        content = _steps(full)
        prefix, suffix = _around(full.get("post_processor"))
        _check_ids(content, (*prefix, *suffix), vocab_size)
        _check_added(content["added_tokens"], content["model"]["vocab"])
    except (_Refusal, PatternError) as reason:
        raise ValueError(f"{file} {reason}") from reason
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not a file of the tokenizers library ({type(error).__name__}: {error})") from error
    library_of(file)
    chat, unframed = _chat(file.parent)
    return PageTokenizer("bpe", content, prefix, file, chat, unframed, suffix)


def library_of(file: Path) -> Any:
    """The tokenizers library's own tokenizer, which neither cuts nor pads a text; None where the library is missing.

    Raises:
        ValueError: if the library does not read the file.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    try:
        tokenizer = Tokenizer.from_file(str(file))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # what Rust calls a panic is no Exception
        raise ValueError(f"the tokenizers library does not read {file}: {_first_line(error)}") from error


def compared_texts(file: Path, texts: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Texts with their ids by the tokenizers library, for a page to compare itself with; none where it is missing.

    After the texts that are given come such that hold merged tokens of this tokenizer, each once: all of them, or as
    many from all over the vocabulary as a page should carry.

    Raises:
        ValueError: if the library fails on one of them.
    """
    library = library_of(file)
    if library is None:
        return []
    try:
        return [(text, library.encode(text).ids) for text in [*texts, *_own_texts(library)]]
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise ValueError(f"the tokenizers library fails with {file}: {_first_line(error)}") from error


def _own_texts(library: Any) -> Iterator[str]:
    model = json.loads(library.to_str())["model"]
    merges = model.get("merges") or ([token] for token in model["vocab"])  # whole pieces are made of nothing
    made = ["".join(merge) if isinstance(merge, list) else merge.replace(" ", "") for merge in merges]
    chosen = [made[len(made) * at // _COMPARED] for at in range(_COMPARED)] if len(made) > _COMPARED else made
    ids = [model["vocab"][token] for token in dict.fromkeys(chosen)]
    written = {id: text for id in ids if "\ufffd" not in (text := library.decode([id], skip_special_tokens=False))}
    for start in range(0, len(written), _TOGETHER):
        some = list(written)[start : start + _TOGETHER]
        text = library.decode(some, skip_special_tokens=False)
        yield text
        found = set(library.encode(text).ids)
        yield from (written[id] for id in some if id not in found)


def _first_line(error: BaseException) -> str:
    return f"{next(iter(str(error).splitlines()), ''):.160}" or type(error).__name__


class _Refusal(Exception):
    """Why the page cannot read text as a file says, in words that follow its name."""


def _steps(full: Mapping[str, Any]) -> dict[str, Any]:
    """What bpe.js reads."""
    splitting = _translated(full.get("pre_tokenizer"), _SPLITTING, "pretokenizers", "splits text by")
    normalizing = _translated(full.get("normalizer"), _NORMALIZING, "normalizers", "normalizes text by")
    added = [_added(token) for token in full.get("added_tokens") or []]
    model = _model(full["model"], any("bytes" in step for step in splitting))
    if firsts := [at for at, step in enumerate(splitting) if step.get("everywhere") is False]:
        if firsts != [1]:  # after its own replacement
            raise _Refusal("splits text before Metaspace with prepend_scheme=first; the page knows it first")
        if normalizing and any(token["normalized"] for token in added):
            raise _Refusal("has prepend_scheme=first beside normalized added tokens, which the page does not know")
    if full.get("decoder") is None and not any("bytes" in step for step in splitting):
        raise _Refusal("has no decoder, so that nothing says how its tokens are written; give the tokenizer one")
    writing = _translated(full.get("decoder") or _BYTE_DECODER, _WRITING, "decoders", "writes text by")
    return {
        "model": model,
        "added_tokens": added,
        "normalizer": normalizing,
        "pre_tokenizer": splitting,
        "decoder": writing,
    }


def _translated(part: Mapping[str, Any] | None, known: Mapping[str, "_Known"], inner: str, does: str) -> list[Step]:
    """The steps of a part, which may be a sequence of parts."""
    if not part:
        return []
    if part["type"] == "Sequence":
        return [step for child in part[inner] for step in _translated(child, known, inner, does)]
    if part["type"] not in known:
        raise _Refusal(f"{does} {part['type']}; the page knows {', '.join(known)}")
    settings, steps = known[part["type"]]
    where = f"{does} {part['type']} with"
    if unknown := sorted(set(part) - {"type", *settings}):
        raise _Refusal(f"{where} {unknown[0]}, which the page does not know")
    for name, allowed in settings.items():
        value = part.get(name)
        if not (isinstance(value, allowed) if isinstance(allowed, type) else allowed is None or value in allowed):
            raise _Refusal(f"{where} {name}={value!r}, which the page does not know")
    try:
        return steps(part)
    except PatternError as error:
        raise _Refusal(f"{does} a pattern with {error}, which a page may read otherwise than the library") from error


def _pattern(part: Mapping[str, Any]) -> Pattern:
    [(kind, text)] = part["pattern"].items()
    if kind not in ("Regex", "String"):
        raise _Refusal(f"has a pattern of the kind {kind}; the page knows Regex and String")
    return translate(text) if kind == "Regex" else Pattern(literal(text), not text)


def _replacing(part: Mapping[str, Any]) -> list[Step]:
    pattern = _pattern(part)
    if pattern.can_be_empty:
        raise _Refusal("replaces what may be empty, which the page does not know")
    return [{"replace": [pattern.source, part["content"]]}]


def _splitting(pattern: str, behavior: str, invert: bool = False) -> Step:
    return {"split": pattern, "behavior": behavior, "invert": invert}


def _by_metaspace(part: Mapping[str, Any]) -> list[Step]:
    mark, scheme = part["replacement"], part.get("prepend_scheme") or "always"
    if part.get("add_prefix_space") is False and scheme != "never":
        raise _Refusal(f"splits text by Metaspace with add_prefix_space=False and prepend_scheme={scheme}")
    steps: list[Step] = [{"replace": [" ", mark]}]
    steps += [{"first": mark, "everywhere": scheme == "always"}] if scheme != "never" else []
    return steps + [_splitting(literal(mark), "MergedWithNext")] * (part.get("split") is not False)


def _by_byte_level(part: Mapping[str, Any]) -> list[Step]:
    steps: list[Step] = [{"first": " ", "everywhere": True}] if part["add_prefix_space"] else []
    steps += [_splitting(translate(_GPT2).source, "Isolated")] if part.get("use_regex") is not False else []
    return [*steps, {"bytes": True}]


def _by_digits(part: Mapping[str, Any]) -> list[Step]:
    return [_splitting(r"\p{N}", "Isolated" if part["individual_digits"] else "Contiguous")]


# A part of a file -> each of its settings with the values that are known, None for any or a type for all of that type,
# and what makes steps of it.
_Known = tuple[Mapping[str, Any], Callable[[Mapping[str, Any]], list[Step]]]
_BOTH = (True, False)
_EITHER = (None, True, False)
_BYTE_LEVEL = {"add_prefix_space": _BOTH, "trim_offsets": _BOTH, "use_regex": _EITHER}
_METASPACE = {
    "replacement": str,
    "prepend_scheme": (None, "always", "first", "never"),
    "add_prefix_space": _EITHER,
    "split": _EITHER,
    "str_rep": None,
}
_REPLACE = {"pattern": dict, "content": str}
_NORMALIZING: dict[str, _Known] = {
    **dict.fromkeys(("NFC", "NFD", "NFKC", "NFKD"), ({}, lambda part: [{"normalize": part["type"]}])),
    "Prepend": ({"prepend": str}, lambda part: [{"prepend": part["prepend"]}]),
    "Replace": (_REPLACE, _replacing),
}
_SPLITTING: dict[str, _Known] = {
    "ByteLevel": (_BYTE_LEVEL, _by_byte_level),
    "Split": (
        {"pattern": dict, "behavior": _BEHAVIORS, "invert": _BOTH},
        lambda part: [_splitting(_pattern(part).source, part["behavior"], part["invert"])],
    ),
    "Digits": ({"individual_digits": _BOTH}, _by_digits),
    "Punctuation": (
        {"behavior": (None, *_BEHAVIORS)},
        lambda part: [_splitting(_PUNCTUATION, part.get("behavior") or "Isolated")],
    ),
    "Metaspace": (_METASPACE, _by_metaspace),
}
_WRITING: dict[str, _Known] = {
    "ByteLevel": (_BYTE_LEVEL, lambda part: [{"bytes": True}]),
    "ByteFallback": ({}, lambda part: [{"fallback": True}]),
    "Fuse": ({}, lambda part: [{"fuse": True}]),
    "Replace": (_REPLACE, _replacing),
    "Strip": ({"content": str, "start": int, "stop": (0,)}, lambda part: [_stripping(part)]),
    "Metaspace": (
        _METASPACE,
        lambda part: [{"marks": part["replacement"], "atFirst": part.get("prepend_scheme") != "never"}],
    ),
}
_BYTE_DECODER = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}  # where bytes have no decoder
# What a file says of its model, by its type -> the values that are known, as above.
_BPE: dict[str, Any] = {
    "type": (None, "BPE"),
    "vocab": dict,
    "merges": list,
    "unk_token": None,
    "fuse_unk": _EITHER,
    "byte_fallback": _EITHER,
    "ignore_merges": _EITHER,
    "dropout": (None, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
}
_MODELS = {"BPE": _BPE, "WordLevel": {"type": None, "vocab": dict, "unk_token": str}}


def _stripping(part: Mapping[str, Any]) -> Step:
    return {"strip": part["content"], "count": part["start"]}


def _model(model: Mapping[str, Any], are_bytes: bool) -> dict[str, Any]:
    kind = model.get("type") or "BPE"
    if kind not in _MODELS or (kind == "BPE" and not isinstance(model.get("merges"), list)):
        raise _Refusal(f"holds a tokenizer of the type {model.get('type')}; the page reads {', '.join(_MODELS)}")
    for name in model:
        if name not in _MODELS[kind]:
            raise _Refusal(f"asks for {name}, which the page does not know")
        allowed = _MODELS[kind][name]
        if isinstance(allowed, tuple) and model[name] not in allowed:
            raise _Refusal(f"asks for {name}; the page reads {kind} without it")
    vocab, unknown, merges = model["vocab"], model.get("unk_token"), model.get("merges", [])
    if len(set(vocab.values())) < len(vocab):
        raise _Refusal("has two tokens with one id")
    for merge in merges:
        first, second = merge if isinstance(merge, list) else merge.split(" ")
        if not {first, second, first + second} <= vocab.keys():
            raise _Refusal(f"merges {first!r} and {second!r}, which are not all tokens of it")
    if len({type(merge) for merge in merges}) > 1:
        raise _Refusal("writes its merges in two ways")
    if unknown is not None and unknown not in vocab and not (are_bytes and _byte_characters() <= vocab.keys()):
        raise _Refusal(f"has the unk_token {unknown!r}, which is no token of it")
    names = ("vocab", "ignore_merges", "byte_fallback", "fuse_unk", "unk_token")
    return {name: model.get(name) for name in names} | {"merges": merges, "is_whole": kind == "WordLevel"}


def _byte_characters() -> set[str]:
    """What stands for bytes in the vocabulary of a byte-level BPE."""
    printable = [byte for byte in range(256) if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174]
    return {*map(chr, printable), *(chr(256 + at) for at in range(256 - len(printable)))}


def _added(token: Mapping[str, Any]) -> Step:
    names = ("id", "content", "normalized", "lstrip", "rstrip")
    if unknown := sorted(set(token) - {*names, "single_word", "special"}):
        raise _Refusal(f"gives the token {token['content']!r} the flag {unknown[0]}, which the page does not know")
    if token["single_word"]:
        raise _Refusal(f"gives the token {token['content']!r} the flag single_word, which the page does not know")
    return {name: token[name] for name in names}


def _check_added(added: Sequence[Step], vocab: Mapping[str, int]) -> None:
    """Refuse ids that the library would not give: it counts on from its vocabulary, whatever a file says."""
    ids: dict[str, int] = {}
    for token in added:
        content = token["content"]
        if not content or content in ids:
            raise _Refusal(f"adds the token {content!r} {'twice' if content else 'without a letter'}")
        following = max([len(vocab) - 1, *ids.values()]) + 1
        ids[content] = vocab.get(content, following)
        if token["id"] != ids[content]:
            raise _Refusal(
                f"gives the added token {content!r} the id {token['id']}, where the library gives it {ids[content]}"
            )


def _check_ids(content: Mapping[str, Any], around: Sequence[int], vocab_size: int) -> None:
    ids = [*content["model"]["vocab"].values(), *(token["id"] for token in content["added_tokens"]), *around]
    for id in ids:
        if type(id) is not int or id < 0:
            raise _Refusal(f"has the token id {id!r}, and ids are whole numbers from 0 on")
    if not ids:
        raise _Refusal("has no tokens")
    if max(ids) >= vocab_size:
        raise _Refusal(
            f"has the token id {max(ids):,}, but the model's vocabulary ends at {vocab_size - 1:,}: it is another's"
        )


def _around(processor: Mapping[str, Any] | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The tokens that the library puts before and after every text, such as Llama's first one."""
    if not processor or processor["type"] == "ByteLevel":  # that one moves offsets only
        return (), ()
    if processor["type"] == "Sequence":
        framing = [inner for inner in processor["processors"] if inner["type"] != "ByteLevel"]
        if len(framing) > 1:
            raise _Refusal("puts tokens around a text by several processors; the page knows one")
        return _around(framing[0] if framing else None)
    if processor["type"] != "TemplateProcessing":
        raise _Refusal(
            f"puts tokens around a text by {processor['type']}; the page knows TemplateProcessing, ByteLevel, Sequence"
        )
    parts = processor["single"]
    texts = [at for at, part in enumerate(parts) if "Sequence" in part]
    if len(texts) != 1 or parts[texts[0]]["Sequence"]["id"] != "A":
        raise _Refusal("has a template that does not hold the text once")

    def ids(some: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        tokens = processor["special_tokens"]
        return tuple(id for part in some for id in tokens[part["SpecialToken"]["id"]]["ids"])

    return ids(parts[: texts[0]]), ids(parts[texts[0] + 1 :])


def _chat(folder: Path) -> tuple[dict[str, str] | None, str]:
    """What a chat template puts before and after the words of a user, or None and, if there is one, why not.

    The template is a program that came with the model: it runs here, in transformers' sandbox, and never in the page.
    Python that came with the model does not run, and nobody is asked whether it should.
    """
    try:
        settings = read_json(folder / "tokenizer_config.json")
    except ValueError:
        settings = {}
    if not (settings.get("chat_template") or (folder / "chat_template.jinja").is_file()):
        return None, ""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        return None, f"it needs transformers: {_INSTALL}"
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
        asked = [{"role": "user", "content": _MARK}]
        text = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a template may fail in any way; the page is useful without it
        if "auto_map" in settings:
            return None, "its tokenizer is a program that came with the model, and such programs are not run"
        reason = _first_line(error)
        return None, f"it fails ({type(error).__name__}{reason and f': {reason}'})"
    before, mark, after = text.partition(_MARK)
    return ({"before": before, "after": after}, "") if mark else (None, "it leaves out what the user says")
