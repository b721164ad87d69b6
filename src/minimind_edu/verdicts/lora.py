"""Adapters: what a LoRA adds to which matrix, and how often that was added to a merged model.

    W + s * B @ A,   A [r, in], B [out, r]

MiniMind's own files have names that end in `.lora.A.weight`, and s = 1; PEFT's end in `.lora_A.weight`, and s is
alpha / r of the adapter_config.json beside. Merged once, a matrix is W + s B A; into what was merged, W + 2 s B A.
MiniMind: `model/model_lora.py`.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.verdicts.verdict import Verdict
from minimind_edu.weights.files import SUFFIXES, read_json, read_weights

_NAME = re.compile(r"(?:base_model\.model\.)?(?P<part>.+?)\.lora(?:\.|_)(?P<factor>[AB])(?:\.default)?\.weight")
_PREFIXES = re.compile(r"\b(?:_orig_mod|module)\.")
_HALF = 2**-8  # the relative rounding of bfloat16, the coarser half precision
_REFUSED = {"use_dora": "DoRA", "use_rslora": "rank-stabilized LoRA"}  # of PEFT: they add something else


def read_lora(place: Path) -> dict[str, Tensor]:
    """What an adapter adds, `[out, in]` in float32, by the names of the model's matrices.

    Raises:
        FileNotFoundError, ValueError: if it holds no LoRA, or one that adds something else.
    """
    file = place / "adapter_model.safetensors" if place.is_dir() else place
    if not file.is_file():
        raise FileNotFoundError(f"there is no adapter {file}")
    if file.suffix not in SUFFIXES:
        raise ValueError(f"an adapter is read from {', '.join(SUFFIXES)} or PEFT's folder, got {place.name!r}")
    content = read_weights(file).content
    factors: dict[str, dict[str, Tensor]] = {}
    for name, tensor in content.items():
        if isinstance(tensor, Tensor) and (found := _NAME.fullmatch(_PREFIXES.sub("", str(name)))):
            factors.setdefault(f"{found['part']}.weight", {})[found["factor"]] = tensor.float()
    if not factors:
        first = ", ".join(map(str, list(content)[:2]))
        raise ValueError(f"{place} holds no LoRA: no name ends in .lora.A.weight or .lora_A.weight (it has {first})")
    scale = _scale(file)
    added = {}
    for name, pair in factors.items():
        if pair.keys() != {"A", "B"} or pair["A"].dim() != 2 or pair["B"].shape[1:] != pair["A"].shape[:1]:
            raise ValueError(f"{place}: {name} needs A [r, in] and B [out, r] of one rank r")
        added[name] = scale * (pair["B"] @ pair["A"])
    return added


def _scale(file: Path) -> float:
    described = file.with_name("adapter_config.json")
    if not described.is_file():
        return 1.0
    settings = read_json(described)
    for name, kind in _REFUSED.items():
        if settings.get(name):
            raise ValueError(f"{described} says {name}, so it is {kind}, which adds something else than B A")
    return float(settings.get("lora_alpha", 1)) / float(settings.get("r", 1))


def add_once(model: MiniMindForCausalLM, added: Mapping[str, Tensor]) -> MiniMindForCausalLM:
    """The model in float32 with an adapter merged into it, once; the one that was given is left as it was.

    Args:
        added: as `read_lora` returns it.

    Raises:
        ValueError: if the adapter is for other matrices.
    """
    weights = {name: tensor.float() for name, tensor in model.state_dict().items()}
    _check_fits(weights, added)
    whole = MiniMindForCausalLM(model.config)
    whole.load_state_dict(weights | {name: weights[name] + delta for name, delta in added.items()})
    return whole.eval()


def _check_fits(base: Mapping[str, Tensor], added: Mapping[str, Tensor]) -> None:
    for name, delta in added.items():
        if name not in base or base[name].shape != delta.shape:
            shape = list(base[name].shape) if name in base else None
            raise ValueError(f"the adapter is for {name} {list(delta.shape)}, and the model has there {shape}")


def times_merged(base: Mapping[str, Tensor], merged: Mapping[str, Tensor], added: Mapping[str, Tensor]) -> float:
    """How often `added` lies between two models, by least squares over all its matrices."""
    _check_fits(base, added)
    above = below = 0.0
    for name, delta in added.items():
        difference = merged[name].double() - base[name].double()
        above += float((difference * delta.double()).sum())
        below += float(delta.double().square().sum())
    if below == 0:
        raise ValueError("the adapter adds nothing: its B is zero, as before the first step of training")
    return above / below


def merged(base: Mapping[str, Tensor], model: Mapping[str, Tensor], added: Mapping[str, Tensor]) -> Verdict:
    """Whether a model is its base and the adapter, added once.

    Args:
        base, model: tensors by name, in float32; `model` is said to be merged.
        added: as `read_lora` returns it.
    """
    times = times_merged(base, model, added)
    if not math.isfinite(times):
        return Verdict("LoRA", "wrong", "the adapter holds NaN or infinity", "take a file from before")
    others = [name for name in base if name not in added and not _close(base[name], model[name])]
    rest = sum(
        float((model[name].double() - base[name].double() - times * delta.double()).square().sum())
        for name, delta in added.items()
    )
    size = sum(float((times * delta.double()).square().sum()) for delta in added.values())
    size += sum(float((_HALF * base[name].double()).square().sum()) for name in added)  # what rounding may leave
    strange = f"; but {len(others)} matrices differ that it does not touch, first {others[0]}" if others else ""
    finding = f"between the two models it lies {times:.3f} times, over {len(added)} matrices{strange}"
    if len(counts := _counts(base, model, added)) > 1:
        found = ", ".join(f"{count} times in {len(names)}" for count, names in sorted(counts.items()))
        first = min(counts.values(), key=len)[0]
        advice = "merge all of it, once, into the base"
        return Verdict("LoRA", "wrong", f"of its {len(added)} matrices it lies {found}, such as {first}", advice)
    if abs(times - round(times)) > 0.1 or (size and rest > size):
        advice = "so it is another adapter, another base, or was added with another scale"
        return Verdict("LoRA", "wrong", finding, advice)
    advice = {
        0: "it was not merged: the model is its base. merge_lora, or convert_merge_base_lora, adds it",
        1: "",
        -1: "the two files are in the wrong order: check MERGED --same-as BASE",
    }.get(round(times), f"merged {round(times)} times, and every further time adds it again: merge once into the base")
    return Verdict("LoRA", "fine" if round(times) == 1 and not others else "wrong", finding, advice)


def _counts(
    base: Mapping[str, Tensor], model: Mapping[str, Tensor], added: Mapping[str, Tensor]
) -> dict[int, list[str]]:
    """How often each matrix was merged -> which; nothing where that is no whole number."""
    counts: dict[int, list[str]] = {}
    for name, delta in added.items():
        if not delta.any():
            continue
        times = times_merged(base, model, {name: delta})
        if abs(times - round(times)) > 0.1:
            return {}
        counts.setdefault(round(times), []).append(name)
    return counts


def _close(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same but for the rounding of half precision, in each number."""
    return bool(((a - b).abs() <= _HALF * a.abs() + 1e-7).all())


def rank_of_difference(a: Tensor, b: Tensor) -> int | None:
    """The rank of what lies between two matrices, where it is low: as between a model and one with a merged LoRA.

    Rounding leaves a floor of singular values; those of a LoRA stand out of it.
    """
    values = torch.linalg.svdvals(a.float() - b.float())
    if float(values[0]) == 0:
        return None
    rank = int((values > 5 * values.median()).sum())
    share = float(values[:rank].square().sum() / values.square().sum())
    return rank if 0 < rank <= len(values) // 2 and share > 0.8 else None
