"""Logs as MiniMind's trainers write them, of curves with stated numbers; data files and adapters as readers have them.

The situations and their numbers are those that people told in threads of MiniMind's repository; the curves between the
numbers, and all texts, are made here.
"""

import json
import math
import random

import torch
from model_builders import spread_weights, tiny_config

from minimind_edu import MiniMindForCausalLM

NAN = math.nan


def curve(*places, every=100, noise=0.0, seed=0):
    """Losses at every so many steps, through (step, loss) places, straight in the logarithm of the step."""
    source = random.Random(seed)
    steps = range(places[0][0], places[-1][0] + 1, every)
    found = []
    for step in steps:
        (a, low), (b, high) = next(
            pair for pair in zip(places, places[1:], strict=False) if pair[0][0] <= step <= pair[1][0]
        )
        share = (math.log1p(step) - math.log1p(a)) / (math.log1p(b) - math.log1p(a))
        found.append((step, low + share * (high - low) + source.gauss(0, noise)))
    return found


def line(step, loss, form="2025", rate=5e-4, epochs=1, iterations=10000, **more):
    """One line of a trainer of 2024 and 2025, or of one of 2026."""
    epoch, within = divmod(step, iterations)
    if form == "2025":
        return f"Epoch:[{epoch + 1}/{epochs}]({within}/{iterations}) loss:{loss:.6f} lr:{rate:.12f} epoch_Time:9.0min:"
    fields = {"loss": loss, "logits_loss": loss, "aux_loss": 0.0, **more}  # None: the loss once more
    told = ", ".join(f"{name}: {loss if value is None else value:.4f}" for name, value in fields.items())
    return f"Epoch:[{epoch + 1}/{epochs}]({within}/{iterations}), {told}, lr: {rate:.8f}, epoch_time: 9.0min"


def write_log(path, places, **options):
    """A log of (step, loss) pairs; a text among them stands as it is."""
    lines = [place if isinstance(place, str) else line(*place, **options) for place in places]
    path.write_text("\n".join(["Model Params: 25.83M", *lines]) + "\n", encoding="utf-8")
    return path


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def chat(question="谁在厨房？", answer="米娅在厨房。", **more):
    return {"conversations": [{"role": "user", "content": question}, {"role": "assistant", "content": answer, **more}]}


def pair(question="谁在厨房？", chosen="米娅在厨房。", rejected="没有人。"):
    sides = {"chosen": chosen, "rejected": rejected}
    return {name: chat(question, answer)["conversations"] for name, answer in sides.items()}


def adapter(model, rank=4, size=0.05, seed=1):
    """A LoRA for the square matrices of a model, in MiniMind's names, and what it adds to each."""
    generator = torch.Generator().manual_seed(seed)
    stored, added = {}, {}
    for name, weight in model.state_dict().items():
        if name.endswith(("q_proj.weight", "o_proj.weight")) and weight.shape[0] == weight.shape[1]:
            a, b = (
                size * torch.randn(*shape, generator=generator)
                for shape in ((rank, weight.shape[1]), (weight.shape[0], rank))
            )
            part = name.removesuffix(".weight")
            stored |= {f"{part}.lora.A.weight": a, f"{part}.lora.B.weight": b}
            added[name] = b @ a
    return stored, added


def merged(state, added, times=1):
    return {name: tensor + times * added[name] if name in added else tensor.clone() for name, tensor in state.items()}


def write_merged(folder, times):
    """A base, a LoRA, and the base with it merged so often, as float16; how the command is asked about them."""
    model = MiniMindForCausalLM(tiny_config("minimind2", num_attention_heads=8, num_key_value_heads=8)).eval()
    spread_weights(model)
    stored, added = adapter(model)
    states = {"base": model.state_dict(), "merged": merged(model.state_dict(), added, times), "lora_identity": stored}
    for name, state in states.items():
        torch.save({key: tensor.half() for key, tensor in state.items()}, folder / f"{name}.pth")
    return [folder / "merged.pth", "--same-as", folder / "base.pth", "--lora", folder / "lora_identity.pth"]
