"""trained.deep_sums: texts are sums, factors reach the matrices that they name, and who is drowned learns nothing."""

import math

import pytest
import torch
from cases import long_after

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


@pytest.mark.parametrize("seed", long_after(1, [0, 1]))
def test_loud_attention_alone_drowns_a_post_norm_model_and_it_stays_at_a_blind_guess(seed):
    drowned, loud = deep_sums.model("post", seed, attention=4.0), deep_sums.model("post", seed, networks=4.0)
    assert deep_sums.mean_angle(drowned) < 10 < 60 < deep_sums.mean_angle(loud)
    assert deep_sums.end(drowned, seed) > math.log(16) - 0.1
    assert deep_sums.end(loud, seed) < math.log(16) - 0.3


def test_angles_are_those_of_the_outputs():
    one = deep_sums.model("pre", 0)
    outputs = one.model(next(deep_sums.batches(deep_sums.NEW)))[0].detach()
    first, others = outputs[:, :1], outputs[:, 1:]
    cosines = (first * others).sum(-1) / (first.norm(dim=-1) * others.norm(dim=-1))
    assert deep_sums.mean_angle(one) == pytest.approx(torch.rad2deg(torch.acos(cosines)).mean().item(), rel=1e-4)
