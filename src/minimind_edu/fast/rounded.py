"""Decoding with rounded weights: fewer bytes to wait for, and no longer quite the same model.

    fast.rounded_decoder(model, "int4").generate(ids, 100)

Every matrix is rounded once, and prompts and single tokens are read with the same rounded matrices. So a text is
continued by one model, the one that `quantization.rounded_model` makes, up to what its products round. Its tokens may
differ from those of the model that was rounded, so this is no way of `fast.decoder`.

    weights   those of `matrix.py`; the gains of norms and the routers stay float32
    tokens    and prompts up to some length by `step.cpp`
    prompts   that are longer: one matrix after the other is restored for as long as it is multiplied

Where `step.cpp` cannot be compiled, and on a GPU, all matrices are restored at once, which saves neither memory nor
time; a warning says so.
"""

import copy
from typing import cast

import torch
from torch import nn

from minimind_edu.fast.compilable import Snapshot, why_only_plain
from minimind_edu.fast.decoding import CompiledDecoder
from minimind_edu.fast.library import why_no_library
from minimind_edu.fast.matrix import PRECISIONS, Matrix, RoundedEmbedding, RoundedLinear, rounded
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEGate
from minimind_edu.quantization import rounded_model

# So many vectors are multiplied by step.cpp; for more, restoring the matrices is faster. Measured with and without
# AVX-512: the gain is 1.2 to 1.5 at these lengths and 1 at twice as many, but for int4, which gains 1.2 or more here.
MOST = {"bfloat16": 64, "int8": 256, "int4": 512}


def rounded_decoder(model: MiniMindForCausalLM, to: str = "int8") -> "RoundedDecoder":
    """What to generate with: `rounded_decoder(model, "int8").generate(ids, 100)`.

    It keeps rounded copies of the matrices and nothing of the model, so later changes of the model are not followed.

    Args:
        to: "int4", "int8" or "bfloat16".

    Raises:
        ValueError: if there is no such precision, a part of the model is not what this package made it, a weight is
            not finite once it is rounded, a matrix has no whole groups for int4, or a model in training mode would
            lose its dropout.
    """
    if to not in PRECISIONS:
        raise ValueError(f"weights can be rounded to {' or '.join(map(repr, PRECISIONS))}, got {to!r}")
    changed = why_only_plain(model)
    if changed is not None:
        raise ValueError(f"only an unchanged model can be rounded: {changed}; undo that, or round its weights by hand")
    return RoundedDecoder(model, to)


class RoundedDecoder(CompiledDecoder):
    """Called like the model; `self.model` is the rounded one.

    Args:
        to: as in rounded_decoder.
    """

    way = "rounded"

    def __init__(self, model: MiniMindForCausalLM, to: str):
        self.most = MOST[to]
        # restored at once, all are parameters, and the rounded model is an ordinary one
        pre_norm, on_cpu = model.config.norm_placement == "pre", model.lm_head.weight.device.type == "cpu"
        self._is_ordinary = not (pre_norm and on_cpu) or why_no_library() is not None
        own = rounded_model(model, PRECISIONS[to]) if self._is_ordinary else with_rounded_parts(model, to)
        own = own.eval().float()
        for gain in own.parameters():
            if not bool(gain.isfinite().all()):
                raise ValueError("only finite numbers can be rounded, but a gain of a norm is NaN or too large")
        self._snapshot = Snapshot(own)
        super().__init__(own)

    def _look(self) -> str | None:
        return super()._look() if self._is_ordinary else None  # else the snapshot says whether it is what it was

    def _why_lean(self) -> str | None:
        return super()._why_lean() if self._is_ordinary else None


@torch.inference_mode(False)
@torch.no_grad()
def with_rounded_parts(model: MiniMindForCausalLM, to: str) -> MiniMindForCausalLM:
    """A copy whose linear maps and embedding are modules of `matrix.py`. Its gains are copies, too.

    Raises:
        ValueError: if a weight is not finite once it is rounded, or groups do not fill the rows.
    """
    own = copy.deepcopy(model, {id(it): it for it in model.parameters() if it.dim() == 2})
    done: dict[int, Matrix] = {}  # a tied matrix is rounded once

    def matrix(part: nn.Module) -> Matrix:
        weight = cast(torch.Tensor, part.weight)
        if id(weight) not in done:
            done[id(weight)] = rounded(weight.data, to)
        return done[id(weight)]

    for part in list(own.modules()):
        if isinstance(part, MoEGate):  # a row for each expert: not worth more
            part.weight = nn.Parameter(matrix(part).restored())
        for name, child in part.named_children():
            if isinstance(child, nn.Linear):
                setattr(part, name, RoundedLinear(matrix(child)))
            if isinstance(child, nn.Embedding):
                setattr(part, name, RoundedEmbedding(matrix(child)))
    return own
