"""The directive that puts a stored run of the benchmarks on a page of the book."""

import re
import statistics
from functools import partial
from pathlib import Path

import pytest
import torch
from minimind_book import chinese
from sphinx.cmd.build import build_main
from stored_benchmark import cell, engine_table, engine_tables, measured, overview

from benchmarks import report
from benchmarks.among_engines import compared
from benchmarks.bench import MODELS
from benchmarks.byte_chart import byte_chart, figure_of
from benchmarks.findings import Finding, findings
from benchmarks.timing import ratios
from minimind_edu.measure import plotting
from minimind_edu.trained.living import living_model, story_batches

PAGE = Path(__file__).resolve().parents[2] / "book" / "side_by_side.md"
# those that the book shows; a reader's own runs lie in the same folder
RUNS = re.findall(r"\{engine-tables\} (\w+)", PAGE.read_text(encoding="utf-8"))


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


def test_a_run_that_is_not_stored_is_refused_with_the_names_of_those_that_are(build, capsys):
    status, _ = build("# A run\n\n```{engine-tables} abacus\n```\n")
    told = capsys.readouterr().err
    assert status != 0 and "no stored run abacus.json" in told
    assert all(name in told for name in RUNS)


# A run with engines


def engines_result(**changes):
    seconds = {
        "transformers": [2.0, 4.0], "compiled": [1.0, 2.0], "int8": [0.5, 0.8], "bfloat16": [0.6, 1.0],
        "llama.cpp F32": [1.1, 1.9], "llama.cpp Q8_0": [0.3, 0.6], "onnxruntime int4": [0.25, 0.4],
    }  # fmt: skip
    sizes = dict(zip(seconds, (4, 4, 1, 2, 4, 1.0625, 0.625), strict=True))
    limits = {f"{size:g} bytes": [0.2 * size, 0.4 * size] for size in sorted(set(sizes.values()), reverse=True)}
    return {
        "kind": "engines", "name": "engines, small", "size": "small", "batch": 1, "prompt": 32, "new": 48,
        "seconds": seconds, "limits": limits, "bytes_per_weight": sizes, "same_tokens": dict.fromkeys(seconds, 1.0),
        "missing": {"ctranslate2 int8": "ctranslate2 int8 failed: No module named ctranslate2"},
        "versions": {"llama.cpp F32": "1.2", "llama.cpp Q8_0": "1.2", "onnxruntime int4": "3.4"}, **changes,
    }  # fmt: skip


def quality_result():
    facts = {"plain": (0.0, 1.0), "int8": (2e-5, 0.99), "onnxruntime int4": (0.31, 0.8)}
    quality = {name: {"kl": kl, "loss": 0.6, "same_choice": same} for name, (kl, same) in facts.items()}
    return {
        "kind": "engines' quality", "name": "quality", "size": "living", "quality": quality,
        "missing": {}, "versions": {},
    }  # fmt: skip


def engines_run(*results):
    machine = {"processor": "Abacus", "cores": 2, "instructions": "AVX2"}
    settings = {"threads": 1, "clock": "CPU time", "quick": False, "dtype": "float32"}
    versions = {"torch": "2", "transformers": "5"}
    return {
        "machine": machine, "settings": settings, "versions": versions, "date": "2026-01-01",
        "results": results or [engines_result(), engines_result(batch=8), quality_result()],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("small: int8 / compiled", "2.2"),
        ("small: compiled / llama.cpp F32", "1.02"),
        ("small: int8 / limit", "45 %"),
        ("small, batch 8: llama.cpp Q8_0 / compiled", "3.3"),
        ("quality: onnxruntime int4", "0.3100"),
        ("quality: int8", "less than 0.0001"),
    ],
)
def test_a_sentence_can_name_a_number_of_the_run(asked, text):
    assert measured(engines_run(), asked) == text


def threads_result(size="small"):
    seconds = {"int8": [0.5, 0.8], "llama.cpp Q8_0": [0.4, 0.6]}
    return {
        "kind": "engines' threads", "name": "threads", "size": size, "prompt": 32, "new": 8, "threads": 2,
        "seconds": seconds, "alone": {"int8": [0.75, 1.6], "llama.cpp Q8_0": [0.6, 0.6]}, "missing": {}, "versions": {},
    }  # fmt: skip


