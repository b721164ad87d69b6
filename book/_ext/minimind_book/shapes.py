"""The picture of the page on notation: one token's tensors in a block of the living model, each number a cell.

    ```{shapes}
    ```

The numbers are those of `minimind_edu.trained.living.steps`, for the story of the map. What stands below each other
belongs together: a key/value head is drawn below the first of the query heads that share it. Letters and their numbers
have the name of what they stand for, so pointing at one lights all of them (see `symbols`), those of the page's table,
too.
"""

from collections.abc import Iterable

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from torch import Tensor

from minimind_book import chinese
from minimind_book.card import table
from minimind_edu import world
from minimind_edu.figures.model_map import LAYER, STORY
from minimind_edu.trained.living import CONFIG
from minimind_edu.trained.living.steps import Step, last_token, sizes

PAGE = "book/notation"
LEVELS = 5  # of the strength of a cell
GAPS = 2, 5  # units between two heads, between two that share nothing; a unit is a cell's width
HEIGHTS = 14, 4  # pixels of a row of cells: of one alone, of one of several

# Step -> its hue, and what it is called.
WORDS = {
    "en": {
        "titles": ["Step", "Shape", "The numbers, one cell each"],
        "stream": ("stream", "x, the stream"),
        "norm": ("norm", "its norm"),
        "q": ("q", "queries"),
        "k": ("k", "keys"),
        "v": ("v", "values"),
        "cache": ("k", "cached keys"),
        "scores": ("v", "scores"),
        "weights": ("v", "weights"),
        "mixed": ("v", "mixed values"),
        "attended": ("v", "attention adds"),
        "between": ("stream", "x, the sum"),
        "norm again": ("norm", "its norm"),
        "inner": ("ffn", "SiLU(gate) · up"),
        "fed": ("ffn", "feed-forward adds"),
        "stream again": ("stream", "x, on to the next block"),
        "logits": ("stream", "after the last block: logits"),
        "reads": "“{}” gets {:.0f} % from head {}",
        "says": "the largest is “{}”",
    },
    "zh": {
        "titles": ["步骤", "形状", "其中的数，一格一个"],
        "stream": ("stream", "x，残差流"),
        "norm": ("norm", "它的归一化"),
        "q": ("q", "查询"),
        "k": ("k", "键"),
        "v": ("v", "值"),
        "cache": ("k", "缓存里的键"),
        "scores": ("v", "分数"),
        "weights": ("v", "权重"),
        "mixed": ("v", "混合后的值"),
        "attended": ("v", "注意力加上的"),
        "between": ("stream", "x，相加之后"),
        "norm again": ("norm", "它的归一化"),
        "inner": ("ffn", "SiLU(gate) · up"),
        "fed": ("ffn", "前馈网络加上的"),
        "stream again": ("stream", "x，去往下一个块"),
        "logits": ("stream", "最后一个块之后：logits"),
        "reads": "{2} 号头把 {1:.0f}% 给了“{0}”",
        "says": "最大的是“{}”",
    },
}


def words() -> dict:
    """The words of this edition."""
    return WORDS["zh" if chinese.IS_CHINESE else "en"]


def shape(letters: Iterable[str], size: dict[str, int]) -> str:
    """A shape in letters and in numbers, as HTML: `[B, S, E]`, `[1, 1, 64]`."""
    spelled = ", ".join(f'<span data-sym="{letter}">{letter}</span>' for letter in letters)
    counted = ", ".join(f'<span data-sym="{letter}">{size[letter]}</span>' for letter in letters)
    return f"<code>[{spelled}]</code> <code>[{counted}]</code>"


