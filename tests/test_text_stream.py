import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY
from tokenizer_builders import train_tokens
from tokenizers import Tokenizer, decoders, models

from minimind_edu.text_stream import whole_characters

TOKENS = train_tokens()
BYTES = sorted(range(TOKENS.get_vocab_size()), key=lambda index: len(TOKENS.id_to_token(index)))


def decode(ids):
    return TOKENS.decode(ids, skip_special_tokens=False)


def pieces(text):
    return list(whole_characters(decode, TOKENS.encode(text).ids))


@pytest.mark.parametrize("text", ["plain words", "我爱你，世界。", "a😀b🎉", "é ü ñ", "混合 mixed 文字 ☕!", ""])
def test_pieces_are_whole_and_join_to_the_text(text):
    found = pieces(text)
    assert "".join(found) == text
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in found)


def test_a_character_of_several_tokens_comes_with_its_last_one():
    ids = TOKENS.encode("梦a").ids
    assert len(ids) == 4, "three bytes, which no merge joins"
    given = []
    stream = whole_characters(decode, (given.append(token) or token for token in ids))
    assert next(stream) == "梦"
    assert len(given) == 3
    assert next(stream) == "a"


def test_text_is_given_as_soon_as_it_is_there():
    ids = TOKENS.encode("the model").ids
    assert len(list(whole_characters(decode, ids))) == len(ids) > 3


@PROPERTY
@given(st.lists(st.sampled_from(range(TOKENS.get_vocab_size())), max_size=40))
def test_any_ids_join_to_what_they_decode_to(ids):
    """Also such as are no text: a model may write half a character and go on."""
    assert "".join(whole_characters(decode, ids)) == decode(ids)


@PROPERTY
@given(st.lists(st.sampled_from(BYTES[:256]), max_size=40))
def test_any_bytes_join_to_what_they_decode_to(ids):
    assert "".join(whole_characters(decode, ids)) == decode(ids)


def test_a_replacement_character_that_is_text_is_given():
    assert "".join(pieces("a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}")) == (
        "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    )


def llama_like():
    """Words begin with ▁, whose first one is no space; what has no token falls back to single bytes."""
    words = ["<unk>", "▁the", "▁model", "s", *(f"<0x{byte:02X}>" for byte in range(256))]
    tokens = Tokenizer(models.BPE({word: index for index, word in enumerate(words)}, [], byte_fallback=True))
    tokens.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokens


def test_spaces_that_depend_on_what_stands_before_are_kept():
    tokens = llama_like()
    word = tokens.token_to_id
    byte = [word(f"<0x{value:02X}>") for value in "我爱".encode()]
    ids = [word("▁the"), word("▁model"), word("s"), *byte, word("▁the"), *byte[:2], word("s"), *byte]
    found = list(whole_characters(tokens.decode, ids))
    assert "".join(found) == tokens.decode(ids)
    assert found[:5] == ["the", " model", "s", "我", "爱"]


def test_a_token_without_text_in_between_changes_nothing():
    """Special tokens that are left out; the space after them still depends on what stands before them."""
    tokens = llama_like()
    word = tokens.token_to_id
    tokens.add_special_tokens(["<s>"])
    ids = [word("<s>"), word("▁the"), word("<s>"), word("<s>"), word("▁model"), word("<s>")]
    assert "".join(whole_characters(tokens.decode, ids)) == tokens.decode(ids) == "the model"


def test_few_tokens_are_decoded_again():
    """However long the text is: what is decoded each time stays short."""
    longest = 0

    def watched(ids):
        nonlocal longest
        longest = max(longest, len(ids))
        return decode(ids)

    ids = TOKENS.encode("我们一直在说话，and some words, 梦😀" * 30).ids
    assert "".join(whole_characters(watched, ids)) == decode(ids)
    assert len(ids) > 1000 and longest < 16


def test_tensors_of_one_row_are_read_and_those_of_several_refused():
    assert list(whole_characters(decode, [torch.tensor([BYTES[0]])])) == [decode([BYTES[0]])]
    with pytest.raises(ValueError, match="the tokens of one row, got 2 at a time"):
        list(whole_characters(decode, [torch.tensor([1, 2])]))
