"""Whether a file of weights is what its owner believes, one function for each question."""

import itertools
import math
import re
from collections import Counter
from typing import Any

import torch

from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.verdicts.engines import against_llama_cpp, against_transformers
from minimind_edu.verdicts.opened import Opened
from minimind_edu.verdicts.verdict import Verdict
from minimind_edu.weights.checkpoints import read_checkpoint
from minimind_edu.weights.infer_config import infer_config
from minimind_edu.weights.without_storage import without_storage

HEADS, BASES = (4, 8, 16), (1e4, 1e6)  # that MiniMinds have had, and Llamas of their size
# Two sentences of this book, which no training has seen by heart.
SENTENCES = (
    "The model reads this sentence from left to right, and at every token it says what comes next.",
    "模型从左到右读这句话，每读一个词，就说出接下来会是什么。",
)


def check_file(opened: Opened, tokenizer: Any = None) -> list[Verdict]:
    """Every verdict on one file.

    Args:
        opened: as `opened.open_weights` returns it.
        tokenizer: a tokenizer of transformers that belongs to the model; None: no text is read.
    """
    looks = [family(opened), tensors(opened), numbers(opened), precision(opened)]
    if opened.model is not None:
        looks += [tying(opened), assumptions(opened), training(opened)]
        if looks[2].grade != "wrong":
            looks += [against_transformers(opened), against_llama_cpp(opened), text(opened, tokenizer)]
    return [verdict for verdict in looks if verdict]


def family(opened: Opened) -> Verdict:
    """Whose model it is, of what age, and by what that was told."""
    total = sum(tensor.numel() for tensor in opened.tensors.values())
    if opened.model is not None:
        total, config = opened.model.num_parameters(), opened.model.config
        size = f"{total / 1e6:,.1f} million weights, {config.num_hidden_layers} blocks {config.hidden_size} wide, "
        size += f"{config.num_attention_heads} heads of queries and {config.num_key_value_heads} of keys, "
        size += f"{config.vocab_size:,} tokens"
    else:
        size = f"{total / 1e6:,.1f} million weights"
    return Verdict("family", "fine", f"{opened.family}; told {opened.how}: {size}")


def tensors(opened: Opened) -> Verdict:
    """Which tensors are missing, or none of the model's."""
    missing, unknown = missing_and_unknown(opened)
    if missing or unknown:
        first = (*missing, *unknown)[0]
        return Verdict(
            "tensors",
            "wrong",
            f"{len(missing)} are missing and {len(unknown)} are none of this model's, of {len(opened.tensors)} in the "
            f"file; the first is {first}",
            "the file is of another model, or not whole. load_state_dict(strict=False) would pass over this and leave "
            "those parts as they were drawn",
        )
    if opened.refusal:
        return Verdict(
            "tensors", "wrong", f"no model fits: {opened.refusal}", "give the config.json that belongs to it"
        )
    return Verdict("tensors", "fine", f"all {len(opened.tensors)} are there, and none besides")


def missing_and_unknown(opened: Opened) -> tuple[list[str], list[str]]:
    """The names that a model of these shapes has and the file does not, and the other way round."""
    try:
        config = opened.model.config if opened.model else infer_config(opened.tensors)
        expected = without_storage(config).state_dict()
    except (ValueError, KeyError, RuntimeError):
        return [], []  # `refusal` tells
    missing = [name for name in expected if name not in opened.tensors and name != "lm_head.weight"]
    return missing, [name for name in opened.tensors if name not in expected]


def numbers(opened: Opened) -> Verdict:
    """Whether every weight is a finite number."""
    bad, largest = [], 0.0
    for name, tensor in opened.tensors.items():
        low, high = (float(value) for value in tensor.float().aminmax())
        if math.isfinite(low) and math.isfinite(high):
            largest = max(largest, -low, high)
        else:
            bad.append(name)
    if bad:
        broken = opened.tensors[bad[0]]
        count = int((~broken.isfinite()).sum())
        return Verdict(
            "NaN",
            "wrong",
            f"{len(bad)} of {len(opened.tensors)} tensors hold NaN or infinity; the first, {bad[0]}, in {count:,} of "
            f"{broken.numel():,} numbers",
            "nothing mends it: take a file from before, and look in the log (--log) where the loss was no number",
        )
    return Verdict("NaN", "fine", f"none, and no infinity; the largest weight is {largest:.3g}")


def precision(opened: Opened) -> Verdict:
    """How many bits a weight has."""
    if opened.kinds:
        return Verdict("precision", "fine", f"matrices as {', '.join(opened.kinds)}")
    count = Counter(f"{tensor.dtype}".removeprefix("torch.") for tensor in opened.tensors.values())
    finding = ", ".join(f"{name} × {number}" for name, number in count.most_common())
    return Verdict("precision", "fine", f"tensors by their dtype: {finding}")


