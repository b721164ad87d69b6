"""The steps of one token are those of the model: shapes as their letters say, and the model's own logits at the end."""

from functools import partial

import pytest
import torch

from minimind_edu import world
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.heads import attention_weights
from minimind_edu.trained.living.steps import last_token, sizes

# the model reads the text at once here, and with a cache there: sums of up to 274 in another order
assert_close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-3)
STORY, LAYER = "Mia is in the hall . where is Mia ? in the", 2


@pytest.fixture(scope="module")
def model():
    return living_model().requires_grad_(False)


@pytest.fixture(scope="module")
def ids():
    return torch.from_numpy(world.encode(STORY))[None].long()


@pytest.fixture(scope="module")
def steps():
    return {step.name: step for step in last_token(STORY, LAYER)}


def test_every_tensor_has_the_shape_of_its_letters(model, ids, steps):
    size = sizes(model.config, ids.shape[1] - 1)
    assert len(steps) == 16 and (size["S"], size["T"]) == (1, ids.shape[1])
    for step in steps.values():
        assert list(step.numbers.shape) == [size[letter] for letter in step.letters], step.name


def test_the_way_ends_at_the_logits_of_the_model(model, ids, steps):
    assert_close(steps["logits"].numbers, model(ids).logits[:, -1:])


@pytest.mark.parametrize("layer", range(4))
def test_what_comes_in_and_goes_out_is_the_stream_of_that_block(model, ids, layer):
    streams = []
    hook = model.model.layers[layer].register_forward_hook(lambda _, given, out: streams.extend([given[0], out[0]]))
    model(ids)
    hook.remove()
    steps = {step.name: step.numbers for step in last_token(STORY, layer)}
    assert_close(steps["stream"], streams[0][:, -1:])
    assert_close(steps["stream again"], streams[1][:, -1:])
    assert_close(steps["stream"] + steps["attended"] + steps["fed"], streams[1][:, -1:])


def test_scores_become_the_weights_with_which_the_head_reads(model, ids, steps):
    assert_close(steps["scores"].numbers.softmax(-1), steps["weights"].numbers)
    assert_close(steps["weights"].numbers[0, :, 0], attention_weights(model, ids)[LAYER, :, -1])
    assert_close(steps["cache"].numbers[:, -1:], steps["k"].numbers)
