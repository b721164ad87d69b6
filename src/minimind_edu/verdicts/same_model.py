"""Whether two files are one model, and the first block where they part.

Tensors are compared first, as they are stored: equal, equal after rounding to the coarser of two precisions, near, or
other. Then both models read the same tokens, and every block's output is compared.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.verdicts import lora
from minimind_edu.verdicts.engines import against_llama_cpp, blurred, explained, probe
from minimind_edu.verdicts.model_file import numbers
from minimind_edu.verdicts.opened import Opened, settings_that_differ
from minimind_edu.verdicts.verdict import Verdict
from minimind_edu.weights.checkpoints import read_checkpoint
from minimind_edu.weights.older import in_halves

_SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "use_qk_norm", "use_moe")
_PARTED = 1e-3  # relative difference of what two blocks write; float32 sums in another order stay far below


def compare(a: Opened, b: Opened, adapter: Mapping[str, Tensor] | None = None) -> list[Verdict]:
    """Every verdict on two files; `adapter`: what lies between `b`, the base, and `a`, which is said to be merged."""
    if different := sizes(a.whole, b.whole):
        return [different]
    if broken := no_numbers(a, b):
        return broken
    first, second = a.whole.state_dict(), b.whole.state_dict()
    if adapter is not None:
        return [lora.merged(second, first, adapter)]
    read_alike, settings_verdict = with_known_settings(a, b)
    a, b = read_alike
    stored = weights(a, b)
    looks = [settings_verdict or settings(a.whole, b.whole), stored, logits(a, b, rounded_alike=stored.grade == "fine")]
    looks += [against_llama_cpp(a, b), against_llama_cpp(b, a)]
    return [verdict for verdict in looks if verdict]


def no_numbers(a: Opened, b: Opened) -> list[Verdict]:
    """Which of the two holds NaN or infinity: those are equal to nothing, so nothing else is compared."""
    found = [(opened, numbers(opened)) for opened in (a, b)]
    return [
        replace(verdict, finding=f"{opened.name}: {verdict.finding}")
        for opened, verdict in found
        if verdict.grade == "wrong"
    ]


def sizes(a: MiniMindForCausalLM, b: MiniMindForCausalLM) -> Verdict | None:
    """Whether the two can be one model at all."""
    experts = ("num_experts", "num_shared_experts", "moe_intermediate_size")
    names = (*_SIZES, *(experts if a.config.use_moe else ("intermediate_size",)))
    pairs = {name: (getattr(a.config, name), getattr(b.config, name)) for name in names}
    other = [f"{name} {ours} ≠ {theirs}" for name, (ours, theirs) in pairs.items() if ours != theirs]
    return Verdict("sizes", "wrong", f"two models of different sizes: {'; '.join(other)}") if other else None


def with_known_settings(a: Opened, b: Opened) -> tuple[tuple[Opened, Opened], Verdict | None]:
    """Both files, and one that only assumed a value read anew with the other's; what was taken, if that ends it."""
    pair, taken = [a, b], []
    for at, other in ((0, b), (1, a)):
        opened = pair[at]
        different = settings_that_differ(opened.whole.config, other.whole.config)
        known = {
            name: value
            for name, (_, value) in different.items()
            if name in opened.assumed and name not in other.assumed
        }
        if not known:
            continue
        try:
            model = read_checkpoint(opened.place, **known).model
        except ValueError:  # these values do not fit its shapes: `settings` tells
            continue
        assumed = {name: value for name, value in opened.assumed.items() if name not in known}
        pair[at] = replace(opened, model=model, assumed=assumed)
        values = ", ".join(f"{name}={value}" for name, value in known.items())
        taken.append(f"{opened.name} does not tell {values}: taken from {other.name}")
    if not taken or settings(pair[0].whole, pair[1].whole).grade == "wrong":
        return (pair[0], pair[1]), None
    advice = "right if the two are one model, as below; put that config.json beside the file"
    return (pair[0], pair[1]), Verdict("settings", "look", "; ".join(taken), advice)


