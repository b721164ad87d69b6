"""living.divisors: a fixed norm divides by what it is told, and what is stored is what the stored models do."""

import copy
import json
import sys

import pytest
import torch
from cases import long_after

from minimind_edu import world
from minimind_edu.trained.living import divisors, living_model

TEXTS = world.stories(2, 24, seed=3)
IDS = torch.from_numpy(TEXTS)


@pytest.fixture(scope="module")
def model():
    return living_model().double().requires_grad_(False)


def test_the_norms_of_the_stream_are_found_in_their_order(model):
    assert len(divisors.stream_norms(model)) == 9
    found = divisors.sizes(model, IDS)
    assert found.shape == (9, 2, 24)
    embedded = model.model.embed_tokens(IDS)
    torch.testing.assert_close(found[0], embedded.pow(2).mean(-1).sqrt())
    middle, _ = model.model.layers[0](embedded, (model.model.freqs_cos[:24], model.model.freqs_sin[:24]))
    torch.testing.assert_close(found[2], middle.pow(2).mean(-1).sqrt())


def test_divided_by_its_own_size_a_vector_is_what_it_was(model):
    usual = divisors.sizes(model, IDS[:1])  # one story, so that each position has a number
    by = (usual[:-1, 0].pow(2) + model.config.rms_norm_eps).sqrt()
    before = model(IDS[:1]).logits
    with divisors.fixed(model, by):
        torch.testing.assert_close(model(IDS[:1]).logits, before)
    with divisors.fixed(model, 2 * by):
        assert not torch.allclose(model(IDS[:1]).logits, before, atol=0.1)
    torch.testing.assert_close(model(IDS[:1]).logits, before)


def test_only_some_norms_can_be_fixed(model):
    by = torch.full((8, 24), 3.0)
    own = divisors.sizes(model, IDS)
    with divisors.fixed(model, by, only=slice(7, 8)):
        last = divisors.sizes(model, IDS)
    torch.testing.assert_close(last[:8], own[:8])
    assert not torch.allclose(last[8], own[8], rtol=0.01)


def test_the_ends_are_of_all_texts_in_one_pass_or_in_several(model, monkeypatch):
    whole, found = divisors.ends(model, TEXTS), divisors.sizes(model, IDS)
    assert whole["first"] == found[:, :, 0].quantile(0.5, dim=1).tolist()
    assert whole["others"] == found[:, :, 1:].flatten(1).quantile(0.5, dim=1).tolist()
    monkeypatch.setattr("minimind_edu.trained.living.exam.BATCH", 1)
    again = divisors.ends(model, TEXTS)
    assert again.keys() == whole.keys()
    for key in whole:
        assert again[key] == pytest.approx(whole[key]), key


def test_networks_in_proportion_double_what_is_doubled_and_change_nothing_where_norms_measure(model):
    before = model(IDS).logits
    one = model.model.layers[1]
    x = one.post_attention_layernorm(torch.randn(5, 64, generator=torch.Generator().manual_seed(0)).double())
    assert one.mlp(2 * x).norm() / one.mlp(x).norm() > 3
    with divisors.answering(model, 1):
        torch.testing.assert_close(one.mlp(2 * x), 2 * one.mlp(x))
        torch.testing.assert_close(model(IDS).logits, before, rtol=1e-3, atol=1e-3)  # but for eps
    assert one.mlp(2 * x).norm() / one.mlp(x).norm() > 3


def test_a_network_answers_with_the_power_and_at_2_nearly_as_it_was_trained(model):
    one = model.model.layers[1]
    x = one.post_attention_layernorm(torch.randn(5, 64, generator=torch.Generator().manual_seed(0)).double())
    for factor in (0.5, 3):
        trained, apart = one.mlp(factor * x), {}
        for power in (0, 1, 2, 3):
            with divisors.answering(model, power):
                torch.testing.assert_close(one.mlp(factor * x), factor**power * one.mlp(x))
                apart[power] = (one.mlp(factor * x) - trained).norm()
        assert min(apart, key=apart.get) == 2


def test_weights_learn_only_when_asked(model):
    def train(weights):
        learner = copy.deepcopy(model)
        divisors.train(learner, torch.full((8,), 20.0).double(), 1, weights=weights)
        assert not any(weight.requires_grad for weight in learner.parameters())
        return [
            name
            for (name, old), new in zip(model.named_parameters(), learner.parameters(), strict=True)
            if not torch.equal(old, new)
        ]

    assert train(False) == [] and len(train(True)) > 30


def test_a_number_is_a_percentile_of_the_sizes_of_all_words_or_of_all_but_the_first():
    usual = torch.arange(1.0, 61.0).reshape(3, 2, 10)
    by = divisors.divisors(usual, 50, apart=False)
    assert by.tolist() == [[10.5] * 10, [30.5] * 10]
    apart = divisors.divisors(usual, 100, apart=True)
    assert apart[:, 1:].tolist() == [[20.0] * 9, [40.0] * 9] and apart[:, 0].tolist() == [1.0, 21.0]


