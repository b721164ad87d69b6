"""Two models side by side on one page: the same text, both answers, and where in the network they part.

    compare.js   both models read one text; how far apart their streams, heads and next tokens are
    worker.js    the thread of both models
    session.js   what the reader does
    views.js     what the reader sees; page.js starts it

`python -m minimind_edu open MODEL --beside OTHER` writes it. Both must read a text as the same tokens. Their streams
are compared where they are equally wide, their heads where each block has equally many. From which difference on two
blocks have parted is what `check MODEL --same-as OTHER` says, too.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from minimind_edu.inside.page import BITS, LANGUAGES, Code, check_fits, facts_of, packed, page_html
from minimind_edu.inside.tokenizer import PageTokenizer
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.validation import check_choice
from minimind_edu.verdicts.engines import explained_by
from minimind_edu.verdicts.same_model import parted_beyond
from minimind_edu.web import book
from minimind_edu.weights.writing import replacing

MOST_TOKENS = 256  # that such a page reads: every text is read by both
_FOLDER = Path(__file__).parent
CODE = Code(
    page=_FOLDER / "page.js",
    worker=_FOLDER / "worker.js",
    styles="inside/beside",
    titles={"en": "Side by side: {}", "zh": "并排比较：{}"},
)


class Side(NamedTuple):
    """One of two models."""

    model: MiniMindForCausalLM
    name: str
    tokenizer: PageTokenizer | None = None  # None: that of the other
    bits: int = 8  # of a weight, as in `write_page`
    assumed: Mapping[str, Any] | None = None  # as in `write_page`


_NOTES = {  # of what two models do not share: who takes it, who gives it
    "tokenizer": "{} has no tokenizer of its own here: it reads by that of {}",
    "chat": "their chat templates differ: {} reads a chat as {} does",
}


def shared_tokenizer(a: Side, b: Side) -> tuple[PageTokenizer | None, tuple[str, str, str] | None]:
    """The tokenizer by which both read, None for token ids; and one of `_NOTES`, who takes and who gives, or None.

    Raises:
        ValueError: if a text would be other tokens for the one than for the other; the message says which.
    """
    sizes = [side.model.config.vocab_size for side in (a, b)]
    if sizes[0] != sizes[1]:
        raise ValueError(f"two models side by side must have one vocabulary, got {sizes[0]:,} and {sizes[1]:,} tokens")
    if a.tokenizer is None or b.tokenizer is None:
        giver, taker = (a, b) if a.tokenizer else (b, a)
        return giver.tokenizer, ("tokenizer", taker.name, giver.name) if giver.tokenizer else None
    if different := _difference(a.tokenizer, b.tokenizer):
        raise ValueError(f"two models side by side must have one tokenizer, but {different}")
    if a.tokenizer.chat == b.tokenizer.chat:
        return a.tokenizer, None
    giver, taker = (a, b) if a.tokenizer.chat else (b, a)
    return giver.tokenizer, ("chat", taker.name, giver.name)


def _difference(a: PageTokenizer, b: PageTokenizer) -> str | None:
    """What makes other tokens of a text, in words; None if nothing does."""
    if a.kind != b.kind or a.kind != "bpe":
        return None if a.content == b.content else "they are of different kinds"
    pieces = [_pieces(side) for side in (a, b)]
    for id in sorted(pieces[0] | pieces[1]):
        first, second = (known.get(id) for known in pieces)
        if first != second:
            phrases = (f"is {piece!r}" if piece is not None else "is missing" for piece in (first, second))
            return f"token {id} {' in the one and '.join(phrases)} in the other"
    for name, part in _PARTS.items():
        first, second = (part(side) for side in (a, b))
        if first != second:
            return f"they have different {name}"
    return None


def _pieces(tokenizer: PageTokenizer) -> dict[int, str]:
    """The text of each token."""
    added = {token["id"]: token["content"] for token in tokenizer.content["added_tokens"]}
    return {id: piece for piece, id in tokenizer.content["model"]["vocab"].items()} | added


def _merges(tokenizer: PageTokenizer) -> list[str]:
    """Files of the library write a merge as a list or as a text."""
    merges = tokenizer.content["model"]["merges"]
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]


_FLAGS = ("ignore_merges", "byte_fallback", "fuse_unk", "unk_token", "is_whole")
_PARTS = {
    "merges": _merges,
    "flags": lambda side: [side.content["model"].get(name) or None for name in _FLAGS],
    "added tokens": lambda side: sorted(side.content["added_tokens"], key=lambda token: token["id"]),
    **{
        f"steps in its {name}": lambda side, name=name: side.content[name]
        for name in ("normalizer", "pre_tokenizer", "decoder")
    },
    "tokens around every text": lambda side: (side.prefix, side.suffix),
}


def write_beside_page(
    sides: tuple[Side, Side],
    target: Path,
    *,
    text: str | Mapping[str, str],
    language: str = "en",
    book_at: str | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> None:
    """Write the page of two models; it appears only when it is complete.

    Args:
        sides: each with its own bits; what they are told apart by is the name, and what the page says of each.
        target: the .html file.
        text: as in `write_page`.
        language: one of `page.LANGUAGES`, in which it speaks.
        book_at: where its links to the book lead: `book.links`.
        tell: gets a sentence for each step.

    Raises:
        FileNotFoundError, IsADirectoryError: if the file's folder does not exist, or it is a folder.
        ValueError: as in `write_page`, and if they have no common tokenizer: `shared_tokenizer`.
    """
    check_choice("language", language, LANGUAGES)
    for side in sides:
        check_choice("bits", side.bits, BITS)
        check_fits(side.model)
    tokenizer, note = shared_tokenizer(*sides)
    texts = {text: text} if isinstance(text, str) else dict(text)
    if note:
        tell(_NOTES[note[0]].format(*note[1:]))
    models = []
    with replacing(target) as partial:
        files = [partial.with_name(f"weights{at}.safetensors") for at in range(len(sides))]
        for side, stored in zip(sides, files, strict=True):
            tell(f"{side.name}:")
            facts = facts_of(side.model, side.name, "", None, {})
            model_facts = {name: facts[name] for name in ("name", "config", "ends", "parameters")}
            compared = None if models else tokenizer  # one comparison of the tokens is enough
            model_facts |= packed(side.model, stored, side.bits, compared, texts, tell)
            models.append(model_facts | {"assumed": side.assumed and dict(side.assumed)})
        names, first = ", ".join(side.name for side in sides), next(iter(texts))
        data = facts_of(sides[0].model, names, first, tokenizer, book.links(language, book_at)) | {
            "texts": list(texts.items()),
            "models": models,
            "most": min(MOST_TOKENS, *(side.model.config.max_position_embeddings for side in sides)),
            "note": note,
            "beyond": parted_beyond(explained_by(min(side.bits for side in sides))),
        }
        tell("writing the page")
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(page_html(CODE, data, files, language))
