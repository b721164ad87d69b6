"""tuning: chats with one right answer, masks that count what they say, and stored runs that come from these programs."""

import pytest
import torch

from minimind_edu import world
from minimind_edu.model.chat import IGNORED
from minimind_edu.model.loss import next_token_loss
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.answering import stories
from minimind_edu.trained.tuning import (
    AHEAD,
    ASSISTANT,
    BOS,
    END,
    LENGTH,
    PAD,
    TASKS,
    USER,
    WORDS,
    answers,
    beginner,
    chats,
    example,
    grades,
    labels_of,
    pair_rows,
    retold,
    rows,
    surprises,
)
from minimind_edu.world.words import PLACES, TWIN

MADE = chats(200, 3)
IDS = rows(MADE)
PLACE_IDS = {int(world.encode(place)[0]) for both in PLACES for place in both}


def test_chats_are_the_same_for_a_seed_and_others_for_another():
    assert chats(20, 3) == MADE[:20] and chats(20, 4) != MADE[:20]


def test_the_answer_is_where_the_one_who_is_asked_for_was_last():
    """By a reader of stories that shares nothing with what wrote them but the words."""
    for chat in MADE:
        who = chat.told[-2] if WORDS[chat.told[-1]] == "?" else chat.told[-3]
        state = world.state_after([BOS, *chat.told])
        asked, place = (WORDS[i - TWIN if i > TWIN else i] for i in (who, *chat.answer))
        assert state.where(asked) == place and chat.answer[0] in chat.told


def test_the_answer_is_not_always_the_last_place_nor_the_first():
    found = [[i for i in chat.told if i in PLACE_IDS] for chat in MADE]
    for at in (0, -1):
        share = sum(places[at] == chat.answer[0] for places, chat in zip(found, MADE, strict=True)) / len(MADE)
        assert 0.1 < share < 0.6


def test_a_row_is_the_template_the_chat_and_padding():
    chat, row = MADE[0], IDS[0].tolist()
    assert row[:2] == [BOS, USER] and row[2 : 2 + len(chat.told)] == chat.told
    assert row[2 + len(chat.told) :][:5] == [END, BOS, ASSISTANT, *chat.answer, END]
    assert set(row[len(chat.ids) :]) <= {PAD} and len(row) == LENGTH
    assert all(len(other.ids) < LENGTH for other in chats(2_000, 5))


def counted(mask: str, ahead: int = 1) -> list[list[int]]:
    return [row.nonzero().flatten().tolist() for row in labels_of(IDS, mask, ahead) != IGNORED]


def test_the_right_mask_counts_the_answer_and_its_end():
    for chat, places in zip(MADE, counted("answer"), strict=True):
        assert places == [len(chat.prompt), len(chat.prompt) + 1]


def test_early_and_late_are_the_same_mask_moved_by_one():
    for right, early, late in zip(counted("answer"), counted("early"), counted("late"), strict=True):
        assert early == [place - 1 for place in right] and late == [place + 1 for place in right]


def test_everything_leaves_padding_out_and_padding_does_not():
    for chat, some, every in zip(MADE, counted("everything"), counted("padding"), strict=True):
        assert some == list(range(len(chat.ids))) and every == list(range(LENGTH))


@pytest.mark.parametrize("ahead", AHEAD)
def test_the_loss_compares_each_position_with_the_token_so_far_ahead(ahead):
    logits = torch.randn(len(IDS), LENGTH, len(WORDS), generator=torch.Generator().manual_seed(0))
    log_p = logits.log_softmax(-1)
    places = [(b, s) for b in range(len(IDS)) for s in range(LENGTH - max(1, ahead))]
    wanted = -sum(log_p[b, s, IDS[b, s + ahead]] for b, s in places) / len(places)
    assert next_token_loss(logits, labels_of(IDS, "padding", ahead)).item() == pytest.approx(wanted.item(), rel=1e-4)


def test_a_beginner_is_the_stored_model_with_four_more_tokens():
    old, new = living_model("twin"), beginner("twin")
    ids = stories(3).ids
    logits = new(ids).logits
    torch.testing.assert_close(logits[..., : len(world.WORDS)], old(ids).logits)
    assert logits.shape[-1] == len(WORDS) == len(world.WORDS) + 4
    assert new.lm_head.weight is new.model.embed_tokens.weight
    assert torch.equal(beginner(seed=1).lm_head.weight[-4:], beginner("twin", 1).lm_head.weight[-4:])


def test_an_untrained_answer_is_graded_as_wrong_and_a_known_one_as_right():
    class Knows(torch.nn.Module):
        config = beginner().config

        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, ids):
            following = torch.cat([ids[:, 1:], ids[:, -1:]], dim=1)
            return type("Out", (), {"logits": torch.nn.functional.one_hot(following, len(WORDS)).float()})

    assert grades(Knows(), MADE) == {"place": 1.0, "stop": 1.0, "both": 1.0}
    assert grades(beginner(), MADE)["both"] < 0.1


def test_an_answer_ends_with_its_end_or_after_so_many_tokens():
    [said] = answers(beginner(), [example()], most=4)
    assert len(said) == 4 or said[-1] == END


def test_surprises_are_what_the_loss_is_the_mean_of():
    model = beginner()
    labels = labels_of(IDS, "answer")
    found = surprises(model, IDS, labels)
    with torch.no_grad():
        loss = next_token_loss(model(IDS).logits, labels).item()
    assert found.sum().item() / (labels != IGNORED).sum().item() == pytest.approx(loss, rel=1e-4)


def test_retold_answers():
    for chat, chinese, moved in zip(MADE, *(retold(MADE, task) for task in TASKS), strict=True):
        assert chinese.told == moved.told == chat.told
        same = chat.answer[0] + TWIN * (chat.answer[0] < TWIN)
        assert chinese.answer == [same]
        language, room = next(
            (i, p.index(WORDS[chat.answer[0]])) for i, p in enumerate(PLACES) if WORDS[chat.answer[0]] in p
        )
        assert WORDS[moved.answer[0]] == PLACES[language][(room + 1) % 8]


def test_pairs_are_all_chosen_answers_and_then_the_rejected():
    ids = pair_rows(MADE[:3], lambda chat: chat.answer, lambda chat: [7])
    assert torch.equal(ids[:3], IDS[:3])
    assert [row[len(chat.prompt)].item() for row, chat in zip(ids[3:], MADE, strict=False)] == [7] * 3


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: labels_of(IDS, "some"), "mask must be 'answer' or"),
        (lambda: labels_of(IDS, ahead=3), "ahead must be 1 or 0"),
        (lambda: retold(MADE, "french"), "task must be 'chinese' or"),
    ],
)
def test_other_names_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
