"""int8 rows: each weight is at most half a scale off, files come back as they were written, wrong ones are refused."""

import dataclasses

import pytest
import torch
from model_builders import KINDS, tensor, tiny_config, tiny_model, token_ids
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint
from minimind_edu.weights.int8 import dequantize, dequantize_state, quantize, quantize_state

NAME = "model.embed_tokens.weight"


def test_a_weight_is_off_by_at_most_half_a_scale():
    matrix = tensor(40, 33, dtype=torch.float32) * torch.logspace(-6, 6, 40)[:, None]
    values, scales = quantize(matrix)
    assert (values.dtype, scales.dtype, scales.shape) == (torch.int8, torch.float32, (40,))
    off = (dequantize(values, scales) - matrix).abs() / scales[:, None]
    assert off.max() <= 0.5 + 1e-4
    assert off.max() > 0.45, "numbers that need no rounding would show nothing"


def test_each_row_has_its_own_scale_and_uses_all_of_it():
    matrix = torch.tensor([[1.0, -2.0, 0.0], [500.0, 1000.0, -250.0], [-3e-8, 1e-8, 0.0]])
    values, scales = quantize(matrix)
    assert values.tolist() == [[64, -127, 0], [64, 127, -32], [-127, 42, 0]]
    torch.testing.assert_close(scales, torch.tensor([2.0, 1000.0, 3e-8]) / 127)


def test_what_was_rounded_once_stays_as_it_is():
    values, scales = quantize(tensor(8, 16, dtype=torch.float32))
    again, their_scales = quantize(dequantize(values, scales))
    assert torch.equal(again, values)
    torch.testing.assert_close(their_scales, scales)


def test_a_row_of_zeros_stays_zeros():
    values, scales = quantize(torch.tensor([[0.0, 0.0], [1.0, 2.0]]))
    assert scales[0] == 1
    assert dequantize(values, scales)[0].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_read_as_float32(dtype):
    matrix = tensor(4, 6, dtype=dtype)
    values, scales = quantize(matrix)
    assert torch.equal(values, quantize(matrix.float())[0])
    assert scales.dtype == torch.float32


REFUSED = {
    "a vector": (torch.ones(3), r"the shape \[3\]"),
    "three axes": (torch.ones(2, 3, 4), r"the shape \[2, 3, 4\]"),
    "NaN": (torch.tensor([[1.0, float("nan")]]), "finite numbers"),
    "infinity": (torch.tensor([[float("inf"), 1.0]]), "finite numbers"),
}


@pytest.mark.parametrize("matrix, message", REFUSED.values(), ids=REFUSED)
def test_what_has_no_int8_rows_is_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        quantize(matrix)


def test_vectors_of_a_state_stay_as_they_are():
    state = {"a.weight": tensor(3, 5, dtype=torch.float32), "norm.weight": tensor(5, seed=1, dtype=torch.float32)}
    stored = quantize_state(state)
    assert set(stored) == {"a.weight", "a.weight.scale", "norm.weight"}
    assert stored["norm.weight"] is state["norm.weight"]
    back = dequantize_state(stored)
    assert set(back) == set(state)
    assert torch.equal(back["norm.weight"], state["norm.weight"])
    torch.testing.assert_close(back["a.weight"], state["a.weight"], rtol=0, atol=0.02)


def test_a_matrix_may_itself_be_called_scale():
    """Only what belongs to an int8 matrix is taken for its scales."""
    state = {"my.scale": torch.ones(4)}
    assert dequantize_state(state).keys() == state.keys()


UNFIT = {
    "no scales": (None, "model.embed_tokens.weight.scale must hold 3 scales in float32, but there is none"),
    "too few": (torch.ones(2), r"must hold 3 scales in float32, but it holds torch.float32 \[2\]"),
    "a matrix": (torch.ones(3, 1), r"must hold 3 scales in float32, but it holds torch.float32 \[3, 1\]"),
    "whole numbers": (torch.ones(3, dtype=torch.int32), r"in float32, but it holds torch.int32 \[3\]"),
    "of another precision": (torch.ones(3).double(), r"in float32, but it holds torch.float64 \[3\]"),
}


