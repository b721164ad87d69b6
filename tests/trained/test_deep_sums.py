"""trained.deep_sums: texts are sums, factors reach the matrices that they name, and what is stored is trained so."""

import itertools
import json
import math
import sys

import pytest
import torch

from minimind_edu.trained import deep_sums


def test_a_number_is_the_sum_of_the_two_before_it():
    ids = next(deep_sums.batches(3))
    assert ids.shape == (24, 10)
    assert torch.equal(ids[:, 2:], (ids[:, :-2] + ids[:, 1:-1]) % 16)
    assert torch.equal(ids, next(deep_sums.batches(3))) and not torch.equal(ids, next(deep_sums.batches(4)))


def test_each_factor_reaches_the_matrices_that_it_names_and_no_other():
    usual, other = deep_sums.model("post", 0), deep_sums.model("post", 0, attention=4.0, networks=0.5)
    pairs = zip(usual.named_parameters(), other.parameters(), strict=True)
    factors = {name: (b.norm() / a.norm()).item() for (name, a), b in pairs}
    assert {name.split(".")[-2] for name, factor in factors.items() if factor > 2} == {"o_proj"}
    assert {name.split(".")[-2] for name, factor in factors.items() if factor < 1} == {"down_proj"}
    assert usual.config.norm_placement == "post" and deep_sums.model("pre", 0).config.norm_placement == "pre"


@pytest.mark.parametrize("seed", deep_sums.SEEDS)
def test_loud_attention_alone_drowns_a_post_norm_model_and_it_stays_at_a_blind_guess(seed):
    drowned, loud = deep_sums.run_of(deep_sums.DROWNED, seed), deep_sums.run_of(("post", 1, 4), seed)
    assert drowned["angle"] < 10 < 60 < loud["angle"]
    assert loud["end"] < math.log(16) - 0.3 < math.log(16) - 0.1 < drowned["end"]
    pre, loud_pre = deep_sums.run_of(("pre", 4, 1), seed), deep_sums.run_of(("pre", 1, 4), seed)
    assert pre["angle"] < loud_pre["angle"] and loud_pre["end"] < pre["end"] - 0.5


AGAIN = [(deep_sums.DROWNED, {}, 0), (("pre", 1, 1), {"rate": 1.5e-3}, 1)]  # trained again in every test run


@pytest.mark.parametrize(
    "case, options, seed",
    [
        pytest.param(*row, marks=[] if row in AGAIN else pytest.mark.long)
        for row in ((*setting, seed) for setting, seed in itertools.product(deep_sums.SETTINGS, deep_sums.SEEDS))
    ],
)
def test_a_stored_training_is_what_is_trained_now(case, options, seed):
    made, kept = deep_sums.run(case, seed, **options), deep_sums.run_of(case, seed, **options)
    assert made.keys() == kept.keys()
    assert made["angle"] == pytest.approx(kept["angle"], abs=0.01)
    assert made["end"] == pytest.approx(kept["end"], abs=0.03)
    assert made["grown"] == pytest.approx(kept["grown"], rel=0.05)


def test_every_setting_is_stored_with_every_seed_and_no_other():
    expected = [deep_sums.run_of(case, seed, **options) for case, options in deep_sums.SETTINGS for seed in (0, 1, 2)]
    assert deep_sums.runs() == expected
    with pytest.raises(ValueError, match="only the trainings of SETTINGS and SEEDS are stored"):
        deep_sums.run_of(("pre", 1, 1), 3)


def test_what_is_added_is_what_the_halves_of_the_blocks_return():
    one, found = deep_sums.model("pre", 0), []
    ids = next(deep_sums.batches(deep_sums.NEW))
    with torch.no_grad():
        x, tables = one.model.embed_tokens(ids), (one.model.freqs_cos[:10], one.model.freqs_sin[:10])
        for layer in one.model.layers:
            attended = layer.self_attn(layer.input_layernorm(x), tables)[0]
            fed = layer.mlp(layer.post_attention_layernorm(x + attended))
            found.append([added.pow(2).mean().sqrt() for added in (attended, fed)])
            x = x + attended + fed
    torch.testing.assert_close(deep_sums.sizes_added(one), torch.tensor(found).mean(0))
    louder = deep_sums.sizes_added(deep_sums.model("post", 0, networks=4.0)) / deep_sums.sizes_added(one)
    assert louder[1] > 2 > louder[0]


def test_the_program_stores_a_line_for_each_training(tmp_path, monkeypatch):
    monkeypatch.setattr(deep_sums, "SETTINGS", [(("pre", 1, 4), {"steps": 2})])
    monkeypatch.setattr(sys, "argv", ["deep_sums", "--into", str(tmp_path / "runs.json")])
    deep_sums.main()
    written = json.loads((tmp_path / "runs.json").read_text())
    assert [(run["placement"], run["networks"], run["seed"], run["steps"]) for run in written] == [
        ("pre", 4, seed, 2) for seed in deep_sums.SEEDS
    ]


def test_angles_are_those_of_the_outputs():
    one = deep_sums.model("pre", 0)
    outputs = one.model(next(deep_sums.batches(deep_sums.NEW)))[0].detach()
    first, others = outputs[:, :1], outputs[:, 1:]
    cosines = (first * others).sum(-1) / (first.norm(dim=-1) * others.norm(dim=-1))
    assert deep_sums.mean_angle(one) == pytest.approx(torch.rad2deg(torch.acos(cosines)).mean().item(), rel=1e-4)
