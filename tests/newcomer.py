"""A figure and a chapter as somebody who carries the book on would write them: all of it, and nothing else.

`test_contributing` puts them into a copy of the project. The keys are the places that CONTRIBUTING.md names.
"""

import json
from pathlib import Path

FIGURE_FOLDER = {
    "__init__.py": '''"""Square: a side to drag, and its area."""

from traitlets import Int

from minimind_edu.web.base import Figure


class Square(Figure):
    """Drag the side of a square.

    Args:
        side: 1 to 9.
    """

    _repr_traits = ("side",)

    side = Int(4, min=1, max=9).tag(sync=True)

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        return "The area of a square is its side times itself.", [("area", str(self.side**2))]
''',
    "figure.js": """// Square: a side to drag, and its area.

import { h, svg, fill, setSize, slider } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { areaOf } from "./math.js";
import { squareWords } from "./words.js";

const UNIT = 20; // pixels

export default figure({
  words: squareWords,
  traits: ["side"],
  create({ model, words, bound }) {
    const drawing = svg("svg", { role: "img" });

    function draw() {
      const side = model.get("side");
      setSize(drawing, 9 * UNIT, 9 * UNIT, words.picture(side));
      const ones = Array.from({ length: areaOf(side) }, (_, i) => [(i % side) * UNIT, Math.floor(i / side) * UNIT]);
      const size = UNIT - 2;
      fill(
        drawing,
        ones.map(([x, y]) => svg("rect", { class: "square-area", x, y, width: size, height: size })),
      );
      return { verdict: words.area(areaOf(side)) };
    }
    return {
      stage: h("div", { class: "mm-stage" }, drawing),
      control: bound(slider, "side", { label: words.side, min: 1, max: 9, step: 1, sym: "n" }),
      draw,
    };
  },
});
""",
    "math.js": """// The area of a square.

export function areaOf(side) {
  return side * side;
}
""",
    "words.js": """// The words of the square, by language.

export const squareWords = {
  en: {
    title: "A square grows faster than its side.",
    caption: "Twice the side is four times the area.",
    more: "",
    side: "side",
    picture: (side) => `A square with a side of ${side}`,
    area: (area) => `area ${area}`,
  },
};
""",
    "words.zh.js": """// The Chinese words of words.js as of fb86620b.

export const squareWords = {
  zh: {
    title: "正方形比它的边长得快。",
    caption: "边长两倍，面积四倍。",
    more: "",
    side: "边长",
    picture: (side) => `边长为 ${side} 的正方形`,
    area: (area) => `面积 ${area}`,
  },
};
""",
    "style.css": """.square-area {
  fill: var(--mm-q);
}
""",
}

FIGURE_TEST = '''"""Square: the area of its summary is the one that its module computes."""

from minimind_edu.figures import Square


def test_the_area_is_the_side_times_itself(node):
    assert Square(side=3)._summary()[1] == [("area", "9")]
    assert node.call("figures/square/math", "areaOf", [3]) == 9
'''

CHECKS = '''"""Exercises on squares."""

from minimind_edu.checks.exercise import Case, Exercise, Mistake

check_area = Exercise(
    "Is `attempt(side)` the area of a square?",
    answer=lambda side: side * side,
    cases=(Case("a side of 3", (3.0,)), Case("a side of 2.5", (2.5,))),
    mistakes=(Mistake(lambda side: 4 * side, "this is the way around the square"),),
)
'''

CHECKS_TEST = '''"""checks.squares: a right answer in other words passes."""

from minimind_edu import checks


def test_a_right_answer_passes():
    assert checks.check_area(lambda side: side**2) is True
'''

