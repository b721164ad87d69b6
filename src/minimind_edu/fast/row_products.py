"""Products of a few vectors with the rows of a matrix, by our own loops: `row_products.cpp`, compiled on each machine.

A step of decoding waits for its weights. The loops read four places of a matrix at once, and use a row that was read
for all vectors. Of fewer bytes, int8 or bfloat16, more weights arrive. Then arithmetic holds a step up: widening one
to float32, multiplying and adding take three instructions for 8 weights. Processors multiply whole numbers in pairs and
add them up in one. So for int8 rows the vector becomes whole numbers too, of 16 bits:

    y[r] = scale[r] * step * sum_c weight[r, c] * round(x[c] / step)

Its largest element becomes 32,767, or less where a row is thousands wide. In a row of 512 that costs a result about
3e-5 of its size: more than a sum in float32 does, and 256 times less than 8 bits would. The sum is exact.
`plain_row_products` is the same in torch, slow and obvious.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from minimind_edu.notebook import progress

SOURCE = Path(__file__).with_suffix(".cpp")
TORCH = Path(torch.__file__).parent
INSTALL = "install a C++ compiler (on Debian and Ubuntu: apt install g++; on macOS: xcode-select --install)"


def flags(system: str = sys.platform) -> tuple[str, ...]:
    """What the compiler is told. Sums of float32 may be taken in any order, else loops stay one number at a time."""
    threads = () if system == "darwin" else ("-fopenmp",)  # Apple's compiler does not know it
    return (
        "-O3", "-march=native", *threads, "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math",
        "-fno-math-errno", "-std=c++20", "-shared", "-fPIC",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f"-I{TORCH / 'include'}", f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-lc10",
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


def in_words(error: Exception) -> str:
    """What an error says first, or the compiler that it tells of, in one line."""
    own = str(error).strip() or "no message"
    said = getattr(error, "stderr", None) or own.partition("\nOutput:\n")[2]  # of our compiler, of torch's
    lines = [line.strip() for line in str(said or own).splitlines() if line.strip()]
    return f"{type(error).__name__}, {' '.join(lines[: 3 if said else 1])}"


@cache
def why_not_loaded() -> str:
    """Compile the loops, once on a machine, and load them as `torch.ops.minimind_edu.row_products`.

    Returns:
        Why they cannot be used here; empty where they can.
    """
    try:
        _load()
        torch.library.register_fake("minimind_edu::row_products", _shape)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        return f"{in_words(error)}; {INSTALL}"
    return ""


def _shape(weights: Tensor, scales: Tensor, x: Tensor, added: Tensor | None = None) -> Tensor:
    """What torch.compile needs to know of a result."""
    return x.new_empty(x.shape[0], weights.shape[0])  # len() would take the number of vectors to be constant


def _load() -> None:
    """Load the library that was kept for this processor, compiler and torch, or compile and keep it.

    A file's name ends with a digest of what is in it: one that was cut off would end the process when it is loaded.
    """
    compiler = cpp_compiler()
    # what the compiler calls itself and this processor's instructions: a library may not be used under others
    macros = _run([*compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull])
    key = _digest(SOURCE.read_bytes() + (macros + repr((torch.__version__, flags()))).encode())
    folder = Path(torch.hub.get_dir()) / "minimind_edu"  # ~/.cache/torch/hub/minimind_edu
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    for kept in folder.glob(f"{key}-*.so"):
        if kept.stem == f"{key}-{_digest(kept.read_bytes())}":
            return torch.ops.load_library(str(kept))
    # made elsewhere and renamed, so that nobody else sees half of it; where nothing can be kept, it is made each time
    place = folder if os.access(folder, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as own:
        made = Path(own) / "row_products.so"
        for _ in progress(["once"], "compiling loops for products"):
            _run([*compiler, str(SOURCE), *flags(), "-o", str(made)])
        torch.ops.load_library(str(made))
        with suppress(OSError):
            made.replace(folder / f"{key}-{_digest(made.read_bytes())}.so")


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True, errors="replace").stdout


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def rounded_vectors(x: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers of 16 bits, `[B, C]`, and what one stands for in each vector, `[B]`, of float32 `[B, C]`.

    The step is so large that every number fits, and that 128 times the sum of all their sizes is below 2^31.
    """
    sizes = x.abs()
    room = 16_770_000 - x.shape[1]
    steps = torch.maximum(sizes.amax(1) / 32767, sizes.sum(1) / room).clamp(min=1e-30)
    return (x / steps[:, None]).round().to(torch.int16), steps


def plain_row_products(weights: Tensor, scales: Tensor, x: Tensor) -> Tensor:
    """The same products in torch.

    Args:
        weights: `[R, C]`, int8, bfloat16 or float32.
        scales: `[R]`, float32.
        x: `[B, C]`, float32.

    Returns:
        `[B, R]`.
    """
    if weights.dtype != torch.int8:
        return x @ weights.float().t() * scales
    numbers, steps = rounded_vectors(x)
    sums = numbers.long() @ weights.long().t()  # [B, R]
    return sums.float() * (scales * steps[:, None])
