import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from model_builders import tiny_model
from tokenizer_builders import ROLES, SPECIAL, TEMPLATE, train_tokens, write_tokenizer
from tokenizers import processors
from transformers import AutoTokenizer

from minimind_edu.tokenizer import Tokenizer

TEXT = "我爱编程, and the model 😀"
CHAT = [{"role": "user", "content": "爱"}, {"role": "assistant", "content": "love"}]


@pytest.fixture
def folder(tmp_path):
    return write_tokenizer(tmp_path / "model")


@pytest.fixture
def tokenizer(folder):
    return Tokenizer.from_folder(folder)


@pytest.fixture
def theirs(folder):
    return AutoTokenizer.from_pretrained(folder)


def test_ids_and_texts_are_those_of_transformers(tokenizer, theirs):
    assert tokenizer.encode(TEXT) == theirs(TEXT)["input_ids"]
    ids = [1, *tokenizer.encode(TEXT), 2]
    for skip in (True, False):
        assert tokenizer.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
    assert tokenizer.decode(torch.tensor(ids)) == tokenizer.decode(ids) == f"<|im_start|>{TEXT}<|im_end|>"
    assert tokenizer.vocab_size == len(theirs)


def test_special_tokens_have_their_ids(tokenizer, theirs):
    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    assert [getattr(tokenizer, name) for name in names] == [1, 2, 0]
    assert [getattr(tokenizer, name) for name in names] == [getattr(theirs, name) for name in names]
    assert tokenizer.special_tokens == ROLES, "add_bos_token is a switch and no token"


def test_special_tokens_may_be_written_as_dictionaries(tmp_path):
    folder = write_tokenizer(tmp_path / "m", bos_token={"content": "<|im_start|>", "lstrip": False}, pad_token=None)
    tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.bos_token_id == 1
    assert tokenizer.pad_token_id is None


def test_tokens_around_a_text_are_added_unless_unwanted(tmp_path):
    tokens = train_tokens()
    tokens.post_processor = processors.TemplateProcessing(
        single="<|im_start|> $A", special_tokens=[("<|im_start|>", 1)]
    )
    tokenizer = Tokenizer.from_folder(write_tokenizer(tmp_path / "m", tokens))
    assert tokenizer.encode("a") == [1, *tokenizer.encode("a", add_special_tokens=False)]
    assert tokenizer.encode_batch(["a"])[0].shape == (1, 2)
    assert tokenizer.encode_batch(["a"], add_special_tokens=False)[0].shape == (1, 1)


def test_what_a_file_says_of_cutting_and_padding_is_not_done(tmp_path):
    tokens = train_tokens()
    tokens.enable_truncation(3)
    tokens.enable_padding(length=50)
    tokenizer = Tokenizer.from_folder(write_tokenizer(tmp_path / "m", tokens))
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT


# Batches


def test_batches_are_padded_on_the_left_as_transformers_does_when_told(tokenizer, theirs):
    theirs.padding_side = "left"
    texts = ["我爱", "the model reads", "a"]
    ids, mask = tokenizer.encode_batch(texts)
    expected = theirs(texts, padding=True, return_tensors="pt")
    assert torch.equal(ids, expected["input_ids"])
    assert torch.equal(mask, expected["attention_mask"])


@torch.no_grad()
def test_a_batch_can_be_generated_from(tokenizer):
    model = tiny_model(vocab_size=tokenizer.vocab_size)
    texts = ["我爱", "the model reads", "a"]
    ids, mask = tokenizer.encode_batch(texts)
    together = model.generate(ids, 6, attention_mask=mask, eos_token_id=None)
    for row, text in zip(together, texts, strict=True):
        alone = model.generate(tokenizer.encode_batch([text])[0], 6, eos_token_id=None)
        assert torch.equal(row[-6:], alone[0, -6:])


@pytest.mark.parametrize(
    ("missing", "expected"), [({"pad_token": None}, 2), ({"pad_token": None, "eos_token": None}, 0)]
)
def test_without_a_padding_token_anything_pads(missing, expected, tmp_path):
    tokenizer = Tokenizer.from_folder(write_tokenizer(tmp_path / "m", **missing))
    ids, mask = tokenizer.encode_batch(["the model", "a"])
    assert ids[1, 0] == expected and mask[1, 0] == 0


@pytest.mark.parametrize(
    ("texts", "message"),
    [([], "at least one text"), (["a", ""], r"2 texts of \[1, 0\] tokens"), ("abc", r"give \[text\]")],
)
def test_a_batch_without_tokens_is_refused(texts, message, tokenizer):
    with pytest.raises(ValueError, match=message):
        tokenizer.encode_batch(texts)


def test_several_rows_are_not_decoded_as_one(tokenizer):
    with pytest.raises(ValueError, match=r"one row of ids, got \[2, 3\]"):
        tokenizer.decode(torch.ones(2, 3, dtype=torch.long))


# Streams


