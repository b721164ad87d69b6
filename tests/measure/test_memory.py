"""What the backward pass will read is what autograd really keeps: every byte of it."""

from contextlib import nullcontext
from itertools import accumulate

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.memory import (
    STORED,
    counted,
    kept_of,
    loss_of,
    main,
    run,
    save,
    stored,
    with_adapters,
)
from minimind_edu import MiniMindConfig, MiniMindForCausalLM
from minimind_edu.measure.memory import (
    kept_for_backward,
    lora_weights,
    num_weights,
    serving_memory,
    table_bytes,
    training_memory,
)
from minimind_edu.model.loss import next_token_loss

SIZES = dict(
    vocab_size=90, hidden_size=48, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=10,
    intermediate_size=70, max_position_embeddings=64,
)  # fmt: skip
CONFIGS = {
    "minimind2": MiniMindConfig.minimind2(**SIZES),
    "minimind3": MiniMindConfig.minimind3(**SIZES),
    "one block": MiniMindConfig.minimind2(**SIZES | {"num_hidden_layers": 1}),
    "untied": MiniMindConfig.minimind2(**SIZES, tie_word_embeddings=False),
    "square": MiniMindConfig.minimind2(**SIZES | {"num_key_value_heads": 6}),
}
RANK = 4


@pytest.fixture(autouse=True)
def fixed_numbers():
    """On a CPU attention looks again where its output is exactly 0, which one in fifty draws is in bfloat16."""
    torch.manual_seed(0)


def most_bytes(run):
    """The most bytes that were there at once beside those before, as torch's profiler saw them come and go."""
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    found = [one for one in profile.profiler.kineto_results.events() if one.name() == "[memory]"]
    found.sort(key=lambda one: one.start_ns())
    return max(accumulate(one.nbytes() for one in found))


