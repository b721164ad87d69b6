"""Decoding with rounded weights: fewer bytes to wait for, and no longer quite the same model.

    fast.rounded_decoder(model, "int4").generate(ids, 100)

Every matrix is rounded once, and prompts and single tokens are read with the same rounded matrices. So a text is
continued by one model, the one that `quantization.rounded_model` makes, up to what its products round. Its tokens may
differ from those of the model that was rounded, so this is no way of `fast.decoder`. It keeps the promises of
`decoding.py` towards the rounded model: a text is compared with that, whose functions may be patched as any model's.

    weights   those of `matrix.py`; the gains of norms and the routers stay float32
    tokens    by `step.cpp`
    prompts   by the modules of `matrix.py`: up to some length each multiplies as `step.cpp` does, then one matrix after
              the other is restored for as long as it is multiplied

Where `step.cpp` cannot be compiled, and on a GPU, all matrices are restored at once, which saves neither memory nor
time; a warning says so.
"""

import copy
from typing import cast

import torch
from torch import nn

from minimind_edu.fast.compilable import why_only_plain
from minimind_edu.fast.decoding import CompiledDecoder
from minimind_edu.fast.library import why_no_library
from minimind_edu.fast.matrix import MOST, PRECISIONS, Matrix, RoundedEmbedding, RoundedLinear, rounded
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.model.moe import MoEGate
from minimind_edu.model.quantization import BFLOAT16, rounded_model
from minimind_edu.validation import check_finite
from minimind_edu.weights.without_storage import without_storage

# Of a row's largest logit, so much may lie between step.cpp and the rounded model's modules, which multiply alike. What
# another order of sums changes in the last bit may round a number of a vector to its neighbor. Measured: at most 3e-6,
# 5e-4 and 4e-2, for 16 layers.
CLOSE = {BFLOAT16: 1e-4, "int8": 3e-3, "int4": 0.2}


def rounded_decoder(model: MiniMindForCausalLM, to: str = "int8") -> "RoundedDecoder":
    """What to generate with: `rounded_decoder(model, "int8").generate(ids, 100)`.

    It keeps rounded copies of the matrices and nothing of the model, so later changes of the model are not followed.

    Args:
        to: "int4", "int8" or "bfloat16".

    Raises:
        ValueError: if there is no such precision, the model does not compute what its config and its weights say, a
            weight is not finite once it is rounded, a matrix has no whole groups for int4, or a model in training mode
            would lose its dropout.
    """
    if to not in PRECISIONS:
        raise ValueError(f"weights can be rounded to {' or '.join(map(repr, PRECISIONS))}, got {to!r}")
    changed = why_only_plain(model)
    if changed is None:
        check_finite(model, torch.bfloat16 if to == BFLOAT16 else torch.float32)
        changed = _why_another(model)
    if changed is not None:
        raise ValueError(f"only an unchanged model can be rounded: {changed}; undo that, or round its weights by hand")
    return RoundedDecoder(model, to)


class RoundedDecoder(CompiledDecoder):
    """Called like a CompiledDecoder; `self.model` is the rounded one.

    Args:
        to: as in rounded_decoder.
    """

    way = "rounded"

    def __init__(self, model: MiniMindForCausalLM, to: str):
        self.most, self.close = MOST[to], CLOSE[to]
        pre_norm, on_cpu = model.config.norm_placement == "pre", model.lm_head.weight.device.type == "cpu"
        by_step = pre_norm and on_cpu and why_no_library() is None
        rounded_copy = with_rounded_parts(model, to) if by_step else rounded_model(model, PRECISIONS[to])
        super().__init__(rounded_copy.eval().float())


@torch.no_grad()
def _why_another(model: MiniMindForCausalLM) -> str | None:
    """Whether a new model with these weights computes something else; None: the same, up to rounding."""
    new = without_storage(model.config).eval()
    try:
        new.load_state_dict(model.state_dict(), assign=True)
    except RuntimeError:
        return "its tensors are not those that its config says"
    length = min(16, model.config.max_position_embeddings)
    ids = torch.arange(length, device=model.lm_head.weight.device)[None] * 7 % model.config.vocab_size
    logits, expected = model(ids).logits, new(ids).logits
    close = torch.finfo(expected.dtype).eps ** 0.5 / 4 * expected.abs().amax(-1, keepdim=True)
    same = logits.shape == expected.shape
    if same:  # where a weight is near the largest number, both may be beyond it
        near = ((logits - expected).abs() <= close) | (logits == expected) | (logits.isnan() & expected.isnan())
        same = bool(near.all())
    return None if same else "a new model with its weights gives other logits"


@torch.inference_mode(False)
@torch.no_grad()
def with_rounded_parts(model: MiniMindForCausalLM, to: str) -> MiniMindForCausalLM:
    """A copy whose linear maps and embedding are modules of `matrix.py`. Its gains are copies, too.

    Raises:
        ValueError: if a weight is not finite once it is rounded, or groups do not fill the rows.
    """
    rounded_copy = copy.deepcopy(model, {id(weight): weight for weight in model.parameters() if weight.dim() == 2})
    done: dict[int, Matrix] = {}  # a tied matrix is rounded once

    def matrix(part: nn.Module) -> Matrix:
        weight = cast(torch.Tensor, part.weight)
        if id(weight) not in done:
            done[id(weight)] = rounded(weight.data, to)
        return done[id(weight)]

    for part in list(rounded_copy.modules()):
        if isinstance(part, MoEGate):  # a row for each expert: not worth more
            part.weight = nn.Parameter(matrix(part).restored())
        for name, child in part.named_children():
            if isinstance(child, nn.Linear):
                setattr(part, name, RoundedLinear(matrix(child)))
            if isinstance(child, nn.Embedding):
                setattr(part, name, RoundedEmbedding(matrix(child)))
    return rounded_copy
