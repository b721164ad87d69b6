"""A small model that has learned one thing, to go on with what repeats itself: `python -m
minimind_edu.trained.living.copying`.

Its texts are random words, said again and again: after the first time, only looking back tells what comes next. The
words, and after how many of them a text begins again, differ from text to text, so neither can be learned by heart.
The program trains models of two blocks and of one, three seeds each, in four minutes of one core. It stores one of the
models with two blocks as int8 rows, and in `copying.json` how all of them read. `--steps 50 --into FOLDER` tries it.

The heads that do this are called induction heads: Olsson et al. 2022, arXiv 2209.11895.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.living import new_model
from minimind_edu.trained.living.heads import attention_weights
from minimind_edu.trained.training import Recipe, train
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

WEIGHTS = Path(__file__).parent / "copying.safetensors"
RESULTS = Path(__file__).parent / "copying.json"

CONFIG = MiniMindConfig(
    vocab_size=24,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
    intermediate_size=32,
    head_dim=16,
    max_position_embeddings=64,
    rope_theta=1e4,
    initializer_range=0.15,
    use_qk_norm=True,
    bos_token_id=None,
    eos_token_id=None,
)
RECIPE = Recipe(steps=1_000, learning_rate=1e-2)
BATCH_SIZE, LENGTH = 32, 40  # texts in a batch, words in a text
SHORTEST, LONGEST = 6, 20  # words before a text begins again
SEEDS = (0, 1, 2)
EXAM, TEXTS, WORDS = 1_000_000, 40, 15  # seed, texts, and words that each says twice


def text_batches(seed: int) -> Iterator[Tensor]:
    """Batches of texts [B, T] to learn from, each a few different words again and again, without end."""
    dice = np.random.Generator(np.random.PCG64(seed))
    while True:
        repeated = [
            dice.permutation(CONFIG.vocab_size)[: dice.integers(SHORTEST, LONGEST + 1)] for _ in range(BATCH_SIZE)
        ]
        yield torch.from_numpy(np.stack([np.resize(words, LENGTH) for words in repeated]))


def said_twice(texts: int = TEXTS, words: int = WORDS, seed: int = EXAM) -> Tensor:
    """Texts [texts, 2 * words] of different words, drawn at random and said twice."""
    dice = np.random.Generator(np.random.PCG64(seed))
    once = np.stack([dice.permutation(CONFIG.vocab_size)[:words] for _ in range(texts)])
    return torch.from_numpy(np.concatenate([once, once], axis=1))


def copying_model() -> MiniMindForCausalLM:
    """The stored model of two blocks, in eval mode, on the CPU; a new object each time."""
    return from_checkpoint(WEIGHTS)


@torch.no_grad()
def continued(model: MiniMindForCausalLM, ids: Tensor) -> float:
    """The share of the words in the second half of texts [B, S] that the model expects most; the first is no repeat."""
    half, ids = ids.shape[1] // 2, ids.to(device_of(model))
    tokens = model(ids).logits[:, half:-1].argmax(-1)
    return float((tokens == ids[:, half + 1 :]).double().mean())


def reading(model: MiniMindForCausalLM, ids: Tensor, back: int) -> Tensor:
    """The mean weight [L, H] with which words in the second half of texts [B, S] read the place so many before them."""
    at = torch.arange(ids.shape[1] // 2, ids.shape[1] - 1)
    read = [attention_weights(model, text[None].to(device_of(model)))[:, :, at, at - back].mean(-1) for text in ids]
    return torch.stack(read).mean(0)


def results() -> dict[str, Any]:
    """What is stored, for models of `2` and of `1` blocks: `continued`, and `reading` of the word after the earlier
    copy (`after`) and of the word before (`before`), for each seed."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def run(seed: int, blocks: int, recipe: Recipe) -> tuple[MiniMindForCausalLM, dict[str, Any]]:
    """One training, and how the model reads after it."""
    model = new_model(seed, dataclasses.replace(CONFIG, num_hidden_layers=blocks))
    train(model, text_batches(seed), recipe)
    texts = said_twice()
    reads = {"after": reading(model, texts, WORDS - 1), "before": reading(model, texts, 1)}
    weights_read = {name: stored.rounded(weights.tolist()) for name, weights in reads.items()}
    return model, {"seed": seed, "continued": round(continued(model, texts), 4), **weights_read}


def main() -> None:
    steps, into = stored.steps_and_place(__doc__, WEIGHTS.parent)
    recipe = dataclasses.replace(RECIPE, steps=steps or RECIPE.steps)
    runs = {blocks: [run(seed, blocks, recipe) for seed in SEEDS] for blocks in (2, 1)}
    save_checkpoint(runs[2][0][0], into / WEIGHTS.name, int8=True)
    results_of = {str(blocks): [result for _, result in of_blocks] for blocks, of_blocks in runs.items()}
    stored.write(json.dumps(results_of, indent=1) + "\n", into / RESULTS.name)
    for blocks, of_blocks in results_of.items():
        print(f"{blocks} blocks continue {[result['continued'] for result in of_blocks]} of what repeats")


if __name__ == "__main__":
    main()
