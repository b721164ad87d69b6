"""KeyCircles: the keys that one shared head has learned, of four properties that can be asked for.

Every setting is a training that `python -m minimind_edu.trained.sharing.circles` ran and stored. The ES module draws
the keys, and takes the softmax of the products of a query with them (math.js).
"""

from typing import Any

import torch
from torch import Tensor
from traitlets import Dict, Enum, Int, default

from minimind_edu.trained.sharing import VALUES
from minimind_edu.trained.sharing.circles import DRAWN, SEEDS, WIDTHS, circles
from minimind_edu.web.base import Figure


class KeyCircles(Figure):
    """Choose how many channels the head has, and see which properties have keys that can be told apart.

    Args:
        shows: `keys`, or `query`: the query for one value of each property, and where it looks, too.
        width: channels of the head, one of `minimind_edu.trained.sharing.circles.WIDTHS`.
        seed: of the training, 0 to 2.
        asked: the value that is asked for, 1 to 8.

    Raises:
        TraitError: for another value.
    """

    _repr_traits = ("shows", "width", "seed")

    shows = Enum(("keys", "query"), default_value="keys").tag(sync=True)
    width = Enum(WIDTHS, default_value=WIDTHS[-1]).tag(sync=True)
    seed = Enum(SEEDS, default_value=SEEDS[0]).tag(sync=True)
    asked = Int(1, min=1, max=VALUES).tag(sync=True)
    stored = Dict(read_only=True).tag(sync=True)

    @default("stored")
    def _stored(self) -> dict[str, Any]:
        portraits = [
            {name: portrait[name] for name in ("width", "seed", "right", "keys", "queries")}
            for portrait in circles()
            if portrait["setting"] == DRAWN
        ]
        return {"widths": WIDTHS, "seeds": SEEDS, "portraits": portraits}

    def portrait(self) -> dict[str, Any]:
        """The stored training that the figure shows."""
        [found] = [
            portrait
            for portrait in self.stored["portraits"]
            if (portrait["width"], portrait["seed"]) == (self.width, self.seed)
        ]
        return found

    def weights(self) -> Tensor:
        """How much of a query for the value `asked` each of a property's values gets, [properties, values]."""
        drawn = self.portrait()
        keys, queries = (torch.tensor(drawn[name], dtype=torch.float64) for name in ("keys", "queries"))
        return (keys @ queries[:, self.asked - 1, :, None]).squeeze(-1).softmax(-1)

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        rows = [
            (f"{portrait['width']} channels", ", ".join(f"{share} %" for share in portrait["right"]))
            for portrait in self.stored["portraits"]
            if portrait["seed"] == self.seed
        ]
        return "How many names are right for each of four properties, by the channels of the one key head.", rows
