"""No text of the book has a phrase that reads translated; the phrases come from what outside readers marked."""

import pytest

from tools.prose import ADVICE, faults, texts

# What readers marked, and how it reads now.
MENDED = {
    "The gradient shrinks on the way back.": "The gradient shrinks in the backward pass.",
    "Here the notes say that it explodes.": "Some expect that it explodes.",
    "It keeps one row a position.": "It keeps one row per position.",
    "bfloat16 has two bytes a number.": "bfloat16 has two bytes per number.",
    "He's start ends near 1.": "He initialization ends near 1.",
    "With the start that PyTorch gives it, the size falls.": "With PyTorch's initialization the size falls.",
    "The stream behind the block grows.": "The stream after the block grows.",
    "A division is dearer than a product.": "A division is more expensive than a product.",
    "The result is another than before.": "The result differs from before.",
    "The rows are others and the logits are the same.": "The rows change, the logits do not.",
    "YaRN's change is eight times as large again.": "YaRN's change is eight times larger.",
    "12 pairs never get round.": "12 pairs never complete a turn.",
    "Scores are divided by the root of D.": "Scores are divided by √D.",
    "It stays at zero for ever.": "It stays at zero forever.",
    "The larger the mean, the less is left.": "A larger mean leaves less.",
    "The last one must not be missed.": "Without the last one, all rows are shifted.",
    "Re-centering can be spared.": "Re-centering is unnecessary.",
    "The norm stands in front of the block.": "The norm comes before the block.",
    "Of the pairs, 12 complete none in 2,048 tokens.": "In 2,048 tokens, 12 of the pairs complete no turn.",
    "It saves 75% of them.": "It saves 75 % of them.",
    "The angle is -3.": "The angle is −3.",
    "Simple it is.": "It is simple.",
}


@pytest.mark.parametrize(("before", "after"), MENDED.items(), ids=lambda words: words[:40])
def test_what_readers_marked_is_found_and_what_it_became_is_not(before, after):
    assert len(list(faults(before))) == 1
    assert not list(faults(after))


def test_every_pattern_has_an_example():
    advised = {advice for before in MENDED for _, advice in faults(before)}
    assert advised == set(ADVICE.values())


def test_code_formulas_links_and_quotations_are_other_peoples_words():
    for words in ("`x[-1]` and -`5%`", "$x = -1$", "[a page](one-row-a-token.md)", 'They wrote *"the way back"* once.'):
        assert not list(faults(words.replace("-`", "`")))


def test_all_texts_are_read():
    assert {where.split(",")[0].split("/")[0] for where, _ in texts()} >= {"README.md", "book", "01_whole_model.ipynb"}


def test_no_text_has_such_a_phrase():
    found = [(where, *fault) for where, prose in texts() for fault in faults(prose)]
    assert not [f"{where}: … {phrase} … (write: {advice})" for where, phrase, advice in found]
