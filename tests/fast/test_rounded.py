"""Decoding with rounded weights: the text of the model whose weights were rounded and restored, and of no other."""

import copy
import warnings
from functools import partial
from unittest import mock

import pytest
import torch
from model_builders import KINDS, talkative_model, tiny_model, token_ids

from minimind_edu import fast
from minimind_edu.fast import library
from minimind_edu.fast.matrix import MOST, PRECISIONS, Matrix
from minimind_edu.model import attention, generation
from minimind_edu.model.attention import fast_attention
from minimind_edu.model.model import CausalLMOutput, MiniMindForCausalLM
from minimind_edu.model.quantization import rounded_model
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.trained.living import living_model, rounding
from minimind_edu.world import stories

YARN = {"rope_scaling": RopeScaling(factor=4.0, original_max_position_embeddings=16)}
CHANGES = {"yarn": YARN, "not tied": {"tie_word_embeddings": False}}
CASES = [*KINDS, *CHANGES]
every_precision = pytest.mark.parametrize("to", PRECISIONS)
exactly = pytest.mark.parametrize("to", ["bfloat16", "int8"])  # int4 rounds vectors coarsely: other tokens may follow


def model_of(case):
    changes = {"intermediate_size": 64}  # groups of 32 fill the rows
    return talkative_model(case if case in KINDS else "minimind3", **changes, **CHANGES.get(case, {}))


def restored(model, to):
    """The slow form: a model of float32 whose matrices were rounded and restored."""
    return rounded_model(model, PRECISIONS[to])


@torch.no_grad()
def assert_close_logits(decoder, expected, ids, to, cut=4):
    """Of every position, first some at once, then one token at a time; of the largest logit."""
    logits = expected(ids).logits
    out = decoder(ids[:, :cut], use_cache=True)
    found = [out.logits]
    for position in range(cut, ids.shape[1]):
        out = decoder(ids[:, position : position + 1], None, out.past_key_values, True)
        found.append(out.logits)
    off = (torch.cat(found, dim=1) - logits).abs() / logits.abs().max()
    if to == "int4":
        assert 1e-4 < off.square().mean().sqrt() < 2e-2, "a vector has 8 bits"
    else:
        assert off.max() < {"bfloat16": 3e-6, "int8": 4e-4}[to]


@pytest.fixture(params=[True, False], ids=["step.cpp", "no compiler"])
def compiler(request, monkeypatch):
    """With step.cpp, and as if it could not be compiled."""
    if request.param:
        request.getfixturevalue("own_step")
    else:
        monkeypatch.setattr(library, "_tried", lambda code: "no compiler")
    return request.param


def decoder_of(model, to, compiler):
    if compiler:
        return fast.rounded_decoder(model, to)
    with pytest.warns(UserWarning, match="rounded decoding is only plain here: no compiler"):
        return fast.rounded_decoder(model, to)


@exactly
@pytest.mark.parametrize("case", CASES)
def test_a_text_is_that_of_the_rounded_and_restored_model(case, to, compiler):
    model = model_of(case)
    expected, decoder = restored(model, to), decoder_of(model, to, compiler)
    for batch in (1, 3) if compiler or not case.endswith("moe") else (1,):
        ids = token_ids(batch, 7)
        tokens = decoder.generate(ids, 20, eos_token_id=None)
        assert torch.equal(tokens, expected.generate(ids, 20, eos_token_id=None))


def test_another_order_of_norms_is_read_by_the_model(own_step):
    model, ids = talkative_model(norm_placement="post"), token_ids(1, 7)
    with pytest.warns(UserWarning, match="rounded decoding is only plain here: step.cpp .*norm_placement is 'post'"):
        tokens = fast.rounded_decoder(model).generate(ids, 9, eos_token_id=None)
    assert torch.equal(tokens, restored(model, "int8").generate(ids, 9, eos_token_id=None))


@every_precision
@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_the_rounded_and_restored_model(own_step, case, to):
    if to == "int4" and case.endswith("moe"):
        pytest.skip("another expert may be chosen, and all that follows differs")
    model = model_of(case)
    for batch in (1, 3):
        assert_close_logits(fast.rounded_decoder(model, to), restored(model, to), token_ids(batch, 20), to)


