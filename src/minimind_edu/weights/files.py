"""From a path to tensors: which files hold the weights, and what is in them.

A path is one file (.safetensors, .pth, .pt, .bin, .ckpt) or a folder: one that transformers wrote, with a config.json
and one or several files of weights, or one with a single file of weights. Tensors stay on disk until they are used
(memory-mapped), except in pickles from before PyTorch 1.6, which can only be read as a whole.

The files are a stranger's. Nothing in them is executed: pickles are read with weights_only. Nothing is unpacked, and
what describes the tensors has a largest size, so a small file cannot fill the memory or take minutes. Whatever a
library raises on the way comes out of `reading` as one sentence.
"""

import contextlib
import io
import json
import os
import pickle
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt")
# What transformers writes, in the order in which it looks for them itself; then what Meta does.
_STANDARD = ("model.safetensors", "model.safetensors.index.json",
             "pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth")  # fmt: skip
_DESCRIPTIONS = ("config.json", "params.json")  # the second is Meta's
_MOST_JSON = _MOST_HEADER = 2**24  # bytes of a description, such as names and shapes of 100,000 tensors
# Bytes of a pickle without the tensors' numbers, 300,000 of which may take a second: at most, and more for each tensor.
_MOST_PICKLE, _PICKLE_OF_ONE = 2**20, 2**10
# Files that hold a part of each tensor, and what joins them.
_PARTS = {
    r"zero_pp_rank_.*": "DeepSpeed's ZeRO wrote parts of them; zero_to_fp32.py, which it put beside them, joins them",
    r".*\.distcp": "parts of them; torch.distributed.checkpoint.format_utils.dcp_to_torch_save joins them",
    r"consolidated\.0[1-9]\.pth": "parts of them, one for each GPU; transformers' convert_llama_weights_to_hf joins",
}


# What the safetensors library says of a file whose end is missing.
_UNFINISHED = re.compile("incomplete metadata|not fully covered|header too small|invalid header length", re.IGNORECASE)


@dataclass(frozen=True)
class Stored:
    """What the files at a path hold."""

    content: Mapping[Any, Any]  # usually names and tensors; a training script may have wrapped them
    metadata: Mapping[str, str]  # of a .safetensors file
    config_json: Mapping[str, Any] | None  # the config.json that describes these weights, if there is one
    beside: Path | None = None  # a config.json in the same folder, which may describe another file
    generation_config: Mapping[str, Any] | None = None  # the generation_config.json beside config_json


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """The net around every call of a library on a stranger's file: what it raises becomes a ValueError, one sentence.

    For damaged files libraries raise whatever their parsers run into.
    """
    try:
        yield
    except Exception as error:
        raise ValueError(f"{path} {_why_unreadable(path, error)}") from error


def read_weights(path: Path) -> Stored:
    """Read the weights that a path means, on the CPU.

    Raises:
        FileNotFoundError: if there is no such file, or an index names files that are missing.
        ValueError: if the folder holds no weights or several, or a file cannot be read; the message names it.
    """
    in_folder = path.is_dir()
    # Meta's parts have one shape: a model of half the heads could be made of one of them
    inside = _inside(path if in_folder else path.parent) if in_folder or path.name.startswith("consolidated.") else []
    for name in [path.name, *inside]:
        for pattern, reason in _PARTS.items():
            if re.fullmatch(pattern, name):
                raise ValueError(f"{path} does not hold whole tensors ({name}): {reason}")
    file = _in_folder(path, inside) if in_folder else path
    metadata: Mapping[str, str] = {}
    if in_folder and file.name.endswith(".index.json"):
        content = _read_shards(file)
    elif file.suffix not in SUFFIXES:
        raise ValueError(f"weights are read from {', '.join(SUFFIXES)} or a model's folder, got {path.name!r}")
    else:
        content, metadata = _read_file(file)
    # one that cannot be read is there, too; beside a single file it may describe another, unless the name is standard
    found = next((place for name in _DESCRIPTIONS if os.path.lexists(place := file.with_name(name))), None)
    if found is None:
        return Stored(content, metadata, None)
    if in_folder or file.name in _STANDARD:
        return Stored(content, metadata, read_json(found), generation_config=generation_beside(found))
    return Stored(content, metadata, None, found)


