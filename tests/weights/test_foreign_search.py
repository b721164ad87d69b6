"""A search: configs of all families, with fields wherever transformers accepts them, mean here what they mean there.

Each drawn config.json stands beside weights that fit its sizes. What transformers reads gives the same logits here, or
is refused with a sentence; so that refusing everything does not pass, what holds nothing unusual must be read.
"""

import contextlib
import json
import random
import shutil
from collections import Counter
from dataclasses import replace

import pytest
import torch
from cases import long_after
from model_builders import TINY_SIZES, tiny_model, token_ids
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, logging

from minimind_edu.hf import export
from minimind_edu.weights.checkpoints import from_checkpoint

SIZES = TINY_SIZES | {"num_hidden_layers": 1, "max_position_embeddings": 256}
KINDS = {"llama": "minimind2", "qwen3": "minimind3", "qwen3_moe": "minimind3_moe"}
LENGTH = 40  # of the texts: longer than most trained contexts that are drawn, shorter than others
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": True}

ABSENT = object()
# Fields that any file may have, and the values that are read.
USUAL = {
    "rms_norm_eps": (1e-6, 1e-2, ABSENT),
    "hidden_act": ("silu", "swish", ABSENT),
    "attention_bias": (False, ABSENT),
    "mlp_bias": (False, ABSENT),
    "pad_token_id": (0, None, ABSENT),
    "use_cache": (True, False),
    "attention_dropout": (0.0, 0.3),
    "torch_dtype": ("float32", "bfloat16", ABSENT),
    "dtype": ("float32", "float16", ABSENT),
    "pretraining_tp": (1, 2, ABSENT),
    "initializer_range": (0.02, 0.5, ABSENT),
    "use_sliding_window": (False, ABSENT),
    "max_window_layers": (0, 28, ABSENT),
    "layer_types": (["full_attention"], None, ABSENT, ABSENT),
    "tie_word_embeddings": (True, False, ABSENT),
    "eos_token_id": (2, [2, 5], None, ABSENT),
    "temperature": (0.5, ABSENT),
    "_name_or_path": ("x/y", ABSENT),
    "auto_map": ({"AutoConfig": "a.B"}, ABSENT),
    "output_router_logits": (True, False, ABSENT),
    "decoder_sparse_step": (1, ABSENT),
    "mlp_only_layers": ([], None, ABSENT),
}
# What changes the result, or what nobody has looked at: one of them at most is drawn into every third config.
ODD = {
    "hidden_act": ("gelu", "relu", None, 7),
    "attention_bias": (True,),
    "mlp_bias": (True,),
    "use_sliding_window": (True,),
    "sliding_window": (4,),
    "layer_types": (["sliding_attention"], ["full_attention"] * 2, []),
    "decoder_sparse_step": (2, 5),
    "mlp_only_layers": ([0], [9]),
    "partial_rotary_factor": (0.5, 1.0),
    "is_causal": (False, True),
    "per_layer_config": ({"0": {"head_dim": 4}},),
    "quantization_config": ({"quant_method": "bitsandbytes", "load_in_8bit": True},),
    "norm_placement": ("post",),
    "use_qk_norm": (True, False),
    "use_moe": (True,),
    "n_routed_experts": (4,),
    "minimind_rope_scaling": ({"factor": 4.0, "original_max_position_embeddings": 8},),
    "inference_rope_scaling": (True,),
    "attn_logit_softcapping": (1.0,),
    "attention_chunk_size": (4,),
    "rms_norm_eps": (0.0, float("nan"), -1.0, "1e-6", None, 10**400),
    "num_attention_heads": (8, 2, 0, 4.0, None, ABSENT),
    "head_dim": (16, 4, 0, "8", None, ABSENT),
    "num_key_value_heads": (4, None, 3, ABSENT),
    "rope_theta": (float("inf"), 0.5, 1.0, None, "10000", 10**400),
    "max_position_embeddings": (0, None, ABSENT, 10**400, 64.0),
    "num_local_experts": (4, 5),
    "num_experts_per_tok": (1, 4, ABSENT, 9),
    "norm_topk_prob": (False, ABSENT, 1),
    "model_type": ("mistral", "minimind"),
}  # fmt: skip


