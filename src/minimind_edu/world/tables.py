"""The words, sentences and weights of the house as plain data.

`figures/live/world.js` runs the same grammar in a page. It takes all words and weights from these tables: they
are spelled in this package only.
"""

from typing import Any

from minimind_edu.world.house import (
    AFTER_QUESTION,
    BY_OBJECTS,
    CAST,
    LANGUAGE,
    PRONOUN,
    PROPS,
    ROOMS,
    SENTENCES,
    SLOTS,
    TOLD,
    TRANSLATION,
    WEIGHTS,
)
from minimind_edu.world.words import LANGUAGES, OBJECTS, PEOPLE, PHRASES, PLACES, PRONOUNS, TRANSLATE, WORDS

_LISTS = {"people": PEOPLE, "objects": OBJECTS, "places": PLACES}


def tables() -> dict[str, Any]:
    """What a port of the grammar needs, as lists, dictionaries, strings and whole numbers: it can be written as JSON.

    Lists of words come in pairs, English and Chinese. The order of `weights` is the order of the kinds in a pick.
    """
    names = {id(lists): name for name, lists in _LISTS.items()}
    return {
        "words": list(WORDS),
        "languages": list(LANGUAGES),
        "translate": WORDS[TRANSLATE],
        **{name: [list(words) for words in lists] for name, lists in _LISTS.items()},
        "pronouns": [list(words) for words in PRONOUNS],  # of those whose index is even, of those whose index is odd
        "marks": [list(words[-4:]) for words in PHRASES],  # full stop, question mark, colon, comma
        "put_down": [texts.split("|")[at] for texts, at in zip(SENTENCES["drop"], (2, 5), strict=True)],
        "sentences": {kind: list(texts) for kind, texts in SENTENCES.items()},
        "slots": {letter: names[id(lists)] for letter, lists in SLOTS.items()},
        "weights": dict(WEIGHTS),
        "told": list(TOLD),
        "after_question": AFTER_QUESTION,
        "by_objects": list(BY_OBJECTS),
        "language": list(LANGUAGE),
        "translation": list(TRANSLATION),
        "pronoun": list(PRONOUN),
        "most": {"people": CAST, "objects": PROPS, "places": ROOMS},
    }
