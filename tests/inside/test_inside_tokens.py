"""What a page shows of tokens: nothing hides, and characters that several tokens share are in each of them."""

import json
from pathlib import Path

import pytest
from tokenizer_builders import train_tokens

from minimind_edu import world
from minimind_edu.inside.tokenizer import read_tokenizer

OPEN = """async (data) => {
    const tokens = await import("/inside/tokens.js");
    const words = { noWord: (word) => `no word: ${word}`, noId: (word, size) => `no id below ${size}: ${word}` };
    Object.assign(globalThis, tokens, { reader: tokens.createReader(data, words) });
}"""
SHOWN = "(ids) => shownTokens(reader, ids).map(({ text, kind }) => [text, kind])"


def opened(node, tokenizer=None, size=300):
    node.evaluate(OPEN, {"tokenizer": tokenizer, "config": {"vocab_size": size}})
    return node


@pytest.fixture
def tokens(node, tmp_path) -> tuple:
    tokens = train_tokens()
    tokens.save(str(tmp_path / "tokenizer.json"))
    content = read_tokenizer(Path(tmp_path / "tokenizer.json"), 300).content
    return opened(node, {"kind": "bpe", "content": content}), tokens


@pytest.mark.parametrize("text", ["", "我爱编程", " two  words\n", "\ufeff👨‍👩‍👧 \u202eabc\x00", "<|im_start|>user"])
def test_a_text_comes_back_from_its_tokens(tokens, text):
    node, library = tokens
    ids = node.evaluate("(text) => reader.encode(text)", text)
    assert ids == library.encode(text).ids
    assert node.evaluate("(ids) => textOf(reader, ids)", ids) == text


def test_spaces_line_ends_and_hidden_characters_are_shown(tokens):
    node, library = tokens
    shown = node.evaluate(SHOWN, library.encode("a b\n\t\u0085\u0000").ids)
    text = "".join(part for part, _ in shown)
    assert text == "a·b⏎⇥\\u0085₁\\u0085₂\\u0000"
    assert node.evaluate(SHOWN, [library.token_to_id("<|im_end|>")]) == [["<|im_end|>", "special"]]


@pytest.mark.parametrize("mark", [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C], ids=hex)
def test_what_would_turn_the_text_around_it_is_shown_as_its_number(tokens, mark):
    node, library = tokens
    shown = node.evaluate(SHOWN, library.encode(chr(mark)).ids)
    assert [text.rstrip("₁₂₃") for text, _ in shown] == [f"\\u{mark:04x}"] * len(shown)


def test_parts_of_a_character_carry_their_number_and_broken_ones_their_bytes(tokens):
    node, library = tokens
    ids = library.encode("龘").ids  # no merge knows it: a token for each of three bytes
    assert len(ids) == 3
    assert node.evaluate(SHOWN, ids) == [["龘₁", "part"], ["龘₂", "part"], ["龘₃", "part"]]
    assert node.evaluate(SHOWN, ids[:2]) == [["‹e9›", "bytes"], ["‹be›", "bytes"]]
    assert node.evaluate("(id) => shownToken(reader, id).text", ids[0]) == "‹e9›"


def test_the_words_of_a_small_world_are_read_as_the_package_reads_them(node):
    opened(node, json.loads(json.dumps({"kind": "words", "content": {"words": list(world.WORDS)}})))
    for told in ("en", "zh", "en zh"):
        for ids in world.stories(5, 60, 3, told):
            text = world.decode(ids[1:])
            assert node.evaluate("(text) => reader.encode(text)", text) == world.encode(text).tolist()
    with pytest.raises(RuntimeError, match="no word: xylophone"):
        node.evaluate("() => reader.encode('Mia is in the xylophone now')")


def test_without_a_tokenizer_ids_are_read(node):
    opened(node, None, 50)
    assert node.evaluate("() => reader.encode(' 1 49,0 ')") == [1, 49, 0]
    assert node.evaluate("() => textOf(reader, [1, 49])") == "1 49"
    for text, word in {"1 50": "50", "-1": "-1", "two": "two"}.items():
        with pytest.raises(RuntimeError, match=f"no id below 50: {word}"):
            node.evaluate("(text) => reader.encode(text)", text)
