"""The benchmarks measure what they say: same work for everybody, in turns, and honest arithmetic afterwards."""

import gc
import getpass
import json
import platform
import time
from dataclasses import dataclass, replace
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from model_builders import tiny_config, tiny_model, token_ids

from benchmarks import notes_way, report, timing
from benchmarks import peers as peers_module
from benchmarks.__main__ import arguments, main
from benchmarks.bench import Bench, ReadLimit, four_places
from benchmarks.engines import ENGINES
from benchmarks.findings import AGAINST, BEFORE, LIMIT, ROUNDED, Finding, findings, slopes
from benchmarks.peers import build_peers
from benchmarks.picture import chosen, draw, figure_of
from benchmarks.scenarios import Decode, Limits, Scenario, step_bytes
from benchmarks.suites import FULL, QUICK
from benchmarks.timing import Clock, Spread, paired_rounds, ratios, rotated, slope
from minimind_edu.device import pick_device
from minimind_edu.measure import machine
from minimind_edu.model.for_comparison import CatCache

CPU = torch.device("cpu")
WIDE = {"initializer_range": 0.3, "max_position_embeddings": 2048, "intermediate_size": 64}  # int4 has groups of 32
TINY = {"small": tiny_config(**WIDE), "base": tiny_config(num_hidden_layers=3, **WIDE), "training": tiny_config(**WIDE)}


@pytest.fixture(autouse=True)
def imports_stay_frozen(monkeypatch):
    """A round begins by collecting garbage; conftest.py has frozen what this whole suite imports, and so it stays."""
    monkeypatch.setattr(gc, "unfreeze", lambda: None)


# Rounds, spread, slope


def test_every_round_begins_with_another_one_and_keeps_the_order():
    orders = [rotated(["a", "b", "c"], by) for by in range(4)]
    assert orders == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]


def test_paired_rounds_let_everybody_work_once_a_round_in_rotated_order():
    order, done = [], []
    work = {name: lambda name=name: order.append(name) or len(order) for name in "abc"}
    measured = paired_rounds(work, 3, done=lambda: done.append(1))
    assert "".join(order) == "abcbcacab"
    assert measured == {"a": [1, 6, 8], "b": [2, 4, 9], "c": [3, 5, 7]}
    assert len(done) == 9


@pytest.mark.parametrize(("each", "expected"), [(1.0, 10), (30.0, 2), (9.0, 5), (50.0, 2)], ids=str)
def test_no_round_begins_that_would_go_beyond_the_budget_but_two_always_run(monkeypatch, each, expected):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def work():
        now[0] += each
        return each

    assert paired_rounds({"a": work}, 10, budget=50.0) == {"a": [each] * expected}


def test_rounds_asked_for_are_all_run_however_long():
    work = {"a": lambda: 1.0}
    assert Bench(rounds=4).paired("a", work, rounds=1, budget=0.0) == {"a": [1.0] * 4}
    assert Bench().paired("a", work, rounds=5, budget=0.0) == {"a": [1.0] * 2}


def test_a_spread_is_the_median_with_the_extremes():
    assert Spread.of([3.0, 1.0, 10.0, 2.0]) == Spread(2.5, 1.0, 10.0)


def test_ratios_compare_within_a_round():
    assert ratios([2.0, 30.0], [1.0, 10.0]) == [2.0, 3.0]
    with pytest.raises(ValueError):
        ratios([1.0, 2.0], [1.0])


def test_the_slope_is_the_least_squares_line():
    places = [128, 256, 512, 1024]
    assert slope(places, [3e-3 + 2e-6 * place for place in places]) == pytest.approx(2e-6)
    noisy = [1.0, 5.0, 2.0, 9.0]
    assert slope(places, noisy) == pytest.approx(np.polyfit(places, noisy, 1)[0])


def test_the_clock_is_the_packages_for_the_device_and_says_what_it_counts(monkeypatch):
    clocks = {"cpu": time.process_time, "cuda": iter([1.0, 4.0]).__next__}
    monkeypatch.setattr(timing, "clock_for", lambda device: clocks[device.type])
    assert Clock(CPU).kind == "CPU time"
    clock = Clock(torch.device("cuda"))
    assert (clock.kind, clock.seconds(lambda: None)) == ("elapsed time", 3.0)


# Peers


@pytest.fixture(scope="module")
def peers():
    return build_peers(TINY["small"], CPU, torch.float32)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", ["transformers static", "notes", "plain", "compiled", "no cache"])