def kept(model, run):
    """Bytes of the memory that autograd holds on to after `run`, without the model's own and a single number."""
    own = {one.untyped_storage().data_ptr() for one in [*model.parameters(), *model.model._there()]}
    seen = {}

    def pack(tensor):
        if tensor.dim() and tensor.untyped_storage().data_ptr() not in own:
            seen[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run()
    assert result.requires_grad
    return sum(tensor.untyped_storage().nbytes() for tensor in seen.values())


def adapted(config):
    return with_adapters(MiniMindForCausalLM(config), RANK)


@pytest.mark.parametrize("kind", ["train", "lora"])
@pytest.mark.parametrize("gpu", [False, True], ids=["fused", "plain"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_byte_that_autograd_keeps_is_counted(name, gpu, kind):
    """The plain way of attention is the one that a GPU takes in float32; on a CPU it can be asked for."""
    config, batch, length = CONFIGS[name], 2, 24
    model = adapted(config) if kind == "lora" else MiniMindForCausalLM(config)
    ids = torch.randint(config.vocab_size, (batch, length))
    plain = gpu and config.num_attention_heads != config.num_key_value_heads
    with sdpa_kernel(SDPBackend.MATH) if plain else nullcontext():
        there = kept(model, lambda: model(ids, labels=ids).loss)
    told = sum(kept_for_backward(config, length, kind, gpu=gpu, rank=RANK).values())
    ids_kept = 8 if kind == "train" else 0  # the batch's own, which the embedding's gradient needs
    assert there == batch * length * (told + 4 * config.vocab_size + ids_kept)


@pytest.mark.parametrize("kind", ["train", "lora"])
@pytest.mark.parametrize("name", CONFIGS)
def test_so_is_every_byte_that_autocast_keeps(name, kind):
    config, batch, length = CONFIGS[name], 2, 24
    model = adapted(config) if kind == "lora" else MiniMindForCausalLM(config)
    ids = torch.randint(config.vocab_size, (batch, length))
    with torch.autocast("cpu", torch.bfloat16):
        there = kept(model, lambda: model(ids, labels=ids).loss)
    memory = training_memory(config, batch, length, kind, autocast=True, rank=RANK)
    assert there == kept_of(memory) + batch * length * (8 if kind == "train" else 0)


def test_dpo_keeps_what_training_keeps():
    config, batch, length = CONFIGS["minimind2"], 4, 24
    model, reference = MiniMindForCausalLM(config), MiniMindForCausalLM(config)
    ids = torch.randint(config.vocab_size, (batch, length))
    there = kept(model, lambda: loss_of(model, ids, reference))
    memory = training_memory(config, batch, length, "dpo", gpu=False)
    few = 4 * batch  # a number or two for each pair
    assert abs(there - kept_of(memory) - 8 * batch * length) <= few
    assert memory.reference == memory.weights == training_memory(config, batch, length).weights


@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_there_before_anything_runs(name):
    config = CONFIGS[name]
    model = MiniMindForCausalLM(config)
    tables = sum(one.nbytes for one in model.model._there())
    assert num_weights(config) == model.num_parameters() and table_bytes(config) == tables
    adapters = adapted(config).num_parameters() - model.num_parameters()
    assert lora_weights(config, RANK) == adapters
    memory = training_memory(config, 1, 8, "lora", rank=RANK)
    assert (memory.weights, memory.adam, memory.gradients) == (
        4 * (model.num_parameters() + adapters) + tables,
        8 * adapters,
        4 * adapters,
    )


def test_adam_really_keeps_two_numbers_for_each_weight():
    model = MiniMindForCausalLM(CONFIGS["minimind2"])
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.zeros(1, 8, dtype=torch.long)
    model(ids, labels=ids).loss.backward()
    optimizer.step()
    states = [one for state in optimizer.state.values() for one in state.values() if one.dim()]
    memory = training_memory(CONFIGS["minimind2"], 1, 8)
    assert sum(one.nbytes for one in states) == memory.adam
    assert sum(one.grad.nbytes for one in model.parameters()) == memory.gradients


def test_the_logits_are_there_three_times_when_the_backward_pass_begins():
    """Their log-softmax, the gradient of it, and their own gradient; the logits themselves the model has let go."""
    logits = torch.randn(2, 16, 900, requires_grad=True)
    ids = torch.randint(900, (2, 16))
    most = most_bytes(lambda: next_token_loss(logits, ids).backward())
    assert 3 * logits.nbytes < most < 3.05 * logits.nbytes


@pytest.mark.parametrize(("batch", "length", "moment"), [(32, 64, "backward"), (1, 8, "step")])
def test_a_whole_step_peaks_at_what_is_counted(batch, length, moment):
    config = MiniMindConfig.minimind2(**SIZES | {"vocab_size": 900, "hidden_size": 128, "intermediate_size": 320})
    model = MiniMindForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)  # as on a GPU
    ids = torch.randint(config.vocab_size, (batch, length))

    def step():
        next_token_loss(model(ids).logits, ids).backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    memory = training_memory(config, batch, length, gpu=False)
    assert memory.peak == getattr(memory, moment)
    there = memory.weights + memory.adam + most_bytes(step)
    assert abs(memory.peak / there - 1) < 0.03


def test_a_cache_takes_what_serving_counts():
    config = CONFIGS["minimind3"]
    model = MiniMindForCausalLM(config).eval()
    ids = torch.randint(config.vocab_size, (3, 20))
    with torch.inference_mode():
        out = model(ids, use_cache=True, logits_to_keep=1)
    memory = serving_memory(config, 3, 20)
    assert memory.cache == sum(key.nbytes + value.nbytes for key, value in out.past_key_values)
    assert memory.logits == out.logits.nbytes
    assert memory.peak == memory.weights + memory.cache + memory.logits
    half = serving_memory(config, 3, 20, itemsize=2)
    assert half.cache == memory.cache // 2
    assert half.weights - table_bytes(config) == (memory.weights - table_bytes(config)) // 2


# ---- what a GPU has measured


@pytest.fixture(scope="module")
def rows():
    found = stored()["rows"]
    assert len(found) == 38
    return found


def off(row):
    """By which share the count of what is kept, and that of the peak, is above what was measured."""
    memory = counted(row)
    return kept_of(memory) / row["kept"] - 1, memory.peak / row["peak"] - 1


def test_large_batches_in_float32_are_counted_to_three_in_a_thousand(rows):
    """There the allocator's rounding is small beside the rest."""
    large = [row for row in rows if not row["autocast"] and row["batch"] * row["length"] >= 4096]
    assert len(large) == 9
    for row in large:
        after, peak = off(row)
        assert abs(after) < 1e-3 and -0.005 < peak < 0, row


def test_every_count_is_a_little_below_what_is_measured(rows):
    """The count asks for bytes; the allocator gives blocks, so it holds more, never less."""
    for row in rows:
        after, peak = off(row)
        assert -0.055 < after < 1e-3 and -0.045 < peak < 0, row
        if row["batch"] * row["length"] == 32 * 512:
            assert after > -0.003 and peak > -0.004, row


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": "grpo"}, "kind must be 'train' or 'lora' or 'dpo', got 'grpo'"),
        ({"batch": 0}, "batch must be"),
        ({"length": 65}, "length must be"),
        ({"rank": 0}, "rank must be"),
    ],
)
def test_what_cannot_be_counted_is_refused(change, told):
    with pytest.raises(ValueError, match=told):
        training_memory(**{"config": CONFIGS["minimind2"], "batch": 1, "length": 8} | change)


@pytest.mark.parametrize(
    "config",
    [
        MiniMindConfig.minimind2_moe(**SIZES),
        MiniMindConfig.minimind2(**SIZES, dropout=0.1),
        MiniMindConfig.minimind2(**SIZES, norm_placement="post"),
    ],
    ids=["experts", "dropout", "post-norm"],
)
def test_models_that_keep_other_things_are_refused(config):
    with pytest.raises(ValueError, match="kept_for_backward counts"):
        training_memory(config, 1, 8)


# ---- the program


def test_without_a_gpu_the_program_shows_the_stored_run(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    main([])
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "There is no NVIDIA GPU here, so nothing was measured; this is the stored run."
    assert told[1].startswith("NVIDIA H200, torch 2.11") and len(told) == 3 + 38
    assert "small train 32 x 512             8306     8306  -0.0 %   9474     9472  -0.0 %" in told


def test_what_is_stored_is_read_again(tmp_path):
    save(stored(), tmp_path / "memory.json")
    text = (tmp_path / "memory.json").read_text(encoding="utf-8")
    assert text.count("\n") == 40 and set(text.splitlines()[1:]) <= set(STORED.read_text(encoding="utf-8").splitlines())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="memory is measured on a GPU")
def test_this_gpu_takes_what_is_counted():
    found = run([("small", 8, 512, "train", False)])
    [row] = found["rows"]
    assert max(map(abs, off(row))) < 0.05
