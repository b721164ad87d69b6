"""What is picked is what the machine has: the device, a dtype that it computes natively, one thread for small work."""

import os
import subprocess
import sys

import pytest
import torch

from minimind_edu.device import device_of, devices_here, one_thread, pick_device, pick_dtype


@pytest.mark.parametrize(
    "cuda, mps, expected", [(True, False, "cuda"), (True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_an_accelerator_is_taken_where_there_is_one(cuda, mps, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert pick_device() == pick_device(torch.float32) == torch.device(expected)
    assert pick_device(torch.float64).type == ("cpu" if expected == "mps" else expected), "MPS has no float64"
    others = [] if expected == "cpu" else [torch.device(expected)]
    assert devices_here() == [torch.device("cpu"), *others]


@pytest.mark.long
def test_a_hidden_gpu_is_no_gpu():
    """Hidden as users hide it: in the environment, before torch looks."""
    question = "from minimind_edu.device import devices_here; print(*devices_here())"
    answer = subprocess.run(
        [sys.executable, "-c", question],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() in (["cpu"], ["cpu", "mps"])


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


def test_a_module_is_where_its_parameters_are():
    with torch.device("meta"):
        module = torch.nn.Linear(2, 2)
    assert device_of(module) == torch.device("meta")
    for here in (torch.nn.Linear(2, 2), torch.nn.ReLU(), len):
        assert device_of(here) == torch.device("cpu")


def test_what_is_picked_can_be_computed_with():
    device = pick_device()
    x = torch.ones(2, 2, device=device, dtype=pick_dtype(device))
    assert (x @ x).float().cpu().tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_one_thread_computes_inside_and_all_of_them_after_it():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
        with pytest.raises(ZeroDivisionError), one_thread():
            1 / 0  # noqa: B018
        assert torch.get_num_threads() == 3
        assert one_thread()(torch.get_num_threads)() == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch says so of CUDA alone")
@pytest.mark.parametrize("first, said", [("", True), ("pick_device(); ", False)])
def test_a_backward_that_begins_with_a_matrix_product_says_nothing(first, said):
    """In a process of its own, since torch speaks once."""
    program = (
        f"import torch; from minimind_edu.device import pick_device; {first}x = torch.randn(2, 8, device='cuda', "
        "requires_grad=True); torch.nn.Linear(8, 8).cuda()(x).backward(torch.ones(2, 8, device='cuda'))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ("no current CUDA context" in answer.stderr) == said
