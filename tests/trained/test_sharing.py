"""sharing: texts that can be answered, heads shared as a variant says, and stored runs that hold what is told."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

from minimind_edu.model.attention import attention
from minimind_edu.trained import sharing
from minimind_edu.trained.sharing import (
    PEOPLE,
    PROPERTIES,
    QUERY_HEADS,
    SEEDS,
    STEPS,
    VALUES,
    VARIANTS,
    Variant,
    __main__,
    accuracy,
    new_reader,
    run,
    runs,
    texts,
)


def some_texts(count=50, seed=0):
    return texts(count, np.random.Generator(np.random.PCG64(seed)))


def test_the_answer_names_who_has_what_is_asked_for():
    given = some_texts()
    for values, names, asked, answer in zip(given.values, given.names, given.asked, given.answer, strict=True):
        for place in range(PROPERTIES):
            [who] = (values[:, place] == asked[place]).nonzero()  # one person, and no other
            assert names[who.item()] == answer[place]


def test_people_of_a_text_differ_in_every_property_and_in_their_names():
    given = some_texts()
    for several in (given.names[:, :, None], given.values):
        assert 0 <= several.min() and several.max() < VALUES
        assert all(len(set(column.tolist())) == PEOPLE for text in several for column in text.T)
    assert len({tuple(row) for row in given.answer.tolist()}) > 40


def test_a_reader_is_one_layer_of_the_books_attention():
    reader, given = new_reader(Variant(4, 4), seed=3), some_texts(5)
    people = reader.names(given.names) + sum(
        reader.values(given.values[:, :, place] + VALUES * place) for place in range(PROPERTIES)
    )
    question = sum(reader.asked(given.asked[:, place] + VALUES * place) for place in range(PROPERTIES))
    query = reader.q_proj(question).view(5, 1, QUERY_HEADS, 4)
    key, value = (proj(people).view(5, PEOPLE, 4, 4) for proj in (reader.k_proj, reader.v_proj))
    output, _ = attention(query, key, value, None)
    expected = reader.head(reader.o_proj(output.view(5, -1))).view(5, PROPERTIES, VALUES)
    torch.testing.assert_close(reader(given.values, given.names, given.asked), expected)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_shared_heads_are_equal_heads(variant):
    """A variant computes what a layer with four heads of its width does whose heads are copies of the shared ones."""
    reader, whole, given = new_reader(variant, 1), new_reader(Variant(4, 4, variant.head_dim), 1), some_texts(4)
    state = reader.state_dict()
    for name, heads in {"k_proj.weight": variant.key_heads, "v_proj.weight": variant.value_heads}.items():
        assert len(state[name]) == heads * variant.head_dim
        state[name] = state[name].unflatten(0, (heads, -1)).repeat_interleave(QUERY_HEADS // heads, 0).flatten(0, 1)
    whole.load_state_dict(state)
    shown = given.values, given.names, given.asked
    torch.testing.assert_close(reader(*shown), whole(*shown))


def test_kept_are_the_keys_and_values_of_a_position():
    assert {name: variant.kept for name, variant in VARIANTS.items()} == {
        "K = 4": 32,
        "K = 2": 16,
        "K = 1": 8,
        "K = 1, but four key heads": 20,
        "K = 1, but four value heads": 20,
        "K = 1, twice as wide": 16,
        "K = 1, four times as wide": 32,
    }


class Says(nn.Module):
    """Answers what it was told to."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, values, names, asked):
        return nn.functional.one_hot(self.answer, VALUES)


def test_accuracy_counts_names():
    exam = some_texts(10)
    said = exam.answer.clone()
    assert accuracy(Says(said), exam) == 1
    said[:5, 0] = (said[:5, 0] + 1) % VALUES
    assert accuracy(Says(said), exam) == pytest.approx(35 / 40)


def test_training_teaches_and_is_repeatable():
    few, many = (run(VARIANTS["K = 4"], seed=0, steps=steps) for steps in (2, 250))
    assert few < 0.2 and many > few + 0.1
    assert run(VARIANTS["K = 4"], seed=0, steps=2) == few
    assert run(VARIANTS["K = 4"], seed=1, steps=2) != few


def test_the_program_writes_what_the_book_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(__main__, "run", lambda variant, seed, steps: seed / 10 + steps)
    monkeypatch.setattr(sys, "argv", ["sharing", "--into", str(tmp_path / "new" / "runs.json")])
    __main__.main()
    monkeypatch.setattr(sharing, "RUNS", tmp_path / "new" / "runs.json")
    for steps in STEPS:
        assert runs(steps) == dict.fromkeys(VARIANTS, [steps + seed / 10 for seed in SEEDS])
    monkeypatch.setattr(sys, "argv", ["sharing", "--steps", "20"])
    with pytest.raises(SystemExit):
        __main__.main()
    assert "--into PATH must say where" in capsys.readouterr().err


# What chapter 6 says of the runs

SHORT, LONG = STEPS


def spread(name, steps):
    """The lowest and the highest accuracy of a variant's seeds."""
    return min(runs(steps)[name]), max(runs(steps)[name])


@pytest.mark.parametrize("steps", STEPS)
def test_every_variant_is_stored_with_all_seeds(steps):
    assert list(runs(steps)) == list(VARIANTS)
    assert all(len(shares) == len(SEEDS) for shares in runs(steps).values())


@pytest.mark.parametrize("steps", STEPS)
def test_four_heads_name_all_and_one_never_does(steps):
    assert spread("K = 4", steps)[0] > 0.99
    assert spread("K = 1", steps)[1] < 0.6


def test_two_heads_need_the_longer_training():
    assert 0.75 < spread("K = 2", SHORT)[0] < 0.85 and spread("K = 2", SHORT)[1] > 0.99
    assert spread("K = 2", LONG)[0] > 0.99


@pytest.mark.parametrize("steps", STEPS)
def test_it_is_the_keys_that_one_head_cannot_hold(steps):
    assert spread("K = 1, but four key heads", steps)[0] > 0.99
    assert spread("K = 1, but four value heads", steps)[1] < 0.6


@pytest.mark.parametrize("steps", STEPS)
def test_what_counts_is_how_many_numbers_the_keys_have(steps):
    assert spread("K = 1, twice as wide", steps) == pytest.approx(spread("K = 2", steps), abs=0.03)
    assert spread("K = 1, four times as wide", steps)[0] > 0.99