@pytest.mark.parametrize("to, off", [("bfloat16", 0.01), ("int8", 0.01), ("int4", 0.02)])
def test_step_costs_a_trained_model_next_to_nothing_beside_rounding(own_step, to, off):
    """KL, in nats per word, of the step and of the weights alone; the weights are on no grid before."""
    model, ids = living_model(), torch.from_numpy(stories(6, 64, seed=3))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for it in model.parameters():
            it.mul_(1 + 0.01 * torch.randn(it.shape, generator=generator))
    decoder = fast.rounded_decoder(model, to)

    def by_step(it):
        """Logits `[B, T, V]`, read in blocks that step.cpp reads."""
        out, found = None, []
        for part in it.split(MOST[to] // len(it), dim=1):
            out = decoder(part, None, out and out.past_key_values, True)
            found.append(out.logits)
        return CausalLMOutput(torch.cat(found, dim=1), None)

    weights_alone, _ = rounding.difference(restored(model, to), model, ids)
    with_vectors, _ = rounding.difference(by_step, model, ids)
    assert with_vectors == pytest.approx(weights_alone, rel=off)


@exactly
def test_padding_is_not_read(own_step, to):
    model, ids = model_of("minimind3"), token_ids(2, 7)
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1], [1] * 7])
    options = {"attention_mask": mask, "eos_token_id": None}
    tokens = fast.rounded_decoder(model, to).generate(ids, 12, **options)
    assert torch.equal(tokens, restored(model, to).generate(ids, 12, **options))


@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64, torch.device("meta")], ids=str)
@pytest.mark.parametrize("to", [None, *PRECISIONS], ids=str)
def test_what_torch_makes_by_default_does_not_change_a_text(own_step, to, default):
    """Memory of another size than step.cpp fills would end the process, or give other tokens."""
    model, ids = model_of("minimind3"), token_ids(2, 7)
    options = {"attention_mask": torch.tensor([[0, 0, 1, 1, 1, 1, 1], [1] * 7]), "eos_token_id": None}

    def text():
        return (fast.rounded_decoder(model, to) if to else fast.decoder(model)).generate(ids, 12, **options)

    expected = text()
    is_device = isinstance(default, torch.device)
    choose, usual = (torch.set_default_device, None) if is_device else (torch.set_default_dtype, torch.float32)
    choose(default)
    try:
        found = text()
    finally:
        choose(usual)
    assert torch.equal(found, expected)


def test_fewer_bits_are_further_from_the_model():
    """Else nothing was rounded, and the tests above show nothing."""
    model, ids = model_of("minimind2"), token_ids(1, 20)
    with torch.no_grad():
        logits = model(ids).logits
        off = {to: (fast.rounded_decoder(model, to).model(ids).logits - logits).abs().max() for to in PRECISIONS}
    assert 1e-3 < off["bfloat16"] / logits.abs().max() < off["int8"] / logits.abs().max() < 0.1
    assert off["int8"] < off["int4"] / 4 < 0.3 * logits.abs().max()


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


def held_by(decoder):
    """Bytes of all weights, each counted once."""
    parts = [part.weight for part in decoder.model.modules() if isinstance(getattr(part, "weight", None), Matrix)]
    tensors = [*decoder.model.parameters(), *(it for part in parts for it in part if isinstance(it, torch.Tensor))]
    return sum({it.data_ptr(): it.nbytes for it in tensors}.values())


@pytest.mark.parametrize("to, share", [("bfloat16", 0.5), ("int8", 0.25), ("int4", 5 / 32)])
def test_weights_take_as_little_memory_as_their_bits(own_step, to, share):
    """And a tied matrix is held once."""
    model = tiny_model("minimind3", dtype=torch.float32, hidden_size=256, intermediate_size=512)
    decoder = fast.rounded_decoder(model, to)
    assert share < held_by(decoder) / (4 * model.num_parameters()) < share + 0.02
    assert not any(it.dim() == 2 for it in decoder.model.parameters())
    assert decoder.model.lm_head.weight is decoder.model.model.embed_tokens.weight


@every_precision
def test_short_prompts_and_tokens_are_read_by_the_step(monkeypatch, own_step, to):
    """The first of the tokens by the rounded model too, whose modules multiply as the step does."""
    decoder, read, restored_rows = fast.rounded_decoder(model_of("minimind2"), to), [], []
    forward, restored_matrix = MiniMindForCausalLM.forward, Matrix.restored
    monkeypatch.setattr(
        MiniMindForCausalLM, "forward", lambda it, ids, *_, **o: read.append(ids.shape[1]) or forward(it, ids, *_, **o)
    )
    monkeypatch.setattr(Matrix, "restored", lambda it: restored_rows.append(it.height) or restored_matrix(it))
    monkeypatch.setitem(MOST, to, 20)
    for length in (5, 20, 21):
        decoder.generate(token_ids(1, length), 6, eos_token_id=None)
        assert bool(restored_rows) == (length > 20)
    assert read == [5, 1, 20, 1, 21, 1]