def drawn_rope(chosen):
    """RoPE in the places of transformers 4 and 5, in one of them or in both; and whether something in it is odd."""
    pick = chosen.choice
    odd = Counter()

    def one():
        rope = {}
        if chosen.random() < 0.7:
            rope[pick(("rope_type", "rope_type", "type"))] = kind = pick(("yarn", "yarn", "yarn", "default"))
            if chosen.random() < 0.05:
                kind = rope["type"] = pick(("linear", "dynamic", "llama3", "longrope", None))
                rope.pop("rope_type", None)
                odd["type"] += 1
        else:
            kind = "default"
        if chosen.random() < 0.5:
            rope["rope_theta"] = pick((1e4, 500.0, 1e6, 3.0, 5e5))
        if kind == "yarn" or chosen.random() < 0.3:
            rope["factor"] = pick((1.0, 1, 1.01, 1.02, 2.0, 4.0, 16, 1e6, None))
            if chosen.random() < 0.7:
                rope["original_max_position_embeddings"] = pick((1, 4, 8, 16, 32, 39, 40, 41, 64, 255, 256, 257, 10**6))
            for name, values in {
                "beta_fast": (32, 8, 4.5, 0, None),
                "beta_slow": (1, 2, 0.5, 0, None),
                "attention_factor": (1.0, 1.2, 0.5, None),
                "truncate": (True,),
                "mscale": (0, None, 1.0),
                "finetuned": (True,),
            }.items():
                if chosen.random() < 0.25:
                    rope[name] = pick(values)
            odd["mscale"] += bool(rope.get("mscale"))
            unusual = {"truncate": (False, None), "mscale_all_dim": (0.8,), "factor": (0.5, 0, float("nan"), "4"),
                       "attention_factor": (0, -1.0, "1"), "original_max_position_embeddings": (None, 0, 16.0),
                       "rope_theta": (None, "1e4"), "partial_rotary_factor": (0.5, 1.0),
                       "low_freq_factor": (1.0,)}  # fmt: skip
            if chosen.random() < 0.12:
                name = pick(tuple(unusual))
                rope[name], odd[name] = pick(unusual[name]), 1
            if chosen.random() < 0.03:
                del rope["factor"]
                odd["factor"] += 1
        return rope

    described = {}
    places = pick((("rope_parameters",), ("rope_scaling",), ("rope_parameters", "rope_scaling"), ()))
    for place in places:
        described[place] = one() if chosen.random() < 0.95 else pick((None, {}))
    if chosen.random() < 0.5:
        described["rope_theta"] = pick((1e4, 2e4, 1e6))
    if chosen.random() < 0.25:
        described["original_max_position_embeddings"] = pick((8, 16, 39, 64, 300))
    return described, +odd


def drawn(seed):
    """A config.json of the three families, and what is odd about it."""
    chosen = random.Random(seed)
    family = chosen.choice(tuple(KINDS))
    described = {"model_type": family, **SIZES, **(EXPERTS if family == "qwen3_moe" else {})}
    described["max_position_embeddings"] = chosen.choice((16, 39, 40, 41, 64, 256))
    for name, values in USUAL.items():
        described[name] = chosen.choice(values)
    if family == "qwen3" or chosen.random() < 0.5:  # Qwen3 takes 128 where it is not named
        described["head_dim"] = 8
    if family != "llama":
        described["sliding_window"] = chosen.choice((4, None, ABSENT))
    if family == "qwen3_moe" and chosen.random() < 0.5:
        described["num_local_experts"] = described.pop("num_experts")
    rope, odd = drawn_rope(chosen)
    described |= rope
    if chosen.random() < 1 / 3:
        name = chosen.choice(tuple(ODD))
        described[name], odd[name] = chosen.choice(ODD[name]), 1
    return {name: value for name, value in described.items() if value is not ABSENT}, odd


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Weights of each family, tied and not: what a config.json is laid beside."""
    files = {}
    for family, kind in KINDS.items():
        for tied in (False, True):
            model = tiny_model(kind, dtype=torch.float32, tie_word_embeddings=tied, **SIZES,
                               **(EXPERTS if family == "qwen3_moe" else {}))  # fmt: skip
            weights = model.state_dict()
            if tied:  # a wide embedding would make logits of 30, and their rounding that of 1e-4
                weights["model.embed_tokens.weight"] *= 0.3
                del weights["lm_head.weight"]
            file = files[family, tied] = tmp_path_factory.mktemp("weights") / "model.safetensors"
            save_file(weights, file, metadata={"format": "pt"})
    return files


@contextlib.contextmanager
def quiet():
    before = logging.get_verbosity()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()


@torch.no_grad()
def theirs(folder, ids):
    """transformers' logits, or None where it refuses, or has nothing to say (a matrix drawn anew, not a number)."""
    try:
        model, info = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
        )
        logits = model.eval()(ids).logits
    except Exception:
        return None
    incomplete = info["missing_keys"] or info["mismatched_keys"] or info["unexpected_keys"]
    return logits if not incomplete and bool(logits.isfinite().all()) else None


