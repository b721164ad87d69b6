"""MiniMindLive: the book's own trained model at work on a story that the reader composes, and open in all its parts.

In a page the model runs in JavaScript (live/model.js) from the stored weights, and the rules of its world beside
it (live/world.js); both arrive after the first picture. What that picture shows, the words and the
probabilities of the first story, is computed here from the same bytes, so that a still of it tells the truth.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from traitlets import Bool, Bunch, Dict, TraitError, Unicode, default, validate

from minimind_edu import world
from minimind_edu.figures import model_map
from minimind_edu.figures.guess_first import QUESTION, STORY
from minimind_edu.trained.living import LENGTH, card, living_model
from minimind_edu.web.base import Figure
from minimind_edu.world.tables import tables

# The stories of the seven presses, in both languages: the one of the front page goes on here. And three to begin with.
# A story ends where its next word is worth a look.
STORIES: dict[str, Any] = {
    "told": [" ".join(sentences) for sentences in STORY],
    "question": QUESTION,
    "owner": ["where is Mia? in the", "米娅在哪里？在"],
    "translation": ["⇒ 米娅从书房去", "⇒ Mia goes from the study to the"],  # of the last sentence
    "unknown": ["where is Zoe? in the", "佐伊在哪里？在"],  # the story has no Zoe
    "examples": [
        "Mia is in the hall. Tom is in the hall. the ball is picked up by Mia in the hall. "
        "the ball is given by Mia to Tom. 谁拿着球？",
        "Zoe is in the barn. the key is picked up by Zoe in the barn. Zoe goes from the barn to the study. "
        "钥匙在哪里？在",
        "安娜在阁楼。马克在地窖。安娜从阁楼去车库。 where is everybody? Mark: cellar, Anna:",
    ],
}
LINKED = (*model_map.PARTS, "whole", "training", "speed", "bytes")  # what leads to the chapter that teaches it
BARS = 7  # words that are drawn: the likeliest ones


@cache
def next_words(story: str) -> list[tuple[str, float, float]]:
    """The likeliest words after a story: the word, its probability by the model, and the exact one of the world."""
    ids = world.encode(f"<s> {story}")
    with torch.no_grad():
        probabilities = living_model()(torch.from_numpy(ids)[None]).logits[0, -1].softmax(-1)
    exact = world.next_word_distribution(ids)
    likeliest = probabilities.argsort(descending=True, stable=True)[:BARS].tolist()
    return [(world.WORDS[word], probabilities[word].item(), float(exact[word])) for word in likeliest]


class MiniMindLive(Figure):
    """Compose a story, ask about it, and look inside the trained model while it answers.

    Args:
        story: the words to begin with, without `<s>`; default the story of the front page with its question, on a
            Chinese page in Chinese.
        links: one of LINKED -> {"href", "label"} of its chapter.
        in_url: whether the page's address holds the story, as `#story=…`.
        page: with `compact`, the address of the page that has the whole figure.

    Raises:
        ValueError: if the story has a word that is none of this world's, or words in an impossible order.
        TraitError: if a link is not one of a part of the model.
    """

    _repr_traits = ("story", "compact")

    story = Unicode().tag(sync=True)
    links = Dict().tag(sync=True)
    in_url = Bool(False).tag(sync=True)
    page = Unicode("").tag(sync=True)
    # what follows from the story, the weights and the world
    first = Dict(read_only=True).tag(sync=True)
    world = Dict(read_only=True).tag(sync=True)
    stories = Dict(read_only=True).tag(sync=True)
    sizes = Dict(read_only=True).tag(sync=True)

    @default("story")
    def _story_of_the_book(self) -> str:
        return f"{STORIES['told'][0]} {STORIES['question'][0]}"

    @validate("story")
    def _possible(self, proposal: Bunch) -> str:
        next_words(proposal["value"])
        return proposal["value"]

    @validate("links")
    def _of_parts(self, proposal: Bunch) -> model_map.Links:
        for part, link in proposal["value"].items():
            if part not in LINKED or not isinstance(link, Mapping) or set(link) != {"href", "label"}:
                raise TraitError(
                    f"links must give href and label of parts ({', '.join(LINKED)}), got {part!r}: {link!r}"
                )
        return proposal["value"]

    @default("first")
    def _first_picture(self) -> dict[str, Any]:
        return {"story": self.story, "bars": [list(row) for row in next_words(self.story)]}

    @default("world")
    def _tables_of_the_world(self) -> dict[str, Any]:
        return tables()

    @default("stories")
    def _stories_of_the_presses(self) -> dict[str, Any]:
        return STORIES

    @default("sizes")
    def _sizes_of_the_model(self) -> dict[str, Any]:
        config = living_model().config
        return {
            "parameters": card()["parameters"],
            "trained": LENGTH,
            "layers": config.num_hidden_layers,
            "heads": config.num_attention_heads,
            "kv_heads": config.num_key_value_heads,
            "head_dim": config.head_dim,
        }

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = [
            (word, f"{100 * share:.1f} %, by the rules {100 * exact:.1f} %")
            for word, share, exact in self.first["bars"]
        ]
        return f"What comes next after “{self.story}”, by the trained model and by the rules of its world:", rows