def generation_beside(config: Path) -> dict[str, Any] | None:
    """What the generation_config.json beside a config.json says, if there is one."""
    file = config.with_name("generation_config.json")
    return read_json(file) if os.path.lexists(file) else None


def _inside(folder: Path) -> list[str]:
    with reading(folder):
        return sorted(entry.name for entry in folder.iterdir())


def _in_folder(folder: Path, inside: list[str]) -> Path:
    """The file of weights in a folder, or the index of several that belong together."""
    if standard := [name for name in _STANDARD if name in inside]:
        return folder / standard[0]
    found = [name for name in inside if Path(name).suffix in SUFFIXES]
    if len(found) == 1:
        return folder / found[0]
    if found:
        raise ValueError(f"{folder} holds several files of weights; give the path of one: {', '.join(found)}")
    none = f"{folder} holds no weights ({', '.join(SUFFIXES)})"
    if within := [name for name in inside if _holds_weights(folder / name)]:
        raise ValueError(f"{none}, but folders inside it do; give the path of one: {', '.join(within[:8])}")
    raise ValueError(f"{none}; it holds {', '.join(inside[:8]) or 'nothing'}. Is the download complete?")


def _holds_weights(place: Path) -> bool:
    """Whether a place is a folder with files of weights, as far as it can be read."""
    with contextlib.suppress(OSError):
        return place.is_dir() and any(entry.suffix in SUFFIXES for entry in place.iterdir())
    return False


def _read_shards(index: Path) -> dict[str, Any]:
    """Every tensor from the file that the index names for it.

    What another of its files says of the same tensor must be the same: transformers takes whichever it reads last.
    """
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise ValueError(f"{index} must hold a weight_map from names of tensors to names of files")
    names = defaultdict(list)  # file -> its tensors
    for name, file in weight_map.items():
        names[file].append(name)
    for file in names:
        if Path(file).name != file or Path(file).suffix not in SUFFIXES:
            raise ValueError(f"{index} names {file!r}, but only files of weights in its own folder are read")
    with reading(index.parent):
        inside = {entry.name for entry in index.parent.iterdir() if entry.is_file()}
    missing = sorted(names.keys() - inside)
    if missing or not names:
        raise FileNotFoundError(
            f"{index} names {len(names)} files of weights, {len(missing)} of them missing: {', '.join(missing)}; "
            "is the download complete?"
        )
    content, others = {}, {}
    for file, wanted in names.items():
        held, _ = _read_file(index.parent / file)
        for name in wanted:
            if name not in held:
                raise ValueError(f"{index} says that {file} holds {name}, but it does not; is the download complete?")
            content[name] = held[name]
        others |= {name: (file, held[name]) for name in held.keys() & weight_map.keys() - set(wanted)}
    for name, (file, tensor) in others.items():
        if not _are_equal(tensor, content[name]):
            raise ValueError(
                f"{index} names {weight_map[name]} for {name}, and {file} holds another tensor of that name; which one "
                "is meant, you know: save the model again, in one file"
            )
    return content


def _are_equal(first: Any, second: Any) -> bool:
    are_tensors = isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)
    return are_tensors and first.dtype == second.dtype and torch.equal(first, second)


def read_json(path: Path, most: int = _MOST_JSON) -> dict[str, Any]:
    """A JSON file that holds an object, of at most so many bytes.

    Raises:
        ValueError: if it holds something else, or cannot be read.
    """
    with reading(path):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ValueError("it is a pipe or a device, which may never end")
        with path.open("rb") as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ValueError(f"it is longer than {most:,} bytes, as no such file is")
        values = json.loads(content.decode("utf-8-sig"))  # some editors begin a file with a byte order mark
    if not isinstance(values, dict):
        raise ValueError(f"{path} should hold a JSON object, but holds a {type(values).__name__}")
    return values


