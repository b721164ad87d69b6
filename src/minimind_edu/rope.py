"""Rotary position embedding: turn queries and keys by an angle that grows with their position.

Pair i of a head's channels turns by position * inv_freq[i], with inv_freq[i] = base^(-2i/dim). The dot product of a
query turned for position m with a key turned for position n then depends on m and n only through m - n.
Su et al. 2021, arXiv 2104.09864.

Which channels form a pair is a convention. MiniMind and transformers pair channel i with i + dim/2 (half-split);
the paper and Meta's Llama pair 2i with 2i + 1 (interleaved), and Meta's code writes the pair as one complex number.
The three forms agree after a permutation of the channels, and are wrong when mixed.
MiniMind: `model/model_minimind.py`, precompute_freqs_cis and apply_rotary_pos_emb.
"""

import torch
from torch import Tensor

from minimind_edu.rope_frequencies import MOST_POSITIONS, RopeScaling, rope_frequencies
from minimind_edu.validation import check_count, check_even


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

    Both are `[end, dim]`: the `[end, dim/2]` angles stand there twice, side by side, so that one elementwise product
    serves both channels of a pair. The name is MiniMind's, where it once returned complex numbers.

    Raises:
        ValueError: if dim is not an even number of at least 2.
    """
    angles = rope_angles(dim, end, rope_base, rope_scaling, dtype)
    factor = rope_scaling.table_factor if rope_scaling and rope_scaling.starts_at(end) else 1.0
    cos = torch.cat([angles.cos(), angles.cos()], dim=-1) * factor  # [end, D/2] -> [end, D]
    sin = torch.cat([angles.sin(), angles.sin()], dim=-1) * factor
    return cos, sin


def rotate_half(x: Tensor) -> Tensor:
    """A quarter turn of every half-split pair: `[first, second]` becomes `[-second, first]`. Same shape."""
    first, second = x.chunk(2, dim=-1)  # [..., D] -> 2 x [..., D/2]
    return torch.cat([-second, first], dim=-1)


def apply_rotary_pos_emb(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1
) -> tuple[Tensor, Tensor]:
    """Turn queries and keys for their positions, half-split form.

    A turn by an angle is cos times the vector plus sin times the vector a quarter turn ahead.

    Args:
        q: `[B, S, H, D]`, or `[B, H, S, D]` with unsqueeze_dim=0.
        k: like q, with K heads in place of H.
        cos, sin: `[S, D]`, the rows of the tables for exactly these S positions.
        unsqueeze_dim: where the heads' axis is put into the tables: 1 when it follows the positions, 0 when it
            stands before them.

    Returns:
        q and k, same shapes, same dtypes; the turning itself is done in the wider dtype of tensor and table.

    Raises:
        ValueError: if the tables do not have one row for each position and one column for each channel, if q or k
            holds integers, or its channels are no pairs.
    """
    for name, x in (("q", q), ("k", k)):
        _check_tables(name, x, cos, sin, unsqueeze_dim, columns=x.shape[-1])
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)  # [S, D] -> [S, 1, D]
    q_turned = q * cos + rotate_half(q) * sin
    k_turned = k * cos + rotate_half(k) * sin
    return q_turned.to(q.dtype), k_turned.to(k.dtype)


def _check_tables(name: str, x: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int, columns: int) -> None:
    """Broadcasting would accept a wrong axis whenever two sizes happen to be equal; say it instead."""
    if unsqueeze_dim not in (0, 1):
        raise ValueError(f"unsqueeze_dim must be 1 for [B, S, H, D] or 0 for [B, H, S, D], got {unsqueeze_dim}")
    if cos.shape != sin.shape or cos.dim() != 2:
        raise ValueError(f"cos and sin must both be [S, D], got {list(cos.shape)} and {list(sin.shape)}")
    axis = -3 if unsqueeze_dim == 1 else -2
    if not (x.is_floating_point() and cos.is_floating_point() and sin.is_floating_point()):
        raise ValueError(
            f"{name}, cos and sin must hold floating-point numbers, got {x.dtype}, {cos.dtype} and {sin.dtype}; "
            "a rotated integer is none"
        )
    if x.dim() < 3 or x.shape[axis] != cos.shape[0]:
        layout = "[B, S, H, D]" if unsqueeze_dim == 1 else "[B, H, S, D]"
        raise ValueError(
            f"{name} of shape {list(x.shape)} is read as {layout} because unsqueeze_dim={unsqueeze_dim}, so the tables "
            f"need one row a position, got tables of shape {list(cos.shape)}; slice them to [start:start + S], or "
            "give the other unsqueeze_dim"
        )
    check_even(f"the head_dim of {name}", x.shape[-1])
    if cos.shape[1] != columns:
        raise ValueError(
            f"{name} has {x.shape[-1]} channels a head, so the tables need {columns} columns, "
            f"got {cos.shape[1]}; compute them with dim={x.shape[-1]}"
        )


def rotate_interleaved(x: Tensor) -> Tensor:
    """A quarter turn of every interleaved pair: `(a, b)` becomes `(-b, a)` in place. Same shape."""
    even, odd = x[..., 0::2], x[..., 1::2]  # [..., D] -> 2 x [..., D/2]
    return torch.stack([-odd, even], dim=-1).flatten(-2)  # [..., D/2, 2] -> [..., D]


def apply_rotary_interleaved(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1
) -> tuple[Tensor, Tensor]:
    """Turn queries and keys for their positions, pairing channel 2i with 2i + 1 as in the paper.

    Args:
        q, k, unsqueeze_dim: as in `apply_rotary_pos_emb`.
        cos, sin: `[S, D/2]`, one column a pair: `rope_angles(...).cos()` and `.sin()`.

    Raises:
        ValueError: if the tables do not have one row for each position and one column for each pair.
    """
    for name, x in (("q", q), ("k", k)):
        _check_tables(name, x, cos, sin, unsqueeze_dim, columns=x.shape[-1] // 2)
    cos = cos.repeat_interleave(2, dim=-1).unsqueeze(unsqueeze_dim)  # [S, D/2] -> [S, D] -> [S, 1, D]
    sin = sin.repeat_interleave(2, dim=-1).unsqueeze(unsqueeze_dim)
    q_turned = q * cos + rotate_interleaved(q) * sin
    k_turned = k * cos + rotate_interleaved(k) * sin
    return q_turned.to(q.dtype), k_turned.to(k.dtype)


def precompute_freqs_complex(
    dim: int, end: int = 32 * 1024, rope_base: float = 1e6, dtype: torch.dtype = torch.float32
) -> Tensor:
    """e^(i * angle) for every position and pair: `[end, dim/2]` complex, all of length 1. Meta's Llama."""
    angles = rope_angles(dim, end, rope_base, dtype=dtype)
    return torch.polar(torch.ones_like(angles), angles)


