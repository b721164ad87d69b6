"""Weights in and out of files: our own, upstream MiniMind's, and folders of Hugging Face transformers.

`save_checkpoint` writes one .safetensors file that also holds the config, in a quarter of the bytes if asked (int8.py).
`from_checkpoint` reads it back, and reads what others wrote: upstream's .pth state dicts, and folders with a
config.json of upstream's or of transformers' Llama, Qwen3 and Qwen3-MoE. Each step of the reading has a file of its
own:

    hub.locate             a path, or a name on the Hub           -> a file or folder on this machine
    files.read_weights     a file or folder                       -> tensors, the config.json that describes them
    state_dicts.canonical  names and wrappers of many hands       -> our names, which are upstream's
    infer_config           names, shapes, config.json             -> a MiniMindConfig
"""

import dataclasses
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from minimind_edu.config import MiniMindConfig
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.notebook import progress
from minimind_edu.rope_frequencies import RopeScaling
from minimind_edu.validation import check_flag
from minimind_edu.weights.files import Stored, read_weights
from minimind_edu.weights.hub import as_path, locate
from minimind_edu.weights.infer_config import differences, infer_config, is_tied
from minimind_edu.weights.int8 import FORMAT, dequantize_state, quantize_state
from minimind_edu.weights.state_dicts import canonical
from minimind_edu.weights.without_storage import without_storage

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"  # one and the same tensor when they are tied
_PROGRESS_FROM = 2**30  # bytes of weights; below, reading takes a moment
_MOST_TABLES = 2**28  # bytes of RoPE tables without a whole config: half a million positions of MiniMind's heads


def save_checkpoint(model: MiniMindForCausalLM, path: str | os.PathLike[str], *, int8: bool = False) -> Path:
    """Write the weights and the config into one .safetensors file; a tied matrix is written once.

    With `int8` each matrix becomes int8 rows with a scale each: a quarter of the bytes, and slightly other weights.

    The file appears only when it is complete: an interrupted save leaves an older file as it was. A link stays a link,
    and the file that it leads to is replaced.

    Args:
        model: whose parts are those of its config: the file says nothing else of them.
        path: a name that ends in .safetensors, in a folder that exists; "~" is the home folder.
        int8: store rows of whole numbers.

    Returns:
        the path written.

    Raises:
        FileNotFoundError, IsADirectoryError: if the folder does not exist, or the path is a folder.
        ValueError: for another name, and for a model that could not be read again, with the reason.
    """
    path = as_path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"a checkpoint's name must end in .safetensors, got {path.name!r}")
    check_flag("int8", int8)
    check_complete(model)
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} to save {target.name} in; make it first")
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder, so no file can be saved there; give another name")
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del tensors[_HEAD]
    # without a format, transformers does not read the file
    metadata = {"config": json.dumps(dataclasses.asdict(model.config), sort_keys=True), "format": "pt"}
    if int8:
        tensors, metadata["weights"] = quantize_state(tensors), FORMAT
    # on the same disk as the file, so that moving it into place is one step
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=target.parent) as scratch:
        partial = Path(scratch, "weights.safetensors")
        save_file(tensors, partial, metadata=metadata)
        partial.replace(target)
    return path


def check_complete(model: MiniMindForCausalLM) -> None:
    """Raise a ValueError unless a model is one of ours, and its config and its tensors say all there is to know."""
    if not isinstance(model, MiniMindForCausalLM):
        raise ValueError(
            f"only a MiniMindForCausalLM can be saved, got {type(model).__name__}; a decoder holds it as .model, the "
            "adapter gives it with to_minimind()"
        )
    state, expected = model.state_dict(), without_storage(model.config).state_dict()
    strange = [name for name in expected.keys() | state.keys() if _shape(expected, name) != _shape(state, name)]
    if strange:
        name = min(strange)
        raise ValueError(
            f"only a model as its config makes it can be read again, and in this one {len(strange)} tensors differ: "
            f"{name} is {_shape(state, name)} instead of {_shape(expected, name)}. A model whose matrices were rounded "
            "for decoding is saved before that; torch.save(model.state_dict(), path) saves any other"
        )
    if model.config.tie_word_embeddings and not is_tied(state):
        raise ValueError(
            f"tie_word_embeddings=True stores one matrix, but {_HEAD} of this model differs from {_EMBEDDING}; give "
            "it a config with tie_word_embeddings=False, or tie them"
        )


