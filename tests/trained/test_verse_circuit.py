"""verse.circuit: an edge that is cut is not read, and a head that is averaged tells nothing of its poem."""

import pytest
import torch

from minimind_edu.trained.living import heads
from minimind_edu.trained.verse import circuit, exam, new_model
from minimind_edu.trained.verse.corpus import COMMA, STOP, Corpus, decode, line_end, read_corpus


@pytest.fixture(scope="module")
def octaves() -> torch.Tensor:
    return read_corpus().held_out["8x5"][:6].long()


@pytest.fixture(scope="module")
def model():
    """Untrained, with weights large enough that heads read unevenly."""
    made = new_model(0).eval()
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if weight.dim() > 1 and "embed" not in name:
                weight.mul_(8)
    return made


def signs(octaves, where):
    return {decode(octaves[0, place : place + 1]) for place in where.tolist()}


@pytest.mark.parametrize("key, sign", [("stop", STOP), ("comma", COMMA)])
def test_edges_lead_from_before_a_rhyme_to_what_their_name_says(octaves, key, sign):
    mask = circuit.edges("8x5", "before", key)
    assert mask.shape == (octaves.shape[1], octaves.shape[1])
    assert signs(octaves, mask.any(0).nonzero()[:, 0]) == {sign}
    assert mask.any(1).nonzero()[:, 0].tolist() == [line_end(line, 5) - 1 for line in (3, 5, 7)]
    assert mask.sum(1)[mask.any(1)].tolist() == ([1, 2, 3] if key == "stop" else [2, 3, 4])


def test_words_are_the_characters_before_the_marks():
    for mark, word in (("stop", "word"), ("comma", "odd_word")):
        of_mark, of_word = (circuit.edges("4x7", "before", key).any(0).nonzero()[:, 0] for key in (mark, word))
        assert of_word.tolist() == (of_mark - 1).tolist()
    mask = circuit.edges("8x5", "stop", "word")
    assert mask[line_end(1, 5) + 1, line_end(1, 5)] and mask[line_end(7, 5) + 1].sum() == 4
    assert not mask.triu().any()


def test_unknown_places_are_named():
    for wrong in (("8x6", "stop", "word"), ("8x5", "word", "word"), ("8x5", "stop", "mark")):
        with pytest.raises(ValueError, match="must be"):
            circuit.edges(*wrong)


def test_a_cut_edge_is_not_read(model, octaves):
    """Without its edges to earlier stops, and to nothing else in any block, a place cannot know what they hold."""
    mask = torch.zeros(octaves.shape[1], octaves.shape[1], dtype=torch.bool)
    mask[20:, 12] = True
    every = {(layer, head): mask for layer in range(3) for head in range(4)}
    other = octaves.clone()
    other[:, 12] = (other[:, 12] + 5) % 3000 + 10
    with torch.no_grad():
        assert not torch.allclose(model(octaves).logits[:, 30], model(other).logits[:, 30], atol=1e-4)
        # what stands between 12 and 20 would tell: cut there, too
        mask[13:, 12] = True
        with circuit.cut(model, every):
            assert torch.allclose(model(octaves).logits[:, 30], model(other).logits[:, 30], atol=1e-5)


def test_a_cut_without_an_edge_changes_nothing_and_the_model_is_whole_afterwards(model, octaves):
    with torch.no_grad():
        whole = model(octaves).logits
        with circuit.cut(model, {(1, 2): torch.zeros(50, 50, dtype=torch.bool)}):
            assert torch.allclose(model(octaves).logits, whole, atol=1e-4)
        with circuit.cut(model, {(1, 2): torch.ones(50, 50, dtype=torch.bool).tril(-1)}):
            assert not torch.allclose(model(octaves).logits, whole, atol=1e-4)
        assert torch.equal(model(octaves).logits, whole)


def test_an_averaged_head_gives_all_poems_the_same(model, octaves):
    with torch.no_grad():
        whole = model(octaves).logits
        with circuit.averaged(model, (0, 1)):
            assert not torch.allclose(model(octaves).logits, whole, atol=1e-4)
            alone = model(octaves[:1].repeat(3, 1)).logits
        assert torch.allclose(alone[1], whole[0], atol=1e-4)  # of one poem the mean is its own
        every = [(layer, head) for layer in range(3) for head in range(4)]
        same = octaves.clone()
        same[:, 30] = octaves[0, 30]
        assert not torch.allclose(model(same).logits[0, 30], model(same).logits[1, 30], atol=1e-4)
        with circuit.averaged(model, *every):  # no head tells of earlier places
            assert torch.allclose(model(same).logits[0, 30], model(same).logits[1, 30], atol=1e-4)
        assert torch.equal(model(octaves).logits, whole)


def test_what_is_kept_is_what_the_exam_counts(model, octaves):
    told = exam.expected(model, Corpus({}, {"8x5": octaves}), 6)
    assert circuit.kept(model, "8x5", octaves)["rhyme"] == pytest.approx(told["rhyme"], abs=1e-6)


def test_every_kind_of_edge_of_every_head_is_weighed(model, octaves):
    found = circuit.weights_between(model, "8x5", octaves[:2])
    assert len(found) == 12
    weights = sum(heads.attention_weights(model, poem[None]) for poem in octaves[:2]) / 2
    place, stop = line_end(3, 5) - 1, line_end(1, 5) + 1
    last = line_end(7, 5) - 1
    rows = [weights[..., place, stop], weights[..., line_end(5, 5) - 1, [stop, stop + 12]].sum(-1)]
    rows.append(weights[..., last, [stop, stop + 12, stop + 24]].sum(-1))
    assert torch.allclose(torch.tensor(found["before stop"]), torch.stack(rows).mean(0), atol=1e-5)
