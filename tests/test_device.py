import pytest
import torch

from minimind_edu.device import pick_device, pick_dtype


@pytest.mark.parametrize(
    "cuda, mps, expected",
    [
        (True, False, "cuda"),
        (True, True, "cuda"),
        (False, True, "mps"),
        (False, False, "cpu"),
    ],
)
def test_an_accelerator_is_taken_where_there_is_one(cuda, mps, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert pick_device() == torch.device(expected)


@pytest.mark.parametrize(
    "capability, expected",
    [
        ((7, 5), torch.float16),  # T4: torch calls bfloat16 supported there, but emulates it
        ((7, 0), torch.float16),
        ((8, 0), torch.bfloat16),
        ((9, 0), torch.bfloat16),
    ],
)
def test_bfloat16_is_for_cuda_that_has_it(capability, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *a, **k: True)
    assert pick_dtype("cuda") == expected
    assert pick_dtype(torch.device("cuda", 0)) == expected


def test_the_cpu_computes_in_float32_and_mps_in_float16():
    assert pick_dtype("cpu") == torch.float32
    assert pick_dtype(torch.device("mps")) == torch.float16


def test_what_is_picked_can_be_computed_with():
    device = pick_device()
    x = torch.ones(2, 2, device=device, dtype=pick_dtype(device))
    assert (x @ x).float().cpu().tolist() == [[2.0, 2.0], [2.0, 2.0]]
