"""What is known about how characters sounded: the rhyme groups of old, level and oblique, today's finals, and pairs.

Old groups are the 106 of the Pingshui lists; a character that had several readings is in several groups. Level or
oblique follows from the group; a character in groups of both kinds counts as neither. Nothing of this is told to a
model: it is what it is measured by.
"""

import json
import lzma
from functools import cache

import torch
from torch import Tensor

from minimind_edu.trained.verse.corpus import FOLDER, characters, ids_of

LEVEL = "平"  # in the name of a level group: 上平声一东
# today's finals that rhyme: fourteen classes, as in the 中华新韵 of 2005, with finals as pinyin spells them, v for ü
MODERN = (
    "a ia ua",
    "o e uo",
    "ie ve",
    "ai uai",
    "ei uei",
    "ao iao",
    "ou iou",
    "an ian uan van",
    "en in uen vn",
    "ang iang uang",
    "eng ing ueng ong iong",
    "i er v",
    "-i",
    "u",
)


@cache
def _told() -> dict[str, dict[str, str]]:
    return json.loads((FOLDER / "characters.json").read_text(encoding="utf-8"))


@cache
def level_groups() -> tuple[str, ...]:
    """The names of the thirty level groups."""
    return tuple(name for name in _told()["groups"] if LEVEL in name)


def members(name: str) -> str:
    """The characters of a group, of the vocabulary."""
    return _told()["groups"][name]


def _membership(listed: list[str]) -> Tensor:
    """Which character is in which list, [V, lists] of float32."""
    table = torch.zeros(len(characters()), len(listed))
    for column, members in enumerate(listed):
        table[[ids_of()[character] for character in members], column] = 1
    return table


@cache
def in_level() -> Tensor:
    """Which character is in which level group, [V, 30], float32."""
    return _membership([_told()["groups"][name] for name in level_groups()])


def sharing(character: str) -> Tensor:
    """Which characters share a level group with this one, itself among them, [V], bool."""
    return (in_level() @ in_level()[ids_of()[character]]) > 0


@cache
def in_oblique() -> Tensor:
    """Which character is in any oblique group, [V], bool."""
    return _membership([of for name, of in _told()["groups"].items() if LEVEL not in name]).any(1)


@cache
def tones() -> Tensor:
    """Of each character: 1 level, -1 oblique, 0 both or unknown; [V], int64."""
    level = in_level().any(1)
    return level.long() * ~in_oblique() - in_oblique().long() * ~level


@cache
def plain() -> Tensor:
    """Which characters are level in one group and in nothing else, [V], bool: only they say what a swap does."""
    return (in_level().sum(1) == 1) & ~in_oblique()


@cache
def in_modern() -> Tensor:
    """Which character has which of today's rhymes, [V, 14], float32."""
    finals = _told()["finals"]
    return _membership(["".join(finals.get(final, "") for final in of.split()) for of in MODERN])


@cache
def final_of() -> dict[str, str]:
    """Today's final of each character, as pinyin spells it; of several, the first that is listed."""
    found: dict[str, str] = {}
    for final, members in _told()["finals"].items():
        for character in members:
            found.setdefault(character, final)
    return found


@cache
def _pairs() -> dict[str, bool]:
    text = lzma.decompress((FOLDER / "pairs.txt.xz").read_bytes()).decode("utf-16-le")
    return {line[:2]: line[2] == "+" for line in text.split()}


@cache
def groups_of() -> dict[str, frozenset[str]]:
    """The level groups of each character that has any."""
    found: dict[str, set[str]] = {}
    for name in level_groups():
        for character in _told()["groups"][name]:
            found.setdefault(character, set()).add(name)
    return {character: frozenset(names) for character, names in found.items()}


def rhymes(a: str, b: str) -> bool:
    """Whether two characters are in one level group; a character does not rhyme with itself."""
    known, none = groups_of(), frozenset()
    return a != b and not known.get(a, none).isdisjoint(known.get(b, none))


def poets_pair(a: str, b: str) -> bool | None:
    """Whether poets paired two characters more than twice as often as chance does, in poems that no model read; None
    where they would meet less than once by chance, which tells nothing."""
    return _pairs().get("".join(sorted((a, b))))
