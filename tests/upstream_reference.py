"""What upstream MiniMind computed, and our model with the same weights: `data/reference/README.md`."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from safetensors import safe_open

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.model import MiniMindForCausalLM

REFERENCE = Path(__file__).parent / "data" / "reference"
NAMES = ["minimind2_dense", "minimind2_moe", "minimind3_dense", "minimind3_moe", "minimind3_yarn"]

every_file = pytest.mark.parametrize("name", NAMES)


@cache
def reference(name):
    """What upstream computed, and our model with the same weights."""
    with safe_open(REFERENCE / f"{name}.safetensors", framework="pt") as file:
        facts = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}
    prefix = "weights."
    weights = {key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)}
    upstream = json.loads(facts["config"])
    model = MiniMindForCausalLM(MiniMindConfig.from_upstream(upstream, facts["generation"]))
    model.load_state_dict(weights)
    expected = {key: t for key, t in tensors.items() if not key.startswith(prefix)}
    lengths = {key: int(facts[key]) for key in ("prefill_length", "greedy_prompt_length")}
    return SimpleNamespace(model=model.eval(), weights=weights, tensors=expected, upstream=upstream, **lengths)
