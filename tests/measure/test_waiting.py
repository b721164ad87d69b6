"""Waiting: at hand computes with the first eight rows and changes nothing else; chapter 14 quotes the stored runs."""

import json

import pytest
import torch

from minimind_edu import fast
from minimind_edu.fast.decoding import CompiledDecoder
from minimind_edu.measure import waiting
from minimind_edu.measure.costs import decode_cost
from minimind_edu.measure.machine import large_product
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM

SMALL = MiniMindConfig(
    hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
    tie_word_embeddings=False,
)  # fmt: skip
RUNS = range(len(waiting.stored_runs()["runs"]))


def middle(model, way, texts, context=waiting.CONTEXT, run=None):
    return waiting.quartiles("step", model, way, texts, context, run)[1]


@torch.no_grad()
def test_at_hand_is_the_step_of_a_model_whose_rows_are_its_first_eight():
    """So the operations are the same: only another model's."""
    torch.manual_seed(0)
    model, other = (MiniMindForCausalLM(SMALL).eval() for _ in range(2))
    other.load_state_dict(model.state_dict())
    for name, weight in other.named_parameters():
        if weight.dim() == 2 and "embed" not in name:
            weight.copy_(weight[torch.arange(len(weight)) % 8])
    ids = torch.tensor([[5, 17, 60, 3], [1, 2, 90, 4]])
    past = model(ids[:, :3], use_cache=True).past_key_values
    at_hand, expected, real = (
        decoder(ids[:, 3:], None, past.fork(), True).logits
        for decoder in (CompiledDecoder(model, waiting.at_hand()), fast.decoder(other), fast.decoder(model))
    )
    torch.testing.assert_close(at_hand, expected)
    assert (at_hand - real).abs().max() > 0.01


def test_a_step_that_says_elsewhere_where_a_row_lies_is_refused(monkeypatch, tmp_path):
    path = tmp_path / "step.cpp"
    path.write_text(waiting.HERE * 2)
    monkeypatch.setattr(waiting, "SOURCE", path)
    waiting.at_hand.cache_clear()
    with pytest.raises(ValueError, match="must say once where a row lies.* it does so 2 times"):
        waiting.at_hand()
    waiting.at_hand.cache_clear()


@torch.no_grad()
def test_a_stepper_continues_so_many_texts_from_this_context():
    model = MiniMindForCausalLM(SMALL).eval()
    lengths = []
    model.register_forward_hook(lambda *call: lengths.append(call[2].past_key_values.length))
    step = waiting.stepper(model, 3, 10)
    assert step().shape == step().shape == (3, 1, SMALL.vocab_size)
    assert lengths == [10, 11]


def test_a_run_holds_every_kind_once_and_runs_add_up(monkeypatch, tmp_path):
    for name, value in {"TEXTS": (1, 2), "BY_MODEL": (1,), "FEW": (2,), "LONG": 70}.items():
        monkeypatch.setattr(waiting, name, value)
    monkeypatch.setattr(waiting, "MODELS", {"small": SMALL, "living": SMALL})
    monkeypatch.setattr(waiting, "STEPS", {"small": 2, "living": 3})
    threads, path = torch.get_num_threads(), tmp_path / "runs.json"
    try:
        for _ in range(2):
            waiting.main(["a test", str(path), "--rounds", "2"])
    finally:
        torch.set_num_threads(threads)
    kept = json.loads(path.read_text())
    assert kept["name"] == "a test" and len(kept["runs"]) == 2
    rows = kept["runs"][1]["rows"]
    kinds = [tuple(row.get(name) for name in ("what", "model", "way", "texts", "context")) for row in rows]
    assert len(set(kinds)) == len(kinds)
    steps = {kind[1:]: len(row["microseconds"]) for kind, row in zip(kinds, rows, strict=True) if kind[0] == "step"}
    both = {(way, n, 64) for way in ("file", "at hand") for n in (1, 2)} | {("model", 1, 64)}
    long = {(way, 1, 70) for way in ("file", "at hand", "model")}
    rounded = {(to, 2, 64) for to in waiting.ROUNDED}
    assert steps == {("small", *kind): 4 for kind in both | long | rounded} | {("living", *kind): 6 for kind in both}


def test_a_time_that_was_not_measured_is_refused():
    with pytest.raises(KeyError, match="one kind"):
        waiting.quartiles("step", "large", "file", 5, 64)
    with pytest.raises(KeyError, match="one kind"):
        waiting.quartiles("step", "large", None, 1, 64)


# What the chapter says of the stored runs


def test_there_are_two_whole_runs_of_the_same_kinds():
    kinds = [
        [{**row, "microseconds": len(row["microseconds"])} for row in run["rows"]]
        for run in waiting.stored_runs()["runs"]
    ]
    assert len(kinds) == 2 and kinds[0] == kinds[1]
    for row in kinds[0]:
        if row["what"] == "step":
            assert row["microseconds"] == waiting.ROUNDS * waiting.STEPS[row["model"]]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("model", "context"), [("large", 64), ("small", 64), ("small", 512)])
def test_one_text_waits_three_quarters_and_the_second_is_nearly_free(model, context, run):
    one, two, many = (middle(model, "file", n, context, run) for n in (1, 2, 64))
    assert 0.73 < 1 - middle(model, "at hand", 1, context, run) / one < 0.83
    assert two < 1.06 * one
    assert middle(model, "at hand", 64, context, run) > 0.9 * many


@pytest.mark.parametrize("run", RUNS)
def test_the_second_text_is_not_free_in_pytorch(run):
    one, two, four = (middle("large", "model", n, run=run) for n in (1, 2, 4))
    assert two > 1.6 * one and four < 0.9 * two
    assert middle("small", "model", 2, run=run) > 1.5 * middle("small", "model", 1, run=run)


def test_the_peak_leaves_nine_tenths_of_a_step_to_memory():
    _, operations = large_product(torch.device("cpu"), torch.float32)
    first, second, both = (operations / waiting.quartiles("product", run=run)[1] / 1e3 for run in (0, 1, None))
    assert [round(first), round(second), round(both)] == [94, 73, 84]
    arithmetic = decode_cost(waiting.MODELS["large"], waiting.CONTEXT).operations / both
    assert arithmetic / 1e6 == pytest.approx(2.5, abs=0.05)
    assert 1 - arithmetic / 1e3 / middle("large", "file", 1) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("run", RUNS)
def test_half_the_bytes_take_half_the_time_of_one_text_and_not_of_eight(run):
    one, eight = (middle("large", "bfloat16", n, run=run) / middle("large", "file", n, run=run) for n in (1, 8))
    assert one < 0.56 and 0.65 < eight < 0.8


@pytest.mark.parametrize("run", RUNS)
def test_the_little_model_waits_for_calls_and_not_for_bytes(run):
    one = middle("living", "file", 1, run=run)
    assert middle("living", "at hand", 1, run=run) > 0.9 * one
    assert waiting.quartiles("pipe", "living", run=run)[1] < 0.07 * one
    assert middle("living", "model", 1, run=run) > 7 * one


@pytest.mark.parametrize("run", RUNS)
def test_pytorchs_product_by_rows_reads_half_as_fast(run):
    rows, best = (waiting.quartiles("pipe", "large", way, run=run)[1] for way in ("by rows", None))
    assert 2 < rows / best < 2.5
    assert 0.85 < rows / middle("large", "model", 1, run=run) < 1
