"""Weights in and out of files: our own, upstream MiniMind's, and folders of Hugging Face transformers.

`save_checkpoint` writes one .safetensors file that also holds the config. `from_checkpoint` reads it back, and reads
what others wrote: upstream's .pth state dicts, and folders with a config.json of upstream's or of transformers' Llama,
Qwen3 and Qwen3-MoE. The reading is done in steps that stand in files of their own:

    hub.locate             a path, or a name on the Hub           -> a file or folder on this machine
    files                  a file or folder                       -> tensors, the config.json beside them
    state_dicts.canonical  names and wrappers of many hands       -> our names, which are upstream's
    infer_config           names, shapes, config.json             -> a MiniMindConfig
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from tqdm.auto import tqdm

from minimind_edu.config import MiniMindConfig
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.rope_frequencies import RopeScaling
from minimind_edu.weights.files import find_weights, read_json, read_tensors
from minimind_edu.weights.hub import locate
from minimind_edu.weights.infer_config import disagreements, infer_config, is_tied
from minimind_edu.weights.state_dicts import canonical

_TIED = "lm_head.weight"  # the same tensor as model.embed_tokens.weight when the two are tied
_LONG = 2**30  # bytes from which on reading shows its progress


def save_checkpoint(model: MiniMindForCausalLM, path: str | os.PathLike[str]) -> Path:
    """Write the weights and the config into one .safetensors file; a tied matrix is written once.

    The file appears only when it is complete: an interrupted save leaves an older file as it was.

    Returns:
        the path written.

    Raises:
        ValueError: if the name does not end in .safetensors.
    """
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"a checkpoint's name must end in .safetensors, got {path.name!r}")
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del tensors[_TIED]
    config = json.dumps(dataclasses.asdict(model.config), sort_keys=True)
    partial = path.with_name(path.name + ".partial")
    save_file(tensors, partial, metadata={"config": config, "format": "pt"})
    partial.replace(path)
    return path


def from_checkpoint(
    path: str | os.PathLike[str],
    config: MiniMindConfig | None = None,
    *,
    download: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    **known: Any,
) -> MiniMindForCausalLM:
    """Build a model from weights, on the CPU, in the weights' dtype, in eval mode.

    The config is the one you give; else the one that `save_checkpoint` stored; else it is put together from the
    config.json in the folder and from the names and shapes of the weights. What all of these leave open is taken from
    the generation's preset, `MiniMindConfig.minimind2()` or `.minimind3()`: for a bare state dict that is rope_theta,
    rope_scaling, rms_norm_eps, max_position_embeddings, num_experts_per_tok, norm_topk_prob, and, without QK-norm, the
    number of query heads (eight). Look at `model.config` to see what was found, and name what you know better:

        from_checkpoint("full_sft_512.pth")
        from_checkpoint("mine.pth", num_attention_heads=16, rope_theta=1e4)
        from_checkpoint("MiniMind2-Small/")
        from_checkpoint("user/name", download=True)

    Args:
        path: a file (.safetensors, .pth, .pt, .bin), a folder, or "user/name" on the Hugging Face Hub.
        config: goes before everything that the files say.
        download: fetch a Hub model; without it, only what its cache on this machine holds is used.
        cache_dir, revision: of the Hub's cache, and of the model there.
        known: fields of MiniMindConfig that go before what the files say.

    Raises:
        FileNotFoundError: if there is nothing at that path; for a Hub name, the message says what to do.
        ValueError: if the files cannot be read or hold something else, or the weights do not fit the config; the
            message names the file, and lists what is missing, what is unexpected and what has the wrong shape.
    """
    _check_known(config, known)
    place = locate(path, download, cache_dir, revision)
    found = find_weights(place)
    content: dict[str, Any] = {}
    metadata: dict[str, str] = {}
    for file in found.files:
        held, metadata = read_tensors(file)
        content |= held
    weights = canonical(content, str(place))
    origin = "the config given"
    if config is None and "config" in metadata:
        config = dataclasses.replace(_config_from_json(metadata["config"]), **known)
        origin = "the config stored in it"
    elif config is None:
        described = None if found.config_json is None else read_json(found.config_json)
        try:
            config = infer_config(weights, described, **known)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{place}: {error}") from error
        origin = "its config.json" if described else "the config inferred from its shapes"
    with torch.device("meta"):  # sizes without memory: the file's tensors become the parameters
        model = MiniMindForCausalLM(config)
    fitting = _fitting(model, weights, str(place), origin)
    model.load_state_dict(_in_memory(fitting), assign=True)
    return model.eval()


def load_weights(model: MiniMindForCausalLM, weights: Mapping[str, Tensor]) -> None:
    """Copy a state dict of upstream's into the model, which takes on the weights' dtype.

    A tied model's file may leave out lm_head.weight; tables of RoPE in the file are ignored, for they are computed.

    Raises:
        ValueError: if the weights do not fit; the model is then unchanged.
    """
    given = _fitting(model, canonical(weights), "the state dict", "the model's config")
    model.to(_common_dtype(given))
    model.load_state_dict(given)


def _check_known(config: MiniMindConfig | None, known: Mapping[str, Any]) -> None:
    unknown = set(known) - {field.name for field in dataclasses.fields(MiniMindConfig)}
    if unknown:
        raise TypeError(f"MiniMindConfig has no field {', '.join(sorted(unknown))}")
    if known and config is not None:
        raise ValueError(
            f"give either a whole config or single fields ({', '.join(sorted(known))}), not both; "
            "dataclasses.replace(config, ...) changes fields of a config"
        )


def _fitting(model: MiniMindForCausalLM, weights: Mapping[str, Tensor], source: str, origin: str) -> dict[str, Tensor]:
    """The weights under exactly the model's names, with exactly its shapes."""
    given, expected = dict(weights), model.state_dict()
    embedding = given.get("model.embed_tokens.weight")
    if model.config.tie_word_embeddings and embedding is not None:
        head = given.setdefault(_TIED, embedding)
        if head.shape == embedding.shape and not is_tied(given):
            raise ValueError(
                f"lm_head.weight differs from model.embed_tokens.weight in {source}, so these weights are not tied, "
                f"but {origin} has tie_word_embeddings=True; use tie_word_embeddings=False"
            )
        given[_TIED] = embedding
    problems = {
        "missing": sorted(expected.keys() - given.keys()),
        "unexpected": sorted(given.keys() - expected.keys()),
        "wrong shape": [
            f"{name} {list(given[name].shape)} instead of {list(expected[name].shape)}"
            for name in sorted(expected.keys() & given.keys())
            if given[name].shape != expected[name].shape
        ],
    }
    lines = [f"{kind}: {_shortened(names)}" for kind, names in problems.items() if names]
    if lines:
        lines += disagreements(model.config, weights)
        raise ValueError(f"{source} does not fit {origin}. " + ". ".join(lines))
    return given