@pytest.mark.parametrize("name", long_after(1, ["living", "twin"]))
def test_what_stands_first_is_the_same_vector_in_every_story(name):
    found = divisors.sizes(living_model(name).double(), torch.from_numpy(divisors.stories()))
    torch.testing.assert_close(found[:, 0, 0], found[:, 7, 0])
    torch.testing.assert_close(found[:, 0, 0], torch.tensor(divisors.measured()[name]["own"]["first"]).double(),
                               rtol=1e-3, atol=0)  # fmt: skip


@pytest.mark.parametrize("name", long_after(1, ["living", "twin"]))
def test_the_stored_settings_are_those_of_the_stored_models(name):
    stored = divisors.measured()[name]
    assert len(stored["rows"]) == 2 ** len(divisors.SWITCHES) * len(divisors.PERCENTILES)
    again = divisors.measure(living_model(name).double().requires_grad_(False), (75,))
    rows = [row for row in stored["rows"] if row["percentile"] == 75]
    for one, two in zip([stored["own"], *rows], [again["own"], *again["rows"]], strict=True):
        assert one.keys() == two.keys()
        for key in one:
            assert one[key] == pytest.approx(two[key], rel=2e-3)


@pytest.mark.parametrize("name", ["living", "twin"])
def test_what_the_lesson_says_of_both_models(name):
    """No number comes near measuring; proportion takes most of the distance away, and networks make the runaway."""
    stored = divisors.measured()[name]
    own, rows = stored["own"], stored["rows"]
    nats = {tuple(row[each] for each in ("percentile", *divisors.SWITCHES)): row["nats"] for row in rows}
    ends = {tuple(row[each] for each in ("percentile", *divisors.SWITCHES)): row["first"][-1] for row in rows}
    for percentile in divisors.PERCENTILES:
        assert nats[percentile, False, False, False] > 50 * own["nats"]
        assert nats[percentile, True, False, False] > 40 * own["nats"]
        assert nats[percentile, False, True, False] < 0.5 * nats[percentile, False, False, False]
    # with norms before attention that measure <s> runs away, and attention hands nothing on
    assert ends[50, False, False, True] > 9 * own["first"][-1]
    assert nats[50, False, False, True] < 0.08 * nats[50, False, False, False]


@pytest.mark.parametrize("name", long_after(1, ["living", "twin"]))
def test_the_best_eight_numbers_are_better_than_any_percentile_and_far_from_measuring(name):
    stored = divisors.measured()[name]
    best = stored["trained"]
    model = living_model(name).double().requires_grad_(False)
    by = torch.tensor(best["divisors"]).double()[:, None].expand(-1, 96)
    with divisors.fixed(model, by):
        found = divisors.ends(model, divisors.stories())
    assert found["nats"] == pytest.approx(best["nats"], rel=2e-3)
    percentiles = [row["nats"] for row in stored["rows"] if not any(row[each] for each in divisors.SWITCHES)]
    assert 30 * stored["own"]["nats"] < best["nats"] < 0.75 * min(percentiles)


def test_training_changes_the_numbers_and_brings_the_model_nearer_on_other_stories(model):
    usual = divisors.sizes(model, IDS)
    begin = divisors.divisors(usual, 75, apart=False)[:, 0]
    found = divisors.train(model, begin, steps=6)
    assert len(found) == 8 and all(number != one for number, one in zip(found, begin.tolist(), strict=True))
    nats = []
    for numbers in (begin, torch.tensor(found).double()):
        with divisors.fixed(model, numbers[:, None].expand(-1, 24)):
            nats.append(divisors.ends(model, TEXTS)["nats"])
    assert nats[1] < nats[0]
    assert not model.model.norm.weight.requires_grad and "forward" not in vars(model.model.norm)


def test_the_numbers_are_trained_over_other_stories_than_the_exams(model, monkeypatch):
    seen, own = [], divisors.stories
    monkeypatch.setattr(divisors, "stories", lambda *given: seen.append(given) or own(*given))
    divisors.train(model, torch.full((8,), 10.0).double(), steps=1)
    assert not {*map(bytes, own())} & {*map(bytes, own(*seen[0]))}


def test_the_command_writes_what_the_book_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(divisors, "PERCENTILES", (50,))
    monkeypatch.setattr(divisors, "measure", lambda model: {"nats": 1.23456789, "first": [1e6 / 3]})
    monkeypatch.setattr(divisors, "trained", lambda name: {"nats": 0.5})
    monkeypatch.setattr(sys, "argv", ["divisors", "--into", str(tmp_path / "found.json")])
    divisors.main()
    written = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert written == dict.fromkeys(("living", "twin"), {"nats": 1.235, "first": [333300.0], "trained": {"nats": 0.5}})
