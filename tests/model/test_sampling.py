"""What is chosen from given logits: the filters, the order in which they come, and the draw."""

import numpy as np
import pytest
import torch
from cases import long_after
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, decimals, tensor

from minimind_edu.model.sampling import Sampling, keep_min_p, keep_top_k, keep_top_p, penalize_repetition

seeds = st.integers(0, 10_000)
logit_rows = st.tuples(st.integers(1, 3), st.integers(2, 30), seeds)


def logits_of(row, scale=3):
    batch, size, seed = row
    return scale * tensor(batch, size, seed=seed)


def choose(logits, seen=None, **options):
    """One token for each row, by Sampling(**options); nothing has occurred unless `seen` says so."""
    return Sampling(**options).choose(logits, torch.zeros_like(logits, dtype=torch.bool) if seen is None else seen)


# Filters


@PROPERTY
@given(logit_rows, st.integers(1, 40))
def test_top_k_keeps_the_k_largest(row, top_k):
    logits = logits_of(row)
    kept = keep_top_k(logits, top_k)
    for before, after in zip(logits.tolist(), kept.tolist(), strict=True):
        largest = sorted(before, reverse=True)[:top_k]
        assert after == [value if value in largest else -torch.inf for value in before]


@PROPERTY
@given(logit_rows, st.floats(0.01, 0.999))
def test_top_p_keeps_the_fewest_tokens_that_reach_p(row, top_p):
    logits = logits_of(row)
    kept = keep_top_p(logits, top_p)
    for before, after in zip(logits, kept, strict=True):
        probabilities = before.softmax(-1).tolist()
        order = sorted(range(len(probabilities)), key=lambda i: -probabilities[i])
        nucleus, total = [], 0.0
        for token in order:
            nucleus.append(token)
            total += probabilities[token]
            if total >= top_p:
                break
        assert sorted(nucleus) == after.isfinite().nonzero().flatten().tolist()
        assert torch.equal(after[nucleus], before[nucleus])


def test_top_p_keeps_at_least_the_most_probable_token():
    kept = keep_top_p(torch.tensor([[1.0, 5.0, 2.0]]), 1e-9)
    assert kept.tolist() == [[-torch.inf, 5.0, -torch.inf]]


@PROPERTY
@given(logit_rows, st.floats(0.01, 1.0))
def test_min_p_keeps_what_is_near_the_most_probable(row, min_p):
    logits = logits_of(row)
    kept = keep_min_p(logits, min_p)
    probabilities = logits.double().softmax(-1)
    ratio = probabilities / probabilities.amax(-1, keepdim=True)
    clear = (ratio - min_p).abs() > 1e-6
    assert torch.equal(kept.isfinite()[clear], (ratio >= min_p)[clear])
    assert torch.equal(kept[kept.isfinite()], logits[kept.isfinite()])
    assert kept.isfinite().any(-1).all()


@PROPERTY
@given(logit_rows, st.floats(0.5, 3.0), seeds)
def test_the_penalty_makes_seen_tokens_less_likely_and_leaves_others(row, penalty, seed):
    logits = logits_of(row)
    seen = tensor(*logits.shape, seed=seed) > 0
    result = penalize_repetition(logits, seen, penalty)
    assert torch.equal(result[~seen], logits[~seen])
    for before, after in zip(logits[seen].tolist(), result[seen].tolist(), strict=True):
        assert after == pytest.approx(before / penalty if before > 0 else before * penalty)


# Choosing


def test_greedy_takes_the_largest_logit():
    logits = torch.tensor([[0.1, 0.9, 0.3], [2.0, -1.0, 0.0]])
    assert choose(logits).tolist() == [1, 0]


def drawn_shares(logits, draws=20_000, **options):
    generator = torch.Generator().manual_seed(0)
    tokens = choose(logits.expand(draws, -1), do_sample=True, generator=generator, **options)
    return torch.bincount(tokens, minlength=logits.shape[-1]) / draws


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_samples_follow_the_softmax_at_the_temperature(temperature):
    logits = torch.tensor([[1.0, 0.0, 2.0, -1.0]])
    expected = (logits[0] / temperature).softmax(-1)
    shares = drawn_shares(logits, temperature=temperature)
    torch.testing.assert_close(shares, expected, atol=0.015, rtol=0)


