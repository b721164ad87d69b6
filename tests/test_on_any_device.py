"""What is public takes models and tensors on any device, returns there, and says the same as on the CPU.

Without a GPU it is pretended: one tensor left behind is refused.
"""

import json

import numpy as np
import pytest
import torch
from model_builders import KINDS, tiny_model, token_ids
from pretended_device import pretended

from minimind_edu import world
from minimind_edu.checks import check_rms_norm
from minimind_edu.device import device_of
from minimind_edu.figures import neuron_words
from minimind_edu.inside.kernel import Kernel
from minimind_edu.model.for_comparison import CatCache, LayerNorm, PlainFeedForward
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.loss import next_token_loss
from minimind_edu.model.quantization import Grid, quantize, rounded, rounded_model
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.model.sampling import Sampling
from minimind_edu.trained import ablations, routing, sharing
from minimind_edu.trained.ablations import exam as lists_exam
from minimind_edu.trained.ablations import lists
from minimind_edu.trained.living import exam, heads, living_model, new_model, story_batches
from minimind_edu.trained.living import rounding as living_rounding
from minimind_edu.trained.training import Recipe, train
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint
from minimind_edu.weights.without_storage import without_storage


@pytest.fixture(params=["cuda", "mps"])
def gpu(request):
    device = torch.device(request.param, 0)
    if torch.get_device_module(device).is_available():
        yield device
    else:
        with pretended(request.param):
            yield device


def alike(found, expected, gpu):
    """Whether two tensors, numbers or collections of them are the same.

    To the last bit on a pretended GPU; a real one adds in another order, which float32 shows.
    """
    room = 1e-4 if torch.get_device_module(gpu).is_available() else 0
    torch.testing.assert_close(found, expected, rtol=room, atol=room, check_device=False)
    return True


def moved(make, gpu):
    """A model that `make` makes, and the same on the GPU."""
    return make(), make().to(gpu)


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_model_reads_learns_and_writes(kind, gpu):
    """Forward, backward, padding, cache and sampling; drawn by a generator of the CPU, the text is the same."""
    here, there = moved(lambda: tiny_model(kind, dtype=torch.float32), gpu)
    ids, mask = token_ids(2, 5), torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    options = {"do_sample": True, "top_k": 5, "top_p": 0.9, "repetition_penalty": 1.1}
    texts = []
    for model, device in ((here, "cpu"), (there, gpu)):
        generator = torch.Generator().manual_seed(1)
        given = ids.to(device), 6
        texts.append(model.generate(*given, attention_mask=mask.to(device), generator=generator, **options))
        cached = model(ids.to(device), use_cache=True, past_key_values=KVCache(2, capacity=8)).past_key_values
        step = model(ids.to(device)[:, :2], past_key_values=cached)
        model(ids.to(device), labels=ids.to(device)).loss.backward()
        assert step.logits.device == device_of(model) == next(model.parameters()).grad.device
    assert texts[1].device == gpu and texts[1].tolist() == texts[0].tolist()


def test_weights_that_are_there_are_assigned_and_the_tables_follow_them(gpu):
    here, there = moved(lambda: tiny_model(dtype=torch.float32), gpu)
    empty, ids = without_storage(here.config), token_ids(2, 5)
    empty.load_state_dict(there.state_dict(), assign=True)
    assert alike(empty(ids.to(gpu)).logits, here(ids).logits, gpu)


def test_training_moves_its_batches(gpu):
    recipe = Recipe(steps=3, learning_rate=1e-3, warmup=1)
    here, there = (train(model, story_batches(0), recipe) for model in moved(lambda: new_model(0), gpu))
    assert there == pytest.approx(here, abs=1e-4)


def test_the_living_model_is_examined_where_it_is(gpu):
    here, there = moved(living_model, gpu)
    asked, stories = world.questions("recall", 4, seed=1), world.stories(2, 24, seed=1)
    ids = torch.from_numpy(stories)
    assert exam.accuracy(there, asked) == exam.accuracy(here, asked)
    assert exam.divergence(there, stories) == pytest.approx(exam.divergence(here, stories))
    weights = heads.attention_weights(there, ids[:1].to(gpu))
    assert weights.device == gpu and alike(weights, heads.attention_weights(here, ids[:1]), gpu)
    for measure in (heads.answer_reading, heads.lost_without):
        found = measure(there, asked[:1])
        assert found.device == gpu and alike(found, measure(here, asked[:1]), gpu)
    with heads.silenced(there, 0, 1):
        assert exam.accuracy(there, asked) <= 1
    less = rounded_model(there, Grid(4))
    assert device_of(less) == gpu
    rounded_here = rounded_model(here, Grid(4))
    assert alike(living_rounding.difference(less, there, ids), living_rounding.difference(rounded_here, here, ids), gpu)
    for one, two in zip(neuron_words.run(there, stories), neuron_words.run(here, stories), strict=True):
        assert one.device == gpu and alike(one, two, gpu)


