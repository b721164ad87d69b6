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
    assert "normalizes text by Lowercase; the page knows NFC. So the page takes token ids" in capsys.readouterr().err
    assert data_of(tmp_path / "page.html")["tokenizer"] is None


@pytest.mark.parametrize(
    "arguments, sentence",
    {
        "nothing there": (["{tmp}/nothing"], "there is no file or folder"),
        "no weights": (["{tmp}/empty"], "empty"),
        "no folder": (["-o", "{tmp}/no/page.html"], "there is no folder"),
        "another ending": (["-o", "{tmp}/page.txt"], "must end in .html, got 'page.txt'"),
        "too large": (
            ["{tmp}/large.safetensors"],
            "a page holds up to 150 million of them, 0.6 GB in float32; in a notebook",
        ),
    }.values(),
)
def test_what_is_impossible_is_a_sentence(tmp_path, capsys, arguments, sentence):
    (tmp_path / "empty").mkdir()
    with (tmp_path / "large.safetensors").open("wb") as file:
        file.truncate(700_000_000)  # a hole: it takes no room
    with pytest.raises(SystemExit) as ended:
        run(*(one.format(tmp=tmp_path) for one in arguments))
    told = capsys.readouterr().err
    assert ended.value.code == 2 and sentence in told and "Traceback" not in told


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
    assert "Inside the book" in seen["page"] and seen["address"] in capsys.readouterr().err
    assert not seen["file"].exists()


def test_a_program_that_is_ended_leaves_no_page_and_no_server(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path), "BROWSER": "true"}
    command = [sys.executable, "-m", "minimind_edu", "open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as running:
        assert running.stderr
        said = itertools.takewhile(lambda line: "Ctrl-C" not in line, running.stderr)
        [address] = [line.strip() for line in said if "http://" in line]
        assert [*tmp_path.iterdir()]
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=60) == 128 + signal.SIGTERM
        assert "Traceback" not in running.stderr.read()
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=30)


def test_its_name_is_installed():
    scripts = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"minimind-edu": f"{program.__name__}:{program.main.__name__}"}
