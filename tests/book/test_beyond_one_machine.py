"""The page's commands do what the page says, on one machine without a GPU and without a network."""

import contextlib
import importlib.util
import io
import json
import os
import re
import runpy
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from benchmarks import memory
from minimind_edu import MiniMindConfig, MiniMindForCausalLM
from minimind_edu.hf import gguf
from minimind_edu.measure.memory import num_weights, training_memory
from tools.translated import anchor

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "beyond_one_machine.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```\{code-block\} (\w+)\n:caption: ([^\n]*)\n(.*?)```", re.DOTALL)
BLOCKS = BLOCK.findall(PAGE)
NUMBER = re.compile(r"\d+\.\d+")


def test_the_map_leads_to_every_section():
    there = {anchor(heading) for heading in re.findall(r"^## (.+)$", PAGE, re.MULTILINE)}
    top = PAGE.partition("\n## ")[0]
    assert there <= set(re.findall(r"\]\(#([\w-]+)\)", top)) and len(there) > 3


def command(start):
    """The page's command that begins so; it must say that it is run."""
    found = [text for _, caption, text in BLOCKS if text.startswith(start) and "Run by" in caption]
    assert len(found) == 1, f"{start!r} stands on the page {len(found)} times"
    return found[0]


def promised(text):
    """What the page says that a block prints."""
    index = [block[2] for block in BLOCKS].index(text)
    _, caption, printed = BLOCKS[index + 1]
    assert caption == "It prints"
    return printed


def environment():
    """The programs of this environment, this checkout's package, no network but the loopback."""
    here = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "CUDA_VISIBLE_DEVICES": "",
    }
    return {name: value for name, value in here.items() if name not in ("RANK", "WORLD_SIZE")}


def in_a_process(command, folder):
    """What a command prints; it runs in a process group of its own, so that nothing of it outlives the test."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, errors = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            raise
    assert process.returncode == 0, errors
    return printed


def assert_prints(printed, expected, tolerance):
    """The same words, and the same numbers but for the rounding of another processor."""
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (printed, expected)]
    assert numbers[0] == pytest.approx(numbers[1], abs=tolerance)


def script(text, folder):
    """What `python path arguments` prints; run in this process, which has imported torch and transformers already."""
    python, path, *arguments = shlex.split(text)
    assert python == "python"
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.chdir(folder)
        patch.setattr(sys, "argv", [path, *arguments])
        runpy.run_path(path, run_name="__main__")
    return printed.getvalue()


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder to work in as a reader would, with the model that the page's first command makes."""
    folder = tmp_path_factory.mktemp("reader")
    (folder / "book").symlink_to(ROOT / "book")
    text = command("python book/scripts/small_model.py")
    assert_prints(script(text, folder), promised(text), tolerance=0.05)
    return folder


def run_python(text, folder, monkeypatch):
    monkeypatch.chdir(folder)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "book/beyond_one_machine.md", "exec"), {})
    return printed.getvalue()


def test_every_block_says_whether_it_is_run():
    captions = {caption for language, caption, _ in BLOCKS if language in ("bash", "python")}
    assert all(caption.startswith(("Run by the tests", "Not run; ")) for caption in captions)
    assert not re.findall(r"```(?:bash|python)\n", PAGE), "a block without a caption"
    assert sum(language == "bash" for language, _, _ in BLOCKS) == 16


def test_the_model_speaks_in_a_python_without_this_book(workplace, monkeypatch):
    text = command("from transformers import pipeline")
    assert run_python(text, workplace, monkeypatch) == promised(text)


def test_text_goes_in_and_out_of_this_books_model(workplace, monkeypatch):
    text = command("from transformers import AutoTokenizer, TextStreamer")
    assert run_python(text, workplace, monkeypatch) == promised(text)


def test_the_mixture_goes_through_the_adapter(workplace, monkeypatch):
    text = command("import torch\nfrom transformers import AutoModelForCausalLM, DynamicCache")
    assert run_python(text, workplace, monkeypatch) == promised(text)


