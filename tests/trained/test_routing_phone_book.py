"""routing.phone_book: a book is random and has every person once, and a mixture learns it sooner than a dense model."""

import json
import sys
from dataclasses import replace
from itertools import product

import pytest
import torch

from minimind_edu.model.moe import MoEGate
from minimind_edu.trained.routing import expert_loads
from minimind_edu.trained.routing import phone_book as program
from minimind_edu.trained.routing.phone_book import (
    ENTRIES,
    FIRST,
    KINDS,
    LAST,
    LONGER_RUNS,
    MIXTURE,
    NUMBERS,
    RATES,
    RECALLED,
    RECIPE,
    RUNS,
    SEEDS,
    EvenedGate,
    active_weights,
    longer,
    main,
    new_model,
    pages,
    phone_book,
    recalled,
    recalled_after,
    recalled_by,
    run,
    share_recalled,
)


def test_a_book_has_every_person_once_and_numbers_that_no_name_tells():
    book = phone_book(4096, seed=0)
    assert book.shape == (4096, 3) and len({tuple(names) for names in book[:, :2].tolist()}) == 4096
    for column, (low, high) in enumerate([(0, FIRST), (FIRST, FIRST + LAST), (FIRST + LAST, FIRST + LAST + NUMBERS)]):
        assert low <= int(book[:, column].min()) and int(book[:, column].max()) < high
    for names in (0, 1):  # the most frequent number of a name: of 64 entries, hardly ever more than 7 are one number
        offset = 0 if names == 0 else FIRST
        pairs = (64 * (book[:, names] - offset) + book[:, 2] - FIRST - LAST).bincount(minlength=64 * 64)
        assert int(pairs.max()) < 9
    assert not torch.equal(book, phone_book(4096, seed=1))
    assert torch.equal(phone_book(4096, seed=0), book)


def test_pages_are_entries_of_the_book():
    book = phone_book(64, seed=2)
    entries = {tuple(entry) for entry in book.tolist()}
    assert {tuple(entry) for entry in next(pages(book, seed=0)).tolist()} <= entries


def test_the_loss_is_that_of_the_numbers():
    model, book = new_model("dense", 0).eval(), phone_book(64, seed=0)
    expected = torch.nn.functional.cross_entropy(model(book).logits[:, 1], book[:, 2])
    assert model(book, labels=book).loss.item() == pytest.approx(expected.item())


def test_what_is_recalled_are_numbers_that_come_first():
    class Knows(torch.nn.Module):
        weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, ids):
            logits = torch.zeros(len(ids), 3, FIRST + LAST + NUMBERS)
            logits[range(10), 1, ids[:10, 2]] = 1.0  # ten of them
            return type("Output", (), {"logits": logits})

    assert share_recalled(Knows(), phone_book(40, seed=0)) == 0.25


def test_mixture_and_dense_model_have_the_same_active_size_and_the_large_one_that_of_the_whole_mixture():
    mixtures = {active_weights(kind) for kind in KINDS if KINDS[kind].use_moe}
    assert mixtures == {active_weights("mixture")} and active_weights("mixture") <= active_weights("dense")
    assert active_weights("dense") < 1.01 * active_weights("mixture")
    whole = sum(parameter.numel() for parameter in new_model("mixture", 0).parameters())
    assert active_weights("dense, all active") == pytest.approx(whole, rel=0.01)


def test_an_untrained_router_stays_as_it_was_and_its_experts_learn():
    short = replace(RECIPE, steps=3)
    stay = {"untrained router": True, "evened, not trained": True, "trained, not evened": False, "mixture": False}
    for kind, stays in stay.items():
        model, book = new_model(kind, 0), phone_book(64, seed=0)
        before = {name: value.clone() for name, value in model.named_parameters()}
        program.train(model, pages(book, 0), short)
        router = "model.layers.0.mlp.gate.weight"
        after = dict(model.named_parameters())
        assert torch.equal(after[router], before[router]) is stays
        expert = "model.layers.0.mlp.experts.0.up_proj.weight"
        assert not torch.equal(after[expert], before[expert])


def test_a_bias_evens_the_load_of_a_router_that_stays_as_it_is():
    torch.manual_seed(0)
    router = MoEGate(MIXTURE)
    gate, x = EvenedGate(MIXTURE, router), torch.randn(4, 64, MIXTURE.hidden_size)
    before = router(x)
    assert torch.equal(gate.eval()(x).experts, before.experts) and torch.equal(gate(x).weights, before.weights)
    assert expert_loads(before).max() > 0.3
    gate.train()
    for _ in range(300):
        gate(x)
    after = gate.eval()(x)
    assert expert_loads(after).max() < 0.27 and expert_loads(after).min() > 0.23
    assert torch.equal(after.probabilities, before.probabilities)  # the bias counts in the choice alone
    assert torch.equal(after.weights, after.probabilities.gather(-1, after.experts))
    assert torch.equal(gate(x).experts, after.experts)  # out of training it moves no more