def test_a_prompt_is_the_same_in_both_ways(own_step):
    """Many vectors: matrices that are restored, to the last bit those of the restored model."""
    for to in PRECISIONS:
        model, ids = model_of("minimind2"), token_ids(13, 40)
        assert ids.numel() > MOST[to]
        decoder, expected = fast.rounded_decoder(model, to), restored(model, to)
        with torch.no_grad():
            assert torch.equal(decoder(ids).logits, expected(ids).logits)


# Refused


def test_there_are_three_precisions():
    with pytest.raises(ValueError, match="rounded to 'bfloat16' or 'int8' or 'int4', got 'int5'"):
        fast.rounded_decoder(tiny_model(), "int5")


def test_int4_needs_rows_of_whole_groups(compiler):
    fix = "; use int8" if compiler else "; choose a divisor"
    with pytest.raises(ValueError, match=f"32 columns.* must fill .*row, but .* 48{fix}"):
        fast.rounded_decoder(tiny_model(intermediate_size=48), "int4")


def test_what_has_addresses_is_not_copied(own_step):
    with pytest.raises(TypeError, match="copy or save its model"):
        copy.deepcopy(fast.rounded_decoder(model_of("minimind2")))


def test_a_model_that_somebody_changed_is_refused():
    model = tiny_model()
    model.lm_head.register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match="only an unchanged model can be rounded: a hook of lm_head would not be"):
        fast.rounded_decoder(model)


@pytest.mark.parametrize("change", ["a bias", "another class", "eps", "a tensor more"])
def test_a_model_that_computes_something_else_is_refused(change):
    """What has no place in a rounded copy would be lost."""
    model = tiny_model(intermediate_size=64)
    mlp = model.model.layers[1].mlp
    if change == "a bias":
        mlp.up_proj = torch.nn.Linear(32, 64).double()
    if change == "another class":
        mlp.up_proj.__class__ = type("Doubled", (torch.nn.Linear,), {"forward": lambda self, x: 2 * x @ self.weight.T})
    if change == "eps":
        model.model.norm.eps = 5.0
    if change == "a tensor more":
        mlp.register_parameter("more", torch.nn.Parameter(torch.ones(3)))
    with pytest.raises(ValueError, match="only an unchanged model can be rounded: (a new model|its tensors)"):
        fast.rounded_decoder(model)


