"""KeyCircles: every setting is a stored training, its queries find the keys of the questions that it answers."""

import itertools

import pytest
import torch

from minimind_edu.figures import KeyCircles
from minimind_edu.trained.sharing.circles import DRAWN, SEEDS, WIDTHS, circles

MATH = "figures/key_circles/math"
ON_LINES = 2, 2  # width and seed of the one training that answers two questions by halves, as chapter 6 says


@pytest.mark.parametrize(("width", "seed"), [*itertools.product(WIDTHS, SEEDS)])
def test_every_setting_is_a_stored_training(node, width, seed):
    figure = KeyCircles(width=width, seed=seed)
    [stored] = [one for one in circles() if (one["setting"], one["width"], one["seed"]) == (DRAWN, width, seed)]
    drawn = figure.portrait()
    assert {name: stored[name] for name in drawn} == drawn
    assert node.call(MATH, "answered", [drawn["right"]]) == (0 if (width, seed) == ON_LINES else width // 2)
    assert node.call(MATH, "meanOf", [drawn["right"]]) == pytest.approx(sum(stored["right"]) / 4)
    reach = node.call(MATH, "reachOf", [drawn["keys"]])
    assert reach == pytest.approx(torch.tensor(drawn["keys"]).norm(dim=-1).max().item())


@pytest.mark.parametrize(("width", "seed"), [*itertools.product(WIDTHS, SEEDS)])
def test_a_query_finds_its_key_where_there_is_a_circle(node, width, seed):
    for asked in range(1, 9):
        figure = KeyCircles(shows="query", width=width, seed=seed, asked=asked)
        drawn, weights = figure.portrait(), figure.weights()
        for place, share in enumerate(drawn["right"]):
            given = node.call(MATH, "weightsOf", [drawn["queries"][place][asked - 1], drawn["keys"][place]])
            torch.testing.assert_close(torch.tensor(given, dtype=torch.float64), weights[place])
            found = weights[place, asked - 1].item()
            if (width, seed) == ON_LINES:
                continue
            assert found > 0.85 if share > 60 else found < 0.35, (asked, place, found)
