"""What a rounded model writes: what kind a first mistake is, and what is stored of it."""

import math

import pytest
import torch

from minimind_edu import world
from minimind_edu.model.quantization import Grid, rounded_model
from minimind_edu.trained.living import STORED, living_model, written

MIA = "<s> Mia is in the hall. "
GRIDS = [(per, str(bits)) for per in written.PER for bits in written.BITS]


def ids(text):
    return world.encode(text).tolist()


@pytest.fixture(scope="module")
def found():
    return written.results()


@pytest.mark.parametrize(
    "told, kind, word",
    [
        ("where is Mia? in the hall. Mia goes from the hall to the attic.", "holds", None),
        ("⇒ 米娅在大厅。", "holds", None),
        ("where is Mia? in the attic.", "false", "attic"),
        ("the key is picked up by Leo", "false", "Leo"),
        ("⇒ 米娅在阁楼。", "false", "阁楼"),
        ("the key is picked up by Mia 在", "other language", "在"),
        ("钥匙被米娅 in the", "other language", "in the"),
        ("⇒ Mia is in the", "false", "Mia"),
        ("the key is picked up by Mia in the hall 在", "other language", "在"),
        ("Leo is in the study. where is everybody? Mia: hall, Leo: garage", "false", "garage"),
        ("where is is in the", "malformed", "is in the"),
        ("is in the", "malformed", "is in the"),
        ("the key is picked up by Mia in the attic. 米娅 the", "false", "attic"),
    ],
)
def test_the_first_impossible_word_says_what_is_wrong(told, kind, word):
    story = ids(MIA + told)
    at = written.first_impossible(story)
    assert (None if at is None else world.WORDS[story[at]]) == word
    assert written.mistake(story) == kind


def test_stories_of_the_world_hold():
    stories = torch.from_numpy(world.stories(40, 96, seed=3))
    assert written.counts(stories) == {"holds": 40, "false": 0, "other language": 0, "malformed": 0}


def test_all_stories_are_counted_once(found):
    assert set(found) == set(STORED)
    for name, of_model in found.items():
        assert [(per, bits) for per in of_model for bits in of_model[per]] == GRIDS
        for per, bits in GRIDS:
            of_grid = of_model[per][bits]
            assert sum(of_grid[kind] for kind in written.MISTAKES) == written.STORIES
            assert len(of_grid.get("stories", [])) == (written.SHOWN if name == "living" else 0)


def test_shown_stories_begin_alike_and_those_of_the_stored_model_hold(found):
    beginning = ids(written.BEGINNING)
    for per, bits in GRIDS:
        for story in found["living"][per][bits]["stories"]:
            assert story[: len(beginning)] == beginning and len(story) == len(beginning) + written.NEW
    for story in found["living"]["row"]["8"]["stories"]:
        assert written.mistake(story) == "holds" and world.decode(story).isascii()


@pytest.mark.long
def test_a_rounded_model_writes_what_is_stored(found):
    model = living_model()
    seeds = written.shown_seeds(model)
    rounded = rounded_model(model, Grid(3)).eval()
    assert [written.shown(rounded, seed) for seed in seeds] == found["living"]["row"]["3"]["stories"]


def test_a_story_depends_on_its_seed_alone():
    model = living_model()
    first, again, other = (written.write(model, 2, seed, 30) for seed in (1, 1, 2))
    assert first.shape == (2, 30) and first.equal(again) and not first.equal(other)
    assert not first[0].equal(first[1])


# What the lesson says


@pytest.mark.parametrize("name", STORED)
def test_three_bits_tell_hardly_a_story_to_its_end_and_four_as_many_as_eight(found, name):
    holds = {bits: of_grid["holds"] for bits, of_grid in found[name]["row"].items()}
    assert holds["2"] == 0 < holds["3"] < 20
    share = holds["8"] / written.STORIES
    standard_error = math.sqrt(2 * share * (1 - share) * written.STORIES)  # of a difference
    assert abs(holds["4"] - holds["8"]) < 2 * standard_error


@pytest.mark.parametrize("name", STORED)
def test_one_scale_for_a_matrix_loses_more_than_half_of_the_stories_with_four_bits(found, name):
    assert found[name]["tensor"]["4"]["holds"] < found[name]["row"]["4"]["holds"] / 2


def test_how_the_stories_fail_differs_between_the_models(found):
    living, twin = (found[name]["row"]["3"] for name in ("living", "twin"))
    assert living["other language"] > living["false"] + living["malformed"]
    assert twin["false"] > twin["other language"] + twin["malformed"]
