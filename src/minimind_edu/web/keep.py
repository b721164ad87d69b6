"""What a figure gets when a reader keeps its picture: the code that draws it as a file. It travels only then."""

from functools import cache
from pathlib import Path

from minimind_edu.web import host
from minimind_edu.web.join import join

CODE = Path(__file__).parent / "kit" / f"{host.KEEP}.js"


def message() -> dict[str, str]:
    """What a kernel sends: the code as the text of a module."""
    return {"code": join(CODE)}


@cache
def keep_script() -> str:
    """The same as a classic script for pages, registered as modules of figures are."""
    return host.registration(host.KEEP, join(CODE))
