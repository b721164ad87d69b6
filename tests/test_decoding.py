"""Choosing the way of decoding, and what each way must give: the tokens of the plain one."""

import ast
import copy
import dataclasses
import functools
import threading
import warnings
from functools import cache
from pathlib import Path
from unittest.mock import Mock

import nbformat
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import KINDS, SLOW_PROPERTY, talkative_model, tiny_model, token_ids
from torch.nn.utils import parametrize

from minimind_edu import generation
from minimind_edu.attention import Attention
from minimind_edu.fast import decoding, library
from minimind_edu.fast.decoding import MOST, CompiledDecoder, decoder
from minimind_edu.fast.step import Table
from minimind_edu.kv_cache import KVCache
from minimind_edu.rope_frequencies import RopeScaling

ROOT = Path(__file__).parents[1]
YARN = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=16)}
WAYS = ("lean", "compiled")
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
    return generation.generate(decoder(model, way), ids, steps, **options)


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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_every_way_gives_the_plain_tokens(case, way):
    """Every option meets every number of rows, with padding and without."""
    model = model_of(case)
    for rows in (1,) if model.config.use_moe and way == "lean" else (1, 3):
        ids = token_ids(rows, 7)
        for masked, mask in ((False, None), (True, padded(rows, 7))):
            for option, options in OPTIONS.items():
                options = {"eos_token_id": None, "attention_mask": mask, **options}
                expected = plain_tokens(case, rows, masked, option)
                assert torch.equal(decoded(model, way, ids, 12, **options), expected)


def test_another_order_of_norms_is_read_lean_and_so_are_other_dtypes_and_layouts():
    by_columns = model_of("minimind2")
    weight = by_columns.model.layers[1].self_attn.o_proj.weight
    weight.data = weight.data.t().contiguous().t()
    for model, reason in (
        (model_of("minimind2", norm_placement="post"), "normalizes before each part, and norm_placement is 'post'"),
        (tiny_model(), "computes in float32 on a CPU, and the model is torch.float64 on cpu"),
        (by_columns, "reads matrices by rows, and one does not lie so"),
    ):
        with pytest.warns(UserWarning, match=f"^compiled decoding is only lean here: step.cpp .*{reason}"):
            tokens = decoder(model).generate(token_ids(3, 7), 12, eos_token_id=None, attention_mask=padded(3, 7))
        expected = model.generate(token_ids(3, 7), 12, eos_token_id=None, attention_mask=padded(3, 7))
        assert torch.equal(tokens, expected)


@pytest.mark.parametrize("way", WAYS)
def test_the_first_token_and_the_last_position_can_be_reached(way):
    model = model_of("minimind2")
    for length, steps in ((1, 64), (63, 2), (64, 1), (1, 1)):
        ids = token_ids(1, length)
        expected = model.generate(ids, steps, eos_token_id=None)
        assert torch.equal(decoded(model, way, ids, steps, eos_token_id=None), expected)


@SLOW_PROPERTY
@given(length=st.integers(1, 6), steps=st.integers(1, 9), way=st.sampled_from(["lean", "compiled"]))
def test_streaming_yields_the_tokens_of_generate(length, steps, way):
    model, ids = model_of("minimind3"), token_ids(2, length)
    tokens = list(decoder(model, way).stream(ids, steps, eos_token_id=None))
    expected = model.generate(ids, steps, eos_token_id=None)
    assert torch.equal(torch.stack(tokens, 1), expected[:, length:])


def test_a_plain_stream_may_run_beside_a_lean_one():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    lean = decoder(model, "lean").stream(ids, 9, eos_token_id=None)
    first = [next(lean) for _ in range(3)]
    plain = list(model.stream(ids, 9, eos_token_id=None))
    assert torch.equal(torch.stack([*first, *lean]), torch.stack(plain))


def test_between_two_texts_a_model_may_change():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    lean = decoder(model, "lean")
    changes = (
        lambda: model.load_state_dict(tiny_model(seed=1).state_dict()),
        lambda: model.to(torch.float32),
        lambda: setattr(model.model.layers[1].mlp.up_proj, "weight", torch.nn.Parameter(torch.randn(48, 32))),
        lambda: setattr(model.lm_head.weight, "data", model.lm_head.weight.data.neg().contiguous()),
    )
    for change in changes:
        change()
        expected = model.generate(ids, 9, eos_token_id=None)
        assert torch.equal(lean.generate(ids, 9, eos_token_id=None), expected)