@pytest.mark.parametrize("scales, message", UNFIT.values(), ids=UNFIT)
def test_scales_that_do_not_fit_are_told(scales, message):
    stored = {NAME: torch.ones(3, 2, dtype=torch.int8)} | ({} if scales is None else {f"{NAME}.scale": scales})
    with pytest.raises(ValueError, match=message):
        dequantize_state(stored)


@pytest.mark.parametrize("shape", [(), (3,), (3, 2, 4)])
def test_int8_values_that_are_no_matrix_are_told(shape):
    stored = {NAME: torch.ones(shape, dtype=torch.int8), f"{NAME}.scale": torch.ones(shape[:1])}
    with pytest.raises(ValueError, match=f"{NAME} holds int8, so it must be a matrix, but its shape is "):
        dequantize_state(stored)


# Files


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_model_comes_back_from_int8_rows(kind, tied, tmp_path):
    model = tiny_model(kind, dtype=torch.float32, tie_word_embeddings=tied)
    path = save_checkpoint(model, tmp_path / "model.safetensors", int8=True)
    read = from_checkpoint(path)
    assert read.config == model.config
    assert (read.lm_head.weight is read.model.embed_tokens.weight) == tied
    expected = dequantize_state(quantize_state(model.state_dict()))
    assert all(torch.equal(value, expected[name]) for name, value in read.state_dict().items())
    assert read(token_ids(2, 9)).logits.isfinite().all()


def test_a_file_of_int8_rows_is_a_quarter_as_large(tmp_path):
    model = tiny_model(dtype=torch.float32, hidden_size=256, intermediate_size=512)
    sizes = [
        save_checkpoint(model, tmp_path / f"{int8}.safetensors", int8=int8).stat().st_size for int8 in (False, True)
    ]
    assert 0.25 < sizes[1] / sizes[0] < 0.27
    with safe_open(tmp_path / "True.safetensors", "pt") as file:
        assert file.metadata()["weights"] == "int8 rows"


def test_a_stored_file_stored_again_says_the_same(tmp_path):
    first = save_checkpoint(tiny_model(dtype=torch.float32), tmp_path / "first.safetensors", int8=True)
    second = save_checkpoint(from_checkpoint(first), tmp_path / "second.safetensors", int8=True)
    one, other = load_file(first), load_file(second)
    assert all(torch.equal(one[name], other[name]) for name in one if one[name].dtype == torch.int8)


def test_int8_of_another_hand_is_refused_as_before(tmp_path):
    state = {name: value.clone() for name, value in tiny_model(dtype=torch.float32).state_dict().items()}
    save_file(state | {NAME: torch.ones(61, 32, dtype=torch.int8)}, tmp_path / "foreign.safetensors")
    with pytest.raises(ValueError, match=f"holds {NAME} as torch.int8, so the weights are quantized"):
        from_checkpoint(tmp_path / "foreign.safetensors")


def test_our_file_without_scales_is_refused_with_its_path(tmp_path):
    path = save_checkpoint(tiny_model(dtype=torch.float32), tmp_path / "model.safetensors", int8=True)
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    del tensors[f"{NAME}.scale"]
    save_file(tensors, path, metadata=metadata)
    with pytest.raises(ValueError, match=f"{path}: {NAME} holds int8 rows, so .* there is none"):
        from_checkpoint(path)


def test_the_switch_is_true_or_false(tmp_path):
    with pytest.raises(ValueError, match="int8 must be True or False, got 'yes'"):
        save_checkpoint(tiny_model(), tmp_path / "model.safetensors", int8="yes")


def test_fields_named_by_the_reader_go_before_those_of_the_file(tmp_path):
    path = save_checkpoint(tiny_model(dtype=torch.float32), tmp_path / "model.safetensors", int8=True)
    read = from_checkpoint(path, rms_norm_eps=1e-3)
    assert read.config == dataclasses.replace(tiny_config(), rms_norm_eps=1e-3)
