"""Sphinx extension: stored runs of the benchmarks, those in `benchmarks/results`, as parts of a page.

    ```{byte-chart} engines
    ```

gives tokens per second of everybody and the limit of reading, for a run with engines,

    ```{engine-tables} engines
    ```

its machine, one table of all its works (or, if it has several threads, of what they gain) and, folded, a table of each
with the spread of the rounds, and

    {measured}`engines small: int8 / compiled`

a number inside a sentence: how many times as fast as the second the first is, with one text, as the median of the
rounds; `limit` stands for reading the bytes of the first. A third name, as in `... / compiled, batch 8`, is another
scenario, `{measured}`engines_two small, threads: int8 / alone`` what a run's threads gain over one, and
`{measured}`engines quality: int8`` is the divergence. No number is written by hand, and a page is built
again when its run is measured again.
"""

import re
import statistics
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

sys.path.append(str(Path(__file__).resolve().parents[2]))  # jupyter-book does not look there

from minimind_book import chinese
from minimind_book.pictures import inline

from benchmarks import report
from benchmarks.byte_chart import byte_chart
from benchmarks.findings import LIMIT, Finding
from benchmarks.timing import ratios


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


class ByteChart(_OfRuns):
    """One run that was measured with engines."""

    def run(self) -> list[nodes.Node]:
        chart = inline(byte_chart(report.load(self.path(self.arguments[0]))).svg, "")
        return [nodes.raw("", chinese.in_markup(chart) if chinese.IS_CHINESE else chart, format="html")]


class EngineTables(_OfRuns):
    """One run: machine and threads, and folded all its tables of engines."""

    def run(self) -> list[nodes.Node]:
        path = self.path(self.arguments[0])
        written = nodes.container(classes=["stored-benchmark"])
        text = StringList(engine_tables(report.load(path)).splitlines(), source=str(path))
        self.state.nested_parse(text, self.content_offset, written)
        return [written]


