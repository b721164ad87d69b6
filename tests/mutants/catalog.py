"""Wrong variants of the model: mistakes that people have made, or could, each of which some test must notice.

A mutant replaces one piece of text in one file of the package. `tests` names where it should be noticed: test files of
this project, or a single test as `file::name`, which is what to name where the tests before it take more than a second;
they are run in this order until the first one fails.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str  # below src/minimind_edu
    old: str  # found exactly once in the file
    new: str
    tests: tuple[str, ...]


NORMS = ("test_norms.py",)
FREQUENCIES = ("test_rope_frequencies.py",)
ROPE = ("test_rope.py",)
CACHE = ("test_kv_cache.py",)
ATTENTION = ("test_attention.py",)
MASKS = ("test_masks.py",)
SAMPLING = ("test_sampling.py",)
LAYER = ("test_layer_cache.py",)
MOE = ("test_moe.py",)
MODEL = ("test_model.py",)
GENERATION = ("test_generation.py",)
LAYOUT = ("test_layout.py",)
STEP = ("test_token_step.py",)
DECODING = ("test_decoding.py",)
COSTS = ("test_costs.py",)
BPE = ("test_bpe.py",)
DEVICE = ("test_device.py",)
TIMING = ("test_timing.py",)
CHECKPOINTS = ("test_checkpoints.py",)
FILES = ("test_files.py",)
INT8 = ("test_int8.py",)
ROUNDED = ("test_rounded.py",)
ROW_PRODUCTS = ("test_row_products.py",)
TRAINING = ("test_training.py",)
LIVING = ("test_living.py",)
QUANTIZATION = ("test_quantization.py",)
ROUNDING = ("test_living_rounding.py",)

_RMS = "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)"
_RMS_FORWARD = """_check_input("RMSNorm", x, self.weight.shape[0])"""
_GAIN = "return (self.weight * self.norm(_in_float32(x))).to(x.dtype)"
_LAYER = "centered = x - x.mean(-1, keepdim=True)"
_FREQUENCIES = "inv_freq = 1.0 / (rope_base ** (torch.arange(0, dim, 2).to(dtype) / dim))  # [D/2]"
_ANGLES = "return torch.outer(torch.arange(end, dtype=dtype), inv_freq)"
_HALF = "return torch.cat([-second, first], dim=-1)"
_SCORES = "scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # [B, H, S, T]"
_MASKED = "weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).masked_fill(~mask, 0.0)"
_TRIANGLE = "return allowed.tril(diagonal=key_length - query_length)"
_RECTANGLE = "mask = causal_mask(length, key.shape[1], query.device)"
_POSITIONS = "positions = self.freqs_cos[start:end], self.freqs_sin[start:end]  # [S, D] each"
_SWIGLU = "gated = F.silu(self.gate_proj(x)) * self.up_proj(x)"
_REFUSES = ("test_hf_export.py::test_refuses_what_transformers_cannot_be_and_points_to_the_adapter",)
_SAVED = ("test_hf_adapter.py::test_saved_and_loaded_it_is_the_same_model",)
_IN_PLACE = ("test_hf_adapter.py::test_a_cache_of_transformers_is_filled_in_place_for_every_cut",)
_DELETES = ("test_hf_export.py::test_never_deletes_what_no_export_wrote",)
_TRAINS = ("test_hf_export.py::test_what_acts_in_training_only_is_written_as_well",)
_GROWS = ("test_hf_adapter.py::test_the_vocabulary_can_grow_and_the_wrapped_model_grows_with_it",)
_TIE = "self.lm_head.weight = self.model.embed_tokens.weight"
_PIECES = "lambda joined: [piece.t() for piece in joined.split(sizes, dim=1)],"
_BEFORE = "before = probabilities.cumsum(-1) - probabilities"

# fmt: off
MUTANTS = [
    # Norms
    Mutant(
        "rms: eps outside the root", "norms.py", _RMS,
        "return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps)", NORMS,
    ),
    Mutant(
        "rms: mean subtracted", "norms.py", _RMS,
        "x = x - x.mean(-1, keepdim=True); " + _RMS, NORMS,
    ),
    Mutant(
        "rms: standard deviation instead of rms", "norms.py", _RMS,
        "return x * torch.rsqrt(x.var(-1, keepdim=True, correction=0) + self.eps)", NORMS,
    ),
    Mutant(
        "rms: sum instead of mean of squares", "norms.py", _RMS,
        _RMS.replace(".mean(", ".sum("), NORMS,
    ),
    Mutant(
        "rms: over all positions together", "norms.py", _RMS,
        _RMS.replace(".mean(-1, keepdim=True)", ".mean()"), NORMS,
    ),
    Mutant(
        "rms: no upcast to float32", "norms.py", _GAIN,
        "return self.weight * self.norm(x)", NORMS,
    ),
    Mutant(
        "rms: cast before the gain", "norms.py", _GAIN,
        "return self.weight.to(x.dtype) * self.norm(_in_float32(x)).to(x.dtype)", NORMS,
    ),
    Mutant(
        "rms: result left in float32", "norms.py", _GAIN, _GAIN.replace(".to(x.dtype)", ""), NORMS,
    ),
    Mutant(
        "rms: gain squared", "norms.py", _GAIN,
        _GAIN.replace("self.weight *", "self.weight * self.weight *"), NORMS,
    ),
    Mutant(
        "rms: gain added to one", "norms.py", _GAIN,
        _GAIN.replace("self.weight *", "(1 + self.weight) *"), NORMS,
    ),
    Mutant("rms: gain forgotten", "norms.py", _GAIN, _GAIN.replace("self.weight * ", ""), NORMS),
    Mutant("rms: last axis not checked", "norms.py", _RMS_FORWARD, "pass", NORMS),
    Mutant("layer norm: mean not subtracted", "norms.py", _LAYER, "centered = x", NORMS),
    # RoPE
    Mutant(
        "rope: frequencies reversed", "rope_frequencies.py", _FREQUENCIES,
        _FREQUENCIES.replace("  # [D/2]", ".flip(0)"), FREQUENCIES,
    ),
    Mutant(
        "rope: exponent j/d", "rope_frequencies.py", _FREQUENCIES,
        _FREQUENCIES.replace("torch.arange(0, dim, 2)", "torch.arange(dim // 2)"), FREQUENCIES,
    ),
    Mutant(
        "rope: another base", "rope_frequencies.py", _FREQUENCIES,
        _FREQUENCIES.replace("rope_base **", "(rope_base / 100) **"), FREQUENCIES,
    ),
    Mutant(
        "rope: divided by dim/2", "rope_frequencies.py", _FREQUENCIES,
        _FREQUENCIES.replace("/ dim)", "/ (dim // 2))"), FREQUENCIES,
    ),
    Mutant("rope: turns by minus the angle", "rope.py", _HALF, _HALF.replace("-second, first", "second, -first"), ROPE),
    Mutant("rope: halves not exchanged", "rope.py", _HALF, _HALF.replace("-second, first", "-first, second"), ROPE),
    Mutant("rope: sign forgotten", "rope.py", _HALF, _HALF.replace("-second", "second"), ROPE),
    Mutant("rope: the other pairing", "rope.py", _HALF, "return rotate_interleaved(x)", ROPE),
    Mutant(
        "rope: positions off by one", "rope.py", _ANGLES,
        _ANGLES.replace("torch.arange(end,", "torch.arange(1, end + 1,"), ROPE,
    ),
    Mutant(
        "rope: tables of the interleaved layout", "rope.py",
        "cos = torch.cat([angles.cos(), angles.cos()], dim=-1) * factor",
        "cos = angles.cos().repeat_interleave(2, dim=-1) * factor", ROPE,
    ),
    Mutant(
        "rope: keys not turned", "rope.py",
        "return q_turned.to(q.dtype), k_turned.to(k.dtype)\n\n\ndef _check_tables",
        "return q_turned.to(q.dtype), k\n\n\ndef _check_tables", ROPE,
    ),
    Mutant(
        "rope: permutation the other way around", "rope.py",
        "return torch.cat([torch.arange(0, dim, 2), torch.arange(1, dim, 2)])",
        "return torch.arange(dim).view(2, -1).T.flatten()", ROPE,
    ),
    Mutant(
        "yarn: ramp inverted", "rope_frequencies.py", "return 1 - ramp + ramp / rope_scaling.factor",
        "return ramp + (1 - ramp) / rope_scaling.factor", FREQUENCIES,
    ),
    Mutant(
        "yarn: always on, also within the trained context", "rope.py",
        "inv_freq = rope_frequencies(dim, rope_base, _scaling_for(end, rope_scaling), dtype)",
        "inv_freq = rope_frequencies(dim, rope_base, rope_scaling, dtype)", ROPE,
    ),
    # Attention and grouped heads
    Mutant(
        "gqa: repeat instead of interleave", "attention.py",
        "return x.reshape(batch, length, heads * n_rep, head_dim)",
        "return x.transpose(2, 3).reshape(batch, length, heads * n_rep, head_dim)", ATTENTION,
    ),
    Mutant(
        "gqa: repeated as often as there are key/value heads", "attention.py",
        "n_rep = query.shape[2] // key.shape[2]", "n_rep = key.shape[2]", ATTENTION,
    ),
    Mutant(
        "gqa: groups read the other way in the one-query path", "attention.py",
        """grouped = query.view(batch, kv_heads, heads // kv_heads, head_dim)  # [B, 1, H, D] -> [B, K, G, D]""",
        "grouped = query.view(batch, heads // kv_heads, kv_heads, head_dim).transpose(1, 2)", ATTENTION,
    ),
    Mutant("attention: no scale", "attention.py", _SCORES, "scores = q @ k.transpose(-2, -1)", ATTENTION),
    Mutant(
        "attention: scaled by the model's width", "attention.py", _SCORES,
        "scores = (q / math.sqrt(q.shape[-1] * q.shape[1])) @ k.transpose(-2, -1)", ATTENTION,
    ),
    Mutant(
        "attention: scaled after the product", "attention.py", _SCORES,
        "scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])", ATTENTION,
    ),
    Mutant(
        "attention: softmax over the queries", "attention.py", _MASKED,
        _MASKED.replace(".softmax(-1)", ".softmax(-2)"), ATTENTION,
    ),
    Mutant(
        "attention: mask after softmax", "attention.py", _MASKED,
        "weights = scores.softmax(-1).masked_fill(~mask, 0.0)", ATTENTION,
    ),
    Mutant(
        "attention: a row that sees nothing is NaN", "attention.py", _MASKED,
        "weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)", ATTENTION,
    ),
    Mutant("mask: off by one, sees the next token", "masks.py", _TRIANGLE,
           _TRIANGLE.replace("query_length)", "query_length + 1)"), MASKS),
    Mutant("mask: off by one, does not see itself", "masks.py", _TRIANGLE,
           _TRIANGLE.replace("query_length)", "query_length - 1)"), MASKS),
    Mutant("mask: square with a cache", "masks.py", _TRIANGLE, "return allowed.tril()", MASKS),
    Mutant(
        "mask: is_causal with a past, drawn from the upper left", "attention.py", _RECTANGLE,
        "mask = None", ATTENTION,
    ),
    Mutant(
        "qk-norm: after rope", "attention.py",
        "q, k = apply_rotary_pos_emb(self.q_norm(q), self.k_norm(k), cos, sin)",
        "q, k = apply_rotary_pos_emb(q, k, cos, sin); q, k = self.q_norm(q), self.k_norm(k)", ATTENTION,
    ),
    Mutant(
        "qk-norm: forgotten on keys", "attention.py",
        "apply_rotary_pos_emb(self.q_norm(q), self.k_norm(k), cos, sin)",
        "apply_rotary_pos_emb(self.q_norm(q), k, cos, sin)", ATTENTION,
    ),
    Mutant(
        "attention: dropout also in inference", "attention.py",
        "self.dropout if self.training else 0.0", "self.dropout",
        ("test_attention.py::test_the_module_drops_attention_weights_at_the_rate_of_the_config",),
    ),
    # Cache and positions
    Mutant(
        "cache: position offset forgotten", "model.py", _POSITIONS,
        "positions = self.freqs_cos[: end - start], self.freqs_sin[: end - start]", CACHE,
    ),
    Mutant(
        "cache: whole past rotated again", "attention.py",
        "k, v = cache.append(k, v)  # [B, S, K, D] -> [B, T, K, D]",
        "k, v = cache.append(k, v)\n            length = q.shape[1]\n            "
        "cos, sin = position_embeddings\n            old = k[:, :-length][:, -length:]\n            "
        "turned, _ = apply_rotary_pos_emb(old, old, cos[: old.shape[1]], sin[: old.shape[1]])\n            "
        "k = torch.cat([k[:, : -length - old.shape[1]], turned, k[:, -length:]], dim=1)", CACHE,
    ),
    Mutant(
        "cache: a fork overwrites the other", "layer_cache.py",
        "buffers.filled == self.length  # else a fork has written here already\n            and ", "", LAYER,
    ),
    Mutant(
        "cache: the past passed in is continued itself", "kv_cache.py",
        "cache = pairs.fork()", "cache = pairs",
        ("test_kv_cache.py::test_a_past_passed_twice_gives_the_same_result_twice",),
    ),
    Mutant(
        "cache: values stored as keys", "layer_cache.py",
        "self.key, self.value = _joined(self.key, self.value, key, value)",
        "self.key, self.value = _joined(self.key, self.value, key, key)", LAYER,
    ),
    Mutant(
        "cache: written in place under autograd", "layer_cache.py",
        "if key.requires_grad or value.requires_grad or self._holds_gradients():", "if False:",
        ("test_kv_cache.py::test_gradients_flow_through_cached_calls_whatever_is_trained",),
    ),
    Mutant(
        "padding: mask forgotten", "masks.py",
        "return (causal & padding_mask(attention_mask)) | itself", "return (causal | itself)[None, None]",
        ("test_model.py::test_padding_on_the_left_changes_nothing",),
    ),
    Mutant(
        "padding: a padded row sees nothing", "masks.py",
        "return (causal & padding_mask(attention_mask)) | itself", "return causal & padding_mask(attention_mask)",
        ("test_masks.py::test_visible_keys_are_earlier_and_real_or_the_position_itself",),
    ),
    # Feed-forward and mixture
    Mutant(
        "swiglu: gate and up swapped", "feed_forward.py", _SWIGLU,
        "gated = F.silu(self.up_proj(x)) * self.gate_proj(x)", ("test_feed_forward.py",),
    ),
    Mutant(
        "swiglu: silu on both", "feed_forward.py", _SWIGLU,
        "gated = F.silu(self.gate_proj(x)) * F.silu(self.up_proj(x))", ("test_feed_forward.py",),
    ),
    Mutant(
        "swiglu: silu on the product", "feed_forward.py", _SWIGLU,
        "gated = F.silu(self.gate_proj(x) * self.up_proj(x))", ("test_feed_forward.py",),
    ),
    Mutant(
        "swiglu: gelu", "feed_forward.py", _SWIGLU,
        _SWIGLU.replace("F.silu", "F.gelu"), ("test_feed_forward.py",),
    ),
    Mutant(
        "moe: weights not renormalized", "moe.py",
        "weights = weights / weights.sum(-1, keepdim=True)", "pass", MOE,
    ),
    Mutant(
        "moe: always renormalized", "moe.py",
        "if self.norm_topk_prob:", "if True:", MOE,
    ),
    Mutant(
        "moe: smallest experts chosen", "moe.py",
        "probabilities.topk(self.top_k, dim=-1)", "probabilities.topk(self.top_k, dim=-1, largest=False)", MOE,
    ),
    Mutant(
        "moe: auxiliary loss times k", "moe.py",
        "share = chosen.mean(dim=(-3, -2))", "share = chosen.mean(dim=-3).sum(-2)", MOE,
    ),
    Mutant(
        "moe: auxiliary loss on logits", "moe.py",
        "aux_loss = load_balancing_loss(probabilities, experts).mean()",
        "aux_loss = load_balancing_loss(logits, experts).mean()", MOE,
    ),
    Mutant(
        "moe: auxiliary loss without N", "moe.py",
        "return num_experts * (share * probabilities.mean(-2)).sum(-1)",
        "return (share * probabilities.mean(-2)).sum(-1)", MOE,
    ),
    Mutant(
        "moe: balanced over the batch instead of each sequence", "moe.py", "if self.seq_aux:", "if False:", MOE,
    ),
    Mutant(
        "moe: each token weighted by its first choice", "moe.py",
        "weight = routed.weights[row, choice, None]", "weight = routed.weights[row, 0, None]", MOE,
    ),
    Mutant(
        "moe: an expert's output replaces the others'", "moe.py",
        "output = output.index_add(0, row, weight * expert(tokens[row]))",
        "output = output.index_copy(0, row, weight * expert(tokens[row]))", MOE,
    ),
    Mutant(
        "moe: shared experts forgotten", "moe.py",
        "output = output + expert(tokens)\n        return output.view_as(x), routed",
        "pass\n        return output.view_as(x), routed", MOE,
    ),
    # Block and model
    Mutant(
        "block: post-norm in place of pre-norm", "block.py",
        "if self.pre_norm:", "if not self.pre_norm:", ("test_block.py",),
    ),
    Mutant(
        "block: norm on the residual path", "block.py",
        "attended, _ = self.self_attn(self.input_layernorm(x), position_embeddings, cache, mask)",
        "x = self.input_layernorm(x); attended, _ = self.self_attn(x, position_embeddings, cache, mask)",
        ("test_block.py",),
    ),
    Mutant(
        "block: the same norm twice", "block.py",
        "fed, routed = self._feed(self.post_attention_layernorm(x))",
        "fed, routed = self._feed(self.input_layernorm(x))", ("test_block.py",),
    ),
    Mutant("block: residual forgotten", "block.py", "x = x + attended", "x = attended", ("test_block.py",)),
    Mutant(
        "block: attention and feed-forward side by side", "block.py",
        "x = x + attended\n            fed, routed = self._feed(self.post_attention_layernorm(x))",
        "fed, routed = self._feed(self.post_attention_layernorm(x)); x = x + attended", ("test_block.py",),
    ),
    Mutant(
        "model: tied by a copy", "model.py", _TIE,
        "self.lm_head.weight = nn.Parameter(self.model.embed_tokens.weight.detach().clone())", MODEL,
    ),
    Mutant(
        "model: final norm forgotten", "model.py",
        "return self.norm(x), past if use_cache", "return x, past if use_cache", MODEL,
    ),
    Mutant(
        "model: loss not shifted", "model.py",
        "F.pad(labels[:, 1:].long(), (0, 1), value=-100)", "labels", MODEL,
    ),
    Mutant(
        "model: loss shifted the other way", "model.py",
        "F.pad(labels[:, 1:].long(), (0, 1), value=-100)", "F.pad(labels[:, :-1], (1, 0), value=-100)", MODEL,
    ),
    Mutant(
        "model: the last position predicts padding", "model.py", "(0, 1), value=-100)", "(0, 1), value=0)", MODEL,
    ),
    Mutant(
        "model: first logits kept instead of last", "model.py",
        "hidden[:, -logits_to_keep:] if", "hidden[:, :logits_to_keep] if", MODEL,
    ),
    Mutant(
        "model: tables rounded with the model", "model.py", "if self.freqs_cos is not before:", "if False:",
        ("test_model.py::test_tables_stay_in_float32_when_the_model_is_halved",),
    ),
    Mutant(
        "model: tables saved with the weights", "model.py",
        'self.register_buffer("freqs_cos", cos, persistent=False)', 'self.register_buffer("freqs_cos", cos)', MODEL,
    ),
    Mutant(
        "model: idle experts counted as active", "model.py",
        "total -= idle * sum(", "total -= 0 * sum(", MODEL,
    ),
    # Generation
    Mutant(
        "top-p: first token dropped", "sampling.py", _BEFORE, "before = probabilities.cumsum(-1)", SAMPLING,
    ),
    Mutant(
        "top-p: stops one token late", "sampling.py", _BEFORE,
        "before = probabilities.cumsum(-1) - 2 * probabilities", SAMPLING,
    ),
    Mutant(
        "top-p: result left in sorted order", "sampling.py",
        "return torch.empty_like(logits).scatter(-1, index, ordered)", "return ordered", SAMPLING,
    ),
    Mutant(
        "top-k: one token too many", "sampling.py",
        "logits.topk(min(top_k, logits.shape[-1]))", "logits.topk(min(top_k + 1, logits.shape[-1]))", SAMPLING,
    ),
    Mutant(
        "temperature: multiplied", "sampling.py", ") / self.temperature", ") * self.temperature", SAMPLING,
    ),
    Mutant(
        "penalty: negative logits divided too", "sampling.py",
        "torch.where(logits > 0, logits / penalty, logits * penalty)", "logits / penalty", SAMPLING,
    ),
    Mutant(
        "penalty: prompt only", "generation.py", "seen.scatter_(1, unread, True)", "pass",
        ("test_generation.py::test_a_repetition_penalty_covers_prompt_and_continuation",),
    ),
    Mutant(
        "generation: an ended row goes on", "generation.py",
        "token = torch.where(ended, padding, token)", "pass",
        ("test_generation.py::test_each_row_ends_by_itself_and_is_padded",),
    ),
    Mutant(
        "generation: the first end ends all rows", "generation.py",
        "and bool(ended.all()):", "and bool(ended.any()):",
        ("test_generation.py::test_each_row_ends_by_itself_and_is_padded",),
    ),
    Mutant(
        "generation: the first position is chosen from", "generation.py",
        "logits_to_keep=1,\n                )",
        "logits_to_keep=0,\n                )\n            out.logits = out.logits[:, :1]",
        GENERATION,
    ),
    Mutant(
        "generation: with a cache the whole text is read again", "generation.py",
        "unread if use_cache else text,", "text,", GENERATION,
    ),
    # Costs
    Mutant(
        "costs: a multiply-add is one operation", "costs.py",
        "operations=2 * (matrices + attention + head)", "operations=matrices + attention + head", COSTS,
    ),
    Mutant(
        "costs: attention multiplies once", "costs.py",
        "attention = 2 * pairs * config.head_dim", "attention = pairs * config.head_dim", COSTS,
    ),
    Mutant(
        "costs: attention by key/value heads", "costs.py",
        "config.num_hidden_layers * config.num_attention_heads\n",
        "config.num_hidden_layers * config.num_key_value_heads\n", COSTS,
    ),
    Mutant(
        "costs: weights once for every sequence", "costs.py",
        "weight_bytes=itemsize * weights_read(config, batch * new)",
        "weight_bytes=batch * itemsize * weights_read(config, batch * new)",
        ("test_costs.py::test_intensity_of_decoding_is_about_half_an_operation_a_byte_and_grows_with_the_batch",),
    ),
    Mutant(
        "costs: one cache for the whole batch", "costs.py",
        "cache_bytes=batch * (past + new)", "cache_bytes=(past + new)",
        ("test_costs.py::test_cache_bytes_are_those_of_the_tensors",),
    ),
    Mutant(
        "costs: what is written to the cache is forgotten", "costs.py",
        "cache_bytes=batch * (past + new)", "cache_bytes=batch * past",
        ("test_costs.py::test_cache_bytes_are_those_of_the_tensors",),
    ),
    Mutant(
        "costs: all experts are read", "costs.py",
        "experts = min(config.num_experts, tokens * config.num_experts_per_tok)", "experts = config.num_experts",
        ("test_costs.py::test_experts_are_read_when_a_token_may_visit_them",),
    ),
    Mutant(
        "costs: a decode step does not see itself", "costs.py",
        "return call_cost(config, 1, context - 1, batch, itemsize)",
        "return call_cost(config, 1, context, batch, itemsize)", COSTS,
    ),
    Mutant(
        "costs: the last new token is read", "costs.py",
        "range(prompt + 1, prompt + new_tokens)", "range(prompt + 1, prompt + new_tokens + 1)",
        ("test_costs.py::test_generation_does_the_operations_that_pytorch_counts",),
    ),
    Mutant(
        "roofline: moving and computing one after the other", "costs.py",
        "return max(cost.bytes / self.bandwidth, cost.operations / self.peak)",
        "return cost.bytes / self.bandwidth + cost.operations / self.peak",
        ("test_costs.py::test_a_machine_is_limited_by_memory_below_its_ridge_and_by_arithmetic_above",),
    ),
    Mutant(
        "costs: the parts leave out the norms of queries and keys", "costs.py",
        "layer = 2 * config.hidden_size + (2 * config.head_dim if config.use_qk_norm else 0)",
        "layer = 2 * config.hidden_size", COSTS,
    ),
    Mutant(
        "costs: in the parts a tied output layer has weights of its own", "costs.py",
        "Part(0 if config.tie_word_embeddings else table, table)", "Part(table, table)",
        ("test_costs.py::test_the_parts_make_the_whole",),
    ),
    # Pieces of text
    Mutant(
        "bpe: merges in the order of the text", "bpe.py",
        "first = min(possible, key=lambda pair: learned[pair])", "first = possible[0]", BPE,
    ),
    Mutant(
        "bpe: every word counts once", "bpe.py",
        "pairs[pair] += count", "pairs[pair] += 1", BPE,
    ),
    Mutant(
        "bpe: ties go to the larger ids", "bpe.py",
        "(-pairs[pair], pair)", "(-pairs[pair], -pair[0], -pair[1])", BPE,
    ),
    Mutant(
        "bpe: a space is a word of its own", "bpe.py",
        'r" ?\\w+| ?[^\\w\\s]+|', 'r"\\w+|[^\\w\\s]+|', BPE,
    ),
    Mutant(
        "generation: a mask of ones is passed on", "generation.py",
        "if attention_mask is not None and not bool(attention_mask.all()):", "if attention_mask is not None:",
        ("test_generation.py::test_a_mask_of_ones_is_not_looked_at_again_for_every_token",),
    ),
    # Layout, the step as it is and compiled, and the choice
    Mutant(
        "layout: columns where rows are asked for", "fast/layout.py", "    if not by_columns:", "    if False:", LAYOUT,
    ),
    Mutant("layout: a second copy", "fast/layout.py", "weight.data = piece", "pass", LAYOUT),
    Mutant("layout: again and again", "fast/layout.py", "            return whole.data", "            pass", LAYOUT),
    Mutant(
        "layout: weights of inference mode", "fast/layout.py",
        "@torch.inference_mode(False)\ndef lay_out", "def lay_out", LAYOUT,
    ),
    Mutant(
        "layout: pieces in another order", "fast/layout.py", _PIECES,
        _PIECES.replace("split(sizes, dim=1)]", "split(sizes, dim=1)[::-1]]"), LAYOUT,
    ),
    Mutant(
        "layout: a replaced matrix is not noticed", "fast/layout.py",
        "and a.data_ptr() == b.data_ptr() and", "and", LAYOUT,
    ),
    Mutant(
        "layout: another order in the same place", "fast/layout.py", " and a.stride() == b.stride()", "", LAYOUT,
    ),
    Mutant(
        "layout: keys and values exchanged", "fast/layout.py",
        "join([part.q_proj, part.k_proj, part.v_proj], by_columns)",
        "join([part.q_proj, part.v_proj, part.k_proj], by_columns)", STEP,
    ),
    Mutant(
        "cache: room reserved over a fork's positions", "layer_cache.py",
        "if buffers is not None and self._may_write(buffers, end):",
        "if buffers is not None and end <= self.capacity:", LAYER,
    ),
    Mutant(
        "cache: reserved room not counted as filled", "layer_cache.py",
        "buffers.filled = self.length = self.length + count", "self.length = self.length + count", LAYER,
    ),
    Mutant(
        "cache: reserved room under autograd's eyes", "layer_cache.py",
        "return buffers.key.data, buffers.value.data", "return buffers.key, buffers.value",
        LAYER,
    ),
    Mutant(
        "cache: room never zeroed", "layer_cache.py",
        "make = Tensor.new_zeros if self._zeroed else Tensor.new_empty", "make = Tensor.new_empty", LAYER,
    ),
    Mutant(
        "cache: a fork forgets to zero", "layer_cache.py",
        "twin = BufferCache(self._capacity, self._zeroed)", "twin = BufferCache(self._capacity)", LAYER,
    ),
    Mutant(
        "step: written one position late", "fast/token_step.py",
        "buffer[:, end - 1 : end] = new[:, None]", "buffer[:, end : end + 1] = new[:, None]", STEP,
    ),
    Mutant(
        "step: the token does not see itself", "fast/token_step.py",
        "return buffer[:, :end]", "return buffer[:, : max(end - 1, 1)]", STEP,
    ),
    Mutant(
        "step: reads room that is not filled", "fast/token_step.py", "return buffer[:, :end]", "return buffer", STEP,
    ),
    Mutant(
        "step: fixed, one position too few", "fast/token_step.py",
        ".view(1, 1, 1, -1) < end", ".view(1, 1, 1, -1) < end - 1", STEP,
    ),
    Mutant(
        "step: fixed, padding forgotten", "fast/token_step.py", "mask = filled if mask is None else mask & filled",
        "mask = filled", STEP,
    ),
    Mutant(
        "step: fixed, written one position late", "fast/token_step.py",
        "return buffer.index_copy_(1, end - 1, new[:, None])", "return buffer.index_copy_(1, end, new[:, None])", STEP,
    ),
    Mutant(
        "step: QK-norm forgotten", "fast/token_step.py",
        "if layer.head_gains is not None:", "if False:", STEP,
    ),
    Mutant(
        "step: query heads in the wrong groups", "fast/token_step.py",
        "grouped = qk[:, :heads].view(-1, kv_heads, heads // kv_heads, head_dim)",
        "grouped = qk[:, :heads].view(-1, heads // kv_heads, kv_heads, head_dim).transpose(1, 2)", STEP,
    ),
    Mutant(
        "step: rotated the other way", "fast/token_step.py",
        "torch.cat([-sin[:, :half], sin[:, half:]], dim=-1)", "torch.cat([sin[:, :half], -sin[:, half:]], dim=-1)",
        STEP,
    ),
    Mutant(
        "step: values rotated, too", "fast/token_step.py",
        "_remember(value, v, end)", "_remember(value, v * cos, end)", STEP,
    ),
    Mutant(
        "step: the residual lost", "fast/token_step.py",
        "return torch.addmm(residual, x, weight)", "return torch.mm(x, weight)", STEP,
    ),
    Mutant(
        "step: the residual lost in the form for compiling", "fast/token_step.py",
        "return residual + _product(x, weight)", "return _product(x, weight)", STEP,
    ),
    Mutant("step: post-norm as pre-norm", "fast/token_step.py", 'config.norm_placement == "pre"', "True", STEP),
    Mutant(
        "step: the embedding's matrix as output", "fast/token_step.py",
        "eps), weights.output)[:, None]", "eps), weights.embedding.t())[:, None]", STEP,
    ),
    Mutant(
        "step: always the first experts", "fast/token_step.py", "zip(chosen.tolist(), x.expand",
        "zip(range(len(chosen)), x.expand", STEP,
    ),
    Mutant(
        "step: always the first experts in the form for compiling", "fast/token_step.py",
        "(stack[chosen] * x[:, None])", "(stack[: len(chosen)] * x[:, None])", STEP,
    ),
    Mutant(
        "step: routing weights forgotten", "fast/token_step.py",
        "return routed.weights @ _products(", "return torch.ones_like(routed.weights) @ _products(", STEP,
    ),
    Mutant(
        "step: shared experts forgotten", "fast/layout.py",
        "else cast(Sequence[FeedForward], mlp.shared_experts)", "else ()", STEP,
    ),
    Mutant(
        "compiled: the dtype is not asked for", "fast/compiled_steps.py",
        "weight.dtype, weight.device, *state", "weight.device, *state",
        ("test_decoding.py::test_a_step_is_asked_for_anew_when_what_it_was_compiled_for_changes",),
    ),
    Mutant(
        "compiled: a step for one row serves many", "fast/compiled_steps.py",
        "else 1 if batch == 1 else 2 if batch <= FEW else FEW + 1", "else 1",
        ("test_decoding.py::test_a_step_is_asked_for_anew_when_what_it_was_compiled_for_changes",),
    ),
    Mutant(
        "compiled: made-up sizes that are equal", "fast/compiled_steps.py",
        "13 if batch <= FEW else 31), 1009", "2 if batch <= FEW else 31), 1009",
        ("test_compiled_steps.py::test_one_compilation_serves_any_number_of_rows_and_one_more_their_padding",),
    ),
    Mutant(
        "compiled: every size constant", "fast/compiled_steps.py",
        "step = torch.compile(_twin(token_step), dynamic=True, fullgraph=True)",
        "step = torch.compile(_twin(token_step), dynamic=False, fullgraph=True)",
        ("test_compiled_steps.py::test_one_compilation_serves_all_positions_prompts_buffers_and_new_weights",),
    ),
    Mutant(
        "compiled: one cache on disk for all processors", "fast/compiled_steps.py",
        "cache_key_tag=instructions", 'cache_key_tag=""',
        ("test_compiled_steps.py::test_what_torch_keeps_on_disk_is_marked_with_the_processors_instructions",),
    ),
    Mutant(
        "step: the second half of a product lost", "fast/token_step.py",
        "torch.cat(list(_halves(x, weight)), dim=-1)", "torch.cat([_halves(x, weight)[0]] * 2, dim=-1)", STEP,
    ),
    Mutant(
        "compiled: forgotten at once", "fast/compiled_steps.py",
        "if key not in self._steps and not self.failure:", "if not self.failure:",
        ("test_decoding.py::test_compiling_is_over_before_the_first_token",),
    ),
    Mutant(
        "decoding: one past serves two continuations", "fast/decoding.py",
        "return self._read(step, input_ids, attention_mask, past.fork())",
        "return self._read(step, input_ids, attention_mask, past)",
        ("test_decoding.py::test_two_continuations_of_one_past_do_not_disturb_each_other",),
    ),
    Mutant(
        "decoding: positions off by one", "fast/decoding.py",
        "positions = cos[end - 1 : end], sin[end - 1 : end]  # [1, D] each",
        "positions = cos[end : end + 1], sin[end : end + 1]",
        ("test_decoding.py::test_two_continuations_of_one_past_do_not_disturb_each_other",),
    ),
    Mutant(
        "decoding: padding is read", "fast/decoding.py",
        "mask = _fresh_copy(attention_mask.bool())[:, None, None, :]  # [B, T] -> [B, 1, 1, T]", "mask = None",
        ("test_decoding.py::test_every_way_gives_the_plain_tokens",),
    ),
    Mutant(
        "decoding: compiled for columns", "fast/decoding.py",
        "    by_columns = False\n", "    by_columns = True\n",
        ("test_decoding.py::test_each_way_lays_the_weights_out_as_it_needs_them",),
    ),
    Mutant(
        "decoding: hooks are skipped silently", "fast/compilable.py",
        "has_hooks = part._forward_hooks or part._forward_pre_hooks", "has_hooks = False",
        ("test_decoding.py::test_a_model_that_somebody_changed_stays_plain",),
    ),
    Mutant(
        "decoding: the dropout is lost silently", "fast/compilable.py",
        "if model.training and model.config.dropout:", "if False:",
        ("test_decoding.py::test_dropout_is_not_left_out_silently",),
    ),
    Mutant(
        "decoding: strides of a slice", "fast/decoding.py",
        "return x.clone(memory_format=torch.contiguous_format)", "return x",
        ("test_compiled_steps.py::test_a_mixture_for_one_row_is_one_graph_and_follows_replaced_experts",),
    ),
    Mutant(
        "compiled: float32 rows that count nothing", "fast/rows.py", "matrix.new_ones(", "matrix.new_zeros(",
        ("test_compiled_steps.py::test_float32_is_read_by_our_own_loops",),
    ),
    Mutant(
        "compiled: no loops of our own", "fast/decoding.py", "            self.weights = in_rows(self.weights)\n",
        "            pass\n", ("test_compiled_steps.py::test_float32_is_read_by_our_own_loops",),
    ),
    # Rounded weights
    Mutant(
        "rounded: the scales forgotten", "fast/rows.py",
        "return self.values.float() * self.scales[..., None]", "return self.values.float()", ROUNDED,
    ),
    Mutant(
        "rounded: another row's scale", "fast/rows.py",
        "return Rows(self.values[index], self.scales[index])", "return Rows(self.values[index], self.scales[:1])",
        ROUNDED,
    ),
    Mutant(
        "rounded: prompts by the model as it was", "fast/rounded.py",
        "setattr(part, name, RoundedLinear(piece))", "pass", ROUNDED,
    ),
    Mutant(
        "rounded: the router alone stays as it was", "fast/rounded.py",
        "router.weight = nn.Parameter(rounded(router.weight, to).restored())", "pass", ROUNDED,
    ),
    Mutant(
        "rounded: a tied matrix held twice", "fast/rounded.py",
        "embedding = output if tied else", "embedding =", ROUNDED,
    ),
    Mutant(
        "rounded: a tied output for every model", "fast/rounded.py",
        "embedding = output if tied else", "embedding = output if True else",
        ROUNDED,
    ),
    Mutant(
        "rounded: the gains of the model itself", "fast/rounded.py",
        "matrices = {id(it): it for it in model.parameters() if it.dim() == 2}",
        "matrices = {id(it): it for it in model.parameters()}", ROUNDED,
    ),
    Mutant(
        "rounded: bfloat16 prompts everywhere", "fast/rows.py",
        "if self.values.dtype == torch.bfloat16 and multiplies_bfloat16():", "if self.values.dtype == torch.bfloat16:",
        ROUNDED,
    ),
    Mutant(
        "rounded: the missing compiler is not told", "fast/rounded.py",
        "        if reason:", "        if False:", ROUNDED,
    ),
    Mutant(
        "rounded: a changed model is rounded silently", "fast/rounded.py",
        "if changed is not None:", "if False:", ROUNDED,
    ),
    Mutant(
        "row products: a step too small for the sum", "fast/row_products.py",
        "room = 16_900_000 - x.shape[1]", "room = 18_900_000 - x.shape[1]", ROW_PRODUCTS,
    ),
    Mutant(
        "row products: a vector of 8 bits", "fast/row_products.py", "sizes.amax(1) / 32767", "sizes.amax(1) / 127",
        ROW_PRODUCTS,
    ),
    Mutant(
        "row products: one library for all processors", "fast/row_products.py",
        "SOURCE.read_bytes() + macros +", "SOURCE.read_bytes() +", ROW_PRODUCTS,
    ),
    # Devices
    Mutant(
        "device: bfloat16 wherever torch calls it supported", "device.py",
        "torch.bfloat16 if major >= 8 else torch.float16", "torch.bfloat16",
        ("test_device.py::test_bfloat16_is_for_cuda_that_has_it",),
    ),
    Mutant(
        "device: without a GPU the CPU twice", "device.py",
        "return list(dict.fromkeys((torch.device(\"cpu\"), pick_device())))",
        "return [torch.device(\"cpu\"), pick_device()]", DEVICE,
    ),
    Mutant(
        "device: tables stay behind when the model moves", "model.py",
        "self.freqs_cos, self.freqs_sin = cos.to(weight.device), sin.to(weight.device)",
        "self.freqs_cos, self.freqs_sin = cos, sin", ("test_device.py::test_the_whole_model_moves",),
    ),
    Mutant(
        "device: the mask is made on the CPU", "masks.py",
        "causal_mask(query_length, key_length, attention_mask.device)",
        "causal_mask(query_length, key_length)", ("test_device.py::test_the_whole_model_moves",),
    ),
    Mutant(
        "device: what was seen is kept on the CPU", "generation.py",
        "dtype=torch.bool, device=prompt.device)\n    if attention_mask is None",
        "dtype=torch.bool)\n    if attention_mask is None", ("test_device.py::test_the_whole_model_moves",),
    ),
    Mutant(
        "timing: the clock is read before the GPU has finished", "timing.py",
        "synchronize(device)\n        return time.perf_counter()", "return time.perf_counter()", TIMING,
    ),
    Mutant(
        "timing: the last round counts, not the best", "timing.py",
        "min(seconds, best.get(name, seconds))", "seconds", TIMING,
    ),
    Mutant(
        "timing: one call after the other", "timing.py",
        "[turn for _ in range(rounds) for turn in calls.items()]",
        "[turn for turn in calls.items() for _ in range(rounds)]", TIMING,
    ),
    # Checkpoints
    Mutant(
        "checkpoint: written in place", "weights/checkpoints.py",
        "save_file(tensors, partial, metadata", "partial = path; save_file(tensors, path, metadata",
        ("test_checkpoints.py::test_an_interrupted_save_leaves_the_old_file",),
    ),
    Mutant(
        "checkpoint: the format left out", "weights/checkpoints.py", ', "format": "pt"}',
        "}", ("test_checkpoints.py::test_a_tied_matrix_is_written_once",),
    ),
    Mutant(
        "checkpoint: the first tensor's dtype for all", "weights/checkpoints.py",
        "dtype = reduce(torch.promote_types, dtypes)", "dtype = parameters[0].dtype",
        ("test_checkpoints.py::test_mixed_precision_loses_nothing",),
    ),
    Mutant(
        "checkpoint: tables keep the first tensor's dtype", "weights/checkpoints.py",
        "if len(dtypes) > 1:", "if False:", ("test_checkpoints.py::test_mixed_precision_loses_nothing",),
    ),
    Mutant(
        "checkpoint: weights stay in the file", "weights/checkpoints.py",
        "parameter.to(dtype, copy=True, memory_format=torch.contiguous_format)", "parameter.to(dtype)", CHECKPOINTS,
    ),
    Mutant(
        "checkpoint: a differing head is dropped", "weights/checkpoints.py", "if not is_tied(weights):", "if False:",
        ("test_checkpoints.py::test_weights_that_do_not_fit_the_config_are_refused",),
    ),
    Mutant(
        "checkpoint: names and shapes not compared", "weights/checkpoints.py",
        "model.load_state_dict(weights, assign=True)", "model.load_state_dict(weights, assign=True, strict=False)",
        ("test_checkpoints.py::test_weights_that_do_not_fit_the_config_are_refused",),
    ),
    Mutant(
        "checkpoint: declared sizes believed", "weights/checkpoints.py",
        "if shown := differences(config, weights):", "if (shown := differences(config, weights)) and False:",
        ("test_checkpoints.py::test_weights_that_do_not_fit_the_config_are_refused",),
    ),
    Mutant(
        "checkpoint: any number of positions", "weights/checkpoints.py",
        'if tables > _MOST_TABLES and "max_position_embeddings" not in known:', "if False:",
        ("test_checkpoints.py::test_a_config_json_is_not_believed_in_silence",),
    ),
    Mutant(
        "checkpoint: even positions that you name refused", "weights/checkpoints.py",
        'if tables > _MOST_TABLES and "max_position_embeddings" not in known:', "if tables > _MOST_TABLES:",
        ("test_checkpoints.py::test_more_positions_than_a_file_may_ask_for_can_still_be_named",),
    ),
    Mutant(
        "checkpoint: left in training", "weights/checkpoints.py",
        "return model.eval()", "return model.train()",
        ("test_checkpoints.py::test_a_model_that_was_read_is_in_eval_mode",),
    ),
    Mutant(
        "checkpoint: what you know is ignored", "weights/checkpoints.py",
        "config = infer_config(weights, stored.config_json, **known)",
        "config = infer_config(weights, stored.config_json)",
        ("test_checkpoints.py::test_a_bare_state_dict_is_enough",),
    ),
    Mutant(
        "checkpoint: config.json is ignored", "weights/checkpoints.py",
        "config = infer_config(weights, stored.config_json, **known)", "config = infer_config(weights, **known)",
        ("test_checkpoints.py::test_a_folder_of_upstream_is_read",),
    ),
    Mutant(
        "assigned weights: tables stay on meta", "model.py",
        "self.register_load_state_dict_post_hook(_tables_follow_weights)", "pass",
        ("test_model.py::test_weights_can_be_assigned_to_a_model_on_meta",),
    ),
    Mutant(
        "assigned weights: tied no more", "model.py",
        "self.register_load_state_dict_post_hook(MiniMindForCausalLM._tie)", "pass",
        ("test_model.py::test_assigned_weights_are_tied_as_the_config_says",),
    ),
    Mutant(
        "assigned weights: tables keep their dtype", "model.py",
        "if (cos.device, cos.dtype) != (weight.device, torch.promote_types(weight.dtype, torch.float32)):",
        "if cos.device != weight.device:", ("test_model.py::test_assigning_wider_weights_widens_the_tables",),
    ),
    Mutant(
        "assigned weights: tables built where the surroundings say", "model.py",
        'with torch.device("cpu"):', "if True:", ("test_model.py::test_weights_can_be_assigned_to_a_model_on_meta",),
    ),
    # Files, names and configs of others
    Mutant(
        "files: pickles may run code", "weights/files.py", "weights_only=True", "weights_only=False", FILES,
    ),
    Mutant(
        "files: an index reaches outside its folder", "weights/files.py",
        "if Path(file).name != file or Path(file).suffix not in SUFFIXES:", "if Path(file).suffix not in SUFFIXES:",
        FILES,
    ),
    Mutant(
        "files: everything in a shard is taken", "weights/files.py",
        "            content[name] = held[name]", "            content |= held", FILES,
    ),
    Mutant(
        "files: missing shards are left out", "weights/files.py", "if missing or not names:", "if not names:", FILES,
    ),
    Mutant(
        "files: any config.json beside a file counts", "weights/files.py",
        "config.is_file() and (path.is_dir() or file.name in _STANDARD)", "config.is_file()", FILES,
    ),
    Mutant(
        "files: pickles before safetensors", "weights/files.py", "return folder / standard[0]",
        "return folder / standard[-1]", FILES,
    ),
    Mutant(
        "names: the last of two tensors counts", "weights/state_dicts.py", "if name in weights:", "if False:",
        ("test_state_dicts.py",),
    ),
    Mutant(
        "names: a stride of 0 is believed", "weights/state_dicts.py",
        "not 0 < tensor.nbytes <= tensor.untyped_storage().nbytes()", "tensor.nbytes == 0", ("test_state_dicts.py",),
    ),
    Mutant(
        "names: fused gate and up swapped", "weights/state_dicts.py",
        "gate, up = gate_up[index].chunk(2)", "up, gate = gate_up[index].chunk(2)",
        ("test_state_dicts.py",),
    ),
    Mutant(
        "names: fused gate and up interleaved", "weights/state_dicts.py",
        "gate, up = gate_up[index].chunk(2)", "gate, up = gate_up[index, ::2], gate_up[index, 1::2]",
        ("test_state_dicts.py",),
    ),
    Mutant(
        "names: one prefix only", "weights/state_dicts.py", 'while name.startswith("module."):',
        'if name.startswith("module."):', ("test_state_dicts.py",),
    ),
    Mutant(
        "names: tables are weights", "weights/state_dicts.py", "if name.endswith(_TABLES):", "if False:",
        ("test_state_dicts.py",),
    ),
    Mutant(
        "inferred: the config.json before the caller", "weights/infer_config.py",
        "values = shown | stated | known", "values = shown | known | stated",
        ("test_infer_config.py::test_config_json_goes_before_presets_and_you_before_config_json",),
    ),
    Mutant(
        "inferred: shapes before the config.json", "weights/infer_config.py",
        "values = shown | stated | known", "values = stated | shown | known",
       
        ("test_infer_config.py::test_a_config_json_is_believed_against_the_shapes_so_that_the_weights_are_found_not_to_fit",),
    ),
    Mutant(
        "inferred: heads of 64 instead of eight heads", "weights/infer_config.py",
        "head_dim = q_rows // assumed", "head_dim = 64 if q_rows % 64 == 0 else q_rows // assumed",
        ("test_infer_config.py",),
    ),
    Mutant(
        "inferred: generation by key/value heads", "weights/infer_config.py",
        'generation = "minimind3" if shown["use_qk_norm"] else "minimind2"',
        'generation = "minimind3" if len(weights[f"{_LAYER}self_attn.k_proj.weight"]) > 128 else "minimind2"',
        ("test_infer_config.py",),
    ),
    Mutant(
        "inferred: always tied", "weights/infer_config.py",
        "return head.shape == embedding.shape and torch.equal(head, embedding)", "return True",
        ("test_infer_config.py",),
    ),
    Mutant(
        "config.json: theta of our preset where transformers is silent", "weights/config_json.py",
        '"rope_theta": 1e4, ', "", ("test_config_json.py",),
    ),
    Mutant(
        "config.json: YaRN only of transformers 5", "weights/config_json.py",
        'given = _object(described, "rope_scaling") | ', "given = {} | ", ("test_config_json.py",),
    ),
    Mutant(
        "config.json: YaRN within the trained context is dropped", "weights/config_json.py",
        "positions if positions > original else int(factor * original)", "positions",
        ("test_config_json.py", "test_checkpoints_transformers.py"),
    ),
    Mutant(
        "config.json: unknown switches are ignored", "weights/config_json.py",
        "if switches.get(name) not in supported:", "if False:", ("test_config_json.py",),
    ),
    Mutant(
        "upstream: YaRN proper of the last MiniMind2 read as the older formula", "upstream.py",
        'if generation == "minimind2" and "attention_factor" not in (given or {}):',
        'if generation == "minimind2":', ("test_config_json.py",),
    ),
    Mutant(
        "hub: fetched without being asked", "weights/hub.py", "local_files_only=not download", "local_files_only=False",
        ("test_hub.py::test_a_model_that_is_not_in_the_cache_is_not_fetched_unless_asked",),  # others wait for the Hub
    ),
    Mutant(
        "hub: a name goes before a path", "weights/hub.py",
        "if place.exists():", 'if place.exists() and "/" not in name[1:]:',
        ("test_hub.py::test_a_path_that_exists_goes_before_a_hub_name",),
    ),
    # To transformers
    Mutant(
        "hf: YaRN's factor left to transformers", "hf/counterpart.py",
        '"attention_factor": float(scaling.table_factor),', "",
        ("test_hf_export.py::test_logits_agree",),
    ),
    Mutant(
        "hf: a scaling exported that never starts", "hf/counterpart.py",
        "or config.max_position_embeddings <= scaling.original_max_position_embeddings", "",
        ("test_hf_export.py::test_a_scaling_that_never_starts_is_left_out",),
    ),
    Mutant(
        "hf: the older scaling taken for YaRN", "hf/counterpart.py", 'if scaling.formula != "yarn":', "if False:",
        _REFUSES,
    ),
    Mutant("hf: a ramp that runs backwards", "hf/counterpart.py", "if low > high:", "if False:", _REFUSES),
    Mutant(
        "hf: the shared expert lost", "hf/counterpart.py", "elif config.use_moe and config.num_shared_experts:",
        "elif False:", _REFUSES,
    ),
    Mutant(
        "hf: post-norm as pre-norm", "hf/counterpart.py", 'if config.norm_placement != "pre":', "if False:", _REFUSES,
    ),
    Mutant(
        "hf: routing weights as transformers likes", "hf/counterpart.py",
        "norm_topk_prob=config.norm_topk_prob,", "", ("test_hf_export.py::test_logits_agree",),
    ),
    Mutant(
        "hf: RoPE's base as transformers likes", "hf/counterpart.py",
        'return {"rope_type": "default", "rope_theta": config.rope_theta}', 'return {"rope_type": "default"}',
        ("test_hf_export.py::test_logits_agree",),
    ),
    Mutant(
        "hf: the embedding of the padding frozen", "hf/counterpart.py",
        '"pad_token_id": None,', '"pad_token_id": config.eos_token_id,',
        ("test_hf_export.py::test_the_folder_says_how_to_generate",),
    ),
    Mutant(
        "hf: weights shared with the twin", "hf/export.py", "tensor.detach().clone()", "tensor.detach()",
        ("test_hf_export.py::test_the_twin_has_weights_of_its_own",),
    ),
    Mutant(
        "hf: the names of transformers 4 left out", "hf/export.py",
        'config["rope_theta"] = rope["rope_theta"]', "pass",
        ("test_hf_export.py::test_the_config_can_also_be_read_by_transformers_4",),
    ),
    Mutant(
        "hf: the old folder lost", "hf/export.py", "            old.rename(folder)\n        raise", "            raise",
        ("test_hf_export.py::test_a_failure_leaves_everything_as_it_was",),
    ),
    Mutant(
        "hf: any folder replaced", "hf/export.py", 'if others or not (folder / "config.json").is_file():', "if False:",
        ("test_hf_export.py::test_never_replaces_what_is_no_models_folder",),
    ),
    Mutant(
        "hf: a folder with a config.json replaced, whatever else it holds", "hf/export.py",
        'if others or not (folder / "config.json").is_file():', 'if not (folder / "config.json").is_file():', _DELETES,
    ),
    Mutant(
        "hf: a folder or link of a file's name replaced", "hf/export.py",
        "return bool(ours) and entry.is_file() and not entry.is_symlink()", "return bool(ours)", _DELETES,
    ),
    Mutant(
        "hf: a link replaced by a folder", "hf/export.py", "Path(folder), Path(folder).resolve()",
        "Path(folder), Path(folder).absolute()", ("test_hf_export.py::test_a_link_to_a_folder_stays_a_link",),
    ),
    Mutant(
        "hf: the current folder replaced", "hf/export.py",
        "if folder in (Path.cwd(), *Path.cwd().parents):", "if False:",
        ("test_hf_export.py::test_never_replaces_the_current_folder",),
    ),
    Mutant(
        "hf: dropout left out", "hf/counterpart.py", '"attention_dropout": config.dropout,', "", _TRAINS,
    ),
    Mutant(
        "hf: the size of new weights left out", "hf/counterpart.py",
        '"initializer_range": config.initializer_range,', "", _TRAINS,
    ),
    Mutant(
        "hf: tables left empty after loading", "hf/base_model.py", "module.rebuild_tables()", "pass", _SAVED,
    ),
    Mutant(
        "hf: the tie not declared", "hf/adapter.py",
        '_tied_weights_keys = {"lm_head.weight": "model.embed_tokens.weight"}', "_tied_weights_keys = None",
        _SAVED,
    ),
    Mutant(
        "hf: the router left empty", "hf/base_model.py", "nn.init.kaiming_uniform_(module.weight, a=5**0.5)", "pass",
        ("test_hf_adapter.py::test_a_new_model_starts_like_ours",
         "test_hf_adapter.py::test_a_missing_router_is_drawn_and_not_left_empty"),
    ),
    Mutant(
        "hf: the loss without balancing", "hf/adapter.py", "else loss + aux_loss,", "else loss,",
        ("test_hf_adapter.py::test_a_call_gives_what_our_call_gives",),
    ),
    Mutant(
        "hf: an empty cache dropped", "hf/base_model.py", "        if given is None:\n", "        if not given:\n",
        _IN_PLACE,
    ),
    Mutant(
        "hf: the vocabulary not followed", "hf/base_model.py",
        "        self.model.config = self.config.to_minimind()\n", "", _GROWS,
    ),
    Mutant(
        "hf: the vocabulary not followed by the model that was wrapped", "hf/adapter.py",
        "            ours.config, ours.lm_head = self.model.config, self.lm_head\n", "            pass\n", _GROWS,
    ),
    Mutant(
        "hf: balancing alone for a loss", "hf/adapter.py", "loss=None if loss is None", "loss=aux_loss if loss is None",
        ("test_hf_adapter.py::test_a_call_gives_what_our_call_gives",),
    ),
    Mutant(
        "hf: the config's cache ignored", "hf/base_model.py", "self.config.use_cache if use_cache is None",
        "True if use_cache is None", ("test_hf_adapter.py::test_the_config_says_whether_a_cache_is_returned",),
    ),
    Mutant(
        "hf: a text goes on behind padding", "hf/adapter.py", "check_left_padding(attention_mask)", "pass",
        ("test_hf_adapter.py::test_padding_on_the_right_is_refused_where_a_text_would_go_on_behind_it",),
    ),
    Mutant(
        "hf: tables follow the weights to where there is no memory", "hf/base_model.py",
        "if not module.embed_tokens.weight.is_meta:", "if True:",
        ("test_hf_adapter.py::test_accelerate_loads_it_into_a_model_without_memory",),
    ),
    Mutant(
        "hf: a tokenizer taken for an option", "hf/options.py", ', "tokenizer", "assistant_tokenizer")', ")",
        ("test_hf_adapter.py::test_a_text_ends_with_a_word",),
    ),
    Mutant(
        "hf: only the first of several ends", "hf/config.py", "return list(ends) if", "return ends[0] if",
        ("test_hf_adapter.py::test_a_text_ends_with_any_of_several_tokens",),
    ),
    Mutant(
        "hf: other positions ignored", "hf/options.py", 'if "position_ids" in given:', "if False:",
        ("test_hf_adapter.py::test_takes_positions_only_if_they_are_the_ones_it_counts",),
    ),
    Mutant(
        "hf: padding not counted in positions", "hf/options.py",
        "attention_mask.long().cumsum(-1)[:, -length:] - 1", "attention_mask.long().cumsum(-1)[:, -length:]",
        ("test_hf_adapter.py::test_takes_positions_only_if_they_are_the_ones_it_counts",),
    ),
    Mutant(
        "hf: the room of a static cache read as keys", "hf/caches.py",
        "keys[:, :, :end].transpose(1, 2), values[:, :, :end].transpose(1, 2)",
        "keys.transpose(1, 2), values.transpose(1, 2)", _IN_PLACE,
    ),
    Mutant(
        "hf: the notes' layout given to transformers", "hf/caches.py",
        "cache.update(key.transpose(1, 2), value.transpose(1, 2), index)", "cache.update(key, value, index)",
        ("test_hf_adapter.py::test_the_pairs_of_the_notes_work_too_and_stay_as_they_are",),
    ),
    Mutant(
        "hf: a cache that forgets", "hf/caches.py", "or any(cache.is_sliding)", "",
        ("test_hf_adapter.py::test_refuses_a_past_that_it_cannot_continue",),
    ),
    # Found by an attack: each of these once passed all tests
    Mutant(
        "generation: the end token is 2, whatever the config says", "generation.py",
        "ends = tokens_of(config.eos_token_id if eos_token_id == -1 else eos_token_id)",
        "ends = tokens_of(2 if eos_token_id == -1 else eos_token_id)",
        ("test_generation.py::test_the_config_names_the_end_token_or_several",),
    ),
    Mutant(
        "generation: only the first of several end tokens ends a row", "generation.py",
        "torch.tensor(ends, dtype=torch.int64, device", "torch.tensor(ends[:1], dtype=torch.int64, device",
        ("test_generation.py::test_the_config_names_the_end_token_or_several",),
    ),
    Mutant(
        "sampling: top-p before top-k", "sampling.py",
        """        if self.top_k is not None:
            logits = keep_top_k(logits, self.top_k)
        if self.top_p is not None:
            logits = keep_top_p(logits, self.top_p)
""",
        """        if self.top_p is not None:
            logits = keep_top_p(logits, self.top_p)
        if self.top_k is not None:
            logits = keep_top_k(logits, self.top_k)
""",
        SAMPLING,
    ),
    Mutant(
        "sampling: in half precision", "sampling.py",
        "logits = (logits.float() - logits.amax(-1, keepdim=True).float()) / self.temperature",
        "logits = (logits - logits.amax(-1, keepdim=True)) / self.temperature", SAMPLING,
    ),
    Mutant(
        "sampling: NaN is taken for the largest", "sampling.py", "if bool(logits.isnan().any()):", "if False:",
        SAMPLING,
    ),
    Mutant(
        "sampling: min-p of a probability of 1", "sampling.py",
        "min_p * probabilities.amax(-1, keepdim=True)", "min_p", SAMPLING,
    ),
    Mutant(
        "sampling: min-p before top-p", "sampling.py",
        """        if self.top_p is not None:
            logits = keep_top_p(logits, self.top_p)
        if self.min_p is not None:
            logits = keep_min_p(logits, self.min_p)
""",
        """        if self.min_p is not None:
            logits = keep_min_p(logits, self.min_p)
        if self.top_p is not None:
            logits = keep_top_p(logits, self.top_p)
""",
        SAMPLING,
    ),
    Mutant(
        "model: label 0 left out of the loss", "model.py",
        "ignore_index=-100)", "ignore_index=-100) * 1 if (labels != 0).all() else logits.sum() * 0", MODEL,
    ),
    Mutant(
        "model: labels below zero pass", "model.py",
        "read = labels.masked_fill(labels == -100, 0)", "read = labels.clamp(min=0)",
        ("test_model.py::test_rejects_what_it_cannot_compute",),
    ),
    Mutant(
        "model: the cache returned unasked", "model.py", "past if use_cache else None, tuple", "past, tuple", MODEL,
    ),
    Mutant(
        "model: embedding dropout removed", "model.py",
        "x = self.dropout(self.embed_tokens(input_ids))", "x = self.embed_tokens(input_ids)", MODEL,
    ),
    Mutant(
        "model: router initialized like the other matrices", "model.py",
        'if parameter.dim() == 2 and not name.endswith("mlp.gate.weight"):', "if parameter.dim() == 2:", MODEL,
    ),
    Mutant(
        "moe: experts without dropout", "moe.py",
        "sizes = (config.hidden_size, config.moe_intermediate_size, config.dropout)",
        "sizes = (config.hidden_size, config.moe_intermediate_size, 0.0)", MOE,
    ),
    Mutant(
        "attention: the weights ignore the mask that was given", "attention.py",
        "visible = causal_mask(q.shape[1], k.shape[1], x.device) if mask is None else mask",
        "visible = causal_mask(q.shape[1], k.shape[1], x.device)", ATTENTION,
    ),
    Mutant(
        "attention: dropout doubled", "attention.py",
        "self.dropout if self.training else 0.0", "2 * self.dropout if self.training else 0.0", ATTENTION,
    ),
    Mutant(
        "rope: keys in the queries' dtype", "rope.py",
        "return q_turned.to(q.dtype), k_turned.to(k.dtype)\n\n\ndef _check_tables",
        "return q_turned.to(q.dtype), k_turned.to(q.dtype)\n\n\ndef _check_tables", ROPE,
    ),
    Mutant(
        "rope: the complex form narrowed to float32", "rope.py",
        "wide = x.to(torch.promote_types(x.dtype, torch.float32))", "wide = x.float()", ROPE,
    ),
    Mutant(
        "upstream: YaRN without a context takes another", "upstream.py",
        'defaults = {"factor": 16.0, "beta_fast": 32.0, "attention_factor": 1.0}',
        'defaults = {"factor": 16.0, "beta_fast": 32.0, "attention_factor": 1.0, '
        '"original_max_position_embeddings": 32768}', ("test_config.py",),
    ),
    Mutant(
        "norms: integers are rounded", "norms.py", "if not x.is_floating_point():", "if False:", NORMS,
    ),
    Mutant(
        "mask: any number but 0 counts as a token", "validation.py", "    if strange.numel():", "    if False:",
        ("test_model.py::test_rejects_what_it_cannot_compute",),
    ),
    Mutant(
        "decoding: a replaced method is not noticed", "fast/compilable.py",
        "replaced = any(isinstance(value, FunctionType | MethodType) for value in vars(part).values())",
        "replaced = False", ("test_decoding.py::test_a_model_that_somebody_changed_stays_plain",),
    ),
    Mutant(
        "decoding: the weights are laid out once", "fast/decoding.py",
        "self.weights = lay_out(self.model, self.by_columns)",
        'self.weights = getattr(self, "weights", None) or lay_out(self.model, self.by_columns)',
        ("test_decoding.py::test_between_two_texts_a_model_may_change",),
    ),
    Mutant(
        "world: a gift stays with the giver", "world/house.py",
        'slots["P" if kind == "take" else "Q"]', 'slots["P"]',
        ("test_world.py::test_every_story_agrees_with_a_reader_that_does_not_know_the_grammar",),
    ),
    Mutant(
        "world: people hold several things", "world/house.py",
        "free = [p for p in people if not self.held[p]]", "free = people",
        ("test_world.py::test_everybody_holds_one_thing_at_most",),
    ),
    Mutant(
        "world: a question about things is as likely with one as with three", "world/house.py",
        "len(self.holder) ** 2 if kind in BY_OBJECTS else 1", "1",
        ("test_world.py::test_a_question_about_things_weighs_the_square_of_their_number",),
    ),
    Mutant(
        "world: a coin for the language of every sentence", "world/house.py",
        "(self.spoken, 1 - self.spoken)[pick(LANGUAGE)]", "one(pick, self.languages)",
        ("test_world.py::test_a_second_sentence_by_hand",),
    ),
    Mutant(
        "world: she may mean either of two women", "world/house.py", "if alike == [who]", "if who in alike",
        ("test_world.py::test_sentences_are_told_apart_by_their_words",),
    ),
    Mutant(
        "world: the exact distribution forgets the weights", "world/house.py",
        "self.probability *= weights[choice] / sum(weights)", "self.probability *= 1 / len(weights)",
        ("test_world.py::test_a_second_sentence_by_hand",),
    ),
    Mutant(
        "world: what somebody holds still lies around", "world/house.py", 'self.lies.pop(slots["X"], None)', "pass",
        ("test_world.py::test_every_story_agrees_with_a_reader_that_does_not_know_the_grammar",),
    ),
    Mutant(
        "world: a page is told the wrong word for putting down", "world/tables.py", "(2, 5)", "(2, 4)",
        ("test_world.py::test_only_who_puts_something_down_says_the_words_for_it",),
    ),
    Mutant(
        "world: a page is told less than all marks", "world/tables.py", "words[-4:]", "words[-3:]",
        ("test_world.py::test_the_tables_hold_every_word_of_every_list",),
    ),
    Mutant(
        "world: a page translates less often", "world/tables.py", '"translation": list(TRANSLATION)',
        '"translation": [8, 1]', ("test_live_world.py::test_the_distributions_are_those_of_python",),
    ),
    Mutant(
        "world: a page tells of four people", "world/tables.py", '"people": CAST', '"people": CAST + 1',
        ("test_live_world.py::test_the_distributions_are_those_of_python",),
    ),
    Mutant("int8: another number of bits", "weights/int8.py", "Grid(bits=8", "Grid(bits=7", INT8),
    Mutant("int8: one scale for all rows", "weights/int8.py", 'per="row"', 'per="tensor"', INT8),
    Mutant(
        "quantization: one bit too many", "quantization.py", "2 ** (self.bits - 1) - 1", "2**self.bits - 1",
        QUANTIZATION,
    ),
    Mutant(
        "quantization: an asymmetric grid", "quantization.py", "2 ** (self.bits - 1) - 1", "2 ** (self.bits - 1)",
        QUANTIZATION,
    ),
    Mutant(
        "quantization: cut instead of rounded", "quantization.py", "[..., None]).round()", "[..., None]).trunc()",
        QUANTIZATION,
    ),
    Mutant(
        "quantization: the scale of zeros is 0", "quantization.py", "masked_fill(scales == 0, 1.0)", "float()",
        QUANTIZATION,
    ),
    Mutant(
        "quantization: the largest weight, not the largest in size", "quantization.py",
        "sharing.abs().amax(-1)", "sharing.amax(-1).clamp(min=0)", QUANTIZATION,
    ),
    Mutant(
        "quantization: a row counts as the tensor", "quantization.py",
        '(1, 1) if grid.per == "tensor"', '(1, 1) if grid.per == "row"', QUANTIZATION,
    ),
    Mutant("quantization: scales are free", "quantization.py", "SCALE_BITS = 32", "SCALE_BITS = 0", QUANTIZATION),
    Mutant(
        "quantization: the given model is rounded", "quantization.py", "copy.deepcopy(model)", "model", QUANTIZATION,
    ),
    Mutant(
        "quantization: gains are rounded, too", "quantization.py", "if parameter.dim() == 2]", "if True]", QUANTIZATION,
    ),
    Mutant(
        "quantization: float16 for bfloat16", "quantization.py", "matrix.bfloat16()", "matrix.half()", QUANTIZATION,
    ),
    Mutant(
        "rounding: the divergence in the other direction", "living/rounding.py",
        "there.exp() * (there - here)", "here.exp() * (here - there)", ROUNDING,
    ),
    Mutant(
        "rounding: the last position counts", "living/rounding.py", "part)[:, :-1] for one", "part) for one", ROUNDING,
    ),
    Mutant(
        "rounding: all matrices but one", "living/rounding.py", "only=name.__eq__", "only=name.__ne__", ROUNDING,
    ),
    Mutant(
        "rounding: the model stays on its grid", "living/rounding.py",
        "    train(model, story_batches(FURTHER_SEED), recipe)\n", "", ROUNDING,
    ),
    Mutant("int8: gains are rounded, too", "weights/int8.py", "if tensor.dim() == 2:", "if True:", INT8),
    Mutant(
        "int8: missing scales are not noticed", "weights/int8.py",
        "if scales is None or scales.shape != tensor.shape[:1]:", "if scales is None:", INT8,
    ),
    Mutant(
        "checkpoints: int8 of any hand is read as rows", "weights/checkpoints.py",
        'if stored.metadata.get("weights") == FORMAT', "if True", (*INT8, "test_state_dicts.py"),
    ),
    Mutant("training: no warm-up", "training.py", "min(1.0, (step + 1) / max(1, self.warmup))", "1.0", TRAINING),
    Mutant(
        "training: the rate falls to 0", "training.py",
        "(self.last + (1 - self.last) * cosine)", "cosine", TRAINING,
    ),
    Mutant("training: gradients add up", "training.py", "    optimizer.zero_grad()\n", "", TRAINING),
    Mutant(
        "training: gradients are not clipped", "training.py",
        "    torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)\n", "", TRAINING,
    ),
    Mutant(
        "training: gains decay", "training.py", '"params": gains, "weight_decay": 0.0',
        '"params": gains, "weight_decay": recipe.weight_decay', TRAINING,
    ),
    Mutant("training: the rate stays", "training.py", 'group["lr"] = recipe.rate(step)', "pass", TRAINING),
    Mutant("training: ends in training mode", "training.py", "        model.eval()", "        pass", TRAINING),
    Mutant(
        "training: a bad loss is learned from", "training.py",
        "if not math.isfinite(out.loss.item()):", "if False:", TRAINING,
    ),
    Mutant("training: every seed is the same", "training.py", "np.random.PCG64(seed)", "np.random.PCG64(0)", TRAINING),
    Mutant(
        "living: gains are drawn, too", "training.py",
        "if parameter.dim() < 2:", "if parameter.dim() < 1:", TRAINING,
    ),
    Mutant(
        "exam: the first word of an answer is enough", "living/exam.py",
        "(row[first : first + len(one.answer)] == one.answer).all()", "row[first] == one.answer[0]", LIVING,
    ),
    Mutant(
        "exam: read a word too late", "living/exam.py",
        "first = len(one.prompt) - 1", "first = len(one.prompt)", LIVING,
    ),
    Mutant(
        "exam: the distance the other way", "living/exam.py", "exact[part] * (log_exact[part] - log_model)",
        "log_model.exp() * (log_model - log_exact[part])", LIVING,
    ),
    Mutant(
        "exam: per story, not per word", "living/exam.py",
        "exact.shape[0] * exact.shape[1]", "exact.shape[0]", LIVING,
    ),
    Mutant("heads: what is silenced stays silent", "living/heads.py", "columns.copy_(kept)", "pass", LIVING),
    Mutant(
        "heads: what is silenced goes on", "living/heads.py", "columns.zero_()", "pass", LIVING,
    ),
    Mutant(
        "heads: mentions in one language alone", "living/heads.py", " | (abs(one.prompt - answer) == TWIN)", "", LIVING,
    ),
    Mutant(
        "heads: read where the prompt begins", "living/heads.py", "[:, :, -1, mentions]", "[:, :, 0, mentions]", LIVING,
    ),
    Mutant(
        "heads: gained instead of lost", "living/heads.py",
        "whole - accuracy(model, asked)", "accuracy(model, asked) - whole", LIVING,
    ),
    Mutant(
        "living: what a page gets has no order", "figures/living_model.py", 'separators=(",", ":")',
        'separators=(",", ":"), sort_keys=True', ("test_figures_living.py",),
    ),
    Mutant(
        "figure: sends the living model to whoever writes", "figures/base.py", 'if message == {"ask": host.LIVING}:',
        "if True:", ("test_figures_living.py",),
    ),
    Mutant(
        "grid: a short text is read beyond its end", "figures/quantization_grid/__init__.py",
        "lengths - 1].softmax(-1)",
        "-1].softmax(-1)",
        ("test_figure_quantization_grid.py::test_the_questions_are_answered_as_the_rounded_model_answers_each_alone",),
    ),
    Mutant(
        "grid: what fills a text up counts", "figures/quantization_grid/__init__.py",
        "< lengths[:, None]", "< lengths.max().expand(len(lengths), 1)",
        ("test_figure_quantization_grid.py::test_the_questions_are_answered_as_the_rounded_model_answers_each_alone",),
    ),
    Mutant(
        "grid: a row counts among the others", "figures/quantization_grid/__init__.py",
        "weights[torch.arange(len(weights)) != row]", "weights",
        ("test_figure_quantization_grid.py::test_the_others_of_a_row_are_the_other_rows",),
    ),
    Mutant(
        "lists: a length may end too soon", "ablations/lists.py",
        "1 / (LONGEST + 1 - len(asked))", "1 / (LONGEST + 2 - len(asked))",
        ("test_lists.py::test_after_the_equals_sign_nothing_is_open",),
    ),
    Mutant(
        "ablations: an answer is read one word late", "ablations/exam.py",
        "greedy[one.start - 1 : one.end - 1]", "greedy[one.start : one.end]",
        ("test_ablations_exam.py::test_right_answers_are_whole_answers",),
    ),
    Mutant(
        "ablations: no residual keeps the one around the feed-forward network", "ablations/__init__.py",
        "return self._feed(self.post_attention_layernorm(x))",
        "fed, routed = self._feed(self.post_attention_layernorm(x)); return x + fed, routed",
        ("test_ablations.py::test_without_residual_a_block_that_adds_nothing_passes_nothing_on",),
    ),
    Mutant(
        "ablations: LayerNorm begins with a bias of 1", "ablations/__init__.py",
        "nn.init.zeros_(part.bias)", "pass",
        ("test_ablations.py::test_norms_are_taken_away_or_replaced_everywhere_in_the_stream",),
    ),
]
# fmt: on
