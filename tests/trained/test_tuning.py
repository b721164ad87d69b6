"""tuning: chats with one right answer, masks that count what they say, and what is stored comes from these programs."""

import json
import sys
from dataclasses import replace

import pytest
import torch

from minimind_edu import world
from minimind_edu.model.chat import IGNORED
from minimind_edu.model.lora import add_lora
from minimind_edu.model.loss import next_token_loss
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.answering import stories
from minimind_edu.trained.tuning import (
    AHEAD,
    ASSISTANT,
    BOS,
    DPO_BATCH,
    DPO_RECIPE,
    END,
    LENGTH,
    LOOKS,
    LORA_RECIPE,
    MASKS,
    PAD,
    PAIRS,
    RECIPE,
    SHIFTED,
    USER,
    WHERE,
    WORDS,
    Chat,
    __main__,
    adapt,
    answer_counts,
    answers,
    beginner,
    chats,
    english,
    example,
    grades,
    in_chinese,
    labels_of,
    occupied,
    pair_batches,
    prefer,
    rows,
    runs,
    sft,
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
        who = chat.question[-2] if WORDS[chat.question[-1]] == "?" else chat.question[-3]
        state = world.state_after([BOS, *chat.question])
        asked, place = (WORDS[i - TWIN if i > TWIN else i] for i in (who, *chat.answer))
        assert state.where(asked) == place and chat.answer[0] in chat.question


def test_the_answer_is_not_always_the_last_place_nor_the_first():
    found = [[i for i in chat.question if i in PLACE_IDS] for chat in MADE]
    for at in (0, -1):
        share = sum(places[at] == chat.answer[0] for places, chat in zip(found, MADE, strict=True)) / len(MADE)
        assert 0.1 < share < 0.6


def test_a_row_is_the_template_the_chat_and_padding():
    chat, row = MADE[0], IDS[0].tolist()
    assert row[:2] == [BOS, USER] and row[2 : 2 + len(chat.question)] == chat.question
    assert row[2 + len(chat.question) :][:5] == [END, BOS, ASSISTANT, *chat.answer, END]
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


def test_all_leaves_padding_out_and_padding_does_not():
    for chat, some, every in zip(MADE, counted("all"), counted("padding"), strict=True):
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


def test_answers_to_many_chats_are_those_to_each_alone():
    model, some = beginner(seed=4), MADE[:12]
    with torch.no_grad():
        model.lm_head.weight[END] += 0.5 * model.lm_head.weight[:44].mean(0)  # so that some answers end
    together = answers(model, some)
    assert together == [reply for chat in some for reply in answers(model, [chat])]
    assert len({len(chat.prompt) for chat in some}) > 1
    for chat, reply in zip(some, together, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([chat.prompt + reply[:-1]])).logits[0, len(chat.prompt) - 1 :]
        assert reply == logits.argmax(-1).tolist()


def test_rooms_where_somebody_is_are_those_of_the_end_of_the_story():
    told = "Mia is in the hall. Tom is in the attic. Mia goes from the hall to the study. where is Mia?"
    [chat] = [Chat(world.encode(told).tolist(), world.encode("study").tolist())]
    assert occupied(chat) == {"attic", "study"}
    assert all(WORDS[chat.answer[0] % TWIN] in occupied(chat) for chat in MADE)


class Says(torch.nn.Module):
    """After each chat's prompt these words, whatever it reads."""

    def __init__(self, asked, words):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.words = {tuple(chat.prompt): said for chat, said in zip(asked, words, strict=True)}

    def forward(self, ids):
        logits = torch.zeros(*ids.shape, len(WORDS))
        for row, of_row in zip(ids.tolist(), logits, strict=True):
            [(prompt, said)] = [(p, said) for p, said in self.words.items() if tuple(row[: len(p)]) == p]
            for row_at, word in zip(of_row[len(prompt) - 1 :], said, strict=False):
                row_at[word] = 1.0
        return type("Out", (), {"logits": logits})


def test_answer_counts_count_how_answers_begin_and_whether_they_end():
    asked = MADE[:4]
    right, other = asked[0].answer[0], next(i for i in asked[1].question if i in PLACE_IDS - {asked[1].answer[0]})
    words = [[right, END], [other] * 6, [PAD, END], [END]]
    there = sum(WORDS[i % TWIN] in occupied(chat) for i, chat in ((right, asked[0]), (other, asked[1])))
    wanted = {"right": 0.25, "occupied": there / 4, "pad": 0.25, "once": 0.25, "ends": 0.75}
    assert answer_counts(Says(asked, words), asked) == wanted


def test_halves_are_the_mean_of_the_answers_loss_and_the_rest():
    recipe = replace(RECIPE, steps=1)
    parts = {mask: sft(beginner(), mask, recipe=recipe)[0] for mask in ("answer", "story", "halves")}
    assert parts["halves"] == pytest.approx((parts["answer"] + parts["story"]) / 2, rel=1e-4)
    counts = [labels_of(IDS, mask) != IGNORED for mask in ("answer", "story", "all")]
    assert torch.equal(counts[0] ^ counts[1], counts[2])


def test_surprises_are_what_the_loss_is_the_mean_of():
    model = beginner()
    labels = labels_of(IDS, "answer")
    found = surprises(model, IDS, labels)
    with torch.no_grad():
        loss = next_token_loss(model(IDS).logits, labels).item()
    assert found.sum().item() / (labels != IGNORED).sum().item() == pytest.approx(loss, rel=1e-4)


def test_chinese_answers_name_the_same_place_and_english_chats_are_those_answered_in_english():
    for chat, other in zip(MADE, in_chinese(MADE), strict=True):
        assert other.question == chat.question
        assert other.answer == [chat.answer[0] + TWIN * (WORDS[chat.answer[0]] in PLACES[0])]
    kept = english(MADE)
    assert kept and all(WORDS[chat.answer[0]] in PLACES[0] for chat in kept)
    assert len(kept) == sum(WORDS[chat.answer[0]] in PLACES[0] for chat in MADE)


@pytest.mark.parametrize("pairs", PAIRS)
def test_pairs_are_all_chosen_answers_and_then_the_rejected(pairs):
    for ids in pair_batches(pairs, 3):
        chosen, rejected = ids.split(DPO_BATCH)
        counted = labels_of(ids) != IGNORED
        assert ids.shape == (2 * DPO_BATCH, LENGTH) and (counted.sum(1) == 2).all()
        for one, other, places in zip(chosen, rejected, counted, strict=False):
            first = int(places.nonzero()[0])
            assert torch.equal(one[:first], other[:first]) and one[first + 1] == other[first + 1] == END
            words = WORDS[one[first]], WORDS[other[first]]
            if pairs == "right":
                assert words[0] in PLACES[0] and words[1] in PLACES[0] and words[0] != words[1]
                assert other[first] in one[:first], "another place of the story"
            else:
                assert one[first] == other[first] + TWIN


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: labels_of(IDS, "some"), "mask must be 'answer' or"),
        (lambda: labels_of(IDS, ahead=3), "ahead must be 1 or 0"),
        (lambda: pair_batches("longer", 1), "pairs must be 'right' or"),
    ],
)
def test_other_names_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# What is stored


