"""`minimind-edu check`: what it takes, how it ends, and its one sentence where it cannot."""

import re

import pytest
import torch
from model_builders import tiny_config
from situations import chat, curve, write_log, write_rows
from tokenizer_builders import write_tokenizer

from minimind_edu import MiniMindForCausalLM
from minimind_edu import __main__ as program
from minimind_edu.hf import export

FALLING = curve((0, 8.86), (100, 5.25), (500, 3.6), (1500, 2.8), noise=0.05)


def run(*arguments):
    program.main(["check", *map(str, arguments)])


def ends(code, *arguments):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == code


@pytest.fixture
def folder(tmp_path):
    """The folder of a small model with its tokenizer."""
    torch.manual_seed(0)
    model = MiniMindForCausalLM(tiny_config("minimind3", vocab_size=300, max_position_embeddings=256))
    return export(model, tmp_path / "mine", tokenizer=write_tokenizer(tmp_path / "tokenizer"))


def test_a_model_a_log_and_data_come_on_one_screen(folder, tmp_path, capsys):
    log = write_log(tmp_path / "pretrain.log", FALLING)
    rows = write_rows(tmp_path / "sft.jsonl", [chat()] * 3)
    ends(1, folder, "--log", log, "--data", rows, "--max-length", 60)  # untrained: it knows no text
    shown = capsys.readouterr().out
    titles = re.findall(r"^(?=\S)(.+)$", shown, re.MULTILINE)
    assert titles[:3] == ["mine", "pretrain.log", "sft.jsonl"] and titles[3].startswith("wrong 2, look here 2, fine ")
    text = " ".join(shown.split())
    assert "the model knows neither" in text and "as a blind guess among" in text and "ln 300" not in text
    assert max(map(len, shown.splitlines())) <= 80


def test_a_log_alone_needs_no_model_and_nothing_wrong_ends_with_0(tmp_path, capsys):
    run("--log", write_log(tmp_path / "train.log", FALLING))
    assert capsys.readouterr().out.splitlines()[-1].startswith("fine ")


def test_the_language_is_asked_for_or_that_of_the_notebooks(tmp_path, capsys, monkeypatch):
    log = write_log(tmp_path / "train.log", FALLING)
    run("--log", log, "--language", "zh")
    chinese = capsys.readouterr().out
    assert "起点" in chinese and "正常" in chinese
    monkeypatch.setenv("MINIMIND_EDU_LANGUAGE", "zh")
    run("--log", log)
    assert capsys.readouterr().out == chinese
    run("--log", log, "--language", "en")
    assert "start" in capsys.readouterr().out


def test_a_picture_is_written_and_told(tmp_path, capsys):
    log = write_log(tmp_path / "train.log", FALLING)
    run("--log", log, "--picture", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5000 and "curve.png" in capsys.readouterr().err


def test_the_stage_may_be_said(tmp_path, capsys):
    log = write_log(tmp_path / "train.log", curve((0, 7.4), (2000, 2.0)))
    run("--log", log)
    ends(1, "--log", log, "--stage", "sft")
    assert "no trained weights were loaded" in " ".join(capsys.readouterr().out.split())


def test_two_files_are_compared(folder, tmp_path, capsys):
    run(folder, "--same-as", folder)
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        shown.startswith("mine = mine?")
        and "bit for bit" in shown
        and "one model: they differ by at most 0 of" in shown
    )


def test_a_tokenizer_that_is_given_goes_before_the_one_beside_the_model(folder, tmp_path, capsys):
    rows = write_rows(tmp_path / "sft.jsonl", [chat()])
    run("--data", rows, "--tokenizer", tmp_path / "tokenizer", "--max-length", 60)
    assert "count for the loss" in " ".join(capsys.readouterr().out.split())
    ends(2, folder, "--tokenizer", tmp_path)
    assert "there is no tokenizer.json in" in capsys.readouterr().err


REFUSED = [
    ((), "there is nothing to check; give MODEL, --log FILE, --data FILE, or several of them"),
    (("--same-as", "x"), "there is nothing to check"),
    (("--log", "none.log"), "there is no log none.log"),
    (("--log", "{log}", "--same-as", "x"), "--same-as needs MODEL"),
    (("--log", "{log}", "--lora", "x"), "--lora needs --same-as BASE, the model before it was merged"),
    (("{model}", "--picture", "a.png"), "--picture needs --log FILE, whose curve it draws"),
    (("{model}", "--stage", "sft"), "--stage needs --log FILE"),
    (("{model}", "--max-length", "9"), "--max-length needs --data FILE"),
    (("{model}", "--data", "{rows}", "--max-length", "2"), "--max-length must be at least 3, got 2"),
    (("{model}", "--data", "{rows}", "--rows", "-1"), "--rows must be at least 0, got -1"),
    (("--data", "{rows}"), "--data is made into tokens: give MODEL with its tokenizer, or --tokenizer FOLDER"),
    (("{model}", "--data", "none.jsonl"), "there is no data none.jsonl"),
    (("{model}", "--same-as", "none"), "there is no file or folder none"),
    (("{model}", "--same-as", "{model}", "--lora", "none.pth"), "there is no adapter none.pth"),
    (("none.gguf",), "there is no file or folder none.gguf"),
    (("{log}",), "weights are read from"),
    (("--log", "{log}", "--picture", "a.pdf"), "a picture's name must end in .png, .svg, .html, got 'a.pdf'"),
    (("--log", "{log}", "--picture", "none/a.png"), "there is no folder"),
]


@pytest.mark.parametrize("arguments, sentence", REFUSED, ids=[sentence[:30] for _, sentence in REFUSED])
def test_what_it_cannot_do_is_one_sentence(arguments, sentence, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log, rows = write_log(tmp_path / "train.log", FALLING), write_rows(tmp_path / "sft.jsonl", [chat()])
    ends(2, *(argument.format(log=log, model=folder, rows=rows) for argument in arguments))
    told = capsys.readouterr().err
    assert told.startswith("minimind-edu: ") and sentence in told and told.count("\n") == 1


def test_a_damaged_gguf_file_is_one_sentence(tmp_path, capsys):
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(60))
    ends(2, tmp_path / "model.gguf")
    told = capsys.readouterr().err
    assert told.startswith("minimind-edu: ") and told.count("\n") == 1 and "model.gguf" in told


def test_a_pointer_of_git_lfs_is_told_as_one(tmp_path, capsys):
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    ends(2, tmp_path / "model.safetensors")
    assert "is a Git LFS pointer instead of the file itself" in capsys.readouterr().err
