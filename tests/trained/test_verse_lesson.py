"""verse.lesson: the half minute in which rhyme appears, and what it is compared with."""

import json
from dataclasses import replace

import pytest

from minimind_edu.trained.verse import lesson, phases, recipe
from minimind_edu.trained.verse.corpus import Phase, batches, read_corpus


def poems(phase: Phase, seed: int = 5) -> dict[str, float]:
    """How many poems are read of fives, and of sevens, cut or whole. Line ends do not say of which: they are shared out
    as the octaves are that they are cut from."""
    corpus, found = read_corpus(), dict.fromkeys(lesson.FORMS, 0.0)
    sizes = [len(corpus.training[form]) for form in lesson.FORMS]
    for ids in batches(corpus, [phase], seed):
        if ids.shape[1] == corpus.training["8x1"].shape[1]:
            for form, size in zip(lesson.FORMS, sizes, strict=True):
                found[form] += len(ids) * size / sum(sizes)
        else:
            found[next(form for form in lesson.FORMS if corpus.training[form].shape[1] == ids.shape[1])] += len(ids)
    return found


def test_the_ways_differ_in_one_thing_each():
    (ends, trained), (uncut, same), (longer, as_long) = (
        lesson.ways()[way] for way in ("line ends", "uncut", "as many poems")
    )
    assert [ends] == phases("lesson") and trained == recipe([ends]) == same
    assert (uncut.steps, uncut.tokens) == (ends.steps, ends.tokens) and {*uncut.shares} == {*lesson.FORMS}
    read = {way: poems(lesson.ways()[way][0]) for way in ("line ends", "uncut", "as many poems")}
    fives = {way: of["8x5"] / sum(of.values()) for way, of in read.items()}
    assert max(fives.values()) - min(fives.values()) < 0.02  # the same octaves, in the same proportion
    assert sum(read["as many poems"].values()) == pytest.approx(sum(read["line ends"].values()), rel=0.02)
    assert replace(as_long, steps=same.steps) == same and longer.tokens == ends.tokens
    for way, times in (("half the rate", 0.5), ("twice the rate", 2)):
        assert lesson.ways()[way] == (ends, replace(trained, learning_rate=times * trained.learning_rate))


def test_line_ends_teach_in_every_seed_and_the_same_octaves_uncut_in_none():
    stored = lesson.results()
    assert list(stored) == [*lesson.ways()]
    for way, seeds in stored.items():
        assert [int(seed) for seed in seeds] == [*lesson.SEEDS]
        for looks in (of for forms in seeds.values() for of in forms.values()):
            assert len(looks) == lesson.ways()[way][0].steps // lesson.EVERY + 1 and looks[0] == pytest.approx(
                1, abs=0.02
            )
    last = {
        way: [[forms[form][-1] for forms in seeds.values()] for form in lesson.FORMS] for way, seeds in stored.items()
    }
    assert min(last["line ends"][0]) > 9 and 1.5 < min(last["line ends"][1]) <= max(last["line ends"][1]) < 5
    assert 2.5 < min(last["half the rate"][0]) <= max(last["half the rate"][0]) < 7
    assert max(last["twice the rate"][0]) < 1.1
    for way in ("uncut", "as many poems"):
        assert all(max(of) < 1.04 for forms in stored[way].values() for of in forms.values())


def test_what_is_stored_begins_as_a_training_does(monkeypatch, tmp_path, capsys):
    """The first looks of a short run are those of the long one; and the program writes what the book reads."""
    monkeypatch.setattr(lesson, "EVERY", 1)
    monkeypatch.setattr(lesson, "POEMS", 8)
    short = {way: (Phase(2, 128, phase.shares), replace(of, steps=2)) for way, (phase, of) in lesson.ways().items()}
    monkeypatch.setattr(lesson, "ways", lambda: short)
    monkeypatch.setattr(lesson, "SEEDS", (5,))
    monkeypatch.setattr("sys.argv", ["lesson", "--into", str(tmp_path / "lesson.json")])
    lesson.main()
    told = json.loads((tmp_path / "lesson.json").read_text(encoding="utf-8"))
    assert list(told) == [*short] and all(len(of["5"][form]) == 3 for of in told.values() for form in lesson.FORMS)
    again = lesson.seen(read_corpus(), *short["uncut"], 5)
    assert all(told["uncut"]["5"][form] == pytest.approx(again[form], abs=0.02) for form in lesson.FORMS)
