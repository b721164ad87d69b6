"""living.copying: its texts repeat, what is measured is what is said, and the stored models do what is told of them."""

import json
import sys
from types import SimpleNamespace

import pytest
import torch

from minimind_edu.trained.living import copying, new_model
from minimind_edu.trained.living.heads import attention_weights, silenced


class Copies:
    """Expects after each word what came after its last copy, and word 0 where there is none."""

    def parameters(self):
        return iter([torch.zeros(1)])

    def __call__(self, ids):
        logits = torch.zeros(*ids.shape, copying.CONFIG.vocab_size)
        for row, text in zip(logits, ids.tolist(), strict=True):
            for place, word in enumerate(text):
                if word in text[:place]:
                    row[place, text[text.index(word) + 1]] = 1
        return SimpleNamespace(logits=logits)


def test_texts_to_learn_from_say_different_words_again_and_again():
    first, second = (batch for batch, _ in zip(copying.text_batches(3), range(2), strict=False))
    assert first.shape == (copying.BATCH_SIZE, copying.LENGTH) and not torch.equal(first, second)
    assert torch.equal(first, next(copying.text_batches(3)))
    lengths = set()
    for text in torch.cat([first, second]).tolist():
        words = text[: text.index(text[0], 1)]
        assert len(set(words)) == len(words)
        assert text == (words * copying.LENGTH)[: copying.LENGTH]
        lengths.add(len(words))
    assert min(lengths) == copying.SHORTEST and max(lengths) == copying.LONGEST


def test_texts_of_the_exam_say_their_words_twice():
    texts = copying.said_twice(5, 7)
    assert texts.shape == (5, 14) and torch.equal(texts[:, :7], texts[:, 7:])
    assert all(len(set(text.tolist())) == 7 for text in texts)
    assert len({tuple(text.tolist()) for text in texts}) == 5


def test_who_looks_back_continues_everything():
    assert copying.continued(Copies(), copying.said_twice()) == 1
    assert copying.continued(new_model(0, copying.CONFIG), copying.said_twice()) < 0.2


def test_reading_is_the_mean_weight_so_many_places_back():
    model, texts = new_model(0, copying.CONFIG), copying.said_twice(2, 5)
    one, other = (attention_weights(model, text[None]) for text in texts)
    by_hand = sum(weights[:, :, at, at - 4] for weights in (one, other) for at in range(5, 9)) / 8
    torch.testing.assert_close(copying.reading(model, texts, 4), by_hand)


# What is stored


def test_the_stored_model_is_the_first_of_two_blocks():
    """int8 rows read a little differently from what was trained."""
    model, told = copying.copying_model(), copying.results()["2"][0]
    assert model.config == copying.CONFIG and copying.WEIGHTS.stat().st_size < 25_000
    texts = copying.said_twice()
    assert copying.continued(model, texts) == pytest.approx(told["continued"], abs=0.01)
    for name, back in {"after": copying.WORDS - 1, "before": 1}.items():
        torch.testing.assert_close(copying.reading(model, texts, back), torch.tensor(told[name]), rtol=0, atol=0.05)


def test_two_blocks_copy_and_one_does_not():
    told = copying.results()
    assert [one["seed"] for one in told["2"]] == [one["seed"] for one in told["1"]] == list(copying.SEEDS)
    assert min(one["continued"] for one in told["2"]) > 0.95
    assert max(one["continued"] for one in told["1"]) < 0.5
    assert min(max(one["after"][1]) for one in told["2"]) > 0.5
    assert max(max(one["after"][0]) for of_blocks in told.values() for one in of_blocks) < 0.1


def test_copying_needs_the_heads_that_read_the_word_before():
    model, texts = copying.copying_model(), copying.said_twice(10)
    with silenced(model, 0, 0), silenced(model, 0, 1):
        assert copying.continued(model, texts) < 0.3
        assert copying.reading(model, texts, copying.WORDS - 1).max() < 0.2


def test_the_program_trains_and_tells(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(copying, "SEEDS", (4, 5))
    monkeypatch.setattr(sys, "argv", ["copying", "--steps", "2", "--into", str(tmp_path)])
    copying.main()
    told = json.loads((tmp_path / "copying.json").read_text())
    assert {blocks: [one["seed"] for one in runs] for blocks, runs in told.items()} == {"2": [4, 5], "1": [4, 5]}
    assert [len(one["after"]) for one in told["1"]] == [1, 1] and len(told["2"][0]["before"]) == 2
    assert (tmp_path / "copying.safetensors").exists()
    assert "2 blocks continue [" in capsys.readouterr().out


def test_a_short_run_does_not_replace_the_books(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["copying", "--steps", "2"])
    with pytest.raises(SystemExit):
        copying.main()
    assert "--into PATH must say where this goes" in capsys.readouterr().err
