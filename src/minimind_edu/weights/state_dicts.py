"""One form for state dicts from many hands: our names, which are upstream's, and nothing but weights.

Training programs wrap weights in dictionaries (DeepSpeed's `module`, Lightning's `state_dict`, ...) and put prefixes
before their names; transformers 5 keeps the experts of a mixture in two fused tensors per layer. Fused, for N experts,
E and F as everywhere:

    mlp.experts.gate_up_proj  [N, 2I, E]    expert i: gate_proj is its first F rows, up_proj the other F
    mlp.experts.down_proj     [N, E, I]

Whatever the wrapper is called, the one language model in a file is taken; of two none is chosen.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from minimind_edu.weights import older

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"
_QUERY, _KEY = (f"model.layers.0.self_attn.{name}_proj.weight" for name in "qk")
_LAYERS_OF_WRAPPERS = 3  # dictionaries in dictionaries: what is deeper is no state dict
# Parts of names that torch.compile, DistributedDataParallel, FSDP, checkpointing of activations and Lightning put in.
_PREFIXES = ("_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")
# Tables computed from the config; some versions of upstream, of Llama and of transformers stored them. torch's own
# AveragedModel counts what it averaged.
_TABLES = ("n_averaged", "freqs_cos", "freqs_sin", "rotary_emb.inv_freq", "pos_cis", "rope.freqs", "attention.mask")
_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
# What is told by its name: a pattern, what holds such a tensor, and what helps.
_FOREIGN = (
    (r"lora", "a LoRA that is not merged into its model", "merge it first, with convert_merge_base_lora in upstream's "
     "scripts/convert_model.py or merge_and_unload in PEFT"),
    (r"qweight|qzeros|g_idx|\.scales$|absmax|quant_map|quant_state|\.SCB$|weight_format|weight_scale|weight_packed",
     "quantized weights, of GPTQ, AWQ or bitsandbytes, say", "read what they were made from"),
    (r"(^|[._])(value_head|v_head|reward|rm_head|score|classifier)(?!_correction)", "a critic or a reward model",
     "its output is a score, and only a model that writes tokens is read"),
    (r"vision|visual|image|audio|multi_modal", "a model that sees or hears", "only a model of text is read"),
    (r"[._]bias$", "biases", "no MiniMind has any, nor what else is read here"),
)  # fmt: skip


class Weights(dict[str, Tensor]):
    """Tensors under our names."""

    interleaved = False  # rows of q_proj and k_proj lie as RoPE turned them before 2025-04-26: older.py


def canonical(content: Mapping[Any, Any], source: str) -> Weights:
    """Names as in MiniMindForCausalLM.state_dict(), each expert by itself, no tables. No tensor is copied.

    Of tied matrices a file may hold either alone: it is the embedding here.

    Args:
        content: what a file held: a state dict, or a training script's dictionary with one in it.
        source: what messages call it.

    Raises:
        ValueError: for weights of another model or of several, a LoRA that is not merged, quantized weights, and
            tensors that are not stored in full or share a name.
    """
    weights = Weights()
    for stored_name, tensor in _unwrapped(content, source).items():
        name = _without_prefixes(stored_name)
        if name.endswith(_TABLES):
            continue
        if name in weights:
            raise ValueError(f"{source} holds two tensors for {name}, one of them as {stored_name}")
        _check_plain(name, tensor, source)
        weights[name] = tensor
    _rename(weights, source)
    for name in [name for name in weights if name.endswith(".experts.gate_up_proj")]:
        weights.update(_separate_experts(name.removesuffix("gate_up_proj"), weights, source))
    if _EMBEDDING not in weights and _HEAD in weights:
        weights[_EMBEDDING] = weights.pop(_HEAD)
    for name in (_EMBEDDING, _QUERY, _KEY):
        if name not in weights or weights[name].dim() != 2:
            body = any(name.startswith("layers.0.self_attn.") for name in weights)
            raise ValueError(
                f"{source} does not hold the weights of a MiniMind: there is no matrix {name} among its {len(weights)} "
                f"tensors (the first are {', '.join(sorted(weights)[:4])})"
                f"{'; without its lm_head a model cannot write, so save the whole one' if body else ''}"
            )
    return weights


def _unwrapped(content: Mapping[Any, Any], source: str) -> dict[str, Tensor]:
    """The tensors of the one dictionary with a language model, or of the largest."""
    places = list(_dictionaries(content))
    models = [(place, root) for place, tensors in places for root in sorted(_roots(tensors))]
    if len(models) > 1:
        called = [".".join((*place, f"{root}*"))[:80] for place, root in models]
        raise ValueError(
            f"{source} holds {len(models)} models ({', '.join(called[:4])}); which one is meant, you know: save it "
            "alone, with torch.save(its_state_dict, path)"
        )
    if not places:
        keys = ", ".join(f"{key}"[:40] for key in list(content)[:6]) or "nothing"
        raise ValueError(f"{source} holds no named tensors; it holds {keys}")
    if not models:
        return max((tensors for _, tensors in places), key=len)
    for place, tensors in places:
        if place != models[0][0] and any(".".join((*place, name)).endswith(_HEAD) for name in tensors):
            raise ValueError(f"{source} holds {_HEAD} apart from the rest of its model; save them in one state dict")
    return next(tensors for place, tensors in places if place == models[0][0])


def _dictionaries(content: Mapping[Any, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Tensor]]]:
    """Every dictionary with named tensors in a training program's dictionary, outside the optimizers' state."""
    found: list[tuple[tuple[str, ...], Mapping[Any, Any]]] = [((), content)]
    seen: set[int] = set()  # a pickle may hold one dictionary a billion times
    for place, here in found:
        if id(here) in seen:
            continue
        seen.add(id(here))
        tensors = {key: value for key, value in here.items() if isinstance(key, str) and isinstance(value, Tensor)}
        if tensors:
            yield place, tensors
        if len(place) < _LAYERS_OF_WRAPPERS:
            found += [
                ((*place, str(key)), value)
                for key, value in here.items()
                if isinstance(value, Mapping) and "optim" not in str(key).lower()
            ]


def _roots(tensors: Mapping[str, Tensor]) -> set[str]:
    """What stands before the names of each language model among these."""
    names = [(name, end) for name in map(_without_prefixes, tensors) for end in (_QUERY, older.QUERY)]
    return {root for name, end in names if name.endswith(end) and (root := name.removesuffix(end))[-1:] in ("", ".")}


def _without_prefixes(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _PREFIXES)


def _rename(weights: Weights, source: str) -> None:
    """Take off what stands before all names, such as Lightning's `model.`, and give those of older MiniMinds ours."""
    for root in _roots(weights):
        weights.interleaved = root + older.QUERY in weights
        names = {name: name.removeprefix(root) for name in weights}
        if weights.interleaved:
            names = {name: older.modern_name(rest) for name, rest in names.items()}
        if len(set(names.values())) < len(weights):
            raise ValueError(f"{source} holds several tensors for one, some under names that begin with {root!r}")
        tensors = {names[name]: tensor for name, tensor in weights.items()}
        weights.clear()
        weights.update(tensors)


def _check_plain(name: str, tensor: Tensor, source: str) -> None:
    for pattern, holds, help in _FOREIGN:
        if re.search(pattern, name):
            raise ValueError(f"{source} holds {holds} ({name:.100}); {help}")
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
            "save tensor.to_dense().contiguous(), or join DeepSpeed's parts with its zero_to_fp32.py"
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
