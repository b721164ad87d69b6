"""ablations: each variant differs from the whole model as its name says, and what is stored was made by this code."""

import json
import sys
from itertools import islice

import numpy as np
import pytest
import torch

from minimind_edu.model.for_comparison import LayerNorm
from minimind_edu.model.norms import RMSNorm
from minimind_edu.trained import ablations
from minimind_edu.trained.ablations import CONFIG, VARIANTS, __main__, batches, new_model, runs, runs_of
from minimind_edu.trained.ablations.__main__ import EVERY, PROMPTS, right_answer, run
from minimind_edu.trained.ablations.lists import WORDS, encode, write_rows
from minimind_edu.trained.training import Recipe

IDS = torch.from_numpy(write_rows(2, 16, seed=9))
IDLE = {"no attention": "input_layernorm.weight", "no feed-forward": "post_attention_layernorm.weight"}  # norm nothing
EVERY_VARIANT = pytest.mark.parametrize("name", VARIANTS)


def logits(model, ids=IDS):
    with torch.no_grad():
        return model(ids).logits


@EVERY_VARIANT
def test_a_variant_computes_learns_and_is_the_same_for_a_seed(name):
    model = new_model(name, 3)
    assert logits(model).isfinite().all()
    assert torch.equal(logits(model), logits(new_model(name, 3)))
    model(IDS, labels=IDS).loss.backward()
    idle = [key for key, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()]
    assert all(key.endswith(IDLE.get(name, "nothing")) for key in idle)


@EVERY_VARIANT
def test_no_variant_sees_the_future(name):
    model, other = new_model(name, 0), IDS.clone()
    other[:, 9:] = 3
    assert torch.allclose(logits(model)[:, :9], logits(model, other)[:, :9], atol=1e-5)


def test_another_name_is_refused_with_all_names():
    with pytest.raises(ValueError, match="no variant is called 'no luck'; there are whole, no attention"):
        new_model("no luck", 0)


def test_without_attention_no_position_learns_of_another():
    model, other = new_model("no attention", 0), IDS.clone()
    other[:, 3] = 4
    changed = (logits(model) != logits(model, other)).any(-1)[0].nonzero().flatten().tolist()
    assert changed == [3]


def test_without_positions_one_layer_reads_a_set():
    first, second = (torch.from_numpy(encode(f"<s> copy {digits} ="))[None] for digits in ("3 1 4", "4 1 3"))
    for name, is_same in (("no positions", True), ("whole", False), ("learned positions", False)):
        model = new_model(name, 0)
        del model.model.layers[1:]
        assert torch.allclose(logits(model, first)[0, -1], logits(model, second)[0, -1], atol=1e-5) == is_same


def test_without_residual_a_block_that_adds_nothing_passes_nothing_on():
    for name, passes in (("no residual", False), ("whole", True)):
        block = new_model(name, 0).model.layers[0]
        torch.nn.init.zeros_(block.mlp.down_proj.weight)
        x = torch.randn(1, 4, CONFIG.hidden_size, generator=torch.Generator().manual_seed(0))
        positions = torch.ones(4, CONFIG.head_dim), torch.zeros(4, CONFIG.head_dim)
        assert bool(block(x, positions)[0].abs().sum() > 0) == passes


def test_norms_are_taken_away_or_replaced_everywhere_in_the_stream():
    kinds = {"no norm": torch.nn.Identity, "LayerNorm": LayerNorm, "whole": RMSNorm}
    for name, kind in kinds.items():
        body = new_model(name, 0).model
        norms = [
            body.norm,
            *(n for layer in body.layers for n in (layer.input_layernorm, layer.post_attention_layernorm)),
        ]
        assert {type(norm) for norm in norms} == {kind}
    for part in new_model("LayerNorm", 0).modules():
        if isinstance(part, LayerNorm):
            assert (part.weight == 1).all() and (part.bias == 0).all()


