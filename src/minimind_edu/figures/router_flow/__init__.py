"""RouterFlow: where a router sends the words of two sentences while it learns, with and without the auxiliary loss.

Nothing is trained here: `python -m minimind_edu.trained.routing` trained every variant with three seeds, and the figure
shows what is stored of them.
"""

from typing import Any

from traitlets import Bool, Dict, Enum, default

from minimind_edu.trained.routing import NUM_BLOCKS, SEEDS, STOPS, TOP_K, run_of, runs, words
from minimind_edu.web.base import Figure


def results() -> dict[str, Any]:
    """What the figure draws: words, stops, and each run with loads and weights in percent."""
    return {"words": words(), "stops": list(STOPS), "runs": [_short(run) for run in runs()]}


def _short(run: dict[str, Any]) -> dict[str, Any]:
    """One training, in numbers short enough for a page; experts become a string of digits, a token after the other."""
    looks = []
    for one in run["looks"]:
        blocks = [
            {
                "loads": [round(100 * load) for load in block["loads"]],
                "balance": round(block["balance"], 2),
                "experts": "".join(str(expert) for chosen in block["experts"] for expert in chosen),
                "weights": [round(100 * weight) for chosen in block["weights"] for weight in chosen],
            }
            for block in one["blocks"]
        ]
        looks.append({"loss": round(one["loss"], 2), "blocks": blocks})
    return {name: run[name] for name in ("top_k", "balanced", "seed")} | {"looks": looks}


class RouterFlow(Figure):
    """Train a mixture of four experts by a slider, and see which of them get the tokens.

    Args:
        step: steps of training, one of `minimind_edu.trained.routing.STOPS`.
        balanced: trained with the auxiliary loss.
        top_k: experts that a token visits.
        block: 1 or 2, whose router is shown.
        seed: of the weights and the stories.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("step", "balanced", "top_k")

    step = Enum(STOPS, default_value=50).tag(sync=True)
    balanced = Bool(False).tag(sync=True)
    top_k = Enum(TOP_K, default_value=1).tag(sync=True)
    block = Enum(tuple(range(1, NUM_BLOCKS + 1)), default_value=2).tag(sync=True)
    seed = Enum(SEEDS, default_value=0).tag(sync=True)
    results = Dict(read_only=True).tag(sync=True)

    @default("results")
    def _stored_results(self) -> dict[str, Any]:
        return results()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = []
        for name, balanced in (("without the auxiliary loss", False), ("with it", True)):
            look = run_of(self.top_k, balanced, self.seed)["looks"][STOPS.index(self.step)]
            block = look["blocks"][self.block - 1]
            rows.append(
                (f"{name}: loads of the four experts", ", ".join(f"{100 * load:.0f} %" for load in block["loads"]))
            )
            rows.append((f"{name}: N Σ f P", f"{block['balance']:.2f}"))
            rows.append((f"{name}: nats per word", f"{look['loss']:.2f}"))
        return (
            f"After {self.step} steps of training, the router of block {self.block} sends each token to {self.top_k} "
            "of four experts. An even load is 25 % for each.",
            rows,
        )
