"""The compiled step: when it is compiled, and that it computes what `token_step` and the model compute.

Models of one or two layers, for compiling lasts seconds each; what does not need the compiler is tested without it.
"""

import copy
import os
import subprocess
import sys

import pytest
import torch
from model_builders import tiny_model, token_ids
from torch import nn
from torch._dynamo.utils import get_compilation_metrics

from minimind_edu.fast import decoding
from minimind_edu.fast.decoding import CompiledDecoder
from minimind_edu.fast.rows import Rows


def compilations():
    """So many times torch has compiled something in this process (it remembers the last 64)."""
    return len(get_compilation_metrics())


class Counted:
    """with Counted(2): exactly two graphs are compiled."""

    def __init__(self, number):
        self.number = number

    def __enter__(self):
        self.before = compilations()

    def __exit__(self, failed, *_):
        assert failed or compilations() - self.before == self.number


def assert_same_tokens(decoder, ids, steps, **options):
    options = {"eos_token_id": None, **options}
    expected = decoder.model.generate(ids, steps, **options)
    assert torch.equal(decoder.generate(ids, steps, **options), expected)


def assert_close_logits(decoder, ids, cut=3):
    """Logits of every position after `cut`, one by one, against the model's own; 1e-5 of the largest."""
    with torch.no_grad():
        expected = decoder.model(ids).logits
        past = decoder(ids[:, :cut]).past_key_values
        for position in range(cut, ids.shape[1]):
            out = decoder(ids[:, position : position + 1], None, past)
            past = out.past_key_values
            torch.testing.assert_close(
                out.logits[:, 0], expected[:, position], rtol=0, atol=1e-5 * expected.abs().max().item()
            )


def compiled(kind="minimind2", **changes):
    model = tiny_model(kind, dtype=torch.float32, **changes)
    return model, CompiledDecoder(model)


def test_one_compilation_serves_all_positions_prompts_buffers_and_new_weights():
    model, decoder = compiled("minimind3")
    with Counted(1):
        for length, steps in ((5, 20), (1, 9), (2, 3), (40, 24)):
            assert_same_tokens(decoder, token_ids(1, length), steps)
        assert_close_logits(decoder, token_ids(1, 64), cut=1)  # without capacity: the buffers grow
        model.load_state_dict(tiny_model("minimind3", seed=1, dtype=torch.float32).state_dict())
        assert_same_tokens(decoder, token_ids(1, 5), 9)
        up = model.model.layers[1].mlp.up_proj
        up.weight = nn.Parameter(torch.randn(up.weight.shape))
        assert_same_tokens(decoder, token_ids(1, 5), 9)
        model.model.layers[0].self_attn.v_proj.weight.data = model.model.layers[0].self_attn.v_proj.weight.clone().data
        assert_same_tokens(decoder, token_ids(1, 5), 9)


def test_one_compilation_serves_any_number_of_rows_and_one_more_their_padding():
    _, decoder = compiled(num_hidden_layers=1)
    with Counted(1):
        for rows in (2, 3, 4, 8):  # among them the numbers of heads and of key/value heads
            assert_same_tokens(decoder, token_ids(rows, 6), 12)
    with Counted(1):
        for rows in (17, 20):  # too many for our own loops
            assert_same_tokens(decoder, token_ids(rows, 6), 6)
    with Counted(1):
        for rows, kind in ((2, torch.int64), (5, torch.bool)):
            mask = torch.ones(rows, 6, dtype=kind)
            mask[0, :3] = 0
            mask[1, :1] = 0
            assert_same_tokens(decoder, token_ids(rows, 6), 12, attention_mask=mask)


def test_without_our_own_loops_it_compiles_to_the_same(monkeypatch):
    monkeypatch.setattr(decoding, "why_not_loaded", lambda: "no compiler")
    _, decoder = compiled(num_hidden_layers=1)
    with Counted(1):
        assert_same_tokens(decoder, token_ids(1, 6), 12)
        assert_close_logits(decoder, token_ids(1, 20))
    assert isinstance(decoder.weights.output, torch.Tensor)