def settings(a: MiniMindForCausalLM, b: MiniMindForCausalLM) -> Verdict:
    """Whether both read their tensors in the same way."""
    different = settings_that_differ(a.config, b.config)
    scaled = [c.rope_scaling if c.rope_scaling and c.rope_scaling.starts_at(c.max_position_embeddings) else None
              for c in (a.config, b.config)]  # fmt: skip
    if (scaled[0] is None) != (scaled[1] is None):
        different["rope_scaling"] = (scaled[0], scaled[1])
    if different:
        finding = "; ".join(f"{name} {ours} ≠ {theirs}" for name, (ours, theirs) in different.items())
        return Verdict(
            "settings", "wrong", f"the same tensors would be read in two ways: {finding}",
            "one of the two config files is wrong, or a value was assumed: check each file by itself",
        )  # fmt: skip
    return Verdict("settings", "fine", "both are read in the same way")


def weights(a: Opened, b: Opened) -> Verdict:
    """Which tensors differ, and in what manner."""
    first, second = a.whole.state_dict(), b.whole.state_dict()
    halves = [dtype for dtype in (_dtype(a), _dtype(b)) if dtype != torch.float32]
    others: dict[str, float] = {}
    rounded = False
    for name, ours in first.items():
        theirs = second[name]
        if torch.equal(ours, theirs):
            continue
        if any(torch.equal(ours.to(dtype), theirs.to(dtype)) for dtype in halves) or (
            len(set(halves)) == 2 and _within_one_ulp(ours, theirs)
        ):
            rounded = True
        else:
            others[name] = float((ours - theirs).norm() / ours.norm().clamp_min(1e-30))
    count = len(first)
    if not others:
        how = f"once both are {_short(halves)}" if rounded else "bit for bit"
        return Verdict("weights", "fine", f"all {count} tensors are equal {how}")
    worst = max(others.values())
    if worst <= explained(a, b):
        kinds = ", ".join(dict.fromkeys(kind for kind in (*a.kinds, *b.kinds) if kind != "F32"))
        finding = f"{len(others)} of {count} tensors differ, by {worst:.2%} at most, as rounding to {kinds} explains"
        return Verdict("weights", "fine", finding)
    if turned := _turned(first, second, others, a.whole.config.head_dim):
        return Verdict(
            "weights",
            "wrong",
            f"in {turned} of {len(others)} tensors that differ, of q_proj and k_proj, the rows are in another order: "
            "RoPE's pairs are neighbors in one file and halves in the other",
            "the conversion has changed names, but not the order of rows (MiniMind turned neighbors before 2025-04-26)",
        )
    ranks = [
        rank for name in others if first[name].dim() == 2
        and (rank := lora.rank_of_difference(first[name], second[name])) is not None
    ]  # fmt: skip
    if ranks and len(ranks) == len(others):
        return Verdict(
            "weights",
            "look",
            f"{len(others)} of {count} tensors differ, each by a matrix of rank {min(ranks)} to {max(ranks)}: as by a "
            "merged LoRA",
            "--lora FILE tells whether it was merged once",
        )
    first_other = min(others, key=_order)
    return Verdict(
        "weights",
        "wrong",
        f"{len(others)} of {count} tensors differ, by {worst:.1%} at most; the first is {first_other}",
        "two models: one was trained further, or a tensor was lost on the way",
    )


