"""The engines that people use, as far as they can be tested where none is installed."""

import importlib
import io
import json
import re
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from model_builders import tiny_config, tiny_model, token_ids
from transformers import AutoTokenizer

from benchmarks import __main__ as program
from benchmarks import among_engines
from benchmarks.among_engines import AmongEngines, MoreThreads, PrefillAmongEngines, Quality, compared, one_by_one
from benchmarks.bench import Bench
from benchmarks.engines import ENGINES, client, server
from benchmarks.engines.checkpoint import write_checkpoint
from benchmarks.engines.client import EngineError, RemoteEngine, start_engines
from benchmarks.findings import findings
from benchmarks.suites import FULL, QUICK_WITH_ENGINES, WITH_ENGINES, WITH_THREADS

ROOT = Path(__file__).resolve().parents[2]
WIDE = {"initializer_range": 0.3, "max_position_embeddings": 2048, "intermediate_size": 64}  # int4 has groups of 32


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A Llama of two heads that share one pair of keys and values, 32 wide."""
    model = tiny_model(hidden_size=32, intermediate_size=64, head_dim=16, vocab_size=64)
    return write_checkpoint(model, tmp_path_factory.mktemp("export") / "model")


# The export


def test_the_tokenizer_has_a_word_for_every_number(checkpoint):
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    assert tokenizer.encode("t5 t63 t0", add_special_tokens=False) == [5, 63, 0]
    assert len(tokenizer) == 64


# Question and answer

PRETENDED = """
import sys, time, os
from benchmarks.engines.server import serve, tell
import json
class Engine:
    def generate(self, prompts, new):
        if new == 13: raise ValueError("thirteen tokens are too many for this engine\\nand more")
        if new == 14: print("the last words", file=sys.stderr); os._exit(3)
        return [[(row[-1] + i) % 50 for i in range(1, new + 1)] for row in prompts]
    def logits(self, ids):
        return [[float(i == token) for i in range(88)] for token in ids]
