"""`step.cpp` as a library: compiled once on each machine, kept, and loaded.

It needs a C++ compiler and nothing of torch, so it is compiled in seconds. What is kept is for this source, these
flags, this compiler and the instructions of this processor: under others it would be slow, or end the process.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

from minimind_edu.notebook import progress

SOURCE = Path(__file__).with_name("step.cpp")
INSTALL = "install a C++ compiler (on Debian and Ubuntu: apt install g++; on macOS: xcode-select --install)"


def flags(processor: str = platform.machine()) -> tuple[str, ...]:
    """What the compiler is told. Sums of float32 may be taken in any order, else loops stay one number at a time.

    What the environment variable CXXFLAGS says comes first, so that it can add and not weaken.
    """
    native = "-mcpu=native" if processor in ("arm64", "aarch64") else "-march=native"  # as Apple's compiler has it
    return (
        *shlex.split(os.environ.get("CXXFLAGS", "")), "-O3", native, "-funroll-loops", "-fassociative-math",
        "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno", "-std=c++20", "-pthread", "-shared", "-fPIC",
    )  # fmt: skip


def cpp_compiler() -> list[str]:
    """The command that compiles C++: what the environment variable CXX says, or the first that is found.

    Raises:
        FileNotFoundError: if there is none.
    """
    command = shlex.split(os.environ.get("CXX", ""))
    for name in command[:1] or ("g++", "clang++", "c++"):
        if found := shutil.which(name):
            return [found, *command[1:]]
    raise FileNotFoundError(f"no C++ compiler is found{f' as {command[0]}' if command else ''}")


class NoLibraryError(Exception):
    """The library cannot be had here; the message is a clause that says why."""


def library(code: str | None = None) -> ctypes.CDLL:
    """The functions of `step.cpp`, or of code that somebody made of it, compiled if nothing was kept.

    Raises:
        NoLibraryError: if there is no compiler, or it fails; in its own words.
    """
    found = _tried(code)
    if isinstance(found, str):
        raise NoLibraryError(found)
    return found


def why_no_library(code: str | None = None) -> str | None:
    """Why the library cannot be had here; None: it can."""
    found = _tried(code)
    return found if isinstance(found, str) else None


@cache
def _tried(code: str | None) -> ctypes.CDLL | str:
    """The library, or why there is none; tried once in a process."""
    try:
        loaded = _load(SOURCE.read_text(encoding="utf-8") if code is None else code)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{_in_words(error)}; {INSTALL}" if code is None else _in_words(error)
    address, size = ctypes.c_void_p, ctypes.c_size_t
    loaded.room.argtypes, loaded.room.restype = (address, address, size), size
    loaded.read_tokens.argtypes, loaded.read_tokens.restype = (address, address, address, size), None
    loaded.restore.argtypes, loaded.restore.restype = (address, address, size, address), None
    loaded.multiply.argtypes, loaded.multiply.restype = (address, address, size, address, address), None
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=loaded.forget_helpers)
    return loaded


def _load(code: str) -> ctypes.CDLL:
    """Load what was kept, or compile and keep it.

    A file's name ends with a digest of what is in it: one that was cut off would end the process when it is loaded.
    """
    compiler = cpp_compiler()
    # what the compiler calls itself and this processor's instructions
    macros = _run([*compiler, *flags(), "-dM", "-E", "-x", "c++", os.devnull])
    key = _digest((code + macros + repr(flags())).encode())
    folder = Path(torch.hub.get_dir()) / "minimind_edu"  # ~/.cache/torch/hub/minimind_edu
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    for kept in folder.glob(f"{key}-*.so"):
        if kept.stem == f"{key}-{_digest(kept.read_bytes())}":
            return ctypes.CDLL(str(kept))
    # made elsewhere and renamed, so that nobody else sees half of it; where nothing can be kept, it is made each time
    place = folder if os.access(folder, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as scratch:
        source, made = Path(scratch) / "step.cpp", Path(scratch) / "step.so"
        source.write_text(code, encoding="utf-8")
        for _ in progress(["once"], "compiling the step for one token"):
            _run([*compiler, *flags(), str(source), "-o", str(made)])
        loaded = ctypes.CDLL(str(made))
        with suppress(OSError):
            made.replace(folder / f"{key}-{_digest(made.read_bytes())}.so")
    return loaded


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True, errors="replace").stdout


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _in_words(error: Exception) -> str:
    """What an error says first, or the compiler that it tells of, in one line."""
    message = getattr(error, "stderr", None)
    lines = [line.strip() for line in str(message or error).splitlines() if line.strip()]
    return f"{type(error).__name__}, {' '.join(lines[: 3 if message else 1]) or 'no message'}"
