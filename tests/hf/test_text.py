"""Text in and out: transformers' tokenizers and streamers work with this package's own generate and stream."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from model_builders import tiny_model, token_ids
from tokenizer_builders import write_tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, TextIteratorStreamer, TextStreamer

from minimind_edu import from_checkpoint
from minimind_edu.hf import export

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
PROMPTS = ("我爱编程，你呢？", "what did the model write")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with a tokenizer and a chat template, as transformers keeps them."""
    place = tmp_path_factory.mktemp("text")
    model = tiny_model("minimind3", vocab_size=300, dtype=torch.float32, max_position_embeddings=256)
    return export(model, place / "model", tokenizer=write_tokenizer(place / "tokens"))


@pytest.fixture(scope="module")
def model(folder):
    return from_checkpoint(folder)


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder, padding_side="left")


def test_conversations_are_continued_as_transformers_continues_them(folder, model, tokenizer):
    """Two of different length in one batch."""
    chats = [[{"role": "user", "content": text}] for text in PROMPTS]
    batch = tokenizer.apply_chat_template(
        chats, add_generation_prompt=True, padding=True, return_tensors="pt", return_dict=True
    )
    ids, mask = batch.input_ids, batch.attention_mask
    assert not mask.all()
    theirs = AutoModelForCausalLM.from_pretrained(folder)
    expected = theirs.generate(ids, attention_mask=mask, max_new_tokens=20, do_sample=False)
    found = model.generate(ids, 20, attention_mask=mask, pad_token_id=tokenizer.pad_token_id)
    assert tokenizer.batch_decode(found) == tokenizer.batch_decode(expected)


def test_a_prompt_is_continued_alike_alone_and_in_a_padded_batch(model, tokenizer):
    batch = tokenizer(list(PROMPTS), padding=True, return_tensors="pt")
    together = model.generate(batch.input_ids, 20, attention_mask=batch.attention_mask)
    for prompt, row in zip(PROMPTS, together, strict=True):
        alone = model.generate(tokenizer(prompt, return_tensors="pt").input_ids, 20)[0]
        assert tokenizer.decode(row, skip_special_tokens=True) == tokenizer.decode(alone, skip_special_tokens=True)


def test_streamed_text_is_the_text_of_all_tokens_together(model, tokenizer, capsys):
    for seed in range(5):
        ids = token_ids(1, 6, seed=seed)
        expected = tokenizer.decode(model.generate(ids, 40)[0, 6:], skip_special_tokens=True)
        pieces = TextIteratorStreamer(tokenizer, skip_special_tokens=True)
        printed = TextStreamer(tokenizer, skip_special_tokens=True)
        for token in model.stream(ids, 40):
            pieces.put(token)
            printed.put(token)
        pieces.end()
        printed.end()
        assert "".join(pieces) == expected
        assert capsys.readouterr().out == expected + "\n"


def test_the_lines_of_the_readme_work(folder, tmp_path, monkeypatch, capsys):
    section = README.split("## Real weights in, yours out")[1].split("\n## ")[0]
    (lines,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    (tmp_path / "MiniMind2").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    exec(compile(lines, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip(), "the answer is streamed"
    ids = token_ids(1, 6)
    assert torch.equal(from_checkpoint("my-model")(ids).logits, from_checkpoint("MiniMind2")(ids).logits)


@pytest.mark.long
def test_nothing_optional_or_slow_is_imported_before_it_is_needed():
    later = ("transformers", "huggingface_hub", "tokenizers", "jinja2", "torch._dynamo")
    imported = "minimind_edu.checks, minimind_edu.fast, minimind_edu.figures, minimind_edu.trained.living"
    code = f"import sys, {imported}; print([name for name in {later} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
