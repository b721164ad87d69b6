"""Checks for the exercises: each compares an attempt with the package and names the usual mistake.

`check_rms_norm(my_function)` prints one line for every property it tries and returns whether all of them hold.
"""

from minimind_edu.checks.attention import (
    check_causal_head,
    check_divisors,
    check_masked_softmax,
    check_multi_head,
    check_visible,
)
from minimind_edu.checks.block import check_factor, check_ledger, check_norms_of, check_pre_norm_block, check_stack
from minimind_edu.checks.experts import check_awake, check_balance, check_mixture, check_route, check_taught
from minimind_edu.checks.feed_forward import check_alone, check_pruned, check_squares, check_swiglu
from minimind_edu.checks.generation import check_ahead, check_finish, check_residual, check_top_p
from minimind_edu.checks.head_groups import (
    check_grouped_attention,
    check_heads_that_fit,
    check_pool_heads,
    check_reordered,
    check_repeat_kv,
)
from minimind_edu.checks.kv_cache import check_cache_test, check_cached_generate, check_extend, check_longest_text
from minimind_edu.checks.norms import (
    check_invariances,
    check_layer_norm,
    check_rms_norm,
    check_rms_norm_gradient,
    check_steady_std,
)
from minimind_edu.checks.quantization import (
    check_fewest_bits,
    check_integer_product,
    check_quantize_row,
    check_stored_bytes,
)
from minimind_edu.checks.rope import (
    check_best_key,
    check_convert_rows,
    check_rope,
    check_rotary_attention,
)
from minimind_edu.checks.rope_scaling import (
    check_first_lost_position,
    check_largest_base,
    check_unfinished_pairs,
    check_yarn_scaling,
)
from minimind_edu.checks.speed import check_attention_pairs, check_fair_times, check_readers, check_step_operations
from minimind_edu.checks.training import check_excess, check_loop, check_needs_order, check_rate
from minimind_edu.checks.tying import (
    check_fits_tied,
    check_logits_from_embedding,
    check_tie_weights,
    check_tied_gradient,
    check_two_sizes,
)
from minimind_edu.checks.whole_model import (
    check_divergence,
    check_encode_word,
    check_greedy,
    check_next_word,
    check_silence,
)

__all__ = [
    "check_ahead",
    "check_alone",
    "check_attention_pairs",
    "check_awake",
    "check_balance",
    "check_best_key",
    "check_cache_test",
    "check_cached_generate",
    "check_causal_head",
    "check_convert_rows",
    "check_divergence",
    "check_divisors",
    "check_encode_word",
    "check_excess",
    "check_extend",
    "check_factor",
    "check_fair_times",
    "check_fewest_bits",
    "check_finish",
    "check_first_lost_position",
    "check_fits_tied",
    "check_greedy",
    "check_grouped_attention",
    "check_heads_that_fit",
    "check_integer_product",
    "check_invariances",
    "check_largest_base",
    "check_layer_norm",
    "check_ledger",
    "check_logits_from_embedding",
    "check_longest_text",
    "check_loop",
    "check_masked_softmax",
    "check_mixture",
    "check_multi_head",
    "check_needs_order",
    "check_next_word",
    "check_norms_of",
    "check_pool_heads",
    "check_pre_norm_block",
    "check_pruned",
    "check_quantize_row",
    "check_rate",
    "check_readers",
    "check_reordered",
    "check_repeat_kv",
    "check_residual",
    "check_rms_norm",
    "check_rms_norm_gradient",
    "check_rope",
    "check_rotary_attention",
    "check_route",
    "check_silence",
    "check_squares",
    "check_stack",
    "check_steady_std",
    "check_step_operations",
    "check_stored_bytes",
    "check_swiglu",
    "check_taught",
    "check_tie_weights",
    "check_tied_gradient",
    "check_top_p",
    "check_two_sizes",
    "check_unfinished_pairs",
    "check_visible",
    "check_yarn_scaling",
]