def test_what_more_threads_gain_is_a_table_and_a_number_of_a_sentence():
    run = engines_run(engines_result(), threads_result(), threads_result("base"), quality_result())
    assert measured(run, "base, threads: int8 / alone") == "1.75"
    text = engine_tables(run)
    assert "| 2 threads against one | small | base |" in text
    assert "| int8 | **1.75**<br>1.50–2.00 | **1.75**<br>1.50–2.00 |" in text
    with pytest.raises(ValueError, match="no 'alone'"):
        measured(run, "small: int8 / alone")


def test_a_run_without_engines_has_such_numbers_too():
    seconds = {"transformers": [4.0, 8.0], "compiled": [2.0, 2.0], "read limit": [1.0, 1.5]}
    run = engines_run({"kind": "decode", "size": "small", "batch": 1, "seconds": seconds})
    assert measured(run, "small: compiled / transformers") == "3.0"
    assert measured(run, "small: compiled / limit") == "62 %"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("small int8 / compiled", "ask for"),
        ("base: int8 / compiled", "no engines of base"),
        ("small: int9 / compiled", "no 'int9'; there are transformers"),
    ],
)
def test_a_number_that_was_not_measured_is_refused_in_words(asked, told):
    with pytest.raises(ValueError, match=told):
        measured(engines_run(), asked)


def test_the_chart_has_a_row_for_everybody_and_the_reading_limit_of_its_bytes():
    result = engines_result()
    (ax,) = figure_of([result]).axes
    rows = {round(text.xy[1]): text.get_text() for text in ax.texts}
    assert list(rows.values()) == [
        "4 bytes per weight", "compiled", "llama.cpp", "transformers", "2 bytes per weight", "bfloat16",
        "1 to 1.0625 bytes per weight", "llama.cpp", "int8", "0.625 bytes per weight", "onnxruntime",
    ]  # fmt: skip
    marks = {(line.get_marker(), round(line.get_ydata()[0])): line for line in ax.lines if len(line.get_xdata()) == 1}
    found = {rows[y]: line.get_xdata()[0] for (kind, y), line in marks.items() if kind == "o" and y < 4}
    median = {name: 2 / sum(result["seconds"][name]) for name in ("compiled", "llama.cpp F32", "transformers")}
    assert list(found.values()) == pytest.approx(list(median.values()))
    assert [line.get_xdata()[0] for (kind, y), line in marks.items() if kind == "|" and y < 4] == [
        pytest.approx(1 / 1.2)
    ] * 3
    filled = [rows[y] for (kind, y), line in marks.items() if kind == "o" and line.get_markerfacecolor() != "none"]
    assert filled == ["compiled", "bfloat16", "int8"]
    assert len(marks) == 2 * len(result["seconds"])


@pytest.mark.parametrize("width", [plotting.WIDTH, plotting.TEXT_WIDTH])
@pytest.mark.parametrize(
    "run", [engines_run(engines_result(), engines_result(size="base")), stored("engines")], ids=len
)
def test_words_in_the_chart_do_not_lie_on_each_other_or_outside(run, width):
    figure = figure_of([r for r in run["results"] if r["kind"] == "engines" and r["batch"] == 1])
    figure.set_figwidth(width / 72)
    figure.draw_without_rendering()
    figure.draw_without_rendering()
    words = [text for ax in figure.axes for text in (*ax.texts, ax._left_title, *ax.get_xticklabels())]
    boxes = [text.get_window_extent() for text in [*words, *figure.texts, *figure.legends[0].get_texts()]]
    for number, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:number])
    for ax in figure.axes:
        assert ax.bbox.width > 60, "room for the dots"


def test_the_chart_says_its_numbers_in_words_and_refuses_a_run_without_engines():
    picture = byte_chart(engines_run())
    assert "onnxruntime int4 (0.625), 3; llama.cpp Q8_0 (1.0625), 2" in picture.alt
    assert picture.svg == byte_chart(engines_run()).svg
    with pytest.raises(ValueError, match="make bench PEERS=1"):
        byte_chart(engines_run(quality_result()))


