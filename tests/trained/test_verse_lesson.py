"""verse.lesson: the minute in which rhyme appears, and what it is compared with."""

import json

import pytest

from minimind_edu.trained.verse import lesson, phases, recipe
from minimind_edu.trained.verse.corpus import Phase, read_corpus


def test_the_ways_differ_in_one_thing_each():
    ways = lesson.ways()
    [chosen], constant = ways["line ends"]
    assert ([chosen], constant) == (phases("lesson"), recipe(phases("lesson")))
    [uncut], same = ways["uncut"]
    assert same == constant and uncut == Phase(chosen.steps, chosen.tokens, {"8x5": 1.0})
    [again], falling = ways["falling rate"]
    assert again == chosen and falling.rate(chosen.steps - 1) < 0.06 * constant.learning_rate
    assert constant.rate(chosen.steps - 1) == constant.learning_rate == falling.learning_rate


def test_line_ends_teach_in_every_seed_and_the_same_octaves_uncut_in_none():
    stored = lesson.results()
    assert list(stored) == [*lesson.ways()]
    for seeds in stored.values():
        assert [int(seed) for seed in seeds] == [*lesson.SEEDS]
        assert {len(times) for times in seeds.values()} == {phases("lesson")[0].steps // lesson.EVERY + 1}
        assert all(0.98 < times[0] < 1.02 for times in seeds.values())
    assert all(times[-1] > 10 for times in stored["line ends"].values())
    assert all(max(times) < 1.1 for times in stored["uncut"].values())
    for seed, times in stored["falling rate"].items():
        assert times[-1] < stored["line ends"][seed][-1] / 2


def test_what_is_stored_begins_as_a_training_does(monkeypatch, tmp_path, capsys):
    """The first looks of a short run are those of the long one; and the program writes what the book reads."""
    monkeypatch.setattr(lesson, "EVERY", 1)
    monkeypatch.setattr(lesson, "POEMS", 8)
    short = {way: ([Phase(2, 128, phase.shares)], rate) for way, ([phase], rate) in lesson.ways().items()}
    short = {way: (chosen, recipe(chosen)) for way, (chosen, _) in short.items()}
    monkeypatch.setattr(lesson, "ways", lambda: short)
    monkeypatch.setattr(lesson, "SEEDS", (5,))
    monkeypatch.setattr("sys.argv", ["lesson", "--into", str(tmp_path / "lesson.json")])
    lesson.main()
    told = json.loads((tmp_path / "lesson.json").read_text(encoding="utf-8"))
    assert list(told) == [*short] and all(len(times["5"]) == 3 for times in told.values())
    assert told["uncut"]["5"] == pytest.approx(lesson.seen(read_corpus(), "uncut", 5), abs=0.02)