def _shape(state: Mapping[str, Tensor], name: str) -> list[int] | None:
    return list(state[name].shape) if name in state else None


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
            message names the file, and what is missing, unexpected or of the wrong size.
    """
    if known and config is not None:
        raise ValueError(
            f"give either a whole config or single fields ({', '.join(sorted(known))}), not both; "
            "config.changed(...) changes fields of a config"
        )
    if config is not None and not isinstance(config, MiniMindConfig):
        raise ValueError(
            f"config must be a MiniMindConfig, got {config!r:.200}; MiniMindConfig.from_upstream translates upstream's "
            "arguments, and single fields are given by name: from_checkpoint(path, rope_theta=1e4)"
        )
    place = locate(path, download, cache_dir, revision)
    stored = read_weights(place)
    try:
        content = dequantize_state(stored.content) if stored.metadata.get("weights") == FORMAT else stored.content
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
    weights = canonical(content, str(place))
    origin = "the config given"
    if config is None:
        try:
            config, origin = _config_of(stored, weights, known)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"{place}: {error}") from error
    _check_sizes(config, weights, str(place), origin)
    model = without_storage(config)  # the file's tensors become the parameters
    try:
        model.load_state_dict(weights, assign=True)
    except RuntimeError as error:
        raise ValueError(f"{place} does not fit {origin}. {error}") from error
    _move_into_memory(model)
    return model.eval()


def _config_of(stored: Stored, weights: Mapping[str, Tensor], known: Mapping[str, Any]) -> tuple[MiniMindConfig, str]:
    """The config that the files state or show, and what messages call it."""
    if "config" in stored.metadata:
        config = dataclasses.replace(_config_from_json(stored.metadata["config"]), **known)
        origin = "the config stored in it"
    else:
        config = infer_config(weights, stored.config_json, stored.generation_config, **known)
        origin = "its config.json" if stored.config_json else "the config inferred from its shapes"
    tables = 2 * 4 * config.head_dim * config.max_position_embeddings  # cos and sin, float32
    if tables > _MOST_TABLES:
        raise ValueError(
            f"max_position_embeddings={config.max_position_embeddings:,} makes RoPE tables of {tables / 1e9:,.1f} GB; "
            "name the number of positions that you need: from_checkpoint(path, max_position_embeddings=...). Only a "
            "whole config= may ask for more"
        )
    return config, origin


def _config_from_json(text: str) -> MiniMindConfig:
    try:
        values = json.loads(text)
        if values["rope_scaling"] is not None:
            values["rope_scaling"] = RopeScaling(**values["rope_scaling"])
        return MiniMindConfig(**values)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(
            f"its metadata holds a config that save_checkpoint did not write ({type(error).__name__}: {error}); give "
            "config=, for example MiniMindConfig.from_upstream(...)"
        ) from error


def _check_sizes(config: MiniMindConfig, weights: dict[str, Tensor], source: str, origin: str) -> None:
    """Compare the config with the weights before a model of its sizes is built, and add a tied matrix left out."""
    if shown := differences(config, weights):
        missing = f"missing: {_HEAD}. " if "tie_word_embeddings" in shown else ""
        says = ", ".join(f"{name}={getattr(config, name)}" for name in shown)
        show = ", ".join(f"{name}={value}" for name, value in shown.items())
        raise ValueError(f"{source} does not fit {origin}. {missing}The config says {says}; the weights show {show}")
    if config.tie_word_embeddings:
        if not is_tied(weights):
            raise ValueError(
                f"{_HEAD} differs from {_EMBEDDING} in {source}, so these weights are not tied, but {origin} has "
                "tie_word_embeddings=True; use tie_word_embeddings=False"
            )
        weights[_HEAD] = weights[_EMBEDDING]


def _move_into_memory(model: MiniMindForCausalLM) -> None:
    """Copy each parameter, so that it no longer depends on the file, and give all of them one dtype.

    Files of others may mix dtypes, with norms in float32, say; the common one loses nothing.
    """
    parameters: Iterable[nn.Parameter] = list(model.parameters())
    dtypes = {parameter.dtype for parameter in parameters}
    dtype = reduce(torch.promote_types, dtypes)
    if sum(parameter.nbytes for parameter in parameters) >= _PROGRESS_FROM:
        parameters = progress(parameters, "reading weights")
    for parameter in parameters:
        parameter.data = parameter.to(dtype, copy=True, memory_format=torch.contiguous_format).detach()
    if len(dtypes) > 1:
        model.to(dtype)  # the tables, too