@pytest.mark.parametrize("way", WAYS)
def test_single_tokens_are_read_by_the_step_and_long_prompts_by_the_model(monkeypatch, way):
    model, read = model_of("minimind2"), []
    stepping = decoder(model, way)
    monkeypatch.setattr(decoding, "why_only_plain", lambda _: None)  # it would notice that forward is watched
    monkeypatch.setattr(model, "forward", lambda ids, *_, **__: read.append(ids.shape[1]) or forward(ids, *_, **__))
    forward = type(model).forward.__get__(model)
    for length in (5, MOST, MOST + 1):
        stepping.generate(token_ids(1, length), 6, eos_token_id=None)
    assert read == ([5, MOST, MOST + 1] if way == "lean" else [MOST + 1])


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
            out = compiled(ids[:, begin:end], seen, past, logits_to_keep=kept)
            past = out.past_key_values
            assert isinstance(out, decoding.StepOutput) or (mask is not None and not bool(seen[:, begin:].any(1).all()))
            wanted = expected[:, end - (kept or length) : end]
            shown = torch.ones_like(wanted[..., 0]).bool() if seen is None else seen[:, end - (kept or length) :].bool()
            largest = expected.abs().max().item()
            torch.testing.assert_close(out.logits[shown], wanted[shown], rtol=0, atol=2e-5 * largest)


def test_what_the_model_has_read_is_continued():
    model, ids = talkative_model("minimind3"), token_ids(2, 12)
    with torch.no_grad():
        past = model(ids[:, :8], use_cache=True).past_key_values
        expected = model(ids).logits[:, 8:]
    logits = decoder(model)(ids[:, 8:], None, past, logits_to_keep=0).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=2e-5 * expected.abs().max().item())


def test_ids_outside_the_vocabulary_are_refused():
    """They would be read from other memory."""
    model = model_of("minimind2")
    compiled, past = decoder(model), past_of(model)
    for token in (-1, 61, 2**40):
        with pytest.raises(ValueError, match=r"token ids must lie in \[0, 61\)"):
            compiled(torch.tensor([[token]]), None, past)


def test_padding_elsewhere_than_in_front_is_read_by_the_model():
    model, ids, mask = talkative_model(), token_ids(2, 9), padded(2, 9)
    mask[0, 3] = 0
    past = decoder(model)(ids[:, :-1], mask[:, :-1]).past_key_values
    with torch.no_grad():
        expected = model(ids, mask).logits[:, -1]
    torch.testing.assert_close(decoder(model)(ids[:, -1:], mask, past).logits[:, -1], expected)


@pytest.mark.parametrize("way", WAYS)
def test_a_decoder_leaves_the_model_as_it_is(way):
    model, ids = model_of("minimind3_moe"), token_ids(1, 5)
    before = {name: (it.data_ptr(), it.stride(), it.clone()) for name, it in model.named_parameters()}
    decoder(model, way).generate(ids, 5)
    for name, it in model.named_parameters():
        place, stride, values = before[name]
        assert (it.data_ptr(), it.stride()) == (place, stride) and torch.equal(it, values) and it.requires_grad


@pytest.mark.parametrize("way", ["lean", "compiled"])
def test_two_continuations_of_one_past_do_not_disturb_each_other(way):
    model, ids = model_of("minimind2"), token_ids(1, 8)
    compiled = decoder(model, way)
    with torch.no_grad():
        past = compiled(ids[:, :6]).past_key_values
        first = compiled(ids[:, 6:7], None, past)
        other = compiled(ids[:, :1], None, past)
        again = compiled(ids[:, 7:], None, first.past_key_values)
        expected = model(ids).logits[:, 7:]
    assert past.length == 6 and other.past_key_values.length == 7
    torch.testing.assert_close(again.logits, expected)


# Progress, and the next simpler way


def test_without_a_library_decoding_is_lean_and_says_so(monkeypatch):
    model, ids = model_of("minimind2"), token_ids(1, 4)
    expected = model.generate(ids, 9, eos_token_id=None)
    monkeypatch.setattr(library, "_tried", lambda code: "no C++ compiler is found; install one")
    with pytest.warns(UserWarning) as said:
        found = decoder(model, "compiled")
        tokens = [found.generate(ids, 9, eos_token_id=None) for _ in range(2)]
    assert [str(warning.message) for warning in said] == [
        "compiled decoding is only lean here: no C++ compiler is found; install one"
    ]
    assert torch.equal(tokens[0], expected) and torch.equal(tokens[1], expected)


