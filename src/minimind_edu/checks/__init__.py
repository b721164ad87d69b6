"""Checks for the exercises: each compares an attempt with the package and names the usual mistake.

`check_rms_norm(my_function)` prints one line for every property it tries and returns whether all of them hold.
"""

from minimind_edu.checks.kv_cache import (
    check_append,
    check_cache_bytes,
    check_causal_mask,
    check_generate,
    check_position_ids,
)
from minimind_edu.checks.norms import (
    check_layer_norm,
    check_norm_weights,
    check_rms_norm,
    check_rms_norm_gradient,
    check_steady_std,
)
from minimind_edu.checks.rope import (
    check_apply_rotary_pos_emb,
    check_convert_rows,
    check_precompute_freqs_cis,
    check_rotate_from,
    check_rotate_pair,
)

__all__ = [
    "check_append",
    "check_apply_rotary_pos_emb",
    "check_cache_bytes",
    "check_causal_mask",
    "check_convert_rows",
    "check_generate",
    "check_layer_norm",
    "check_norm_weights",
    "check_position_ids",
    "check_precompute_freqs_cis",
    "check_rms_norm",
    "check_rms_norm_gradient",
    "check_rotate_from",
    "check_rotate_pair",
    "check_steady_std",
]