def places(letters: str, size: dict[str, int]) -> tuple[list[int], int]:
    """Where each vector of a row begins, in units, and how wide a cell is."""
    if letters[-1] in "EIV":
        return [0], 1
    heads, shared = size["H"], size["H"] // size["K"]
    begins = [head * (size["D"] + GAPS[0]) + head // shared * (GAPS[1] - GAPS[0]) for head in range(heads)]
    if "K" in letters:
        return begins[::shared], 1
    return begins, size["D"] // size["T"] if letters[-1] == "T" else 1


def broadest(size: dict[str, int]) -> int:
    """The units of the longest row."""
    heads = places("BSHD", size)[0][-1] + size["D"]
    return max(heads, size["E"], size["I"], size["V"])


def drawing(step: Step, size: dict[str, int], hue: str) -> str:
    """All numbers of a step as cells of an SVG: slate above zero, brown below, stronger where larger."""
    begins, cell = places(step.letters, size)
    rows = step.numbers[0].reshape(-1, len(begins), step.numbers.shape[-1])
    strength = rows.sign() * (rows.abs() / rows.abs().max()).sqrt()  # one channel of the stream outshines the others
    height = HEIGHTS[len(rows) > 1]
    whole = f'viewBox="0 0 {broadest(size)} {height * len(rows)}" width="100%" height="{height * len(rows)}"'
    frames = "".join(
        f'<rect x="{at}" width="{rows.shape[-1] * cell}" height="{height * len(rows)}" '
        f'fill="var(--mm-panel)" stroke="var(--mm-{hue})" vector-effect="non-scaling-stroke"/>'
        for at in begins
    )
    inked = "".join(
        f'<path fill="var(--mm-{sign})" fill-opacity="{level / LEVELS:g}" d="{path}"/>'
        for sign, part in (("plus", strength), ("minus", -strength))
        for level in range(1, LEVELS + 1)
        if (path := cells((part * LEVELS).round() == level, begins, cell, height))
    )
    return f'<svg {whole} preserveAspectRatio="none" aria-hidden="true">{frames}{inked}</svg>'


def cells(chosen: Tensor, begins: list[int], width: int, height: int) -> str:
    """The path of the chosen cells of `[rows, vectors, numbers]`."""
    return "".join(
        f"M{begins[vector] + number * width} {row * height}h{width}v{height}h-{width}z"
        for row, vector, number in chosen.nonzero().tolist()
    )


def caption(step: Step) -> str:
    """What a reader should see in a row, or nothing."""
    if step.name == "weights":
        weights = step.numbers[0, :, 0]  # [H, T]
        head, position = divmod(int(weights.argmax()), weights.shape[1])
        word = world.WORDS[world.encode(STORY)[position]]
        return words()["reads"].format(word, 100 * weights.max(), head + 1)
    if step.name == "logits":
        return words()["says"].format(world.WORDS[int(step.numbers.argmax())])
    return ""


def raw(html: str) -> list[nodes.Node]:
    return [nodes.raw("", html, format="html")]


class Shapes(SphinxDirective):
    """The picture, as a table: a row for each step."""

    def run(self) -> list[nodes.Node]:
        size = sizes(CONFIG, len(world.encode(STORY)) - 1)
        rows = []
        for step in last_token(STORY, LAYER):
            hue, name = words()[step.name]
            rows.append(
                [
                    raw(f'<span style="color: var(--mm-{hue})">{name}</span>'),
                    raw(shape(step.letters, size)),
                    raw(drawing(step, size, hue) + caption(step)),
                ]
            )
        written = table(words()["titles"], rows)
        written["classes"] += ["reference", "shapes", "colwidths-given"]
        for column, share in zip(written.findall(nodes.colspec), (20, 33, 47), strict=True):
            column["colwidth"] = share
        return [written]


def name_letters(app: Sphinx, doctree: nodes.document) -> None:
    """Give the letters in the table of letters the names that they have in the picture."""
    if app.env.docname != PAGE:
        return
    letters = next(found for found in doctree.findall(nodes.table) if "shapes" not in found["classes"])
    for row in letters.findall(nodes.row):
        for literal in list(row[0].findall(nodes.literal)):
            literal["sym"] = f' data-sym="{literal.astext()}"'


def setup(app: Sphinx) -> None:
    """Register the directive, and name the letters of its page."""
    app.add_directive("shapes", Shapes)
    app.connect("doctree-read", name_letters)