def test_every_peer_gives_the_tokens_of_transformers(peers, name, batch):
    ids = token_ids(batch, 9)
    expected = peers["transformers"].generate(ids, 20)
    assert expected[:, 9:].unique().numel() > 5, "a constant text would agree by itself"
    assert torch.equal(peers[name].generate(ids, 20), expected)


@pytest.mark.parametrize("name", ["transformers", "notes", "plain", "compiled"])
def test_a_stream_yields_what_generate_returns(peers, name):
    ids = token_ids(2, 9)
    streamed = torch.stack(list(peers[name].stream(ids, 12)), dim=1)
    assert torch.equal(streamed, peers[name].generate(ids, 12)[:, 9:])


@pytest.mark.long
def test_transformers_compiled_gives_the_same_tokens_and_really_compiles(peers, monkeypatch):
    traced = []
    monkeypatch.setattr(
        "benchmarks.peers.CompileConfig",
        partial(peers_module.CompileConfig, backend=lambda graph, _: traced.append(1) or graph.forward),
    )
    compiled = peers_module.build_more(TINY["small"], CPU, torch.float32)["transformers compiled"]
    ids = token_ids(2, 9)
    assert torch.equal(compiled.generate(ids, 12), peers["transformers"].generate(ids, 12))
    assert traced


@torch.no_grad()
def test_the_notes_way_computes_the_same_logits_in_one_piece_and_step_by_step():
    model, ids = tiny_model(), token_ids(2, 11)
    caches = [CatCache() for _ in model.model.layers]
    expected = model(ids).logits
    first = notes_way.next_logits(model, ids[:, :6], caches)
    torch.testing.assert_close(first, expected[:, 5])
    for end in range(7, 12):
        logits = notes_way.next_logits(model, ids[:, end - 1 : end], caches)
        torch.testing.assert_close(logits, expected[:, end - 1])
    assert caches[0].length == 11


# The read limit


def test_a_step_reads_all_weights_once_and_the_cache_so_far():
    bench, scenario = Bench(models=TINY), Decode("small", prompt=10, new=5, batch=3)
    weights = sum(parameter.numel() for parameter in tiny_model(**WIDE).parameters())
    config = TINY["small"]
    of_a_position = 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    positions = (10 + 11 + 12 + 13 + 14) / 5  # the first call writes the prompt, each later one reads all
    assert step_bytes(bench, scenario) == 4 * (weights + 3 * positions * of_a_position)


def test_the_read_limit_reads_as_many_bytes_as_asked():
    limit = ReadLimit(2048 * 999, Bench(models=TINY))
    assert limit.numbers.nbytes == 2048 * 999
    assert limit.seconds(2) > 0


def test_reading_four_places_reads_every_number():
    numbers = torch.arange(4096, dtype=torch.int32)
    for changed in (None, 0, 1023, 1024, 4095):
        if changed is not None:
            numbers[changed] += 7
        assert four_places()(numbers.data_ptr(), len(numbers)) == numbers.sum()


def test_the_read_limit_reads_four_places_with_one_thread_alone():
    assert "four places" in ReadLimit(4096, Bench()).ways
    before = torch.get_num_threads()
    assert "four places" not in ReadLimit(4096, Bench(threads=2)).ways
    torch.set_num_threads(before)


# Findings and targets


def decode_result(**changes):
    seconds = {
        "transformers": [2.0, 4.0, 3.0],
        "plain": [1.0, 4.0, 2.0],
        "compiled": [0.5, 1.0, 1.0],
        "read limit": [0.4, 0.9, 0.5],
    }
    sizes = {"size": "small", "prompt": 32, "new": 256, "batch": 1}
    return {"kind": "decode", "name": "decode, small", "seconds": seconds, **sizes, **changes}


def find(result, what, against):
    (line,) = [f for f in findings([result]) if (f.what, f.against) == (what, against)]
    return line


def test_speed_is_compared_within_each_round():
    line = find(decode_result(), "plain", "x transformers")
    assert line.rounds == (2.0, 1.0, 1.5)
    assert line.value == "0.5 tokens/s"
    assert (line.target, line.reached, line.verdict) == (1.05, True, "reached")
    assert find(decode_result(batch=8), "plain", "x transformers").value == "4.0 tokens/s"