def test_stored_runs_are_of_these_trainings():
    stored = runs()
    assert [(r["model"], r["ahead"], r["mask"]) for r in stored["masks"]] == [
        (name, ahead, mask)
        for name in ("living", "twin")
        for ahead in AHEAD
        for mask in (MASKS if ahead == 1 else SHIFTED)
    ]
    for run in stored["masks"] + stored["rates"]:
        assert {len(run[key]) for key in ("losses", "says", "place", "stop", "both")} == {len(LOOKS)}
        assert all(len(look) == 19 for look in run["losses"])
    slower = float(f"{__main__.SLOWER:.2g}")
    assert [(r["model"], r["rate"], r["seed"], r["steps"], r["mask"]) for r in stored["rates"]] == [
        (name, rate, seed, steps, mask)
        for name in ("living", "twin")
        for rate, seed, steps in (
            (__main__.FASTER, 0, RECIPE.steps),
            (slower, 0, RECIPE.steps),
            (RECIPE.learning_rate, 1, RECIPE.steps),
            *[(RECIPE.learning_rate, seed, RECIPE.steps) for seed in (2, 3, 4, 5) if name == "living"],
            *([(RECIPE.learning_rate, 0, __main__.LATER)] if name == "twin" else []),
        )
        for mask in SHIFTED
    ]
    assert [(r["mask"], r["seed"], r["model"]) for r in stored["answers"]] == __main__.ANSWERS
    found = [(r["where"], r["rank"], r["rate"], r["steps"], r["model"], r["seed"]) for r in stored["lora"]]
    assert found == [
        (where, rank, float(f"{rate:.2g}"), *others, seed)
        for where, rank, rate, *others in __main__.LORAS
        for seed in (0, 1)
    ]
    found = [(r["pairs"], r["way"], r["rate"], r["seed"], r["model"]) for r in stored["dpo"]]
    assert found == [(pairs, way, float(f"{rate:.2g}"), *others) for pairs, way, rate, *others in __main__.DPOS]
    assert all(
        len(r[key]) == DPO_RECIPE.steps for r in stored["dpo"] for key in ("loss", "margin", "chosen", "rejected")
    )


