"""Decoding with rounded weights: the text of the model whose weights were rounded and restored, and of no other."""

import copy
import warnings

import pytest
import torch
from model_builders import KINDS, talkative_model, tiny_model, token_ids

from minimind_edu import fast
from minimind_edu.fast import compiled_steps, rounded, rows
from minimind_edu.fast.compilable import Snapshot
from minimind_edu.fast.rows import Rows
from minimind_edu.fast.token_step import token_step
from minimind_edu.rope_frequencies import RopeScaling
from minimind_edu.weights.int8 import dequantize_state, quantize_state

YARN = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=16)}
CHANGES = {"post": {"norm_placement": "post"}, "yarn": YARN, "not tied": {"tie_word_embeddings": False}}
CASES = [*KINDS, *CHANGES]
every_precision = pytest.mark.parametrize("to", rows.PRECISIONS)


def model_of(case):
    return talkative_model(case) if case in KINDS else talkative_model("minimind3", **CHANGES[case])


def restored(model, to):
    """The slow form: a model of float32 whose matrices were rounded and restored."""
    state = model.state_dict()
    if to == "int8":
        state = dequantize_state(quantize_state(state))
    else:
        state = {name: it.bfloat16().float() if it.dim() == 2 else it for name, it in state.items()}
    twin = copy.deepcopy(model)
    twin.load_state_dict(state)
    return twin


@torch.no_grad()
def assert_close_logits(decoder, expected, ids, cut=4):
    """Of every position after the cut, one token at a time; 3e-4 of the largest logit."""
    logits = expected(ids).logits
    out = decoder(ids[:, :cut])
    for position in range(cut, ids.shape[1]):
        out = decoder(ids[:, position : position + 1], None, out.past_key_values)
        largest = logits.abs().max().item()
        torch.testing.assert_close(out.logits[:, 0], logits[:, position], rtol=0, atol=3e-4 * largest)


@pytest.fixture(autouse=True)
def uncompiled(request, monkeypatch):
    """The step as it is, but where compiling is what is tested."""
    if "compiles" not in request.node.name:
        monkeypatch.setattr(compiled_steps, "_compiled", lambda *_: token_step)


@pytest.fixture(params=[True, False], ids=["own loops", "no loops"])
def loops(request, monkeypatch):
    """With the loops of row_products, and as if they could not be compiled."""
    if request.param:
        request.getfixturevalue("own_loops")
    else:
        for module in (rows, rounded):
            monkeypatch.setattr(module, "why_not_loaded", lambda: "no compiler")
        # their sums have a test of their own
        monkeypatch.setattr(rows, "multiplies_bfloat16", lambda: False)
    return request.param


def decoder_of(model, to, loops):
    if loops:
        return fast.rounded_decoder(model, to)
    with pytest.warns(UserWarning, match="rounded decoding is only plain here: no compiler"):
        return fast.rounded_decoder(model, to)


@every_precision
@pytest.mark.parametrize("case", CASES)
def test_a_text_is_that_of_the_rounded_and_restored_model(case, to, loops):
    model = model_of(case)
    expected, decoder = restored(model, to), decoder_of(model, to, loops)
    for batch in (1,) if case.endswith("moe") else (1, 3):
        ids = token_ids(batch, 7)
        tokens = decoder.generate(ids, 20, eos_token_id=None)
        assert torch.equal(tokens, expected.generate(ids, 20, eos_token_id=None))
        assert_close_logits(decoder, expected, token_ids(batch, 20))


@every_precision
def test_padding_is_not_read(to):
    model, ids = model_of("minimind3"), token_ids(2, 7)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1], [1] * 7])
    options = {"attention_mask": mask, "eos_token_id": None}
    tokens = fast.rounded_decoder(model, to).generate(ids, 12, **options)
    assert torch.equal(tokens, restored(model, to).generate(ids, 12, **options))


def test_the_two_precisions_differ_from_the_model_and_bfloat16_less():
    """Else nothing was rounded, and the tests above show nothing."""
    model, ids = model_of("minimind2"), token_ids(1, 20)
    with torch.no_grad():
        logits = model(ids).logits
        off = {to: (fast.rounded_decoder(model, to).model(ids).logits - logits).abs().max() for to in rows.PRECISIONS}
    assert 1e-3 < off["bfloat16"] / logits.abs().max() < off["int8"] / logits.abs().max() < 0.1


