"""Sphinx extension: a stored run of the benchmarks as a part of a page.

    ```{stored-benchmark} amd_epyc
    ```

gives the machine, its limits, a table of ratios, the picture and, folded, the whole table of that run in
`benchmarks/results`. No number of it is written by hand, and a page is built again when its run is measured again.
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

from benchmarks import report
from benchmarks.findings import AGAINST, LIMIT, OURS, Finding, findings

COLUMNS = ("notes", *OURS, LIMIT)


class StoredBenchmark(SphinxDirective):
    """The one argument is the name of a stored run, without `.json`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = report.RESULTS / f"{self.arguments[0]}.json"
        if not path.is_file():
            stored = ", ".join(sorted(each.stem for each in report.RESULTS.glob("*.json")))
            raise self.error(f"no stored run {path.name}; there are {stored}")
        self.env.note_dependency(str(path))
        here = Path(self.env.doc2path(self.env.docname)).parent
        picture = os.path.relpath(path.with_suffix(".svg"), here)
        written = nodes.container(classes=["stored-benchmark"])
        text = StringList(markdown(report.load(path), picture).splitlines(), source=str(path))
        self.state.nested_parse(text, self.content_offset, written)
        return [written]


def markdown(run: dict[str, Any], picture: str) -> str:
    """What stands on the page for this run."""
    machine, versions = run["machine"], run["versions"]
    return f"""
{machine["processor"]}, {machine["cores"]} cores, {machine["instructions"]}; \
torch {versions["torch"]}, transformers {versions["transformers"]}; {run["date"]}.

{limits(run)}

{comparison(run)}

```{{image}} {picture}
:alt: {machine["processor"]}: the decode rows of the table as bars, and the time of a step against the context
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
    return markdown_table([[line.what for line in lines], ["---"] * len(lines), [line.value for line in lines]])


def comparison(run: dict[str, Any]) -> str:
    """A Markdown table: each work in its unit with transformers, and times as fast as that with the others.

    The static cache of transformers is left to the whole table: it would be one column too many for a page.
    """
    compared: dict[str, dict[str, Finding]] = {}
    values: dict[str, str] = {}
    for line in findings(run["results"]):
        if line.what == "transformers" and line.value:
            values[line.scenario] = line.value
        elif line.against == AGAINST and line.what in COLUMNS:
            compared.setdefault(line.scenario, {})[line.what] = line
    rows = [["", "transformers", *COLUMNS], ["---"] * (len(COLUMNS) + 2)]
    for scenario, lines in compared.items():
        cells = [cell(lines[name]) if name in lines else "" for name in COLUMNS]
        rows.append([scenario.replace("->", "→"), values[scenario], *cells])
    return markdown_table(rows)


def markdown_table(rows: list[list[str]]) -> str:
    """The first row is the head, the second says how columns are aligned."""
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def cell(line: Finding) -> str:
    """The median, and below it the least and the largest round."""
    spread = line.spread
    between = f"{report.number(spread.low)}–{report.number(spread.high)}"
    return f"**{report.number(spread.median)}** ×<br>{between}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("stored-benchmark", StoredBenchmark)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
