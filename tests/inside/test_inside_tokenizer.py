"""What the page takes of a tokenizer.json and its chat template, and what it refuses."""

import json
import os

import pytest
from tokenizer_builders import TEMPLATE, train_as_many_as_minimind, train_tokens, write_tokenizer
from tokenizers.processors import TemplateProcessing

from minimind_edu.inside.tokenizer import compared_texts, find_tokenizer, read_tokenizer


def test_it_is_found_in_a_folder_and_beside_a_file(tmp_path):
    assert find_tokenizer(tmp_path) is None
    file = write_tokenizer(tmp_path) / "tokenizer.json"
    assert find_tokenizer(tmp_path) == find_tokenizer(tmp_path / "model.pth") == file


def test_a_chat_template_is_what_it_puts_around_the_words(tmp_path):
    folder = write_tokenizer(tmp_path)
    chat = read_tokenizer(folder / "tokenizer.json", 300).chat
    assert chat == {"before": "<|im_start|>user\n", "after": "<|im_end|>\n<|im_start|>assistant\n"}


@pytest.mark.parametrize("template", [None, "{{ raise_exception('no') }}", "{{ 1 / 0 }}", "always the same"])
def test_without_a_template_that_works_there_is_no_chat(tmp_path, template):
    folder = write_tokenizer(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    assert settings["chat_template"] == TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"chat_template": template}))
    assert read_tokenizer(folder / "tokenizer.json", 300).chat is None


def test_tokens_that_come_around_every_text_are_kept(tmp_path):
    tokens = train_tokens()
    first = tokens.token_to_id("<|im_start|>")
    tokens.post_processor = TemplateProcessing(
        single="<|im_start|> $A <|im_end|>", special_tokens=[("<|im_start|>", first), ("<|im_end|>", first + 1)]
    )
    tokens.save(str(tmp_path / "tokenizer.json"))
    read = read_tokenizer(tmp_path / "tokenizer.json", 300)
    assert (read.prefix, read.suffix) == ((first,), (first + 1,))


METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
ROBERTA = {
    "type": "RobertaProcessing",
    "sep": ["b", 66],
    "cls": ["a", 65],
    "trim_offsets": True,
    "add_prefix_space": False,
}
TEMPLATED = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": []}
TEMPLATED |= {"special_tokens": {}}


def split_by(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def in_a_row(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def framed(id):
    before = {"SpecialToken": {"id": "x", "type_id": 0}}
    known = {"x": {"id": "x", "ids": [id], "tokens": ["x"]}}
    return TEMPLATED | {"single": [before, *TEMPLATED["single"]], "special_tokens": known}


def deep(levels):
    inner = None
    for _ in range(levels):
        inner = {"type": "Sequence", "normalizers": [inner] if inner else []}
    return inner


REFUSED = {
    "Unigram": (lambda f: f["model"].update(type="Unigram"), "of the type Unigram"),
    "WordPiece": (lambda f: f["model"].update(continuing_subword_prefix="##"), "continuing_subword_prefix"),
    "WordLevel with merges": (lambda f: f["model"].update(type="WordLevel"), "which the page does not know"),
    "WordLevel, unknown is unknown": (
        lambda f: f.update(model={"type": "WordLevel", "vocab": {"a": 3}, "unk_token": "<unk>"}, added_tokens=[]),
        "has the unk_token '<unk>', which is no token of it",
    ),
    "dropout": (lambda f: f["model"].update(dropout=0.1), "asks for dropout"),
    "a new setting": (lambda f: f["model"].update(mode="new"), "asks for mode, which the page does not know"),
    "one of a part": (lambda f: f["pre_tokenizer"].update(mode="new"), "ByteLevel with mode, which the page does not"),
    "two of one id": (lambda f: f["model"]["vocab"].update(a=5, b=5), "two tokens with one id"),
    "a merge of nothing": (lambda f: f["model"]["merges"].append(["q", "☃"]), "merges 'q' and '☃', which are not all"),
    "unknown is unknown": (lambda f: (f["model"].update(unk_token="?!"), f["model"]["vocab"].pop("Ċ")), "is no token"),
    "id -1": (lambda f: f["model"]["vocab"].update(a=-1), "has the token id -1, and ids are whole numbers"),
    "id 1.5": (lambda f: f["model"]["vocab"].update(a=1.5), "has the token id 1.5, and ids are whole numbers"),
    "id true": (lambda f: f["added_tokens"][0].update(id=True), "has the token id True, and ids are whole numbers"),
    "half a character": (lambda f: f["added_tokens"][0].update(content="\ud800"), "surrogates not allowed"),
    "another id": (lambda f: f["added_tokens"][0].update(id=299), "the id 299, where the library gives it 0"),
    "added twice": (lambda f: f["added_tokens"].append(f["added_tokens"][0]), "twice"),
    "a pattern": (
        lambda f: f.update(pre_tokenizer=split_by(r"\X")),
        r"splits text by a pattern with \\X, which a page",
    ),
    "a pattern to replace": (
        lambda f: f.update(normalizer={"type": "Replace", "pattern": {"Regex": "a*"}, "content": "b"}),
        "replaces what may be empty",
    ),
    "first, but second": (
        lambda f: f.update(pre_tokenizer=in_a_row(split_by("a"), METASPACE | {"prepend_scheme": "first"})),
        "the page knows it first",
    ),
    "RoBERTa's": (
        lambda f: f.update(post_processor=ROBERTA),
        "puts tokens around a text by RobertaProcessing; the page knows TemplateProcessing",
    ),
    "no text": (lambda f: f.update(post_processor=TEMPLATED | {"single": []}), "does not hold the text once"),
    "two templates": (
        lambda f: f.update(post_processor={"type": "Sequence", "processors": [framed(1), framed(2)]}),
        "by several processors",
    ),
    "beyond": (lambda f: f.update(post_processor=framed(900)), "has the token id 900"),
    "without a decoder": (lambda f: f.update(pre_tokenizer=METASPACE, decoder=None), "has no decoder"),
    "deep": (lambda f: f.update(normalizer=deep(200)), "the tokenizers library does not read .*recursion limit"),
    "lower case": (lambda f: f.update(normalizer={"type": "Lowercase"}), "normalizes text by Lowercase"),
    "words": (lambda f: f.update(pre_tokenizer={"type": "Whitespace"}), "splits text by Whitespace"),
    "whole words": (lambda f: f["added_tokens"][0].update(single_word=True), "the flag single_word"),
    "another's": (lambda f: f["added_tokens"][0].update(id=300), "vocabulary ends at 299"),
    "no tokenizer": (lambda f: f.pop("model"), "not a file of the tokenizers library"),
}


@pytest.mark.parametrize("change, reason", REFUSED.values(), ids=REFUSED)
def test_what_the_page_cannot_read_is_refused_by_name(tmp_path, change, reason):
    file = tmp_path / "tokenizer.json"
    train_tokens().save(str(file))
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=reason) as refusal:
        read_tokenizer(file, 300)
    assert "\n" not in str(refusal.value)


def test_what_the_library_itself_does_not_read_is_refused_in_a_sentence(tmp_path):
    file = tmp_path / "tokenizer.json"
    train_tokens().save(str(file))
    content = json.loads(file.read_text())
    content["truncation"] = {"direction": "Up"}
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="the tokenizers library does not read .*tokenizer.json: "):
        read_tokenizer(file, 300)
    file.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="tokenizer.json cannot be read as .json .*recursion"):
        read_tokenizer(file, 300)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a link to itself"])
