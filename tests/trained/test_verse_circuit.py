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


def test_averaged_over_places_no_head_tells_which_place_this_is(model, octaves):
    """The commas of all lines are then alike to the model; averaged over poems alone, they are not."""
    commas = [line_end(line, 5) + 1 for line in range(0, 8, 2)]
    every = [(layer, head) for layer in range(3) for head in range(4)]
    with torch.no_grad():
        with circuit.averaged(model, *every, places=True):
            alike = model(octaves).logits[:, commas]
        with circuit.averaged(model, *every):
            apart = model(octaves).logits[:, commas]
    assert torch.allclose(alike, alike[:1, :1].expand_as(alike), atol=1e-4)
    assert torch.allclose(apart, apart[:1].expand_as(apart), atol=1e-4)
    assert not torch.allclose(apart, apart[:, :1].expand_as(apart), atol=1e-3)


@pytest.mark.parametrize("way", circuit.WITHOUT)
def test_a_head_is_done_without_in_the_way_that_is_named(model, octaves, way):
    mask = circuit.edges("8x5", "before", "word")
    ways = {
        "words cut": circuit.cut(model, {(1, 2): mask}),
        "averaged": circuit.averaged(model, (1, 2)),
        "silenced": heads.silenced(model, 1, 2),
    }
    whole = circuit.kept(model, "8x5", octaves)
    with ways[way]:
        wanted = circuit.kept(model, "8x5", octaves)
    with circuit.without(model, (1, 2), way, "8x5"):
        assert circuit.kept(model, "8x5", octaves) == wanted != whole
    with circuit.without(model, (1, 2), "whole", "8x5"):
        assert circuit.kept(model, "8x5", octaves) == whole
    with pytest.raises(ValueError, match="way must be 'words cut' or 'averaged' or 'silenced' or 'whole', got 'half'"):
        circuit.without(model, None, "half", "8x5")


def test_of_line_one_only_its_end_is_a_first_word(octaves):
    mask = circuit.edges("8x5", "before", circuit.FIRST)
    assert mask.any(0).nonzero()[:, 0].tolist() == [line_end(0, 5)]
    assert torch.equal(mask.any(1), circuit.edges("8x5", "before", "word").any(1))
    assert circuit.edges("8x5", "comma", circuit.FIRST)[line_end(0, 5) + 1, line_end(0, 5)]


def test_ways_are_cut_one_after_the_other(model, octaves):
    """What a step leaves is what the same edges leave when they are cut at once."""
    told = circuit.routes(model, "8x5", octaves)
    assert list(told) == ["whole", *circuit.ROUTES]
    assert len({of["loss"] for of in told.values()}) == len(told)  # every step cuts something
    assert told["whole"] == circuit.kept(model, "8x5", octaves)
    every = [(layer, head) for layer in range(3) for head in range(4)]
    kinds = [("before", "word"), ("before", circuit.FIRST), ("comma", "word"), ("comma", circuit.FIRST)]
    mask = torch.stack([circuit.edges("8x5", *kind) for kind in kinds]).any(0)
    with circuit.cut(model, dict.fromkeys(every, mask)):
        assert told["comma"] == pytest.approx(circuit.kept(model, "8x5", octaves), abs=1e-6)


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
    """One head of the last block in two seeds, two of the first block in the third; in fives all read the words."""
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
    for run in ("recipe-0", "recipe-1", "recipe-2"):  # in fives nobody carries the word over the full stop
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


def left(run: str, form: str) -> dict[str, float]:
    """What is left of the rhyme as its ways are cut one after the other."""
    return {way: of["rhyme"] for way, of in circuit.results()[run]["routes"][form].items()}


def test_the_four_ways_are_all_the_ways_in_every_model_and_form():
    """What is left is what a line foretells: what a model has that reads no rhyme."""
    rhyming = [run for run in circuit.results() if run != "before"]
    assert len(rhyming) == 9
    for run in rhyming:
        for form in exam.WHOLE:
            ways, tones = left(run, form), circuit.results()[run]["routes"][form]
            assert ways["whole"] > 0.83 and 0.06 < ways["stop"] < 0.19, (run, form)
            assert all(abs(of["tones"] - tones["whole"]["tones"]) < 0.025 for of in tones.values())
    for form in exam.WHOLE:
        assert all(0.07 < share < 0.12 for share in left("before", form).values())