def test_a_missed_target_names_the_limit_where_reading_is_the_reason():
    seconds = decode_result()["seconds"] | {"read limit": [1.6, 3.0, 2.4]}
    result = decode_result(seconds=seconds | {"compiled": [0.8, 1.7, 1.2]})
    line = find(result, "compiled", "x transformers")
    assert line.reached
    slow = decode_result(seconds=seconds | {"compiled": [1.9, 3.9, 2.9]})
    line = find(slow, "compiled", "x transformers")
    assert (line.reached, line.verdict) == (False, "not reached; reading allows 1.25")
    above = decode_result(seconds=decode_result()["seconds"] | {"compiled": [1.9, 3.9, 2.9]})
    assert find(above, "compiled", "x transformers").verdict == "not reached"


def test_the_share_of_the_read_limit_is_the_limit_over_the_time():
    line = find(decode_result(), "compiled", "of the read limit")
    assert line.rounds == (0.8, 0.9, 0.5)
    assert (line.target, line.reached) == (0.85, False)
    assert find(decode_result(), "plain", "of the read limit").target is None


@pytest.mark.parametrize(
    ("changes", "what", "target"),
    [
        ({}, "compiled", 2.3),
        ({"size": "base"}, "compiled", 1.9),
        ({"prompt": 512}, "compiled", None),
        ({"size": "base"}, "plain", 1.0),
        ({"batch": 8}, "plain", 1.05),
    ],
    ids=str,
)
def test_targets_belong_to_the_sizes_that_they_name(changes, what, target):
    assert find(decode_result(**changes), what, "x transformers").target == target


@pytest.mark.parametrize(("new", "target"), [(256, 8.0), (24, None)])
def test_cached_against_uncached_has_a_target_at_its_full_length_only(new, target):
    seconds = {"plain": [1.0, 2.0], "no cache": [9.0, 14.0], "read limit": [0.5, 0.5]}
    line = find(decode_result(seconds=seconds, new=new), "plain", "x no cache")
    assert (line.rounds, line.target) == ((9.0, 7.0), target)


def context_result():
    def rounds(rise):
        return [[0.01 + rise * noise * context for context in (128, 1024)] for noise in (1, 1.1)]

    rises = {"transformers": 2e-6, "notes": 4e-6, "plain": 1e-6, "compiled": 5e-7}
    seconds = {name: rounds(rise) for name, rise in rises.items()}
    name = "step against context, small"
    sizes = {"size": "small", "contexts": [128, 1024]}
    return {"kind": "step against context", "name": name, "seconds": seconds, **sizes}


def test_the_cost_of_a_context_token_is_compared_as_a_slope():
    result = context_result()
    assert slopes(result)["notes"] == pytest.approx([4e-6, 4.4e-6])
    line = find(result, "plain", "of the notes'")
    assert line.rounds == pytest.approx((0.25, 0.25))
    assert (line.value, line.reached) == ("1.05 us/token", True)
    assert find(result, "plain", "of transformers'").reached
    assert not replace(line, target=0.2).reached


def test_cache_bytes_must_be_exact():
    counted = {"plain": 100, "notes": 101}
    result = {"kind": "cache bytes", "name": "bytes", "formula": 100, "bytes": counted}
    assert [line.reached for line in findings([result])] == [True, False]


def test_one_different_token_is_not_agreement():
    result = {
        "kind": "agreement", "name": "agreement", "batch": 2, "new": 8, "full_logits": 2e-5,
        "same_tokens": {"plain": 1.0, "compiled": 15 / 16}, "cached_logits": {"plain": 9e-6},
    }  # fmt: skip
    lines = {(line.what, line.value): line.reached for line in findings([result])}
    assert lines[("plain", "16 tokens")] and not lines[("compiled", "16 tokens")]
    assert not lines[("plain", "whole text")] and lines[("plain", "token by token")]


# What is stored and shown


def stored_run(*results):
    return report.describe(Bench(models=TINY), False, results or [decode_result(), context_result()])


def test_a_stored_run_is_read_back_as_it_was(tmp_path):
    run = stored_run()
    report.save(run, tmp_path / "new" / "run.json")
    assert report.load(tmp_path / "new" / "run.json") == run
    assert run["results"][0]["seconds"]["plain"] == [1.0, 4.0, 2.0]


