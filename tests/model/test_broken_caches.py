"""Reading with a cache is the model's own, and each bug changes the one thing that it is named for."""

import pytest
import torch

from minimind_edu import MiniMindConfig, MiniMindForCausalLM
from minimind_edu.model.broken_caches import BUGS, read, square_mask
from minimind_edu.model.masks import causal_mask
from minimind_edu.model.rope import apply_rotary_pos_emb

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = MiniMindConfig(vocab_size=12, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
                            num_key_value_heads=2, max_position_embeddings=16)  # fmt: skip
    return MiniMindForCausalLM(config).double().eval().requires_grad_(False)


def called(model, sizes, bug, cache=None):
    """Logits of the calls, and the cache that they leave."""
    logits = []
    for piece in IDS[:, : sum(sizes)].split(sizes, dim=1):
        out, cache = read(model, piece, cache, bug)
        logits.append(out)
    return torch.cat(logits, dim=1), cache


@pytest.mark.parametrize("sizes", [[7], [3, 4], [2, 2, 1, 1, 1]])
def test_without_a_bug_it_is_the_model(model, sizes):
    logits, cache = called(model, sizes, "none")
    out = model(IDS, use_cache=True)
    torch.testing.assert_close(logits, out.logits)
    for mine, packages in zip(cache, out.past_key_values, strict=True):
        torch.testing.assert_close(mine, packages)


@pytest.mark.parametrize("bug", BUGS)
def test_the_first_call_shows_no_bug(model, bug):
    torch.testing.assert_close(called(model, [4], bug)[0], called(model, [4], "none")[0])


def test_offset_rotates_every_call_from_0(model):
    wrong, right = (called(model, [3, 2], bug)[1][0][0] for bug in ("offset", "none"))  # keys of the first layer
    torch.testing.assert_close(wrong[:, :3], right[:, :3])
    cos, sin = model.model.freqs_cos, model.model.freqs_sin
    back = apply_rotary_pos_emb(wrong[:, 3:], wrong[:, 3:], cos[[3, 3]], sin[[3, 3]])[0]  # by the missing start
    torch.testing.assert_close(back, right[:, 3:])


def test_again_leaves_row_0_unharmed(model):
    wrong, right = (called(model, [3, 1, 1, 1], bug)[1][0][0] for bug in ("again", "none"))
    torch.testing.assert_close(wrong[:, 0], right[:, 0])
    apart = (wrong - right)[0].abs().amax((1, 2))  # [T]
    assert (apart[1:5] > 1e-3).all() and apart[5] < 1e-12  # the last row has not been cached yet


def test_the_square_mask_begins_upper_left():
    assert square_mask(2, 4).tolist() == [[True, False, False, False], [True, True, False, False]]
    assert torch.equal(square_mask(1, 4), causal_mask(1, 4))
    assert torch.equal(square_mask(3, 3), causal_mask(3, 3))


def test_square_shows_in_later_calls_of_several_tokens_alone(model):
    right, _ = called(model, [7], "none")
    torch.testing.assert_close(called(model, [4, 1, 1, 1], "square")[0], right)
    assert (called(model, [4, 3], "square")[0] - right)[0].abs().amax(-1).gt(1e-3).tolist() == [False] * 4 + [True] * 3


def test_weights_are_those_of_each_layer(model):
    _, cache = read(model, IDS[:, :4])
    weights = []
    read(model, IDS[:, 4:], cache, weights=weights)
    assert [list(layer.shape) for layer in weights] == [[1, 4, 3, 7]] * 2
    torch.testing.assert_close(weights[0].sum(-1), torch.ones(1, 4, 3, dtype=torch.float64))


def test_the_cache_that_is_given_stays(model):
    _, cache = read(model, IDS[:, :4])
    before = [(key.clone(), value.clone()) for key, value in cache]
    read(model, IDS[:, 4:], cache, "again")
    torch.testing.assert_close(cache, before)


def test_another_bug_is_refused(model):
    with pytest.raises(ValueError, match="one of none, offset, again, stale, square, got 'cat'"):
        read(model, IDS, bug="cat")
