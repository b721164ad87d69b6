"""From a path to tensors: which files hold the weights, and what is wrong with a file that cannot be read.

A path names one file (.safetensors, .pth, .pt, .bin) or a folder: that of transformers with its config.json and one
or several files of weights, or one that holds a single file of weights. Tensors stay on disk until they are used
(memory-mapped), except those of torch.save's format before PyTorch 1.6, which can only be read as a whole.

Nothing in a file is ever executed: pickles are read with weights_only.
"""

import json
import pickle
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

_PICKLES = (".pth", ".pt", ".bin")
SUFFIXES = (".safetensors", *_PICKLES)
# What transformers writes, in the order in which it looks for them itself.
_STANDARD = ("model.safetensors.index.json", "model.safetensors",
             "pytorch_model.bin.index.json", "pytorch_model.bin")  # fmt: skip
_SHARD = re.compile(r".*-\d{5}-of-(\d{5})\.\w+")
# What a training run leaves beside the weights.
_NOT_WEIGHTS = re.compile(r"(optimizer|scheduler|scaler|training_args|rng_state).*")


@dataclass(frozen=True)
class WeightFiles:
    """Where a model lies: its files of weights, and its config.json if there is one."""

    files: tuple[Path, ...]
    config_json: Path | None


def find_weights(path: Path) -> WeightFiles:
    """The files of weights that a path means.

    Raises:
        FileNotFoundError: if there is nothing at that path, or an index names files that are not there.
        ValueError: if the file's name is not one of weights, or the folder holds none or several.
    """
    if path.is_dir():
        return _in_folder(path)
    if path.name.endswith(".index.json") or path.name == "config.json":
        raise ValueError(f"{path.name} is one file of a model's folder; give the folder, {path.parent}")
    if path.suffix not in SUFFIXES:
        raise ValueError(f"weights are read from {', '.join(SUFFIXES)} or a folder, got {path.name!r}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    _check_whole(path)
    # a config.json speaks of the file next to it only if that is the folder's model
    beside = path.with_name("config.json")
    return WeightFiles((path,), beside if path.name in _STANDARD and beside.is_file() else None)


def _in_folder(folder: Path) -> WeightFiles:
    config = folder / "config.json"
    described = config if config.is_file() else None
    for name in _STANDARD:
        if (folder / name).is_file():
            files = _shards(folder / name) if name.endswith(".index.json") else (folder / name,)
            return WeightFiles(files, described)
    found = sorted(
        file
        for file in folder.iterdir()
        if file.suffix in SUFFIXES and file.is_file() and not _NOT_WEIGHTS.fullmatch(file.name)
    )
    if len(found) == 1:
        _check_whole(found[0])
        return WeightFiles((found[0],), described)
    if found:
        names = ", ".join(file.name for file in found)
        raise ValueError(f"{folder} holds several files of weights; give the path of one: {names}")
    inside = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
    raise ValueError(f"{folder} holds no weights ({', '.join(SUFFIXES)}); it holds {inside}. Is the download complete?")


def _check_whole(path: Path) -> None:
    """A part of the weights could pass for a model of fewer layers."""
    if shard := _SHARD.fullmatch(path.name):
        raise ValueError(
            f"{path} holds one part of {int(shard[1])}; give the folder that holds them all and their .index.json"
        )


def _shards(index: Path) -> tuple[Path, ...]:
    names = sorted(set(read_json(index).get("weight_map", {}).values()))
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing or not names:
        raise FileNotFoundError(
            f"{index} names {len(names)} files of weights, of which {len(missing)} are not there: "
            f"{', '.join(missing)}; is the download complete?"
        )
    return tuple(index.parent / name for name in names)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object.

    Raises:
        ValueError: if it holds something else.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} {_what_it_is(path)}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} should hold a JSON object, but holds a {type(values).__name__}")
    return values


def read_tensors(path: Path) -> tuple[Mapping[str, Any], dict[str, str]]:
    """What one file holds, on the CPU: a mapping, usually of names to tensors, and the file's own metadata (if any).

    Raises:
        ValueError: if it cannot be read; the message says what the file seems to be.
    """
    if path.suffix == ".safetensors":
        try:
            with safe_open(path, framework="pt") as file:
                return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
        except SafetensorError as error:
            raise ValueError(f"{path} {_what_it_is(path)}") from error
    content = _unpickle(path)
    if not isinstance(content, Mapping):
        raise ValueError(
            f"{path} holds a {type(content).__name__}, not a state dict; save weights with "
            "torch.save(model.state_dict(), path)"
        )
    return content, {}


def _unpickle(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except (pickle.UnpicklingError, RuntimeError) as error:
        text = str(error)
        if "TorchScript" in text:
            held = "a TorchScript program"
        elif named := re.search(r"(?:Unsupported global: GLOBAL|GLOBAL) ([\w.]+)", text):
            held = f"objects, not only tensors (the first is a {named[1]}), such as a whole model"
        else:
            raise ValueError(f"{path} {_what_it_is(path)}") from error
        raise ValueError(
            f"{path} holds {held}, and to load that would run code from the file, so it is refused. Where the file "
            "comes from, save the weights alone: torch.save(model.state_dict(), path)"
        ) from error
    except (EOFError, LookupError, OSError, ValueError) as error:
        raise ValueError(f"{path} {_what_it_is(path)}") from error


def _what_it_is(path: Path) -> str:
    """Guess from its first bytes why a file cannot be read, and say what helps."""
    with path.open("rb") as file:
        start = file.read(200)
    size = path.stat().st_size
    if not start:
        return "is empty: the download has not begun or has failed"
    if start.startswith(b"version https://git-lfs"):
        return (
            f"is a Git LFS pointer of {size} bytes, which stands in for the real file; "
            "run `git lfs pull` in its folder, or download the file itself"
        )
    if start.lstrip().startswith(b"<"):
        return "is a web page, not what its name says; use the page's download link"
    return f"is cut short or damaged ({size:,} bytes cannot be read as {path.suffix}); download it again"