def _within_one_ulp(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors may be one that was rounded to float16 and to bfloat16.

    The two roundings end at most one unit of bfloat16's last place apart; below 2**-14, float16 has steps of 2**-24.
    """
    return bool(((x - y).abs() <= 2**-7 * torch.maximum(x.abs(), y.abs()) + 2**-24).all())


def parted_beyond(rounding: float) -> float:
    """From which relative difference on two blocks have parted, where rounding explains so much of it."""
    return max(_PARTED, 3 * rounding)


def _dtype(opened: Opened) -> torch.dtype:
    """The coarsest in which its matrices are stored."""
    kinds = {tensor.dtype for tensor in opened.tensors.values() if tensor.dim() == 2}
    kinds |= {{"F16": torch.float16, "BF16": torch.bfloat16}.get(kind, torch.float32) for kind in opened.kinds}
    return next((dtype for dtype in (torch.bfloat16, torch.float16) if dtype in kinds), torch.float32)


def _short(dtypes: list[torch.dtype]) -> str:
    return " or ".join(dict.fromkeys(f"{dtype}".removeprefix("torch.") for dtype in dtypes))


def _order(name: str) -> tuple[int, str]:
    """Tensors in the order in which a text passes them."""
    if found := re.search(r"layers\.(\d+)\.", name):
        return int(found[1]) + 1, name
    return (0 if "embed" in name else 10**6), name


def _turned(
    first: Mapping[str, Tensor], second: Mapping[str, Tensor], others: Mapping[str, float], head_dim: int
) -> int:
    """How many of the tensors that differ are the same rows in RoPE's other order."""

    def near(x: Tensor, y: Tensor) -> bool:
        return bool((x - y).norm() < 0.01 * x.norm())

    names = [name for name in others if re.search(r"[qk]_proj", name)]
    return sum(
        near(in_halves(first[name], head_dim), second[name]) or near(in_halves(second[name], head_dim), first[name])
        for name in names
    )


def passed(model: MiniMindForCausalLM, ids: Tensor) -> list[Tensor]:
    """What a text is on its way: the embedding, then after every block, and the logits at last."""
    kept: list[Tensor] = []
    hooks = [model.model.embed_tokens.register_forward_hook(lambda _m, _i, out: kept.append(out.detach()))]
    for layer in model.model.layers:
        hooks.append(layer.register_forward_hook(lambda _m, _i, out: kept.append(out[0].detach())))
    try:
        with torch.no_grad():
            last = model(ids).logits
    finally:
        for hook in hooks:
            hook.remove()
    return [*kept, last]


def logits(a: Opened, b: Opened, rounded_alike: bool = False) -> Verdict:
    """How far their logits are apart, and the first block where they part.

    `rounded_alike`: their tensors differ by no more than rounding, so that much of a difference is none.
    """
    first, second = a.whole, b.whole
    ids = probe(
        first.config.vocab_size, min(first.config.max_position_embeddings, second.config.max_position_embeddings)
    )
    ways = [passed(model, ids) for model in (first, second)]
    apart = [float((x - y).norm() / x.norm().clamp_min(1e-30)) for x, y in zip(*ways, strict=True)]
    ours, theirs = (way[-1] for way in ways)
    agree = float((ours.argmax(-1) == theirs.argmax(-1)).double().mean())
    finding = f"they differ by at most {float((ours - theirs).abs().max()):.2g} of {float(ours.abs().max()):.1f}; the "
    finding += f"likeliest next token is the same at {agree:.0%} of {ids.shape[1]} places"
    rounding = max(explained(a, b), _rounding(a, b)) if rounded_alike else 0.0
    bound = max(parted_beyond(explained(a, b)), _rounding(a, b)) if rounded_alike else _PARTED
    where = next((at for at, far in enumerate(apart) if not far <= bound), None)
    if why := blurred(first, rounding, where is not None):
        return Verdict("logits", "open", f"{finding}; {why}")
    if where is None:
        return Verdict("logits", "fine", f"one model: {finding}")
    last = len(apart) - 1
    place = {0: "in the embedding", last: "in the output layer"}.get(where, f"in block {where} (layers.{where - 1})")
    finding = f"not one model: {finding}; they part {place}, by {apart[where]:.2g} of what passes there"
    return Verdict("logits", "wrong", finding, "look at the tensors there first")


def _rounding(a: Opened, b: Opened) -> float:
    """What half precision may change by the last block."""
    kinds = {_dtype(a), _dtype(b)}
    return 0.1 if torch.bfloat16 in kinds else 0.02 if torch.float16 in kinds else 0.0
