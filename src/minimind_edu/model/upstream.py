"""What upstream's arguments and its YaRN switch mean; what it calls things is in the table of `foreign.py`.

MiniMind: `model/model_minimind.py`, class MiniMindConfig.
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any, Literal

from minimind_edu.model.foreign import FAMILIES
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.validation import check_choice, check_flag

Generation = Literal["minimind2", "minimind3"]


def switched_scaling(switch: Any, dictionary: Any, generation: Generation) -> RopeScaling | None:
    """What upstream makes of a config.json: its constructor builds the dictionary from the switch alone.

    So a dictionary that stayed in the file, or was edited there, changes nothing; but its `attention_factor` tells the
    last versions of MiniMind2, which have YaRN proper, from those with a formula of their own.
    """
    if switch is not None:
        check_flag("inference_rope_scaling", switch)
    if not isinstance(dictionary, Mapping | None):
        raise ValueError(f"upstream's rope_scaling must be a dictionary, got {dictionary!r}")
    if not switch:
        return None
    return RopeScaling(**_defaults(dictionary or {}, generation))


def _defaults(dictionary: Mapping[str, Any], generation: Generation) -> dict[str, Any]:
    if generation == "minimind2" and "attention_factor" not in dictionary:
        return {"factor": 4.0, "beta_fast": 4.0, "formula": "minimind2", "attention_factor": 1.0}
    return {"factor": 16.0, "beta_fast": 32.0, "attention_factor": 1.0}


def translated(upstream: Mapping[str, Any], generation: Generation, known: Collection[str]) -> dict[str, Any]:
    """Upstream's arguments under our names, which are `known`, without those that change no result here.

    A dictionary `rope_scaling` counts with its values unless the switch is off, as it does where somebody assigns one
    to upstream's config.

    Raises:
        ValueError: for a generation that does not exist, a name that this generation does not have, or a value that
            is not computed here.
    """
    check_choice("generation", generation, ("minimind2", "minimind3"))
    family = FAMILIES["minimind"]
    ours = {name: value for name, value in upstream.items() if name in known and name not in family.used}
    others = {name: value for name, value in upstream.items() if name not in ours}
    if unknown := sorted(others.keys() - family.used.keys() - family.rope - family.only.keys() - family.nothing):
        raise ValueError(
            f"upstream's {generation} config has no field {', '.join(unknown)}; known here: {', '.join(sorted(known))}"
        )
    dictionary = ours.pop("rope_scaling", None)
    switch = upstream.get("inference_rope_scaling")
    scaling = switched_scaling(bool(dictionary) if switch is None else switch, dictionary, generation)
    changes = family.translated(others, "upstream's config") | ours
    if scaling is not None:
        names = {field.name for field in fields(RopeScaling)} - {"formula", "always"}
        given = {name: value for name, value in (dictionary or {}).items() if name in names}
        changes["rope_scaling"] = RopeScaling(**_defaults(dictionary or {}, generation) | given)
    return changes | weight_of_one_expert(changes, generation)


def weight_of_one_expert(values: Mapping[str, Any], generation: Generation) -> dict[str, Any]:
    """MiniMind2 renormalizes only where there are several weights, whatever its norm_topk_prob says.

    MiniMind3 (as of August 2026) does so for one as well, which then is always 1.
    """
    alone = generation == "minimind2" and values.get("num_experts_per_tok") == 1
    return {"norm_topk_prob": False} if alone else {}