@every_precision
def test_a_function_that_somebody_patched_is_called(own_step, to):
    """Before and while a text is decoded, and until it is what it was."""
    decoder, ids = fast.rounded_decoder(model_of("minimind3"), to), token_ids(2, 7)
    tokens, streams = decoder.generate(ids, 12, eos_token_id=None), []
    with mock.patch.object(attention, "fast_attention", lambda *its: 2 * fast_attention(*its)):
        with pytest.warns(UserWarning, match="only plain here: step.cpp and the model as it is now give different"):
            changed = decoder.generate(ids, 12, eos_token_id=None)
        assert torch.equal(changed, decoder.model.generate(ids, 12, eos_token_id=None))
        assert not torch.equal(changed, tokens)
    assert torch.equal(decoder.generate(ids, 12, eos_token_id=None), tokens)
    for reader in (decoder, decoder.model):
        stream = reader.stream(ids, 12, eos_token_id=None)
        found = [next(stream) for _ in range(4)]
        with mock.patch.object(attention, "apply_rotary_pos_emb", lambda q, k, cos, sin: (q, k)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found += [next(stream) for _ in range(4)]
        streams.append(torch.stack([*found, *stream]))
    if to != "int4":
        assert torch.equal(*streams)
    assert not torch.equal(streams[0].T, tokens[:, 7:])


def test_dropout_is_not_left_out_silently():
    with pytest.raises(ValueError, match=r"no dropout.*model.eval\(\)"):
        fast.rounded_decoder(tiny_model(dropout=0.1).train())


NOT_FINITE = {
    "NaN": (torch.float32, "model.layers.1.mlp.up_proj", torch.nan, "NaN"),
    "infinity": (torch.float32, "model.layers.0.self_attn.o_proj", -torch.inf, "infinity"),
    "infinite once rounded": (torch.float32, "lm_head", 3.4028e38, r"numbers up to 3.4028e\+38, .* in torch.bfloat16"),
    "beyond float32": (
        torch.float64,
        "model.layers.1.mlp.gate_proj",
        1e300,
        r"numbers up to 1e\+300, which are infinite",
    ),
    "a gain": (torch.float32, "model.layers.1.input_layernorm", torch.nan, "NaN"),
    "a gain beyond float32": (torch.float64, "model.norm", 1e300, r"numbers up to 1e\+300, .* in torch.float32"),
}


@every_precision
@pytest.mark.parametrize("dtype, name, value, found", NOT_FINITE.values(), ids=NOT_FINITE)
def test_a_weight_that_is_not_finite_once_rounded_is_refused(dtype, name, value, found, to):
    model = tiny_model(dtype=dtype, tie_word_embeddings=False, intermediate_size=64)
    with torch.no_grad():
        model.get_submodule(name).weight.view(-1)[3] = value
    if value == 3.4028e38 and to != "bfloat16":
        fast.rounded_decoder(model, to)  # large, and finite
    else:
        with pytest.raises(ValueError, match=f"must be finite numbers, but {name}.weight holds {found}"):
            fast.rounded_decoder(model, to)
    embedding = tiny_model(dtype=dtype, tie_word_embeddings=False, intermediate_size=64)
    with torch.no_grad():
        embedding.model.embed_tokens.weight[5, 5] = torch.nan
    with pytest.raises(ValueError, match="finite numbers, but model.embed_tokens.weight holds NaN"):
        fast.rounded_decoder(embedding, to)


@every_precision
def test_what_becomes_NaN_later_is_told_by_its_name(to, compiler):
    decoder, ids = decoder_of(model_of("minimind2"), to, compiler), token_ids(1, 5)
    for name in ("model.layers.1.input_layernorm", "model.norm"):
        gain = decoder.model.get_submodule(name).weight
        before = gain.data.clone()
        gain.data[3] = torch.nan
        for reader in (decoder, decoder.model):
            for read in (reader.generate, partial(generation.generate, reader)):
                with pytest.raises(ValueError, match=f"must be finite numbers, but {name}.weight holds NaN"):
                    read(ids, 3, eos_token_id=None)
        gain.data.copy_(before)
    decoder.generate(ids, 3)


def test_experts_without_tokens_end_no_process(own_step):
    """In training mode each expert is called, and one that nobody chose gets no vectors."""
    decoder = fast.rounded_decoder(model_of("minimind3_moe"))
    ids = token_ids(1, 2)
    expected = decoder.model(ids).logits
    assert torch.equal(decoder.model.train()(ids).logits, expected)


def test_the_rounded_model_may_be_changed_too(own_step):
    decoder, ids = fast.rounded_decoder(model_of("minimind2")), token_ids(1, 5)
    tokens = decoder.generate(ids, 9, eos_token_id=None)
    norm, part = decoder.model.model.norm, decoder.model.model.layers[1].mlp
    norm.forward = lambda x: -type(norm).forward(norm, x)
    with pytest.warns(UserWarning, match="rounded decoding is only plain here: the forward that .* gave model.norm"):
        changed = decoder.generate(ids, 9, eos_token_id=None)
    assert torch.equal(changed, decoder.model.generate(ids, 9, eos_token_id=None)) and not torch.equal(changed, tokens)
    del norm.forward
    assert torch.equal(decoder.generate(ids, 9, eos_token_id=None), tokens)
    down = part.down_proj
    part.down_proj = torch.nn.Linear(64, 32, bias=False)
    changed = decoder.generate(ids, 9, eos_token_id=None)
    assert torch.equal(changed, decoder.model.generate(ids, 9, eos_token_id=None)) and not torch.equal(changed, tokens)
    part.down_proj = down
    assert torch.equal(decoder.generate(ids, 9, eos_token_id=None), tokens)


@every_precision
def test_under_autocast_the_rounded_model_reads_everything(to, compiler):
    decoder, ids = decoder_of(model_of("minimind2"), to, compiler), token_ids(1, 5)
    with torch.autocast("cpu", torch.bfloat16), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokens = decoder.generate(ids, 9, eos_token_id=None)
        assert torch.equal(tokens, decoder.model.generate(ids, 9, eos_token_id=None))
        assert decoder(ids).logits.isfinite().all()
