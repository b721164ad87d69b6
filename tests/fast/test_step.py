"""step.cpp against the model: equal however many threads, texts and processes read; broken by no numbers.

That every kind of model is read right, in blocks and with padding, is in test_decoding.py and test_rounded.py.
"""

import os
import platform
import subprocess
import sys
import threading

import pytest
import torch
from cases import long_after
from model_builders import talkative_model, tiny_model, token_ids

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, device, fast
from minimind_edu.fast import library
from minimind_edu.fast.matrix import PRECISIONS
from minimind_edu.model.quantization import rounded_model
from minimind_edu.model.rope_frequencies import RopeScaling

pytestmark = pytest.mark.usefixtures("own_step")
every_kind = pytest.mark.parametrize("kind", ["float32", *PRECISIONS])


def decoder_of(model, kind):
    return fast.decoder(model) if kind == "float32" else fast.rounded_decoder(model, kind)


def wide_model(kind="minimind3", **changes):
    """Large enough that every thread has something to do."""
    return talkative_model(kind, **{"hidden_size": 128, "intermediate_size": 256, "vocab_size": 300, **changes})


@torch.no_grad()
def logits_of(decoder, ids, out=None):
    """Of a first token, which the model reads, and of a block and single tokens after it, which the step does."""
    out = out or decoder(ids[:, :1], use_cache=True)
    logits = [out.logits]
    for begin, end in ((1, 5), *((position, position + 1) for position in range(5, ids.shape[1]))):
        out = decoder(ids[:, begin:end], None, out.past_key_values, True)
        logits.append(out.logits)
    return torch.cat(logits, dim=1)


@pytest.fixture
def threads():
    """Sets the number of threads; it is as before in the end."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@every_kind
@pytest.mark.parametrize("model", ["minimind3", "minimind2_moe"])
def test_any_number_of_threads_gives_the_same_to_the_last_bit(kind, model, threads):
    decoder, ids, found = decoder_of(wide_model(model), kind), token_ids(3, 12, vocab_size=300), []
    first = decoder(ids[:, :1], use_cache=True)
    for number in (1, 2, 3, 7, 2):
        threads(number)
        found.append(logits_of(decoder, ids, first))
    assert all(torch.equal(found[0], it) for it in found[1:])


def test_decoders_in_several_threads_do_not_disturb_each_other(threads):
    threads(2)
    decoders = [fast.decoder(wide_model()), fast.rounded_decoder(wide_model("minimind2"), "int8")]
    ids = token_ids(1, 8, vocab_size=300)
    expected = [it.generate(ids, 40, eos_token_id=None) for it in decoders]
    found = {}

    def work(i):
        torch.set_num_threads(2)
        found[i] = [decoders[i % 2].generate(ids, 40, eos_token_id=None) for _ in range(5)]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4
    assert all(torch.equal(tokens, expected[i % 2]) for i in range(4) for tokens in found[i])


# Long texts

SHALLOW = {"num_hidden_layers": 2, "initializer_range": 0.05}  # weights as wide as makes the words vary
YARN = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=64)}
REAL = {
    "small": MiniMindConfig(initializer_range=0.05),
    "base": MiniMindConfig(hidden_size=768, num_hidden_layers=16, initializer_range=0.05),
    "not tied": MiniMindConfig(**SHALLOW, tie_word_embeddings=False),
    "MiniMind3, QK-norm": MiniMindConfig.minimind3(**SHALLOW),
    "MiniMind3, YaRN": MiniMindConfig.minimind3(**SHALLOW, **YARN),
    "MiniMind3, not tied": MiniMindConfig.minimind3(**SHALLOW, tie_word_embeddings=False),
    "mixture": MiniMindConfig.minimind2_moe(**SHALLOW),
    "MiniMind3, mixture": MiniMindConfig.minimind3_moe(**SHALLOW),
}


@pytest.mark.long
@pytest.mark.parametrize("padded", [False, True], ids=["one text", "three, padded"])
@pytest.mark.parametrize("case", REAL)
@torch.no_grad()
def test_two_hundred_tokens_of_real_sizes_are_the_model_s(case, padded):
    """Each token is the most probable one of the model after what was written, and so are all of them together."""
    torch.manual_seed(0)
    model = MiniMindForCausalLM(REAL[case]).eval()
    ids, mask = token_ids(3 if padded else 1, 32, vocab_size=6400), None
    if padded:
        mask = torch.ones(3, 232, dtype=torch.int64)
        mask[1, :5] = mask[2, :31] = 0
    decoder, past, text, found = fast.decoder(model), None, ids, []
    for new in range(200):
        seen = None if mask is None else mask[:, : 32 + new]
        out = decoder(text if new == 0 else text[:, -1:], seen, past, True, logits_to_keep=1)
        found.append(out.logits)
        past, text = out.past_key_values, torch.cat([text, out.logits.argmax(-1)], dim=1)
    expected = model(text[:, :-1], mask if mask is None else mask[:, :-1]).logits[:, 31:]
    assert torch.equal(text[:, 32:], expected.argmax(-1))
    assert len(text[:, 32:].unique()) > 20, "a text that goes round in circles shows little"
    torch.testing.assert_close(torch.cat(found, dim=1), expected, rtol=0, atol=1e-4)


THIS_SOURCE = """
import pathlib, sys
sys.path[:0] = ["tests", "tests/fast"]
from minimind_edu.fast import library
library.SOURCE = pathlib.Path(sys.argv[1])
"""
FORKING = """
import os, signal, torch
from test_step import decoder_of, token_ids, wide_model
torch.set_num_threads(2)
decoder, ids = decoder_of(wide_model(vocab_size=20_000), sys.argv[2]), token_ids(2, 8, vocab_size=300)
expected = decoder.generate(ids, 20, eos_token_id=None)
children = []
for _ in range(3):
    if not (child := os.fork()):
        signal.alarm(90)  # whoever waits without end
        same = torch.equal(decoder.generate(ids, 20, eos_token_id=None), expected)
        os._exit(0 if same and torch.get_num_threads() == 2 else 1)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
