"""What a config.json says, in the fields of MiniMindConfig.

Which fields mean what is in the table of `minimind_edu.model.foreign`; here is what several of them say together: how
RoPE is scaled, and which tokens begin and end a text.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.foreign import FAMILIES, OF_TRANSFORMERS, ROPE_FIELDS
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.model.upstream import Generation, switched_scaling
from minimind_edu.validation import check_count

_LONGEST = 2**18  # positions that a file gets for a factor alone
_MOST_POSITIONS = 2**40  # that a file may speak of; beyond, their quotients are no floats


def values_of(
    described: Mapping[str, Any], generation: Generation, generating: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The fields of MiniMindConfig that a config.json states, or that its program takes where the file is silent.

    Args:
        described: the file's content.
        generation: "minimind2" or "minimind3", for upstream's two formulas of YaRN.
        generating: the content of a generation_config.json beside it. transformers then takes the tokens that begin
            and end a text from there, and none that it does not name; MiniMind's own program does not read it.

    Raises:
        ValueError: for a kind of model, a field or a value that this package does not compute.
    """
    kind = described.get("model_type") or "minimind"
    if kind == "minimind" and (others := _other_programs(described)):
        kind = f"{', '.join(others)} without a model_type"
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(
            f"config.json describes a model of type {kind!r}, and only {', '.join(FAMILIES)} are read. If its parts "
            "are the same, give config=MiniMindConfig(...)"
        )
    family = FAMILIES[kind]
    values = family.translated(described)
    if kind in OF_TRANSFORMERS:
        values = {**family.silent, **values}
        values |= _rope_of_transformers(described, values["max_position_embeddings"])
    elif kind == "minimind_edu":
        values = MiniMindConfig.defaults() | values
        if ours := _object(described, "minimind_rope_scaling"):
            values["rope_scaling"] = _our_scaling(ours)
    else:
        if described.get("model_type"):  # whoever wrote a few fields by hand leaves the others to the weights
            values = {**family.silent, **values}
        values |= _of_minimind(described, generation, values)
    if generating is not None and kind != "minimind":
        values |= {name: generating.get(name) for name in ("bos_token_id", "eos_token_id")}
    if isinstance(ends := values.get("eos_token_id"), list):
        values["eos_token_id"] = tuple(ends) or None
    return values


def _other_programs(described: Mapping[str, Any]) -> list[str]:
    """The architectures that a file without a type names and that are not MiniMind's."""
    named = described.get("architectures") or []
    classes = [str(name) for name in (named if isinstance(named, list) else [named])]
    return [name for name in classes if not name.startswith("MiniMind")] if not described.get("model_type") else []


def _of_minimind(described: Mapping[str, Any], generation: Generation, values: Mapping[str, Any]) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if generation == "minimind2" and "tie_word_embeddings" in values:  # tied whatever the file says
        more["tie_word_embeddings"] = True
    dictionary = _object(described, "rope_scaling")
    scaling = switched_scaling(described.get("inference_rope_scaling"), dictionary, generation)
    return more if scaling is None else more | {"rope_scaling": scaling}


def _rope_of_transformers(described: Mapping[str, Any], positions: Any) -> dict[str, Any]:
    """rope_theta and rope_scaling, wherever a version writes them, in the order of transformers 5.

    `rope_scaling` counts whole where it is given, and `rope_parameters` is then forgotten. A base inside goes before
    one beside; a trained context beside goes before one inside.
    """
    given = _object(described, "rope_scaling") or _object(described, "rope_parameters")
    if unknown := sorted(given.keys() - ROPE_FIELDS):
        raise ValueError(f"config.json's RoPE has {', '.join(unknown)}, whose meaning is not known here")
    if (share := given.get("partial_rotary_factor", 1)) != 1:
        raise ValueError(f"config.json asks for partial_rotary_factor={share!r}, but whole heads are rotated here")
    theta = {"rope_theta": given.get("rope_theta", described.get("rope_theta", 1e4))}
    kind = given.get("rope_type", given.get("type", "default"))
    if kind not in ("default", "yarn"):
        raise ValueError(f"config.json asks for RoPE of type {kind!r}; this package has 'default' and 'yarn'")
    if kind == "default":
        return theta
    inside = given.get("original_max_position_embeddings", positions)
    return theta | _yarn(given, positions, described.get("original_max_position_embeddings", inside))


def _yarn(given: Mapping[str, Any], positions: Any, original: Any) -> dict[str, Any]:
    extra = {name for name in ("mscale", "mscale_all_dim") if given.get(name)}
    if not given.get("truncate", True):
        extra.add("truncate")
    if extra:
        raise ValueError(f"config.json's YaRN sets {', '.join(sorted(extra))}, which this package does not have")
    if "factor" not in given:
        raise ValueError("config.json's YaRN must have a factor; null means the ratio of the two contexts")
    check_count("max_position_embeddings", positions, at_most=_MOST_POSITIONS)
    check_count("original_max_position_embeddings", original, at_most=_MOST_POSITIONS)
    factor = positions / original if given["factor"] is None else given["factor"]
    chosen = {name: given[name] for name in ("beta_fast", "beta_slow") if given.get(name)}  # 0 is the default, too
    scaling = RopeScaling(factor, original, **chosen, attention_factor=given.get("attention_factor"))
    # a file may stop at the trained context, where transformers scales all the same and goes on as long as asked
    if not scaling.starts_at(positions):
        positions = max(positions, min(int(factor * original), _LONGEST))
    if not scaling.starts_at(positions):
        scaling = replace(scaling, always=True)
    return {"rope_scaling": scaling, "max_position_embeddings": positions}


def _our_scaling(given: Mapping[str, Any]) -> RopeScaling:
    try:
        return RopeScaling(**given)
    except TypeError as error:
        raise ValueError(f"config.json's minimind_rope_scaling has a field that RopeScaling has not: {error}") from None


def _object(described: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A copy of the JSON object of that name, empty where there is none."""
    value = described.get(name) or {}
    if not isinstance(value, Mapping):
        raise ValueError(f"config.json's {name} must be an object, got {value!r}")
    return dict(value)
