"""Choosing the way of decoding, and what each way must give: the tokens of the plain one."""

import ast
import copy
import dataclasses
import functools
import inspect
import threading
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from unittest import mock
from unittest.mock import Mock

import nbformat
import pytest
import torch
import torch.nn.functional as F
from cases import long_after
from hypothesis import given
from hypothesis import strategies as st
from model_builders import KINDS, SLOW_PROPERTY, talkative_model, tiny_model, token_ids
from torch.nn.utils import parametrize

import minimind_edu.model.model
from minimind_edu import MiniMindForCausalLM
from minimind_edu.fast import library
from minimind_edu.fast.decoding import AGAIN, MOST, CompiledDecoder, _room, decoder
from minimind_edu.fast.step import Table, UnreadableError
from minimind_edu.model import attention, generation, rope
from minimind_edu.model.attention import Attention
from minimind_edu.model.kv_cache import KVCache
from minimind_edu.model.norms import RMSNorm
from minimind_edu.model.rope_frequencies import RopeScaling

ROOT = Path(__file__).parents[2]
YARN = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=16)}
CHANGES = {
    "yarn": YARN,
    "not tied": {"tie_word_embeddings": False},
    "two shared experts": {"num_shared_experts": 2, "use_moe": True},
    "weights not renormalized": {"norm_topk_prob": False, "use_moe": True},
    "large eps": {"rms_norm_eps": 0.5, "use_qk_norm": True},
    "narrow heads": {"head_dim": 6, "num_key_value_heads": 4},
}
CASES = [*KINDS, *CHANGES]


pytestmark = pytest.mark.usefixtures("own_step")


def model_of(case, **changes):
    kind = case if case in KINDS else "minimind2"
    return tiny_model(kind, dtype=torch.float32, **CHANGES.get(case, {}), **changes)


def decoded(model, way, ids, steps, **options):
    """What `way` generates, on a generator of its own if one samples."""
    if options.get("do_sample"):
        options["generator"] = torch.Generator().manual_seed(7)
    return generation.generate(decoder(model), ids, steps, **options)


def padded(rows, length):
    """A mask of rows with 0, 2, 4... positions of padding in front."""
    return torch.tensor([[0] * (2 * row) + [1] * (length - 2 * row) for row in range(rows)])


OPTIONS = {
    "greedy": {},
    "end": {"eos_token_id": 20},
    "sampling": {"do_sample": True, "temperature": 1.5, "top_k": 30, "top_p": 0.95},
    "penalty": {"repetition_penalty": 1.4},
    "no cache": {"use_cache": False},
}


@cache
def plain_tokens(case, rows, masked, option):
    """`[rows, 7 + 12]`; what every way must give."""
    mask = padded(rows, 7) if masked else None
    options = {"eos_token_id": None, "attention_mask": mask, **OPTIONS[option]}
    return decoded(model_of(case), "plain", token_ids(rows, 7), 12, **options)


@pytest.mark.parametrize("case", long_after(len(KINDS), CASES))
def test_compiled_decoding_gives_the_plain_tokens(case):
    """Every option meets every number of rows, with padding and without."""
    model = model_of(case)
    for rows in (1, 3):
        ids = token_ids(rows, 7)
        for masked, mask in ((False, None), (True, padded(rows, 7))):
            for option, options in OPTIONS.items():
                options = {"eos_token_id": None, "attention_mask": mask, **options}
                expected = plain_tokens(case, rows, masked, option)
                assert torch.equal(decoded(model, "compiled", ids, 12, **options), expected)


def test_another_order_of_norms_is_read_by_the_model_and_so_are_other_dtypes_and_layouts():
    by_columns = model_of("minimind2")
    weight = by_columns.model.layers[1].self_attn.o_proj.weight
    weight.data = weight.data.t().contiguous().t()
    for model, reason in (
        (model_of("minimind2", norm_placement="post"), "normalizes before each part, and norm_placement is 'post'"),
        (tiny_model(), "computes in float32 on a CPU, and the model is torch.float64 on cpu"),
        (by_columns, "reads matrices by rows, and one does not lie so"),
    ):
        with pytest.warns(UserWarning, match=f"^compiled decoding is only plain here: step.cpp .*{reason}"):
            tokens = decoder(model).generate(token_ids(3, 7), 12, eos_token_id=None, attention_mask=padded(3, 7))
        expected = model.generate(token_ids(3, 7), 12, eos_token_id=None, attention_mask=padded(3, 7))
        assert torch.equal(tokens, expected)


def test_the_first_token_and_the_last_position_can_be_reached():
    model = model_of("minimind2")
    for length, steps in ((1, 64), (63, 2), (64, 1), (1, 1)):
        ids = token_ids(1, length)
        expected = model.generate(ids, steps, eos_token_id=None)
        assert torch.equal(decoded(model, "compiled", ids, steps, eos_token_id=None), expected)


@SLOW_PROPERTY
@given(length=st.integers(1, 6), steps=st.integers(1, 9))
def test_streaming_yields_the_tokens_of_generate(length, steps):
    model, ids = model_of("minimind3"), token_ids(2, length)
    tokens = list(decoder(model).stream(ids, steps, eos_token_id=None))
    expected = model.generate(ids, steps, eos_token_id=None)
    assert torch.equal(torch.stack(tokens, 1), expected[:, length:])


