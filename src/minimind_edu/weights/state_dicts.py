"""One form for state dicts from many hands: our names, which are upstream's, and nothing but weights.

Training scripts wrap weights in dictionaries and put prefixes before their names; transformers 5 keeps the experts of
a mixture in two fused tensors per layer. Fused, for N experts, E and F as everywhere:

    mlp.experts.gate_up_proj  [N, 2I, E]    expert i: gate_proj is its first F rows, up_proj the other F
    mlp.experts.down_proj     [N, E, I]
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# Where training scripts put the weights, next to the optimizer's state and the step.
_WRAPPERS = ("model", "state_dict", "model_state_dict")
# Tables computed from the config; some versions of upstream and of transformers stored them.
_TABLES = ("freqs_cos", "freqs_sin", "rotary_emb.inv_freq")
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# What every MiniMind has, and its sizes are read from.
_MATRICES = ("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
             "model.layers.0.self_attn.k_proj.weight")  # fmt: skip


def canonical(content: Mapping[Any, Any], source: str) -> dict[str, Tensor]:
    """Names as in MiniMindForCausalLM.state_dict(), each expert by itself, no tables. No tensor is copied.

    Args:
        content: what a file held: a state dict, or a training script's dictionary with one in it.
        source: what messages call it.

    Raises:
        ValueError: for weights of another model, a LoRA that is not merged, quantized weights, and tensors that are
            not stored in full or share a name.
    """
    weights: dict[str, Tensor] = {}
    for stored_name, tensor in _unwrapped(content, source).items():
        name = _without_prefixes(stored_name)
        if name.endswith(_TABLES):
            continue
        if name in weights:
            raise ValueError(f"{source} holds two tensors for {name}, one of them as {stored_name}")
        _check_plain(name, tensor, source)
        weights[name] = tensor
    for name in [name for name in weights if name.endswith(".experts.gate_up_proj")]:
        weights |= _separate_experts(name.removesuffix("gate_up_proj"), weights, source)
    for name in _MATRICES:
        if name not in weights or weights[name].dim() != 2:
            raise ValueError(
                f"{source} does not hold the weights of a MiniMind: there is no matrix {name} among its {len(weights)} "
                f"tensors (the first are {', '.join(sorted(weights)[:4])})"
            )
    return weights


def _unwrapped(content: Mapping[Any, Any], source: str) -> dict[str, Tensor]:
    for wrapper in _WRAPPERS:
        if isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    tensors = {name: value for name, value in content.items() if isinstance(name, str) and isinstance(value, Tensor)}
    if not tensors:
        keys = ", ".join(map(str, list(content)[:6])) or "nothing"
        raise ValueError(f"{source} holds no named tensors; it holds {keys}")
    return tensors


def _without_prefixes(name: str) -> str:
    """torch.compile writes _orig_mod. where a compiled module begins, DistributedDataParallel module. in front."""
    name = name.replace("_orig_mod.", "")
    while name.startswith("module."):
        name = name.removeprefix("module.")
    return name


def _check_plain(name: str, tensor: Tensor, source: str) -> None:
    if "lora" in name:
        raise ValueError(
            f"{source} holds a LoRA that is not merged into its model ({name}); merge it first, with "
            "convert_merge_base_lora in upstream's scripts/convert_model.py or merge_and_unload in PEFT"
        )
    if tensor.dtype not in _FLOATS:
        raise ValueError(
            f"{source} holds {name} as {tensor.dtype}, so the weights are quantized or not a model's; read the file in "
            "half precision or float32 that they were made from"
        )
    dense = tensor.layout == torch.strided and tensor.device.type == "cpu"
    # a few stored numbers may be declared as a huge tensor, by a stride of 0, and would be copied to full size
    if not dense or not 0 < tensor.nbytes <= tensor.untyped_storage().nbytes():
        raise ValueError(
            f"{source} does not hold every number of {name} {list(tensor.shape)}: it is sparse, empty or repeated; "
            "save tensor.to_dense().contiguous()"
        )


def _separate_experts(prefix: str, weights: dict[str, Tensor], source: str) -> dict[str, Tensor]:
    """Take one layer's fused tensors out of `weights` and return its experts' own (views)."""
    gate_up, down = weights.pop(f"{prefix}gate_up_proj"), weights.pop(f"{prefix}down_proj", None)
    cubes = down is not None and gate_up.dim() == down.dim() == 3
    if down is None or not cubes or gate_up.shape != (len(down), 2 * down.shape[2], down.shape[1]):
        shapes = [None if tensor is None else list(tensor.shape) for tensor in (gate_up, down)]
        raise ValueError(
            f"{source}: {prefix}gate_up_proj must be [N, 2I, E] and {prefix}down_proj [N, E, I], got {shapes[0]} and "
            f"{shapes[1]}"
        )
    separate = {}
    for index in range(len(gate_up)):
        gate, up = gate_up[index].chunk(2)  # [2I, E] -> 2 x [I, E]
        projections = {"gate_proj": gate, "up_proj": up, "down_proj": down[index]}  # down [E, I]
        separate |= {f"{prefix}{index}.{name}.weight": value for name, value in projections.items()}
    return separate
