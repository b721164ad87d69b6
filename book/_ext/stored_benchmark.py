"""Sphinx extension: stored runs of the benchmarks as parts of a page.

    ```{stored-benchmark} amd_epyc
    ```

gives the machine, its limits and its picture and, folded, a table of ratios and the whole table of that run in
`benchmarks/results`.

    ```{benchmark-chart} amd_epyc intel_xeon
    ```

gives one picture of several runs: how fast each writes with the small model. No number of either is written by hand,
and a page is built again when its run is measured again.
"""

import os
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

sys.path.append(str(Path(__file__).resolve().parents[2]))  # jupyter-book does not look there

from minimind_book.pictures import inline

from benchmarks import picture, report
from benchmarks.findings import AGAINST, LIMIT, OURS, Finding, findings
from minimind_edu.plotting import Picture

BEFORE_LEAN = "packed"  # in runs that are older than lean
COLUMNS = ("notes", *OURS, BEFORE_LEAN, LIMIT)


class _OfRuns(SphinxDirective):
    """The arguments are names of stored runs, without `.json`."""

    required_arguments = 1

    def path(self, name: str) -> Path:
        """The file of a stored run."""
        path = report.RESULTS / f"{name}.json"
        if not path.is_file():
            stored = ", ".join(sorted(each.stem for each in report.RESULTS.glob("*.json")))
            raise self.error(f"no stored run {path.name}; there are {stored}")
        self.env.note_dependency(str(path))
        return path


class BenchmarkChart(_OfRuns):
    """Any number of runs, in one picture."""

    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        runs = [report.load(self.path(name)) for name in self.arguments[0].split()]
        return [nodes.raw("", inline(chart(runs).svg, ""), format="html")]


class StoredBenchmark(_OfRuns):
    """One run."""

    def run(self) -> list[nodes.Node]:
        path = self.path(self.arguments[0])
        here = Path(self.env.doc2path(self.env.docname)).parent
        file = os.path.relpath(path.with_suffix(".svg"), here)
        written = nodes.container(classes=["stored-benchmark"])
        text = StringList(markdown(report.load(path), file).splitlines(), source=str(path))
        self.state.nested_parse(text, self.content_offset, written)
        return [written]


def chart(runs: list[dict[str, Any]]) -> Picture:
    """Bars of the first decode scenario of each run, all in one picture, one panel for each machine."""
    panels = []
    for run in runs:
        first = picture.chosen(run["results"])[0]
        seconds = {name: rounds for name, rounds in first["seconds"].items() if name in ("transformers", *COLUMNS)}
        panels.append({**first, "name": run["machine"]["processor"], "seconds": seconds})
    alt = "On each machine: how many times as fast as transformers each implementation writes, and the read limit."
    return Picture(picture.figure_of(panels), alt=alt)


def markdown(run: dict[str, Any], file: str) -> str:
    """What stands on the page for this run."""
    machine, versions = run["machine"], run["versions"]
    return f"""
{machine["processor"]}, {machine["cores"]} cores, {machine["instructions"]}; \
torch {versions["torch"]}, transformers {versions["transformers"]}; {run["date"]}.

{limits(run)}

```{{image}} {file}
:alt: {machine["processor"]}: the decode rows of the table as bars, and the time of a step against the context
```

```{{dropdown}} Every comparison with transformers
{comparison(run)}
```

```{{dropdown}} The whole table, with every target
~~~text
{report.table(run)}
~~~
```
"""


def limits(run: dict[str, Any]) -> str:
    """A Markdown table of what the machine itself can do."""
    lines = [line for line in findings(run["results"]) if line.scenario == "machine"]
    values = [line.value.split(" ", 1) for line in lines]
    head = [f"{line.what}, {unit}" for line, (_, unit) in zip(lines, values, strict=True)]
    return markdown_table([head, ["---"] * len(lines), [number for number, _ in values]])


def comparison(run: dict[str, Any]) -> str:
    """A Markdown table: each work with its unit, its value with transformers, times as fast as that with the others.

    The static cache of transformers is left to the whole table: it would be one column too many for a page.
    """
    compared: dict[str, dict[str, Finding]] = {}
    values: dict[str, str] = {}
    for line in findings(run["results"]):
        if line.what == "transformers" and line.value:
            values[line.scenario] = line.value.split(" ", 1)
        elif line.against == AGAINST and line.what in COLUMNS:
            compared.setdefault(line.scenario, {})[line.what] = line
    shown = [name for name in COLUMNS if any(name in lines for lines in compared.values())]
    rows = [["work (unit)", "transformers", *(f"{name}, ×" for name in shown)], ["---"] * (len(shown) + 2)]
    for scenario, lines in compared.items():
        cells = [cell(lines[name]) if name in lines else "" for name in shown]
        value, unit = values[scenario]
        rows.append([f"{scenario.replace('->', '→')} ({unit})", value, *cells])
    return markdown_table(rows)


def markdown_table(rows: list[list[str]]) -> str:
    """The first row is the head, the second says how columns are aligned."""
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def cell(line: Finding) -> str:
    """The median, and below it the least and the largest round."""
    spread = line.spread
    between = f"{report.number(spread.low)}–{report.number(spread.high)}"
    return f"**{report.number(spread.median)}**<br>{between}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("stored-benchmark", StoredBenchmark)
    app.add_directive("benchmark-chart", BenchmarkChart)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
