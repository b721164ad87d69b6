"""Sampling in a page: the probabilities of minimind_edu.model.sampling, and draws that follow them."""

import random

import numpy as np
import pytest
import torch
from model_builders import decimals

from minimind_edu.model.sampling import Sampling

MODULE = "web/live/sampling"
WORDS = 88
JS_NAMES = {"top_k": "topK", "top_p": "topP", "min_p": "minP", "repetition_penalty": "penalty"}
SAMPLE = """async ([logits, settings, value]) => {
    const { sample } = await import("/web/live/sampling.js");
    const { token, probabilities } = sample(Float32Array.from(logits), settings, () => value);
    return { token, probabilities };
}"""


def expected(logits, seen=(), **settings):
    """The distribution from which the package draws."""
    occurred = torch.zeros(1, len(logits), dtype=torch.bool)
    occurred[0, list(seen)] = True
    return Sampling(do_sample=True, **settings).probabilities(torch.tensor([logits]), occurred)[0]


def in_js(logits, seen=(), **settings):
    """The arguments of the page's function for the same."""
    return [logits, {"seen": list(seen)} | {JS_NAMES.get(name, name): value for name, value in settings.items()}]


def assert_equal_to_the_package(node, cases):
    found = node.each(MODULE, "drawnFrom", [in_js(logits, **settings) for logits, settings in cases])
    for probabilities, (logits, settings) in zip(found, cases, strict=True):
        found_here = torch.tensor(probabilities, dtype=torch.float32)
        torch.testing.assert_close(found_here, expected(logits, **settings), rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def logits():
    return (3 * torch.randn(6, WORDS, generator=torch.Generator().manual_seed(0))).tolist()


# Each setting alone, at both ends of what a slider reaches, and in the middle.
ALONE = [
    {},
    *({"temperature": value} for value in (0.05, 0.5, 2.0)),
    *({"top_k": value} for value in (0, 1, 5, WORDS, 200)),
    *({"top_p": value} for value in (0.05, 0.5, 0.9, 1.0)),
    *({"min_p": value} for value in (0.0, 0.001, 0.1, 1.0)),
    *({"repetition_penalty": value, "seen": (3, 40, 87)} for value in (0.5, 1.0, 1.3, 2.0)),
]


@pytest.mark.parametrize("settings", ALONE, ids=str)
def test_each_setting_gives_the_probabilities_of_the_package(node, logits, settings):
    assert_equal_to_the_package(node, [(row, settings) for row in logits])


def test_all_settings_together_give_the_probabilities_of_the_package(node):
    chance = random.Random(0)
    cases = []
    for _ in range(400):
        row = [chance.gauss(0, 3) for _ in range(WORDS)]
        settings = {
            "seen": chance.sample(range(WORDS), 12),
            "repetition_penalty": chance.uniform(1, 2),
            "temperature": chance.uniform(0.1, 2),
            "top_k": chance.randint(1, WORDS),
            "top_p": chance.uniform(0.05, 0.99),
            "min_p": chance.uniform(0.001, 0.5),
        }
        cases.append((row, settings))
    assert_equal_to_the_package(node, cases)


def test_the_steps_come_in_the_order_of_the_package(node):
    """Top-p after temperature and top-k: of two words with 0.6 and 0.4 it keeps one; of all, it would keep both."""
    row = np.log([0.3, 0.2, 0.2 - 1e-4, 0.3 + 1e-4]).tolist()
    settings = {"top_k": 2, "top_p": 0.5}
    [left] = node.each(MODULE, "reshape", [in_js(row, **settings)])
    assert list(left) == ["penalty", "temperature", "topK", "topP", "minP"]
    assert np.isfinite(np.array(left["topK"], dtype=float)).tolist() == [True, False, False, True]
    assert np.isfinite(np.array(left["topP"], dtype=float)).tolist() == [False, False, False, True]


def test_equal_logits_at_the_edge_of_top_k_stay_together(node):
    assert_equal_to_the_package(node, [([2.0, 1.0, 1.0, 0.0], {"top_k": 2})])
    assert node.call(MODULE, "drawnFrom", [[2.0, 1.0, 1.0, 0.0], {"topK": 2}])[2] > 0


def test_words_that_reach_top_p_exactly_are_enough(node):
    alike, settings = [0.0] * 4, {"top_p": 0.5}  # which two of them is nobody's business
    found = node.call(MODULE, "drawnFrom", in_js(alike, **settings))
    assert found == expected(alike, **settings).tolist() == [0, 0, 0.5, 0.5]


def with_transformers(logits, top_k=0, top_p=1.0, min_p=0.0, temperature=1.0):
    """The distribution of transformers' warpers, in its order and where its generate puts them."""
    warpers = pytest.importorskip("transformers")
    chain = [warpers.TemperatureLogitsWarper(temperature)]
    chain += [warpers.TopKLogitsWarper(top_k)] if top_k else []
    chain += [warpers.TopPLogitsWarper(top_p)] if top_p < 1 else []
    chain += [warpers.MinPLogitsWarper(min_p)]
    logits = torch.tensor([logits])
    for warper in chain:
        logits = warper(None, logits)
    return logits[0].softmax(-1)


GRID = [
    {"top_k": top_k, "top_p": top_p, "min_p": min_p, "temperature": temperature}
    for top_k in (0, 1, 3, 200)
    for top_p in (0.25, 0.5, 0.75, 0.9999999, 1.0)
    for min_p in (0.0, 0.25, 0.5, 1.0)
    for temperature in (0.5, 1.0)
]
EDGES = {  # probabilities that float32 holds, many of them equal, so that sums and fractions are met exactly
    "all alike": [1 / 8] * 8,
    "halves": [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16],
    "ties": [1 / 8, 1 / 4, 1 / 16, 1 / 4, 1 / 4, 1 / 16],
    "one alone": [1.0],
    "far apart": [1.0, 1e-12, 1e-12, 1e-20],
}


@pytest.mark.parametrize("row", EDGES.values(), ids=EDGES)
def test_the_page_the_package_and_transformers_keep_the_same_words_at_ties_and_edges(node, row):
    logits = np.log(np.float32(row)).tolist()
    found = node.each(MODULE, "drawnFrom", [in_js(logits, **settings) for settings in GRID])
    for in_page, settings in zip(found, GRID, strict=True):
        in_page = torch.tensor(in_page, dtype=torch.float32)
        here, there = expected(logits, **settings), with_transformers(logits, **settings)
        assert torch.equal(in_page > 0, here > 0) and torch.equal(there > 0, here > 0), settings
        torch.testing.assert_close(in_page, here, rtol=0, atol=1e-6)
        torch.testing.assert_close(there, here, rtol=0, atol=1e-6)


def test_decimals_reach_top_p_in_the_page_too(node):
    """Where float32 rounds a sum away from what it is, transformers keeps one word more."""
    cases = list(decimals(20, most=100))
    found = node.each(MODULE, "drawnFrom", [in_js(logits[0].tolist(), top_p=top_p) for logits, top_p, _ in cases])
    counts = [count for _, _, count in cases]
    assert [sum(p > 0 for p in probabilities) for probabilities in found] == counts
    theirs = [int((with_transformers(logits[0].tolist(), top_p=top_p) > 0).sum()) for logits, top_p, _ in cases]
    more = [there - here for there, here in zip(theirs, counts, strict=True)]
    assert set(more) == {0, 1} and 0.02 < sum(more) / len(more) < 0.2


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("strange", [[2, "NaN", 0], [2, "Infinity", 0], ["-Infinity"] * 3], ids=str)
def test_logits_that_are_no_numbers_are_refused(node, strange, temperature):
    script = """async ([logits, temperature]) => {
        const { sample } = await import("/web/live/sampling.js");
        return sample(Float32Array.from(logits, Number), { temperature }).token;
    }"""
    with pytest.raises(RuntimeError, match="the logits contain NaN or infinity, so no token is the most probable one"):
        node.evaluate(script, [strange, temperature])


def test_neutral_settings_leave_logits_as_they_are(node):
    logits, neutral = [0.0, -200.0, -9.0], {"topK": 0, "topP": 1, "minP": 0}
    assert node.call(MODULE, "reshape", [logits, neutral])["minP"] == logits


def test_temperature_0_takes_the_largest(node):
    found = node.evaluate(SAMPLE, [[0.0, 3.0, 3.0, -1.0], {"temperature": 0, "topK": 3}, 0.99])
    assert found == {"token": 1, "probabilities": [0, 1, 0, 0]}


def test_tokens_come_as_often_as_their_probabilities_say(node):
    probabilities = [0.1, 0.4, 0.3, 0.2]
    drawn = node.evaluate(
        """async (probabilities) => {
            const { drawOne } = await import("/web/live/sampling.js");
            return Array.from({ length: 1000 }, (_, i) => drawOne(probabilities, () => (i + 0.5) / 1000));
        }""",
        probabilities,
    )
    assert np.bincount(drawn).tolist() == [100, 400, 300, 200]
    cut = node.evaluate(SAMPLE, [np.log(probabilities).tolist(), {"topP": 0.6}, 0.999999])
    assert cut["token"] == 2 and cut["probabilities"][0] == 0


def test_entropy_is_in_nats_and_zero_for_one_word(node):
    found = node.each(MODULE, "entropyInNats", [[[0.5, 0.5, 0]], [[0, 1, 0]], [[0.25] * 4]])
    assert found == pytest.approx([np.log(2), 0, np.log(4)])


def test_random_numbers_are_those_of_the_seed_and_fill_the_unit_interval(node):
    first, again, other = node.evaluate(
        """async () => {
            const { seededRandom } = await import("/web/live/sampling.js");
            return [7, 7, 8].map((seed) => Array.from({ length: 2000 }, seededRandom(seed)));
        }"""
    )
    assert first == again != other
    assert min(first) >= 0 and max(first) < 1
    assert np.histogram(first, 10, (0, 1))[0] == pytest.approx(200, abs=60)
