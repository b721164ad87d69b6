"""The card of the living model on a page: its exam as a table, its recipe as a list, both from living/card.json."""

from collections.abc import Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from minimind_edu import living

ASKS = {
    "where": "where is Mia?",
    "where object": "where is the ball?",
    "who": "who has the ball?",
    "recall": "a sentence that repeats where somebody is",
    "people": "where is everybody? (each entry)",
    "objects": "who has what? (each entry)",
    "translation": "the sentence before, in the other language",
}


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def spread(values: list[float], show: Any) -> str:
    """The least and the greatest of some values, or the one there is."""
    least, greatest = show(min(values)), show(max(values))
    return least if least == greatest else f"{least} to {greatest}"


def table(titles: list[str], rows: Sequence[Sequence[str | list[nodes.Node]]]) -> nodes.table:
    """A table; a cell is text, or nodes of a paragraph."""

    def row(cells: Sequence[str | list[nodes.Node]]) -> nodes.row:
        parts = ([nodes.Text(cell)] if isinstance(cell, str) else cell for cell in cells)
        return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *part)) for part in parts))

    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in titles), cols=len(titles))
    group += [nodes.thead("", row(titles)), nodes.tbody("", *map(row, rows))]
    return nodes.table("", group)


def exam_titles(card: dict[str, Any]) -> list[str]:
    """A column for the stored weights, and one for each seed as it was trained."""
    return ["Question", "Stored, in int8", *(f"Seed {run['seed']}" for run in card["runs"])]


def exam_rows(card: dict[str, Any]) -> list[list[str]]:
    """A row for each kind of question, and one for the distance from the world."""
    exams = [card["int8"], *card["runs"]]
    rows = [[asks, *(percent(one["accuracy"][kind]) for one in exams)] for kind, asks in ASKS.items()]
    return [*rows, ["KL from the world, nats per word", *(f"{one['kl']:.3f}" for one in exams)]]


def recipe_rows(card: dict[str, Any]) -> list[list[str]]:
    """What made the weights."""
    recipe, seconds = card["recipe"], [run["cpu_seconds"] / 60 for run in card["runs"]]
    return [
        ["Parameters", f"{card['parameters']:,}"],
        ["File", f"{card['bytes']:,} bytes: int8 rows, a float32 scale for each"],
        ["Seeds trained", ", ".join(str(run["seed"]) for run in card["runs"]) + f"; stored: {card['stored']}"],
        ["Learned from", f"{recipe['steps']:,} batches of {recipe['batch_size']} stories of {recipe['length']} words"],
        ["Optimizer", f"AdamW, learning rate {recipe['learning_rate']}, warm-up {recipe['warmup']} steps, cosine"],
        ["Initialization", f"normal, standard deviation {card['initializer_range']}"],
        ["Time", spread(seconds, lambda value: f"{value:.0f}") + " minutes of one processor core for each seed"],
    ]


class CardTable(Directive):
    """`{living-card} exam` or `{living-card} recipe`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        card = living.card()
        if self.arguments[0] == "recipe":
            return [table(["", ""], recipe_rows(card))]
        if self.arguments[0] == "exam":
            return [table(exam_titles(card), exam_rows(card))]
        raise self.error(f"the card has an exam and a recipe, not {self.arguments[0]!r}")


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("living-card", CardTable)