class Measured(SphinxRole):
    """A number of a stored run, as text."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        run, _, asked = self.text.partition(" ")
        path = report.RESULTS / f"{run}.json"
        try:
            text = measured(report.load(path), asked)
        except (OSError, ValueError) as error:
            return [], [self.inliner.reporter.error(f"measured `{self.text}`: {error}", line=self.lineno)]
        self.env.note_dependency(str(path))
        return [nodes.Text(text)], []


MEASURED = re.compile(r"(?P<size>\w+)(, (?P<what>[^:]+))?: (?P<who>[^/]+?)( / (?P<whom>.+))?")


def measured(run: dict[str, Any], asked: str) -> str:
    """`small: int8 / compiled` is a ratio of speeds, `quality: int8` a divergence, `base, batch 8: ...` another work.

    Raises:
        ValueError: if the run holds nothing of the kind.
    """
    found = MEASURED.fullmatch(asked)
    if not found:
        raise ValueError("ask for 'size: one / another', 'size, batch 8: one / another' or 'quality: one'")
    size, what, who, whom = (found[name] for name in ("size", "what", "who", "whom"))
    writes = ("engines", "decode")  # with engines and without
    works = {"prefill": ("engines' prefill",), "threads": ("engines' threads",)}
    kinds = {"quality": ("engines' quality",)}.get(size, works.get(what, writes))
    batch = int(what.split()[1]) if what and what.startswith("batch ") else 1
    for result in run["results"]:
        if result["kind"] == "engines' quality" and result["kind"] in kinds and who in result["quality"]:
            kl = result["quality"][who]["kl"]
            return f"{kl:.4f}" if kl >= 1e-4 else chinese.in_language("less than 0.0001")
        if result["kind"] in kinds and (result["size"], result.get("batch", 1)) == (size, batch):
            return _ratio(result, who, whom)
    raise ValueError(f"the stored run has no {kinds[0]} of {size}, batch {batch}")


def _ratio(result: dict[str, Any], who: str, whom: str) -> str:
    seconds = result["seconds"]
    if whom == "alone" and "alone" in result:
        seconds = {who: seconds[who], whom: result["alone"][who]}
    if unknown := [name for name in (who, whom) if name not in (*seconds, "limit")]:
        raise ValueError(f"there is no {unknown[0]!r}; there are {', '.join(seconds)}")
    if whom == "limit":
        limit = seconds.get(LIMIT) or result["limits"][f"{result['bytes_per_weight'][who]:g} bytes"]
        return percent(statistics.median(ratios(limit, seconds[who])), 0)
    ratio = statistics.median(ratios(seconds[whom], seconds[who]))
    return f"{ratio:.1f}" if ratio >= 1.95 else f"{ratio:.2f}"


def percent(share: float, digits: int) -> str:
    """A share as this edition writes it."""
    return f"{share:.{digits}%}".replace("%", "%" if chinese.IS_CHINESE else " %")


def engine_tables(run: dict[str, Any]) -> str:
    """Machine and threads, who was left out, and folded a table of each work and of the quality."""
    machine, versions = run["machine"], run["versions"]
    threads = run["settings"]["threads"]
    results = [result for result in run["results"] if result["kind"].startswith("engines")]
    others = {name: version for result in results for name, version in result["versions"].items()}
    missing = {sentence for result in results for sentence in result["missing"].values()}
    named = {f"{name.split()[0]} {version}" for name, version in others.items()}
    words = [
        f"{machine['processor']}, {machine['cores']} cores, {machine['instructions']}; "
        f"{threads} thread{'s' * (threads > 1)}; {run['settings']['clock']}; {run['date']}"
        f"{', a quick run' * run['settings']['quick']}.",
        f"torch {versions['torch']}, transformers {versions['transformers']}, {', '.join(sorted(named))}.",
        *(f"Left out: {sentence}" for sentence in sorted(missing)),
    ]
    gained = [result for result in results if result["kind"] == "engines' threads"]
    tables = [(title(result), engine_table(result)) for result in results if result not in gained]
    if gained:  # what is new in such a run stands in the open
        tables.insert(0, ("Everybody", overview(results)))
    sentences = map(chinese.in_language, words)
    shown = gains(gained) if gained else overview(results)
    return "\n\n".join([*sentences, shown, *(folded(heading, table) for heading, table in tables)])


WORKS = {1: "one text", 8: "8 texts"}


def overview(results: list[dict[str, Any]]) -> str:
    """One Markdown table: times as fast as our compiled step with one text or several, the fastest first."""
    works = [result for result in results if result["kind"] == "engines"]
    quality = next((result["quality"] for result in results if result["kind"] == "engines' quality"), {})
    rows = [["", "bytes per weight", *(f"{r['size']}, {WORKS[r['batch']]}" for r in works), "KL"]]
    rows.append(["---"] * len(rows[0]))
    sizes = {name: size for result in works for name, size in result["bytes_per_weight"].items()}
    for name in sorted(sizes, key=lambda name: statistics.median(works[0]["seconds"].get(name, [float("inf")]))):
        cells = [_ratio(r, name, "compiled") if name in r["seconds"] else "" for r in works]
        kl = f"{abs(quality[name]['kl']):.1g}" if name in quality else ""
        rows.append([name, f"{sizes[name]:g}", *(f"× {ratio}" if ratio else "" for ratio in cells), kl])
    return markdown_table(rows)


def gains(results: list[dict[str, Any]]) -> str:
    """One Markdown table: how many times as fast as with one thread, of each size the median and both ends."""
    rows = [[f"{results[0]['threads']} threads against one", *(r["size"] for r in results)]]
    rows.append(["---"] * len(rows[0]))
    for name in results[0]["seconds"]:
        spreads = [Finding("", name, rounds=tuple(ratios(r["alone"][name], r["seconds"][name]))) for r in results]
        rows.append([name, *map(cell, spreads)])
    return markdown_table(rows)


def folded(heading: str, text: str) -> str:
    """Markdown behind a line."""
    heading = chinese.in_language(heading)
    return f'<details class="words"><summary><span class="what">{heading}</span></summary>\n\n{text}\n\n</details>'


def title(result: dict[str, Any]) -> str:
    kind, size = result["kind"], result["size"].capitalize()
    if kind == "engines' quality":
        return "What rounding does to the trained model"
    if kind == "engines' prefill":
        return f"{size}, reading {result['prompt']} tokens"
    texts = "one text" if result["batch"] == 1 else f"{result['batch']} texts"
    return f"{size}, {texts} of {result['prompt']} tokens, {result['new']} more"


def engine_table(result: dict[str, Any]) -> str:
    """Markdown: the fastest, or the nearest to the unrounded model, first."""
    if result["kind"] == "engines' quality":
        by_kl = sorted(result["quality"].items(), key=lambda item: abs(item[1]["kl"]))
        rows = [["", "KL, nats per word", "loss, nats per word", "same choice"], ["---"] * 4]
        for name, facts in by_kl:
            rows.append([name, f"{facts['kl']:.2g}", f"{facts['loss']:.4f}", percent(facts["same_choice"], 1)])
        return markdown_table(rows)
    seconds = result["seconds"]
    first = "compiled" if "compiled" in seconds else "transformers"
    rows = [["", "tokens/s", f"× {first}"]]
    sizes, tokens = result.get("bytes_per_weight", {}), result.get("batch", result["prompt"])
    for name in sorted(seconds, key=lambda name: statistics.median(seconds[name])):
        against = Finding("", name, rounds=tuple(ratios(seconds[first], seconds[name])))
        rows.append([name, f"{tokens / statistics.median(seconds[name]):.0f}", cell(against)])
    if sizes:  # of decoding, which waits for the weights to be read
        more = [("bytes per weight", "of the limit")]
        more += [(f"{sizes[name]:g}", _ratio(result, name, "limit")) for name, *_ in rows[1:]]
        rows = [[name, size, *others, share] for (name, *others), (size, share) in zip(rows, more, strict=True)]
    return markdown_table([rows[0], ["---"] * len(rows[0]), *rows[1:]])


def markdown_table(rows: list[list[str]]) -> str:
    """The first row is the head, the second says how columns are aligned."""
    head, *others = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in [list(map(chinese.in_language, head)), *others])


def cell(line: Finding) -> str:
    """The median, and below it the least and the largest round."""
    spread = line.spread
    between = f"{report.number(spread.low)}–{report.number(spread.high)}"
    return f"**{report.number(spread.median)}**<br>{between}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("byte-chart", ByteChart)
    app.add_directive("engine-tables", EngineTables)
    app.add_role("measured", Measured())
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
