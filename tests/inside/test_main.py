"""`python -m minimind_edu open`: what it writes, what it serves, and what it says when it cannot."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import torch
from cases import long_after
from own_models import own_folder, own_model

from minimind_edu import __main__ as program
from minimind_edu import save_checkpoint, world


def run(*arguments):
    program.main(["open", *map(str, arguments)])


def data_of(file):
    text = file.read_text(encoding="utf-8")
    return json.loads(text.partition('id="data">')[2].partition("</script>")[0])


def test_a_folder_becomes_one_file(tmp_path, capsys):
    own_folder(tmp_path / "mine")
    target = tmp_path / "page.html"
    run(tmp_path / "mine", "-o", target, "--text", "我爱你")
    data, told = data_of(target), capsys.readouterr().err
    assert (data["name"], data["text"], data["tokenizer"]["kind"]) == ("mine", "我爱你", "bpe")
    assert told.splitlines()[-1].startswith(f"  {target}: ") and "It holds the weights" in told


def test_without_a_model_the_books_own_is_opened(tmp_path):
    run("-o", tmp_path / "page.html")
    data = data_of(tmp_path / "page.html")
    assert data["tokenizer"]["content"]["words"] == list(world.WORDS)
    world.encode(data["text"])


def test_its_language_is_asked_for_or_that_of_the_notebooks(tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    run("-o", target, "--language", "zh")
    assert data_of(target)["name"] == "本书的模型" and 'lang="zh-CN"' in target.read_text(encoding="utf-8")
    monkeypatch.setenv("MINIMIND_EDU_LANGUAGE", "zh")
    run("-o", target)
    assert data_of(target)["name"] == "本书的模型"
    run("-o", target, "--language", "en")
    assert data_of(target)["name"] == "the book's own model"


def test_a_part_is_asked_for_by_its_name(tmp_path, capsys):
    target = tmp_path / "page.html"
    run("-o", target, "--at", "cache")
    assert data_of(target)["at"] == "cache"
    with pytest.raises(SystemExit):
        run("-o", target, "--at", "experts")
    assert "this model has no experts; its feed-forward network is at 'feed-forward'" in capsys.readouterr().err


def test_without_a_tokenizer_ids_are_taken_and_a_folder_may_give_one(tmp_path, capsys):
    file = save_checkpoint(own_model(vocab_size=300), tmp_path / "alone.safetensors")
    run(file, "-o", tmp_path / "page.html")
    assert "no tokenizer.json" in capsys.readouterr().err
    data = data_of(tmp_path / "page.html")
    assert (data["name"], data["tokenizer"], data["text"]) == ("alone", None, "1 2 3")
    own_folder(tmp_path / "other")
    run(file, "-o", tmp_path / "page.html", "--tokenizer", tmp_path / "other", "--bits", 32)
    data = data_of(tmp_path / "page.html")
    assert data["tokenizer"]["kind"] == "bpe" and data["bits"] == 32


def test_a_tokenizer_that_the_page_does_not_know_is_named(tmp_path, capsys):
    own_folder(tmp_path / "mine")
    file = tmp_path / "mine/tokenizer.json"
    content = json.loads(file.read_text())
    content["normalizer"] = {"type": "Lowercase"}
    file.write_text(json.dumps(content))
    run(tmp_path / "mine", "-o", tmp_path / "page.html")
    message = capsys.readouterr().err
    assert (
        "normalizes text by Lowercase; the page knows NFC, NFD, " in message
        and ". So the page takes token ids" in message
    )
    assert data_of(tmp_path / "page.html")["tokenizer"] is None


@pytest.mark.parametrize(
    "language, plain, chat", [("en", "The model reads", "Who are you?"), ("zh", "模型从左", "你是谁？")]
)
def test_the_first_text_is_of_the_language_and_for_a_chat_a_question(tmp_path, language, plain, chat):
    own_folder(tmp_path / "mine")
    target = tmp_path / "page.html"
    run(tmp_path / "mine", "-o", target, "--language", language)
    assert data_of(target)["text"] == chat
    (tmp_path / "mine/tokenizer_config.json").unlink()
    run(tmp_path / "mine", "-o", target, "--language", language)
    assert data_of(target)["text"].startswith(plain) and data_of(target)["chat"] is None


@pytest.mark.parametrize(
    "change, reason",
    {
        "no transformers": (lambda folder, patch: patch.setitem(sys.modules, "transformers", None), "pip install "),
        "broken": (
            lambda folder, _: (folder / "tokenizer_config.json").write_text(
                json.dumps({"chat_template": "{{ raise_exception('no') }}"})
            ),
            "it fails (TemplateError: no)",
        ),
        "another": (
            lambda folder, _: (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "the same"})),
            "it leaves out what the user says",
        ),
    }.values(),
)
def test_a_chat_template_that_is_not_used_is_told(tmp_path, capsys, monkeypatch, change, reason):
    own_folder(tmp_path / "mine")
    change(tmp_path / "mine", monkeypatch)
    run(tmp_path / "mine", "-o", tmp_path / "page.html")
    [told] = [line for line in capsys.readouterr().err.splitlines() if "mine has a chat template, but " in line]
    assert reason in told and told.endswith("The page works without the chat")
    assert data_of(tmp_path / "page.html")["chat"] is None


def test_tokens_that_nobody_compares_are_told(tmp_path, capsys, monkeypatch):
    own_folder(tmp_path / "mine")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    run(tmp_path / "mine", "-o", tmp_path / "page.html")
    assert "optional check skipped: with tokenizers (pip install tokenizers), its tokens" in capsys.readouterr().err
    assert data_of(tmp_path / "page.html")["check"]["texts"] == []


def test_what_nothing_says_of_bare_weights_is_told_and_stands_on_the_page(tmp_path, capsys):
    model = own_model("minimind2", hidden_size=64, head_dim=16, num_attention_heads=4, num_key_value_heads=4)
    file = tmp_path / "full_sft_64.pth"
    torch.save(model.state_dict(), file)
    run(file, "-o", tmp_path / "page.html")
    taken = "num_attention_heads=8, rope_theta=1000000.0, rope_scaling=None, rms_norm_eps=1e-05"
    taken += ", max_position_embeddings=32768"
    told = f"no config.json tells of these weights: taken for {taken}, as MiniMind2 has"
    assert told in capsys.readouterr().err
    data = data_of(tmp_path / "page.html")
    assert data["assumed"] == {name: data["config"][name] for name in data["assumed"]} and len(data["assumed"]) == 5
    run(save_checkpoint(model, tmp_path / "ours.safetensors"), "-o", tmp_path / "page.html")
    assert "taken for" not in capsys.readouterr().err and data_of(tmp_path / "page.html")["assumed"] is None
    (tmp_path / "folder").mkdir()
    file = file.rename(tmp_path / "folder/full_sft_64.pth")
    described = {"hidden_size": 99}
    (tmp_path / "folder/config.json").write_text(json.dumps(described))
    run(file, "-o", tmp_path / "page.html")
    assert "config.json in the same folder is left aside" in capsys.readouterr().err
    described = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "rope_theta": 1e4}
    (tmp_path / "folder/config.json").write_text(json.dumps(described))
    for place in (file, tmp_path / "folder"):
        run(place, "-o", tmp_path / "page.html")
        assert "taken for" not in capsys.readouterr().err
        data = data_of(tmp_path / "page.html")
        assert data["assumed"] is None and data["config"]["num_attention_heads"] == 4


@pytest.mark.parametrize(
    "arguments, sentence",
    {
        "nothing there": (["{tmp}/nothing"], "there is no file or folder"),
        "no weights": (["{tmp}/empty"], "empty"),
        "no folder": (["-o", "{tmp}/no/page.html"], "there is no folder"),
        "a link to no folder": (["-o", "{tmp}/astray.html"], "there is no folder {tmp}/no to save page.html in"),
        "a folder": (["-o", "{tmp}/folder.html"], "folder.html is a folder, so no file can be saved there"),
        "a link to a folder": (["-o", "{tmp}/inside.html"], "inside.html is a folder, so no file can be saved there"),
        "positions": (["{tmp}/positions"], "max_position_embeddings is a number of 400 digits"),
        "another ending": (["-o", "{tmp}/page.txt"], "must end in .html, got 'page.txt'"),
        "too large": (
            ["{tmp}/large.safetensors"],
            "a page holds up to 150 million of them, 0.6 GB in float32; in a notebook",
        ),
        "a name on the Hub": (["someone/tiny"], "a model of that name; --download fetches it"),
        "no name": (["MiniMind2"], "no file or folder MiniMind2; on the Hub it is user/name, with --download"),
        "no Hub": (["someone/tiny", "--download"], "someone/tiny cannot be fetched: the Hub does not answer, and"),
        "no tokenizer": (["{tmp}/bare.safetensors", "--tokenizer", "{tmp}/nowhere"], "no tokenizer.json in "),
        "another tokenizer": (
            ["{tmp}/bare.safetensors", "--tokenizer", "{tmp}/other"],
            "the model's vocabulary ends at 60: it is another's",
        ),
        "no ids": (
            ["{tmp}/bare.safetensors", "--text", "hello world", "-o", "{tmp}/page.html"],
            "without a tokenizer --text is token ids from 0 to 60, such as 1 2 3, got 'hello world'",
        ),
        "no such id": (["{tmp}/bare.safetensors", "--text", "1 61"], "token ids from 0 to 60"),
        "no words": (["--text", "Mia is in the xylophone"], "'xylophone' is no word of this world"),
    }.values(),
)
def test_what_is_impossible_is_a_sentence(tmp_path, capsys, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for folder in ("empty", "folder.html", "positions"):
        (tmp_path / folder).mkdir()
    (tmp_path / "inside.html").symlink_to(tmp_path / "folder.html")
    (tmp_path / "astray.html").symlink_to(tmp_path / "no/page.html")
    torch.save(own_model().state_dict(), tmp_path / "positions/m.pth")
    (tmp_path / "positions/config.json").write_text('{"max_position_embeddings": ' + 400 * "9" + "}")
    own_folder(tmp_path / "other")
    save_checkpoint(own_model(), tmp_path / "bare.safetensors")
    with (tmp_path / "large.safetensors").open("wb") as file:
        file.truncate(700_000_000)  # a hole: it takes no room
    with pytest.raises(SystemExit) as ended:
        run(*(one.format(tmp=tmp_path) for one in arguments))
    told = capsys.readouterr().err
    assert ended.value.code == 2 and sentence.format(tmp=tmp_path) in told and "Traceback" not in told
    assert told.splitlines()[-1].startswith("minimind-edu: ") and not (tmp_path / "page.html").exists()


# What is left of the memory is given after what the program takes by itself.
IN_LITTLE_MEMORY = """
import resource, sys
from minimind_edu import __main__ as program
pages = int(open("/proc/self/statm").read().split()[0])
room = pages * resource.getpagesize() + int(sys.argv[1]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (room, room))
program.main(["open", *sys.argv[2:]])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system's own count of memory")
@pytest.mark.parametrize("room", long_after(1, [70, 10, 140]), ids=lambda room: f"{room} MiB")
def test_too_little_memory_is_a_sentence(tmp_path, room):
    sizes = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 5, "num_attention_heads": 8}
    model = own_model("minimind2", head_dim=64, num_key_value_heads=8, **sizes)
    assert 60 < model.num_parameters() * 4 / 2**20 < 100
    file = save_checkpoint(model, tmp_path / "large.safetensors")
    command = [sys.executable, "-c", IN_LITTLE_MEMORY, str(room), str(file), "-o", str(tmp_path / "page.html")]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120)
    assert ended.stderr.splitlines()[-1] == "minimind-edu: there is not enough memory for this model"
    assert ended.returncode == 2 and "Traceback" not in ended.stderr


