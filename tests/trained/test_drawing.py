"""trained.drawing: a text depends on its seed alone, goes on with its beginning, and is chosen as the options say."""

import torch

from minimind_edu import world
from minimind_edu.trained.drawing import drawn
from minimind_edu.trained.living import draft_model

BEGUN = torch.from_numpy(world.stories(2, 8, seed=1))


def test_equal_seeds_draw_equal_texts():
    model, chance = draft_model(), torch.get_rng_state()
    first, again, other = (drawn(model, BEGUN, 12, seed) for seed in (1, 1, 2))
    assert first.shape == (2, 20) and first.equal(again) and not first.equal(other)
    assert first[:, :8].equal(BEGUN) and not first[0].equal(first[1])
    assert torch.get_rng_state().equal(chance)


def test_options_say_how_a_token_is_chosen_and_where_a_text_ends():
    model = draft_model()
    best = drawn(model, BEGUN, 5, 0, top_k=1)
    assert best.equal(model.generate(BEGUN, 5))
    stop = int(best[0, 8])
    assert drawn(model, BEGUN[:1], 5, 0, top_k=1, eos_token_id=stop).shape == (1, 9)