print(torch.equal(decoder.generate(ids, 20, eos_token_id=None), expected))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody forks here")
@pytest.mark.parametrize("kind", long_after(1, ["float32", "int8"]))
def test_a_forked_child_reads_on_and_so_does_its_parent(kind):
    """The model alone would not: torch's threads do not outlive a fork, and it waits for them."""
    command = [sys.executable, "-c", THIS_SOURCE + FORKING, str(library.SOURCE), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.stdout.split("\n")[:2] == ["[0, 0, 0]", "True"], done.stderr


def test_in_a_forked_child_torch_computes_on_one_thread_for_a_decoder(monkeypatch, threads):
    threads(3)
    with device.living_threads():
        assert torch.get_num_threads() == 3
    monkeypatch.setattr(device, "_PROCESS", os.getpid() - 1)
    with device.living_threads():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


# Numbers


BAD = {"NaN": torch.nan, "infinity": torch.inf, "minus infinity": -torch.inf}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.v_proj", "model.layers.0.mlp.gate_proj",
        "model.layers.1.mlp.down_proj", "model.layers.0.input_layernorm", "model.norm",
        "model.layers.1.self_attn.k_norm",
    ],
)  # fmt: skip
def test_what_is_not_finite_comes_out_wherever_it_does_from_the_model(name, bad):
    """torch's attention takes a score that is NaN for none; step.cpp tells it."""
    model, ids = talkative_model("minimind3"), token_ids(2, 9)
    model.get_submodule(name).weight.data.view(-1)[5] = bad
    with torch.no_grad():
        expected = model(ids).logits
    found = logits_of(fast.decoder(model), ids)
    assert not found.isfinite().all() and not (found.isfinite() & ~expected.isfinite()).any()
    finite = found.isfinite()
    torch.testing.assert_close(found[finite], expected[finite], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_mixture_that_is_not_finite_is_told_too(bad):
    model, ids = talkative_model("minimind2_moe"), token_ids(1, 9)
    model.model.layers[0].mlp.gate.weight.data[1, 5] = bad
    assert logits_of(fast.decoder(model), ids).isnan().any()


@pytest.mark.parametrize("to", PRECISIONS)
@pytest.mark.parametrize("bad", [*BAD.values(), 3e38], ids=[*BAD, "a sum that is infinite"])
def test_rounding_hides_no_vector_that_is_not_finite(to, bad):
    decoder = fast.rounded_decoder(talkative_model(intermediate_size=64), to)
    decoder.model.model.norm.weight.data[: 1 if bad != 3e38 else 32] = bad
    assert not logits_of(decoder, token_ids(1, 9)).isfinite().any(-1).all()


@pytest.mark.parametrize("width", [512, 4096])
def test_the_largest_sum_there_can_be_has_room(width):
    """All weights are -127 and all numbers equal: in 32 bits a larger step would overflow."""
    changes = {"hidden_size": width, "tie_word_embeddings": False, "num_hidden_layers": 1, "intermediate_size": 64}
    model = tiny_model(dtype=torch.float32, num_attention_heads=2, num_key_value_heads=1, head_dim=16, **changes)
    block = model.model.layers[0]
    for it in (block.self_attn.o_proj.weight, block.mlp.down_proj.weight):
        it.data.zero_()
    for it, value in ((model.model.embed_tokens, 1.0), (model.lm_head, -3.0), (model.model.norm, 2.0)):
        it.weight.data.fill_(value)
    for to in PRECISIONS:
        logits = logits_of(fast.rounded_decoder(model, to), token_ids(1, 7))
        torch.testing.assert_close(logits, torch.full_like(logits, -6.0 * width), rtol=1e-3, atol=0)


def test_int8_vectors_have_sixteen_bits():
    """With 8 they would cost as much as rounding the weights."""
    model, ids = wide_model(), token_ids(1, 20, vocab_size=300)
    with torch.no_grad():
        exact, weights = model(ids).logits, rounded_model(model, PRECISIONS["int8"])(ids).logits
    vectors = logits_of(fast.rounded_decoder(model, "int8"), ids) - weights
    assert vectors.square().mean().sqrt() < 0.02 * (weights - exact).square().mean().sqrt()


# Addresses


SANITIZED = """
import warnings, torch
warnings.simplefilter("error")
from test_step import PRECISIONS, decoder_of, logits_of, talkative_model, token_ids
from minimind_edu.model.rope_frequencies import RopeScaling
yarn = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=16)}
for threads in (1, 3):
    torch.set_num_threads(threads)
    for kind in ("float32", *PRECISIONS):
        for model, changes in (
            ("minimind2", {"tie_word_embeddings": False, "vocab_size": 61}), ("minimind3", yarn),
            ("minimind2_moe", {"num_shared_experts": 2}), ("minimind3_moe", {"num_experts": 3}),
        ):
            decoder = decoder_of(talkative_model(model, intermediate_size=64, **changes), kind)
            for rows in (1, 3, 17):
                logits_of(decoder, token_ids(rows, 9))
                mask = torch.ones(rows, 7, dtype=torch.int64)
                mask[-1, :3] = 0
                decoder.generate(token_ids(rows, 7), 57, attention_mask=mask, eos_token_id=None)  # all positions
                decoder.generate(token_ids(rows, 1), 3, eos_token_id=None)
            model = decoder.model.model.norm.weight.data
            model[3] = torch.nan
            logits_of(decoder, token_ids(1, 6))
print("all read")
"""


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(sanitizer, tmp_path):
    """A build that looks at every address, every shift and conversion, or at what threads do to each other."""
    first = sanitizer.partition(",")[0]
    name = {"address": "libasan.so", "thread": "libtsan.so"}[first]
    found = subprocess.run([*library.cpp_compiler(), f"-print-file-name={name}"], capture_output=True, text=True)
    if not os.path.isabs(found.stdout.strip()):
        pytest.skip(f"this compiler has no {name}")
    environment = {
        **os.environ,
        "TORCH_HOME": str(tmp_path),
        "CXXFLAGS": f"-fsanitize={sanitizer} -fno-sanitize-recover=all -g",
        "LD_PRELOAD": found.stdout.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "TSAN_OPTIONS": "report_bugs=1 exitcode=66 ignore_noninstrumented_modules=1",
    }
    command = [sys.executable, "-c", THIS_SOURCE + SANITIZED, str(library.SOURCE)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.stdout.strip() == "all read" and done.returncode == 0, done.stdout[-500:] + done.stderr[-4000:]


@pytest.mark.long
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the instructions of x86")
@pytest.mark.parametrize("without", ["avx512vnni", "avx2"])
def test_a_processor_with_fewer_instructions_reads_the_same(without, tmp_path):
    """Each has its own lines of step.cpp for int4; those without AVX2 are ARM's and Apple's, too."""
    environment = {**os.environ, "TORCH_HOME": str(tmp_path), "CXXFLAGS": f"-mno-{without}"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-rs"]
    tests = ["tests/fast/test_rounded.py", "tests/fast/test_matrix.py"]
    done = subprocess.run([*command, *tests], env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0 and "no C++ here" not in done.stdout, done.stdout[-4000:]
