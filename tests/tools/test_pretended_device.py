"""The pretended GPU refuses what a real one refuses, says what one says, and leaves the CPU alone."""

import copy

import nbformat
import numpy as np
import pytest
import torch
from model_builders import tiny_config, tiny_model, token_ids
from nbformat.v4 import new_code_cell, new_notebook, new_output
from pretended_device import pretended
from torch import nn

from minimind_edu import MiniMindForCausalLM, pick_device
from minimind_edu.model import masks
from tools.notebook_environment import ENVIRONMENT

pytest_plugins = ["pytester"]

MIXED = "Expected all tensors to be on the same device"


@pytest.fixture(params=["cuda", "mps"])
def gpu(request):
    """The pretended device."""
    with pretended(request.param):
        yield torch.device(request.param, 0)


def test_it_is_picked_and_tensors_say_that_they_are_there(gpu):
    assert pick_device().type == gpu.type
    there = [torch.ones(2, 3).to(gpu), torch.ones(2, 3, device=gpu), torch.ones(2, 3).to(pick_device(), torch.float16)]
    there += [torch.tensor([[1.0, 2.0]], device=gpu), torch.ones(2).to(torch.zeros(1, device=gpu))]
    there += [2 * there[0], there[0][0], there[0].sum(), next(iter(there[0])), there[0].topk(2).values]
    there += [nn.Parameter(there[0]), copy.deepcopy(there[0]), torch.zeros_like(there[0]), there[0].new_ones(2)]
    for one in there:
        assert one.device == gpu and getattr(one, f"is_{gpu.type}") and not one.is_cpu
    for one in (there[0].cpu(), there[0].to("cpu"), torch.ones(2), torch.tensor([there[0].sum(), 1.0])):
        assert one.device.type == "cpu"


def test_it_is_printed_as_torch_prints_it(gpu):
    x = torch.ones(2, device=gpu, dtype=torch.float16)
    assert repr(x) == f"{x}" == f"tensor([1., 1.], device='{gpu}', dtype=torch.float16)"
    assert repr(torch.ones(2).to(gpu)) == f"tensor([1., 1.], device='{gpu}')"
    assert f"{x.sum():.1f}" == "2.0" and x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "mix",
    [
        lambda there: there + torch.ones(3),
        lambda there: torch.ones(3) * there.sum(),
        lambda there: torch.ones(3)[there.long()],
        lambda there: torch.cat([there, torch.ones(3)]),
        lambda there: torch.stack([there.sum(), torch.tensor(1.0)]),
        lambda there: torch.equal(there, torch.ones(3)),
        lambda there: nn.Embedding(4, 2)(there.long()),
        lambda there: nn.Linear(3, 2)(there),
        lambda there: nn.functional.cross_entropy(torch.ones(3, 4), there.long()),
        lambda there: there.masked_fill(torch.ones(3, dtype=torch.bool), 0.0),
    ],
)
def test_what_is_mixed_is_refused(gpu, mix):
    with pytest.raises(RuntimeError, match=f"{MIXED}.*{gpu.type}"):
        mix(torch.ones(3, device=gpu))


def test_what_may_be_mixed_may_be_mixed(gpu):
    there, here = torch.arange(3.0).to(gpu), torch.zeros(3)
    assert (there + torch.tensor(1.0)).device == gpu, "a single number"
    assert there[torch.tensor([0, 2])].device == gpu, "an index"
    here.copy_(there)
    assert here.device.type == "cpu" and here.tolist() == [0.0, 1.0, 2.0]
    there[1:] = torch.tensor([5.0, 6.0])
    assert there.device == gpu and there.tolist() == [0.0, 5.0, 6.0]


def test_a_move_copies_and_numpy_sees_nothing_that_is_there(gpu):
    here = torch.zeros(3)
    there = here.to(gpu)
    there += 1
    back = there.cpu()
    back += 1
    assert (here.tolist(), there.tolist(), back.tolist()) == ([0.0] * 3, [1.0] * 3, [2.0] * 3)
    for read in (lambda: there.numpy(), lambda: np.asarray(there)):
        with pytest.raises(TypeError, match="numpy"):
            read()