def test_the_file_for_llama_cpp_is_written(workplace, monkeypatch, capsys):
    text = command("python -m minimind_edu.hf.gguf")
    monkeypatch.chdir(workplace)
    gguf.main(shlex.split(text)[3:])
    assert capsys.readouterr().out == promised(text)
    assert b"tokenizer.ggml.merges" in (workplace / "my-model.gguf").read_bytes()


# Memory


def test_where_the_memory_goes_is_counted(workplace, monkeypatch):
    text = command("from minimind_edu import MiniMindConfig\nfrom minimind_edu.measure.memory")
    assert run_python(text, workplace, monkeypatch) == promised(text)


def test_what_a_gpu_measured_stands_beside_it(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    text = command("python -m benchmarks.memory")
    memory.main(shlex.split(text)[3:])
    assert capsys.readouterr().out == promised(text)


def test_the_sentences_about_memory_have_the_figures_numbers():
    small = MiniMindConfig()
    whole = training_memory(small, 32, 512)
    tokens = 32 * 512
    assert f"One token leaves {whole.activations / tokens / 1e6:.2f} MB" in PAGE
    assert f"the figure's {(whole.activations + whole.logits) / tokens / 1e3:.0f} kB a token" in PAGE
    assert f"{tokens:,} tokens leave {whole.activations / 1e9:.1f} GB" in PAGE
    assert f"which is {whole.activations / (whole.weights + whole.adam):.0f} times all that belongs" in PAGE
    assert whole.peak > 8e9  # a card of 8 GB is too small
    assert 4 * 4 * num_weights(small) == pytest.approx(0.4e9, rel=0.05)
    half = training_memory(small, 16, 512)
    assert 0.5 < half.peak / whole.peak < 0.55  # "nearly half the memory"
    lora = training_memory(small, 32, 512, "lora")
    assert 1 - lora.activations / whole.activations == pytest.approx(0.2, abs=0.02)  # "In float32 it is a fifth"
    for length in (512, 2048):
        lora, with_all = (training_memory(small, 8, length, kind, autocast=True) for kind in ("lora", "train"))
        assert 1 - lora.activations / with_all.activations == pytest.approx(0.4, abs=0.03)  # "two fifths"
    lora, long = (training_memory(small, 8, 2048, kind) for kind in ("lora", "train"))
    assert 1 - lora.activations / long.activations < 0.15  # "less in longer texts"
    weights = small.num_hidden_layers * small.num_attention_heads * 2048 * 4  # of attention, for each token
    assert weights > (long.activations + long.logits) / (8 * 2048) - weights  # "more than all else that a token leaves"


# Training


@pytest.fixture(scope="module")
def after_one_process(workplace):
    """What one process prints, and the folder of the model after its step."""
    text = command("python book/scripts/train_step.py my-model")
    printed = script(text.strip() + " --save after-1", workplace)
    assert_prints(printed, promised(text), tolerance=0.05)
    return printed, workplace / "after-1"


def weights_of(folder):
    return load_file(folder / "model.safetensors")


STEPS = ["2", "5", "2-sharded"]


def with_torchrun(step):
    """The page's command: so many processes with a copy each, or with parts of the weights."""
    start = f"torchrun --standalone --nproc-per-node {step[0]} book/scripts/train_step.py my-model"
    return command(f"{start} --shard" if "sharded" in step else f"{start}\n")


@pytest.fixture(scope="module")
def after_several(workplace):
    """What the processes of each way print; the model after their step is in after-{way}."""
    lines = {step: f"{with_torchrun(step).strip()} --save after-several-{step}" for step in STEPS}
    return {step: in_a_process(shlex.split(line), workplace) for step, line in lines.items()}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.long
def test_several_processes_take_the_step_of_one(workplace, after_one_process, after_several, step):
    """With five, one of them has no text; sharded, none of them has all weights."""
    printed_by_one, after = after_one_process
    printed = after_several[step]
    assert_prints(printed, promised(with_torchrun(step)), tolerance=0.05)
    assert_prints(printed.replace(f"processes: {step[0]}", "processes: 1"), printed_by_one, tolerance=5e-4)
    before, one = weights_of(workplace / "my-model"), weights_of(after)
    several = weights_of(workplace / f"after-several-{step}")
    assert before.keys() == one.keys() == several.keys()
    for name in one:
        change = (one[name] - before[name]).abs().max()
        assert change > 1e-5, f"{name} did not change, so nothing was compared"
        assert (several[name] - one[name]).abs().max() < 1e-4 * change + 1e-7, name


def test_the_heads_have_a_size_that_serving_engines_know(workplace):
    assert json.loads((workplace / "my-model" / "config.json").read_text(encoding="utf-8"))["head_dim"] == 64


def train_step_module():
    path = ROOT / "book" / "scripts" / "train_step.py"
    spec = importlib.util.spec_from_file_location("train_step", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_mean_of_means_would_be_another_step(workplace, after_one_process):
    """What the page warns of, and what the tests above would notice."""
    printed, _ = after_one_process
    folder = workplace / "my-model"
    model = AutoModelForCausalLM.from_pretrained(folder)
    batch = train_step_module().texts_of(AutoTokenizer.from_pretrained(folder))
    loss, tokens = 0.0, []
    for rank in range(2):
        share = {name: values[rank::2] for name, values in batch.items()}
        half = model(**share).loss / 2
        half.backward()
        loss += half.item()
        tokens.append((share["labels"][:, 1:] != -100).sum().item())
    gradients = torch.stack([parameter.grad.norm() for parameter in model.parameters()])
    _, norm = (float(number) for number in NUMBER.findall(printed))
    assert abs(gradients.norm().item() - norm) > 0.05
    told = re.search(r"shares of (\d+) and (\d+) tokens .+: loss ([\d.]+), gradient norm ([\d.]+)\.\n", PAGE).groups()
    assert [int(count) for count in told[:2]] == tokens
    assert [float(number) for number in told[2:]] == pytest.approx([loss, gradients.norm().item()], abs=0.05)


def test_the_page_shows_the_scripts_that_are_run():
    for name, part in (("small_model.py", "SENTENCE ="), ("train_step.py", "def train_step")):
        assert f"literalinclude}} scripts/{name}" in PAGE
        assert part in (ROOT / "book" / "scripts" / name).read_text(encoding="utf-8")


def test_the_memory_of_one_copy_is_what_the_page_says():
    count = MiniMindForCausalLM(MiniMindConfig.minimind3()).num_parameters()
    assert f"{count:,} parameters" in PAGE
    assert f"{16 * count / 1e9:.2f} GB" in PAGE


# Serving


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(text, folder, port):
    """The command while it runs, from the moment it takes connections."""
    log = folder / "server.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-c", "exec " + text],
            cwd=folder,
            env=environment(),
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        for _ in range(240):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, log.read_text()
            time.sleep(0.5)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_the_served_model_answers_with_its_sentence(workplace):
    for module in ("fastapi", "uvicorn", "openai"):
        pytest.importorskip(module, reason="pip install 'transformers[serving]'")
    port = free_port()
    serve = command("transformers serve my-model").replace("8000", str(port))
    ask = command("curl ")
    data = re.search(r"-d '(.*)'", ask)[1]
    address = re.search(r"http://\S+", ask)[0].replace("8000", str(port))
    request = urllib.request.Request(address, data.encode(), headers={"Content-Type": "application/json"})
    with server(serve, workplace, port), urllib.request.urlopen(request, timeout=120) as answer:
        said = json.load(answer)["choices"][0]["text"]
    assert f"the rest of the sentence: `{said}`" in PAGE
