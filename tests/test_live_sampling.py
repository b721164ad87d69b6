"""Sampling in a page: the probabilities of minimind_edu.sampling, and draws that follow them."""

import random

import numpy as np
import pytest
import torch

from minimind_edu.sampling import Sampling

MODULE = "live/sampling"
WORDS = 88
JS_NAMES = {"top_k": "topK", "top_p": "topP", "min_p": "minP", "repetition_penalty": "penalty"}
SAMPLE = """async ([logits, settings, value]) => {
    const { sample } = await import("/live/sampling.js");
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
    *({"top_k": value} for value in (1, 5, WORDS, 200)),
    *({"top_p": value} for value in (0.05, 0.5, 0.9)),
    *({"min_p": value} for value in (0.001, 0.1, 1.0)),
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
    assert sorted(found) == sorted(expected(alike, **settings).tolist()) == [0, 0, 0.5, 0.5]


def test_temperature_0_takes_the_largest(node):
    found = node.evaluate(SAMPLE, [[0.0, 3.0, 3.0, -1.0], {"temperature": 0, "topK": 3}, 0.99])
    assert found == {"token": 1, "probabilities": [0, 1, 0, 0]}


def test_tokens_come_as_often_as_their_probabilities_say(node):
    probabilities = [0.1, 0.4, 0.3, 0.2]
    drawn = node.evaluate(
        """async (probabilities) => {
            const { drawOne } = await import("/live/sampling.js");
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
            const { seededRandom } = await import("/live/sampling.js");
            return [7, 7, 8].map((seed) => Array.from({ length: 2000 }, seededRandom(seed)));
        }"""
    )
    assert first == again != other
    assert min(first) >= 0 and max(first) < 1
    assert np.histogram(first, 10, (0, 1))[0] == pytest.approx(200, abs=60)
