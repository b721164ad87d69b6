"""Decoding with rounded weights: fewer bytes to wait for, and no longer quite the same model.

    fast.rounded_decoder(model, to="int8").generate(ids, 100)

Every matrix is rounded once, and prompts and single tokens are read with the same rounded matrices. So a text is
continued by one model, the one that `weights/int8.py` would store and restore, up to what its products round. Its
tokens may differ from those of the model that was rounded, so this is no way of `fast.decoder`.

    weights   int8: one byte each, and one scale for each row; bfloat16: two bytes. The gains of norms stay float32.
    prompts   one matrix after the other is restored to float32 for as long as it is multiplied. With bfloat16, on
              processors that have the instructions, prompts are multiplied in bfloat16 instead.
    tokens    by the compiled `token_step`, with the loops of `row_products.cpp` for its products

Those loops are compiled once on a machine, the step once for a decoder. Where the loops cannot be compiled, and on a
GPU, the rounded model reads everything by itself, which saves memory and no time; a warning says so.
"""

import copy
from typing import cast

import torch
from torch import nn

from minimind_edu.fast.compilable import Snapshot, why_only_plain
from minimind_edu.fast.decoding import CompiledDecoder
from minimind_edu.fast.layout import Places, Weights, gather
from minimind_edu.fast.row_products import why_not_loaded
from minimind_edu.fast.rows import PRECISIONS, RoundedEmbedding, RoundedLinear, Rows, rounded
from minimind_edu.model import MiniMindForCausalLM
from minimind_edu.moe import MoEGate


def rounded_decoder(model: MiniMindForCausalLM, to: str = "int8") -> "RoundedDecoder":
    """What to generate with: `rounded_decoder(model, "int8").generate(ids, 100)`.

    It keeps rounded copies of the matrices and nothing of the model, so later changes of the model are not followed.

    Args:
        to: "int8" or "bfloat16".

    Raises:
        ValueError: if there is no such precision, a part of the model is not what this package made it, a weight is
            not finite once it is rounded, or a model in training mode would lose its dropout.
    """
    if to not in PRECISIONS:
        raise ValueError(f"weights can be rounded to {' or '.join(map(repr, PRECISIONS))}, got {to!r}")
    changed = why_only_plain(model)
    if changed is not None:
        raise ValueError(f"only an unchanged model can be rounded: {changed}; undo that, or round its weights by hand")
    return RoundedDecoder(model, to)


class RoundedDecoder(CompiledDecoder):
    """Called like the model; `self.model` is the rounded one, and `self.weights` are the same rows.

    Args:
        to: as in rounded_decoder.
    """

    way = "rounded"

    def __init__(self, model: MiniMindForCausalLM, to: str):
        matrices = {id(it): it for it in model.parameters() if it.dim() == 2}
        own = copy.deepcopy(model, matrices).eval()  # its gains are copies; its matrices are read here, and replaced
        self.weights = round_weights(own, to)
        self._snapshot = Snapshot(own)
        super().__init__(own)

    def _take_weights(self) -> str | None:
        """They are what they were: nobody else has this model."""
        return "it is made for the CPU" if self.weights.gain.device.type != "cpu" else why_not_loaded() or None


@torch.inference_mode(False)
@torch.no_grad()
def round_weights(model: MiniMindForCausalLM, to: str) -> Weights:
    """Round the matrices of a model in place, and give them as a step reads them; all else becomes float32.

    Raises:
        ValueError: if a weight is not finite once it is rounded.
    """

    def join(places: Places) -> Rows:
        """The rows of linear maps with the same input, one map after the other. The maps become views of them."""
        matrices = [cast(nn.Linear, getattr(part, name)).weight for part, name in places]
        sizes = [len(matrix) for matrix in matrices]
        rows = rounded(torch.cat(matrices), to)
        pieces = map(Rows, rows.values.split(sizes), rows.scales.split(sizes))
        for (part, name), piece in zip(places, pieces, strict=True):
            setattr(part, name, RoundedLinear(piece))
        return rows

    def stack(places: Places) -> Rows:
        return Rows(*(part.unflatten(0, (len(places), -1)) for part in join(places)))  # [N*R, ...] -> [N, R, ...]

    for part in model.modules():
        if isinstance(part, MoEGate):  # a row for each expert: not worth more
            part.weight = nn.Parameter(rounded(part.weight, to).restored())
    for gain in model.parameters():
        if gain.dim() == 1:
            gain.data = gain.data.float()
            if not bool(gain.isfinite().all()):
                raise ValueError("only finite numbers can be rounded, but a gain of a norm is NaN or too large")
    embedding = model.model.embed_tokens.weight
    tied = model.lm_head.weight is embedding
    weights = gather(model, join, stack)
    weights = weights._replace(embedding=weights.output if tied else rounded(embedding, to))
    model.model.embed_tokens = cast(nn.Embedding, RoundedEmbedding(cast(Rows, weights.embedding)))
    model.float()  # the tables of positions, too
    return weights
