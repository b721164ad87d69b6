"""The directive that puts a stored run of the benchmarks on a page of the book."""

import re
from pathlib import Path

import pytest
from sphinx.cmd.build import build_main
from stored_benchmark import cell, chart, comparison

from benchmarks import report
from benchmarks.findings import Finding, findings

PAGE = Path(__file__).resolve().parents[1] / "book" / "side_by_side.md"
# those that the book shows; a reader's own runs lie in the same folder
RUNS = re.findall(r"\{stored-benchmark\} (\w+)", PAGE.read_text(encoding="utf-8"))


def stored(name):
    return report.load(report.RESULTS / f"{name}.json")


@pytest.fixture
def build(tmp_path):
    """Build one page of this text; gives the exit status and the page."""

    def builds(text):
        source, out = tmp_path / "source", tmp_path / "out"
        source.mkdir()
        (source / "conf.py").write_text("extensions = ['myst_parser', 'minimind_book.folding', 'stored_benchmark']\n")
        (source / "index.md").write_text(text, encoding="utf-8")
        status = build_main(["-q", "-W", "-b", "html", str(source), str(out)])
        page = out / "index.html"
        return status, page.read_text(encoding="utf-8") if page.exists() else ""

    return builds


def test_a_cell_has_the_median_and_both_ends():
    line = Finding("decode", "plain", rounds=(1.0, 1.25, 1.1), against="x transformers")
    assert cell(line) == "**1.10**<br>1.00–1.25"


@pytest.mark.parametrize("name", RUNS)
def test_the_table_has_every_comparison_with_transformers(name):
    run = stored(name)
    table = comparison(run).splitlines()
    heads = [head.strip() for head in table[0].split("|")[1:-1]]
    rows = {}
    for line in table[2:]:
        cells = [text.strip() for text in line.split("|")[1:-1]]
        assert len(cells) == len(heads)
        rows[cells[0]] = dict(zip(heads, cells, strict=True))
    compared = [
        line
        for line in findings(run["results"])
        if line.against == "x transformers" and line.what != "transformers static"
    ]
    assert len(compared) > 20
    for line in compared:
        [row] = [row for name, row in rows.items() if name.startswith(line.scenario.replace("->", "→") + " (")]
        assert row[f"{line.what}, ×"].startswith(f"**{report.number(line.spread.median)}**<br>")
    assert sum(bool(text) for row in rows.values() for text in row.values()) == (
        len(compared) + 2 * len(rows)  # and the name and the speed of transformers in each row
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_page_shows_a_run_with_its_picture_and_its_whole_table(build, name):
    status, page = build(f"# A run\n\n```{{stored-benchmark}} {name}\n```\n")
    run = stored(name)
    assert status == 0
    assert page.count("<table") == 2 and f"_images/{name}.svg" in page
    assert run["machine"]["processor"] in page and run["date"] in page
    limits = [found["value"] for found in run["findings"] if found["scenario"] == "machine"]
    assert len(limits) == 4 and all(f"<p>{value.split()[0]}</p>" in page for value in limits)
    assert f"{sum(f['reached'] is True for f in run['findings'])} of " in page


def test_one_chart_shows_several_runs(build):
    status, page = build(f"# Runs\n\n```{{benchmark-chart}} {' '.join(RUNS)}\n```\n")
    assert status == 0 and page.count("<svg") == 1
    runs = [stored(name) for name in RUNS]
    assert all(run["machine"]["processor"] in page for run in runs)
    assert "transformers static" not in page and chart(runs).svg == chart(runs).svg


def spread(name, what, against="x transformers", scenario="decode, small, 32 -> 288, batch 1"):
    [line] = [
        line
        for line in stored(name)["findings"]
        if (line["scenario"], line["what"], line["against"]) == (scenario, what, against)
    ]
    return line["spread"]["median"]


def test_the_numbers_in_the_text_are_those_of_the_runs():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    fast = [f"{spread(name, 'compiled'):.1f}" for name in RUNS]
    share = [f"{spread(name, 'compiled', 'of the read limit'):.0%}".replace("%", " %") for name in RUNS]
    assert "{} times as fast as transformers on the EPYC and {} times on the Xeon".format(*fast) in text
    assert "{} and {} of what reading its bytes allows".format(*share) in text
    plain, packed = (f"{spread('amd_epyc', what, 'of the read limit'):.0%}"[:-1] for what in ("plain", "packed"))
    assert f"from {plain} % of the read limit to {packed} %" in text
    compared = [line for name in RUNS for line in stored(name)["findings"] if line["against"] == "x transformers"]
    ours = [line for line in compared if line["what"] in ("plain", "packed", "compiled")]
    eight = [line["spread"]["median"] for line in ours if line["scenario"].endswith("batch 8")]
    assert f"between {min(eight):.2f} and {max(eight):.2f} times" in text


def test_a_run_that_is_not_stored_is_refused_with_the_names_of_those_that_are(build, capsys):
    status, _ = build("# A run\n\n```{stored-benchmark} abacus\n```\n")
    told = capsys.readouterr().err
    assert status != 0 and "no stored run abacus.json" in told
    assert all(name in told for name in RUNS)
