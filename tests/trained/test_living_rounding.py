"""living.rounding: what is measured is what is said, and what is stored belongs to the models of the book."""

import json
import sys
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from model_builders import tiny_model, token_ids

from minimind_edu import fast, world
from minimind_edu.model.quantization import Grid, bytes_of_model, matrices, rounded, rounded_model
from minimind_edu.trained.living import card, draft_model, living_model, rounding
from minimind_edu.trained.living.exam import divergence
from minimind_edu.trained.training import Recipe

WORDS = len(world.WORDS)
FEW = {"stories": 2, "questions": 2}


def small_model():
    return tiny_model(dtype=torch.float32, vocab_size=WORDS, max_position_embeddings=128)


# What is measured


def test_the_difference_is_the_divergence_of_the_reference_from_the_model():
    """Over all positions but the last, whose next word nobody knows; in this direction."""
    reference, ids = small_model(), token_ids(3, 12)
    model = rounded_model(reference, Grid(3))
    kl, agreement = rounding.difference(model, reference, ids)
    with torch.no_grad():
        there, here = (one(ids).logits[:, :-1].double() for one in (reference, model))
    expected = F.kl_div(here.log_softmax(-1), there.log_softmax(-1), log_target=True, reduction="sum") / (3 * 11)
    assert kl == pytest.approx(float(expected), rel=1e-6)
    assert agreement == pytest.approx(float((here.argmax(-1) == there.argmax(-1)).double().mean()))
    assert 0 < agreement < 1


def test_a_model_does_not_differ_from_itself():
    model = small_model()
    assert rounding.difference(model, model, token_ids(60, 5)) == (0, 1), "more texts than one batch holds"


def test_a_measurement_joins_the_exams():
    model = living_model()
    measured = rounding.measure(rounded_model(model, Grid(3)), model, **FEW)
    distance, entropy = divergence(rounded_model(model, Grid(3)), world.stories(2, 96, rounding.EXAM))
    assert measured["world"] == pytest.approx(distance) and measured["loss"] == pytest.approx(distance + entropy)
    assert measured["kl"] > 0.01 and measured["agreement"] < 1
    assert measured["right"].keys() == world.QUESTIONS.keys()
    assert rounding.mean_right({"right": {"a": 0.5, "b": 1.0}}) == 0.75


def test_every_matrix_is_rounded_alone():
    model = small_model()
    alone = rounding.sensitivities(model, Grid(2), stories=2)
    assert alone.keys() == {name for name, _ in matrices(model)}
    assert all(kl > 0 for kl in alone.values())
    name = "model.layers.0.mlp.up_proj.weight"
    told = torch.from_numpy(world.stories(2, 96, rounding.EXAM))
    one = rounded_model(model, Grid(2), only=lambda other: other == name)
    assert alone[name] == pytest.approx(rounding.difference(one, model, told)[0])


def test_a_few_steps_take_the_model_off_its_grid():
    before = living_model()
    after = rounding.taken_off_its_grid(Recipe(steps=4, learning_rate=1e-3, warmup=1))
    for (name, old), (_, new) in zip(matrices(before), matrices(after), strict=True):
        assert torch.allclose(rounded(old, Grid(8)), old, atol=1e-6), f"{name} is stored as int8 rows"
        assert not torch.allclose(rounded(new, Grid(8)), new, atol=1e-5), name


# What is stored


@pytest.mark.parametrize(("name", "model"), [("living", living_model), ("draft", draft_model)])
def test_stored_bytes_are_those_of_the_model(name, model):
    stored = rounding.results()[name]
    assert list(stored["rounded"]) == ["float32", *rounding.WAYS]
    for way, to in rounding.WAYS.items():
        assert stored["rounded"][way]["bytes"] == bytes_of_model(model(), to)
    assert stored["weights"] == sum(one.numel() for _, one in matrices(model()))
    assert stored["alone"].keys() == {one for one, _ in matrices(model())}


@pytest.mark.parametrize("name", ["living", "draft"])
def test_stored_measurements_are_of_one_model_that_was_rounded(name):
    rows = rounding.results()[name]["rounded"]
    assert (rows["float32"]["kl"], rows["float32"]["agreement"]) == (0, 1)
    entropy = rows["float32"]["loss"] - rows["float32"]["world"]
    assert all(one["loss"] - one["world"] == pytest.approx(entropy, abs=0.011) for one in rows.values())
    for per in ("per tensor", "per row", "in 32s"):
        kls = [rows[f"int{bits} {per}"]["kl"] for bits in rounding.BITS]
        assert kls == sorted(kls)


def test_before_it_was_rounded_the_stored_model_was_as_good_as_the_card_says():
    rows = rounding.results()["living"]["rounded"]
    assert rows["float32"]["world"] == pytest.approx(card()["int8"]["kl"], abs=0.005)
    assert rounding.mean_right(rows["float32"]) > 0.99


def test_the_stored_model_itself_fails_where_the_stored_results_say():
    """The living model is not the measured one, which is a little further; rounded to few bits both are alike."""
    model, told = living_model(), torch.from_numpy(world.stories(10, 96, seed=7))
    rows = rounding.results()["living"]["rounded"]
    for way in ("int5 per row", "int4 per tensor", "int3 per row"):
        kl, _ = rounding.difference(rounded_model(model, rounding.WAYS[way]), model, told)
        assert 0.4 < kl / rows[way]["kl"] < 2.5


@pytest.mark.long
def test_the_command_writes_what_the_book_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rounding, "WAYS", {"int4 per row": Grid(4)})
    monkeypatch.setattr(rounding, "FURTHER", Recipe(steps=2, warmup=1))
    monkeypatch.setattr(rounding, "DRAFT_RECIPE", Recipe(steps=2, warmup=1))
    monkeypatch.setattr(rounding, "measure", partial(rounding.measure, **FEW))
    monkeypatch.setattr(rounding, "sensitivities", partial(rounding.sensitivities, stories=2))
    monkeypatch.setattr(sys, "argv", ["rounding", "--into", str(tmp_path / "results.json")])
    rounding.main()
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert written.keys() == {"living", "draft"}
    for one in written.values():
        assert one["rounded"].keys() == {"float32", "int4 per row"}
        assert one.keys() == rounding.results()["living"].keys()
        assert one["rounded"]["int4 per row"].keys() == rounding.results()["living"]["rounded"]["float32"].keys()
    assert "int4 per row: " in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.usefixtures("own_step")
def test_decoding_with_rounded_weights_is_as_far_off_as_the_stored_results_say():
    """step.cpp rounds vectors, too: for int4 to 8 bits, which may cost two percent of what the weights cost."""
    model = rounding.taken_off_its_grid(rounding.FURTHER).eval()
    told = torch.from_numpy(world.stories(rounding.STORIES, 96, rounding.EXAM))
    stored = rounding.results()["living"]["rounded"]
    for kind, way in {"int8": "int8 per row", "int4": "int4 in 32s"}.items():
        decoder = fast.rounded_decoder(model, kind)
        decoder.most = told.numel()  # all of it by step.cpp
        kl, agreement = rounding.difference(partial(decoder, logits_to_keep=0), model, told)
        assert kl == pytest.approx(stored[way]["kl"], rel=0.02)
        assert agreement == pytest.approx(stored[way]["agreement"], abs=0.005)
