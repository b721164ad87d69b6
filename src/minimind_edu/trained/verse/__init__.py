"""A MiniMind that writes regulated verse of Tang and Song, a character a token, and what is known about it.

    corpus      poems as ids, their tails, batches of one form
    rhymes      how characters sounded, by the lists of the time: what a model is measured by, never what it is told
    exam        form, tones, rhyme; whether rhyme is read at all; what is copied
    replay      the same training on an NVIDIA GPU, where a step of so small a model is recorded once and replayed
    circuit     which heads carry the rhyme, by silencing heads and by cutting edges of attention
    sounds      in which language it rhymes, the one of the old lists or today's
    storing     what of a folder of runs the package keeps: int8 rows, curves, a card
    sources     `python -m minimind_edu.trained.verse.sources` makes the corpora from named packages
    __main__    `python -m minimind_edu.trained.verse` trains

Learning goes in phases: whole poems, their tails, both, whole poems. Of whole poems alone this model learns form and
tones.
"""

import json
from functools import cache
from typing import Any

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.training import Recipe, initialize
from minimind_edu.trained.verse.corpus import BOS, EOS, FOLDER, Phase, characters
from minimind_edu.validation import check_choice
from minimind_edu.weights.checkpoints import from_checkpoint

# after all phases, and where the tails were about to begin
STORED = {"verse": FOLDER / "weights.safetensors", "before": FOLDER / "before.safetensors"}
CARD, RUNS = FOLDER / "card.json", FOLDER / "runs.json"

CONFIG = MiniMindConfig(
    vocab_size=len(characters()),
    hidden_size=128,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=352,
    head_dim=32,
    max_position_embeddings=128,
    rope_theta=1e4,
    initializer_range=0.02,
    use_qk_norm=True,
    bos_token_id=BOS,
    eos_token_id=EOS,
)
_TAILS = {"8x1": 0.32, "8x3": 0.23, "8x5": 0.33}
PHASES = {
    "whole": Phase(2_000, 2_048, {"whole": 1.0}),
    "tails": Phase(1_600, 512, {**_TAILS, "whole": 0.12}),
    "both": Phase(1_200, 2_048, {"8x1": 0.10, "8x3": 0.15, "whole": 0.75}),
    "again": Phase(3_200, 2_048, {"whole": 1.0}),
    "lesson": Phase(600, 256, {"8x1": 0.60, "8x5": 0.40}),  # half a minute of a quiet core
}
# the recipe, and what it is compared with: other orders, or no tails; the same steps, and as many tokens in each
WAYS = {
    "recipe": ("whole", "tails", "both", "again"),
    "tails_first": ("tails", "both", "whole", "again"),
    "plain": ("whole", "tails", "both", "again"),  # the same batch sizes, but whole poems throughout
    "lesson": ("lesson",),  # from weights that have read whole poems alone
}
LEARNING_RATE, WEIGHT_DECAY = 4e-3, 0.05
LESSON_RATE = 12e-3  # throughout: it does not fall


def phases(way: str = "recipe", longer: float = 1.0) -> list[Phase]:
    """The phases of a way to learn, `longer` times as many steps in each."""
    chosen = [PHASES[name] for name in WAYS[way]]
    return [
        Phase(max(1, round(phase.steps * longer)), phase.tokens, {"whole": 1.0} if way == "plain" else phase.shares)
        for phase in chosen
    ]


def first_tails(way: str) -> int:
    """Which phase of a way, counted from 0, is the first that reads tails, or would if it were not plain."""
    return next(index for index, name in enumerate(WAYS[way]) if name in ("tails", "lesson"))


def recipe(chosen: list[Phase]) -> Recipe:
    """How to train through these phases: one schedule over all of them."""
    steps = sum(phase.steps for phase in chosen)
    if len(chosen) == 1:
        return Recipe(steps, LESSON_RATE, warmup=min(30, steps), last=1.0, weight_decay=WEIGHT_DECAY)
    return Recipe(steps, LEARNING_RATE, warmup=min(100, steps // 10), weight_decay=WEIGHT_DECAY)


def new_model(seed: int) -> MiniMindForCausalLM:
    """A model that has read nothing yet; the same for a seed on every machine."""
    return initialize(MiniMindForCausalLM(CONFIG), seed)


def verse_model(name: str = "verse") -> MiniMindForCausalLM:
    """A trained model of verse, in eval mode, on the CPU; a new object each time, so that a reader may change it.

    Args:
        name: `verse`, or `before`, the same training where it has read whole poems alone: form and tones, no rhyme.

    Raises:
        ValueError: for another name.
    """
    check_choice("name", name, tuple(STORED))
    return from_checkpoint(STORED[name])


@cache
def card() -> dict[str, Any]:
    """What is known of the stored models: sizes, recipe, exams."""
    return json.loads(CARD.read_text(encoding="utf-8"))


@cache
def runs() -> dict[str, Any]:
    """What was seen of every training on its way, by its name: columns of numbers, one for each look."""
    return json.loads(RUNS.read_text(encoding="utf-8"))
