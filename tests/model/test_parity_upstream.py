"""Upstream MiniMind's own outputs, for both generations; `data/reference/README.md` says what the files hold."""

import json

import pytest
import torch
from upstream_reference import NAMES, REFERENCE, every_file, reference

from minimind_edu.model.rope import precompute_freqs_cis
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.weights.checkpoints import from_checkpoint


def assert_close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4)


def test_all_files_are_tested():
    assert sorted(path.stem for path in REFERENCE.glob("*.safetensors")) == NAMES


@every_file
def test_state_dict_is_upstreams(name):
    found = reference(name)
    ours = {key: value.shape for key, value in found.model.state_dict().items()}
    assert ours == {key: value.shape for key, value in found.weights.items()}


@every_file
@torch.no_grad()
def test_logits_agree(name):
    found = reference(name)
    assert_close(found.model(found.tensors["input_ids"]).logits, found.tensors["logits"])


@every_file
@torch.no_grad()
def test_step_logits_agree(name):
    """Prefill, then one position a call."""
    found = reference(name)
    ids = found.tensors["input_ids"]
    out = found.model(ids[:, : found.prefill_length], use_cache=True)
    steps = [out.logits]
    for position in range(found.prefill_length, ids.shape[1]):
        out = found.model(ids[:, position : position + 1], past_key_values=out.past_key_values, use_cache=True)
        steps.append(out.logits)
    assert_close(torch.cat(steps, dim=1), found.tensors["step_logits"])


@every_file
@torch.no_grad()
def test_caches_agree(name):
    found = reference(name)
    past = found.model(found.tensors["input_ids"], use_cache=True).past_key_values
    for index, (key, value) in enumerate(past):
        assert_close(key, found.tensors[f"cache.{index}.key"])
        assert_close(value, found.tensors[f"cache.{index}.value"])


@every_file
@torch.no_grad()
def test_upstreams_cache_can_be_continued(name):
    found = reference(name)
    ids, start = found.tensors["input_ids"], found.prefill_length
    past = [
        tuple(found.tensors[f"cache.{index}.{part}"][:, :start] for part in ("key", "value"))
        for index in range(found.model.config.num_hidden_layers)
    ]
    logits = found.model(ids[:, start:], past_key_values=past).logits
    assert_close(logits, found.tensors["logits"][:, start:])


@every_file
def test_tables_agree(name):
    found = reference(name)
    cos, sin = found.tensors["freqs_cos"], found.tensors["freqs_sin"]
    assert_close(found.model.model.freqs_cos[: len(cos)], cos)
    assert_close(found.model.model.freqs_sin[: len(sin)], sin)
    config = found.model.config
    tables = precompute_freqs_cis(
        config.head_dim, config.max_position_embeddings, config.rope_theta, config.rope_scaling
    )
    for ours, theirs in zip(tables, (cos, sin), strict=True):
        assert_close(ours[: len(theirs)], theirs)


@every_file
@pytest.mark.parametrize("use_cache", [True, False])
def test_greedy_tokens_agree(name, use_cache):
    found = reference(name)
    prompt = found.tensors["input_ids"][:, : found.greedy_prompt_length]
    expected = found.tensors["greedy"]
    tokens = found.model.generate(prompt, expected.shape[1] - prompt.shape[1], eos_token_id=None, use_cache=use_cache)
    assert torch.equal(tokens, expected)


# The same weights as files that upstream writes

SHAPES_DO_NOT_SHOW = {
    "minimind3_moe": {"num_experts_per_tok": 2},
    "minimind3_yarn": {"max_position_embeddings": 4096, "rope_scaling": RopeScaling(16, 2048, attention_factor=1.0)},
}


@every_file
@torch.no_grad()
def test_a_bare_pth_gives_upstreams_logits(name, tmp_path):
    found = reference(name)
    torch.save(found.weights, tmp_path / "full_sft_64.pth")
    model = from_checkpoint(tmp_path / "full_sft_64.pth", **SHAPES_DO_NOT_SHOW.get(name, {}))
    assert_close(model(found.tensors["input_ids"]).logits, found.tensors["logits"])


@every_file
@torch.no_grad()
def test_a_folder_of_upstreams_gives_upstreams_logits(name, tmp_path):
    found = reference(name)
    config = json.dumps({"model_type": "minimind", **found.upstream})
    (tmp_path / "config.json").write_text(config)
    torch.save(found.weights, tmp_path / "pytorch_model.bin")
    model = from_checkpoint(tmp_path)
    assert model.config == found.model.config
    assert_close(model(found.tensors["input_ids"]).logits, found.tensors["logits"])
