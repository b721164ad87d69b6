"""Weights in and out of files: safetensors of our own, and upstream MiniMind's state dicts.

`save_checkpoint` writes one .safetensors file that also holds the config; `from_checkpoint` reads it back, or reads
upstream's weights (.safetensors or .pth) for a config that you give. Upstream's keys are ours, so nothing is renamed.
A .pth file is read with weights_only: it can hold tensors, but no code.
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from minimind_edu.config import MiniMindConfig, RopeScaling
from minimind_edu.model import MiniMindForCausalLM

_TIED = "lm_head.weight"  # the same tensor as model.embed_tokens.weight when the two are tied


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
    path: str | os.PathLike[str], config: MiniMindConfig | None = None
) -> MiniMindForCausalLM:
    """Build a model from a file of weights, on the CPU, in the weights' dtype, in eval mode.

    Args:
        path: a file of `save_checkpoint`, or upstream's weights as .safetensors or .pth.
        config: needed where the file holds none (`MiniMindConfig.from_upstream` makes one from upstream's values).

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a config is needed, or the weights do not fit it; the message lists what is missing, what is
            unexpected and what has the wrong shape.
    """
    path = Path(path)
    if path.suffix == ".safetensors":
        with safe_open(path, framework="pt") as file:
            stored = (file.metadata() or {}).get("config")
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        if config is None and stored is not None:
            config = _config_from_json(stored)
    elif path.suffix in (".pth", ".pt", ".bin"):
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    else:
        raise ValueError(
            f"weights are read from .safetensors, .pth, .pt or .bin, got {path.name!r}"
        )
    if config is None:
        raise ValueError(
            f"{path.name} holds no config; give one, for example "
            'config=MiniMindConfig.from_upstream({"hidden_size": 512}, generation="minimind2")'
        )
    model = MiniMindForCausalLM(config)
    load_weights(model, tensors)
    return model.eval()


def load_weights(model: MiniMindForCausalLM, weights: Mapping[str, Tensor]) -> None:
    """Copy a state dict of upstream's into the model, which takes on the weights' dtype.

    A tied model's file may leave out lm_head.weight; tables of RoPE in the file are ignored, for they are computed.

    Raises:
        ValueError: if the weights do not fit; the model is then unchanged.
    """
    given = {
        name: tensor
        for name, tensor in weights.items()
        if not name.endswith(("freqs_cos", "freqs_sin"))
    }
    expected = model.state_dict()
    embedding = given.get("model.embed_tokens.weight")
    if model.config.tie_word_embeddings and embedding is not None:
        head = given.setdefault(_TIED, embedding)
        if head.shape == embedding.shape and not torch.equal(head, embedding):
            raise ValueError(
                "lm_head.weight differs from model.embed_tokens.weight, so these weights are not tied; "
                "use a config with tie_word_embeddings=False"
            )
    problems = [
        ("missing", sorted(expected.keys() - given.keys())),
        ("unexpected", sorted(given.keys() - expected.keys())),
        (
            "wrong shape",
            [
                f"{name} {list(given[name].shape)} instead of {list(expected[name].shape)}"
                for name in sorted(expected.keys() & given.keys())
                if given[name].shape != expected[name].shape
            ],
        ),
    ]
    lines = [f"{kind}: {_shortened(names)}" for kind, names in problems if names]
    if lines:
        raise ValueError(
            "these weights do not fit the config. "
            + ". ".join(lines)
            + ". Compare hidden_size, num_key_value_heads, "
            "use_qk_norm and use_moe with what the weights were made for"
        )
    model.to(next(iter(given.values())).dtype)
    model.load_state_dict(given)


def _shortened(names: list[str], most: int = 6) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


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
