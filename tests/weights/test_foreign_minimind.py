"""A search over MiniMind's own configs, against its rules written down once more: defaults, switches and tables.

Rules: `model/model_minimind.py` of jingyaogong/minimind at 4e35fb9 (October 2025), c090b69 (January 2026) and d65ef2c
(August 2026); see also `upstream.py`.
"""

import json
import math
import random

import pytest
import torch
from model_builders import TINY_SIZES, tiny_model, token_ids
from safetensors.torch import save_file

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.weights.checkpoints import from_checkpoint

SIZES = TINY_SIZES | {"num_hidden_layers": 1, "num_key_value_heads": 2}
EXPERTS = {"num_experts": 4, "moe_intermediate_size": 48}
# What each constructor makes of its switch; the second is MiniMind2 since December 2025.
DICTIONARIES = {
    "older": {"beta_fast": 4, "beta_slow": 1, "factor": 4, "original_max_position_embeddings": 2048, "type": "yarn"},
    "newer": {"beta_fast": 32, "beta_slow": 1, "factor": 16, "original_max_position_embeddings": 2048,
              "attention_factor": 1.0, "type": "yarn"},
}  # fmt: skip


def tables(dim, positions, theta, switched_on, older):
    """cos and sin [positions, dim], in double precision, from the text of the two formulas."""
    freqs = [theta ** (-2 * pair / dim) for pair in range(dim // 2)]
    if switched_on and positions > 2048:
        if older:
            slow = next((pair for pair in range(dim // 2) if 2 * math.pi / freqs[pair] > 2048), dim // 2)
            for pair in range(dim // 2):
                beta = 1 + 3 * pair / max(dim // 2 - 1, 1)
                freqs[pair] *= (beta * 4 - beta + 1) / (beta * 4) if pair < slow else 1 / 4
        else:
            low, high = (dim * math.log(2048 / (beta * 2 * math.pi)) / (2 * math.log(theta)) for beta in (32, 1))
            low, high = max(math.floor(low), 0), min(math.ceil(high), dim // 2 - 1)
            for pair in range(dim // 2):
                ramp = min(max((pair - low) / max(high - low, 0.001), 0), 1)
                freqs[pair] *= 1 - ramp + ramp / 16
    angles = torch.outer(torch.arange(positions, dtype=torch.float64), torch.tensor(freqs, dtype=torch.float64))
    return torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()


def drawn(seed):
    """A config.json, the generation that its weights show, and whether it is a mixture."""
    chosen = random.Random(seed)
    pick = chosen.choice
    generation, mixture = pick(("minimind2", "minimind3")), chosen.random() < 0.5
    described = {"model_type": pick(("minimind", "minimind", "minimind", None)), "use_moe": mixture}
    for name in ("vocab_size", "hidden_size", "num_hidden_layers"):
        described[name] = SIZES[name]
    described["intermediate_size"] = pick((48, None)) if generation == "minimind2" else 48
    more = {
        "rms_norm_eps": (1e-5, 1e-6, 1e-2),
        "rope_theta": (1e6, 1e4, 500.0, 2e5),
        "max_position_embeddings": (40, 2047, 2048, 2049, 2500),
        "num_attention_heads": (4, 8) if generation == "minimind2" else (4,),
        "norm_topk_prob": (True, False),
        "num_experts_per_tok": (1, 1, 2, 3),
        "eos_token_id": (2, 3),
        "dropout": (0.0, 0.1),
        "hidden_act": ("silu",),
        "flash_attn": (True, False),
        "max_seq_len": (8, 8192),
        "torch_dtype": ("float16",),
        "initializer_range": (0.5,),
        "rope_parameters": ({"rope_type": "yarn", "factor": 2.0, "rope_theta": 3.0}, None),
        "inference_rope_scaling": (True, True, False),
    }
    described |= {name: pick(values) for name, values in more.items() if chosen.random() < 0.75}
    if generation == "minimind3":
        described |= {"num_attention_heads": 4} | ({"head_dim": 8} if chosen.random() < 0.5 else {})
    if mixture:
        described |= {"num_experts" if generation == "minimind3" else "n_routed_experts": 4}
        described |= {"n_shared_experts": 1} if generation == "minimind2" else {"moe_intermediate_size": 48}
    made = pick(tuple(DICTIONARIES)) if generation == "minimind2" else "newer"
    stayed = DICTIONARIES[made] | ({"factor": 8, "beta_slow": 2} if chosen.random() < 0.3 else {})
    if described.get("inference_rope_scaling") or chosen.random() < 0.4:
        described["rope_scaling"] = stayed
    if generation == "minimind2" and not described.get("inference_rope_scaling") and chosen.random() < 0.3:
        older_names = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
                       "intermediate_size": "hidden_dim", "rms_norm_eps": "norm_eps"}  # fmt: skip
        described = {older_names.get(name, name): value for name, value in described.items()}
        described.setdefault("rope_theta", 1e4)
        described |= {"n_shared_experts": True, "multiple_of": 64}
    return described, generation, mixture


def as_its_program(described, generation, mixture, weights):
    """A model of ours that is told everything, with tables of the formulas' text."""

    def said(default, *names):
        return next((described[name] for name in names if described.get(name) is not None), default)

    second = generation == "minimind2"
    heads, experts_per_token = (
        said(8, "num_attention_heads", "n_heads"),
        said(2 if second else 1, "num_experts_per_tok"),
    )
    dim, positions = SIZES["hidden_size"] // heads, said(32768, "max_position_embeddings")
    theta = float(said(1e6, "rope_theta"))
    config = MiniMindConfig(
        **{**SIZES, "num_attention_heads": heads, "num_key_value_heads": 16 // dim,
           "max_position_embeddings": positions},
        head_dim=dim, rope_theta=theta, rms_norm_eps=said(1e-5 if second else 1e-6, "rms_norm_eps", "norm_eps"),
        use_qk_norm=not second, use_moe=mixture, eos_token_id=said(2, "eos_token_id"), **EXPERTS,
        num_experts_per_tok=experts_per_token, num_shared_experts=int(second),
        norm_topk_prob=said(True, "norm_topk_prob") and not (second and experts_per_token == 1),
    )  # fmt: skip
    model = MiniMindForCausalLM(config).eval()
    model.load_state_dict(weights)
    switch = bool(described.get("inference_rope_scaling"))
    older = second and "attention_factor" not in (described.get("rope_scaling") or {})
    cos, sin = tables(dim, positions, theta, switch, older)
    model.model.freqs_cos, model.model.freqs_sin = cos.float(), sin.float()
    return model


@pytest.fixture(scope="module")
def stored():
    kinds = {("minimind2", False): "minimind2", ("minimind2", True): "minimind2_moe",
             ("minimind3", False): "minimind3", ("minimind3", True): "minimind3_moe"}  # fmt: skip
    return {key: tiny_model(kind, dtype=torch.float32, **SIZES, **EXPERTS).state_dict() for key, kind in kinds.items()}


@torch.no_grad()
def search(seeds, stored, folder):
    refused = 0
    for seed in seeds:
        described, generation, mixture = drawn(seed)
        weights = stored[generation, mixture]
        (folder / "config.json").write_text(json.dumps(described))
        save_file({name: value for name, value in weights.items() if name != "lm_head.weight"},
                  folder / "model.safetensors")  # fmt: skip
        try:
            read = from_checkpoint(folder)
        except ValueError as error:
            assert "MiniMind ends YaRN's ramp" in str(error), (seed, error, described)
            refused += 1
            continue
        expected = as_its_program(described, generation, mixture, weights)
        ids = token_ids(1, min(300, expected.config.max_position_embeddings))
        assert (read.model.freqs_cos - expected.model.freqs_cos).abs().max() < 2e-3, (seed, described)
        assert (read(ids).logits - expected(ids).logits).abs().max() < 1e-4, (seed, described)
        same = ("eos_token_id", "max_position_embeddings", "num_experts_per_tok", "num_attention_heads")
        assert all(getattr(read.config, name) == getattr(expected.config, name) for name in same), seed
    assert refused < 0.1 * len(seeds)


def test_a_hundred_configs_of_minimind_mean_what_its_program_makes_of_them(stored, tmp_path):
    search(range(100), stored, tmp_path)


@pytest.mark.long
def test_a_thousand_configs_of_minimind_mean_what_its_program_makes_of_them(stored, tmp_path):
    search(range(100, 1100), stored, tmp_path)