def test_what_the_chapter_says_of_the_masks_holds_in_both_models():
    for run in runs()["masks"]:
        if (run["mask"], run["ahead"]) == ("late", 1):
            assert run["place"][-1] == 0 and run["stop"][-1] == 1
        if (run["mask"], run["ahead"]) == ("early", 1):
            assert run["stop"][-1] == 0
        if run["ahead"] != 1:
            assert run["both"][-1] < 0.05


@pytest.mark.long
@pytest.mark.parametrize(("name", "mask", "ahead"), [("living", "late", 1)])
def test_a_stored_fine_tuning_is_what_is_trained_now(name, mask, ahead):
    [stored] = [r for r in runs()["masks"] if (r["model"], r["mask"], r["ahead"]) == (name, mask, ahead)]
    made = __main__.masked(name, mask, ahead)
    assert made["losses"][0] == pytest.approx(stored["losses"][0], abs=0.02), "before the first step"
    assert made["place"] == pytest.approx(stored["place"], abs=0.15)
    assert made["stop"][-1] == pytest.approx(stored["stop"][-1], abs=0.1)


QUICK = "halves", 2, "living"  # the others take half a minute, and a page trains two of them again


@pytest.mark.parametrize(
    "setting",
    [setting if setting == QUICK else pytest.param(setting, marks=pytest.mark.long) for setting in __main__.ANSWERS],
    ids=str,
)
def test_stored_answers_are_those_of_a_fine_tuning_now(setting):
    stored = runs()["answers"][__main__.ANSWERS.index(setting)]
    made = __main__.spoken(*setting)
    assert {made.pop(key) == stored.pop(key) for key in ("mask", "seed", "model")} == {True}
    assert made == pytest.approx(stored, abs=0.15)


@pytest.mark.long
def test_stored_lora_and_dpo_are_what_is_trained_now():
    [stored] = [r for r in runs()["lora"] if (r["where"], r["rank"], r["seed"]) == ("last", 8, 0)]
    made = __main__.adapted("last", 8)
    assert made["parameters"] == stored["parameters"] == 8 * (64 + 128)
    assert made["right"] == pytest.approx(stored["right"], abs=0.05)
    for pairs, way in (("right", "dpo"), ("right", "same model")):
        stored = next(r for r in runs()["dpo"] if (r["pairs"], r["way"]) == (pairs, way))
        made = __main__.preferred(pairs, way)
        assert made["loss"][0] == pytest.approx(stored["loss"][0], abs=1e-3)
        assert made["loss"][-1] == pytest.approx(stored["loss"][-1], abs=0.1)
        assert made["in_chinese"] == pytest.approx(stored["in_chinese"], abs=0.3) and made["in_chinese"] > 0.3


def test_a_reference_that_is_the_model_measures_no_margin():
    model = beginner()
    moved = prefer(model, model, pair_batches("right", 2), replace(DPO_RECIPE, steps=2))
    assert moved["margin"] == [0.0, 0.0] and moved["loss"] == pytest.approx([0.6931, 0.6931], abs=1e-4)


def test_lora_leaves_all_other_weights_as_they_were():
    model = beginner()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    trained = add_lora(model, 2, WHERE["last"])
    adapt(model, trained, replace(LORA_RECIPE, steps=2))
    now = dict(model.named_parameters())
    assert all(torch.equal(now[name.replace("o_proj.weight", "o_proj.linear.weight")], weight)
               if name.endswith("3.self_attn.o_proj.weight") else torch.equal(now[name], weight)
               for name, weight in before.items())  # fmt: skip
    assert trained[1].any()


def test_the_program_stores_a_rate_with_two_digits(monkeypatch, tmp_path):
    path = tmp_path / "runs.json"
    monkeypatch.setattr(__main__, "KINDS", {"lora": lambda: iter([{"rate": 1e-3 / 3, "right": 0.123456}])})
    monkeypatch.setattr(sys, "argv", ["tuning", "--into", str(path)])
    __main__.main()
    assert json.loads(path.read_text(encoding="utf-8")) == {"lora": [{"rate": 0.00033, "right": 0.123}]}