def test_ours_are_judged_beside_the_best_engine_of_as_many_bytes_and_by_their_share_of_the_limit():
    one, eight = engines_result(), engines_result(batch=8)
    lines = {(line.what, line.against): line for line in findings([one]) if line.target is not None}
    assert lines[("compiled", "x llama.cpp F32")].target == 1.0 and lines[("compiled", "x llama.cpp F32")].reached
    assert lines[("int8", "x llama.cpp Q8_0")].target == 1.3 and not lines[("int8", "x llama.cpp Q8_0")].reached
    assert lines[("bfloat16", "of the read limit")].target == 0.65
    assert {line.target for line in findings([eight]) if line.against.startswith("x llama")} == {0.9}
    assert not [line for line in findings([eight]) if line.against == "of the read limit" and line.target]


def test_the_tables_name_machine_threads_and_who_is_missing():
    text = engine_tables(engines_run())
    assert "Abacus, 2 cores, AVX2; 1 thread; CPU time" in text
    assert "llama.cpp 1.2, onnxruntime 3.4" in text
    assert "Left out: ctranslate2 int8 failed: No module named ctranslate2" in text
    assert text.count("<details ") == text.count("</details>") == 3
    assert "| onnxruntime int4 | 0.31 | 0.6000 | 80.0 % |" in text
    assert "| int8 | 1 | 2 | **2.25**<br>2.00–2.50 | 45 % |" in text


def test_the_reading_of_a_prompt_has_no_columns_that_say_nothing(committed):
    for result in committed["results"]:
        if result["kind"] == "engines' prefill":
            head, _, *rows = engine_table(result).splitlines()
            assert head == "|  | tokens/s | × transformers |"
            assert len(rows) == len(result["seconds"]) and not any("|  |" in row for row in rows)


def test_one_table_has_everybody_in_every_work_the_fastest_first():
    rows = overview(engines_run()["results"]).splitlines()
    assert rows[0] == "|  | bytes per weight | small, one text | small, 8 texts | KL |"
    assert [row.split(" | ")[0][2:] for row in rows[2:4]] == ["onnxruntime int4", "llama.cpp Q8_0"]
    assert "| int8 | 1 | × 2.2 | × 2.2 | 2e-05 |" in rows and "| transformers | 4 | × 0.50 | × 0.50 |  |" in rows


