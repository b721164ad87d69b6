"""Why a text repeats itself: what counts as a loop, the author who knows the world, and what is stored of models."""

import numpy as np
import pytest
import torch

from minimind_edu import world
from minimind_edu.trained.living import draft_model, living_model
from minimind_edu.trained.living import repeating as module

YOUNGER = [f"{steps} steps, seed {seed}" for steps in module.STEPS for seed in module.SEEDS]
LARGE = [f"large, {module.LARGE_STEPS} steps, seed {seed}" for seed in module.SEEDS]
MODELS = ["living", "twin", "draft", *YOUNGER, *LARGE]


@pytest.fixture(scope="module")
def found():
    return module.results()


@pytest.mark.parametrize(
    "text, period",
    [
        ([7] * 40, 1),
        ([9, 9, 9] + [1, 2] * 20, 2),
        ([1, 2, 3] * 14, 3),
        (list(range(20)) * 2, 20),
        ([1, 2] * 19 + [1, 3], None),
        (list(range(40)), None),
        (list(range(21)) * 3, None),  # longer than the longest
    ],
)
def test_a_loop_is_an_end_that_repeats_itself(text, period):
    assert module.period(text) == period


def test_the_author_who_knows_the_world_says_nothing_false_with_any_lever():
    begun = module.beginnings()[:3]
    for lever in module.LEVERS:
        texts = module.by_the_world(begun, lever)
        assert texts.shape == (3, module.BEGUN + module.NEW) and texts[:, : module.BEGUN].equal(begun)
        assert module.counts(texts)["true"] == 3


def test_counts_tell_loops_false_loops_and_true_texts():
    told = world.encode("<s> Mia is in the hall.").tolist()
    asked = world.encode("where is Mia? in the hall.").tolist()
    wrong = world.encode("where is Mia? in the attic.").tolist()
    true, false = told + asked * 7, told + wrong * 7
    plain = world.stories(1, len(true), seed=3)[0].tolist()
    assert module.counts(torch.tensor([true, true, false, plain])) == {"loops": 3, "false_loops": 1, "true": 3}


def test_repeated_is_the_share_of_characters_that_have_stood_before():
    assert module.repeated(["山山水，"]) == pytest.approx(1 / 3)
    assert module.repeated(["山水", "水山"]) == 0


@pytest.mark.parametrize("name, lever", [("living", "greedy"), ("draft", "penalty 1.2")])
def test_what_is_stored_of_a_model_is_found_again(found, name, lever):
    model = living_model() if name == "living" else draft_model()
    again = module.counts(module.continued(model, module.beginnings(), lever))
    assert all(abs(again[key] - found[name][lever][key]) <= 1 for key in again)


def test_every_author_is_counted_with_every_lever(found):
    for name in ("world", *MODELS):
        of_author = [found[name][lever] for lever in module.LEVERS]
        assert all(0 <= one["false_loops"] <= one["loops"] <= 60 >= one["true"] for one in of_author)
    assert all(one["true"] == 60 and not one["false_loops"] for one in found["world"].values())


# What chapter 12 says


def loops(found, name, lever):
    return found[name][lever]["loops"]


@pytest.mark.parametrize("name", ["world", "living", "twin", "draft", "1000 steps, seed 1", "1000 steps, seed 2"])
def test_chance_ends_the_loops_of_the_rule_in_every_author(found, name):
    assert loops(found, name, "greedy") >= 10
    assert loops(found, name, "temperature 1") == loops(found, name, "top-p 0.9") == 0


def test_the_models_add_loops_with_something_false(found):
    assert all(found[name]["greedy"]["false_loops"] >= 10 for name in ("living", "twin", "draft"))


def test_a_penalty_helps_the_models_and_not_the_author_who_knows_the_world(found):
    for name in ("living", "twin"):
        assert (
            loops(found, name, "penalty 1.2") < 10 < found[name]["greedy"]["true"] < found[name]["penalty 1.2"]["true"]
        )
    assert loops(found, "world", "penalty 1.5") > loops(found, "world", "greedy")


def test_a_penalty_looks_at_the_zero_of_the_logits_which_no_probability_shows(found):
    lowered = found["lowered"]
    assert lowered["0"] == found["world"][module.PENALTY]
    assert max(lowered["-10"]["loops"], lowered["10"]["loops"]) < 5 < lowered["0"]["loops"]


def test_lowering_all_logits_changes_nothing_but_what_a_penalty_does():
    begun = module.beginnings()[:2]
    plain, lowered = (module.by_the_world(begun, "greedy", by) for by in (0, 10))
    assert torch.equal(plain, lowered)
    penalized = [module.by_the_world(begun, module.PENALTY, by) for by in (0, 10)]
    assert not torch.equal(*penalized)


def test_size_and_steps_make_texts_true_most_of_it_together_and_do_not_end_loops(found):
    small = max(found[name]["greedy"]["true"] for name in ("1000 steps, seed 1", "1000 steps, seed 2"))
    for names in (["draft"], LARGE):  # steps alone, size alone
        assert small < max(found[name]["greedy"]["true"] for name in names) < 15
    for name in ("living", "twin"):
        assert found[name]["greedy"]["true"] > 30 and loops(found, name, "greedy") > loops(found, "world", "greedy")


def test_greedy_verse_repeats_more_of_its_characters_than_drawn_verse_and_poets(found):
    poems = found["poems"]
    for name in ("verse", "before"):
        assert poems[name]["greedy"] > 2 * poems[name]["temperature 1"] > 2 * poems["poets"]


def test_the_stored_texts_are_ends_of_texts(found):
    for name in MODELS:
        assert len(np.atleast_1d(world.encode(found[name]["text"]))) == module.SHOWN