def _shortened(names: list[str], most: int = 6) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _common_dtype(weights: Mapping[str, Tensor]) -> torch.dtype:
    """One dtype that loses nothing; files of others may mix them, with norms in float32, say."""
    return reduce(torch.promote_types, (tensor.dtype for tensor in weights.values()))


def _in_memory(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies that no longer depend on the file, one tensor at a time: the weights are never there twice."""
    dtype = _common_dtype(weights)
    if weights[_TIED] is weights["model.embed_tokens.weight"]:
        del weights[_TIED]
    size = sum(tensor.nbytes for tensor in weights.values())
    copies = {}
    for name in tqdm(list(weights), desc="reading weights", disable=size < _LONG):
        tensor = weights.pop(name)
        copies[name] = tensor.to(dtype, copy=True, memory_format=torch.contiguous_format)
    copies.setdefault(_TIED, copies["model.embed_tokens.weight"])
    return copies


def _config_from_json(text: str) -> MiniMindConfig:
    try:
        values = json.loads(text)
        if values["rope_scaling"] is not None:
            values["rope_scaling"] = RopeScaling(**values["rope_scaling"])
        return MiniMindConfig(**values)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(
            "the file's metadata holds a config that save_checkpoint did not write; give config=, for example "
            "MiniMindConfig.from_upstream(...)"
        ) from error
