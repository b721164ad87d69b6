"""living.stretching: words are seen where it says, and what is stored is what both models lose."""

import json
import math
import sys
from functools import partial
from types import MethodType

import pytest
import torch
from cases import long_after
from torch import Tensor

from minimind_edu import world
from minimind_edu.model.rope_frequencies import RopeScaling, rope_frequencies
from minimind_edu.trained.living import STORED, living_model, stretching
from minimind_edu.trained.living.exam import divergence

FEW = torch.from_numpy(world.stories(2, 120, seed=3))
SCALE = torch.linspace(1, 0.1, 16, dtype=torch.float64)  # another for each pair


@pytest.fixture
def model():
    return living_model().double().requires_grad_(False)


def attended_by_distance(self, x: Tensor, positions: tuple[Tensor, Tensor], *_, seen_at: Tensor) -> tuple[Tensor, None]:
    """Attention in which pairs are complex numbers, rotated for each distance by itself; seen_at [S, S, D/2]."""
    ones = torch.ones_like(positions[0])
    q, k, v = self.project(x, ones, 0 * ones)
    q, k = (torch.complex(*each.chunk(2, -1)) for each in (q, k.repeat_interleave(2, 2)))  # [B, S, H, D/2]
    turned = torch.polar(torch.ones_like(seen_at), seen_at * stretching.frequencies())
    scores = torch.einsum("bshd, bthd, std -> bhst", q, k.conj(), turned).real / math.sqrt(self.head_dim)
    later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    weights = scores.masked_fill(later, -torch.inf).softmax(-1)
    output = torch.einsum("bhst, bthd -> bshd", weights, v.repeat_interleave(2, 2))
    return self.o_proj(output.flatten(2)), None


@pytest.mark.parametrize("near", long_after(2, [48, 0, 1, 200]))
def test_each_pair_sees_each_word_where_it_should(model, near):
    at = torch.arange(FEW.shape[1], dtype=torch.float64)
    away = (at[:, None] - at)[..., None]
    seen_at = torch.where(away <= near, away, near + (away - near) * SCALE)
    with stretching.seen_from(model, SCALE, near):
        seen = model(FEW).logits
    for block in model.model.layers:
        block.self_attn.forward = MethodType(partial(attended_by_distance, seen_at=seen_at), block.self_attn)
    torch.testing.assert_close(seen, model(FEW).logits, atol=1e-6, rtol=1e-6)


def test_near_nothing_it_is_a_model_with_other_tables(model):
    with stretching.seen_from(model, SCALE):
        seen = model(FEW).logits
    angles = torch.outer(torch.arange(200), stretching.frequencies() * SCALE).repeat(1, 2)
    model.model.freqs_cos, model.model.freqs_sin = angles.cos(), angles.sin()
    torch.testing.assert_close(seen, model(FEW).logits, atol=1e-9, rtol=1e-9)


def test_afterwards_the_model_is_as_it_was(model):
    before = model(FEW).logits
    with pytest.raises(KeyError), stretching.seen_from(model, SCALE, 48):
        assert not torch.allclose(model(FEW).logits, before, atol=0.1)
        raise KeyError
    assert torch.equal(model(FEW).logits, before)


@pytest.mark.parametrize("stretch", stretching.STRETCHES)
@pytest.mark.parametrize("way", stretching.WAYS)
def test_a_stretched_text_rotates_no_pair_further_than_the_training_did(way, stretch):
    scale, near = stretching.scales(stretch, way)
    unfinished = stretching.rotations() < 1
    assert int(unfinished.sum()) == 11
    farthest = near + (96 * stretch - near) * scale
    assert farthest[unfinished].tolist() == pytest.approx([96] * 11)
    assert near == (48 if way == "far" else 0)
    if way == "yarn":
        scaling = RopeScaling(stretch, 96, beta_fast=4)
        plain, slowed = (rope_frequencies(32, 1e4, each, torch.float64) for each in (None, scaling))
        torch.testing.assert_close(scale, slowed / plain)
    else:
        assert (scale[~unfinished] == 1).all()