def test_a_stored_run_names_the_processor_but_neither_machine_nor_owner(tmp_path):
    run = stored_run()
    assert {"processor", "cores", "memory_gib"} <= run["machine"].keys()
    assert run["versions"]["torch"] == torch.__version__
    words = json.dumps(run)
    for private in (platform.node(), str(tmp_path), getpass.getuser()):
        assert f'"{private}' not in words and f"/{private}/" not in words


def test_a_file_that_is_no_run_is_refused_in_words(tmp_path):
    path = tmp_path / "other.json"
    path.write_text("[1]")
    with pytest.raises(ValueError, match="other.json is not a run"):
        report.load(path)


def test_the_table_holds_every_finding_with_its_target_and_verdict():
    lines = report.table(stored_run()).splitlines()
    (line,) = [line for line in lines if line.startswith("  plain") and "x transformers" in line]
    told = "plain 0.5 tokens/s 1.50 1.00 .. 2.00 x transformers >= 1.05 reached"
    assert " ".join(line.split()) == told
    assert "decode, small" in lines and "step against context, small" in lines
    assert lines[-1] == "4 of 5 targets reached"


def test_columns_of_the_table_stand_below_each_other():
    lines = [line for line in report.table(stored_run()).splitlines() if "x transformers" in line]
    assert len({line.index("x transformers") for line in lines[1:]}) == 1 and len(lines) > 2


def written(picture):
    """The words and numbers in a picture."""
    return [element.text for element in ElementTree.parse(picture).iter() if element.tag.endswith("text")]


def test_the_picture_is_drawn_and_the_same_every_time(tmp_path):
    assert draw(stored_run(), tmp_path / "a.svg") and draw(stored_run(), tmp_path / "b.svg")
    assert {"decode, small", "step against context, small"} <= set(written(tmp_path / "a.svg"))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_without_anything_to_draw_there_is_no_picture(tmp_path):
    seconds = {"plain": [1.0], "no cache": [9.0], "read limit": [0.5]}
    assert not draw(stored_run(decode_result(seconds=seconds)), tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


def test_the_picture_shows_the_first_of_each_kind_and_size():
    base = decode_result(size="base", name="base")
    results = [decode_result(), base, decode_result(name="again"), context_result()]
    names = [result["name"] for result in chosen(results)]
    assert names == ["decode, small", "step against context, small", "base"]


def test_no_words_of_the_picture_lie_on_each_other_or_outside():
    figure = figure_of(chosen([decode_result(), context_result()]))
    figure.draw_without_rendering()
    for ax in figure.axes:
        left, right = ax.get_xlim()
        ticks = [tick.label1 for tick in ax.xaxis.get_major_ticks() if left <= tick.get_loc() <= right]
        words = [*ax.texts, *ax.get_yticklabels(), *ticks, ax.xaxis.label, ax.yaxis.label]
        boxes = [text.get_window_extent() for text in words if text.get_text()]
        assert len(boxes) > 5
        for number, box in enumerate(boxes):
            assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
            assert not any(box.overlaps(other) for other in boxes[:number])


def test_the_words_of_a_bar_stand_behind_it_and_inside_the_panel():
    figure = figure_of([decode_result()])
    figure.draw_without_rendering()
    (ax,) = figure.axes
    assert len(ax.texts) == len(ax.patches) == 4
    for words, bar in zip(ax.texts, ax.patches, strict=True):
        box = words.get_window_extent()
        assert bar.get_window_extent().x1 <= box.x0 and box.x1 <= ax.bbox.x1
        assert words.get_position()[0] >= 1, "the line at 1 would run through the words"


# The program


@dataclass(frozen=True)
class Fake(Scenario):
    """Measures nothing, or is interrupted."""

    kind = "cache bytes"
    interrupts: bool = False

    @property
    def name(self):
        return "interrupted" if self.interrupts else "fake"

    def measure(self, bench):
        if self.interrupts:
            raise KeyboardInterrupt
        return {"formula": 2, "bytes": {"plain": 1}}


def test_ctrl_c_keeps_the_scenarios_that_are_finished(tmp_path, capsys):
    stem = tmp_path / "run"
    assert main(["--quick", "--output", str(stem)], TINY, [Fake(), Fake(interrupts=True)]) == 0
    assert [r["name"] for r in report.load(tmp_path / "run.json")["results"]] == ["fake"]
    assert "1 of 2 scenarios are finished and kept" in capsys.readouterr().out


def test_ctrl_c_in_the_first_scenario_stores_nothing(tmp_path, capsys):
    assert main(["--quick", "--output", str(tmp_path / "x")], TINY, [Fake(interrupts=True)]) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missed_target_is_told_and_does_not_fail(tmp_path, capsys):
    assert main(["--quick", "--output", str(tmp_path / "run")], TINY, [Fake()]) == 0
    told = capsys.readouterr().out
    assert "not reached" in told and "0 of 1 targets reached" in told


def test_what_is_no_stored_run_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "notes.json").write_text("[]")
    for name in ("notes.json", "gone.json"):
        with pytest.raises(SystemExit, match=f"{name} cannot be shown: "):
            main(["--show", str(tmp_path / name)])