@pytest.mark.parametrize("vocab_size", [1, 2, 3, 4])
def test_a_tiny_vocabulary_has_a_first_text(vocab_size, tmp_path):
    model = own_model("minimind2", vocab_size=vocab_size, bos_token_id=None, eos_token_id=None)
    run(save_checkpoint(model, tmp_path / "m.safetensors"), "-o", tmp_path / "page.html")
    ids = [int(id) for id in data_of(tmp_path / "page.html")["text"].split()]
    assert ids == [id for id in (1, 2, 3) if id < vocab_size] or ids == [0] and vocab_size == 1


def test_a_link_stays_a_link_and_leads_to_the_page(tmp_path):
    (tmp_path / "store").mkdir()
    link, page = tmp_path / "link.html", tmp_path / "store/page.html"
    link.symlink_to(page)
    for text in ("Mia is in the kitchen", "Tom is in the hall"):  # the first time it leads to nothing yet
        run("-o", link, "--text", text)
        assert link.is_symlink() and data_of(page)["text"] == text
    assert [*(tmp_path / "store").iterdir()] == [page]


def test_ctrl_c_while_the_page_is_built_ends_it_without_a_word(tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(program, "write_page", interrupted)
    with pytest.raises(SystemExit) as ended:
        run("-o", tmp_path / "page.html")
    assert ended.value.code == 130 and capsys.readouterr().err == ""


def test_another_error_of_torch_is_not_hidden(monkeypatch):
    def fails(*_):
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(program, "_open", fails)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        run()


def test_without_a_file_it_is_served_until_ctrl_c_and_then_gone(monkeypatch, capsys):
    seen = {}

    def look(address):
        seen["address"] = address

    def serve(server):
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with urllib.request.urlopen(seen["address"], timeout=30) as answer:
            seen["page"] = answer.read().decode()
        thread.join()
        seen["file"] = server.page
        raise KeyboardInterrupt

    monkeypatch.setattr(program.webbrowser, "open", look)
    monkeypatch.setattr(program.PageServer, "serve_forever", serve)
    run()
    told = capsys.readouterr().err
    assert "Inside the book" in seen["page"] and seen["address"] in told
    assert "this is the book's own model. Yours: python -m minimind_edu open FOLDER_OR_FILE" in told
    assert not seen["file"].exists()


SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def started(tmp_path, *arguments):
    """The program, in a folder for its temporary files and with nothing of its own ignored."""
    environment = os.environ | {"TMPDIR": str(tmp_path), "BROWSER": "true"}
    command = [sys.executable, "-m", "minimind_edu", "open", *map(str, arguments)]

    def heard():
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)

    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=heard)


