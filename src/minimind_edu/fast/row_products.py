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
import subprocess
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__).with_suffix(".cpp")
TORCH = Path(torch.__file__).parent
# sums of float32 may be taken in any order, else their loops stay one number at a time
FLAGS = (
    "-O3", "-march=native", "-fopenmp", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math",
    "-fno-math-errno", "-std=c++20", "-shared", "-fPIC",
    f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
    f"-I{TORCH / 'include'}", f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-lc10",
)  # fmt: skip


@cache
def why_not_loaded() -> str:
    """Compile the loops, once on a machine, and load them as `torch.ops.minimind_edu.row_products`.

    Returns:
        Why they cannot be used here; empty where they can.
    """
    try:
        torch.ops.load_library(_library())
    except (ImportError, OSError, RuntimeError, subprocess.CalledProcessError) as error:
        return f"{type(error).__name__}, {str(error).splitlines()[0]}"
    torch.library.register_fake("minimind_edu::row_products", _shape)
    return ""


def _shape(weights: Tensor, scales: Tensor, x: Tensor) -> Tensor:
    """What torch.compile needs to know of a result."""
    return x.new_empty(x.shape[0], weights.shape[0])  # len() would take the number of vectors to be constant


def _library() -> str:
    """The path of the compiled library, in the folder where torch.compile keeps what it has compiled."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    compiler = get_cpp_compiler()
    # what the compiler calls itself and this processor's instructions: a library may not be used under others
    macros = subprocess.run(
        [compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull], capture_output=True, check=True
    ).stdout
    key = hashlib.sha256(SOURCE.read_bytes() + macros + repr((torch.__version__, FLAGS)).encode()).hexdigest()
    path = Path(cache_dir()) / f"row_products-{key[:16]}.so"
    if not path.exists():
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        subprocess.run([compiler, str(SOURCE), *FLAGS, "-o", str(partial)], capture_output=True, check=True)
        partial.replace(path)  # at once, whoever else compiles it
    return str(path)


def rounded_vectors(x: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers of 16 bits, `[B, C]`, and what one stands for in each vector, `[B]`, of float32 `[B, C]`.

    The step is so large that every number fits, and that 127 times the sum of all their sizes is below 2^31.
    """
    sizes = x.abs()
    room = 16_900_000 - x.shape[1]
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
