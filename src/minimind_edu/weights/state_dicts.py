"""One form for state dicts from many hands: our names, which are upstream's, and nothing but weights.

Training scripts wrap weights in other things and write prefixes before their names; transformers 5 keeps the experts
of a mixture in two fused tensors a layer. Fused, for N experts, E and F as everywhere:

    mlp.experts.gate_up_proj  [N, 2F, E]    expert i: gate_proj = its first F rows, up_proj = the others
    mlp.experts.down_proj     [N, E, F]
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# Where training scripts put the weights, beside the optimizer's state, the step, and so on.
_WRAPPERS = ("model", "state_dict", "model_state_dict", "module")
# Tables computed from the config; some versions of upstream and of transformers stored them.
_TABLES = ("freqs_cos", "freqs_sin", "rotary_emb.inv_freq")
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def canonical(content: Mapping[str, Any], source: str = "the state dict") -> dict[str, Tensor]:
    """Names as in MiniMindForCausalLM.state_dict(), each expert by itself, no tables. No tensor is copied.

    Args:
        content: what a file held: a state dict, or a training script's dictionary with one in it.
        source: how to call it in messages.

    Raises:
        ValueError: for weights of another kind: LoRA alone or not yet merged, quantized, or not named like ours.
    """
    named = {_without_prefixes(name): value for name, value in _unwrapped(content, source).items()}
    if "embed_tokens.weight" in named:  # MiniMindModel's own, without an output matrix
        named = {f"model.{name}": value for name, value in named.items()}
    weights = {name: value for name, value in named.items() if not name.endswith(_TABLES)}
    _check_kind(weights, source)
    for name in [name for name in weights if name.endswith(".experts.gate_up_proj")]:
        weights |= _separate_experts(name.removesuffix("gate_up_proj"), weights)
    return weights


def _unwrapped(content: Mapping[str, Any], source: str) -> dict[str, Tensor]:
    for wrapper in _WRAPPERS:
        if isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    tensors = {name: value for name, value in content.items() if isinstance(value, Tensor)}
    if not tensors:
        keys = ", ".join(map(str, list(content)[:6])) or "nothing"
        raise ValueError(f"{source} holds no tensors under names; it holds {keys}")
    return tensors


def _without_prefixes(name: str) -> str:
    """torch.compile writes _orig_mod. where a compiled module begins, DistributedDataParallel module. in front."""
    name = name.replace("_orig_mod.", "")
    while name.startswith("module."):
        name = name.removeprefix("module.")
    return name


def _check_kind(weights: Mapping[str, Tensor], source: str) -> None:
    lora = [name for name in weights if ".lora." in name or "lora_A" in name or "lora_B" in name]
    if lora:
        held = "only the low-rank corrections of a LoRA" if len(lora) == len(weights) else (
            "a model with a LoRA that is not merged into it"
        )  # fmt: skip
        raise ValueError(
            f"{source} holds {held} ({lora[0]}, ...). Add B @ A of each to its base weight first "
            "(convert_merge_base_lora in upstream's scripts/convert_model.py, merge_and_unload in PEFT), "
            "and read the merged weights"
        )
    if "tok_embeddings.weight" in weights:
        raise ValueError(
            f"{source} holds weights of the first MiniMind (tok_embeddings, attention.wq, ...), before MiniMind2's "
            "present names; their layers are built differently and are not read here"
        )
    other = sorted({str(value.dtype) for value in weights.values()} - set(map(str, _FLOATS)))
    if other:
        raise ValueError(
            f"{source} holds {', '.join(other)}: quantized weights, or none of a model; "
            "read the file in half precision or float32 that they were made from"
        )


def _separate_experts(prefix: str, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Take one layer's fused tensors out of `weights` and return its experts' own (views)."""
    fused = weights.pop(f"{prefix}gate_up_proj"), weights.pop(f"{prefix}down_proj", None)
    separate = {}
    for index, gate_up in enumerate(fused[0]):
        gate, up = gate_up.chunk(2)  # [2F, E] -> 2 x [F, E]
        separate[f"{prefix}{index}.gate_proj.weight"] = gate
        separate[f"{prefix}{index}.up_proj.weight"] = up
        if fused[1] is not None:
            separate[f"{prefix}{index}.down_proj.weight"] = fused[1][index]  # [E, F]
    return separate
