"""bpe: every text comes back, pieces are those that were counted, and the library that MiniMind uses cuts alike."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from minimind_edu import world
from minimind_edu.model.bpe import BPE, BYTES, count_pairs, merge, train, words_of

STORIES = "\n".join(world.decode(story[1:]) for story in world.stories(20, 96, seed=3))
TEXTS = [
    "Mia is in the hall.",
    "the tower, 42 of them  with two spaces \n\n and lines",
    "米娅在大厅。汤姆在花园。",
    "snake_case = 'naïve' 🙂",
    "aaaa aaaaa",
    "",
]


@pytest.fixture(scope="module")
def learned() -> BPE:
    return train(STORIES, 400)


@pytest.mark.parametrize("text", [*TEXTS, STORIES])
def test_words_are_the_text_and_ids_lead_back_to_it(learned, text):
    assert b"".join(map(bytes, words_of(text))).decode() == text
    assert learned.decode(learned.encode(text)) == text
    assert BPE().encode(text) == list(text.encode())


def test_the_most_frequent_pair_is_joined_first_and_ties_go_to_smaller_ids():
    assert train("low low low lower newest newest", BYTES + 3).merges == ((108, 111), (256, 119), (32, 257))
    assert train("ba ab", 257).merges == ((32, 97),)  # every pair occurs once


def test_pieces_do_not_cross_words(learned):
    assert all(b" " not in piece[1:] for piece in learned.pieces)
    assert not any(piece.strip() == b"in the" for piece in learned.pieces)


def test_learning_ends_where_every_word_is_one_piece():
    learned = train("so so", 1000)
    assert learned.pieces[BYTES:] == [b"so", b" so"]
    assert len(learned.encode("so so")) == 2


def test_more_pieces_make_shorter_texts():
    lengths = [len(train(STORIES, size).encode(STORIES)) for size in (256, 300, 350, 400)]
    assert lengths == sorted(lengths, reverse=True) and lengths[-1] < lengths[0] / 2


def test_a_merge_goes_from_left_to_right():
    assert merge((1, 1, 1), (1, 1), 9) == (9, 1)
    assert merge((1, 2, 1, 2, 2, 1), (1, 2), 9) == (9, 9, 2, 1)
    assert merge((), (1, 2), 9) == ()


def test_pairs_are_counted_as_often_as_their_words():
    assert count_pairs({(1, 2, 1): 3, (1, 2): 1}) == {(1, 2): 4, (2, 1): 3}


def test_encoding_follows_the_order_of_learning():
    """Longest piece first would give another cut: "abc" as "ab" + "c", though "bc" was learned first."""
    bpe = BPE(((98, 99), (97, 98)))
    assert bpe.encode("abc") == [97, 256]


def test_half_a_character_is_shown_as_such(learned):
    [*_, last] = BPE().encode("米")
    assert learned.decode([last]) == "�"


@pytest.mark.parametrize("text", [text for text in TEXTS if not set("_42") & set(text)])
def test_the_library_that_minimind_uses_cuts_alike(learned, text):
    """Given the same merges. GPT-2's words keep digits and underscores apart from letters, ours do not."""
    names = dict(zip(range(BYTES), byte_letters(), strict=True))

    def spelled(piece: bytes) -> str:
        return "".join(names[byte] for byte in piece)

    pieces = [spelled(piece) for piece in learned.pieces]
    pairs = [(pieces[left], pieces[right]) for left, right in learned.merges]
    library = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=pairs))
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    assert library.encode(text).ids == learned.encode(text)


def byte_letters() -> list[str]:
    """The letter with which GPT-2 writes each byte: itself if it can be seen, else one from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = iter(range(256, 512))
    return [chr(byte if byte in seen else next(rest)) for byte in range(256)]


def test_what_is_refused():
    with pytest.raises(ValueError, match="vocab_size must be a whole number of at least 256, got 100"):
        train("text", 100)
    with pytest.raises(ValueError, match=r"the ids of these pieces are 0 to 255, got 256"):
        BPE().decode([256])
    with pytest.raises(
        ValueError, match=r"merge 1 may join two of the pieces 0 to 256, which exist then; got \(97, 300\)"
    ):
        BPE(((97, 98), (97, 300)))
    with pytest.raises(ValueError, match=r"merge 2 joins \(97, 98\), which merge 0 has joined already"):
        BPE(((97, 98), (98, 99), (97, 98)))
    for odd in ((97, 98, 99), (97.0, 98)):
        with pytest.raises(ValueError, match="merge 0 may join two of the pieces 0 to 255"):
            BPE((odd,))
    for odd in ([97.0], "abc", [None]):
        with pytest.raises(ValueError, match="ids are a sequence of whole numbers, got"):
            BPE().decode(odd)


def test_ids_may_come_in_an_array_or_a_tensor():
    for ids in ([97, 98], np.array([97, 98]), torch.tensor([97, 98])):
        assert BPE().decode(ids) == "ab"