def test_a_kind_is_evened_as_its_name_says():
    book = phone_book(64, seed=0)
    for kind in (kind for kind in KINDS if KINDS[kind].use_moe):
        model = new_model(kind, 0)
        gate = model.model.layers[0].mlp.gate
        assert (model(book, labels=book).aux_loss > 0) == (kind == "mixture")
        assert isinstance(gate, EvenedGate) == (kind == "evened, not trained")
        assert torch.equal(gate.weight, new_model("mixture", 0).model.layers[0].mlp.gate.weight)


def test_a_short_run_has_the_form_of_the_stored_ones():
    made = run("mixture", ENTRIES[0], 0, replace(RECIPE, steps=2))
    stored = json.loads(RECALLED.read_text(encoding="utf-8"))
    assert set(made) == set(stored[0]) and 0 <= made["recalled"] < 0.1
    assert [(one["entries"], one["kind"], one["seed"]) for one in stored] == RUNS
    assert {(kind, seed) for entries, kind, seed in RUNS if entries == ENTRIES[-1]} == set(product(KINDS, SEEDS))


def test_the_program_writes_what_the_book_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(
        program, "run", lambda kind, entries, seed: {"kind": kind, "entries": entries, "seed": seed, "recalled": seed}
    )
    monkeypatch.setattr(sys, "argv", ["phone_book", "--into", str(tmp_path / "new.json")])
    main()
    monkeypatch.setattr(program, "RECALLED", tmp_path / "new.json")
    assert recalled("mixture", ENTRIES[1]) == list(SEEDS)


def test_a_longer_run_has_the_form_of_the_stored_ones_and_its_own_rate(monkeypatch):
    seen = []
    monkeypatch.setattr(program, "train", lambda model, batches, recipe: seen.append(recipe))
    made = longer("dense", 7, 0.5, 1)
    assert seen == [replace(RECIPE, steps=7, learning_rate=RECIPE.learning_rate / 2)]
    stored = json.loads(program.LONGER.read_text(encoding="utf-8"))
    assert set(made) == set(stored[0]) and 0 <= made["recalled"] < 0.1
    assert [(one["kind"], one["steps"], one["rate"], one["seed"]) for one in stored] == LONGER_RUNS


def test_the_program_writes_longer_runs_beside_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "LONGER_RUNS", LONGER_RUNS[:2])
    monkeypatch.setattr(program, "longer", lambda *asked: {"asked": asked})
    monkeypatch.setattr(sys, "argv", ["phone_book", "--longer", "--into", str(tmp_path / "longer.json")])
    main()
    stored = json.loads((tmp_path / "longer.json").read_text(encoding="utf-8"))
    assert [tuple(one["asked"]) for one in stored] == LONGER_RUNS[:2]


def test_what_was_not_measured_is_none():
    assert recalled_by("dense", 5, 0) is None and recalled_by("dense", 18_000, 2) is None
    assert recalled_by("dense", RECIPE.steps, 0) == recalled("dense", ENTRIES[-1])[0]
    assert recalled_after("dense", RECIPE.steps) == recalled("dense", ENTRIES[-1])


# What the chapter says of the stored runs


def test_after_the_same_steps_the_mixture_recalls_more_at_every_length_and_every_rate():
    for steps in (1_500, 3_000, 6_000):
        assert min(recalled_after("mixture", steps)) > max(recalled_after("dense", steps))
    for rate in RATES:
        assert recalled_by("mixture", RECIPE.steps, 0, rate) > recalled_by("dense", RECIPE.steps, 0, rate)


def test_the_dense_model_has_room_for_the_whole_book():
    assert min(recalled_after("dense", 18_000)) > 0.997
    assert recalled_by("untrained router", 6_000, 0) > 0.99


def test_after_1500_steps_the_mixture_recalls_more_of_the_largest_book():
    for shares in filter(None, (recalled(kind, ENTRIES[0]) for kind in KINDS)):
        assert min(shares) > 0.99  # all of them
    assert min(recalled("mixture", ENTRIES[-1])) > max(recalled("dense", ENTRIES[-1])) + 0.1
    assert min(recalled("dense, all active", ENTRIES[-1])) > max(recalled("mixture", ENTRIES[-1]))


def test_an_untrained_router_has_most_of_that_and_what_training_adds_to_an_even_load_is_not_sure():
    of = {kind: recalled(kind, ENTRIES[-1]) for kind in KINDS}
    assert min(of["untrained router"]) - max(of["dense"]) > max(of["mixture"]) - min(of["untrained router"])
    for kind in ("trained, not evened", "evened, not trained"):
        assert min(of[kind]) > max(of["untrained router"])
    assert max(of["evened, not trained"]) > min(of["mixture"])  # the ranges overlap


def test_so_it_is_at_every_length_and_every_rate():
    def lead(kind: str, steps: int, rate: float) -> float:
        return recalled_by(kind, steps, 0, rate) - recalled_by("dense", steps, 0, rate)

    for steps, rate in ((1_500, 1.0), (3_000, 1.0), (6_000, 1.0), *((1_500, rate) for rate in RATES)):
        assert lead("untrained router", steps, rate) > 0.65 * lead("mixture", steps, rate)
    leads = [lead(kind, 1_500, rate) for kind in ("untrained router", "mixture") for rate in (0.5, 2.0)]
    assert leads == pytest.approx([0.18, 0.20, 0.24, 0.25], abs=0.005)
