"""Checks for the exercises: each compares an attempt with the package and names the usual mistake.

`check_rms_norm(my_function)` prints one line for every property it tries and returns whether all of them hold.
"""

from minimind_edu.checks.attention import check_causal_head, check_masked_softmax, check_multi_head, check_visible
from minimind_edu.checks.block import (
    check_ledger,
    check_next_token_loss,
    check_post_norm_block,
    check_pre_norm_block,
    check_stream_sizes,
)
from minimind_edu.checks.feed_forward import check_alone, check_pruned, check_squares, check_swiglu
from minimind_edu.checks.head_groups import (
    check_attention_parameters,
    check_grouped_attention,
    check_kv_head_of,
    check_pool_heads,
    check_repeat_kv,
)
from minimind_edu.checks.kv_cache import (
    check_append,
    check_cached_generate,
    check_kv_cache_bytes,
    check_position_ids,
    check_rectangular_mask,
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
from minimind_edu.checks.rope_scaling import (
    check_periods,
    check_table_bytes,
    check_unfinished_pairs,
    check_yarn_range,
    check_yarn_scaling,
)
from minimind_edu.checks.speed import (
    check_attention_pairs,
    check_least_seconds,
    check_pack,
    check_step_bytes,
    check_step_operations,
)
from minimind_edu.checks.training import check_excess, check_loop, check_needs_order, check_rate
from minimind_edu.checks.tying import (
    check_drop_shared,
    check_logits_from_embedding,
    check_saved_share,
    check_tie_weights,
    check_tied_gradient,
)
from minimind_edu.checks.whole_model import (
    check_divergence,
    check_encode_word,
    check_greedy,
    check_next_word,
    check_silence,
)

__all__ = [
    "check_alone",
    "check_append",
    "check_apply_rotary_pos_emb",
    "check_attention_pairs",
    "check_attention_parameters",
    "check_cached_generate",
    "check_causal_head",
    "check_convert_rows",
    "check_divergence",
    "check_drop_shared",
    "check_encode_word",
    "check_greedy",
    "check_excess",
    "check_grouped_attention",
    "check_kv_cache_bytes",
    "check_kv_head_of",
    "check_layer_norm",
    "check_least_seconds",
    "check_ledger",
    "check_logits_from_embedding",
    "check_loop",
    "check_masked_softmax",
    "check_multi_head",
    "check_needs_order",
    "check_next_token_loss",
    "check_next_word",
    "check_norm_weights",
    "check_pack",
    "check_periods",
    "check_pool_heads",
    "check_position_ids",
    "check_post_norm_block",
    "check_pre_norm_block",
    "check_precompute_freqs_cis",
    "check_rate",
    "check_pruned",
    "check_rectangular_mask",
    "check_repeat_kv",
    "check_rms_norm",
    "check_rms_norm_gradient",
    "check_rotate_from",
    "check_rotate_pair",
    "check_saved_share",
    "check_silence",
    "check_squares",
    "check_steady_std",
    "check_step_bytes",
    "check_step_operations",
    "check_stream_sizes",
    "check_swiglu",
    "check_table_bytes",
    "check_tie_weights",
    "check_tied_gradient",
    "check_unfinished_pairs",
    "check_visible",
    "check_yarn_range",
    "check_yarn_scaling",
]