tell(sys.stdout, {"ready": True, "version": "1.2"})
serve(Engine(), sys.stdin, sys.stdout, time.process_time)
"""


@pytest.fixture
def pretended(tmp_path, monkeypatch):
    """Commands that start an engine which only counts on; the one called "ct2" cannot even start."""
    (tmp_path / "engine.py").write_text(PRETENDED)
    broken = tmp_path / "broken.py"
    broken.write_text('print(\'{"error": "the library is missing: No module named ctranslate2"}\')', encoding="utf-8")

    def command(name, *_):
        return [sys.executable, broken if ENGINES[name].module == "ct2" else tmp_path / "engine.py"]

    monkeypatch.setattr(client, "server_command", command)
    return command


@pytest.fixture
def engine(pretended):
    engine = RemoteEngine("llama.cpp F32", pretended("llama.cpp F32"))
    assert engine.ready() == "1.2"
    yield engine
    engine.close()


def test_an_engine_continues_prompts_and_says_how_long_it_took(engine):
    texts, seconds = engine.timed(torch.tensor([[3, 4], [7, 8]]), 3)
    assert texts.tolist() == [[3, 4, 5, 6, 7], [7, 8, 9, 10, 11]]
    assert 0 <= seconds < 60
    assert engine.logits(torch.tensor([2, 5])).argmax(-1).tolist() == [2, 5]


def test_an_engine_that_fails_says_why_and_can_be_asked_again(engine):
    with pytest.raises(EngineError, match=r"^llama.cpp F32 failed: thirteen tokens are too many for this engine$"):
        engine.generate(torch.tensor([[1]]), 13)
    assert engine.generate(torch.tensor([[1]]), 1).tolist() == [[1, 2]]


def test_an_engine_that_stops_leaves_its_last_words(engine):
    with pytest.raises(EngineError, match=r"llama.cpp F32 stopped: the last words \(status 3\)") as error:
        engine.generate(torch.tensor([[1]]), 14)
    assert error.value.name == "llama.cpp F32"


def test_who_cannot_be_started_is_missing_with_a_sentence_and_the_others_run(pretended, tmp_path):
    engines = start_engines(ENGINES, tmp_path, Path("python"))
    assert set(engines.running) == {name for name in ENGINES if "ctranslate2" not in name}
    assert engines.missing["ctranslate2 int8"] == (
        "ctranslate2 int8 failed: the library is missing: No module named ctranslate2"
    )
    engines.close()
    assert not engines.running


def test_the_server_times_the_work_alone_and_answers_errors():
    answers, clock = io.StringIO(), count().__next__
    work = SimpleNamespace(generate=lambda prompts, new: [[new]], logits=lambda ids: ids[9])
    questions = [{"do": "generate", "prompts": [], "new": 2}, {"do": "logits", "ids": []}]
    server.serve(work, [json.dumps(question) for question in questions], answers, clock)
    first, second = map(json.loads, answers.getvalue().splitlines())
    assert first == {"answer": [[2]], "seconds": 1}
    assert second == {"error": "IndexError: list index out of range"} or "list index" in second["error"]


# Scenarios


@pytest.fixture
def bench(pretended):
    bench = Bench(models={"small": tiny_config(**WIDE)}, rounds=2)
    yield bench
    bench.close()


def test_our_ways_and_the_engines_are_timed_together_and_compared(bench):
    scenario = AmongEngines("small", prompt=5, new=4, peers=("transformers", "plain"))
    result = scenario.run(bench)
    assert set(result["seconds"]) == {"transformers", "plain", *(n for n in ENGINES if "ctranslate2" not in n)}
    assert all(len(rounds) == 2 for rounds in result["seconds"].values())
    assert set(result["limits"]) == {"4 bytes", "1.125 bytes", "1.0625 bytes", "0.625 bytes"}
    assert result["same_tokens"]["plain"] == 1 and result["same_tokens"]["llama.cpp F32"] < 1
    assert "No module named ctranslate2" in result["missing"]["ctranslate2 float32"]
    assert result["versions"]["llama.cpp F32"] == "1.2"
    json.dumps(result)


@pytest.mark.long
def test_everybody_works_with_one_thread_and_with_those_of_the_run(bench, monkeypatch):
    started, used = [], []
    start = client.start_engines

    def starting(names, checkpoint, python, threads):
        started.append(threads)
        return start([*names], checkpoint, python, threads)

    def elapsed(work):
        used.append(torch.get_num_threads())
        work()
        return 1 / torch.get_num_threads()

    monkeypatch.setattr("benchmarks.bench.start_engines", starting)
    monkeypatch.setattr(among_engines, "elapsed", elapsed)
    before = torch.get_num_threads()
    bench.threads = 2
    result = MoreThreads("small", prompt=5, new=4, peers=("plain",)).run(bench)
    assert started == [1, 2] and sorted(used) == [1] * 6 + [2] * 6 and torch.get_num_threads() == before
    assert set(result["seconds"]) == {"plain", "llama.cpp F32", "llama.cpp Q8_0"}
    lines = {line.what: line for line in findings([result])}
    assert lines["plain"].rounds == (2.0, 2.0) and lines["plain"].reached
    assert lines["llama.cpp F32"].reached is None
    json.dumps(result)


@pytest.mark.long
def test_an_engine_that_fails_is_left_out_and_the_rest_is_measured(bench):
    result = AmongEngines("small", prompt=5, new=13, peers=("plain",)).run(bench)
    assert set(result["seconds"]) == {"plain"}
    assert "thirteen tokens" in result["missing"]["onnxruntime int4"]


@pytest.mark.long
def test_an_engine_that_fails_in_a_round_is_left_out_of_all(bench, monkeypatch):
    asked = []

    def seconds(engine, ids, new):
        asked.append(engine.name)
        if engine.name == "onnxruntime int8" and asked.count(engine.name) == 2:
            raise EngineError(engine.name, "stopped: no memory")
        return 1.0

    monkeypatch.setattr(among_engines, "_seconds", seconds)
    result = PrefillAmongEngines("small", prompt=6, peers=("plain",)).run(bench)
    assert "onnxruntime int8" not in result["seconds"] and result["seconds"]["llama.cpp F32"] == [1.0, 1.0]
    assert result["missing"]["onnxruntime int8"] == "onnxruntime int8 stopped: no memory"


def test_quality_compares_with_our_model_word_by_word(bench, monkeypatch):
    monkeypatch.setattr(among_engines, "ROUNDED", {})
    result = Quality(stories=2, length=12).run(bench)
    plain, pretended = result["quality"]["plain"], result["quality"]["llama.cpp F32"]
    assert plain["kl"] == 0 and plain["same_choice"] == 1 and 0 < plain["loss"] < 2
    assert pretended["kl"] > 0.5 and pretended["same_choice"] < 1
    lines = {(line.what, line.against): line for line in findings([result])}
    assert lines[("llama.cpp F32", "KL from plain, nats")].rounds == (pretended["kl"],)


@torch.no_grad()
def test_one_by_one_gives_the_logits_of_the_whole_text():
    model, ids = tiny_model(), token_ids(2, 7)
    torch.testing.assert_close(one_by_one(model, ids), model(ids).logits)


def test_divergence_and_loss_are_those_of_a_sum_by_hand():
    exact = torch.tensor([[[0.5, 0.5], [0.9, 0.1]]], dtype=torch.float64)
    other = torch.tensor([[[0.25, 0.75], [0.9, 0.1]]], dtype=torch.float64)
    facts = compared(exact.log(), other.log(), torch.tensor([[0, 1]]))
    assert facts["kl"] == pytest.approx((0.5 * np.log(2) + 0.5 * np.log(0.5 / 0.75)) / 2)
    assert facts["loss"] == pytest.approx(-np.log(0.75))
    assert facts["same_choice"] == 0.5


# Program and files


def test_engines_are_measured_only_on_request_and_only_where_they_are_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(program, "PYTHON", tmp_path / "python")
    asked = program.arguments(["--peers"])
    with pytest.raises(SystemExit, match="make bench PEERS=1"):
        program.scenarios_of(asked, ())
    (tmp_path / "python").touch()
    assert program.scenarios_of(asked, ()) == (*FULL, *WITH_ENGINES)
    assert (
        program.scenarios_of(program.arguments(["--peers", "--threads", "2"]), ())[-len(WITH_THREADS) :] == WITH_THREADS
    )
    assert program.scenarios_of(program.arguments([]), ()) == FULL


def test_a_quick_run_with_engines_has_the_kinds_and_sizes_of_a_full_one():
    for of in ("kind", "size"):
        assert {getattr(s, of) for s in WITH_ENGINES} == {getattr(s, of) for s in QUICK_WITH_ENGINES}
    assert len({s.name for s in (*FULL, *WITH_ENGINES)}) == len(FULL) + len(WITH_ENGINES)


@pytest.mark.parametrize("module", sorted({kind.module for kind in ENGINES.values()}))
def test_every_engine_has_its_versions_and_they_are_those_of_the_book(module):
    def pinned(path):
        return dict(re.findall(r"^([\w.-]+)(?:\[\w+\])?==(\S+)$", path.read_text(), re.MULTILINE))

    engines, book = pinned(ROOT / f"benchmarks/engines/{module}.txt"), pinned(ROOT / "requirements.txt")
    assert engines and (ROOT / f"benchmarks/engines/{module}.py").is_file()
    assert {name: engines[name] for name in engines.keys() & book.keys()} == {
        name: book[name] for name in engines.keys() & book.keys()
    }
    source = (ROOT / f"benchmarks/engines/{module}.py").read_text()
    imported = {name.replace("_", "-") for name in re.findall(r"^import (\w+)", source, re.MULTILINE)}
    assert imported & {name.removesuffix("-python") for name in engines}


def test_an_engine_tells_its_own_version_apart_from_that_of_what_drives_it(monkeypatch):
    """onnxruntime has no version 0.18: that is onnxruntime-genai's."""
    for name, version in {"onnxruntime": "1.32.0", "onnxruntime_genai": "0.18.0"}.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(__version__=version))
    monkeypatch.delitem(sys.modules, "benchmarks.engines.ort", raising=False)
    told = importlib.import_module("benchmarks.engines.ort").version()
    assert told.startswith("1.32.0,") and "onnxruntime-genai 0.18.0" in told
