"""StoryLens: what the trained model would say next at every word of a story, after each of its blocks.

The stream after a block goes through the final norm and the output layer at once: the logit lens (nostalgebraist 2020).
The world knows what may follow each word, so every cell also tells how far it is right. All numbers come from here.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from traitlets import Int, Unicode

from minimind_edu import world
from minimind_edu.device import one_thread
from minimind_edu.trained.living import CONFIG, living_model
from minimind_edu.web.base import Figure
from minimind_edu.web.story import OfAStory, ids_of, inputs_of

BLOCKS = CONFIG.num_hidden_layers
STORY = "Mia is in the hall. Tom is in the kitchen. Tom goes from the kitchen to the garden. where is Mia? in the"


class StoryLens(OfAStory, Figure):
    """Let the blocks of the trained model speak one after the other, at all words of a story at once.

    Args:
        story: the words, without `<s>`; 23 at most, and possible in this world.
        depth: how many blocks have read, 0 (the embedding alone) to all of them.
        word: the position that is looked at, 0 (`<s>`) to the last, which is the default.

    Raises:
        TraitError: if a word is none of this world's or impossible where it is, there are too many, or the position is
            not in the story.
    """

    _repr_traits = ("depth", "word")

    story = Unicode(STORY).tag(sync=True)
    depth = Int(BLOCKS, min=0, max=BLOCKS).tag(sync=True)

    @staticmethod
    def _read(story: str) -> dict[str, Any]:
        return reading_of(story)

    @staticmethod
    def _ids(story: str) -> np.ndarray:
        ids = ids_of(story)
        world.distributions(ids)
        return ids

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        read = self.reading
        rows = [
            (f"after {token!r}", ", ".join(word for word, _, _ in looks))
            for token, looks in zip(read["tokens"], read["said"], strict=True)
        ]
        right = ", ".join(f"{100 * share:.0f} %" for share in read["right"])
        return (
            "What the trained model would say next at each word of a story, from the embedding alone and after each of "
            f"its {BLOCKS} blocks. As much of it is right, over all words: {right}.",
            rows,
        )


@cache
@one_thread()
def reading_of(story: str) -> dict[str, Any]:
    """What the figure tells of a story of S words, `<s>` first.

    Returns:
        tokens: its words.
        said: for each word and depth, 0 (embedding) to all blocks: [likeliest next word, its probability, the part of
            all probability that is right: the sum over words of the lesser of the model's and the world's].
        truth: for each word, [likeliest next word, its exact probability by the world].
        right: for each depth, the mean over all words of the part that is right.
    """
    ids = torch.from_numpy(ids_of(story))
    model = living_model()
    with torch.no_grad():
        with inputs_of([*model.model.layers, model.model.norm]) as streams:
            model(ids[None])
        ends = torch.cat(streams)  # [L + 1, S, E]
        probabilities = model.lm_head(model.model.norm(ends)).softmax(-1)  # [L + 1, S, V]
    exact = torch.from_numpy(world.distributions(ids.numpy())).to(probabilities)  # [S, V]
    right = torch.minimum(probabilities, exact).sum(-1)  # [L + 1, S]
    likeliest, most = probabilities.max(-1), exact.max(-1)

    def cell(depth: int, at: int) -> list[Any]:
        return [
            world.WORDS[likeliest.indices[depth, at]],
            *map(_short, (likeliest.values[depth, at], right[depth, at])),
        ]

    return {
        "tokens": [world.WORDS[i] for i in ids],
        "said": [[cell(depth, at) for depth in range(BLOCKS + 1)] for at in range(len(ids))],
        "truth": [[world.WORDS[i], _short(p)] for i, p in zip(most.indices, most.values, strict=True)],
        "right": [_short(share) for share in right.mean(1)],
    }


def _short(value: torch.Tensor) -> float:
    return round(value.item(), 3)