def apply_rotary_emb(q: Tensor, k: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
    """Turn queries and keys by complex multiplication; pair (2i, 2i + 1) is one complex number. Meta's Llama.

    Args:
        q: `[B, S, H, D]`.
        k: `[B, S, K, D]`.
        freqs_cis: `[S, D/2]` complex, the rows for exactly these S positions.

    Raises:
        ValueError: if the table does not have one row for each position and one column for each pair.
    """
    for name, x in (("q", q), ("k", k)):
        if not freqs_cis.is_complex():
            raise ValueError(f"freqs_cis must be complex, got {freqs_cis.dtype}; precompute_freqs_complex makes it")
        _check_tables(name, x, freqs_cis.real, freqs_cis.imag, 1, columns=x.shape[-1] // 2)

    def turn(x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous())  # [B, S, H, D] -> [B, S, H, D/2]
        turned = pairs * freqs_cis.unsqueeze(1)  # the heads' axis goes in: [S, D/2] -> [S, 1, D/2]
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)  # [B, S, H, D/2, 2] -> [B, S, H, D]

    return turn(q), turn(k)


def half_split_permutation(dim: int) -> Tensor:
    """The reordering of channels that turns interleaved pairs into half-split ones: `[0, 2, 4, ..., 1, 3, 5, ...]`.

    With p = half_split_permutation(D), turning x[..., p] in the half-split form equals turning x in the interleaved
    form and reordering afterwards. Applied to the rows of a query and a key projection, head by head, it converts a
    checkpoint of one convention to the other.

    Raises:
        ValueError: if dim is not an even number of at least 2.
    """
    check_even("dim", dim)
    return torch.cat([torch.arange(0, dim, 2), torch.arange(1, dim, 2)])