@pytest.mark.parametrize("name", ["whole", "no positions", "learned positions", "LayerNorm", "ReLU", "no attention"])
def test_a_variant_stays_what_it_is_and_is_examined_where_it_is(name, gpu):
    here, there = moved(lambda: ablations.new_model(name, seed=0).eval(), gpu)
    rows = lists.write_rows(2, seed=6)
    assert lists_exam.loss(there, rows) == pytest.approx(lists_exam.loss(here, rows))
    assert lists_exam.accuracy(there, rows) == lists_exam.accuracy(here, rows)
    assert lists_exam.greedy_answer(there, "sort 3 1 2 =") == lists_exam.greedy_answer(here, "sort 3 1 2 =")
    lists_exam.with_yarn(there, RopeScaling(4, 96))
    assert lists_exam.loss(there, rows) >= 0


def test_a_mixture_is_looked_at_where_it_is(gpu):
    ids = torch.from_numpy(world.stories(2, 24, seed=1))
    here, there = (
        routing.look(model.eval(), ids) for model in moved(lambda: new_model(0, routing.config(2, balanced=True)), gpu)
    )
    assert alike(there, here, gpu)


def test_a_reader_is_examined_where_it_is(gpu):
    exam = sharing.texts(8, np.random.Generator(np.random.PCG64(0)))
    variant = sharing.VARIANTS["K = 2"]
    here, there = (sharing.accuracy(reader, exam) for reader in moved(lambda: sharing.new_reader(variant, 0), gpu))
    assert there == here


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_is_looked_into_where_it_is(kind, gpu):
    """All that the views of figures.Inside ask: a text, another, parts of it, without a head."""
    looks = {
        "lens": {"at": 3}, "wrote": {"at": 3, "token": 4}, "neurons": {"at": 2, "layer": 1}, "stream": {"at": 4},
        "maps": {"layer": 1, "from": 0}, "draw": {"at": 4, "settings": {"temperature": 1, "topK": 1, "topP": 1}},
        "beside": {"ids": [3, 1], "silenced": []}, "without": {"at": 4, "token": 3, "layer": 0, "head": 1},
    }  # fmt: skip
    readings = (([1, 2, 3, 4], [], 0), ([1, 2, 3, 4, 5], [], 4), ([1, 2, 3, 7, 8], ["1.0", "0.feed"], 0))
    told = []
    for model in moved(lambda: tiny_model(kind, dtype=torch.float32), gpu):
        sent = []
        kernel = Kernel(model, lambda *message, sent=sent: sent.append(message))
        for run, (ids, silenced, known) in enumerate(readings):
            kernel.hear({"do": "read", "run": run, "ids": ids, "silenced": silenced, "known": known})
        for key, (what, place) in enumerate(looks.items()):
            kernel.hear({"do": "look", "key": key, "what": what, **place})
        told.append(sent)
    assert [message["did"] for message, _ in told[1]] == 3 * ["read", "ready"] + len(looks) * ["look"]
    rest, numbers = [], ([], [])  # compared exactly, and closely
    for sent, found in zip(told, numbers, strict=True):
        text = json.dumps([message for message, _ in sent])
        rest.append(json.loads(text, parse_float=lambda x, found=found: found.append(float(x))))
    assert rest[0] == rest[1] and numbers[0] == pytest.approx(numbers[1], abs=1e-4)
    (_, [vectors]), (_, [others]) = (sent[6 + list(looks).index("stream")] for sent in told)
    assert np.allclose(np.frombuffer(vectors, np.float32), np.frombuffer(others, np.float32), atol=1e-4)


def test_small_parts_return_where_their_tensors_are(gpu):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    probabilities = Sampling(do_sample=True, top_k=3).probabilities
    plain = PlainFeedForward(8, 16)
    parts = {
        "quantize": lambda t: quantize(t[0], Grid(4)).values,
        "rounded": lambda t: rounded(t[0], Grid(4, per=4)),
        "layer norm": lambda t: LayerNorm(8).to(t.device)(t),
        "plain": lambda t: plain.to(t.device)(t),
        "loss": lambda t: next_token_loss(t, torch.ones(2, 3, dtype=torch.long, device=t.device)),
        "sampling": lambda t: probabilities(t[0], torch.zeros_like(t[0], dtype=torch.bool)),
        "cache": lambda t: CatCache().append(t[:, :, None], t[:, :, None])[0],
    }
    for name, part in parts.items():
        there = part(x.to(gpu))
        assert there.device == gpu and torch.allclose(there.float().cpu(), part(x).float(), atol=1e-6), name


def test_a_model_is_saved_from_there_and_read_on_the_cpu(gpu, tmp_path):
    here, there = moved(lambda: tiny_model(dtype=torch.float32), gpu)
    save_checkpoint(there, tmp_path / "model.safetensors")
    again = from_checkpoint(tmp_path / "model.safetensors")
    assert device_of(again).type == "cpu"
    assert torch.equal(again(token_ids(1, 4)).logits, here(token_ids(1, 4)).logits)


def test_a_check_says_it_of_an_answer_that_computes_elsewhere(gpu, capsys):
    """Its examples are on the CPU, so the answer fails with torch's own sentence, which is the hint."""
    check_rms_norm(lambda x, weight, eps: x.float().to(gpu) * weight)
    assert (
        "your code stopped with RuntimeError: Expected all tensors to be on the same device" in capsys.readouterr().out
    )
