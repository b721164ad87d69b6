"""Rotary position embedding: rotate queries and keys by an angle that grows with their position.

Pair i of a head's channels rotates by position * inv_freq[i], with inv_freq[i] = base^(-2i/dim). The dot product of a
query rotated for position m with a key rotated for position n then depends on m and n only through m - n.
Su et al. 2021, arXiv 2104.09864.

Which channels form a pair is a convention. MiniMind and transformers pair channel i with i + dim/2 (half-split); the
forms of others are in `for_comparison.py`.
MiniMind: `model/model_minimind.py`, precompute_freqs_cis and apply_rotary_pos_emb.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from minimind_edu.model.rope_frequencies import RopeScaling, rope_frequencies
from minimind_edu.validation import check_count, check_even

MOST_POSITIONS = 2**22  # of one table: 2 GB for heads of 64 channels


def rope_angles(
    dim: int,
    end: int,
    rope_base: float = 1e6,
    rope_scaling: RopeScaling | None = None,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The angle of every pair at every position, in radians: `[end, dim/2]`, row p is p * inv_freq."""
    check_count("end", end, at_least=0, at_most=MOST_POSITIONS)
    scaling = rope_scaling if rope_scaling and rope_scaling.starts_at(end) else None
    inv_freq = rope_frequencies(dim, rope_base, scaling, dtype)
    return torch.outer(torch.arange(end, dtype=dtype), inv_freq)  # [end] x [D/2] -> [end, D/2]


def precompute_freqs_cis(
    dim: int,
    end: int = 32 * 1024,
    rope_base: float = 1e6,
    rope_scaling: RopeScaling | None = None,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """The cos and sin tables of the half-split form, for positions 0 to end - 1.

    Both are `[end, dim]`: the `[end, dim/2]` angles appear twice, side by side, so that one elementwise product serves
    both channels of a pair. The name is MiniMind's, where it once returned complex numbers. Errors as in
    `rope_frequencies`.
    """
    angles = rope_angles(dim, end, rope_base, rope_scaling, dtype)
    factor = rope_scaling.table_factor if rope_scaling and rope_scaling.starts_at(end) else 1.0
    cos = torch.cat([angles.cos(), angles.cos()], dim=-1) * factor  # [end, D/2] -> [end, D]
    sin = torch.cat([angles.sin(), angles.sin()], dim=-1) * factor
    return cos, sin


class RopeTables(nn.Module):
    """A module that knows the tables of `precompute_freqs_cis` for wherever its weights are.

    They are computed, not learned: they are no part of the state dict, and they stay in float32 (or wider) when the
    weights are converted to half precision. Others may be put in their place, and are then kept.
    """

    def __init__(self, dim: int, end: int, rope_base: float, rope_scaling: RopeScaling | None):
        super().__init__()
        self._sizes = dim, end, rope_base, rope_scaling
        self._tables = self._computed(torch.float32)
        self._given = False  # whether others were put in their place

    @property
    def freqs_cos(self) -> Tensor:
        """`[end, dim]`"""
        return self._there()[0]

    @freqs_cos.setter
    def freqs_cos(self, table: Tensor) -> None:
        self._tables, self._given = (table, self._tables[1]), True

    @property
    def freqs_sin(self) -> Tensor:
        """`[end, dim]`"""
        return self._there()[1]

    @freqs_sin.setter
    def freqs_sin(self, table: Tensor) -> None:
        self._tables, self._given = (self._tables[0], table), True

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RopeTables":
        """Moving and converting (`.to`, `.half`) come through here: the tables follow before a compiler looks."""
        super()._apply(fn, recurse)
        self._there()
        return self

    def _computed(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        if torch.compiler.is_compiling():
            return precompute_freqs_cis(*self._sizes, dtype)
        # not where a surrounding `with torch.device("meta")` says: nothing could be moved from there
        with torch.device("cpu"):
            return precompute_freqs_cis(*self._sizes, dtype)

    def _there(self) -> tuple[Tensor, Tensor]:
        """The tables where the weights are, in float32 or wider if they are; remembered until those move again."""
        weight = next(self.parameters())
        dtype = torch.promote_types(weight.dtype, torch.float32)
        tables = self._tables
        if tables[0].dtype != dtype and not self._given:
            tables = self._computed(dtype)
        cos, sin = (table.to(weight.device) for table in tables)
        if not (weight.is_meta or torch.compiler.is_compiling()):  # what a compiler follows holds no numbers
            self._tables = cos, sin
        return cos, sin


def rotate_half(x: Tensor) -> Tensor:
    """Rotate every half-split pair by 90 degrees: `[first, second]` becomes `[-second, first]`. Same shape."""
    first, second = x.chunk(2, dim=-1)  # [..., D] -> 2 x [..., D/2]
    return torch.cat([-second, first], dim=-1)


def apply_rotary_pos_emb(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1
) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys for their positions, half-split form.

    A vector rotated by an angle is cos times the vector plus sin times the vector rotated by 90 degrees.

    Args:
        q: `[B, S, H, D]`, or `[B, H, S, D]` with unsqueeze_dim=0.
        k: like q, with K heads in place of H.
        cos, sin: `[S, D]`, the rows of the tables for exactly these S positions.
        unsqueeze_dim: where the tables get the heads' axis: 1 if it follows the positions, 0 if it precedes them.

    Returns q and k, same shapes, same dtypes; they are rotated in the wider dtype of tensor and table. Raises a
    ValueError if the tables lack one row per position and one column per channel, or q or k holds integers.
    """
    for name, x in (("q", q), ("k", k)):
        check_tables(name, x, cos, sin, unsqueeze_dim, columns=x.shape[-1])
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)  # [S, D] -> [S, 1, D]
    q_rotated = q * cos + rotate_half(q) * sin
    k_rotated = k * cos + rotate_half(k) * sin
    return q_rotated.to(q.dtype), k_rotated.to(k.dtype)


def check_tables(name: str, x: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int, columns: int) -> None:
    """Broadcasting would accept a wrong axis whenever two sizes happen to be equal; say it instead."""
    if unsqueeze_dim not in (0, 1):
        raise ValueError(f"unsqueeze_dim must be 1 for [B, S, H, D] or 0 for [B, H, S, D], got {unsqueeze_dim}")
    if cos.shape != sin.shape or cos.dim() != 2:
        raise ValueError(f"cos and sin must both be [S, D], got {list(cos.shape)} and {list(sin.shape)}")
    if not (x.is_floating_point() and cos.is_floating_point() and sin.is_floating_point()):
        raise ValueError(
            f"{name}, cos and sin must hold floating-point numbers, got {x.dtype}, {cos.dtype} and {sin.dtype}; "
            "a rotated integer is none"
        )
    axis, layout = ((-2, "[B, H, S, D]"), (-3, "[B, S, H, D]"))[unsqueeze_dim]
    if x.dim() < 3 or x.shape[axis] != cos.shape[0]:
        raise ValueError(
            f"{name} of shape {list(x.shape)} is read as {layout} because unsqueeze_dim={unsqueeze_dim}, so the tables "
            f"need one row per position, got tables of shape {list(cos.shape)}; slice them to [start:start + S], or "
            "give the other unsqueeze_dim"
        )
    check_even(f"the head_dim of {name}", x.shape[-1])
    if cos.shape[1] != columns:
        raise ValueError(
            f"{name} has {x.shape[-1]} channels per head, so the tables need {columns} columns, "
            f"got {cos.shape[1]}; compute them with dim={x.shape[-1]}"
        )