def test_a_models_stream_becomes_text(tokenizer):
    model = tiny_model(vocab_size=tokenizer.vocab_size)
    ids, _ = tokenizer.encode_batch(["我爱"])
    expected = model.generate(ids, 20, eos_token_id=None)[0, ids.shape[1] :]
    found = "".join(tokenizer.decode_stream(model.stream(ids, 20, eos_token_id=None)))
    assert found == tokenizer.decode(expected)


def test_special_tokens_are_left_out_of_a_stream_if_asked(tokenizer):
    ids = [1, *tokenizer.encode("梦 is"), 2]
    assert "".join(tokenizer.decode_stream(ids)) == "<|im_start|>梦 is<|im_end|>"
    assert "".join(tokenizer.decode_stream(ids, skip_special_tokens=True)) == "梦 is"


# Conversations


@pytest.mark.parametrize("switch", [{}, {"open_thinking": True}])
def test_a_conversation_becomes_the_text_and_the_ids_of_transformers(switch, tokenizer, theirs):
    options = {"add_generation_prompt": True, **switch}
    text = tokenizer.apply_chat_template(CHAT, **options)
    assert text == theirs.apply_chat_template(CHAT, tokenize=False, **options)
    expected = theirs.apply_chat_template(CHAT, return_tensors="pt", return_dict=True, **options)["input_ids"]
    ids, _ = tokenizer.encode_batch([text], add_special_tokens=False)
    assert torch.equal(ids, expected)


def test_what_transformers_saves_is_read_the_same(theirs, tokenizer, tmp_path):
    """It moves the template into a file of its own."""
    theirs.save_pretrained(tmp_path / "saved")
    assert (tmp_path / "saved" / "chat_template.jinja").is_file()
    again = Tokenizer.from_folder(tmp_path / "saved")
    assert again.chat_template == TEMPLATE
    assert again.encode(TEXT) == tokenizer.encode(TEXT)
    assert (again.bos_token_id, again.eos_token_id, again.pad_token_id) == (1, 2, 0)


def test_the_file_of_a_template_goes_before_the_config(folder):
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }} 我", encoding="utf-8")
    assert Tokenizer.from_folder(folder).apply_chat_template(CHAT) == "爱 我"


def test_of_several_templates_the_default_one_is_taken(tmp_path):
    named = [{"name": "other", "template": "other"}, {"name": "default", "template": "this"}]
    folder = write_tokenizer(tmp_path / "m", chat_template=named)
    assert Tokenizer.from_folder(folder).apply_chat_template(CHAT) == "this"


def test_without_a_template_a_conversation_is_refused(tmp_path):
    tokenizer = Tokenizer.from_folder(write_tokenizer(tmp_path / "m", chat_template=None))
    with pytest.raises(ValueError, match="no chat template: .* set tokenizer.chat_template"):
        tokenizer.apply_chat_template(CHAT)


# Files


def test_tokenizer_json_alone_is_enough_for_text(folder):
    (folder / "tokenizer_config.json").unlink()
    for path in (folder, folder / "tokenizer.json"):
        tokenizer = Tokenizer.from_folder(path)
        assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
        assert tokenizer.eos_token_id is None and tokenizer.chat_template is None


def test_a_hub_name_means_its_cache(folder, tmp_path):
    snapshot = tmp_path / "cache" / "models--someone--tiny" / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    shutil.copytree(folder, snapshot)
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text(snapshot.name)
    assert Tokenizer.from_folder("someone/tiny", cache_dir=tmp_path / "cache").eos_token_id == 2
    with pytest.raises(FileNotFoundError, match="give download=True to fetch it"):
        Tokenizer.from_folder("someone/other", cache_dir=tmp_path / "cache")


def test_a_folder_without_a_tokenizer_says_what_it_holds(tmp_path):
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match="no tokenizer.json in .* it holds vocab.json. An older kind"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "tokenizer.json is a Git LFS pointer"),
        (b'{"version": "1.0", ', "tokenizer.json is cut short or damaged"),
        (b'{"vocab": {}}', "is no tokenizer that the tokenizers library knows"),
    ],
)
def test_a_damaged_tokenizer_is_told_so(content, message, folder):
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Tokenizer.from_folder(folder)


def test_a_missing_library_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"pip install 'minimind-edu\[tokenizer\]'"):
        Tokenizer.from_folder(folder)


def test_the_extras_name_what_the_messages_name():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    names = [requirement.split(">=")[0] for requirement in project["optional-dependencies"]["tokenizer"]]
    assert names == ["tokenizers", "jinja2", "huggingface_hub"]


def test_nothing_optional_is_imported_before_it_is_needed():
    code = (
        "import sys, minimind_edu.tokenizer; "
        "print({'tokenizers', 'jinja2', 'transformers', 'huggingface_hub'} & set(sys.modules) - before)"
    )
    code = "import sys, torch; before = set(sys.modules); " + code
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_special_tokens_written_out_are_read_as_such(tokenizer):
    assert [tokenizer.encode(token) for token in SPECIAL] == [[0], [1], [2]]
