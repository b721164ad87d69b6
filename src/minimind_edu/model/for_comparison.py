"""What MiniMind does not use, to compare with what it does: each part beside its counterpart in the model.

LayerNorm                     RMSNorm                    subtracts the mean and adds a bias            chapter 02
rotate_interleaved,           apply_rotary_pos_emb       other pairs of channels, the same rotation            04
rotate_complex
repeat_kv_interleave          repeat_kv                  the same heads by one call                            06
repeat_kv_tiled               repeat_kv                  looks alike, and is wrong                             06
CatCache                      BufferCache                copies everything at every step                       07
PlainFeedForward              FeedForward                two projections and no gate                           08
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minimind_edu.model.layer_cache import KeyValue, check_new, joined
from minimind_edu.model.norms import check_input, in_float32
from minimind_edu.model.rope import check_tables, rope_angles
from minimind_edu.validation import check_even, check_number


class LayerNorm(nn.Module):
    """Subtract every vector's mean, divide by its standard deviation, then apply a learned gain and bias.

        y = gain * (x - mean(x)) / sqrt(mean((x - mean(x))²) + eps) + bias

    Ba, Kiros and Hinton 2016, arXiv 1607.06450; equal to torch.nn.LayerNorm. Arguments, shapes, errors as in RMSNorm.
    """

    def __init__(self, dim: int, eps: float = 1e-5):
        super().__init__()
        check_number("eps", eps, "at least 0")
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def norm(self, x: Tensor) -> Tensor:
        """The normalization alone, without gain and bias, in the dtype of `x`."""
        centered = x - x.mean(-1, keepdim=True)  # [..., dim] - [..., 1]
        return centered * torch.rsqrt(centered.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x: Tensor) -> Tensor:
        check_input("LayerNorm", x, self.weight.shape[0])
        return (self.weight * self.norm(in_float32(x)) + self.bias).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"


# RoPE with neighbors as pairs. The paper and Meta's Llama pair channel 2i with 2i + 1 (interleaved), and Meta's code
# writes a pair as one complex number. MiniMind pairs i with i + D/2 (half-split). The forms agree after a permutation
# of the channels, and are wrong when mixed.


def rotate_every_two(x: Tensor) -> Tensor:
    """Rotate every interleaved pair by 90 degrees: `(a, b)` becomes `(-b, a)` in place. Same shape."""
    even, odd = x[..., 0::2], x[..., 1::2]  # [..., D] -> 2 x [..., D/2]
    return torch.stack([-odd, even], dim=-1).flatten(-2)  # [..., D/2, 2] -> [..., D]


def rotate_interleaved(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys for their positions, pairing channel 2i with 2i + 1 as in the paper.

    Args:
        q, k, unsqueeze_dim: as in `apply_rotary_pos_emb`.
        cos, sin: `[S, D/2]`, one column per pair: `rope_angles(...).cos()` and `.sin()`.

    Raises:
        ValueError: if the tables do not have one row for each position and one column for each pair.
    """
    for name, x in (("q", q), ("k", k)):
        check_tables(name, x, cos, sin, unsqueeze_dim, columns=x.shape[-1] // 2)
    cos = cos.repeat_interleave(2, dim=-1).unsqueeze(unsqueeze_dim)  # [S, D/2] -> [S, D] -> [S, 1, D]
    sin = sin.repeat_interleave(2, dim=-1).unsqueeze(unsqueeze_dim)
    q_rotated, k_rotated = (x * cos + rotate_every_two(x) * sin for x in (q, k))
    return q_rotated.to(q.dtype), k_rotated.to(k.dtype)


def precompute_freqs_complex(
    dim: int, end: int = 32 * 1024, rope_base: float = 1e6, dtype: torch.dtype = torch.float32
) -> Tensor:
    """e^(i * angle) for every position and pair: `[end, dim/2]` complex, all of length 1. Meta's Llama."""
    angles = rope_angles(dim, end, rope_base, dtype=dtype)
    return torch.polar(torch.ones_like(angles), angles)


def rotate_complex(q: Tensor, k: Tensor, freqs_cis: Tensor) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys by complex multiplication; pair (2i, 2i + 1) is one number. Llama's apply_rotary_emb.

    Args:
        q: `[B, S, H, D]`.
        k: `[B, S, K, D]`.
        freqs_cis: `[S, D/2]` complex, the rows for exactly these S positions.

    Raises:
        ValueError: if the table is not complex, or lacks one row for each position and one column for each pair.
    """
    if not freqs_cis.is_complex():
        raise ValueError(f"freqs_cis must be complex, got {freqs_cis.dtype}; precompute_freqs_complex makes it")

    def rotated(name: str, x: Tensor) -> Tensor:
        check_tables(name, x, freqs_cis.real, freqs_cis.imag, 1, columns=x.shape[-1] // 2)
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous())  # [B, S, H, D] -> [B, S, H, D/2]
        pairs = pairs * freqs_cis.unsqueeze(1)  # the heads' axis goes in: [S, D/2] -> [S, 1, D/2]
        return torch.view_as_real(pairs).flatten(-2).to(x.dtype)  # [B, S, H, D/2, 2] -> [B, S, H, D]

    return rotated("q", q), rotated("k", k)


def half_split_permutation(dim: int) -> Tensor:
    """The reordering of channels that makes interleaved pairs half-split ones: `[0, 2, 4, ..., 1, 3, 5, ...]`.

    With p = half_split_permutation(D), rotating x[..., p] in the half-split form equals rotating x in the interleaved
    form and reordering afterwards. Applied to the rows of a query and a key projection, head by head, it converts a
    checkpoint of one convention to the other.

    Raises:
        ValueError: if dim is not an even number of at least 2.
    """
    check_even("dim", dim)
    return torch.cat([torch.arange(0, dim, 2), torch.arange(1, dim, 2)])


def repeat_kv_interleave(x: Tensor, n_rep: int) -> Tensor:
    """The same as `repeat_kv` in one call."""
    return torch.repeat_interleave(x, n_rep, dim=2)


def repeat_kv_tiled(x: Tensor, n_rep: int) -> Tensor:
    """Looks like `repeat_kv` and is wrong for grouped queries: x.repeat gives h1 h2 h1 h2 h1 h2 h1 h2."""
    return x.repeat(1, 1, n_rep, 1)


class CatCache:
    """The cache of one layer, made longer with torch.cat: obvious, and O(T) of copying at every step."""

    def __init__(self) -> None:
        self.key: Tensor | None = None  # [B, T, K, D]
        self.value: Tensor | None = None

    @property
    def length(self) -> int:
        """T, the positions held."""
        return 0 if self.key is None else self.key.shape[1]

    def append(self, key: Tensor, value: Tensor) -> KeyValue:
        """As BufferCache.append."""
        check_new(self.key, key, value)
        self.key, self.value = joined(self.key, self.value, key, value)
        return self.key, self.value


class PlainFeedForward(nn.Module):
    """Two projections with a ReLU between them, `down(relu(up(x)))`, the form before gates. Vaswani et al. 2017.

    No biases, so that only the gate differs from FeedForward. Shapes: `[..., E]` in, the same out.
    """

    def __init__(self, hidden_size: int, intermediate_size: int):
        super().__init__()
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.relu(self.up_proj(x)))  # [..., E] -> [..., I] -> [..., E]
