"""What a link to a part of a page calls it: `C3_whole_model.ipynb#14`, or `#e115` for a correction.

A heading that begins with a number, as in "14 · Speed" or "E115 · Every layer", is called by it: the same in either
language. Any other is called by its words, as myst does it.
"""

import re

from myst_parser.mdit_to_docutils.base import default_slugify

_NUMBERED = re.compile(r"(E?\d+[a-z]?) · ")


def name_of(title: str) -> str:
    """The name of a heading within its page."""
    found = _NUMBERED.match(title)
    return found[1].lower() if found else default_slugify(title)
