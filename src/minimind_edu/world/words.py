"""The 88 words of the house in English and Chinese, and their ids.

A phrase like "goes from the" is one word, and so is 在哪里. Trained weights depend on the order of the list.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from minimind_edu.validation import whole_numbers

BOS, TRANSLATE = 0, 1  # the ids of <s> and ⇒
LANGUAGES = ("en", "zh")
NOBODY = 8  # the index that follows the eight people
PEOPLE: tuple[Sequence[str], Sequence[str]] = (
    "Mia Tom Anna Jack Lily Mark Zoe Leo nobody".split(),  # she and he in turn
    "米娅 汤姆 安娜 杰克 莉莉 马克 佐伊 利奥 没有人".split(),
)
OBJECTS = ("ball key book cup hat lamp map drum".split(), "球 钥匙 书 杯子 帽子 灯 地图 鼓".split())
PLACES = (
    "garden kitchen attic cellar hall study barn garage".split(),
    "花园 厨房 阁楼 地窖 大厅 书房 谷仓 车库".split(),
)
PRONOUNS = (("she", "he"), ("她", "他"))
PHRASES = (
    "is in the|goes from the|to the|the|is picked up by|in the|is put down by|is given by|to|where is|everybody|"
    "who has the|who has what|.|?|:|,".split("|"),
    "在|从|去|被|拿起了|放下了|交给了|在哪里|大家|谁拿着|什么|。|？|：|，".split("|"),
)
_CLASSES = (PEOPLE, OBJECTS, PLACES, PRONOUNS, PHRASES)
TWIN = 44  # the Chinese twin of a name, thing or place is so many ids later
WORDS = ["<s>", "⇒", *(word for language in (0, 1) for words in _CLASSES for word in words[language])]
IDS = {word: i for i, word in enumerate(WORDS)}

_LONGEST_FIRST = "|".join(re.escape(word) for word in sorted(WORDS, key=len, reverse=True))
_WORD = re.compile(rf"\s*({_LONGEST_FIRST})(?:(?<![a-zA-Z])|(?![a-zA-Z]))")  # "to" does not begin "tower"


def encode(text: str) -> np.ndarray:
    """The ids [S] of a text, with or without spaces; raises a ValueError that names what is no word of this world."""
    ids, start, text = [], 0, text.rstrip()
    while start < len(text):
        found = _WORD.match(text, start)
        if not found:
            unknown = re.findall(r"\w+|\S", text[start:])[0]
            raise ValueError(f"{unknown!r} is no word of this world; world.WORDS lists all {len(WORDS)}")
        ids.append(IDS[found[1]])
        start = found.end()
    return np.array(ids, dtype=np.int64)


def decode(ids: Iterable[int]) -> str:
    """The text of ids [S]: no space before a mark, nor between two Chinese words. `encode` reads it back."""
    text = ""
    for word in words_of(ids):
        chinese = not word.isascii() and text[-1:] not in ("", "⇒") and not text[-1:].isascii()
        text += word if not text or word in ".?:," or (chinese and word != "⇒") else " " + word
    return text


def words_of(ids: Iterable[int]) -> list[str]:
    """The words of ids [S]; raises a ValueError where an id belongs to no word."""
    ids = whole_numbers(ids)
    if strange := [i for i in ids if not 0 <= i < len(WORDS)]:
        raise ValueError(f"the ids of this world are 0 to {len(WORDS) - 1}, got {strange[0]}")
    return [WORDS[i] for i in ids]
