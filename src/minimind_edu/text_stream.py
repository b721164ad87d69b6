"""Text that appears while it is generated, without cutting a character in half.

Tokenizers that work on bytes spread a Chinese character or an emoji over several tokens as often as not. Decoded alone,
a part of it is U+FFFD, the replacement character; only with its last byte does it become text.
"""

from collections.abc import Callable, Iterable, Iterator

from torch import Tensor

_UNFINISHED = "\N{REPLACEMENT CHARACTER}"


def whole_characters(decode: Callable[[list[int]], str], tokens: Iterable[int | Tensor]) -> Iterator[str]:
    """The text of ids that come one by one, in pieces that end between characters.

    Only the last few tokens are decoded again each time: from the last ones on that are whole characters by themselves.

    Args:
        decode: the text of a list of ids.
        tokens: integers, or tensors that hold one.

    Raises:
        ValueError: if a tensor holds the tokens of several rows.
    """
    window: list[int] = []
    shown = ""  # what of the window's text has been yielded
    for token in tokens:
        window.append(_one_id(token))
        text = decode(window)
        whole = text.rstrip(_UNFINISHED)
        if len(whole) > len(shown):
            yield whole[len(shown) :]
            shown = whole
            if whole == text:
                window = _last_whole(decode, window)
                shown = decode(window)
    rest = decode(window)[len(shown) :]  # bytes that never became a character
    if rest:
        yield rest


def _last_whole(decode: Callable[[list[int]], str], window: list[int]) -> list[int]:
    """The fewest last tokens that are whole characters; they stay, for what follows may depend on them, as a space."""
    for start in range(len(window) - 1, 0, -1):
        text = decode(window[start:])
        if text and _UNFINISHED not in text:
            return window[start:]
    return window


def _one_id(token: int | Tensor) -> int:
    if isinstance(token, Tensor) and token.numel() != 1:
        raise ValueError(
            f"decode_stream takes the tokens of one row, got {token.numel()} at a time; generate the rows of a batch "
            "together and decode each at the end"
        )
    return int(token)
