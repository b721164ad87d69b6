"""What figures add to the traits of traitlets."""

import math
from typing import Any

from traitlets import Bool, Bunch, Enum, Float, HasTraits, Int, List, TraitType


class Finite(Float):
    """A float that JSON can hold and that bounds can judge: nan is neither below `min` nor above `max`."""

    info_text = "a finite number"

    def validate(self, obj: Any, value: Any) -> float:
        value = super().validate(obj, value)
        if not math.isfinite(value):
            self.error(obj, value)
        return value


def limits_of(trait: TraitType) -> dict[str, Any] | None:
    """What a page may set this trait to from outside, from an address or what the browser has kept, as JSON.

        {"of": [...]}                           one of these
        {"from": 0, "to": 63}                   a number; with "whole": true, a whole one, which may have no "to"
        {"each": {"from": -8, "to": 8}}         as many of these as there are

    None: nothing. Texts and objects may hold addresses and markup, so only the page's author writes them. Numbers
    without ends need some, from the trait itself or from `.tag(outside=(low, high))`; `outside=None` allows nothing.
    What a whole number may be at most can depend on other traits; the figure then takes the nearest that there is.
    """
    outside = trait.metadata.get("outside", ())
    if outside is None:
        return None
    if isinstance(trait, Bool):
        return {"of": [False, True]}
    if isinstance(trait, Enum):
        return {"of": list(trait.values or ())}
    if isinstance(trait, Int):
        ends = {"from": trait.min, "to": trait.max}
        return {"whole": True} | {name: end for name, end in ends.items() if end is not None}
    low, high = outside or (getattr(trait, "min", -math.inf), getattr(trait, "max", math.inf))
    if not math.isfinite(low) or not math.isfinite(high):
        return None
    ends = {"from": low, "to": high}
    return ends if isinstance(trait, Finite) else {"each": ends} if isinstance(trait, List) else None


def proposed(figure: HasTraits, proposal: Bunch, *names: str) -> tuple[Any, ...]:
    """The values that these traits will have if the proposal is accepted, for validators of traits bound together."""
    return tuple(proposal["value"] if name == proposal["trait"].name else getattr(figure, name) for name in names)