def test_it_draws_other_numbers_and_takes_no_generator_of_the_cpu(gpu):
    torch.manual_seed(0)
    here = torch.rand(3)
    torch.manual_seed(0)
    there = torch.rand(3, device=gpu)
    assert there.tolist() != here.tolist()
    assert torch.rand(3).tolist() == here.tolist(), "the CPU's numbers go on as if nothing had been drawn there"
    for draw in (torch.rand, torch.randn):
        with pytest.raises(RuntimeError, match="generator"):
            draw(3, device=gpu, generator=torch.Generator())


def test_mps_has_no_float64():
    with pretended("mps"):
        for wide in (lambda: torch.ones(2).to("mps").double(), lambda: torch.ones(2).double().to("mps")):
            with pytest.raises(TypeError, match="float64"):
                wide()


def test_tied_weights_stay_tied_and_a_training_step_stays_there(gpu):
    model = MiniMindForCausalLM(tiny_config())
    head, table = model.lm_head.weight, model.model.embed_tokens.weight
    assert model.to(gpu) is model
    assert model.lm_head.weight is head is table is model.model.embed_tokens.weight and head.device == gpu
    ids = token_ids(2, 5).to(gpu)
    grown, optimizer = [], torch.optim.AdamW(model.parameters())
    head.register_hook(grown.append)
    model(ids, labels=ids).loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    assert head.grad.device == gpu and [gradient.device for gradient in grown] == [gpu]
    assert {state["exp_avg"].device for state in optimizer.state.values()} == {gpu}


def test_afterwards_everything_is_as_before():
    there = None
    with pytest.raises(ZeroDivisionError), pretended("cuda"):
        there = torch.ones(2, device="cuda")
        1 / 0  # noqa: B018
    assert pick_device().type != "cuda" or torch.version.cuda
    assert nn.Parameter(there).device.type == "cpu"


def test_one_tensor_left_behind_in_the_package_is_seen(gpu, monkeypatch):
    model, ids = tiny_model(dtype=torch.float32).to(gpu), token_ids(1, 4).to(gpu)
    padded = {"attention_mask": torch.tensor([[0, 1, 1, 1]], device=gpu)}
    assert model(ids, **padded).logits.device == gpu
    forgetful = lambda queries, keys, device=None, make=masks.causal_mask: make(queries, keys)  # noqa: E731
    monkeypatch.setattr(masks, "causal_mask", forgetful)
    with pytest.raises(RuntimeError, match=MIXED):
        model(ids, **padded)


def cell(number: int, source: str, text: str):
    return new_code_cell(source, execution_count=number, outputs=[new_output("stream", text=text)])


@pytest.mark.long
def test_chapters_run_with_it_and_one_tensor_left_behind_in_a_chapter_is_seen(pytester, request, monkeypatch):
    """In a run of its own, with the conftest of this project."""
    picked = "import torch\nfrom minimind_edu import pick_device\nx = torch.ones(3).to(pick_device())\nprint(x)"
    cells = [cell(1, picked, "tensor([1., 1., 1.])\n"), cell(2, "print(x + torch.ones(3))", "tensor([2., 2., 2.])\n")]
    nbformat.write(new_notebook(cells=cells), pytester.path / "chapter.ipynb")
    root = request.config.rootpath
    pytester.makeconftest(
        (root / "conftest.py").read_text(encoding="utf-8").replace("config.rootpath", f"Path('{root}')")
    )
    for name, value in ({"PYTHONPATH": f"{root}:{root / 'src'}"} | ENVIRONMENT).items():
        monkeypatch.setenv(name, value)
    run = ("--nbval", "-n", "0", "chapter.ipynb", "--color=no")
    pytester.runpytest_subprocess(*run).assert_outcomes(passed=2)
    result = pytester.runpytest_subprocess(*run, "--pretend", "cuda")
    result.assert_outcomes(passed=1, failed=1)
    assert MIXED in result.stdout.str()


def test_what_the_cpu_compiles_is_compiled_without_the_pretence(gpu):
    seen = []

    def look(graph, inputs):
        seen.extend(node.target.__name__ for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    x = torch.arange(3.0)
    assert torch.compile(lambda x: torch.relu(x) * x, backend=look)(x).tolist() == [0.0, 1.0, 4.0]
    assert seen == ["relu", "mul"]
