"""GuessFirst: the front page asks a question of the little world, and the reader answers before the model does.

The story is one in which a thing stays and its owner goes on. The living model knows that, and one head of sixteen is
enough to take it away: without it the thing goes along. Which head, the page finds from the model's card, as every
figure does; that it holds in both languages is tested. Nothing of the answer is here: the page computes all of it.
"""

from functools import cache
from typing import Any

from traitlets import Dict, TraitError, Unicode, default, validate

from minimind_edu import world
from minimind_edu.trained.living import living_model
from minimind_edu.web.base import Figure
from minimind_edu.world.words import IDS, TWIN, words_of

# the same story in both languages, and the question; a sentence each
STORY = (
    (
        "Mia is in the garden.",
        "the drum is picked up by Mia in the garden.",
        "she goes from the garden to the study.",
        "the drum is put down by Mia in the study.",
        "she goes from the study to the barn.",
    ),
    ("米娅在花园。", "鼓被米娅在花园拿起了。", "她从花园去书房。", "鼓被米娅在书房放下了。", "她从书房去谷仓。"),
)
QUESTION = ("where is the drum? in the", "鼓在哪里？在")
PLACES = ("garden", "study", "barn")  # where it was, where it is, where its owner is
RIGHT = "study"


def asked(story: int, question: int) -> str:
    """The text that the model reads: the story and the question, each in a language, 0 or 1."""
    return " ".join((*STORY[story], QUESTION[question]))


@cache
def texts() -> dict[str, Any]:
    """Ids and words of all that the page puts together, by language."""
    part = lambda text: {"ids": world.encode(text).tolist(), "words": words_of(world.encode(text))}  # noqa: E731
    ids = [IDS[place] for place in PLACES]
    return {
        "story": [[part(sentence) for sentence in story] for story in STORY],
        "question": [part(question) for question in QUESTION],
        "places": [ids, [place + TWIN for place in ids]],
        "names": [list(PLACES), [world.WORDS[place + TWIN] for place in ids]],
        "right": PLACES.index(RIGHT),
    }


class GuessFirst(Figure):
    """A question, three answers to guess from, and the model's own; then the head without which it is wrong.

    Args:
        page: the address of the page on which a reader goes on with the story.

    Raises:
        TraitError: if the page is another site's.
    """

    _repr_traits = ("page",)

    page = Unicode("").tag(sync=True)
    # what follows from the story and the model
    texts = Dict(read_only=True).tag(sync=True)
    sizes = Dict(read_only=True).tag(sync=True)

    @validate("page")
    def _of_the_book(self, proposal) -> str:
        if "//" in proposal["value"]:
            raise TraitError(f"page must be one of the book, got {proposal['value']!r}")
        return proposal["value"]

    @default("texts")
    def _texts_of_the_story(self) -> dict[str, Any]:
        return texts()

    @default("sizes")
    def _sizes_of_the_model(self) -> dict[str, Any]:
        config = living_model().config
        count = living_model().num_parameters()
        return {"layers": config.num_hidden_layers, "heads": config.num_attention_heads, "parameters": count}

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        return f"A story, “{asked(0, 0)}”, and three answers to guess from:", [(place, "?") for place in PLACES]
