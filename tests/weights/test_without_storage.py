"""Models without storage: the sizes of the real ones, at no cost in memory, random numbers or time."""

import subprocess
import sys

import pytest
import torch
from model_builders import tiny_config, tiny_model

from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.weights.without_storage import without_storage


def test_it_has_the_names_sizes_and_dtypes_of_a_model_in_memory():
    for kind in ({}, {"use_moe": True}):
        config = tiny_config(**kind)
        empty, real = without_storage(config), MiniMindForCausalLM(config)
        assert [(n, p.shape, p.dtype) for n, p in empty.named_parameters()] == [
            (n, p.shape, p.dtype) for n, p in real.named_parameters()
        ]
        assert all(parameter.is_meta for parameter in empty.parameters())


def test_it_draws_no_random_number_and_leaves_drawing_to_later_models():
    torch.manual_seed(0)
    without_storage(tiny_config())
    drawn = torch.rand(1)
    torch.manual_seed(0)
    assert torch.equal(drawn, torch.rand(1))
    assert MiniMindForCausalLM(tiny_config()).lm_head.weight.std() > 0


def test_what_one_has_becomes_its_parameters():
    model, empty = tiny_model(), without_storage(tiny_config())
    empty.load_state_dict(model.state_dict(), assign=True)
    assert all(a.data_ptr() == b.data_ptr() for a, b in zip(empty.parameters(), model.parameters(), strict=True))


@pytest.mark.long
def test_a_stored_model_is_read_without_loading_torchs_compiler():
    code = "import sys; from minimind_edu.trained import living; living.living_model(); "
    code += "print('torch._dynamo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