def difference(ours, expected):
    return float((ours - expected).abs().max())


@torch.no_grad()
def compared(seed, stored, folder, half, round_trip):
    """How one drawn config fared: a word, the largest difference of a logit, what was odd, and the refusal."""
    described, odd = drawn(seed)
    folder.mkdir()
    weights = stored[described.get("model_type") if described.get("model_type") in KINDS else "llama",
                     bool(described.get("tie_word_embeddings"))]  # fmt: skip
    (folder / "config.json").write_text(json.dumps(described))
    shutil.copy(weights, folder / "model.safetensors")
    message = ""
    try:
        model = from_checkpoint(folder)
    except ValueError as error:
        model, message = None, str(error)
        assert len(message) < 3000 and "\n" not in message.strip(), message
    ids = token_ids(1, LENGTH if model is None else min(LENGTH, model.config.max_position_embeddings))
    expected = theirs(folder, ids)
    if model is None:
        return "both refuse" if expected is None else "refused", 0.0, odd, message
    if expected is None:
        return "ours alone", 0.0, odd, message
    gap = difference(model(ids).logits, expected)
    assert gap <= 1e-4, (seed, gap, described)
    if half and not model.config.use_moe:  # in a mixture, a router's near-tie may fall the other way
        twin = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float16).eval()
        theirs_off = difference(twin(ids).logits.float(), expected)
        ours_off = difference(from_checkpoint(folder).half()(ids).logits.float(), expected)
        assert ours_off <= 3 * theirs_off + 0.02, (seed, ours_off, theirs_off, described)
    if round_trip:
        back = from_checkpoint(export(model, folder / "out"))
        rest = {"rope_scaling": None, "dropout": 0.0}  # the factor of YaRN's tables is written out
        assert replace(back.config, **rest) == replace(model.config, **rest), seed
        assert difference(back(ids).logits, expected) <= 1e-4, (seed, described)
        again = theirs(folder / "out", ids)
        assert again is not None and difference(again, expected) <= 1e-4, (seed, described)
    shutil.rmtree(folder)
    return "equal", gap, odd, message


def search(seeds, stored, folder):
    fared, plain, largest = Counter(), Counter(), 0.0
    with quiet():
        for seed in seeds:
            word, gap, odd, message = compared(seed, stored, folder / str(seed), seed % 5 == 0, seed % 4 == 0)
            fared[word] += 1
            # whatever is odd may be refused; of the others, what transformers itself warns of
            if not odd and word in ("equal", "refused"):
                plain[word] += 1
                allowed = "runs backwards" in message or "factor must be at least 1" in message
                assert word == "equal" or allowed, (seed, message)
            largest = max(largest, gap)
    print(dict(fared), dict(plain), f"largest difference {largest:.1e}")
    return fared, plain


@pytest.mark.parametrize("count", long_after(1, [75, 300]))
def test_hundreds_of_configs_mean_what_transformers_makes_of_them(stored, tmp_path, count):
    fared, plain = search(range(count), stored, tmp_path)
    assert fared["equal"] > 0.4 * count, fared
    assert plain["equal"] > 10 * plain["refused"], plain


@pytest.mark.long
def test_three_thousand_configs_mean_what_transformers_makes_of_them(stored, tmp_path):
    fared, plain = search(range(300, 3300), stored, tmp_path)
    assert fared["equal"] > 1200, fared
    assert plain["equal"] > 10 * plain["refused"], plain