def test_a_file_that_cannot_be_read_is_there_and_nothing_is_waited_for(kind, name, tmp_path):
    place = write_tokenizer(tmp_path) / name
    place.unlink()
    {"a pipe": os.mkfifo, "a folder": os.mkdir, "a link to itself": lambda place: place.symlink_to(name)}[kind](place)
    assert find_tokenizer(tmp_path) == tmp_path / "tokenizer.json"
    if name == "tokenizer.json":
        with pytest.raises(ValueError, match="tokenizer.json cannot be read"):
            read_tokenizer(place, 300)
    else:
        assert read_tokenizer(tmp_path / "tokenizer.json", 300).chat is None


@pytest.mark.parametrize("place", ["tokenizer_config.json", "config.json"])
@pytest.mark.parametrize("name", ["PreTrainedTokenizerFast", "Evil"])
def test_python_of_a_folder_neither_runs_nor_is_offered(tmp_path, monkeypatch, capsys, place, name):
    folder = write_tokenizer(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text()) | {"tokenizer_class": name}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    known = json.loads((folder / place).read_text()) if (folder / place).is_file() else {"model_type": "evil"}
    (folder / place).write_text(
        json.dumps(known | {"auto_map": {"AutoTokenizer": ["evil.Evil", None], "AutoConfig": "evil.C"}})
    )
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\nclass C: pass\n")
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asked a question"))
    read = read_tokenizer(folder / "tokenizer.json", 300)
    assert not (tmp_path / "ran").exists() and "custom code" not in capsys.readouterr().out
    assert (
        read.chat
        or read.unframed == "its tokenizer is a program that came with the model, and such programs are not run"
    )


def test_texts_to_compare_hold_each_merged_token_once_and_none_is_cut(tmp_path):
    """Trainers leave truncation and padding in the file; merges that no text reaches are none of a page's business."""
    tokens = train_tokens(400)
    tokens.enable_truncation(3)
    tokens.enable_padding(length=9)
    tokens.save(str(tmp_path / "tokenizer.json"))
    tokens.no_truncation()
    tokens.no_padding()
    compared = compared_texts(tmp_path / "tokenizer.json", ["我爱编程 and more"])
    assert compared == [(text, tokens.encode(text).ids) for text, _ in compared]
    assert compared[0][0] == "我爱编程 and more" and len(compared) > 10
    merged = ["".join(merge) for merge in json.loads(tokens.to_str())["model"]["merges"]]
    whole = {
        tokens.token_to_id(token) for token in merged if "\ufffd" not in tokens.decode([tokens.token_to_id(token)])
    }
    assert len(whole) > 60
    assert whole <= {id for _, ids in compared for id in ids}


def test_of_a_large_vocabulary_the_texts_are_a_sample_from_all_over(tmp_path):
    tokens = train_as_many_as_minimind()
    tokens.save(str(tmp_path / "tokenizer.json"))
    compared = compared_texts(tmp_path / "tokenizer.json", [])
    ids = {id for _, ids in compared for id in ids}
    assert 1500 < len(ids) < 4000 and len(json.dumps(compared)) < 60_000
    assert all(sum(first <= id < first + 640 for id in ids) > 100 for first in range(259, 5700, 640))