@pytest.mark.parametrize("times, number", long_after(1, itertools.product((20, 1), SIGNALS)))
def test_a_program_that_is_ended_leaves_no_page_and_no_server(number, times, tmp_path):
    with started(tmp_path) as running:
        said = itertools.takewhile(lambda line: "Ctrl-C" not in line, running.stderr)
        [address] = [line.strip() for line in said if "http://" in line]
        assert [*tmp_path.iterdir()]
        for _ in range(times):  # as somebody does who is in a hurry
            running.send_signal(number)
        assert running.wait(timeout=60) == (0 if number == signal.SIGINT else 128 + number)
        assert "Traceback" not in running.stderr.read()
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=30)


@pytest.mark.parametrize(
    "said, number", long_after(1, itertools.product(("writing the page", "rounding the weights"), reversed(SIGNALS)))
)
def test_a_page_that_is_being_written_when_the_program_ends_leaves_nothing(number, said, tmp_path):
    model = own_model("minimind2", hidden_size=512, intermediate_size=2048, num_attention_heads=8, head_dim=64)
    save_checkpoint(model, tmp_path / "m.safetensors")
    (tmp_path / "pages").mkdir()
    before = sorted(tmp_path.iterdir())
    with started(tmp_path, tmp_path / "m.safetensors", "-o", tmp_path / "pages/page.html") as running:
        assert any(said in line for line in running.stderr)
        running.send_signal(number)
        ended = running.wait(timeout=60)
        assert "Traceback" not in running.stderr.read()
    assert ended in (0, 128 + number) and sorted(tmp_path.iterdir()) == before
    assert [file.name for file in (tmp_path / "pages").iterdir()] == ([] if ended else ["page.html"])


def test_what_a_caller_ignores_stays_ignored(tmp_path):
    """nohup lets the program live on when the terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with program._ended_by_signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, signal.SIG_DFL)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_its_name_is_installed():
    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"minimind-edu": f"{program.__name__}:{program.main.__name__}"}
