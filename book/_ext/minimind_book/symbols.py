"""What the letters of the book stand for: one color each, and lit together wherever they stand.

A letter in a sentence, a formula or a line of code gets the name of what it stands for as `data-sym`; so do the parts
of figures. Pointing at one lights all others on the page. A chapter lists the symbols whose letters stand for them
there and on its deeper pages; elsewhere a letter is a letter.
"""

import re
from functools import cache

from tools.chapters import all_deeper_of, chapters, page_of

# TeX or code, all of it -> name of the symbol. The names are those that figures give to their parts.
_WHOLE = {
    "q": "q", "Q": "q", r"\mathbf{q}": "q", "query": "q", "q_proj": "q",
    "k": "k", r"\mathbf{k}": "k", "key": "k", "k_proj": "k",
    "v": "v", r"\mathbf{v}": "v", "value": "v", "v_proj": "v",
    "m": "m", "n": "n", "m - n": "m-n", "m-n": "m-n",
    r"\theta_i": "theta", r"\theta": "theta", "inv_freq": "theta", r"\gamma": "gamma",
}  # fmt: skip

_LETTERS = {"q": "q", "k": "k", "v": "v", "m": "m", "n": "n", "𝐪": "q", "𝐤": "k", "𝐯": "v", "θ": "theta", "γ": "gamma"}
NAMES = frozenset(_WHOLE.values())
_LETTER = re.compile(r"<mi>([^<])</mi>")


def symbols_of(page: str) -> frozenset[str]:
    """What the letters of a page stand for."""
    return _by_page().get(page, frozenset())


@cache
def _by_page() -> dict[str, frozenset[str]]:
    pages = {page: [page, *map(page_of, all_deeper_of(page))] for page in chapters()}
    return {page: chapters()[chapter].symbols for chapter, belonging in pages.items() for page in belonging}


def attribute(page: str, text: str) -> str:
    """` data-sym="q"` for a text, all of a formula or of a piece of code, that stands for something on `page`."""
    name = _WHOLE.get(text.strip())
    return f' data-sym="{name}"' if name in symbols_of(page) else ""


def mark_formula(page: str, mathml: str) -> str:
    """Name the letters of a formula that stand for something on `page`."""
    known = symbols_of(page)

    def named(letter: re.Match) -> str:
        name = _LETTERS.get(letter[1])
        return f'<mi data-sym="{name}">{letter[1]}</mi>' if name in known else letter[0]

    return _LETTER.sub(named, mathml)


FIGURE_SCHEME = "figure:"  # of a link that sets a figure: figure:rotation_dials?query_position=40
