"""What a figure gets when it asks for the living model: the code that runs it, the stored weights, its world.

A kernel sends code and payload as one message; a page has them as a script of its own. Both are made here only, so
that no figure carries code for a model that few of its readers ask for.
"""

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

from minimind_edu import world
from minimind_edu.trained import living
from minimind_edu.web import host
from minimind_edu.web.join import join

CODE = Path(__file__).parent / "live" / f"{host.LIVING}.js"
# What the book tells where a reader has not told anything; a story ends where its next word is worth a look.
TOLD = "Mia is in the kitchen. Tom is in the garden. Mia goes from the kitchen to the hall."
QUESTION = "where is Mia? in the"


@cache
def payload() -> dict[str, Any]:
    """The file of weights as base64, the tables of the world, `lost_without` and `reading` of the card, and the story
    and the page of a reader who has no story yet."""
    card = living.card()
    return {
        "weights": base64.b64encode(living.WEIGHTS.read_bytes()).decode("ascii"),
        "world": world.tables(),
        "heads": {name: card[name] for name in ("lost_without", "reading")},
        "story": f"{TOLD} {QUESTION}",
        "page": host.LIVING_PAGE,
    }


def message() -> dict[str, Any]:
    """What a kernel sends: the code as the text of a module whose default export opens the payload."""
    return {"code": join(CODE), "payload": payload()}


@cache
def living_script() -> str:
    """Code and payload as a classic script for pages, registered as modules of figures are.

    Keys keep their order, for the order of the world's weights has a meaning.
    """
    text = json.dumps(payload(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    opened = join(CODE).rstrip().removesuffix(";")
    return host.registration(host.LIVING, f"{opened}({text.replace('<', chr(92) + 'u003c')});")


def asks_for_living(source: str) -> bool:
    """Whether the joined module of a figure asks for the living model; the helper that asks is in all of them."""
    return source.count("loadLiving(") > 1
