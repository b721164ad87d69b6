"""ablations.exam: a model that knows everything gets the entropy and all answers; one that errs is found out."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.trained.ablations import new_model
from minimind_edu.trained.ablations.exam import accuracy, accuracy_along, greedy_answer, loss, right_answers, with_yarn
from minimind_edu.trained.ablations.lists import EQUALS, IDS, WORDS, distributions, entropy, write_rows

ROWS = write_rows(12, 40, seed=2)


def knowing(spoil=lambda row, logits: None):
    """A model whose probabilities are the exact ones, but for what `spoil` does to the logits [T, V] of a row."""

    def model(ids):
        found = []
        for row in ids.numpy():
            logits = torch.from_numpy(distributions(row)).clamp(min=1e-12).log()
            spoil(row, logits)
            found.append(logits)
        return SimpleNamespace(logits=torch.stack(found))

    return model


def never_sorts(row, logits):
    task = ""
    for at, word in enumerate(row):
        task = WORDS[word] if WORDS[word] in ("copy", "reverse", "sort") else task
        if word == EQUALS and task == "sort":
            logits[at] = 0
            logits[at, IDS[";"]] = 9


def forgets_after_20(row, logits):
    logits[20:] = 0
    logits[20:, IDS["copy"]] = 9


def never_ends(row, logits):
    logits[:, IDS[";"]] = -99
    logits[:, IDS["copy"]] = -9


def test_who_knows_the_world_reaches_its_entropy():
    assert loss(knowing(), ROWS) == pytest.approx(entropy(ROWS), abs=1e-6)
    assert loss(new_model("whole", 0), ROWS) > 1.5 * entropy(ROWS)


def test_right_answers_are_whole_answers():
    assert accuracy(knowing(), ROWS) == {"copy": 1.0, "reverse": 1.0, "sort": 1.0}
    assert accuracy(knowing(never_sorts), ROWS) == {"copy": 1.0, "reverse": 1.0, "sort": 0.0}


def test_answers_are_told_by_their_place():
    found = right_answers(knowing(forgets_after_20), ROWS)
    assert all(right == (start <= 20 and right) for _, start, right in found)
    assert any(right for *_, right in found) and not any(right for _, start, right in found if start > 20)
    assert accuracy_along(knowing(), ROWS, 20) == [1.0, 1.0]
    first, second = accuracy_along(knowing(forgets_after_20), ROWS, 20)
    assert first > 0.5 > second


def test_a_greedy_answer_ends_where_it_should():
    assert greedy_answer(knowing(), "sort 3 1 2 =") == "1 2 3 ;"
    assert greedy_answer(knowing(), "reverse 3 1 =") == "1 3 ;"
    assert greedy_answer(knowing(never_ends), "copy 1 2 3 =") == "1 2 3 copy"


def test_yarn_changes_what_is_far_and_no_weight():
    model, other = new_model("whole", 0), new_model("whole", 0)
    with_yarn(other, RopeScaling(factor=3.0, original_max_position_embeddings=48, beta_fast=4.0))
    cos = model.model.freqs_cos - other.model.freqs_cos
    assert cos[60:].abs().max() > 0.1 and other.model.freqs_cos.shape == model.model.freqs_cos.shape
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))
    assert np.isfinite(loss(other, ROWS))