def test_the_loss_is_the_distance_from_the_world(model):
    ids, exact = stretching.drawn([5], 60)
    assert ids.shape == (1, 12, 60) and exact.shape == (1, 12, 60, len(world.WORDS))
    loss = stretching.above_least(model, ids, exact, parts=60)
    kl, _ = divergence(model, ids[0].numpy())
    assert loss[0, :-1].mean().item() == pytest.approx(kl)
    halves = stretching.above_least(model, ids, exact, parts=2)
    assert halves[0].tolist() == pytest.approx([loss[0, :30].mean().item(), loss[0, 30:].mean().item()])


# What is stored


def again(name: str, stretch: int, way: str) -> None:
    """What is stored of the first draw is what the model loses in it."""
    [[loss]] = stretching.measured(name, (way,), (stretch,), [stretching.SEEDS[0]])[way]
    assert stretching.results()[name][way][stretch - 1, 0].tolist() == pytest.approx(loss, abs=0.002)


@pytest.mark.parametrize(
    ("name", "stretch", "way"), long_after(1, [("living", 2, "far"), ("twin", 4, "pairs"), ("living", 8, "yarn")])
)
def test_a_stored_loss_is_the_models(name, stretch, way):
    again(name, stretch, way)


@pytest.mark.long
@pytest.mark.parametrize("stretch", stretching.STRETCHES)
@pytest.mark.parametrize("way", stretching.WAYS)
@pytest.mark.parametrize("name", STORED)
def test_every_stored_loss_is_the_models(name, way, stretch):
    again(name, stretch, way)


@pytest.mark.parametrize(("name", "stretch"), long_after(1, [("living", 8), ("twin", 7)]))
def test_a_stored_loss_of_the_longest_texts_is_the_models(name, stretch):
    [[losses]] = stretching.measured_in_the_longest(name, (stretch,), [stretching.LONGEST_SEEDS[0]])
    assert stretching.results()[name]["longest"][stretch - 1, 0].tolist() == pytest.approx(losses, abs=0.002)


@pytest.mark.parametrize("name", STORED)
def test_what_the_lesson_says_of_both_models(name):
    """Each quarter is best at its own stretch, further costs more; the far way costs nothing near, and less far."""
    stored = stretching.results()[name]
    shapes = {way: (8, 10, 4) for way in stretching.WAYS} | {"longest": (10, 5, 8)}
    assert {way: losses.shape for way, losses in stored.items()} == shapes
    pairs, far, yarn = (stored[way].mean(1) for way in ("pairs", "far", "yarn"))
    assert pairs.argmin(0).tolist() == [0, 1, 2, 3]
    fitting = range(4)
    assert (pairs[7] > 1.7 * pairs[fitting, fitting]).all() and pairs[7, 0] > 9 * pairs[0, 0]
    ramp = (yarn - pairs)[fitting, fitting]
    assert (ramp.abs() < 0.06).all() and (ramp < 0.0005).all()
    assert (far[3:, 3] < 0.8 * pairs[3, 3]).all() and (far[:, 0] < pairs[0, 0] + 0.006).all()
    assert far[7, 3] < far[3, 3]
    assert stored["longest"].mean(1).argmin(0).tolist() == list(range(8))  # each eighth, too


@pytest.mark.long
def test_the_command_writes_what_the_book_reads(tmp_path, monkeypatch, capsys):
    few = partial(stretching.measured, ways=("pairs",), stretches=(1,), seeds=[11])
    monkeypatch.setattr(stretching, "measured", few)
    fewer = partial(stretching.measured_in_the_longest, stretches=(1,), seeds=[11])
    monkeypatch.setattr(stretching, "measured_in_the_longest", fewer)
    monkeypatch.setattr(sys, "argv", ["stretching", "--into", str(tmp_path / "results.json")])
    stretching.main()
    written = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert written.keys() == set(STORED)
    stored = stretching.results()["twin"]["pairs"][0, 0].tolist()
    assert written["twin"]["pairs"][0][0] == pytest.approx(stored, abs=0.002)
    assert len(written["twin"]["longest"][0][0]) == 8
    assert "twin pairs 1" in capsys.readouterr().out