def test_samples_follow_the_filtered_distribution():
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    # the two most probable, 4 : 3
    torch.testing.assert_close(drawn_shares(logits, top_k=2), torch.tensor([4 / 7, 3 / 7, 0, 0]), atol=0.015, rtol=0)
    # 0.4 + 0.3 does not reach 0.75, so a third token belongs to the nucleus
    torch.testing.assert_close(
        drawn_shares(logits, top_p=0.75), torch.tensor([4 / 9, 3 / 9, 2 / 9, 0]), atol=0.015, rtol=0
    )


def test_temperature_comes_before_top_p():
    """Sharpened to 0.64 : 0.36 the first token reaches 0.6 alone; before that it would not."""
    logits = torch.tensor([[4 / 7, 3 / 7]]).log()
    assert drawn_shares(logits, draws=100, temperature=0.5, top_p=0.6).tolist() == [1.0, 0.0]
    assert drawn_shares(logits, draws=100, top_p=0.6)[1] > 0


def test_a_tiny_temperature_is_greedy():
    logits = torch.tensor([[1.0, 3.0, 2.0]])
    assert drawn_shares(logits, draws=100, temperature=1e-37).tolist() == [0.0, 1.0, 0.0]


def test_top_k_comes_before_top_p():
    """Of 0.4, 0.3, 0.2, 0.1 the first two are 4 : 3 once top-k has cut the others off, and the first reaches 0.5."""
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    assert drawn_shares(logits, draws=100, top_k=2, top_p=0.5).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert drawn_shares(logits, draws=100, top_p=0.5)[1] > 0


def test_top_p_comes_before_min_p():
    """Without the last two, which min-p would cut, 0.4 and 0.3 are 4 : 3, and 0.4 alone would reach 0.55."""
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    both = drawn_shares(logits, draws=100, top_p=0.55, min_p=0.6)
    assert both[1] > 0 and both[2:].tolist() == [0.0, 0.0]
    assert drawn_shares(keep_min_p(logits, 0.6), draws=100, top_p=0.55).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_the_temperature_changes_what_min_p_keeps():
    logits = torch.tensor([[0.6, 0.3, 0.1]]).log()
    assert (drawn_shares(logits, draws=2_000, min_p=0.3) > 0).tolist() == [True, True, False]
    assert (drawn_shares(logits, draws=2_000, min_p=0.3, temperature=2.0) > 0).all()


def test_the_probabilities_are_those_that_are_drawn_from():
    options = {"temperature": 1.3, "top_k": 4, "top_p": 0.95, "min_p": 0.05}
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.09, 0.01]]).log()
    expected = Sampling(**options).probabilities(logits, torch.zeros_like(logits, dtype=torch.bool))
    assert expected.sum().item() == pytest.approx(1)
    torch.testing.assert_close(drawn_shares(logits, **options), expected[0], atol=0.015, rtol=0)


def test_the_penalty_comes_before_the_choice():
    logits, seen = torch.tensor([[1.0, 3.0, 2.0]]), torch.tensor([[False, True, False]])
    assert choose(logits, seen, repetition_penalty=2.0).tolist() == [2]
    assert choose(logits, seen).tolist() == [1]