def test_a_plain_stream_may_run_beside_a_compiled_one():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    compiled = decoder(model).stream(ids, 9, eos_token_id=None)
    first = [next(compiled) for _ in range(3)]
    plain = list(model.stream(ids, 9, eos_token_id=None))
    assert torch.equal(torch.stack([*first, *compiled]), torch.stack(plain))


def test_between_two_texts_a_model_may_change():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    compiled = decoder(model)
    changes = (
        lambda: model.load_state_dict(tiny_model(seed=1).state_dict()),
        lambda: model.to(torch.float32),
        lambda: setattr(model.model.layers[1].mlp.up_proj, "weight", torch.nn.Parameter(torch.randn(48, 32))),
        lambda: setattr(model.lm_head.weight, "data", model.lm_head.weight.data.neg().contiguous()),
    )
    for change in changes:
        change()
        expected = model.generate(ids, 9, eos_token_id=None)
        assert torch.equal(compiled.generate(ids, 9, eos_token_id=None), expected)


def test_single_tokens_are_read_by_the_step_and_prompts_and_the_first_of_them_by_the_model(monkeypatch):
    model, read, forward = model_of("minimind2"), [], MiniMindForCausalLM.forward
    compiled = decoder(model)
    taken = steps_of(monkeypatch)
    monkeypatch.setattr(
        MiniMindForCausalLM, "forward", lambda it, ids, *_, **o: read.append(ids.shape[1]) or forward(it, ids, *_, **o)
    )
    for length in (1, 5, MOST + 1):
        compiled.generate(token_ids(1, length), 6, eos_token_id=None)
        assert (read, taken) == ([length, 1], [1] * 5)
        read.clear(), taken.clear()
    out = compiled(token_ids(2, 3), use_cache=True)
    out = compiled(token_ids(2, 1), None, out.past_key_values, True)
    compiled(token_ids(2, MOST // 2), None, out.past_key_values, True)
    assert (read, taken) == ([3, 1], [1])
    compiled(token_ids(2, MOST // 2 + 1), None, out.past_key_values, True)
    assert (read, taken) == ([3, 1, MOST // 2 + 1], [1])


def test_a_decoder_is_called_like_its_model():
    """The same names, order and defaults; and outputs, but for what no step computes."""
    model, ids = talkative_model("minimind3_moe"), token_ids(2, 9)
    compiled = decoder(model)
    parameters = list(inspect.signature(MiniMindForCausalLM.forward).parameters.values())
    assert list(inspect.signature(CompiledDecoder.__call__).parameters.values()) == parameters
    mask = padded(2, 9)
    cached = {"use_cache": True}
    for options in ({}, {"labels": ids}, {"labels": ids, **cached}, {"logits_to_keep": 3}, cached):
        expected, out = model(ids, mask, **options), compiled(ids, mask, **options)
        assert type(out) is type(expected)
        for name in ("logits", "loss", "aux_loss", "last_hidden_state"):
            assert out[name] is expected[name] is None or torch.equal(out[name], expected[name])
        assert (out.past_key_values is None) == ("use_cache" not in options)
    for options in ({}, {"logits_to_keep": 2}, {"labels": ids[:, 5:]}):
        past = compiled(ids[:, :5], use_cache=True).past_key_values
        expected, out = (reader(ids[:, 5:], None, past, True, **options) for reader in (model, compiled))
        torch.testing.assert_close(out.logits, expected.logits, rtol=0, atol=1e-5)
        assert out["loss"] is expected.loss is None or torch.equal(out.loss, expected.loss)
        assert out.past_key_values.length == 9 and (out.last_hidden_state is None) == ("labels" not in options)
    for wrong in ((ids.tolist(),), (ids, mask.tolist()), (ids, None, None, 1), (ids, None, None, True, None, True)):
        for reader in (compiled, model):
            with pytest.raises(ValueError):
                reader(*wrong)


@pytest.mark.parametrize("rows, lengths", [(1, (17, 3, 1, 11)), (3, (6, 1, 2, 10)), (5, (4, 5))])
def test_blocks_of_any_length_go_on_in_a_cache_that_grows(rows, lengths):
    """Blocks are whole or not, texts fill them or not; all logits are asked for, or some of the last."""
    model = talkative_model()
    compiled, ids, mask = decoder(model), token_ids(rows, sum(lengths)), None
    if rows > 1:
        mask = padded(rows, sum(lengths))
        mask[:, 4:] = 1
    with torch.no_grad():
        expected = model(ids, mask).logits
    for keep in (0, 2):
        past, end = KVCache(model.config.num_hidden_layers), 0
        for length in lengths:
            begin, end = end, end + length
            seen = None if mask is None else mask[:, :end]
            kept = min(keep, length)
            out = compiled(ids[:, begin:end], seen, past, True, logits_to_keep=kept)
            past = out.past_key_values
            wanted = expected[:, end - (kept or length) : end]
            shown = torch.ones_like(wanted[..., 0]).bool() if seen is None else seen[:, end - (kept or length) :].bool()
            largest = expected.abs().max().item()
            torch.testing.assert_close(out.logits[shown], wanted[shown], rtol=0, atol=2e-5 * largest)


def test_what_the_model_has_read_is_continued():
    model, ids = talkative_model("minimind3"), token_ids(2, 12)
    with torch.no_grad():
        past = model(ids[:, :8], use_cache=True).past_key_values
        expected = model(ids).logits[:, 8:]
    logits = decoder(model)(ids[:, 8:], None, past, True).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=2e-5 * expected.abs().max().item())


def test_ids_outside_the_vocabulary_and_positions_behind_the_last_are_refused():
    """They would be read from other memory; in a text that was compared before, so that the model does not look."""
    model = model_of("minimind2")
    compiled, past = decoder(model), past_of(model, 62)
    past = compiled(token_ids(1, 1), None, past, True).past_key_values
    for token in (-1, 61, 2**40):
        with pytest.raises(ValueError, match=r"token ids must lie in \[0, 61\)"):
            compiled(torch.tensor([[token]]), None, past, True)
    with pytest.raises(ValueError, match="exceed max_position_embeddings=64"):
        compiled(token_ids(1, 2), None, past, True)
    past = compiled(token_ids(1, 1), None, past, True).past_key_values
    with pytest.raises(ValueError, match="exceed max_position_embeddings=64"):
        compiled(token_ids(1, 1), None, past, True)


def test_padding_elsewhere_than_in_front_is_read_by_the_model():
    model, ids, mask = talkative_model(), token_ids(2, 9), padded(2, 9)
    mask[0, 3] = 0
    past = decoder(model)(ids[:, :-1], mask[:, :-1], use_cache=True).past_key_values
    with torch.no_grad():
        expected = model(ids, mask).logits[:, -1]
    torch.testing.assert_close(decoder(model)(ids[:, -1:], mask, past, True).logits[:, -1], expected)


def test_a_decoder_leaves_the_model_as_it_is():
    model, ids = model_of("minimind3_moe"), token_ids(1, 5)
    before = {name: (it.data_ptr(), it.stride(), it.clone()) for name, it in model.named_parameters()}
    decoder(model).generate(ids, 5)
    for name, it in model.named_parameters():
        place, stride, values = before[name]
        assert (it.data_ptr(), it.stride()) == (place, stride) and torch.equal(it, values) and it.requires_grad


def test_two_continuations_of_one_past_do_not_disturb_each_other():
    model, ids = model_of("minimind2"), token_ids(1, 8)
    compiled = decoder(model)
    with torch.no_grad():
        past = compiled(ids[:, :6], use_cache=True).past_key_values
        first = compiled(ids[:, 6:7], None, past, True)
        other = compiled(ids[:, :1], None, past, True)
        again = compiled(ids[:, 7:], None, first.past_key_values, True)
        expected = model(ids).logits[:, 7:]
    assert past.length == 6 and other.past_key_values.length == 7
    torch.testing.assert_close(again.logits, expected)


# Where there is no step


def test_without_a_library_decoding_is_plain_and_says_so(monkeypatch):
    model, ids = model_of("minimind2"), token_ids(1, 4)
    expected = model.generate(ids, 9, eos_token_id=None)
    monkeypatch.setattr(library, "_tried", lambda code: "no C++ compiler is found; install one")
    with pytest.warns(UserWarning) as said:
        found = decoder(model, "compiled")
        tokens = [found.generate(ids, 9, eos_token_id=None) for _ in range(2)]
    assert [str(warning.message) for warning in said] == [
        "compiled decoding is only plain here: no C++ compiler is found; install one"
    ]
    assert torch.equal(tokens[0], expected) and torch.equal(tokens[1], expected)


def test_a_changed_step_is_what_its_decoder_reads_with_and_no_other_one():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    code = library.SOURCE.read_text(encoding="utf-8")
    here, instead = "scores[k][0] / __builtin_sqrtf(head_dim)", "-1e9f * t"  # every query reads its first key alone
    assert code.count(here) == 1
    past = model(ids, use_cache=True).past_key_values
    expected = decoder(model)(ids, None, past, True).logits
    changed = CompiledDecoder(model, code.replace(here, instead))(ids, None, past, True).logits
    assert (changed - expected).abs().max() > 1e-3
    assert torch.equal(decoder(model)(ids, None, past, True).logits, expected)


def test_a_changed_step_that_is_no_program_is_said_in_the_compilers_words():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    code = library.SOURCE.read_text(encoding="utf-8").replace("float total = 0;", "float total = nothing;")
    with pytest.warns(UserWarning, match="only plain here: CalledProcessError.*nothing") as said:
        tokens = CompiledDecoder(model, code).generate(ids, 9, eos_token_id=None)
    assert library.INSTALL not in str(said[0].message)
    assert torch.equal(tokens, model.generate(ids, 9, eos_token_id=None))


def test_what_chapter_14_changes_in_step_cpp_stands_there_once():
    cells = nbformat.read(ROOT / "chapters/deeper/D14_speed.ipynb", 4).cells
    tree = ast.parse(next(cell.source for cell in cells if cell.id == "without-codes"))
    [changes] = [ast.literal_eval(node) for node in ast.walk(tree) if isinstance(node, ast.Dict) and len(node.keys) > 1]
    code = library.SOURCE.read_text(encoding="utf-8")
    assert changes
    for here, instead in changes.values():
        assert code.count(here) == 1 and instead != here


def steps_of(monkeypatch):
    """The list of what follows: a 1 for each single token that a step reads."""
    taken, read = [], Table.read
    monkeypatch.setattr(Table, "read", lambda it, ids, *_: taken.extend([1] * (ids.shape[1] == 1)) or read(it, ids, *_))
    return taken


# Whatever is changed, decoding follows the model or leaves it the text


class Doubled(torch.nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Negative:
    def __call__(self, x):
        return -x


def put(name, attribute, make):
    """A change: the attribute of a part becomes what `make` makes of the part."""
    return lambda model: setattr(model.get_submodule(name), attribute, make(model.get_submodule(name)))


def shared(model):
    model.model.layers[1] = model.model.layers[0]


def another_eps(part):
    return dataclasses.replace(part.config, rms_norm_eps=0.7)


def linear(*sizes, kind=torch.nn.Linear, **options):
    return lambda _: kind(*sizes, **options)


def hooked(part):
    part.register_forward_hook(lambda part, x, y: (-y[0], y[1]))


ATTENTION, MLP, NORM = "model.layers.0.self_attn", "model.layers.1.mlp", "model.layers.0.input_layernorm"
ONES = functools.partial(torch.nn.functional.linear, weight=torch.ones(32, 48))
CHANGED = {
    "another class": put(MLP, "up_proj", linear(32, 48, False, kind=Doubled)),
    "a bias": put(MLP, "up_proj", linear(32, 48)),
    "another shape": put(f"{MLP}.up_proj", "weight", lambda _: torch.nn.Parameter(torch.ones(48, 1))),
    "a hook": lambda m: hooked(m.get_submodule(ATTENTION)),
    "a hook before": lambda m: m.model.norm.register_forward_pre_hook(lambda _, x: (-x[0],)),
    "a function": put(f"{MLP}.down_proj", "forward", lambda part: lambda x, before=part.forward: -before(x)),
    "a partial": put(f"{MLP}.down_proj", "forward", lambda _: ONES),
    "a callable object": put("model.norm", "forward", lambda _: Negative()),
    "a mock": put(MLP, "forward", lambda part: Mock(side_effect=part.forward)),
    "a builtin": put(MLP, "forward", lambda _: torch.neg),
    "a method of its own": put(MLP, "forward", lambda part: part.forward),
    "a method that forward calls": put(ATTENTION, "project", lambda part: lambda x, *its, a=part.project: a(-x, *its)),
    "eps": put(NORM, "eps", lambda _: 5.0),
    "eps that is a tensor": put(NORM, "eps", lambda _: torch.full((1, 1, 32), 5.0)),
    "pre_norm": put("model.layers.1", "pre_norm", lambda _: False),
    "head_dim": put(ATTENTION, "head_dim", lambda _: 4),
    "max_norm": put("model.embed_tokens", "max_norm", lambda _: 1e9),
    "top_k": put(f"{MLP}.gate", "top_k", lambda _: 1),
    "both configs": lambda m: [put(name, "config", another_eps)(m) for name in ("", "model")],
    "one of two configs": put("", "config", another_eps),
    "fewer positions": put("model", "config", lambda it: dataclasses.replace(it.config, max_position_embeddings=6)),
    "fewer tokens": put("model", "config", lambda it: dataclasses.replace(it.config, vocab_size=7)),
    "one layer more": lambda m: m.model.layers.append(copy.deepcopy(m.model.layers[0])),
    "one layer less": lambda m: m.model.layers.pop(1),
    "no feed-forward part": put("model.layers.1", "mlp", lambda _: None),
    "shared layers": shared,
    "a transposed matrix": put(f"{ATTENTION}.o_proj", "weight", lambda part: torch.nn.Parameter(part.weight.data.t())),
    "another base": lambda m: m.model.freqs_cos.cos_(),
    "one dtype beside another": lambda m: m.model.norm.double(),
}


NEUTRAL = (  # no logit of eight tokens changes
    "a mock", "a method of its own", "max_norm", "both configs", "one of two configs", "one dtype beside another",
)  # fmt: skip


def logits_step_by_step(reader, ids, mask=None):
    """Of a prompt of three tokens and then of each, `[B, S, V]`; or the error's class."""
    out, found = None, []
    try:
        with torch.no_grad():
            for begin, end in ((0, 3), *((at, at + 1) for at in range(3, ids.shape[1]))):
                seen = None if mask is None else mask[:, :end]
                out = reader(ids[:, begin:end], seen, out and out.past_key_values, use_cache=True)
                found.append(out.logits)
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return type(error)
    return torch.cat(found, dim=1)


def assert_follows(compiled, model, ids, mask=None):
    """The decoder gives the logits and the tokens of the model as it is now, or its error."""
    expected, found = (logits_step_by_step(reader, ids, mask) for reader in (model, compiled))
    if isinstance(expected, type):
        assert found is expected
    else:
        shown = ... if mask is None else mask.bool()
        torch.testing.assert_close(found[shown], expected[shown], rtol=0, atol=3e-5 * expected.abs().max().item())
    options = {"eos_token_id": None, "attention_mask": None if mask is None else mask[:, :3]}
    try:
        tokens = model.generate(ids[:, :3], 9, **options)
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        with pytest.raises(type(error)):
            compiled.generate(ids[:, :3], 9, **options)
    else:
        assert torch.equal(compiled.generate(ids[:, :3], 9, **options), tokens)


@pytest.mark.filterwarnings("ignore:compiled decoding is only plain")
@pytest.mark.parametrize("change", long_after(9, CHANGED))
def test_a_model_that_somebody_changed_is_followed_until_it_is_changed_back(monkeypatch, change):
    model, ids = talkative_model("minimind2_moe" if change == "top_k" else "minimind2"), token_ids(2, 9)
    compiled = decoder(model)
    before, as_it_was = copy.deepcopy(model), logits_step_by_step(model, ids)
    CHANGED[change](model)
    now = logits_step_by_step(model, ids)
    neutral = change in (
        "a mock",
        "a method of its own",
        "max_norm",
        "both configs",
        "one of two configs",
        "one dtype beside another",
    )
    assert neutral or isinstance(now, type) or (now - as_it_was).abs().max() > 1e-3
    for reader in (compiled, decoder(model)):
        assert_follows(reader, model, ids)
    model.__dict__ = before.__dict__
    taken = steps_of(monkeypatch)
    assert_follows(compiled, model, ids)
    assert len(taken) == 6 + 8, "the step reads again"


def doubled(function):
    return lambda *its, **options: 2 * function(*its, **options)


def looking_back_twice(function):
    """A sliding window of two positions."""
    return lambda length, end, *_: torch.ones(length, end).bool().triu(end - length - 1).tril(end - length)[None, None]


PATCHES = {  # where a name stands, the name, and what stands there instead
    "attention": (attention, "fast_attention", doubled),
    "no RoPE": (attention, "apply_rotary_pos_emb", lambda _: lambda q, k, cos, sin: (q, k)),
    "a helper of RoPE": (rope, "rotate_half", lambda function: lambda x: -function(x)),
    "the mask": (minimind_edu.model.model, "visible_keys", looking_back_twice),
    "a function of torch": (F, "silu", lambda _: F.relu),
    "torch's attention": (F, "scaled_dot_product_attention", doubled),
    "a class": (Attention, "forward", lambda forward: lambda self, x, *its: forward(self, -x, *its)),
    "the norm's class": (RMSNorm, "norm", doubled),
    "the call of all": (MiniMindForCausalLM, "__call__", lambda call: lambda self, *its, **options: reversed_logits(
        call(self, *its, **options)
    )),
}  # fmt: skip


def reversed_logits(out):
    return out._replace(logits=out.logits.flip(-1))


def patched(patch):
    place, name, make = PATCHES[patch]
    return mock.patch.object(place, name, make(getattr(place, name)))


@pytest.mark.parametrize("rows", long_after(1, ["one", "padded"]))
@pytest.mark.parametrize("patch", PATCHES)
def test_a_function_that_somebody_patched_is_called(monkeypatch, patch, rows):
    """Before the decoder is made, after it, and until it is what it was."""
    model, ids, mask = talkative_model("minimind3"), token_ids(1, 9), None
    if rows == "padded":
        ids, mask = token_ids(2, 9), torch.tensor([[0] + [1] * 8, [1] * 9])
        if patch == "the mask":
            pytest.skip("it does not look at padding")
    compiled, as_it_was = decoder(model), logits_step_by_step(model, ids, mask)
    with patched(patch):
        assert (logits_step_by_step(model, ids, mask) - as_it_was).abs().max() > 1e-3
        for reader in (compiled, decoder(model)):
            with pytest.warns(UserWarning, match="only plain here: step.cpp and the model as it is now give different"):
                assert_follows(reader, model, ids, mask)
    taken = steps_of(monkeypatch)
    assert_follows(compiled, model, ids, mask)
    assert len(taken) == 6 + 8


@pytest.mark.filterwarnings("ignore:compiled decoding is only plain")
@pytest.mark.parametrize("patch", PATCHES)
def test_a_function_that_is_patched_in_the_middle_of_a_text_is_called_from_there_on(patch):
    ids, streams = token_ids(1, 4), []
    for how in ("plain", "compiled"):
        stepping = decoder(talkative_model("minimind3"), how)
        tokens = stepping.stream(ids, 12, eos_token_id=None)
        found = [next(tokens) for _ in range(4)]
        with patched(patch):
            found += [next(tokens) for _ in range(4)]
        streams.append(torch.stack([*found, *tokens]))
    assert torch.equal(*streams)
    unchanged = talkative_model("minimind3").generate(ids, 12, eos_token_id=None)
    assert not torch.equal(streams[0][:, 0], unchanged[0, 4:])


@pytest.mark.filterwarnings("ignore:compiled decoding is only plain")
@SLOW_PROPERTY
@given(data=st.data())
def test_whatever_happens_between_two_tokens_is_followed(data):
    """Functions are patched, tensors replaced or changed in place, whenever, while two texts take turns."""
    kind = data.draw(st.sampled_from(["minimind2", "minimind3", "minimind2_moe"]))
    events = st.sampled_from([*PATCHES, *MIDWAY, "undo", *["nothing"] * 8])
    plan = data.draw(st.lists(st.tuples(events, st.integers(0, 1)), min_size=4, max_size=14))
    found = []
    for how in ("plain", "compiled"):
        model, tokens = talkative_model(kind), []
        stepping = decoder(model, how)
        streams = [stepping.stream(token_ids(rows, 4), 14, eos_token_id=None) for rows in (1, 2)]
        with ExitStack() as stack:
            for event, text in plan:
                try:
                    if event in PATCHES:
                        stack.enter_context(patched(event))
                    elif event in MIDWAY:
                        MIDWAY[event](model)
                    elif event == "undo":
                        stack.close()
                    tokens.append(next(streams[text], None))
                except (ValueError, KeyError, RuntimeError, AttributeError) as error:  # some do not go together
                    tokens.append(torch.tensor(hash(type(error))))
        found.append([token is None or token.tolist() for token in tokens])
    assert found[0] == found[1]


def test_a_cache_that_somebody_hands_over_is_compared_anew():
    model, ids = talkative_model(), token_ids(1, 6)
    compiled = decoder(model)
    compiled.generate(ids, 3, eos_token_id=None)
    last = compiled.model.model.layers[1].mlp.down_proj.weight
    with patched("attention"), torch.no_grad():
        past = model(ids, use_cache=True).past_key_values
        with pytest.warns(UserWarning, match="give different logits"):
            logits = compiled(ids[:, :1], None, past, True).logits
        assert torch.equal(logits, model(ids[:, :1], None, past, True).logits)
    assert last is model.model.layers[1].mlp.down_proj.weight


def test_one_row_of_a_batch_and_one_logit_are_enough():
    """A patch that touches nothing but one token of one row."""
    model, ids = talkative_model(), token_ids(3, 6)

    def touched(call):
        def instead(self, *its, **options):
            out = call(self, *its, **options)
            logits = out.logits.clone()
            logits[1, -1, 7] += 1e-3 * logits[1].abs().max()
            return out._replace(logits=logits)

        return instead

    with mock.patch.object(MiniMindForCausalLM, "__call__", touched(MiniMindForCausalLM.__call__)):
        with pytest.warns(UserWarning, match="give different logits"):
            assert_follows(decoder(model), model, ids)


def test_where_the_model_is_not_finite_the_step_must_not_be_either():
    """And the other way round; all else in such a row is compared as in any other."""
    compiled = decoder(model_of("minimind2"))
    for number in (torch.nan, torch.inf):
        expected = torch.tensor([[[1.0, -2.0, number]]])
        for found, near in (
            ([1.0, -2.0, torch.nan], True), ([1.0, -2.0, -torch.inf], True), ([1.0, -2.0, 3.0], False),
            ([1.0, torch.nan, number], False), ([1.0, -2.1, number], False), ([1.0, -2.00001, number], True),
        ):  # fmt: skip
            assert compiled._agree(torch.tensor([[found]]), expected) == near
        assert not compiled._agree(expected, expected.nan_to_num(posinf=0.0))


def test_what_changes_of_itself_later_is_noticed_when_the_text_is_compared_again():
    """A function that stays the same and computes something else after some positions: told, with what is in doubt."""
    model, ids = talkative_model(max_position_embeddings=256), token_ids(1, 4)

    def tires(function):
        return lambda q, key, *its: function(q, key, *its) * (2 if key.shape[1] > 20 else 1)

    with mock.patch.object(attention, "fast_attention", tires(attention.fast_attention)):
        with pytest.warns(UserWarning, match=f"logits; the last {AGAIN} tokens may be others than the model's"):
            decoder(model).generate(ids, 200, eos_token_id=None)
    compared = steps_compared(model, ids)
    assert compared == [1, 1 + AGAIN, 1 + 2 * AGAIN]


def steps_compared(model, ids):
    """Which of the single tokens the model read, too."""
    single, compared, call, read = [], [], MiniMindForCausalLM.forward, Table.read
    with (
        mock.patch.object(Table, "read", lambda it, *its: single.append(1) or read(it, *its)),
        mock.patch.object(
            MiniMindForCausalLM,
            "forward",
            lambda it, *its, **options: compared.append(len(single)) or call(it, *its, **options),
        ),
    ):
        decoder(model).generate(ids, 200, eos_token_id=None)
    return [count for count in compared if count]


def transposed(weight):
    weight.data = weight.data.t()


MIDWAY = {
    "a parameter": lambda m: setattr(m.lm_head, "weight", torch.nn.Parameter(m.lm_head.weight.data.flip(0))),
    "a module": lambda m: setattr(m.model.layers[1], "mlp", copy.deepcopy(m.model.layers[0].mlp)),
    "the memory of a parameter": lambda m: setattr(m.model.norm.weight, "data", -m.model.norm.weight.data),
    "a forward": CHANGED["a builtin"],
    "a hook": CHANGED["a hook"],
    "the order in memory": lambda m: transposed(m.model.layers[0].self_attn.o_proj.weight),
    "the tables of positions": lambda m: setattr(m.model, "freqs_cos", -m.model.freqs_cos),
    "no parameter": lambda m: parametrize.register_parametrization(m.lm_head, "weight", torch.nn.Identity()),
    "in place": lambda m: m.model.layers[0].self_attn.k_proj.weight.data.neg_(),
    "loaded": lambda m: m.load_state_dict(tiny_model(seed=1).state_dict()),
}


@pytest.mark.filterwarnings("ignore:compiled decoding is only plain")
@pytest.mark.parametrize("change", MIDWAY)
def test_a_change_in_the_middle_of_a_text_is_followed(change):
    ids, streams = token_ids(1, 4), []
    for how in ("plain", "compiled"):
        model = talkative_model()
        tokens = decoder(model, how).stream(ids, 12, eos_token_id=None)
        begun = [next(tokens) for _ in range(4)]
        MIDWAY[change](model)
        streams.append(torch.stack([*begun, *tokens]))
    assert torch.equal(*streams)
    unchanged = talkative_model().generate(ids, 12, eos_token_id=None)
    assert not torch.equal(streams[0][:, 0], unchanged[0, 4:]) or change == "no parameter"


def test_memory_may_be_shared_with_other_processes():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    model.share_memory()
    tokens = decoder(model).generate(ids, 5, eos_token_id=None)
    assert all(it.is_shared() for it in model.parameters())
    assert torch.equal(tokens, model.generate(ids, 5, eos_token_id=None))


def test_under_autocast_a_text_is_read_by_the_model(monkeypatch):
    model, ids = talkative_model(), token_ids(1, 4)
    stepping = decoder(model)
    taken = steps_of(monkeypatch)
    with torch.autocast("cpu", torch.bfloat16):
        expected = model.generate(ids, 9, eos_token_id=None)
        with pytest.warns(UserWarning, match="only plain here: torch.autocast chooses other dtypes"):
            tokens = stepping.generate(ids, 9, eos_token_id=None)
    assert torch.equal(tokens, expected) and not taken
    tokens = stepping.stream(ids, 9, eos_token_id=None)
    next(tokens)
    with torch.autocast("cpu", torch.bfloat16), pytest.warns(UserWarning, match="torch.autocast"):
        with pytest.raises(ValueError, match="the cache holds torch.float32"):  # as the model says, from the middle on
            next(tokens)
    assert not taken
    assert torch.equal(stepping.generate(ids, 9, eos_token_id=None), model.generate(ids, 9, eos_token_id=None))
    assert len(taken) == 8


def test_threads_may_share_a_decoder_or_make_their_own():
    model, results = talkative_model("minimind2_moe"), {}
    one = decoder(model)
    expected = [model.generate(token_ids(1, 5, seed=seed), 30, eos_token_id=None) for seed in range(4)]

    def work(seed):
        reader = one if seed % 2 else decoder(model)
        results[seed] = [reader.generate(token_ids(1, 5, seed=seed), 30, eos_token_id=None) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(tokens, expected[seed]) for seed in range(4) for tokens in results[seed])


# What a call may continue


def called(reader, *arguments, **options):
    """The logits, or the error's class and words."""
    try:
        with torch.no_grad():
            return reader(*arguments, **{"use_cache": True, **options}).logits
    except (ValueError, RuntimeError, TypeError, IndexError, AttributeError) as error:
        return type(error), str(error)


def past_of(model, length=4, rows=1):
    with torch.no_grad():
        return model(token_ids(rows, length), use_cache=True).past_key_values


def uneven(model):
    """With the same room."""
    past, other = (KVCache(model.config.num_hidden_layers, capacity=32) for _ in range(2))
    with torch.no_grad():
        past = model(token_ids(1, 4), past_key_values=past, use_cache=True).past_key_values
        past.layers[1] = model(token_ids(1, 3), past_key_values=other, use_cache=True).past_key_values.layers[1]
    return past


PASTS = {
    "pairs": lambda m: list(past_of(m)),
    "nothing": lambda m: None,
    "pairs of numbers": lambda m: [(1, 2)],
    "another number of rows": lambda m: past_of(m, rows=2),
    "too few layers": lambda m: past_of(model_of("minimind2", num_hidden_layers=1)),
    "too many layers": lambda m: past_of(model_of("minimind2", num_hidden_layers=3)),
    "other heads": lambda m: past_of(model_of("minimind2", num_key_value_heads=1)),
    "wider heads": lambda m: past_of(model_of("minimind2", head_dim=16)),
    "another dtype": lambda m: past_of(tiny_model()),
    "layers of different lengths": uneven,
    "all positions": lambda m: past_of(m, 64),
}


@pytest.mark.parametrize("past", PASTS)
def test_a_past_is_continued_or_refused_as_by_the_model(past):
    model = model_of("minimind2")
    stepping, past = decoder(model), PASTS[past](model)
    for token in (token_ids(1, 1), token_ids(1, 3)):
        expected, got = called(model, token, None, past), called(stepping, token, None, past)
        if isinstance(expected, torch.Tensor):
            torch.testing.assert_close(got[:, -1], expected[:, -1])
        else:
            assert got == expected


NO_ROOM = [name for name in PASTS if name not in ("pairs", "nothing", "pairs of numbers")]


@pytest.mark.parametrize("past", NO_ROOM)
def test_there_is_no_room_in_a_past_that_does_not_fit(past):
    """step.cpp believes sizes and would read and write other memory before the model, which compares, refuses it."""
    model = model_of("minimind2")
    table = Table(model)
    assert _room(table, token_ids(1, 1), None, past_of(model)) is not None
    assert _room(table, token_ids(1, 1), None, PASTS[past](model)) is None


def test_there_is_no_room_in_buffers_that_do_not_lie_as_step_cpp_walks_through_them(monkeypatch):
    model = model_of("minimind2")
    reserve = KVCache.reserve

    def spread(self, length):
        keys, values = reserve(self, length)
        return keys, [values[0], torch.cat([values[1]] * 2, dim=-1)[..., ::2]]

    monkeypatch.setattr(KVCache, "reserve", spread)
    assert _room(Table(model), token_ids(1, 1), None, past_of(model)) is None


def test_what_does_not_fit_a_past_is_refused_as_by_the_model():
    model = model_of("minimind2")
    stepping, past = decoder(model), past_of(model)
    token = token_ids(1, 1)
    for mask in (torch.ones(1, 1), torch.ones(1, 4), torch.ones(2, 5), torch.ones(5)):
        assert called(stepping, token, mask, past) == called(model, token, mask, past)
    for ids in (token[0], token.repeat(2, 1)):
        assert called(stepping, ids, None, past) == called(model, ids, None, past)


def test_a_global_hook_keeps_decoding_plain():
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: None)
    try:
        with pytest.warns(UserWarning, match="only plain here: a global hook would not be called"):
            decoder(model_of("minimind2"), "compiled")
    finally:
        handle.remove()


def test_a_hook_that_only_looks_on_is_called():
    """No logit shows it. So does a method that one part alone has."""
    for watch in (
        lambda part, seen: part.register_forward_hook(lambda *_: seen.append(1) and None),
        lambda part, seen: part.register_forward_pre_hook(lambda *_: seen.append(1) and None),
        lambda part, seen: setattr(part, "forward", lambda x, call=part.forward: seen.append(1) or call(x)),
    ):
        model, seen = model_of("minimind2"), []
        watch(model.model.layers[1].mlp, seen)
        with pytest.warns(UserWarning, match="model.layers.1.mlp would not be called"):
            decoder(model).generate(token_ids(1, 4), 5, eos_token_id=None)
        assert len(seen) == 5


WRONG_PLACES = {
    "a smaller vocabulary": lambda m: put("lm_head", "weight", lambda _: torch.nn.Parameter(torch.ones(60, 32)))(m),
    "a shorter gain": lambda m: put("model.norm", "weight", lambda _: torch.nn.Parameter(torch.ones(31)))(m),
    "tables of fewer channels": lambda m: setattr(m.model, "freqs_sin", m.model.freqs_sin[:, :6].contiguous()),
    "fewer experts": lambda m: m.model.layers[0].mlp.experts.pop(0),
    "no memory": lambda m: m.model.norm.weight.data.untyped_storage().resize_(0),
}


@pytest.mark.parametrize("place", WRONG_PLACES)
def test_no_address_is_taken_of_what_does_not_have_the_config_s_place(place):
    model = model_of("minimind2_moe", tie_word_embeddings=False)
    WRONG_PLACES[place](model)
    with pytest.raises(UnreadableError, match="step.cpp (expects|reads)"):
        Table(model)


def test_another_device_stays_plain():
    model = model_of("minimind2").to("meta")
    with pytest.warns(UserWarning, match="computes in float32 on a CPU, and the model is torch.float32 on meta"):
        decoder(model, "compiled")
    assert model.lm_head.weight.is_contiguous()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("name", ["self_attn.q_proj", "self_attn.k_norm", "mlp.gate_proj", "input_layernorm"])
def test_a_weight_that_is_not_finite_is_named_in_every_way(name, bad):
    """NaN in queries or keys alone would not reach a logit: torch's attention takes such a score for none."""
    model = talkative_model("minimind3")
    model.model.layers[1].get_submodule(name).weight.data.view(-1)[5] = bad
    model.model.norm.weight.data[0] = bad
    for reader in (model, decoder(model)):
        for read in (reader.generate, reader.stream, functools.partial(generation.generate, reader)):
            with pytest.raises(ValueError, match=f"must be finite numbers, but model.layers.1.{name}.weight holds"):
                read(token_ids(1, 4), 3)


def test_dropout_is_not_left_out_silently():
    model, ids = model_of("minimind2", dropout=0.1).train(), token_ids(1, 4)
    with pytest.raises(ValueError, match=r"has no dropout, .*=0.1 at model.dropout; call model.eval\(\) first"):
        decoder(model)
    decoder(model.eval(), "compiled").generate(ids, 2)
    decoder(model_of("minimind2").train(), "compiled").generate(ids, 2)


def test_dropout_of_one_part_is_not_left_out_silently():
    """The config says nothing of it."""
    model = model_of("minimind2")
    part = model.model.layers[1].self_attn
    compiled = decoder(model)
    for own, setting in ((part.resid_dropout, "p"), (part, "dropout")):
        setattr(own, setting, 0.9)
        own.train()
        for stepping in (lambda: decoder(model), lambda: compiled.generate(token_ids(1, 4), 2)):
            with pytest.raises(ValueError, match=r"no dropout, .* dropout=0.9 at model.layers.1.self_attn[a-z._]*;"):
                stepping()
        model.eval()
        compiled.generate(token_ids(1, 4), 2)
        setattr(own, setting, 0.0)


def test_a_warning_shows_the_line_that_asked():
    model, ids, hooked = model_of("minimind2"), token_ids(2, 4), model_of("minimind2")
    hooked.register_forward_hook(lambda *_: None)
    past = model(ids, use_cache=True).past_key_values
    asking = (
        lambda made: made.generate(ids, 2),
        lambda made: list(made.stream(ids, 2)),
        lambda made: generation.generate(made, ids, 2),
        lambda made: made(ids[:, :1], None, past, True),
        lambda _: decoder(hooked, "compiled"),
    )
    for ask in asking:
        made = decoder(model)
        with patched("attention"), pytest.warns(UserWarning) as said:
            ask(made)
        assert [warning.filename for warning in said] == [__file__]


def test_rejects_a_way_that_does_not_exist():
    with pytest.raises(ValueError, match="must be one of 'plain', 'compiled', got 'fast'"):
        decoder(model_of("minimind2"), "fast")