def test_a_changed_step_is_what_its_decoder_reads_with_and_no_other_one():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    code = library.SOURCE.read_text(encoding="utf-8")
    here, instead = "scores[k][0] / __builtin_sqrtf(head_dim)", "-1e9f * t"  # every query reads its first key alone
    assert code.count(here) == 1
    expected = decoder(model)(ids).logits
    changed = CompiledDecoder(model, code.replace(here, instead))(ids).logits
    assert (changed - expected).abs().max() > 1e-3
    assert torch.equal(decoder(model)(ids).logits, expected)


def test_a_changed_step_that_is_no_program_is_said_in_the_compilers_words():
    model, ids = model_of("minimind2"), token_ids(1, 4)
    code = library.SOURCE.read_text(encoding="utf-8").replace("float total = 0;", "float total = nothing;")
    with pytest.warns(UserWarning, match="only lean here: CalledProcessError.*nothing") as said:
        tokens = CompiledDecoder(model, code).generate(ids, 9, eos_token_id=None)
    assert library.INSTALL not in str(said[0].message)
    assert torch.equal(tokens, model.generate(ids, 9, eos_token_id=None))


def test_what_chapter_14_changes_in_step_cpp_stands_there_once():
    cells = nbformat.read(ROOT / "chapters/14_speed.ipynb", 4).cells
    tree = ast.parse(next(cell.source for cell in cells if cell.id == "without-codes"))
    [changes] = [ast.literal_eval(node) for node in ast.walk(tree) if isinstance(node, ast.Dict) and len(node.keys) > 1]
    code = library.SOURCE.read_text(encoding="utf-8")
    assert changes
    for here, instead in changes.values():
        assert code.count(here) == 1 and instead != here


def steps_of(stepping, monkeypatch):
    """The list of what follows: a 1 for each single token that a step reads, and not the model."""
    taken, lean, read = [], decoding.token_step, Table.read
    monkeypatch.setattr(decoding, "token_step", lambda *_: taken.append(1) or lean(*_))
    monkeypatch.setattr(Table, "read", lambda it, ids, *_: taken.extend([1] * (ids.shape[1] == 1)) or read(it, ids, *_))
    return taken


def test_only_the_texts_of_a_mixture_that_come_in_a_batch_are_read_by_the_model(monkeypatch):
    model = model_of("minimind3_moe")
    stepping = decoder(model, "lean")
    taken = steps_of(stepping, monkeypatch)
    for _ in range(2):
        for rows, steps in ((1, 4), (2, 0), (1, 4)):
            ids = token_ids(rows, 4)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                tokens = stepping.generate(ids, 5, eos_token_id=None)
            assert [str(it.message) for it in said] == [
                "lean decoding is only plain here: the rows of a batch visit different experts"
            ] * (rows - 1)
            assert len(taken) == steps
            assert torch.equal(tokens, model.generate(ids, 5, eos_token_id=None))
            taken.clear()


