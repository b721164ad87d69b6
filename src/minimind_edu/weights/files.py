"""From a path to tensors: which files hold the weights, and what is in them.

A path is one file (.safetensors, .pth, .pt, .bin) or a folder: one that transformers wrote, with a config.json and one
or several files of weights, or one with a single file of weights. Tensors stay on disk until they are used
(memory-mapped), except in pickles from before PyTorch 1.6 and in archives that were packed again, compressed, which
can only be read as a whole.

Nothing in a file is ever executed: pickles are read with weights_only.
"""

import json
import pickle
import zipfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
# What transformers writes, in the order in which it looks for them itself.
_STANDARD = ("model.safetensors.index.json", "model.safetensors",
             "pytorch_model.bin.index.json", "pytorch_model.bin")  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """What the files at a path hold."""

    content: Mapping[Any, Any]  # usually names and tensors; a training script may have wrapped them
    metadata: Mapping[str, str]  # of a .safetensors file
    config_json: Mapping[str, Any] | None  # the config.json that describes these weights, if there is one
    generation_config: Mapping[str, Any] | None = None  # the generation_config.json beside that one


def read_weights(path: Path) -> Stored:
    """Read the weights that a path means, on the CPU.

    Raises:
        FileNotFoundError: if there is no such file, or an index names files that are missing.
        ValueError: if the folder holds no weights or several, or a file cannot be read; the message names it.
    """
    file = _in_folder(path) if path.is_dir() else path
    metadata: Mapping[str, str] = {}
    if path.is_dir() and file.name.endswith(".index.json"):
        content = _read_shards(file)
    elif file.suffix not in SUFFIXES:
        raise ValueError(f"weights are read from {', '.join(SUFFIXES)} or a model's folder, got {path.name!r}")
    else:
        content, metadata = _read_file(file)
    # beside a single file, a config.json may describe another one, unless the name is the standard one
    config = file.with_name("config.json")
    describes = config.is_file() and (path.is_dir() or file.name in _STANDARD)
    generation = file.with_name("generation_config.json")
    generating = read_json(generation) if describes and generation.is_file() else None
    return Stored(content, metadata, read_json(config) if describes else None, generating)


def _in_folder(folder: Path) -> Path:
    """The file of weights in a folder, or the index of several that belong together."""
    inside = sorted(entry.name for entry in folder.iterdir())
    if standard := [name for name in _STANDARD if name in inside]:
        return folder / standard[0]
    found = [name for name in inside if Path(name).suffix in SUFFIXES]
    if len(found) == 1:
        return folder / found[0]
    if found:
        raise ValueError(f"{folder} holds several files of weights; give the path of one: {', '.join(found)}")
    held = ", ".join(inside[:8]) or "nothing"
    raise ValueError(f"{folder} holds no weights ({', '.join(SUFFIXES)}); it holds {held}. Is the download complete?")


def _read_shards(index: Path) -> dict[str, Any]:
    """Every tensor from the file that the index names for it, and from nowhere else."""
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise ValueError(f"{index} must hold a weight_map from names of tensors to names of files")
    names = defaultdict(list)  # file -> its tensors
    for name, file in weight_map.items():
        names[file].append(name)
    for file in names:
        if Path(file).name != file or Path(file).suffix not in SUFFIXES:
            raise ValueError(f"{index} names {file!r}, but only files of weights in its own folder are read")
    inside = {entry.name for entry in index.parent.iterdir() if entry.is_file()}
    missing = sorted(names.keys() - inside)
    if missing or not names:
        raise FileNotFoundError(
            f"{index} names {len(names)} files of weights, {len(missing)} of them missing: {', '.join(missing)}; "
            "is the download complete?"
        )
    content = {}
    for file, wanted in names.items():
        held, _ = _read_file(index.parent / file)
        for name in wanted:
            if name not in held:
                raise ValueError(f"{index} says that {file} holds {name}, but it does not; is the download complete?")
            content[name] = held[name]
    return content


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object.

    Raises:
        ValueError: if it holds something else.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8-sig"))  # some editors begin a file with a byte order mark
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} {_why_unreadable(path, error)}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} should hold a JSON object, but holds a {type(values).__name__}")
    return values


def _read_file(path: Path) -> tuple[Mapping[Any, Any], Mapping[str, str]]:
    """What one file holds, and its metadata."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        if path.suffix == ".safetensors":
            with safe_open(path, framework="pt") as file:
                return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=_can_be_mapped(path))
    except Exception as error:  # for damaged files the libraries raise whatever their parsers run into
        raise ValueError(f"{path} {_why_unreadable(path, error)}") from error
    if not isinstance(content, Mapping):
        raise ValueError(
            f"{path} holds a {type(content).__name__}, not a state dict; torch.save(model.state_dict(), path) saves one"
        )
    return content, {}


def _can_be_mapped(path: Path) -> bool:
    """Whether numbers are stored as they are in memory: from a compressed archive, mapping would take any bytes."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())


def _why_unreadable(path: Path, error: Exception) -> str:
    """What is wrong with a file, and what helps."""
    with path.open("rb") as file:
        if file.read(40).startswith(b"version https://git-lfs"):
            return "is a Git LFS pointer instead of the file itself; run `git lfs pull` in its folder"
    if isinstance(error, pickle.UnpicklingError):
        return (
            "holds objects other than tensors, or is damaged; loading such objects would run code, so they are "
            "refused. torch.save(model.state_dict(), path) saves the weights alone"
        )
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return (
        f"cannot be read as {path.suffix} ({path.stat().st_size:,} bytes): {reason}. If it was downloaded, download it "
        "again"
    )