def test_parameters_are_equal_where_they_must_be():
    whole = new_model("whole", 0).num_parameters()
    for name in ("no residual", "no positions", "ReLU", "initialization 0.02", "300 rows", "post-norm"):
        assert new_model(name, 0).num_parameters() == whole, name
    assert new_model("1 layer", 0).num_parameters() < whole < new_model("untied", 0).num_parameters()


def test_weights_begin_as_the_config_says():
    for name, spread in (("whole", CONFIG.initializer_range), ("initialization 0.02", 0.02)):
        weight = new_model(name, 0).model.layers[0].mlp.up_proj.weight
        assert weight.std().item() == pytest.approx(spread, rel=0.1)


def test_batches_are_new_or_the_same_few():
    rows = {name: np.concatenate([b.numpy() for b in islice(batches(name, 0), 60)]) for name in ("whole", "300 rows")}
    assert len(np.unique(rows["whole"], axis=0)) > 900
    assert 250 < len(np.unique(rows["300 rows"], axis=0)) <= 300


def test_what_is_stored_belongs_to_these_variants_and_sizes():
    stored = runs()
    assert {(one["variant"], one["seed"]) for one in stored["runs"]} == {(n, s) for n in VARIANTS for s in (0, 1)}
    assert stored["steps"] == ablations.RECIPE.steps and stored["every"] == EVERY
    assert stored["answers"] == [right_answer(prompt) for prompt in PROMPTS]
    for one in stored["runs"]:
        assert one["parameters"] == new_model(one["variant"], 0).num_parameters()
        assert len(one["held_out"]) == stored["steps"] // stored["every"] + 1
        assert all(word in WORDS for answer in one["said"] for word in answer.split())
    assert [one["seed"] for one in runs_of("ReLU")] == [0, 1]


def test_the_program_adds_to_the_runs_that_there_are(tmp_path, monkeypatch, capsys):
    made = []

    def run(name, seed):
        made.append((name, seed))
        return {"variant": name, "seed": seed, "held_out": [len(made)], "accuracy": 0.5}

    def train(*arguments):
        made.clear()
        monkeypatch.setattr(sys, "argv", ["ablations", *arguments, "--into", str(tmp_path / "new" / "runs.json")])
        __main__.main()
        return json.loads((tmp_path / "new" / "runs.json").read_text())["runs"]

    monkeypatch.setattr(__main__, "run", run)
    train("--variants", "ReLU")
    assert made == [("ReLU", 0), ("ReLU", 1)]
    kept = train("--variants", "whole", "ReLU", "--missing")
    assert made == [("whole", 0), ("whole", 1)]
    assert [(one["variant"], one["seed"], one["held_out"]) for one in kept] == [
        ("whole", 0, [1]), ("whole", 1, [2]), ("ReLU", 0, [1]), ("ReLU", 1, [2]),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["notes", "[]", '{"run": []}', "3"])
def test_a_file_of_somebody_else_is_left_alone(text, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs.json").write_text(text)
    monkeypatch.setattr(__main__, "run", lambda *_: pytest.fail("it was trained"))
    monkeypatch.setattr(sys, "argv", ["ablations", "--into", str(tmp_path / "runs.json")])
    with pytest.raises(SystemExit):
        __main__.main()
    assert "runs.json holds something else than runs, which would be lost" in capsys.readouterr().err
    assert (tmp_path / "runs.json").read_text() == text


def test_a_stored_run_begins_as_one_made_now(monkeypatch):
    recipe = Recipe(steps=EVERY, warmup=50, learning_rate=1e-2)
    monkeypatch.setattr("minimind_edu.trained.ablations.__main__.RECIPE", recipe)
    made, [stored, _] = run("300 rows", 0), runs_of("300 rows")
    assert made["held_out"][0] == pytest.approx(stored["held_out"][0], abs=0.002)
    assert set(made) == set(stored)
