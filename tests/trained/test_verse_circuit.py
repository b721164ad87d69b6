"""verse.circuit: an edge that is cut is not read, and a head that is averaged tells nothing of its poem."""

import pytest
import torch

from minimind_edu.trained.living import heads
from minimind_edu.trained.verse import circuit, exam, new_model, verse_model
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


def test_averaged_over_places_a_head_says_the_same_everywhere(model, octaves):
    """Of texts that are one character over and over, places then differ by what other heads tell alone."""
    with torch.no_grad():
        whole = model(octaves).logits
        with circuit.averaged(model, (0, 1), places=True):
            everywhere = model(octaves).logits
        with circuit.averaged(model, (0, 1)):
            assert not torch.allclose(model(octaves).logits, everywhere, atol=1e-4)
        assert not torch.allclose(whole, everywhere, atol=1e-4)
        every = [(layer, head) for layer in range(3) for head in range(4)]
        with circuit.averaged(model, *every, places=True):
            left = model(octaves).logits
            order = torch.randperm(octaves.shape[1], generator=torch.Generator().manual_seed(0))
            assert torch.allclose(model(octaves[:, order]).logits, left[:, order], atol=1e-4)  # no place is told
        with circuit.averaged(model, *every):
            assert not torch.allclose(model(octaves[:, order]).logits, left[:, order], atol=1e-4)


def test_of_line_one_only_its_end_is_a_first_word(octaves):
    mask = circuit.edges("8x5", "before", circuit.FIRST)
    assert mask.any(0).nonzero()[:, 0].tolist() == [line_end(0, 5)]
    assert torch.equal(mask.any(1), circuit.edges("8x5", "before", "word").any(1))
    assert circuit.edges("8x5", "comma", circuit.FIRST)[line_end(0, 5) + 1, line_end(0, 5)]


def test_ways_are_cut_one_after_the_other(model, octaves):
    """What a step leaves is what the same edges leave when they are cut at once."""
    told = circuit.routes(model, "8x5", octaves)
    assert list(told) == ["whole", *circuit.ROUTES]
    assert told["whole"] == circuit.kept(model, "8x5", octaves)
    every = [(layer, head) for layer in range(3) for head in range(4)]
    kinds = [("before", "word"), ("before", circuit.FIRST), ("comma", "word"), ("comma", circuit.FIRST)]
    mask = torch.stack([circuit.edges("8x5", *kind) for kind in kinds]).any(0)
    with circuit.cut(model, dict.fromkeys(every, mask)):
        assert told["comma"] == pytest.approx(circuit.kept(model, "8x5", octaves), abs=1e-6)
    assert told["stop"]["loss"] != told["comma"]["loss"] != told["line 1"]["loss"] != told["words"]["loss"]


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


# What is said of the stored model and of the other seeds

READER, TONES, CONTROL = (2, 0), (1, 0), (2, 1)


@pytest.fixture(scope="module")
def stored():
    return verse_model()


@pytest.fixture(scope="module")
def twenty() -> torch.Tensor:
    return read_corpus().held_out["8x5"][:20].long()


def rhyme(run: str, kind: str) -> dict[str, float]:
    """How the probability of what rhymes changes, in octaves of 5 of a run of the recipe."""
    return {name: change["rhyme"] for name, change in circuit.results()[run]["8x5"][kind].items()}


def test_one_head_of_the_stored_model_reads_the_rhyme_words(stored, twenty):
    whole, mask = circuit.kept(stored, "8x5", twenty), circuit.edges("8x5", "before", "word")
    for head, least, most in ((READER, -0.8, -0.5), (CONTROL, -0.01, 0.01), ((2, 3), -0.01, 0.01)):
        with circuit.cut(stored, {head: mask}):
            assert least < circuit.kept(stored, "8x5", twenty)["rhyme"] - whole["rhyme"] < most
    with heads.silenced(stored, *READER):
        without = circuit.kept(stored, "8x5", twenty)
    assert without["rhyme"] < 0.4 < 0.85 < whole["rhyme"]
    assert abs(without["tones"] - whole["tones"]) < 0.02 and without["loss"] - whole["loss"] < 0.06


def test_it_does_so_since_the_tails(twenty):
    found = {name: circuit.weights_between(verse_model(name), "8x5", twenty[:6]) for name in ("verse", "before")}
    reads = {name: weights["before word"][READER[0]][READER[1]] for name, weights in found.items()}
    assert reads["verse"] > 0.97 and reads["before"] < 0.01
    others = [weight for at, weight in enumerate(found["verse"]["before word"][2]) if at != READER[1]]
    assert max(others) < 0.01