def test_half_precision_logits_are_sampled_in_float32(monkeypatch):
    drawn_from, draw = [], torch.multinomial
    monkeypatch.setattr(torch, "multinomial", lambda p, *_, **named: drawn_from.append(p) or draw(p, *_, **named))
    logits = tensor(2, 50).half()
    choose(logits, do_sample=True, temperature=0.7, top_k=40, top_p=0.95)
    kept = drawn_from[0] > 0
    exact = (logits.double() / 0.7).masked_fill(~kept, -torch.inf).softmax(-1)
    torch.testing.assert_close(drawn_from[0].double(), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("do_sample", [False, True])
@pytest.mark.parametrize("strange", [[2.0, torch.nan, 0.0], [2.0, torch.inf, 0.0], [-torch.inf] * 3])
def test_logits_that_are_no_numbers_are_refused(do_sample, strange):
    logits = torch.tensor([[0.1, 0.9, 0.3], strange])
    with pytest.raises(ValueError, match="the logits contain NaN or infinity, so no token is the most probable one"):
        choose(logits, do_sample=do_sample)


def test_a_token_that_cannot_come_is_no_reason_to_refuse():
    assert choose(torch.tensor([[-torch.inf, 1.0, -torch.inf]]), do_sample=True).tolist() == [1]


def test_what_has_occurred_is_only_asked_for_by_a_penalty():
    logits = torch.tensor([[1.0, 3.0, 2.0]])
    assert Sampling().choose(logits).tolist() == [1]
    with pytest.raises(ValueError, match="a repetition penalty needs `seen`"):
        Sampling(repetition_penalty=2.0).choose(logits)


def test_top_p_stops_where_the_sum_is_reached_exactly():
    """Of three equal halves and quarters, exact in binary: 0.5 alone is enough for 0.5."""
    kept = keep_top_p(torch.tensor([[0.5, 0.25, 0.25]]).log(), 0.5)
    assert kept.isfinite().tolist() == [[True, False, False]]


@pytest.mark.parametrize(
    "parts, most", long_after(4, [(8, 400), (10, 400), (20, 100), (100, 40), (20, 400), (100, 400)])
)
def test_top_p_keeps_no_more_than_reach_it_also_where_decimals_are_rounded(parts, most):
    for logits, top_p, count in decimals(parts, most):
        assert keep_top_p(logits, top_p).isfinite().sum() == count, (logits.exp(), top_p)


NEUTRAL = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


@pytest.mark.parametrize("name", NEUTRAL)
def test_each_cut_has_a_value_that_changes_nothing(name):
    logits = 50 * torch.randn(1, 6400, generator=torch.Generator().manual_seed(0))  # some have a probability of 0
    untouched = Sampling(do_sample=True).probabilities(logits)
    assert torch.equal(Sampling(do_sample=True, **{name: NEUTRAL[name]}).probabilities(logits), untouched)
    cut = {"top_k": keep_top_k, "top_p": keep_top_p, "min_p": keep_min_p}[name]
    assert torch.equal(cut(logits, NEUTRAL[name]), logits)


OF_NUMPY = {"temperature": np.float32(0.5), "top_k": np.int64(3), "top_p": np.float64(0.5), "min_p": np.float16(0.25)}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_numbers_of_numpy_are_numbers(name):
    logits = logits_of((2, 9, 0)).float()
    drawn = [
        Sampling(do_sample=True, **{name: n}).probabilities(logits) for n in (OF_NUMPY[name], OF_NUMPY[name].item())
    ]
    assert torch.equal(*drawn)
    assert Sampling(**{name: OF_NUMPY[name]}) == Sampling(**{name: OF_NUMPY[name].item()})


BAD_VALUES = [
    (
        {"do_sample": True, "temperature": 0.0},
        "temperature must be above 0, got 0.0; for greedy choice use do_sample=False",
    ),
    ({"temperature": -1.0}, "temperature must be above 0, got -1.0"),
    ({"temperature": 0}, "temperature must be above 0, got 0; for greedy"),
    ({"top_k": -1}, r"top_k \(0: all tokens\) must be .*at least 0, got -1"),
    ({"top_k": 2.5}, "top_k .* must be a whole number of at least 0, got 2.5"),
    ({"top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0; 1 keeps all"),
    ({"top_p": 1.5}, "top_p must be above 0 and at most 1, got 1.5"),
    ({"min_p": -0.1}, "min_p must be at least 0 and at most 1, got -0.1; 0 keeps all"),
    ({"min_p": 1.5}, "min_p must be at least 0 and at most 1, got 1.5"),
    ({"repetition_penalty": 0.0}, "repetition_penalty must be above 0, got 0.0; 1 changes nothing"),
    ({"temperature": torch.nan}, "temperature must be a finite number, got nan"),
    ({"temperature": "1"}, "temperature must be a finite number, got '1'"),
    ({"repetition_penalty": torch.inf}, "repetition_penalty must be a finite number, got inf"),
    ({"top_p": "0.9"}, "top_p must be a finite number, got '0.9'"),
    ({"min_p": "x"}, "min_p must be a finite number, got 'x'"),
    *(
        ({knob: 1e-320}, f"{knob} must be a finite number, got 1e-320")
        for knob in ("temperature", "top_p", "min_p", "repetition_penalty")
    ),
    ({"generator": 3}, "generator must be a torch.Generator, .* got 3"),
    ({"top_k": True}, "top_k .* got True"),
    ({"top_k": np.True_}, "top_k .* got np.True_"),
    ({"top_k": np.float64(3)}, "top_k .* got np.float64"),
    ({"temperature": np.float32(torch.nan)}, "temperature must be a finite number, got nan"),
    ({"do_sample": 1}, "do_sample must be True or False, got 1"),
]


@pytest.mark.parametrize("values, message", BAD_VALUES)
def test_rejects_values_outside_their_range(values, message):
    with pytest.raises(ValueError, match=message):
        Sampling(**values)
