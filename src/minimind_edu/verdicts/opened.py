"""A reader's file of weights, opened as far as it goes: the tensors as they are stored, and the model, if one fits."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.weights.checkpoints import read_checkpoint
from minimind_edu.weights.files import Stored, read_weights
from minimind_edu.weights.int8 import FORMAT, dequantize_state
from minimind_edu.weights.state_dicts import canonical


@dataclass(frozen=True)
class Opened:
    """What is known of a file."""

    place: Path
    tensors: Mapping[str, Tensor]  # under our names, in the dtype of the file
    model: MiniMindForCausalLM | None  # in the dtype that all its tensors can have; None: `refusal`
    how: str  # by what it was recognized, in words
    family: str  # in words
    assumed: Mapping[str, Any]
    refusal: str = ""  # why no model fits
    kinds: tuple[str, ...] = ()  # of a GGUF file's matrices
    described: Mapping[str, Any] | None = None  # by the config.json of its folder
    aside: bool = False  # whether a config.json beside it tells of another model

    @cached_property
    def whole(self) -> MiniMindForCausalLM:
        """The model in float32."""
        if self.model is None:
            raise ValueError(f"{self.place} holds no whole model: {self.refusal}")
        return self.model.float()

    @property
    def name(self) -> str:
        return self.place.name


def open_weights(place: Path) -> Opened:
    """Open a file or folder of weights, or a GGUF file.

    Raises:
        FileNotFoundError, ValueError: if it cannot be read, or holds no language model of a family that is known; the
            message says why. Where only the sizes contradict each other, or tensors are missing, it is opened.
    """
    if place.suffix == ".gguf":
        return _open_gguf(place)
    stored = read_weights(place)
    rounded = stored.metadata.get("weights") == FORMAT
    weights = canonical(dequantize_state(stored.content) if rounded else stored.content, str(place))
    try:
        reading = read_checkpoint(place)
    except ValueError as error:
        model, assumed, aside = None, {}, False
        refusal = str(error).removeprefix(f"{place}: ").removeprefix(f"{place} ")
    else:
        model, assumed, refusal = reading.model, reading.assumed, ""
        aside = "left aside" in reading.note
    described = stored.config_json or (stored.content.get("model_args") if not assumed else None)
    beside = stored.beside is not None and not assumed
    how = (
        "by the config that is stored in it"
        if "config" in stored.metadata
        else "by the config.json in its folder"
        if described or (beside and not refusal)
        else "by its names and shapes alone"
    )
    kinds = ("int8 rows",) if rounded else ()
    family = _family(weights, stored, described)
    return Opened(place, dict(weights), model, how, family, assumed, refusal, kinds, stored.config_json, aside)


def _family(weights: Any, stored: Stored, described: Mapping[str, Any] | None) -> str:
    kind = (described or {}).get("model_type") or "minimind"
    experts = any(".mlp.experts." in name for name in weights)
    with_experts = " with experts" if experts else ""
    if "config" in stored.metadata:
        return f"this book's own form of a MiniMind{with_experts}"
    if weights.interleaved:
        return f"MiniMind{with_experts} of before 2025-04-26, or Llama under Meta's names"
    if kind in ("llama", "qwen3", "qwen3_moe"):
        return {"llama": "Llama", "qwen3": "Qwen3", "qwen3_moe": "Qwen3-MoE"}[kind] + ", as transformers writes it"
    if any(name.endswith("q_norm.weight") for name in weights):
        return f"MiniMind3{with_experts}, of 2026-03-24 or later (it has QK-norm)"
    return f"MiniMind2{with_experts}, of 2025-04-26 to 2026-03 (no QK-norm)"


def _open_gguf(place: Path) -> Opened:
    if not place.is_file():
        raise FileNotFoundError(f"there is no file {place}")
    try:
        from minimind_edu.hf.gguf_reader import read_gguf
    except ImportError as error:
        raise ValueError(f"{place}: a GGUF file needs transformers and gguf: pip install 'minimind-edu[hf]'") from error
    found = read_gguf(place)
    family = {"llama": "Llama", "qwen3": "Qwen3", "qwen3moe": "Qwen3-MoE"}[
        found.architecture
    ] + ", as llama.cpp reads it"
    tensors = dict(found.model.state_dict())
    if found.model.config.tie_word_embeddings:  # in the file once; both names lead to it
        del tensors["lm_head.weight"]
    return Opened(place, tensors, found.model, "by the facts in the file", family, {}, kinds=found.kinds)


def settings_that_differ(a: MiniMindConfig, b: MiniMindConfig) -> dict[str, tuple[Any, Any]]:
    """The fields by which two models of the same tensors compute otherwise."""
    names = ["num_attention_heads", "num_key_value_heads", "head_dim", "rope_theta", "rms_norm_eps", "norm_placement"]
    names += ["use_qk_norm"] + (["num_experts_per_tok", "norm_topk_prob"] if a.use_moe else [])
    different = {name: (getattr(a, name), getattr(b, name)) for name in names if getattr(a, name) != getattr(b, name)}
    # GGUF and some configs hold float32
    return {
        name: pair
        for name, pair in different.items()
        if not (isinstance(pair[0], float) and abs(pair[0] - pair[1]) < 1e-6 * abs(pair[0]))
    }
