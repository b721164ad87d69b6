"""What is picked is what the machine has: the device, a dtype that it computes natively, one thread for small work."""

import os
import subprocess
import sys

import pytest
import torch
from model_builders import tiny_config, token_ids
from pretended_device import pretended

from minimind_edu.device import devices_here, one_thread, pick_device, pick_dtype
from minimind_edu.model import MiniMindForCausalLM


@pytest.mark.parametrize(
    "cuda, mps, expected", [(True, False, "cuda"), (True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_an_accelerator_is_taken_where_there_is_one(cuda, mps, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert pick_device() == torch.device(expected)
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


def test_what_is_picked_can_be_computed_with():
    device = pick_device()
    x = torch.ones(2, 2, device=device, dtype=pick_dtype(device))
    assert (x @ x).float().cpu().tolist() == [[2.0, 2.0], [2.0, 2.0]]


# A device that is only pretended: every tensor of the model must be made or moved there


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_the_pretended_device_refuses_what_a_real_one_refuses(name, monkeypatch):
    with pretended(name, monkeypatch) as device:
        x = torch.ones(2, 3).to(pick_device())
        assert (x.device.type, (2 * x).device.type, x[0].device.type) == (name, name, name)
        assert (x.cpu().device.type, device.arrived) == ("cpu", 1)
        with pytest.raises(RuntimeError, match=f"cpu and {name}"):
            x + torch.ones(2, 3)
        with pytest.raises(RuntimeError, match=f"cpu and {name}"):
            torch.ones(2, 3) * x.sum()
        if name == "mps":
            for wide in (lambda: x.double(), lambda: torch.zeros(2).double().to(name)):
                with pytest.raises(TypeError, match="float64"):
                    wide()


@pytest.mark.parametrize("name", ["cuda", "mps"])
@pytest.mark.parametrize("kind", ["minimind2", "minimind2_moe", "minimind3"])
def test_the_whole_model_moves(name, kind, monkeypatch):
    """Forward, backward, padding, cache and sampling: a tensor left behind on the CPU would be refused."""
    torch.manual_seed(0)
    model = MiniMindForCausalLM(tiny_config(kind)).eval()
    ids = token_ids(2, 5)
    mask = torch.ones_like(ids)
    mask[0, :2] = 0
    options = {"do_sample": True, "top_k": 5, "top_p": 0.9, "repetition_penalty": 1.1}
    here = model.generate(ids, 6, attention_mask=mask, generator=torch.Generator().manual_seed(1), **options)
    with pretended(name, monkeypatch):
        device = pick_device()
        model.to(device)
        assert {p.device.type for p in model.parameters()} == {name}
        assert model.lm_head.weight is model.model.embed_tokens.weight
        there = model.generate(
            ids.to(device), 6, attention_mask=mask.to(device), generator=torch.Generator().manual_seed(1), **options
        )
        assert there.device.type == name
        assert torch.equal(there.cpu(), here)
        loss = model(ids.to(device), labels=ids.to(device)).loss
        loss.backward()
        assert loss.device.type == name


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