def test_a_page_shows_chart_tables_and_numbers_of_a_run_with_engines(build, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    report.save(engines_run(), tmp_path / "mine.json")
    text = "# A run\n\n```{byte-chart} mine\n```\n\n```{engine-tables} mine\n```\n\nTimes {measured}`mine %s`.\n"
    status, page = build(text % "small: int8 / compiled")
    assert status == 0 and page.count("<svg") == 2 and page.count("<table") == 4
    assert "Times 2.2." in page


def test_the_chinese_edition_has_words_for_all_that_the_tables_and_the_chart_of_the_page_say(committed, monkeypatch):
    monkeypatch.setattr(chinese, "IS_CHINESE", True)
    of_two = engine_tables(stored("engines_two"))
    assert "2 个线程；墙上的钟" in of_two and "2 个线程比一个" in of_two
    told = engine_tables(committed)
    machine, versions, *_ = told.split("\n\n")
    lines = told.splitlines()
    heads = [head for head, below in zip(lines, lines[1:], strict=False) if below.startswith("| ---")]
    headings = re.findall('class="what">([^<]*)', told)
    assert len(headings) == len(heads) - 1 == 7
    assert "个线程" in machine and "在本机编译" in versions
    names = {"small", "base", "token", "s", "nat", "compiled", "transformers"}
    for said in (*headings, *heads):
        assert set(re.findall(r"\b[a-z]+", said)) <= names, said
    assert " %" not in told
    chart = chinese.in_markup(byte_chart(committed).svg)
    assert all(words in chart for words in ("每秒 token 数", "本书", "其他", "读取极限", "每个权重 4 字节", "从快到慢"))
    assert not re.search(r"bytes|tokens per|this book", chart)


def test_a_number_that_no_run_has_stops_the_build(build, capsys):
    status, _ = build("# A run\n\n{measured}`abacus small: int8 / compiled`\n")
    assert status != 0 and "measured `abacus small" in capsys.readouterr().err


@pytest.fixture
def committed():
    return stored("engines")


def test_the_committed_run_with_engines_still_says_what_was_stored_with_it(committed):
    assert [report.summary(line) for line in findings(committed["results"])] == committed["findings"]
    assert {result["kind"] for result in committed["results"]} == {"engines", "engines' prefill", "engines' quality"}
    settings = committed["settings"]
    assert (settings["device"], settings["dtype"], settings["threads"]) == ("cpu", "float32", 1)
    assert not any(result["missing"] for result in committed["results"])


def test_what_the_page_says_of_two_threads_is_true_of_the_run(committed):
    two = stored("engines_two")
    assert [report.summary(line) for line in findings(two["results"])] == two["findings"]
    assert (two["settings"]["threads"], two["machine"]) == (2, committed["machine"])
    assert not any(result["missing"] for result in two["results"])

    def speeds(run, size):
        [result] = [it for it in run["results"] if it["kind"] == "engines" and (it["size"], it["batch"]) == (size, 1)]
        return {name: 1 / statistics.median(each) for name, each in result["seconds"].items()}

    small, base = speeds(two, "small"), speeds(two, "base")
    assert max(base, key=base.get) == "int4" and base["int8"] > 1.3 * base["onnxruntime int8"]
    assert 0.9 < base["compiled"] / base["llama.cpp F32"] < 1.1 and base["llama.cpp F32"] > base["onnxruntime fp32"]
    assert small["onnxruntime fp32"] > small["compiled"] and small["int4"] == max(small.values()) > 800
    for size, each in (("small", small), ("base", base)):
        assert all(each[name] < speeds(committed, size)[name] for name in each if "ctranslate2" in name)
    gained = {line["what"]: line["spread"]["median"] for line in two["findings"] if line["scenario"] == of_small(two)}
    assert gained["compiled"] > gained["bfloat16"] > gained["int4"] and gained["int4"] < 1.45
    step = (report.RESULTS.parents[1] / "src/minimind_edu/fast/step.cpp").read_text(encoding="utf-8")
    once = step.count("    split(") - 1  # in each block; that of `add` twice, and one for the output
    assert (once + 1) * MODELS["small"].num_hidden_layers + 1 == 41


def of_small(run):
    return next(it["name"] for it in run["results"] if (it["kind"], it["size"]) == ("engines' threads", "small"))


def test_what_the_page_says_of_the_engines_is_true_of_the_run(committed):
    """Its numbers are the run's by themselves; this is about the words between them."""
    quality = next(result["quality"] for result in committed["results"] if result["kind"] == "engines' quality")
    for result in committed["results"]:
        speeds = {name: 1 / statistics.median(each) for name, each in result.get("seconds", {}).items()}
        if result["kind"] == "engines":
            sizes = result["bytes_per_weight"]
            assert max(speeds, key=speeds.get) == "int4"
            best = max(speed for name, speed in speeds.items() if sizes[name] == 4)
            is_small = result["size"] == "small"
            if result["batch"] == 1:
                limits = result["limits"]
                moved = ratios(limits["4 bytes"], limits["0.625 bytes"])  # the tick, for 6.4 times fewer bytes
                assert min(moved) > 4 / 0.625 == 6.4
                assert is_small or (round(min(moved)), round(max(moved))) == (9, 10)
                reached = ratios(limits["4 bytes"], result["seconds"]["compiled"])
                assert (statistics.median(reached) > 1) == is_small
                assert statistics.median(ratios(limits["0.625 bytes"], result["seconds"]["int4"])) < 0.7
                assert 0.9 < speeds["compiled"] / best < 1.1
                beside = ratios(result["seconds"]["onnxruntime fp32"], result["seconds"]["compiled"])
                assert 0.97 < statistics.median(beside) < 1 and best == speeds["onnxruntime fp32"]
                assert (max(beside) - min(beside) > 0.3) == is_small
                assert (0.95 < speeds["ctranslate2 int8"] / speeds["int8"] < 1.05) == is_small
                assert speeds["int8"] > max(speeds["onnxruntime int8"], speeds["llama.cpp Q8_0"], speeds["compiled"])
        if result["kind"] == "engines' prefill":
            assert max(speeds, key=speeds.get) == "ctranslate2 int8"
    rounded = {name: facts["kl"] for name, facts in quality.items() if "int" in name or "Q8" in name}
    assert min(rounded, key=rounded.get) == "int8" and rounded["onnxruntime int4"] < rounded["int4"]
    missed = {(line["what"], line["target"]) for line in committed["findings"] if line["reached"] is False}
    assert missed == {
        ("compiled", 1.0), ("int8", 1.3), ("int4", 1.15), ("int8", 0.9), ("bfloat16", 0.65), ("llama.cpp F32", 1.0)
    }  # fmt: skip
    both = [result for run in (committed, stored("engines_two")) for result in run["results"]]
    rounds = [len(each) for result in both for each in result.get("seconds", {}).values()]
    assert (min(rounds), max(rounds)) == (3, 9)
    for result in committed["results"]:
        if result["kind"] == "engines":
            same = {name for name, share in result["same_tokens"].items() if share == 1}
            exact = {name for name, size in result["bytes_per_weight"].items() if size == 4}
            assert same >= exact - ({"llama.cpp F32"} if result["batch"] > 1 else set())


def by_bytes(model, cut):
    """Let a model multiply bytes: a scale for each row and each vector, the vector's numbers moved up to 1 to 255.

    Products are added in pairs; `cut` keeps a pair within 16 bits, as processors do that have no wider sums of bytes.
    """

    def product(weight, x):
        row_steps, step = (it.abs().amax(-1, keepdim=True) / 127 for it in (weight, x))
        rows, vectors = (weight / row_steps).round(), (x / step).round() + 128
        pairs = (vectors[..., None, :] * rows).unflatten(-1, (-1, 2)).sum(-1)  # [B, T, out, in / 2]
        sums = (pairs.clamp(-(2**15), 2**15 - 1) if cut else pairs).sum(-1)
        return (sums - 128 * rows.sum(-1)) * step * row_steps[:, 0]

    for part in model.modules():
        if isinstance(part, torch.nn.Linear):
            part.forward = partial(product, part.weight)
    return model


@pytest.mark.long
@torch.no_grad()
def test_what_ctranslate2_loses_is_its_vectors_eight_bits_and_without_wide_sums_far_more(committed):
    """The stored run is of a processor that adds products of bytes in 32 bits."""
    [result] = [result for result in committed["results"] if result["kind"] == "engines' quality"]
    texts = next(story_batches(seed=17, batch_size=result["stories"], length=result["length"]))
    exact = living_model()(texts).logits.double().log_softmax(-1)
    lost = {}
    for cut in (False, True):
        logits = torch.cat([by_bytes(living_model(), cut)(text[None]).logits for text in texts])
        lost[cut] = compared(exact, logits.double().log_softmax(-1), texts)["kl"]
    assert lost[False] == pytest.approx(result["quality"]["ctranslate2 int8"]["kl"], rel=0.05)
    assert lost[True] > 50 * lost[False]


def test_the_readme_tells_the_speeds_of_the_stored_run():
    """Against transformers, with one text: first MiniMind2 small, then base."""
    readme = " ".join(PAGE.parents[1].joinpath("README.md").read_text(encoding="utf-8").split())
    told = {
        "compiled": re.findall(r"([\d.]+) times as fast with MiniMind2 small, ([\d.]+) times with base", readme),
        "int8": re.findall(r'"int8"\)` writes (\d+) and (\d+) times as fast', readme),
        "int4": re.findall(r'`"int4"` (\d+) and (\d+) times', readme),
    }
    run = stored("engines")
    for who, [numbers] in told.items():
        digits = 0 if who.startswith("int") else 1
        ratios = (float(measured(run, f"{size}: {who} / transformers")) for size in ("small", "base"))
        assert numbers == tuple(f"{one:.{digits}f}" for one in ratios), who