@pytest.mark.parametrize("kind", ["minimind2", "minimind3_moe"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_model_that_was_rounded_stays_as_it_is(kind, dtype):
    model = tiny_model(kind, dtype=dtype)
    before = {name: it.clone() for name, it in model.state_dict().items()}
    places = {name: it.data_ptr() for name, it in model.named_parameters()}
    decoder = fast.rounded_decoder(model, "int8")
    assert all(torch.equal(it, before[name]) and it.dtype == dtype for name, it in model.state_dict().items())
    assert {name: it.data_ptr() for name, it in model.named_parameters()} == places
    ids = token_ids(1, 5)
    tokens = decoder.generate(ids, 5, eos_token_id=None)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(decoder.generate(ids, 5, eos_token_id=None), tokens), "later changes are not followed"


@every_precision
def test_prompts_and_tokens_read_the_same_memory(to):
    """No second copy: the model's maps are views of the step's rows, and a tied matrix is held once."""
    decoder = fast.rounded_decoder(model_of("minimind2_moe"), to)
    layer, block = decoder.weights.layers[0], decoder.model.model.layers[0]
    pairs = [
        (layer.qkv, block.self_attn.v_proj),
        (layer.networks[0].gate_up, block.mlp.shared_experts[0].up_proj),
        (layer.experts.down, block.mlp.experts[3].down_proj),
        (decoder.weights.output, decoder.model.lm_head),
        (decoder.weights.output, decoder.model.model.embed_tokens),
    ]
    for whole, part in pairs:
        assert isinstance(whole, Rows)
        assert whole.values.untyped_storage().data_ptr() == part.weight.values.untyped_storage().data_ptr()


def test_int8_takes_a_quarter_of_the_memory():
    model = tiny_model("minimind3", dtype=torch.float32, hidden_size=256, intermediate_size=512)
    decoder = fast.rounded_decoder(model, "int8")
    leaves = torch.utils._pytree.tree_leaves(tuple(decoder.weights))
    held = {it.data_ptr(): it.numel() * it.element_size() for it in leaves if isinstance(it, torch.Tensor)}
    assert 0.25 < sum(held.values()) / (4 * model.num_parameters()) < 0.27
    assert not any(it.dim() == 2 for it in decoder.model.parameters())


def test_single_tokens_are_read_by_the_step(monkeypatch, own_loops):
    decoder, read = fast.rounded_decoder(model_of("minimind2")), []
    forward = decoder.model.forward
    monkeypatch.setattr(Snapshot, "is_true", lambda _: True)  # it would notice that forward is watched
    monkeypatch.setattr(
        decoder.model, "forward", lambda ids, *_, **__: read.append(ids.shape[1]) or forward(ids, *_, **__)
    )
    decoder.generate(token_ids(1, 5), 6, eos_token_id=None)
    assert read == [5]


@pytest.mark.parametrize("kind", ["minimind3", "minimind2_moe"])
def test_the_step_compiles_and_reads_the_same(own_loops, kind):
    model = talkative_model(kind, num_hidden_layers=1)
    decoder, expected = fast.rounded_decoder(model), restored(model, "int8")
    for length, steps in ((5, 20), (1, 9), (40, 24)):
        ids = token_ids(1, length)
        tokens = decoder.generate(ids, steps, eos_token_id=None)
        assert torch.equal(tokens, expected.generate(ids, steps, eos_token_id=None))
    assert_close_logits(decoder, expected, token_ids(1, 20))
    assert [callable(step) for step in decoder.steps._steps.values()] == [True], "one, and not why there is none"


def test_a_step_that_cannot_be_compiled_is_read_as_it_is(monkeypatch, own_loops):
    def failing(*_):
        raise RuntimeError("out of paper")

    monkeypatch.setattr(compiled_steps, "_compiled", failing)
    model, ids = model_of("minimind2"), token_ids(1, 7)
    decoder = fast.rounded_decoder(model)
    with pytest.warns(UserWarning, match="rounded decoding is only lean here: RuntimeError, out of paper") as said:
        tokens = [decoder.generate(ids, 9, eos_token_id=None) for _ in range(2)]
    assert len(said) == 1
    assert torch.equal(tokens[0], restored(model, "int8").generate(ids, 9, eos_token_id=None))
    assert torch.equal(*tokens)


def test_bfloat16_prompts_are_multiplied_in_bfloat16_only_where_the_processor_can(monkeypatch):
    monkeypatch.setattr(rows, "FEW", 0)
    model, ids, kinds = model_of("minimind2"), token_ids(1, 9), []
    linear = torch.nn.functional.linear
    monkeypatch.setattr(rows.F, "linear", lambda x, *its: kinds.append(its[0].dtype) or linear(x, *its))
    for has, to, kind in (
        (False, "bfloat16", torch.float32),
        (True, "bfloat16", torch.bfloat16),
        (True, "int8", torch.float32),
    ):
        monkeypatch.setattr(rows, "multiplies_bfloat16", lambda has=has: has)
        decoder = fast.rounded_decoder(model, to)
        with torch.no_grad():
            wanted = restored(model, to)(ids, logits_to_keep=1).logits
            kinds.clear()
            logits = decoder(ids).logits
        assert set(kinds) == {kind}
        tolerance = 4e-2 if kind == torch.bfloat16 else 3e-4
        assert logits.dtype == torch.float32
        torch.testing.assert_close(logits, wanted, rtol=0, atol=tolerance * wanted.abs().max().item())


# Refused


def test_there_are_two_precisions():
    with pytest.raises(ValueError, match="rounded to 'int8' or 'bfloat16', got 'int4'"):
        fast.rounded_decoder(tiny_model(), "int4")


def test_a_model_that_somebody_changed_is_refused():
    model = tiny_model()
    model.lm_head.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="only an unchanged model can be rounded: .* changed at lm_head"):
        fast.rounded_decoder(model)


def test_dropout_is_not_left_out_silently():
    with pytest.raises(ValueError, match=r"no dropout.*model.eval\(\)"):
        fast.rounded_decoder(tiny_model(dropout=0.1).train())


NOT_FINITE = {
    "NaN": (torch.float32, "model.layers.1.mlp.up_proj", torch.nan),
    "infinity": (torch.float32, "model.layers.0.self_attn.o_proj", -torch.inf),
    "infinite once rounded": (torch.float32, "lm_head", 3.4028e38),
    "beyond float32": (torch.float64, "model.layers.1.mlp.gate_proj", 1e300),
    "a gain": (torch.float32, "model.layers.1.input_layernorm", torch.nan),
    "a gain beyond float32": (torch.float64, "model.norm", 1e300),
}


@every_precision
@pytest.mark.parametrize("dtype, name, value", NOT_FINITE.values(), ids=NOT_FINITE)
def test_a_weight_that_is_not_finite_once_rounded_is_refused(dtype, name, value, to):
    model = tiny_model(dtype=dtype, tie_word_embeddings=False)
    with torch.no_grad():
        model.get_submodule(name).weight.view(-1)[3] = value
    if value == 3.4028e38 and to == "int8":
        fast.rounded_decoder(model, to)  # large, and finite
    else:
        with pytest.raises(ValueError, match="finite"):
            fast.rounded_decoder(model, to)
    embedding = tiny_model(dtype=dtype, tie_word_embeddings=False)
    with torch.no_grad():
        embedding.model.embed_tokens.weight[5, 5] = torch.nan
    with pytest.raises(ValueError, match="finite"):
        fast.rounded_decoder(embedding, to)


@every_precision
def test_what_becomes_NaN_later_is_told_as_by_any_model(to, loops):
    decoder, ids = decoder_of(model_of("minimind2"), to, loops), token_ids(1, 5)
    for gain in (decoder.model.model.layers[1].input_layernorm.weight, decoder.model.model.norm.weight):
        before = gain.data.clone()
        gain.data[3] = torch.nan
        for reader in (decoder, decoder.model):
            with pytest.raises(ValueError, match="NaN"):
                reader.generate(ids, 3, eos_token_id=None)
        gain.data.copy_(before)
    decoder.generate(ids, 3)


def test_experts_without_tokens_end_no_process(own_loops):
    """In training mode each expert is called, and one that nobody chose gets no vectors."""
    decoder = fast.rounded_decoder(model_of("minimind3_moe"))
    ids = token_ids(1, 2)
    expected = decoder.model(ids).logits
    assert torch.equal(decoder.model.train()(ids).logits, expected)


def test_the_rounded_model_may_be_changed_too(own_loops):
    decoder, ids = fast.rounded_decoder(model_of("minimind2")), token_ids(1, 5)
    tokens = decoder.generate(ids, 9, eos_token_id=None)
    norm, part = decoder.model.model.norm, decoder.model.model.layers[1].mlp
    norm.forward = lambda x: -type(norm).forward(norm, x)
    with pytest.warns(UserWarning, match="rounded decoding is only plain here: the model was changed since its w"):
        changed = decoder.generate(ids, 9, eos_token_id=None)
    assert torch.equal(changed, decoder.model.generate(ids, 9, eos_token_id=None)) and not torch.equal(changed, tokens)
    del norm.forward
    assert torch.equal(decoder.generate(ids, 9, eos_token_id=None), tokens)
    down = part.down_proj
    part.down_proj = torch.nn.Linear(48, 32, bias=False)
    with pytest.warns(UserWarning, match="only plain here"):
        changed = decoder.generate(ids, 9, eos_token_id=None)
    assert torch.equal(changed, decoder.model.generate(ids, 9, eos_token_id=None))
    part.down_proj = down
    assert torch.equal(decoder.generate(ids, 9, eos_token_id=None), tokens)


@every_precision
def test_under_autocast_the_rounded_model_reads_everything(to, loops):
    decoder, ids = decoder_of(model_of("minimind2"), to, loops), token_ids(1, 5)
    with torch.autocast("cpu", torch.bfloat16), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokens = decoder.generate(ids, 9, eos_token_id=None)
        assert torch.equal(tokens, decoder.model.generate(ids, 9, eos_token_id=None))
        assert decoder(ids).logits.isfinite().all()


def test_rows_of_a_batch_that_visit_different_experts_are_read_by_the_model():
    model, ids = model_of("minimind2_moe"), token_ids(3, 6)
    decoder = fast.rounded_decoder(model)
    with pytest.warns(UserWarning, match="decoding is only plain here: the rows of a batch visit different experts"):
        tokens = decoder.generate(ids, 9, eos_token_id=None)
    assert torch.equal(tokens, restored(model, "int8").generate(ids, 9, eos_token_id=None))
