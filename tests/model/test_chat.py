"""chat: the tokens of the answers count and no others, and transformers' own mask says the same."""

import pytest
import torch
import torch.nn.functional as F
from model_builders import tensor

from minimind_edu.model.chat import IGNORED, answer_labels
from minimind_edu.model.loss import next_token_loss

OPENS, END, PAD = [7, 8], [9], 0
CHAT = [7, 6, 1, 2, 9, 7, 8, 4, 5, 9, 7, 6, 3, 9, 7, 8, 2, 9, PAD, PAD]


def labels(*ids: int) -> list[int]:
    return answer_labels(torch.tensor([ids]), OPENS, END)[0].tolist()


def test_every_answer_counts_with_its_end_and_nothing_else():
    found = labels(*CHAT)
    assert [i for i, label in enumerate(found) if label != IGNORED] == [7, 8, 9, 16, 17]
    assert all(label in (IGNORED, token) for label, token in zip(found, CHAT, strict=True))


def test_an_answer_that_is_cut_off_counts_to_the_end():
    assert labels(7, 6, 1, 9, 7, 8, 4, 5) == [IGNORED] * 6 + [4, 5]
    assert labels(7, 6, 1, 9, 7) == [IGNORED] * 5


def test_an_empty_answer_is_its_end_alone():
    assert labels(7, 8, 9, 4) == [IGNORED, IGNORED, 9, IGNORED]


def test_rows_of_a_batch_are_labelled_each_by_itself():
    both = answer_labels(torch.tensor([[7, 8, 4, 9], [6, 7, 8, 5]]), OPENS, END)
    assert both.tolist() == [[IGNORED, IGNORED, 4, 9], [IGNORED] * 3 + [5]]


def test_ends_of_several_tokens_are_found_whole():
    found = answer_labels(torch.tensor([[7, 8, 9, 4, 9, 1, 3]]), OPENS, [9, 1])[0]
    assert found.tolist() == [IGNORED, IGNORED, 9, 4, 9, 1, IGNORED]


def test_the_loss_is_the_mean_over_what_counts():
    logits, ids = tensor(1, 20, 12), torch.tensor([CHAT])
    places = torch.tensor([7, 8, 9, 16, 17])
    expected = F.cross_entropy(logits[0, places - 1], ids[0, places])
    assert torch.allclose(next_token_loss(logits, answer_labels(ids, OPENS, END)), expected.float())


def test_transformers_own_mask_of_the_assistant_says_the_same():
    """A template may mark what the assistant says; the tokenizer then returns which tokens these are."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    words = ["<pad>", "<s>", "</s>", "user", "assistant", "where", "is", "Mia", "hall", "attic"]
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, "<pad>"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    template = (
        "{% for m in messages %}{{ '<s> ' + m.role + ' ' }}"
        "{% if m.role == 'assistant' %}{% generation %}{{ m.content + ' </s>' }}{% endgeneration %}{{ ' ' }}"
        "{% else %}{{ m.content + ' </s> ' }}{% endif %}{% endfor %}"
    )
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, chat_template=template, pad_token="<pad>")
    said = ["where is Mia", "hall", "where is hall", "attic is Mia"]
    messages = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(said)]
    given = tokenizer.apply_chat_template(
        messages,
        tokenize=True,
        return_dict=True,
        return_assistant_tokens_mask=True,
        padding="max_length",
        max_length=30,
    )
    ids, mask = torch.tensor(given["input_ids"]), torch.tensor(given["assistant_masks"])
    assert mask.sum() == 6
    found = answer_labels(ids.reshape(1, -1), [1, 4], [2])[0]
    assert torch.equal(found != IGNORED, mask.flatten() == 1)


@pytest.mark.parametrize(
    "ids, begin, end, message",
    [
        (torch.tensor([7, 8, 9]), OPENS, END, r"ids must be \[B, S\], a row for each chat, got \[3\]"),
        ([[7, 8, 9]], OPENS, END, "ids must be a tensor"),
        (torch.tensor([[7, 8, 9]]), [], END, r"tokens that begin and end them, got \[\] and \[9\]"),
        (torch.tensor([[7, 8, 9]]), OPENS, [], r"tokens that begin and end them, got \[7, 8\] and \[\]"),
    ],
)
def test_rejects_what_is_no_chat(ids, begin, end, message):
    with pytest.raises(ValueError, match=message):
        answer_labels(ids, begin, end)