def tying(opened: Opened) -> Verdict:
    """Whether one matrix reads tokens and scores them."""
    assert opened.model is not None
    config, head = opened.model.config, opened.tensors.get("lm_head.weight")
    numbers = config.vocab_size * config.hidden_size
    if config.tie_word_embeddings:
        stored = "stored once" if head is None else "stored twice, equal"
        return Verdict("tying", "fine", f"one matrix reads tokens and scores them (tied), {stored}")
    if head is not None and not head.isfinite().all():
        return Verdict("tying", "open", "lm_head holds NaN or infinity, so nothing tells whether it is the embedding")
    finding = f"two matrices (untied): {numbers / 1e6:.1f} million weights more than a tied model"
    if opened.family.startswith("MiniMind2"):
        return Verdict(
            "tying", "look", finding, "MiniMind has always tied them until 2026-04-19: which program has parted them?"
        )
    return Verdict("tying", "fine", finding)


def assumptions(opened: Opened) -> Verdict:
    """What nothing in the file says."""
    if not opened.assumed:
        return Verdict("assumed", "fine", "nothing: files and shapes say it all")
    values = ", ".join(f"{name}={value}" for name, value in opened.assumed.items())
    advice = "if you trained with others, put its config.json beside it: wrong heads or rope_theta raise no error"
    if opened.aside:
        advice = "the config.json beside it tells of another model, and is left aside: put the right one there"
    return Verdict("assumed", "look", f"not in the file, so taken as MiniMind has it: {values}", advice)


def training(opened: Opened) -> Verdict:
    """Whether these weights have been trained at all: new norms have gains of exactly 1."""
    if not any(tensor.any() for tensor in opened.tensors.values() if tensor.dim() == 2):
        advice = "the file was made but never filled: take the one that training wrote"
        return Verdict("trained", "wrong", "every matrix is 0", advice)
    gains = [tensor.float() for name, tensor in opened.tensors.items() if re.search(r"norm\.weight$", name)]
    low, high = min(float(gain.min()) for gain in gains), max(float(gain.max()) for gain in gains)
    if low == high == 1:
        return Verdict(
            "trained",
            "look",
            "every gain of every norm is exactly 1: no step of training has touched them",
            "is this the file that training wrote, and were the norms in the optimizer?",
        )
    return Verdict("trained", "fine", f"gains of norms, 1 in a new model, go from {low:.3g} to {high:.3g}")


def text(opened: Opened, tokenizer: Any) -> Verdict | None:
    """Whether the model expects a plain text more than chance does: a tokenizer of another model would show here."""
    if tokenizer is None:
        return None
    model = opened.whole
    size, chance = len(tokenizer), math.log(model.config.vocab_size)
    if size > model.config.vocab_size:
        return Verdict(
            "text",
            "wrong",
            f"the tokenizer has {size:,} tokens, and the model {model.config.vocab_size:,}",
            "it belongs to another model: MiniMind's changed on 2026-03-24",
        )
    costs = costs_of(model, tokenizer)
    finding = f"two sentences, English and Chinese, cost {costs[0]:.1f} and {costs[1]:.1f} nats a token; a blind guess "
    finding += f"costs {chance:.1f}"
    if better := better_reading(opened, tokenizer, sum(costs)):
        settings, others = better
        values = ", ".join(f"{name}={value:g}" for name, value in settings.items())
        finding += f"; with {values} they would cost {others[0]:.1f} and {others[1]:.1f}"
        return Verdict(
            "text", "wrong", finding, "so what was assumed is wrong: write these values into a config.json beside"
        )
    if min(costs) > chance - 0.5:
        return Verdict(
            "text",
            "wrong",
            finding,
            "the model knows neither: another's tokenizer, wrong heads or rope_theta, or no training",
        )
    return Verdict("text", "fine", finding)


def costs_of(model: MiniMindForCausalLM, tokenizer: Any) -> list[float]:
    """The loss of each sentence, in nats a token."""
    costs = []
    for sentence in SENTENCES:
        ids = torch.tensor([tokenizer(sentence, add_special_tokens=False).input_ids])
        with torch.no_grad():
            costs.append(float(model(ids, labels=ids).loss))
    return costs


def better_reading(opened: Opened, tokenizer: Any, cost: float) -> tuple[dict[str, float], list[float]] | None:
    """Heads and RoPE base by which the sentences cost clearly less, where both were only assumed."""
    found, readings = None, []
    for heads, theta in itertools.product(HEADS, BASES):
        settings = {"num_attention_heads": heads, "rope_theta": theta}
        readings.append({name: value for name, value in settings.items() if opened.assumed.get(name, value) != value})
    for settings in sorted(filter(None, readings), key=len):  # what changes less goes first
        try:
            costs = costs_of(read_checkpoint(opened.place, **settings).model.float(), tokenizer)
        except ValueError:  # these heads do not fit the shapes
            continue
        if sum(costs) < cost - 1:
            found, cost = (settings, costs), sum(costs)
    return found