def _read_file(path: Path) -> tuple[Mapping[Any, Any], Mapping[str, str]]:
    """What one file holds, and its metadata."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with reading(path):
        if path.suffix == ".safetensors":
            with path.open("rb") as raw:
                header = int.from_bytes(raw.read(8), "little")
            if header > _MOST_HEADER:
                raise ValueError(f"its header is said to take {header:,} bytes")
            with safe_open(path, framework="pt") as file:
                return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
        content = _read_pickle(path)
    if not isinstance(content, Mapping):
        raise ValueError(
            f"{path} holds a {type(content).__name__}, not a state dict; torch.save(model.state_dict(), path) saves one"
        )
    return content, {}


def _read_pickle(path: Path) -> Any:
    with path.open("rb") as file:
        is_archive = file.read(4) == b"PK\x03\x04"  # by what torch knows it
    if is_archive:
        _check_archive(path)
    with contextlib.nullcontext(path) if is_archive else _Bounded(io.FileIO(path)) as source:
        return torch.load(source, map_location="cpu", weights_only=True, mmap=is_archive)


def _check_archive(path: Path) -> None:
    """Raise a ValueError unless an archive is as torch writes it: nothing compressed, and no longer than its file."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("it is compressed, which torch.save never does; save it again with torch.save")
        if archive.comment or sum(max(entry.file_size, entry.compress_size) for entry in entries) > path.stat().st_size:
            raise ValueError("it is no archive that torch.save wrote: its parts overlap, or something follows them")
        for entry in entries:
            if entry.filename.endswith("data.pkl"):
                if entry.file_size > _MOST_PICKLE + _PICKLE_OF_ONE * len(entries):
                    raise ValueError(f"its pickle takes {entry.file_size:,} bytes without the tensors' numbers")
                _check_line(archive.read(entry))


class _Bounded(io.BufferedReader):
    """A file from before PyTorch 1.6: torch reads its pickles through this, and its numbers past it."""

    room = _MOST_PICKLE

    def _take(self, part: bytes) -> bytes:
        self.room -= len(part)
        if self.room < 0:
            raise ValueError(f"its pickle takes more than {_MOST_PICKLE:,} bytes without the tensors' numbers")
        return part

    def read(self, size: int | None = -1, /) -> bytes:
        return self._take(super().read(min(size, self.room + 1) if size and size > 0 else self.room + 1))

    def readline(self, size: int | None = -1, /) -> bytes:
        line = self._take(super().readline(self.room + 1))
        _check_line(line)
        return line


def _check_line(part: bytes) -> None:
    if b"bytearray" in part:  # the one object that weights_only makes as large as a pickle asks
        raise ValueError("it holds a bytearray, which no state dict does")


def _why_unreadable(path: Path, error: Exception) -> str:
    """What is wrong with a file, and what helps."""
    size, start = 0, b""
    with contextlib.suppress(OSError):
        if path.is_file():  # whoever opens a pipe waits
            with path.open("rb") as file:
                size, start = path.stat().st_size, file.read(40)
    if start.startswith(b"version https://git-lfs"):
        return "is a Git LFS pointer instead of the file itself; run `git lfs pull` in its folder"
    if isinstance(error, pickle.UnpicklingError):
        return (
            "holds objects other than tensors, or is damaged; loading such objects would run code, so they are "
            "refused. torch.save(model.state_dict(), path) saves the weights alone"
        )
    reason = next(iter(str(error).splitlines()), "") or type(error).__name__
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or reason}"
    if isinstance(error, json.JSONDecodeError):
        return (
            f"is no valid JSON (line {error.lineno}, column {error.colno}: {error.msg}); mend it, or download it again"
        )
    again = "If it was downloaded, download it again"
    if path.is_file() and not size:
        return f"is empty. {again}"
    if isinstance(error, zipfile.BadZipFile) or _UNFINISHED.search(reason):
        return f"ends too early, after {size:,} bytes. {again}"
    if reason.isdecimal():  # all that torch says of a file that is no pickle
        return f"was not written by torch.save ({size:,} bytes that begin with {start[:12]!r})"
    return f"cannot be read as {path.suffix} ({size:,} bytes): {reason:.300}. {again}"
