"""Weights in and out of files: our own, upstream MiniMind's, and folders of Hugging Face transformers.

`save_checkpoint` writes one .safetensors file that also holds the config, in a quarter of the bytes if asked (int8.py).
`from_checkpoint` reads it back, and reads what others wrote: upstream's .pth state dicts, and folders with a
config.json of upstream's or of transformers' Llama, Qwen3 and Qwen3-MoE. Each step of the reading has a file of its
own:

    hub.locate             a path, or a name on the Hub           -> a file or folder on this machine
    files.read_weights     a file or folder                       -> tensors, the config.json that describes them
    state_dicts.canonical  names and wrappers of many hands       -> our names, which are upstream's
    older                  MiniMind before 2025-04-26, Llama      -> its names, config and order of rows in today's
    infer_config           names, shapes, config.json             -> a MiniMindConfig
"""

import contextlib
import dataclasses
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.notebook import progress
from minimind_edu.validation import check_flag
from minimind_edu.weights import older
from minimind_edu.weights.files import generation_beside, read_json, read_weights
from minimind_edu.weights.hub import as_path, locate
from minimind_edu.weights.infer_config import assumed, differences, infer_config, is_tied, sizes_shown
from minimind_edu.weights.int8 import FORMAT, dequantize_state, quantize_state
from minimind_edu.weights.state_dicts import Weights, canonical
from minimind_edu.weights.without_storage import without_storage
from minimind_edu.weights.writing import file_to_write, replacing

_EMBEDDING, _HEAD = "model.embed_tokens.weight", "lm_head.weight"  # one and the same tensor when they are tied
_OF_ONE_MODEL = ("vocab_size", "hidden_size", "num_hidden_layers")  # which two models of one folder seldom share
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
    file_to_write(path)
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del tensors[_HEAD]
    # without a format, transformers does not read the file
    metadata = {"config": json.dumps(dataclasses.asdict(model.config), sort_keys=True), "format": "pt"}
    if int8:
        tensors, metadata["weights"] = quantize_state(tensors), FORMAT
    with replacing(path) as partial:
        save_file(tensors, partial, metadata=metadata)
    return path


def check_complete(model: MiniMindForCausalLM) -> None:
    """Raise a ValueError unless a model is one of ours, and its config and its tensors say all there is to know."""
    if not isinstance(model, MiniMindForCausalLM):
        raise ValueError(
            f"only a MiniMindForCausalLM can be saved, got {type(model).__name__}; a decoder holds it as .model, the "
            "adapter gives it with to_minimind()"
        )
    state = model.state_dict()
    if strange := _differing(state, without_storage(model.config).state_dict()):
        raise ValueError(
            f"only a model as its config makes it can be read again, and in this one {len(strange)} tensors differ: "
            f"{strange[0]}. A model whose matrices were rounded for decoding is saved before that; "
            "torch.save(model.state_dict(), path) saves any other"
        )
    if model.config.tie_word_embeddings and not is_tied(state):
        raise ValueError(
            f"tie_word_embeddings=True stores one matrix, but {_HEAD} of this model differs from {_EMBEDDING}; give "
            "it a config with tie_word_embeddings=False, or tie them"
        )