class Doubled(torch.nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


class Negative:
    def __call__(self, x):
        return -x


def put(name, attribute, make):
    """A change: the attribute of a part becomes what `make` makes of the part."""

    def change(model):
        part = model.get_submodule(name)
        setattr(part, attribute, make(part))

    return name or "the model itself", change


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
CHANGED = {  # where it is told, and the change
    "another class": (f"{MLP}.up_proj", put(MLP, "up_proj", linear(32, 48, False, kind=Doubled))[1]),
    "a bias": (f"{MLP}.up_proj", put(MLP, "up_proj", linear(32, 48))[1]),
    "another shape": put(f"{MLP}.up_proj", "weight", lambda _: torch.nn.Parameter(torch.ones(48, 1))),
    "a hook": (ATTENTION, lambda m: hooked(m.get_submodule(ATTENTION))),
    "a hook before": ("the model itself", lambda m: m.register_forward_pre_hook(lambda *_: None)),
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
    "both configs": (NORM, lambda m: [put(name, "config", another_eps)[1](m) for name in ("", "model")]),
    "one of two configs": ("the config", put("model", "config", another_eps)[1]),
    "one layer more": ("model.layers", lambda m: m.model.layers.append(copy.deepcopy(m.model.layers[0]))),
    "one layer less": ("model.layers", lambda m: m.model.layers.pop(1)),
    "no feed-forward part": (MLP, put("model.layers.1", "mlp", lambda _: None)[1]),
    "shared layers": ("parameters that several parts share", shared),
}
UNREADABLE = ("another shape", "head_dim", "no feed-forward part", "one layer more", "one layer less")


@pytest.mark.parametrize("way", ["lean", "compiled"])
@pytest.mark.parametrize("change", CHANGED)
def test_a_model_that_somebody_changed_stays_plain_until_it_is_changed_back(monkeypatch, change, way):
    model, ids = model_of("minimind2_moe" if change == "top_k" else "minimind2"), token_ids(1, 4)
    stepping = decoder(model, way)
    taken = steps_of(stepping, monkeypatch)
    own = model.generate(ids, 5, eos_token_id=None)
    before = copy.deepcopy(model)
    where, changed = CHANGED[change]
    changed(model)
    with pytest.warns(UserWarning, match=f"^{way} .* only plain here: .* does not know what was changed at {where}$"):
        found = decoder(model, way)
    with pytest.warns(UserWarning, match=f"^{way} .* only plain here: .* does not know what was changed at {where}$"):
        if change in UNREADABLE:
            for reader in (model, stepping):
                with pytest.raises((RuntimeError, TypeError, IndexError, ValueError)):
                    reader.generate(ids, 5)
        else:
            expected = model.generate(ids, 5, eos_token_id=None)
            for reader in (found, stepping):
                assert torch.equal(reader.generate(ids, 5, eos_token_id=None), expected)
    assert not taken
    model.__dict__ = before.__dict__
    for reader in (found, stepping):
        assert torch.equal(reader.generate(ids, 5, eos_token_id=None), own)
    assert len(taken) == 8, "the step reads again"


MIDWAY = {
    "a parameter": lambda m: setattr(m.lm_head, "weight", torch.nn.Parameter(m.lm_head.weight.data.flip(0))),
    "a module": lambda m: setattr(m.model.layers[1], "mlp", copy.deepcopy(m.model.layers[0].mlp)),
    "the memory of a parameter": lambda m: setattr(m.model.norm.weight, "data", -m.model.norm.weight.data),
    "a forward": CHANGED["a builtin"][1],
    "a hook": CHANGED["a hook"][1],
    "the tables of positions": lambda m: setattr(m.model, "freqs_cos", -m.model.freqs_cos),
    "no parameter": lambda m: parametrize.register_parametrization(m.lm_head, "weight", torch.nn.Identity()),
    "in place": lambda m: m.model.layers[0].self_attn.k_proj.weight.data.neg_(),
    "loaded": lambda m: m.load_state_dict(tiny_model(seed=1).state_dict()),
}


@pytest.mark.parametrize("way", ["lean", "compiled"])
@pytest.mark.parametrize("change", MIDWAY)
def test_a_change_in_the_middle_of_a_text_is_followed(change, way):
    ids, streams = token_ids(1, 4), []
    for how in ("plain", way):
        model = talkative_model()
        stepping = decoder(model, how)
        tokens = stepping.stream(ids, 12, eos_token_id=None)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            begun = [next(tokens) for _ in range(4)]
            MIDWAY[change](model)
            streams.append(torch.stack([*begun, *tokens]))
    told = [] if change in ("in place", "loaded") else ["the model was changed since its weights were taken"]
    assert [str(it.message).partition(": ")[2] for it in said] == told
    assert torch.equal(*streams)
    unchanged = talkative_model().generate(ids, 12, eos_token_id=None)
    assert not torch.equal(streams[0][:, 0], unchanged[0, 4:]) or change == "no parameter"


def test_a_class_that_somebody_patched_stays_plain(monkeypatch):
    monkeypatch.setattr(Attention, "forward", lambda self, x, *_, original=Attention.forward: original(self, -x, *_))
    model, ids = model_of("minimind2"), token_ids(1, 4)
    with pytest.warns(UserWarning, match="does not know what was changed at the class Attention"):
        tokens = decoder(model, "compiled").generate(ids, 5)
    assert torch.equal(tokens, model.generate(ids, 5))


def test_a_model_of_several_dtypes_stays_plain():
    model = model_of("minimind2")
    model.model.norm.double()
    with pytest.warns(UserWarning, match="the model is torch.float32 on cpu and torch.float64 on cpu"):
        decoder(model, "lean")


@pytest.mark.parametrize("way", WAYS)
def test_memory_may_be_shared_with_other_processes(way):
    model, ids = model_of("minimind2"), token_ids(1, 4)
    model.share_memory()
    tokens = decoder(model, way).generate(ids, 5, eos_token_id=None)
    assert all(it.is_shared() for it in model.parameters())
    assert torch.equal(tokens, model.generate(ids, 5, eos_token_id=None))


@pytest.mark.parametrize("way", ["lean", "compiled"])
def test_under_autocast_a_text_is_read_by_the_model(monkeypatch, way):
    model, ids = talkative_model(), token_ids(1, 4)
    stepping = decoder(model, way)
    taken = steps_of(stepping, monkeypatch)
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


@pytest.mark.parametrize("way", ["lean", "compiled"])
def test_threads_may_share_a_decoder_or_make_their_own(way):
    model, results = talkative_model("minimind2_moe"), {}
    one = decoder(model, way)
    expected = [model.generate(token_ids(1, 5, seed=seed), 30, eos_token_id=None) for seed in range(4)]

    def work(seed):
        reader = one if seed % 2 else decoder(model, way)
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


@pytest.mark.parametrize("way", ["lean", "compiled"])
@pytest.mark.parametrize("past", PASTS)
def test_a_past_is_continued_or_refused_as_by_the_model(past, way):
    model = model_of("minimind2")
    stepping, past = decoder(model, way), PASTS[past](model)
    for token in (token_ids(1, 1), token_ids(1, 3)):
        expected, got = called(model, token, None, past), called(stepping, token, None, past)
        if isinstance(expected, torch.Tensor):
            torch.testing.assert_close(got[:, -1], expected[:, -1])
        else:
            assert got == expected


@pytest.mark.parametrize("way", ["lean", "compiled"])
def test_what_does_not_fit_a_past_is_refused_as_by_the_model(way):
    model = model_of("minimind2")
    stepping, past = decoder(model, way), past_of(model)
    token = token_ids(1, 1)
    for mask in (torch.ones(1, 1), torch.ones(1, 4), torch.ones(2, 5), torch.ones(5)):
        assert called(stepping, token, mask, past) == called(model, token, mask, past)
    for ids in (token[0], token.repeat(2, 1)):
        assert called(stepping, ids, None, past) == called(model, ids, None, past)


def test_a_global_hook_keeps_decoding_plain():
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, out: None)
    try:
        with pytest.warns(UserWarning, match="changed at all modules, by a global hook"):
            decoder(model_of("minimind2"), "compiled")
    finally:
        handle.remove()


