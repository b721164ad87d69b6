"""AblationLab: take one part of a small model away and see what its training makes of it, against the whole model.

Nothing is trained here: `python -m minimind_edu.trained.ablations` trained every variant with two seeds, and the figure
shows what is stored of them.
"""

from typing import Any

from traitlets import Dict, Enum, default

from minimind_edu.trained.ablations import VARIANTS, runs
from minimind_edu.trained.ablations.lists import TASKS
from minimind_edu.web.base import Figure

DIGITS = 2  # of what is drawn: a hundredth of a nat is less than a pixel


def results() -> dict[str, Any]:
    """What the figure draws: steps, entropy, prompts, and for each variant its parameters and one entry a seed."""
    stored = runs()
    variants: dict[str, Any] = {}
    for run in stored["runs"]:
        variant = variants.setdefault(run["variant"], {"parameters": run["parameters"], "seeds": []})
        variant["seeds"].append(_seed(run))
    general = {name: stored[name] for name in ("steps", "every", "entropy", "prompts", "answers")}
    return {**general, "variants": variants}


def _seed(run: dict[str, Any]) -> dict[str, Any]:
    """One training, in numbers short enough for a page."""
    numbers = {name: [round(value, DIGITS) for value in run[name].values()] for name in ("accuracy", "longer")}
    numbers |= {"loss": [round(value, DIGITS) for value in run["held_out"]], "said": run["said"]}
    if VARIANTS[run["variant"]].rows:
        numbers["training"] = [round(value, DIGITS) for value in run["training"]]
    return numbers


class AblationLab(Figure):
    """Choose what is missing: the loss while it trains, the answers that are right after it, and one of them.

    Args:
        variant: a name of `minimind_edu.trained.ablations.VARIANTS`.

    Raises:
        TraitError: for another name.
    """

    _repr_traits = ("variant",)

    variant = Enum(tuple(VARIANTS), default_value="no positions").tag(sync=True)
    results = Dict(read_only=True).tag(sync=True)

    @default("results")
    def _stored_results(self) -> dict[str, Any]:
        return results()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for name in dict.fromkeys((self.variant, "whole")):
            seeds = self.results["variants"][name]["seeds"]
            rows.append((f"{name}: loss after training", _each(seed["loss"][-1] for seed in seeds)))
            for i, task in enumerate(TASKS):
                for key, length in (("accuracy", "2 to 5"), ("longer", "6 to 8")):
                    rows.append((f"{name}: {task} {length} digits, right", _each(seed[key][i] for seed in seeds)))
        return (
            f"A small model learns to copy, reverse and sort lists of digits, with two seeds: {self.variant!r} and the "
            f"whole model. No loss can be below the entropy, {self.results['entropy']:.2f} nats per word.",
            rows,
        )


def _each(values: Any) -> str:
    return " and ".join(f"{value:.2f}" for value in values)
