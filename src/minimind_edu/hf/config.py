"""Our config as transformers wants one: the same fields, in config.json, under a model type of our own."""

import dataclasses
from typing import Any

from transformers import GenerationConfig, PretrainedConfig

from minimind_edu.model.config import MiniMindConfig, tokens_of
from minimind_edu.model.rope_frequencies import RopeScaling

_FIELDS = {field.name for field in dataclasses.fields(MiniMindConfig)}
# PretrainedConfig gives `rope_scaling` a meaning of its own, which knows neither of our formulas
_SCALING = "minimind_rope_scaling"


class MiniMindEduConfig(PretrainedConfig):
    """The fields of MiniMindConfig, checked by it, and those of every PretrainedConfig.

    Only rope_scaling has another name, minimind_rope_scaling: a dictionary of RopeScaling's fields, or None.

    Raises:
        ValueError: as MiniMindConfig.
    """

    model_type = "minimind_edu"
    keys_to_ignore_at_inference = ["past_key_values"]

    def __init__(self, **values: Any):
        given = {name: values.pop(name) for name in _FIELDS & values.keys()}
        scaling = values.pop(_SCALING, None)
        if scaling is not None:
            if not isinstance(scaling, dict):
                raise ValueError(f"{_SCALING} must be a dictionary of RopeScaling's fields or None, got {scaling!r}")
            given["rope_scaling"] = RopeScaling(**scaling)
        for name, value in _transformers_names(MiniMindConfig(**given)).items():
            setattr(self, name, value)
        self.use_cache = values.pop("use_cache", True)
        common = ("tie_word_embeddings", "bos_token_id", "eos_token_id")
        super().__init__(**{name: getattr(self, name) for name in common}, **values)

    @classmethod
    def from_minimind(cls, config: MiniMindConfig, **values: Any) -> "MiniMindEduConfig":
        """The config of transformers for one of ours."""
        return cls(**_transformers_names(config), **values)

    def to_minimind(self) -> MiniMindConfig:
        """Our own config with the values that this one has now."""
        values = {name: getattr(self, name) for name in _FIELDS - {"rope_scaling"}}
        scaling = getattr(self, _SCALING)
        return MiniMindConfig(rope_scaling=None if scaling is None else RopeScaling(**scaling), **values)


def _transformers_names(config: MiniMindConfig) -> dict[str, Any]:
    values = dataclasses.asdict(config)
    values[_SCALING] = values.pop("rope_scaling")
    return values | {"eos_token_id": end_tokens(config)}


def end_tokens(config: MiniMindConfig) -> int | list[int] | None:
    """The tokens that end a text, as transformers writes them: several are a list."""
    ends = config.eos_token_id
    return list(ends) if isinstance(ends, tuple) else ends


def generation_config(config: MiniMindConfig) -> GenerationConfig:
    """How transformers begins, ends and pads a text; it pads with the (first) end, as our own generate does."""
    padding = next(iter(tokens_of(config.eos_token_id)), None)
    return GenerationConfig(bos_token_id=config.bos_token_id, eos_token_id=end_tokens(config), pad_token_id=padding)