def test_float32_is_read_by_our_own_loops(own_loops):
    _, decoder = compiled(num_hidden_layers=1)
    assert isinstance(decoder.weights.output, Rows)
    assert decoder.weights.output.values.data_ptr() == decoder.model.lm_head.weight.data_ptr(), "nothing is copied"
    assert_close_logits(decoder, token_ids(1, 8))


def test_a_mixture_for_one_row_is_one_graph_and_follows_replaced_experts():
    model, decoder = compiled("minimind2_moe", num_hidden_layers=1)
    with Counted(1):
        assert_same_tokens(decoder, token_ids(1, 5), 30)
        assert_close_logits(decoder, token_ids(1, 20))
        up = model.model.layers[0].mlp.experts[1].up_proj
        up.weight = nn.Parameter(torch.randn(up.weight.shape))
        assert_same_tokens(decoder, token_ids(1, 5), 30)


def test_another_dtype_is_compiled_for_when_the_model_is_converted():
    model, decoder = compiled(num_hidden_layers=1, norm_placement="post")
    ids = token_ids(1, 12)
    with Counted(1):
        assert_close_logits(decoder, ids)
    with Counted(1):
        model.to(torch.bfloat16)
        past = decoder(ids[:, :-1]).past_key_values
        logits = decoder(ids[:, -1:], None, past).logits
        with torch.no_grad():
            expected = model(ids[:, -1:], past_key_values=past, use_cache=True).logits
        assert logits.dtype == torch.bfloat16
        torch.testing.assert_close(logits, expected, rtol=0, atol=4e-2 * expected.abs().max().item())
    with Counted(0):
        model.to(torch.float32)
        assert_same_tokens(decoder, ids, 9)


def test_inference_mode_is_compiled_for_too():
    model, decoder = compiled(num_hidden_layers=1)
    ids = token_ids(1, 5)
    expected = model.generate(ids, 9, eos_token_id=None)
    with torch.inference_mode(), Counted(1):
        for _ in range(2):
            assert torch.equal(decoder.generate(ids, 9, eos_token_id=None), expected)
    assert_same_tokens(decoder, ids, 9)


def test_each_decoder_compiles_for_its_own_model():
    model, decoder = compiled(num_hidden_layers=1)
    assert_same_tokens(decoder, token_ids(1, 5), 9)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.lm_head.weight.mul_(-1)
    assert_same_tokens(CompiledDecoder(twin), token_ids(1, 5), 9)
    with Counted(0):
        assert_same_tokens(decoder, token_ids(1, 5), 9)


@pytest.mark.long
def test_a_broken_compiler_is_told_and_disturbs_nobody_after(tmp_path):
    """In a process of its own: torch remembers a compiler that failed, whatever it is told to forget."""
    broken = tmp_path / "broken"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && echo broken 1.0 && exit 0\necho "no paper" >&2\nexit 3\n')
    broken.chmod(0o755)
    program = (
        "import torch, warnings; from minimind_edu import MiniMindConfig, MiniMindForCausalLM, fast;"
        "warnings.simplefilter('always');"
        "config = MiniMindConfig(vocab_size=61, hidden_size=32, num_hidden_layers=1, num_attention_heads=2);"
        "model = MiniMindForCausalLM(config).eval(); ids = torch.arange(3, 7)[None];"
        "expected = model.generate(ids, 5, eos_token_id=None);"
        "found = fast.decoder(model, 'compiled').generate(ids, 5, eos_token_id=None);"
        "print(torch.equal(found, expected))"
    )
    environment = {**os.environ, "CXX": str(broken), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
    told = [line for line in done.stderr.splitlines() if "compiled decoding is only lean here: " in line]
    assert len(told) == 1 and "no paper" in told[0]


def test_what_torch_keeps_on_disk_is_marked_with_the_processors_instructions(monkeypatch):
    marks = []

    def watched(function, **_):
        return lambda *_: marks.append(torch.compiler.config.cache_key_tag)

    monkeypatch.setattr(torch, "compile", watched)
    for instructions in ("AVX2", "AVX512"):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda it=instructions: it)
        CompiledDecoder(tiny_model(num_hidden_layers=1))(token_ids(1, 4))
    assert marks == ["AVX2", "AVX512"]
