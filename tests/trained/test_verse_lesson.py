"""verse.lesson: the minute in which rhyme appears, and what it is compared with."""

import json

import pytest

from minimind_edu.trained.verse import lesson, phases, recipe
from minimind_edu.trained.verse.corpus import Phase, read_corpus


def test_the_ways_differ_in_what_is_read_alone():
    chosen, uncut = lesson.WAYS["line ends"], lesson.WAYS["uncut"]
    assert [chosen] == phases("lesson") and uncut == Phase(chosen.steps, chosen.tokens, {"8x5": 1.0})
    assert recipe([chosen]) == recipe([uncut])


def test_line_ends_teach_in_every_seed_and_the_same_octaves_uncut_in_none():
    stored = lesson.results()
    assert list(stored) == [*lesson.WAYS]
    for seeds in stored.values():
        assert [int(seed) for seed in seeds] == [*lesson.SEEDS]
        assert {len(times) for times in seeds.values()} == {phases("lesson")[0].steps // lesson.EVERY + 1}
        assert all(0.98 < times[0] < 1.02 for times in seeds.values())
    assert all(times[-1] > 10 for times in stored["line ends"].values())
    assert all(max(times) < 1.1 for times in stored["uncut"].values())


def test_what_is_stored_begins_as_a_training_does(monkeypatch, tmp_path, capsys):
    """The first looks of a short run are those of the long one; and the program writes what the book reads."""
    monkeypatch.setattr(lesson, "EVERY", 1)
    monkeypatch.setattr(lesson, "POEMS", 8)
    short = {way: Phase(2, 128, phase.shares) for way, phase in lesson.WAYS.items()}
    monkeypatch.setattr(lesson, "WAYS", short)
    monkeypatch.setattr(lesson, "SEEDS", (5,))
    monkeypatch.setattr("sys.argv", ["lesson", "--into", str(tmp_path / "lesson.json")])
    lesson.main()
    told = json.loads((tmp_path / "lesson.json").read_text(encoding="utf-8"))
    assert list(told) == [*short] and all(len(times["5"]) == 3 for times in told.values())
    assert told["uncut"]["5"] == pytest.approx(lesson.seen(read_corpus(), "uncut", 5), abs=0.02)
