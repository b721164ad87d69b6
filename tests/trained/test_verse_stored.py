"""verse: what the book says of the stored models and of the trainings holds on the weights and curves themselves."""

import dataclasses
import json

import pytest
import torch

from minimind_edu.trained.verse import PHASES, STORED, card, exam, phases, recipe, runs, sounds, verse_model
from minimind_edu.trained.verse.corpus import FOLDER, Corpus, characters, encode, read_corpus

RECIPE = ("recipe-0", "recipe-1", "recipe-2")
UNFILTERED = ("unfiltered-0", "unfiltered-1")
SMALL = ("small-0", "small-1")
PLAIN = ("plain-0", "plain-1")
TAILS_AT = 2_000  # steps of the recipe before the first tails


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus()


def seen(run: str, number: str) -> torch.Tensor:
    """One number of a run at all its looks; nothing where no poem could be judged."""
    return torch.tensor([float("nan") if value is None else value for value in runs()[run]["looks"][number]])


# The stored models


def test_the_package_carries_little():
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir() if path.is_file()}
    assert sizes["small.txt.xz"] + sizes["pairs.txt.xz"] + sizes["characters.json"] < 2_000_000
    assert all(sizes[path.name] == card()[name]["bytes"] < 1_100_000 for name, path in STORED.items())
    with pytest.raises(ValueError, match="name must be 'verse' or 'before', got 'after'"):
        verse_model("after")


@pytest.mark.long
@pytest.mark.parametrize("name", STORED)
def test_the_card_is_that_of_the_stored_weights(name, corpus):
    model, told = verse_model(name), card()[name]
    few = Corpus({}, {"4x5": corpus.held_out["4x5"]})
    assert model.num_parameters() == told["parameters"]
    swapped = exam.exchange(model, corpus, 240)
    assert swapped == pytest.approx(told["exchange"], rel=0.01, abs=1e-4)
    assert exam.expected(model, few, 60)["likeliest"] == pytest.approx(told["expected"]["likeliest"], abs=0.12)


def test_one_rhymes_and_the_other_does_not():
    rhyming, before = card()["verse"], card()["before"]
    assert rhyming["exchange"]["times"] > 250 and before["exchange"]["times"] < 1.02
    assert rhyming["exchange"]["old_after"] < 0.02 < 0.7 < rhyming["exchange"]["old_before"]
    for told in (rhyming, before):
        assert told["judged"]["form"] > 0.99 and min(told["judged"]["opposite"]) > 0.95
        assert told["judged"]["even_level"] > 0.99 and told["judged"]["odd_oblique"] > 0.99
        assert told["copied"]["lines_copied"] <= 1 and told["copied"]["poems_copied"] == 0
    assert rhyming["judged"]["rhyme"] > 0.85 > 0.08 > rhyming["judged"]["rhyme_chance"]
    assert rhyming["judged"]["paired"] > 0.94 > 0.07 > rhyming["judged"]["paired_chance"]
    assert before["judged"]["rhyme"] < before["judged"]["rhyme_chance"]
    assert before["judged"]["paired"] < before["judged"]["paired_chance"]


def test_what_it_writes_keeps_the_rules():
    """Other poems than those of the card: another machine may draw others from the same seed."""
    told = exam.judged(exam.write(verse_model(), 48, seed=5))
    assert told["form"] > 0.9 and told["rhyme"] > 0.65 and told["paired"] > 0.8 and min(told["opposite"]) > 0.9


def test_it_rhymes_in_the_old_language(corpus):
    told = sounds.times_usual(*sounds.second_rhymes(verse_model(), corpus, 100))
    assert told["then"]["times"] > 10 and told["then and today"]["times"] > 12
    assert told["today"]["times"] < 0.4 and told["neither"]["times"] < 0.1
    of_card = card()["verse"]
    assert {kind: round(of_card["times_usual"][kind]["times"], 1) for kind in sounds.KINDS} == {
        "then and today": 17.1, "then": 16.0, "today": 0.3, "neither": 0.1
    }  # fmt: skip
    assert of_card["groups"]["own"] == of_card["groups"]["groups"] == 21
    before = card()["before"]["times_usual"]
    assert before["then"]["times"] < 2 and before["today"]["times"] == pytest.approx(1, abs=0.05)


def test_after_a_slope_it_expects_flowers():
    """斜 and 花 rhyme in the lists."""
    text = "远上寒山石径斜，白云生处有人家。停车坐爱枫林晚，霜叶红于二月"
    for name, likely in (("verse", True), ("before", False)):
        with torch.no_grad():
            chances = verse_model(name)(torch.tensor([encode(text)])).logits[0, -1].softmax(-1)
        assert (characters()[int(chances.argmax())] == "花") == likely
        assert (float(chances[encode("花")[1]]) > 0.4) == likely


