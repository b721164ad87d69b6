"""What a figure gets when it asks for the living model: the stored weights, the world, and what heads are for.

One payload serves a kernel, which sends it, and a page, which has it as a script of its own. It is made here only.
"""

import base64
import json
from functools import cache
from typing import Any

from minimind_edu import living, world
from minimind_edu.figures import host


@cache
def payload() -> dict[str, Any]:
    """The file of weights as base64, the tables of the world, and `lost_without` and `reading` of the card."""
    card = living.card()
    return {
        "weights": base64.b64encode(living.WEIGHTS.read_bytes()).decode("ascii"),
        "world": world.tables(),
        "heads": {name: card[name] for name in ("lost_without", "reading")},
    }


@cache
def living_script() -> str:
    """The payload as a classic script for pages, registered as modules of figures are.

    Keys keep their order, for the order of the world's weights has a meaning.
    """
    text = json.dumps(payload(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return host.registration(host.LIVING, "\nexport default " + text.replace("<", "\\u003c") + ";")


def asks_for_living(source: str) -> bool:
    """Whether the joined module of a figure asks for the living model; the helper that asks is in all of them."""
    return source.count("loadLiving(") > 1
