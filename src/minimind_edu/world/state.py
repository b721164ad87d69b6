"""What a text of the house says: who is where, and who holds what.

This reader shares only the lists of words with the grammar. It keeps track of everything by itself, so that the tests
can hold the one against the other, and a page can show what a story that somebody composed means.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from minimind_edu.world.words import OBJECTS, PEOPLE, PLACES, words_of


@dataclass
class State:
    """Who is where and who holds what, in English words. An object that nobody holds lies at its place."""

    place: dict[str, str] = field(default_factory=dict)  # person, or object that lies -> place
    holder: dict[str, str] = field(default_factory=dict)  # object -> person or "nobody"

    def where(self, thing: str) -> str:
        """The place of a person or an object; raises a KeyError for what the text has not mentioned."""
        holder = self.holder.get(thing, "nobody")
        return self.place[thing if holder == "nobody" else holder]


_ENGLISH = {zh: en for lists in (PEOPLE, OBJECTS, PLACES) for en, zh in zip(*lists, strict=True)}


def state_after(prefix: Iterable[int]) -> State:
    """Read a prefix [S] and keep track of the house, without the grammar. Only whole sentences count.

    It believes what the text says: `distributions` is what refuses an impossible text. Raises a ValueError for a
    sentence that says nothing.
    """
    state, sentence, meant = State(), [], {}
    for word in words_of(prefix):
        sentence.append(_ENGLISH.get(word, word))
        if word in (".", "。"):
            if not {"⇒", "?", "？"} & set(sentence):  # these change nothing
                try:
                    _read(sentence, state, meant)
                except IndexError:
                    raise ValueError(f"this sentence says nothing: {' '.join(sentence)!r}") from None
            sentence = []
    return state


def _read(sentence: list[str], state: State, meant: dict[str, str]) -> None:
    """Change the state as one statement says. `meant`: pronoun -> the person named last whom it fits."""
    sentence = [meant.get(word, word) for word in sentence]
    people, things, places = ([w for w in sentence if w in lists[0]] for lists in (PEOPLE, OBJECTS, PLACES))
    for person in people:
        woman = PEOPLE[0].index(person) % 2 == 0
        meant |= {"she": person, "她": person} if woman else {"he": person, "他": person}
    if not things:
        state.place[people[0]] = places[-1]
    elif "is put down by" in sentence or "放下了" in sentence:
        state.holder[things[0]], state.place[things[0]] = "nobody", places[0]
    else:
        state.holder[things[0]] = people[-1]  # who picks it up, or to whom it is given
        state.place.pop(things[0], None)