def test_models_differ_in_the_ways_they_take():
    ways = {run: left(run, "8x7") for run in circuit.results()}
    assert ways["recipe-0"]["line 1"] > 0.4 and ways["recipe-0"]["comma"] < 0.16  # words, and commas
    assert ways["recipe-1"]["comma"] > 0.5 and ways["recipe-1"]["stop"] < 0.13  # words, line 1, full stops
    for run in ("recipe-2", "plain-long"):  # words and line 1
        assert ways[run]["words"] > 0.45 and ways[run]["line 1"] < 0.19
    assert ways["small-0"]["comma"] > 0.85 and ways["small-0"]["stop"] < 0.13  # full stops alone
    assert left("small-0", "8x5")["comma"] > 0.85
    assert left("small-1", "8x5")["line 1"] > 0.75 and left("small-1", "8x5")["comma"] < 0.25  # commas
    for run in ("recipe-1", "recipe-2", "plain-long", "unfiltered-0", "unfiltered-1", "tails_first-0"):
        assert left(run, "8x5")["words"] < 0.18  # in fives the words alone


def test_where_the_stored_model_takes_its_ways_on_its_weights(stored):
    """A few poems: the stored numbers are of 120."""
    ids = read_corpus().held_out["8x7"][:16].long()
    told, wanted = circuit.routes(stored, "8x7", ids), circuit.results()["recipe-0"]["routes"]["8x7"]
    assert all(abs(told[way]["rhyme"] - wanted[way]["rhyme"]) < 0.12 for way in wanted)


def test_one_head_writes_into_the_full_stop_and_another_reads_it_there():
    of = circuit.results()["small-0"]["8x5"]["cut"]
    assert of["0.3 stop word"]["rhyme"] < -0.75 and of["1.0 before stop"]["rhyme"] < -0.7
    assert not any(name.endswith("before word") for name in of)  # the words are not read at the rhyme
    other = circuit.results()["small-1"]["8x5"]["cut"]
    assert other["0.3 comma word"]["rhyme"] < -0.45
    assert other["1.0 before comma"]["rhyme"] < -0.6 and other["2.3 before comma"]["rhyme"] < -0.4


def test_some_heads_are_a_clock(stored, twenty):
    """They are missed only where they say the same at every place; the reader is missed either way."""
    whole = circuit.kept(stored, "8x5", twenty)
    for head, at_least in ((TONES, 0.12), ((1, 3), 0.2), ((0, 2), 2.0)):
        with circuit.averaged(stored, head):
            assert circuit.kept(stored, "8x5", twenty)["loss"] - whole["loss"] < 0.06
        with circuit.averaged(stored, head, places=True):
            assert circuit.kept(stored, "8x5", twenty)["loss"] - whole["loss"] > at_least
    with circuit.averaged(stored, READER):
        assert circuit.kept(stored, "8x5", twenty)["rhyme"] - whole["rhyme"] < -0.3


@pytest.mark.parametrize("form, rhyme_lost", [("8x5", (0.2, 0.4)), ("8x7", (-0.02, 0.02))])
def test_silence_of_2_1_costs_fives_a_third_of_the_rhyme_and_sevens_none(stored, form, rhyme_lost):
    ids = circuit.of_form(read_corpus(), form, 60)
    whole = circuit.kept(stored, form, ids)
    with circuit.without(stored, TONES, "silenced", form):
        lost = whole["rhyme"] - circuit.kept(stored, form, ids)["rhyme"]
    assert rhyme_lost[0] < lost < rhyme_lost[1]
    with circuit.without(stored, TONES, "averaged", form):
        assert abs(whole["rhyme"] - circuit.kept(stored, form, ids)["rhyme"]) < 0.02
