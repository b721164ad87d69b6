"""What upstream's MiniMindConfig calls things, in both generations, and what its YaRN switch means.

MiniMind: `model/model_minimind.py`, class MiniMindConfig.
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Literal

from minimind_edu.rope_frequencies import RopeScaling
from minimind_edu.validation import check_choice, check_flag

Generation = Literal["minimind2", "minimind3"]

# upstream's name -> ours, where they differ; both generations together, since no name means two things
UPSTREAM_NAMES = {
    "n_routed_experts": "num_experts",
    "n_shared_experts": "num_shared_experts",
    "aux_loss_alpha": "router_aux_loss_coef",
}

# Switches of upstream's that change no result here: which kernel runs, and choices with only one value.
_WITHOUT_MEANING_HERE = ("flash_attn", "hidden_act", "scoring_func", "model_type", "torch_dtype", "dtype",
                         "architectures", "transformers_version")  # fmt: skip


def upstream_scaling(values: dict[str, Any], generation: Generation) -> RopeScaling | None:
    """Take upstream's YaRN switch and dictionary out of `values` and return what they mean.

    MiniMind2 got YaRN proper in its last versions: there the dictionary has an `attention_factor`.
    """
    switched_on = values.pop("inference_rope_scaling", None)
    if switched_on is not None:
        check_flag("inference_rope_scaling", switched_on)
    given = values.pop("rope_scaling", None)
    if not isinstance(given, Mapping | None):
        raise ValueError(f"upstream's rope_scaling must be a dictionary, got {given!r}")
    if not switched_on and not given:
        return None
    if generation == "minimind2" and "attention_factor" not in (given or {}):
        defaults: dict[str, Any] = {"factor": 4.0, "beta_fast": 4.0, "formula": "minimind2", "attention_factor": 1.0}
    else:
        defaults = {"factor": 16.0, "beta_fast": 32.0, "attention_factor": 1.0}
    known = {field.name for field in fields(RopeScaling)} - {"formula"}
    return RopeScaling(**defaults | {name: value for name, value in (given or {}).items() if name in known})


def translated(upstream: Mapping[str, Any], generation: Generation, known: Collection[str]) -> dict[str, Any]:
    """Upstream's arguments under our names, which are `known`, without those that change no result here.

    Raises:
        ValueError: for a generation that does not exist, or a name that this generation does not have.
    """
    check_choice("generation", generation, ("minimind2", "minimind3"))
    values = dict(upstream)
    scaling = upstream_scaling(values, generation)
    changes = {UPSTREAM_NAMES.get(name, name): value for name, value in values.items()}
    for name in _WITHOUT_MEANING_HERE:
        changes.pop(name, None)
    if scaling is not None:
        changes["rope_scaling"] = scaling
    if unknown := sorted(set(changes) - set(known)):
        raise ValueError(
            f"upstream's {generation} config has no field {', '.join(unknown)}; known here: {', '.join(sorted(known))}"
        )
    return changes
