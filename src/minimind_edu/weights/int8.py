"""int8 weights: every row of a matrix as whole numbers from -127 to 127, and one float32 scale that restores its size.

The rounding is one of `quantization.py`: eight bits, a scale for each row, whose largest weight becomes 127. A weight
takes one byte instead of four. Vectors (the gains of norms) stay as they are: they are few.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from minimind_edu.model import quantization

ROWS = quantization.Grid(bits=8, per="row")
FORMAT = "int8 rows"  # what a file's metadata says under "weights"
SCALE = ".scale"  # after a matrix's name: the name of its scales


def quantize(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """int8 values [R, C] and float32 scales [R] of a matrix [R, C]; a row of zeros gets the scale 1.

    Raises:
        ValueError: if it is no matrix, or a weight is not finite.
    """
    values, scales = quantization.quantize(matrix, ROWS)
    return values, scales[:, 0]


def dequantize(values: Tensor, scales: Tensor) -> Tensor:
    """The float32 matrix [R, C] that int8 values [R, C] and scales [R] stand for."""
    return quantization.dequantize(values, scales[:, None])


def quantize_state(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A state dict with each matrix replaced by its int8 values, and its scales under the name + `.scale`."""
    stored: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if tensor.dim() == 2:
            stored[name], stored[name + SCALE] = quantize(tensor)
        else:
            stored[name] = tensor
    return stored


def dequantize_state(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state dict that `quantize_state` was given, but for the rounding.

    Raises:
        ValueError: if int8 values are no matrix, or their scales are missing or do not fit.
    """
    state = {}
    for name, tensor in stored.items():
        if name.endswith(SCALE) and name.removesuffix(SCALE) in stored:
            continue
        if tensor.dtype == torch.int8:
            if tensor.dim() != 2:
                raise ValueError(f"{name} holds int8, so it must be a matrix, but its shape is {list(tensor.shape)}")
            scales = stored.get(name + SCALE)
            if scales is None or scales.shape != tensor.shape[:1] or scales.dtype != torch.float32:
                found = "there is none" if scales is None else f"it holds {scales.dtype} {list(scales.shape)}"
                raise ValueError(
                    f"{name} holds int8 rows, so {name}{SCALE} must hold {len(tensor)} scales in float32, but {found}"
                )
            tensor = dequantize(tensor, scales)
        state[name] = tensor
    return state
