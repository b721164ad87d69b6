"""What a figure gets when a reader keeps its picture: the code that draws it as a file. It travels only then."""

import base64
import json
from functools import cache
from pathlib import Path

from minimind_edu.web import host
from minimind_edu.web.join import join

CODE = Path(__file__).parent / "kit" / f"{host.KEEP}.js"


def message() -> dict[str, str]:
    """What a kernel sends: the code as the text of a module. A notebook has no fonts but the machine's."""
    return {"code": join(CODE)}


@cache
def keep_script(with_fonts: bool = True) -> str:
    """The same as a classic script for pages, registered as modules of figures are.

    Args:
        with_fonts: whether it brings the font of the figures; a page that has it in its styles needs no second one.
    """
    fonts = {}
    if with_fonts:
        fonts = {"Book Sans": base64.b64encode((host.FONTS / "sans.woff2").read_bytes()).decode("ascii")}
    opened = join(CODE).rstrip().removesuffix(";")
    return host.registration(host.KEEP, f"{opened}({json.dumps(fonts)});")
