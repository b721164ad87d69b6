"""What figures share that read a story: where its words stand, and looks inside that leave nothing behind.

What both figures refuse is asked in test_every_figure.py.
"""

import pytest
import torch

from minimind_edu import world
from minimind_edu.figures import NeuronWords, StoryLens
from minimind_edu.trained.living import living_model
from minimind_edu.web.story import LONGEST, ids_of, inputs_of

SHORT = "Zoe is in the barn."


@pytest.mark.parametrize("figure", [NeuronWords, StoryLens])
def test_the_word_follows_a_shorter_story_to_its_end_and_a_longer_one_not_at_all(figure):
    shown = figure()
    assert len(ids_of(shown.story)) <= LONGEST and shown.word == len(ids_of(shown.story)) - 1
    shown.story = SHORT
    assert shown.word == len(ids_of(SHORT)) - 1 == len(shown.reading["tokens"]) - 1
    shown.word = 2
    shown.story = f"{SHORT} where is Zoe? in the"
    assert shown.word == 2 and len(shown.reading["tokens"]) == len(ids_of(shown.story))


def test_a_story_begins_with_its_sign():
    assert ids_of(SHORT).tolist() == [world.BOS, *world.encode(SHORT)] == world.encode(f"<s> {SHORT}").tolist()


def test_inputs_are_seen_in_their_order_and_no_hook_stays_whatever_happens():
    model = living_model()
    layers = list(model.model.layers)
    with torch.no_grad(), inputs_of([*layers, model.model.norm]) as seen:
        out = model(torch.from_numpy(ids_of(SHORT))[None])
    assert len(seen) == len(layers) + 1
    torch.testing.assert_close(seen[0], model.model.embed_tokens(torch.from_numpy(ids_of(SHORT))[None]))
    torch.testing.assert_close(model.lm_head(model.model.norm(seen[-1])), out.logits)
    with pytest.raises(RuntimeError, match="on purpose"), inputs_of(layers):
        raise RuntimeError("on purpose")
    assert not any(layer._forward_pre_hooks for layer in layers)