def test_two_heads_of_the_block_before_tell_it_where_it_is(stored, twenty):
    for head, key in (((1, 3), "comma"), ((1, 0), "stop")):
        with circuit.cut(stored, {head: circuit.edges("8x5", "before", key)}):
            assert circuit.kept(stored, "8x5", twenty)["rhyme"] < 0.2


def test_the_stored_numbers_are_those_of_the_stored_weights(stored):
    ids = circuit.of_form(read_corpus(), "8x5", circuit.results()["recipe-0"]["8x5"]["poems"])
    assert circuit.kept(stored, "8x5", ids) == pytest.approx(circuit.results()["recipe-0"]["8x5"]["whole"], abs=0.01)
    mask = circuit.edges("8x5", "before", "word")
    with circuit.cut(stored, {READER: mask}):
        left = circuit.kept(stored, "8x5", ids)["rhyme"]
    whole = circuit.results()["recipe-0"]["8x5"]["whole"]["rhyme"]
    assert left - whole == pytest.approx(rhyme("recipe-0", "cut")["2.0 before word"], abs=0.03)


def test_seeds_differ_in_who_reads():
    """One head of the last block in two seeds, two heads of the first block in the third; all read the words."""
    assert rhyme("recipe-0", "cut")["2.0 before word"] < -0.6
    assert rhyme("recipe-2", "cut")["2.1 before word"] < -0.7
    for run in ("recipe-0", "recipe-2"):
        blocks = rhyme(run, "blocks")
        assert blocks["2 before word"] < -0.6 and abs(blocks["2 before stop"]) < 0.01
        assert min(blocks["1 before comma"], blocks["1 before stop"]) < -0.7
        assert abs(blocks["0 before word"]) < 0.02
    other = rhyme("recipe-1", "blocks")
    assert other["0 before word"] < -0.75 and abs(other["2 before word"]) < 0.02
    assert all(-0.5 < rhyme("recipe-1", "cut")[f"{head} before word"] < -0.3 for head in ("0.0", "0.1"))
    for run in ("recipe-0", "recipe-1", "recipe-2"):  # nobody carries the word over the full stop
        assert all(change > -0.1 for name, change in rhyme(run, "blocks").items() if "stop word" in name)


def test_a_head_that_is_silenced_is_missed_more_than_one_that_is_averaged():
    told = circuit.results()["recipe-0"]["8x5"]
    missed = {head: told["silenced"][head]["rhyme"] for head in told["silenced"]}
    carries = {head: told["averaged"][head]["rhyme"] for head in told["averaged"]}
    assert missed["0.2"] < -0.8 and abs(carries["0.2"]) < 0.01  # it always adds the same
    assert {head for head, change in carries.items() if change < -0.2} == {"0.0", "2.0"}


def test_rhyme_and_tones_are_lost_one_without_the_other():
    """Three switches, each really silenced while it wrote."""
    told = circuit.results()["recipe-0"]["written"]
    whole, no_rhyme, no_tones, control = (told[name] for name in ("whole", "2.0", "1.0", "2.1"))
    assert no_rhyme["rhyme"] < 0.45 < 0.85 < whole["rhyme"] < no_tones["rhyme"] < control["rhyme"]
    assert min(*whole["opposite"], *no_rhyme["opposite"], *control["opposite"]) > 0.95
    assert max(no_tones["opposite"]) < 0.82
    assert (whole["form"], no_rhyme["form"], control["form"]) == (1, 1, 1) and no_tones["form"] < 0.85


def test_the_switches_do_what_is_stored(stored):
    for head, rhymes_at, tones_at in ((READER, (0.1, 0.65), (0.9, 1)), (CONTROL, (0.75, 1), (0.88, 1))):
        with heads.silenced(stored, *head):
            told = exam.judged(exam.write(stored, 40, seed=7))
        assert rhymes_at[0] < told["rhyme"] <= rhymes_at[1] and tones_at[0] < min(told["opposite"]) <= tones_at[1]


def test_in_lines_of_seven_the_same_head_reads_and_half_of_the_rhyme_comes_another_way():
    told = circuit.results()["recipe-0"]["8x7"]
    assert told["whole"]["rhyme"] > 0.92
    assert -0.55 < told["cut"]["2.0 before word"]["rhyme"] < -0.4
    assert -0.2 < told["cut"]["0.1 comma word"]["rhyme"] < -0.1  # some of it over the comma of the line between
    assert told["cut"]["1.3 before comma"]["rhyme"] < -0.75 and told["cut"]["1.2 before comma"]["rhyme"] < -0.75
