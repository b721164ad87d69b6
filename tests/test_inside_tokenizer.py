"""What the page takes of a tokenizer.json and its chat template, and what it refuses."""

import json

import pytest
from tokenizer_builders import TEMPLATE, train_tokens, write_tokenizer
from tokenizers.processors import TemplateProcessing

from minimind_edu.figures.inside.tokenizer import find_tokenizer, read_tokenizer


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


def test_tokens_that_come_before_every_text_are_kept(tmp_path):
    tokens = train_tokens()
    first = tokens.token_to_id("<|im_start|>")
    tokens.post_processor = TemplateProcessing(
        single="<|im_start|> $A <|im_end|>", special_tokens=[("<|im_start|>", first), ("<|im_end|>", first + 1)]
    )
    tokens.save(str(tmp_path / "tokenizer.json"))
    assert read_tokenizer(tmp_path / "tokenizer.json", 300).prefix == (first,)


REFUSED = {
    "Unigram": (lambda f: f["model"].update(type="Unigram"), "of the type Unigram"),
    "WordPiece": (lambda f: f["model"].update(continuing_subword_prefix="##"), "continuing_subword_prefix"),
    "Llama 2": (lambda f: f["model"].update(byte_fallback=True), "byte_fallback"),
    "lower case": (lambda f: f.update(normalizer={"type": "Lowercase"}), "normalizes text by Lowercase"),
    "a space first": (lambda f: f["pre_tokenizer"].update(add_prefix_space=True), "add_prefix_space=True"),
    "words": (lambda f: f.update(pre_tokenizer={"type": "Whitespace"}), "does not split text into bytes"),
    "spaces go": (lambda f: f["added_tokens"][0].update(lstrip=True), "the flag lstrip"),
    "another's": (lambda f: f["added_tokens"][0].update(id=300), "vocabulary ends at 299"),
    "no tokenizer": (lambda f: f.pop("model"), "not a file of the tokenizers library"),
    "metaspace": (
        lambda f: f.update(
            pre_tokenizer={"type": "Sequence", "pretokenizers": [f["pre_tokenizer"], {"type": "Metaspace"}]}
        ),
        "splits text by Metaspace",
    ),
}


@pytest.mark.parametrize("change, reason", REFUSED.values(), ids=REFUSED)
def test_what_the_page_cannot_read_is_refused_by_name(tmp_path, change, reason):
    file = tmp_path / "tokenizer.json"
    train_tokens().save(str(file))
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=reason):
        read_tokenizer(file, 300)