STORY = "../book/live.md#story=Mia_is_in_the_hall._where_is_Mia?_in_the"
TEXTS = {
    "predict": """> **Predict.** The side of a square doubles. What happens to its area?
>
> - It doubles
> - It becomes four times as large
>
> <details><summary>Answer</summary>
>
> **It becomes four times as large.** Each row holds twice as much, and there are twice as many rows.
>
> - *It doubles*: a side that is twice as long does that to each row, and there are more rows.
>
> </details>""",
    "aims": "**After this chapter you can** compute the area of a square.\n\n**You need** the product of two numbers.",
    "area": "## 1. The area of a square\n\nA square of side $n$ has $n$ rows of $n$.",
    "deeper": "## Going deeper\n\nA cube has $n$ such squares.",
    "mistakes": '## Common mistakes\n\n*"Twice the side is twice the area."*\n\n**In fact** it is four times the area.',
    "exercises": "## Exercises\n\nReplace the dots and run the cell.",
    "quiz-text": "## Quiz",
    "short": "## In short\n\n- The area of a square is its side times itself.\n\n## Where this lives in MiniMind\n\n"
    f"Scores of all words with all words are such a square: [see it at work]({STORY}).\n\n## Next\n\nYour chapter.",
}


def notebook(number: int) -> str:
    """The chapter before it was ever run: no ids of installation, no outputs."""
    cells = []

    def cell(kind: str, name: str, source: str, *tags: str) -> None:
        metadata = {"tags": list(tags)} if tags else {}
        code = {"execution_count": None, "outputs": []} if kind == "code" else {}
        cells.append({"cell_type": kind, "id": name, "metadata": metadata, "source": source} | code)

    def text(name: str) -> None:
        cell("markdown", name, TEXTS[name])

    cell("markdown", "title", f"# {number} · Squares\n\nHow fast does a square grow when its side does?")
    for name in ("predict", "aims", "area"):
        text(name)
    for side in (1, 2, 3):
        cell("code", f"side-{side}", f"print({side} * {side})", "keep")
    cell("code", "figure", "from minimind_edu.figures import Square\n\nSquare(side=5)")
    for name in ("deeper", "mistakes", "exercises"):
        text(name)
    cell(
        "code",
        "exercise",
        "from minimind_edu import checks\n\n\ndef my_area(side): ...\n\n\nchecks.check_area(my_area)",
    )
    for count in range(1, 5):
        name = f"area_solution_{count}"
        solution = f"def {name}(side):\n    return side * side\n\n\nchecks.check_area({name})"
        cell("code", f"solution-{count}", f"# @title Solution {count}\n{solution}", "hide-cell")
    text("quiz-text")
    answers = '"Two by two?", ("2", "That is the side."), ("4", "Two rows of two.", True), ("8", "The way around.")'
    cell("code", "quiz", f"from minimind_edu.figures import Quiz, choice\n\nQuiz([choice({answers})])", "hide-input")
    text("short")
    own = {"opening": ["Square", {"side": 3}], "place": "model", "teaches": [], "symbols": ["n"]}
    return json.dumps({"cells": cells, "metadata": {"minimind": own}, "nbformat": 4, "nbformat_minor": 5})


def write_a_figure(project: Path) -> None:
    """The places of a new figure but for the chapter that shows it."""
    folder = project / "src" / "minimind_edu" / "figures" / "square"
    folder.mkdir()
    for name, source in FIGURE_FOLDER.items():
        (folder / name).write_text(source, encoding="utf-8")
    (project / "tests" / "figures" / "test_figure_square.py").write_text(FIGURE_TEST, encoding="utf-8")


def write_a_chapter(project: Path, before: str) -> str:
    """The places of a new chapter after the page `before`; returns its name, such as 16_squares."""
    number = int(Path(before).name[:2]) + 1
    name = f"{number:02}_squares"
    (project / "chapters" / f"{name}.ipynb").write_text(notebook(number), encoding="utf-8")
    (project / "src" / "minimind_edu" / "checks" / "squares.py").write_text(CHECKS, encoding="utf-8")
    (project / "tests" / "checks" / "test_checks_squares.py").write_text(CHECKS_TEST, encoding="utf-8")
    for path, old, new in (
        (project / "_toc.yml", f"- file: {before}\n", f"- file: {before}\n      - file: chapters/{name}\n"),
        (project / f"{before}.ipynb", '"## Next\\n",\n    "\\n",\n    "', f"[Chapter {number}]({name}.ipynb) or "),
    ):
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path.name} has another form"
        path.write_text(text.replace(old, new if path.suffix == ".yml" else old + new), encoding="utf-8")
    return name
