"""AttentionXRay: one head on five tokens, every stage in view: dot product, mask, softmax, mixture of values.

The figure computes in JavaScript (attention_xray/math.js, compared with `minimind_edu.model.attention` in the tests);
the numbers in its table come from the package, in float64. The vectors are random, not learned: what is shown is how
attention computes, not what a trained head looks for.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from traitlets import Bool, Bunch, Enum, Int, List, TraitError, Unicode, validate

from minimind_edu.model.attention import attention
from minimind_edu.model.masks import causal_mask
from minimind_edu.model.norms import RMSNorm
from minimind_edu.model.rope import apply_rotary_pos_emb, precompute_freqs_cis
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite, proposed

TOKENS = ["the", "cat", "naps", "it", "purrs"]
ORDER = [3, 0, 4, 1, 2]  # it the purrs cat naps
HEAD_DIMS = (4, 8, 16, 32, 64, 128)
ROPE_BASE = 1e6
QK_NORM_EPS = 1e-6
LOUD_KEY = 2  # one key is twice as long as the others: what QK-norm takes out
_VALUE_DIM = 4
_SEED = 25


class Stages(NamedTuple):
    """One head at work, rows in the order in which the tokens stand."""

    scores: Tensor  # [S, S], before the mask
    weights: Tensor  # [S, S]
    output: Tensor  # [S, 4]


def _vectors() -> dict[str, list[list[float]]]:
    """Unit-normal queries, keys `[5, 128]` and values `[5, 4]`, rounded to two decimals; one key is loud."""
    random = torch.Generator().manual_seed(_SEED)
    both = torch.randn(2, len(TOKENS), HEAD_DIMS[-1], generator=random, dtype=torch.float64)
    value = torch.randn(len(TOKENS), _VALUE_DIM, generator=random, dtype=torch.float64)
    query, key = both
    key[LOUD_KEY] *= 2
    named = {"query": query, "key": key, "value": value}
    return {name: [[round(x, 2) for x in row] for row in t.tolist()] for name, t in named.items()}


_DEFAULT = _vectors()


def _row_of(length: int) -> List:
    """The trait of one vector with this many channels."""
    return List(Finite(), minlen=length, maxlen=length)


class AttentionXRay(Figure):
    """Choose head_dim, scaling, mask, RoPE and QK-norm, permute the tokens, and look into every score.

    Args:
        tokens: the words, one for each position.
        query, key: `[S, 128]`; a head of head_dim D has the first D channels.
        value: `[S, 4]`.
        order: the order of the tokens when `permuted`.
        head_dim: one of HEAD_DIMS.
        scaled, causal, rope, qk_norm: what attention does beyond the bare dot product.
        permuted: whether the tokens stand in `order`.
        row, column: the score that is written out, as places in the table.

    Raises:
        TraitError: if the tokens and vectors do not fit together, or the chosen score does not exist.
    """

    _repr_traits = ("head_dim", "scaled", "causal", "rope", "qk_norm", "permuted")

    tokens = List(Unicode(), default_value=TOKENS).tag(sync=True)
    query = List(_row_of(HEAD_DIMS[-1]), default_value=_DEFAULT["query"]).tag(sync=True)
    key = List(_row_of(HEAD_DIMS[-1]), default_value=_DEFAULT["key"]).tag(sync=True)
    value = List(_row_of(_VALUE_DIM), default_value=_DEFAULT["value"]).tag(sync=True)
    order = List(Int(), default_value=ORDER).tag(sync=True)
    rope_base = Finite(ROPE_BASE, min=1.0).tag(sync=True)
    qk_norm_eps = Finite(QK_NORM_EPS, min=0.0).tag(sync=True)
    head_dim = Enum(HEAD_DIMS, default_value=16).tag(sync=True)
    scaled = Bool(True).tag(sync=True)
    causal = Bool(True).tag(sync=True)
    rope = Bool(False).tag(sync=True)
    qk_norm = Bool(False).tag(sync=True)
    permuted = Bool(False).tag(sync=True)
    row = Int(4, min=0).tag(sync=True)
    column = Int(1, min=0).tag(sync=True)

    @validate("tokens", "query", "key", "value", "order")
    def _one_of_each(self, proposal: Bunch) -> list[Any]:
        tokens, *vectors, order = proposed(self, proposal, "tokens", "query", "key", "value", "order")
        lengths = [len(rows) for rows in vectors]
        if lengths != [len(tokens)] * 3 or sorted(order) != list(range(len(tokens))):
            raise TraitError(
                f"{len(tokens)} tokens need as many queries, keys and values and an order of all of them, got "
                f"{lengths} vectors and the order {order}"
            )
        return proposal["value"]

    @validate("row", "column")
    def _a_place_in_the_table(self, proposal: Bunch) -> int:
        last = len(self.tokens) - 1
        if proposal["value"] > last:
            raise TraitError(f"{proposal['trait'].name} must be from 0 to {last}, got {proposal['value']}")
        return proposal["value"]

    def stages(self, **changes: Any) -> Stages:
        """Scores, weights and output with the figure's settings, or with those in `changes`. float64."""
        names = ("head_dim", "scaled", "causal", "rope", "qk_norm", "permuted")
        s = {name: getattr(self, name) for name in names} | changes
        vectors = [torch.tensor(rows, dtype=torch.float64) for rows in (self.query, self.key, self.value)]
        if s["permuted"]:
            vectors = [rows[self.order] for rows in vectors]
        count, dim = len(self.tokens), s["head_dim"]
        q, k = (rows[None, :, None, :dim] for rows in vectors[:2])  # [1, S, 1, D]
        v = vectors[2][None, :, None]
        if s["qk_norm"]:
            norm = RMSNorm(dim, self.qk_norm_eps)
            q, k = norm.norm(q), norm.norm(k)
        if s["rope"]:
            tables = precompute_freqs_cis(dim, count, self.rope_base, dtype=torch.float64)
            q, k = apply_rotary_pos_emb(q, k, *tables)
        if not s["scaled"]:
            q = q * dim**0.5  # `attention` always scales
        mask = causal_mask(count, count) if s["causal"] else None
        output, weights = attention(q, k, v, mask)
        scores = q[0, :, 0] @ k[0, :, 0].T / dim**0.5
        return Stages(scores, weights[0, 0], output[0, :, 0])

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for scaled in (False, True):
            largest = [self.stages(head_dim=dim, scaled=scaled).weights[-1].max() for dim in HEAD_DIMS]
            rows.append(
                (
                    f"largest weight in the last row, {'scaled' if scaled else 'not scaled'}",
                    ", ".join(f"{weight:.3f}" for weight in largest),
                )
            )
        for name in ("neither mask nor RoPE", "causal mask", "RoPE"):
            changes = {"causal": name == "causal mask", "rope": name == "RoPE"}
            before, after = (self.stages(**changes, permuted=permuted).output for permuted in (False, True))
            gap = (after - before[self.order]).abs().max()
            rows.append((f"tokens permuted, {name}: largest change of an output", f"{gap:.3f}"))
        return (
            f"One head on {len(self.tokens)} tokens with head_dim {', '.join(map(str, HEAD_DIMS))}: without scaling "
            "a growing head_dim gives one token all the weight; without mask and RoPE an output does not depend on "
            "the order of the tokens.",
            rows,
        )