def _differing(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> list[str]:
    """Which tensors have another shape than they should, or are missing, or should be: None."""
    shapes = [{name: list(tensor.shape) for name, tensor in tensors.items()} for tensors in (state, expected)]
    pairs = [(name, *(known.get(name) for known in shapes)) for name in sorted(state.keys() | expected.keys())]
    return [f"{name} is {found} instead of {should}" for name, found, should in pairs if found != should]


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
    number of query heads (eight; sixteen in MiniMinds of 2024, which their keys show). The logger "minimind_edu" says
    in one line what was taken; name what you know better:

        from_checkpoint("full_sft_512.pth")
        from_checkpoint("mine.pth", num_attention_heads=16, rope_theta=1e4)
        from_checkpoint("MiniMind2-Small/")
        from_checkpoint("user/name", download=True)

    Args:
        path: a file (.safetensors, .pth, .pt, .bin, .ckpt), a folder, or "user/name" on the Hugging Face Hub. A
            config.json beside a file is used if it fits the weights.
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
    reading = read_checkpoint(place, config, **known)
    if reading.note:
        logging.getLogger("minimind_edu").warning("%s: %s", place, reading.note)
    return reading.model


@dataclass(frozen=True)
class Reading:
    """A model, and what was assumed of it."""

    model: MiniMindForCausalLM
    assumed: Mapping[str, Any]  # fields of its config that nothing said
    note: str  # one sentence about them, and about a config.json that was left aside; empty if there is nothing to say


def read_checkpoint(place: Path, config: MiniMindConfig | None = None, **known: Any) -> Reading:
    """`from_checkpoint` for a path on this machine, with what had to be assumed."""
    stored = read_weights(place)
    with _named(place):
        content = dequantize_state(stored.content) if stored.metadata.get("weights") == FORMAT else stored.content
    weights = canonical(content, str(place))
    if config is not None:
        return Reading(_built(config, weights, str(place), "the config given"), {}, "")
    if "config" in stored.metadata:
        with _named(place):
            config = dataclasses.replace(_config_from_json(stored.metadata["config"]), **known)
            _check_tables(config)
        return Reading(_built(config, weights, str(place), "the config stored in it"), {}, "")
    described, generating, note = stored.config_json, stored.generation_config, "no config.json tells of these weights"
    if described is None and isinstance(stored.content.get("model_args"), Mapping):  # as llama2.c writes them
        described = stored.content["model_args"]
    if described is None and stored.beside:
        described, generating, note = _described_beside(stored.beside, weights, known)
    with _named(place):
        config = _inferred(weights, described, generating, known)
    origin = "the config inferred from its shapes" if described is None else "its config.json"
    model = _built(config, weights, str(place), origin)
    if described is not None:
        return Reading(model, {}, "")
    opened = {name: value for name, value in assumed(config).items() if name not in known}
    if not {_HEAD, "tie_word_embeddings"} & {*weights, *known, *stored.metadata, *stored.metadata.values()}:
        opened["tie_word_embeddings"] = True  # one matrix of a pair, without save_model's word for it
    values = ", ".join(f"{name}={value}" for name, value in opened.items())
    age = "MiniMind-3 has" if config.use_qk_norm else "MiniMind2 has"
    age = "MiniMind had before 2025-04-26" if weights.interleaved else age
    return Reading(model, opened, f"{note}: taken for {values}, as {age}" if opened else note if stored.beside else "")


@contextlib.contextmanager
def _named(place: Path) -> Iterator[None]:
    """Say of which file an error speaks."""
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{place}: {error}") from error


class _DoesNotFit(ValueError):
    """Weights and config are of two models."""


def _described_beside(
    file: Path, weights: Weights, known: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None, str]:
    """What a config.json and a generation_config.json beside a file of weights say if the first fits their shapes.

    The last is why they are left aside.

    One with their width, depth and vocabulary is theirs, so what it asks for is computed or refused.
    """
    try:
        described = dict(older.modern_config(read_json(file)))
        stated = {name: value for name, value in (described | dict(known)).items() if name in _OF_ONE_MODEL}
        if not stated or not stated.items() <= sizes_shown(weights).items():
            raise _DoesNotFit(f"it says {stated}"[:200])
        generating = generation_beside(file)
        _fitting(_inferred(weights, described, generating, known), weights, "what the weights show", "it")
        return described, generating, ""
    except _DoesNotFit as error:
        return None, None, f"{file.name} in the same folder is left aside, because it tells of another model ({error})"
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{file} seems to tell of the weights beside it: {error}") from error


def _inferred(
    weights: Weights,
    described: Mapping[str, Any] | None,
    generating: Mapping[str, Any] | None,
    known: Mapping[str, Any],
) -> MiniMindConfig:
    """The config that the files state or show."""
    if described is not None:
        described = older.modern_config(described)
    if weights.interleaved and not {"num_attention_heads", "head_dim"} & {*known, *(described or {})}:
        described = older.preset(weights) | dict(described or {})
    config = infer_config(weights, described, generating, **known)
    _check_tables(config)
    return config


def _check_tables(config: MiniMindConfig) -> None:
    """Raise a ValueError for tables of positions that would fill the memory."""
    tables = 2 * 4 * config.head_dim * config.max_position_embeddings  # cos and sin, float32
    if tables > _MOST_TABLES:
        raise ValueError(
            f"max_position_embeddings={f'{config.max_position_embeddings:,}'[:40]} makes RoPE tables of "
            f"{min(tables, 10**18) / 1e9:,.1f} GB{' and more' * (tables > 10**18)}; name the number of positions that "
            "you need: from_checkpoint(path, max_position_embeddings=...). Only a whole config= may ask for more"
        )


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


def _built(config: MiniMindConfig, weights: Weights, source: str, origin: str) -> MiniMindForCausalLM:
    """The model of a config with these weights as its parameters."""
    model, tensors = _fitting(config, weights, source, origin)
    if weights.interleaved:
        for name in tensors:
            if name.endswith(("q_proj.weight", "k_proj.weight")):
                tensors[name] = older.in_halves(tensors[name], config.head_dim)
    model.load_state_dict(tensors, assign=True)
    _move_into_memory(model)
    return model.eval()


def _fitting(
    config: MiniMindConfig, weights: Weights, source: str, origin: str
) -> tuple[MiniMindForCausalLM, dict[str, Tensor]]:
    """The model of a config without numbers, and a tensor for each of its names; `_DoesNotFit` if they differ."""
    tensors = _checked_sizes(config, weights, source, origin)
    model = without_storage(config)
    if strange := _differing(tensors, model.state_dict()):
        raise _DoesNotFit(f"{source} does not fit {origin}: {len(strange)} tensors differ: {', '.join(strange[:3])}")
    return model, tensors


def _checked_sizes(config: MiniMindConfig, weights: Weights, source: str, origin: str) -> dict[str, Tensor]:
    """Compare the config with the weights before a model of its sizes is built, and add a tied matrix left out."""
    if shown := differences(config, weights):
        missing = f"missing: {_HEAD}. " if "tie_word_embeddings" in shown else ""
        says = ", ".join(f"{name}={getattr(config, name)}" for name in shown)
        show = ", ".join(f"{name}={value}" for name, value in shown.items())
        raise _DoesNotFit(f"{source} does not fit {origin}. {missing}The config says {says}; the weights show {show}")
    if config.tie_word_embeddings and not is_tied(weights):
        raise _DoesNotFit(
            f"{_HEAD} differs from {_EMBEDDING} in {source}, so these weights are not tied, but {origin} has "
            "tie_word_embeddings=True; use tie_word_embeddings=False"
        )
    return dict(weights) | ({_HEAD: weights[_EMBEDDING]} if config.tie_word_embeddings else {})


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
