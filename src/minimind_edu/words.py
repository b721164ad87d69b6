"""Words in another language in place of the English ones: pairs, as they stand in zh/ and beside the checks.

    - {} positions, one head
      - {} 个位置，一个头

`{}` stands for anything, such as a number, or words that have a pair of their own; where the other language has another
order, `{1}` and `{0}` say which. English stands in for what has no pair.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

PAIR = re.compile(r"^- (.+)\n  - (.+)$", re.MULTILINE)
WIDE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uff60]")  # letters and signs as wide as two Latin letters
_CLOSING = frozenset("，。；：？！、”’）》")


def pairs_in(text: str) -> dict[str, str]:
    """English words -> words of the other language, from a file or a part of it."""
    return dict(PAIR.findall(text))


class Words:
    """Looks words up, in the first table that has them."""

    def __init__(self, *tables: Mapping[str, str]):
        self.exact: dict[str, str] = {}
        for table in reversed(tables):
            self.exact |= table
        self._patterns = [(_pattern(key), value) for table in tables for key, value in table.items() if "{}" in key]

    def __call__(self, text: str) -> str | None:
        """The other words for a text, with the space around it, or None."""
        stripped = text.strip()
        found = self.exact.get(stripped)
        if found is None:
            for pattern, value in self._patterns:
                if match := pattern.fullmatch(stripped):
                    found = _filled(value, [self(field) or field for field in match.groups()])
                    break
        return text.replace(stripped, found) if found is not None else None


def _pattern(key: str) -> re.Pattern[str]:
    return re.compile("(.+?)".join(map(re.escape, key.split("{}"))), re.DOTALL)


def _filled(value: str, fields: list[str]) -> str:
    rest = iter(fields)
    return re.sub(r"\{(\d?)\}", lambda found: fields[int(found[1])] if found[1] else next(rest), value)


# A state holds identifiers too, such as the name of a choice: these fields hold sentences for readers.
_FIELDS = {"question", "text", "why", "label", "title", "code_prompt_show", "code_prompt_hide"}


def in_state(value: Any, words: Callable[[str], str | None], field: str = "") -> Any:
    """The state of a figure, or metadata, with the sentences in it translated."""
    if isinstance(value, dict):
        return {key: in_state(item, words, key) for key, item in value.items()}
    if isinstance(value, list):
        return [in_state(item, words, field) for item in value]
    return words(value) or value if isinstance(value, str) and field in _FIELDS else value


def sentences_in(value: Any, field: str = "") -> list[str]:
    """The sentences in a state."""
    if isinstance(value, dict):
        return [sentence for key, item in value.items() for sentence in sentences_in(item, key)]
    if isinstance(value, list):
        return [sentence for item in value for sentence in sentences_in(item, field)]
    return [value] if isinstance(value, str) and field in _FIELDS else []


def breadth(text: str) -> int:
    """How much room a text takes on a line, in Latin letters: a Chinese one is as wide as two."""
    return len(text) + len(WIDE.findall(text))


def folded(text: str, longest: int) -> str:
    """A text broader than `longest` on two lines, as even as its words allow; between Chinese letters it may be cut."""
    cuts = [(at, at + 1) for at, sign in enumerate(text) if sign == " "]
    cuts += [
        (at, at)
        for at in range(1, len(text))
        if WIDE.match(text[at - 1]) and WIDE.match(text[at]) and text[at] not in _CLOSING
    ]
    if breadth(text) <= longest or not cuts:
        return text
    folds = [(text[:end], text[begin:]) for end, begin in sorted(cuts)]
    return "\n".join(min(folds, key=lambda fold: max(map(breadth, fold))))


# What a notebook shows in the language of its reader: the first cell of a Chinese notebook tells it.
_of_notebook = Words({})


def learn(pairs: Mapping[str, str]) -> None:
    """Let this notebook's pictures and figures say these words in place of the English ones."""
    global _of_notebook
    _of_notebook = Words(pairs)


def translated(text: str) -> str:
    """What this notebook says for English words: the same, if it has learned no others."""
    return _of_notebook(text) or text