def test_a_stored_run_is_shown_again(tmp_path, capsys):
    main(["--quick", "--output", str(tmp_path / "run")], TINY, [Fake()])
    first = capsys.readouterr().out
    assert main(["--show", str(tmp_path / "run.json")]) == 0
    assert first.endswith(capsys.readouterr().out)


@pytest.mark.long
def test_a_run_of_engines_alone_is_drawn_as_their_chart(tmp_path):
    run = report.load(report.RESULTS / "engines.json")
    assert draw(run, tmp_path / "engines.svg")
    assert {"this book", "reading limit", "Small, 26 M", "llama.cpp"} <= set(written(tmp_path / "engines.svg"))


def test_only_chooses_scenarios_and_lists_them_when_none_fits(tmp_path):
    with pytest.raises(SystemExit, match="no scenario's name holds 'nothing'") as error:
        main(["--only", "nothing"])
    assert all(scenario.name in str(error.value) for scenario in FULL)


def test_it_measures_on_the_device_that_the_package_picks(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for there, device in ((True, "mps"), (False, "cpu")):
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda there=there: there)
        assert arguments([]).device == pick_device() == torch.device(device)


def test_arguments_out_of_range_are_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--rounds", "0"])
    assert "must be at least 1, got 0" in capsys.readouterr().err


def test_stored_runs_name_nobody_whom_the_code_no_longer_has(peers):
    """A reader could neither look such a way up nor measure it again, but for those that findings.py says are gone."""
    known = {*peers, *BEFORE, "transformers compiled", *ROUNDED, *ENGINES, LIMIT}
    for name in sorted(path.stem for path in report.RESULTS.glob("engines*.json")):
        run = report.load(report.RESULTS / f"{name}.json")
        named = {peer for result in run["results"] for peer in result.get("peers", ())}
        compared = {line["what"] for line in run["findings"] if line["against"] in (AGAINST, "of the read limit")}
        assert named | compared <= known, name
        assert compared, name


def test_a_quick_run_has_all_kinds_of_a_full_one():
    assert {scenario.kind for scenario in QUICK} == {scenario.kind for scenario in FULL}
    assert {scenario.size for scenario in QUICK} == {scenario.size for scenario in FULL}
    measured = {peer for scenario in QUICK for peer in getattr(scenario, "peers", ())}
    assert measured == {peer for scenario in FULL for peer in getattr(scenario, "peers", ())}
    assert len({scenario.name for scenario in FULL}) == len(FULL)


@pytest.mark.long
def test_a_quick_run_of_tiny_models_from_end_to_end(tmp_path, capsys, monkeypatch):
    """Steps are traced but not translated into C++, which takes most of the time and is tested with the steps."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    monkeypatch.setattr(machine, "SIDE", {"cpu": 16, "gpu": 16})
    quick = [replace(scenario, megabytes=4) if isinstance(scenario, Limits) else scenario for scenario in QUICK]
    stem = tmp_path / "run"
    assert main(["--quick", "--rounds", "2", "--output", str(stem)], TINY, quick) == 0
    run = report.load(tmp_path / "run.json")
    assert [result["name"] for result in run["results"]] == [s.name for s in QUICK]
    for result in run["results"]:
        for rounds in result.get("seconds", {}).values():
            assert len(rounds) == 2 and np.all(np.array(rounds) > 0)
    agreed = [line for line in findings(run["results"]) if "agreement" in line.scenario]
    assert {line.what for line in agreed} >= {"plain", "compiled", "notes"}
    assert all(line.reached for line in agreed)
    assert (tmp_path / "run.svg").stat().st_size > 1000
    assert report.table(run) in capsys.readouterr().out


def test_a_finding_without_a_target_has_no_verdict():
    assert Finding("a", "b", "1 s").verdict == "" and Finding("a", "b", "1 s").spread is None
