"""What figures add to the traits of traitlets."""

import math
from typing import Any

from traitlets import Bunch, Float, HasTraits


class Finite(Float):
    """A float that JSON can hold and that bounds can judge: nan is neither below `min` nor above `max`."""

    info_text = "a finite number"

    def validate(self, obj: Any, value: Any) -> float:
        value = super().validate(obj, value)
        if not math.isfinite(value):
            self.error(obj, value)
        return value


def proposed(figure: HasTraits, proposal: Bunch, *names: str) -> tuple[Any, ...]:
    """The values that these traits will have if the proposal is accepted, for validators of traits bound together."""
    return tuple(proposal["value"] if name == proposal["trait"].name else getattr(figure, name) for name in names)