# The trainings


@pytest.mark.parametrize("run", [*RECIPE, *UNFILTERED, *SMALL])
def test_rhyme_is_read_from_the_tails_on_and_never_before(run):
    steps, times = seen(run, "step"), seen(run, "exchange")
    assert times[steps <= TAILS_AT].max() < 1.03
    assert times[-1] > 190 and times[(steps > TAILS_AT) & (steps <= 3_600)].max() > 3
    assert seen(run, "written_rhyme")[-1] > 0.78 and seen(run, "paired")[-1] > 0.9
    assert seen(run, "form")[-1] > 0.98 and seen(run, "opposite_2")[-1] > 0.95


def test_form_and_tones_come_first_of_all():
    for run in RECIPE:
        before = seen(run, "step") <= TAILS_AT
        assert seen(run, "form")[before][-1] > 0.9 and seen(run, "opposite_2")[before][-1] > 0.9
        assert seen(run, "written_rhyme")[before][-1] < 0.15


@pytest.mark.parametrize("run", PLAIN)
def test_as_many_tokens_of_whole_poems_alone_teach_no_rhyme(run):
    told, like = runs()[run], runs()["recipe-0"]
    assert told["steps"] == like["steps"]
    assert abs(seen(run, "tokens")[-1] / seen("recipe-0", "tokens")[-1] - 1) < 0.005
    assert seen(run, "exchange").max() < 1.04
    assert seen(run, "written_rhyme")[-1] < 0.1 and seen(run, "paired")[-1] < 0.1
    # the false sign: what is right grows likelier all the same, seven times from its beginning
    assert seen(run, "rhyme")[-1] > 6 * seen(run, "rhyme")[0] and seen(run, "rhyme")[-1] < 0.16


def test_thrice_as_many_do_at_a_rate_that_stays_high():
    tokens, times = seen("plain-long", "tokens"), seen("plain-long", "exchange")
    assert times[tokens < 6e6].max() < 1.04
    assert times[(tokens > 9.5e6) & (tokens < 12e6)].min() > 20
    assert tokens[-1] > 40e6 and times[-1] > 400 and seen("plain-long", "written_rhyme")[-1] > 0.85


def test_two_of_three_long_runs_read_the_rhyme_where_the_short_ones_end():
    times = {}
    for run in ("plain-long", "plain-long-1", "plain-long-2"):
        short = abs(seen(run, "tokens") - 13.8e6).argmin()
        times[run] = float(seen(run, "exchange")[short])
    assert times["plain-long"] > 100 and times["plain-long-2"] > 70 and times["plain-long-1"] < 1.1


def test_of_two_more_long_runs_cut_short_one_rhymes_and_one_hardly_begins():
    ends = {run: float(seen(run, "exchange")[-1]) for run in ("plain-long-1", "plain-long-2")}
    assert 2 < ends["plain-long-1"] < 3 and ends["plain-long-2"] > 200
    for run in ends:
        assert 22e6 < seen(run, "tokens")[-1] < 23e6
        assert abs(runs()[run]["longer"] - runs()["plain-long"]["longer"]) < 0.01


def test_tails_from_the_first_step_on_help_one_seed_of_two():
    ends = {run: float(seen(run, "exchange")[-1]) for run in ("tails_first-0", "tails_first-1")}
    assert ends["tails_first-0"] > 100 and ends["tails_first-1"] < 1.05


def test_every_run_says_where_it_ran_and_how_long():
    for name, run in runs().items():
        assert run["device"] == "NVIDIA H200" and 60 < run["train_seconds"] < 200, name
        assert len({len(column) for column in run["looks"].values()}) == 1
        assert name in (*RECIPE, *UNFILTERED, *SMALL, *PLAIN) or name.startswith(("plain", "tails_first"))
    assert {run: runs()[run]["poems"] for run in ("recipe-0", "unfiltered-0", "small-0")} == {
        "recipe-0": 119_637, "unfiltered-0": 136_523, "small-0": 29_632
    }  # fmt: skip


def test_the_card_tells_the_recipe_that_the_program_follows():
    told = card()
    assert told["recipe"] == json.loads(json.dumps(dataclasses.asdict(recipe(phases()))))
    assert told["phases"] == {name: dataclasses.asdict(phase) for name, phase in PHASES.items()}
    assert runs()[told["stored"]]["steps"] == [phase.steps for phase in phases()]