def test_another_device_stays_plain():
    model = model_of("minimind2").to("meta")
    with pytest.warns(UserWarning, match="made for the CPU and CUDA, and the model is on meta"):
        decoder(model, "compiled")
    assert model.lm_head.weight.is_contiguous()


def test_dropout_is_not_left_out_silently():
    model, ids = model_of("minimind2", dropout=0.1).train(), token_ids(1, 4)
    for way in ("lean", "compiled"):
        with pytest.raises(ValueError, match=r"has no dropout, .*=0.1 at model.dropout; call model.eval\(\) first"):
            decoder(model, way)
    decoder(model.eval(), "compiled").generate(ids, 2)
    decoder(model_of("minimind2").train(), "compiled").generate(ids, 2)


def test_dropout_of_one_part_is_not_left_out_silently():
    """The config says nothing of it."""
    model = model_of("minimind2")
    part = model.model.layers[1].self_attn
    lean = decoder(model, "lean")
    for own, setting in ((part.resid_dropout, "p"), (part, "dropout")):
        setattr(own, setting, 0.9)
        own.train()
        for stepping in (lambda: decoder(model, "lean"), lambda: lean.generate(token_ids(1, 4), 2)):
            with pytest.raises(ValueError, match=r"no dropout, .* dropout=0.9 at model.layers.1.self_attn[a-z._]*;"):
                stepping()
        model.eval()
        lean.generate(token_ids(1, 4), 2)
        setattr(own, setting, 0.0)


def test_a_warning_shows_the_line_that_asked():
    model, ids = model_of("minimind3_moe"), token_ids(2, 4)
    stepping, hooked = decoder(model, "lean"), model_of("minimind2")
    hooked.register_forward_hook(lambda *_: None)
    asking = (
        lambda: stepping.generate(ids, 2),
        lambda: next(decoder(model, "lean").stream(ids, 2)),
        lambda: generation.generate(decoder(model, "lean"), ids, 2),
        lambda: decoder(model, "lean")(ids),
        lambda: decoder(hooked, "lean"),
        lambda: decoder(hooked, "compiled"),
    )
    for ask in asking:
        with pytest.warns(UserWarning) as said:
            ask()
        assert [it.filename for it in said] == [__file__]


def test_rejects_a_way_that_does_not_exist():
    with pytest.raises(ValueError, match="must be one of 'plain', 'lean', 'compiled', got 'fast'"):
        decoder(model_of("minimind2"), "fast")
