"""OfAStory: what figures share that read a story of the little world and look at one of its words."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import Tensor, nn
from traitlets import Bunch, Dict, HasTraits, Int, TraitError, Unicode, default, observe, validate

from minimind_edu import world
from minimind_edu.web.living_model import QUESTION, TOLD
from minimind_edu.web.traits import proposed

LONGEST = 24  # words of a story with `<s>`: as many rows as a window holds, and what is told of a word takes a kilobyte


class OfAStory(HasTraits):
    """The traits of such a figure; a subclass says in `_read` what the model does at each word.

    Args:
        story: the words, without `<s>`; 23 at most.
        word: the position that is looked at, 0 (`<s>`) to the last, which is the default.

    Raises:
        TraitError: if a word is none of this world's, there are too many, or the position is not in the story.
    """

    story = Unicode(f"{TOLD} {QUESTION}").tag(sync=True)
    word = Int(min=0).tag(sync=True)
    # what the package measured
    reading = Dict(read_only=True).tag(sync=True)

    @staticmethod
    def _read(story: str) -> dict[str, Any]:
        """What the figure tells of a story."""
        raise NotImplementedError

    @staticmethod
    def _ids(story: str) -> np.ndarray:
        """The ids [S] of a story that the figure takes.

        Raises:
            ValueError: if it takes none such.
        """
        return ids_of(story)

    @validate("story")
    def _readable(self, proposal: Bunch) -> str:
        try:
            count = len(self._ids(proposal["value"]))
        except ValueError as error:
            raise TraitError(str(error)) from error
        if not 2 <= count <= LONGEST:
            raise TraitError(f"story must have 1 to {LONGEST - 1} words, got {count - 1}: give a part of it")
        return proposal["value"]

    @default("word")
    def _last_word(self) -> int:
        return len(ids_of(self.story)) - 1

    @validate("word")
    def _in_the_story(self, proposal: Bunch) -> int:
        word, story = proposed(self, proposal, "word", "story")
        last = len(ids_of(story)) - 1
        if word > last:
            raise TraitError(f"word must be from 0 to {last}, the last word of the story, got {word}")
        return word

    @observe("story")
    def _read_anew(self, _: Bunch) -> None:
        self.word = min(self.word, self._last_word())
        self.set_trait("reading", self._read(self.story))

    @default("reading")
    def _reading_of_the_story(self) -> dict[str, Any]:
        return self._read(self.story)


def ids_of(story: str) -> np.ndarray:
    """The ids [S] of a story, `<s>` first."""
    return np.concatenate([[world.BOS], world.encode(story)])


@contextmanager
def inputs_of(modules: Iterable[nn.Module]) -> Iterator[list[Tensor]]:
    """What these modules are given while they run, in the order in which they do."""
    seen: list[Tensor] = []
    hooks = [module.register_forward_pre_hook(lambda _, given: seen.append(given[0])) for module in modules]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
