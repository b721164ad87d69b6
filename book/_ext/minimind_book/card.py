"""The card of the living model on a page: exam, recipe and a picture of how it learned, all from living/card.json."""

from collections.abc import Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from minimind_book import chinese
from minimind_book.pictures import inline
from minimind_edu.measure.plotting import Picture, plot_lines
from minimind_edu.trained import living

# The words of the tables in both languages; the questions in the order of the rows.
WORDS: dict[str, dict[str, Any]] = {
    "en": {
        "asks": {
            "where": "where is Mia?",
            "where object": "where is the ball?",
            "who": "who has the ball?",
            "recall": "a sentence that repeats where somebody is",
            "people": "where is everybody? (each entry)",
            "objects": "who has what? (each entry)",
            "translation": "the sentence before, in the other language",
        },
        "percent": "{:.1f} %",
        "to": "{} to {}",
        "question": "Question",
        "stored": "Stored, in int8",
        "twin": "Twin, in int8",
        "seed": "Seed {}",
        "kl": "KL from the world, nats per word",
        "recipe": {
            "Parameters": "{parameters:,}",
            "Each file": "{bytes:,} bytes: int8 rows, a float32 scale for each",
            "Seeds trained": "{seeds}; stored: {stored}, its twin: {twin}",
            "Learned from": "{steps:,} batches of {batch_size} stories of {length} words",
            "Optimizer": "AdamW, learning rate {learning_rate}, warm-up {warmup} steps, cosine",
            "Initialization": "normal, standard deviation {initializer_range}",
            "Time": "{minutes} minutes of one processor core for each seed",
        },
    },
    "zh": {
        "asks": {
            "where": "where is Mia?（Mia 在哪里）",
            "where object": "where is the ball?（球在哪里）",
            "who": "who has the ball?（球在谁手里）",
            "recall": "把某人在哪里再说一遍的句子",
            "people": "每个人在哪里？（逐项计）",
            "objects": "谁有什么？（逐项计）",
            "translation": "前一句话，换成另一种语言",
        },
        "percent": "{:.1f}%",
        "to": "{} 到 {}",
        "question": "问题",
        "stored": "存下的，int8",
        "twin": "孪生模型，int8",
        "seed": "种子 {}",
        "kl": "与这个世界的 KL 散度，nat 每词",
        "recipe": {
            "参数": "{parameters:,} 个",
            "每个文件": "{bytes:,} 字节：int8 的行，每行一个 float32 的缩放因子",
            "训练过的种子": "{seeds}；存下的：{stored}，它的孪生模型：{twin}",
            "读过": "{steps:,} 批，每批 {batch_size} 个故事，每个 {length} 个词",
            "优化器": "AdamW，学习率 {learning_rate}，预热 {warmup} 步，余弦",
            "初始化": "正态分布，标准差 {initializer_range}",
            "时间": "每个种子用一个处理器核心 {minutes} 分钟",
        },
    },
}


def words() -> dict[str, Any]:
    """The words of this edition."""
    return WORDS["zh" if chinese.IS_CHINESE else "en"]


def percent(value: float) -> str:
    return words()["percent"].format(100 * value)


def spread(values: list[float], show: Any) -> str:
    """The least and the greatest of some values, or the one there is."""
    least, greatest = show(min(values)), show(max(values))
    return least if least == greatest else words()["to"].format(least, greatest)


def table(titles: list[str], rows: Sequence[Sequence[str | list[nodes.Node]]]) -> nodes.table:
    """A table; a cell is text, or nodes of a paragraph."""

    def row(cells: Sequence[str | list[nodes.Node]]) -> nodes.row:
        parts = ([nodes.Text(cell)] if isinstance(cell, str) else cell for cell in cells)
        return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *part)) for part in parts))

    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in titles), cols=len(titles))
    group += [nodes.thead("", row(titles)), nodes.tbody("", *map(row, rows))]
    return nodes.table("", group)


def exam_titles(card: dict[str, Any]) -> list[str]:
    """A column for the stored weights, for their twin's, and one for each seed as it was trained."""
    labels = words()
    seeds = (labels["seed"].format(run["seed"]) for run in card["runs"])
    return [labels["question"], labels["stored"], labels["twin"], *seeds]


def exam_rows(card: dict[str, Any], twin: dict[str, Any]) -> list[list[str]]:
    """A row for each kind of question, and one for the distance from the world."""
    exams, labels = [card["int8"], twin["int8"], *card["runs"]], words()
    rows = [[asks, *(percent(exam["accuracy"][kind]) for exam in exams)] for kind, asks in labels["asks"].items()]
    return [*rows, [labels["kl"], *(f"{exam['kl']:.3f}" for exam in exams)]]


def recipe_rows(card: dict[str, Any], twin: dict[str, Any]) -> list[list[str]]:
    """What made the weights."""
    values = card | card["recipe"] | {"twin": twin["stored"]}
    values["seeds"] = ", ".join(str(run["seed"]) for run in card["runs"])
    values["minutes"] = spread([run["cpu_seconds"] / 60 for run in card["runs"]], "{:.0f}".format)
    return [[what, text.format(**values)] for what, text in words()["recipe"].items()]


def learning(card: dict[str, Any]) -> Picture:
    """How often each seed knew where somebody is, at every glance during its training."""
    glances = {f"seed {run['seed']}": run["glances"] for run in card["runs"]}
    curves = {name: [100 * glance["accuracy"]["where"] for glance in seen] for name, seen in glances.items()}
    steps = [glance["step"] for glance in card["runs"][0]["glances"]]
    shares = "; ".join(f"{name}: {', '.join(f'{value:.0f}' for value in curve)}" for name, curve in curves.items())
    alt = (
        f"Right answers to where is Mia?, in percent, after {', '.join(f'{step:,}' for step in steps)} steps. {shares}."
    )
    return plot_lines(steps, curves, "training steps", "right answers, %", alt=alt)


class CardPart(Directive):
    """`{living-card} exam`, `{living-card} learning` or `{living-card} recipe`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the table or the picture."""
        card, twin = living.card(), living.card("twin")
        if self.arguments[0] == "recipe":
            return [table(["", ""], recipe_rows(card, twin))]
        if self.arguments[0] == "exam":
            return [table(exam_titles(card), exam_rows(card, twin))]
        if self.arguments[0] == "learning":
            drawn = inline(learning(card).svg, "")
            return [nodes.raw("", chinese.in_markup(drawn) if chinese.IS_CHINESE else drawn, format="html")]
        raise self.error(f"the card has an exam, a learning and a recipe, not {self.arguments[0]!r}")


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("living-card", CardPart)
