"""Fine-tuning: the book's model learns to chat about its world, with other tokens counted, with LoRA, with DPO.

    chats       questions about short stories as chats: template, ids, padding
    MASKS       which tokens count, right or with a known mistake
    sft         fine-tuning with one of them
    adapt       the same with LoRA: answer in Chinese
    prefer      DPO: what moved, step by step
    __main__    `python -m minimind_edu.trained.tuning` trains all of it and stores what came out

The model knows the stories and has never seen a chat: four tokens are added to its vocabulary, and `<s>` begins every
message as it began every story.
"""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from minimind_edu import world
from minimind_edu.device import device_of, one_thread
from minimind_edu.model.chat import IGNORED, answer_labels
from minimind_edu.model.dpo import answer_log_probability, dpo_loss
from minimind_edu.model.lora import PROJECTIONS
from minimind_edu.model.loss import next_token_loss
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.living import living_model
from minimind_edu.trained.training import Recipe
from minimind_edu.validation import check_choice
from minimind_edu.world.house import say
from minimind_edu.world.words import BOS, PEOPLE, PLACES, TWIN

RUNS = Path(__file__).parent / "runs.json"

WORDS = [*world.WORDS, "user", "assistant", "</s>", "<pad>"]
USER, ASSISTANT, END, PAD = range(len(world.WORDS), len(WORDS))
OPENS = (BOS, ASSISTANT)  # after these an answer begins
LENGTH = 32  # of a row, padding included
BATCH = 16
RECIPE = Recipe(steps=100, learning_rate=1e-3, warmup=10, weight_decay=0.0)
LOOKS = (0, 10, 20, 30, 50, 70, 100)  # steps after which the model is looked at
MASKS = ("answer", "early", "late", "all", "padding")
HALVES = ("answer", "story")  # a fine-tuning named `halves` gives half of the loss to each
AHEAD = (1, 0, 2)  # a label is the token so far ahead: 1 is right
SHIFTED = ("answer", "all")  # the masks that were trained with each of them


class Chat(NamedTuple):
    """A story with a question, and its right answer."""

    question: list[int]  # what the user says: a story, and a question
    answer: list[int]  # one place

    @property
    def prompt(self) -> list[int]:
        """The ids up to where the answer begins."""
        return [BOS, USER, *self.question, END, *OPENS]

    @property
    def ids(self) -> list[int]:
        """The ids of the whole chat."""
        return [*self.prompt, *self.answer, END]


def chats(count: int, seed: int) -> list[Chat]:
    """Chats, the same for a seed: two or three people are somewhere, one may go elsewhere, and one is asked for."""
    draw, made = random.Random(seed), []
    for _ in range(count):
        language, cast = draw.randrange(2), draw.choice((2, 3))
        people, places = draw.sample(range(8), cast), draw.sample(range(8), cast + 1)
        where = dict(zip(people, places, strict=False))
        story = [word for p in people for word in say("is", language, {"P": p, "A": where[p]})]
        if draw.random() < 0.5:
            goes = draw.choice(people)
            story += say("go", language, {"P": goes, "A": where[goes], "B": places[-1]})
            where[goes] = places[-1]
        asked = draw.choice(people)
        *question, place, _ = say("where", language, {"P": asked, "A": where[asked]})
        made.append(Chat(story + question[:-1], [place]))
    return made


def occupied(chat: Chat) -> set[str]:
    """The rooms, as English words, in which somebody is when the story of a chat ends."""
    where = world.state_after([BOS, *chat.question]).place
    return {where[name] for name in PEOPLE[0] if name in where}


def rows(made: Sequence[Chat], length: int = LENGTH) -> Tensor:
    """Chats as ids `[chats, length]`, filled up with padding on the right."""
    return torch.tensor([chat.ids + [PAD] * (length - len(chat.ids)) for chat in made])


def labels_of(ids: Tensor, mask: str = "answer", ahead: int = 1) -> Tensor:
    """The labels `[B, S]` for `next_token_loss`, -100 where a mask does not count.

    Args:
        ids: of `rows`.
        mask: `answer`, right; `early` or `late`, the same mask one token too far left or right; `all` tokens but
            padding; `padding`, that as well; `story`, all that neither `answer` nor padding is.
        ahead: 1, right; 0, nothing is shifted, and each token is to say itself; 2, shifted twice.

    Raises:
        ValueError: for another mask or `ahead`.
    """
    check_choice("mask", mask, (*MASKS, "story"))
    check_choice("ahead", ahead, AHEAD)
    counts = answer_labels(ids, OPENS, [END]) != IGNORED
    if mask in ("early", "late"):
        counts = counts.roll(1 if mask == "late" else -1, dims=1)  # a row neither begins nor ends with an answer
    elif mask == "all":
        counts = ids != PAD
    elif mask == "story":
        counts = ~counts & (ids != PAD)
    elif mask == "padding":
        counts = torch.ones_like(counts)
    labels = ids.masked_fill(~counts, IGNORED)
    # the loss shifts by one; what is wrong by one more or less, a wrong data set or model would do before or after it
    empty = labels.new_full((len(labels), 1), IGNORED)
    shifted = {0: [empty, labels[:, :-1]], 1: [labels], 2: [labels[:, 1:], empty]}
    return torch.cat(shifted[ahead], dim=1)


def beginner(name: str = "living", seed: int = 0) -> MiniMindForCausalLM:
    """The stored model of this name with a larger vocabulary: it can read a chat, and has learned nothing from one."""
    old = living_model(name)
    config = replace(old.config, vocab_size=len(WORDS), eos_token_id=END)
    model = MiniMindForCausalLM(config)
    state = old.state_dict()
    drawn = np.random.default_rng(seed).standard_normal((len(WORDS) - len(world.WORDS), config.hidden_size))
    new = torch.from_numpy(drawn * config.initializer_range).float()
    for key in ("model.embed_tokens.weight", "lm_head.weight"):
        state[key] = torch.cat([state[key], new])
    model.load_state_dict(state)
    return model.eval()


@one_thread()
def tune(
    parameters: Iterable[nn.Parameter],
    loss_of: Callable[[int], Tensor],
    recipe: Recipe = RECIPE,
    after: Callable[[int], None] | None = None,
) -> list[float]:
    """Lower a loss by AdamW and return its values, one before each step.

    Args:
        parameters: what is trained; all else stays as it is.
        loss_of: the loss of a step, counted from 0, with its gradient.
        recipe: steps, rate, and how both are used.
        after: called with the number of steps taken, first 0.
    """
    trained, losses = list(parameters), []
    optimizer = torch.optim.AdamW(trained, betas=recipe.betas, weight_decay=recipe.weight_decay)
    for step in range(recipe.steps + 1):
        if after:
            after(step)
        if step == recipe.steps:
            return losses
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        loss = loss_of(step)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, recipe.clip)
        optimizer.step()
    return losses


@torch.no_grad()
def answers(model: MiniMindForCausalLM, asked: Sequence[Chat], most: int = 6) -> list[list[int]]:
    """What the model says, greedily, to each chat, at most so many tokens; `</s>` ends it and is its last token."""
    replies: list[list[int]] = [[] for _ in asked]
    for _ in range(most):
        going = [number for number, spoken in enumerate(replies) if spoken[-1:] != [END]]
        if not going:
            break
        known = [torch.tensor(asked[number].prompt + replies[number]) for number in going]
        ids = pad_sequence(known, batch_first=True, padding_value=PAD)  # on the right: nobody reads it
        says = model(ids.to(device_of(model))).logits.argmax(-1).cpu()
        for number, row, read in zip(going, says.tolist(), known, strict=True):
            replies[number].append(row[len(read) - 1])
    return replies


@torch.no_grad()
def grades(model: MiniMindForCausalLM, asked: Sequence[Chat]) -> dict[str, float]:
    """The shares of chats in which the right answer is the likeliest, and `</s>` after it, and both."""
    ids, device = rows(asked), device_of(model)
    says = model(ids.to(device)).logits.argmax(-1).cpu()
    first = torch.tensor([len(chat.prompt) - 1 for chat in asked])
    at, right = torch.arange(len(asked)), torch.tensor([chat.answer[0] for chat in asked])
    place, stop = says[at, first] == right, says[at, first + 1] == END
    return {name: hit.float().mean().item() for name, hit in (("place", place), ("stop", stop), ("both", place & stop))}


def answer_counts(model: MiniMindForCausalLM, asked: Sequence[Chat]) -> dict[str, float]:
    """How answers begin and end, as shares of these chats.

    Returns:
        right: begin with the right room.
        occupied: with a room in which somebody is, in either language.
        pad, once: with `<pad>`; with `</s>`, so that nothing is said.
        ends: end within six tokens.
    """
    replies = answers(model, asked)
    first = [reply[0] for reply in replies]
    rooms = [WORDS[i - TWIN if TWIN < i < USER else i] for i in first]
    hits = {
        "right": [i == chat.answer[0] for i, chat in zip(first, asked, strict=True)],
        "occupied": [room in occupied(chat) for room, chat in zip(rooms, asked, strict=True)],
        "pad": [i == PAD for i in first],
        "once": [i == END for i in first],
        "ends": [reply[-1] == END for reply in replies],
    }
    return {name: sum(hit) / len(asked) for name, hit in hits.items()}


# Fine-tuning with every kind of mask


def example() -> Chat:
    """The chat of the figure, 18 tokens."""
    question = "Mia is in the hall. Tom is in the attic. where is Mia?"
    return Chat(world.encode(question).tolist(), world.encode("hall").tolist())


EXAMPLE_LENGTH = 20  # with two of padding


@torch.no_grad()
def surprises(model: MiniMindForCausalLM, ids: Tensor, labels: Tensor) -> Tensor:
    """The loss of each position of rows `[B, S]`, 0 where a label does not count: what the mean is taken of."""
    log_p = model(ids.to(device_of(model))).logits.cpu()[:, :-1].log_softmax(-1)
    following = labels[:, 1:]
    found = -log_p.gather(-1, following.clamp(min=0)[..., None])[..., 0]
    return found.masked_fill(following == IGNORED, 0.0)


def sft(
    model: MiniMindForCausalLM,
    mask: str = "answer",
    ahead: int = 1,
    recipe: Recipe = RECIPE,
    seed: int = 0,
    after: Callable[[int], None] | None = None,
) -> list[float]:
    """Fine-tune a model on new chats, all of its weights, and return the losses; arguments as of `labels_of`.

    With `halves` for a mask the loss is the mean of two, one for each of HALVES.
    """
    ids = rows(chats(BATCH * recipe.steps, seed)).split(BATCH)
    device, masks = device_of(model), HALVES if mask == "halves" else (mask,)

    def loss_of(step: int) -> Tensor:
        logits = model(ids[step].to(device)).logits
        losses = [next_token_loss(logits, labels_of(ids[step], part, ahead).to(device)) for part in masks]
        return torch.stack(losses).mean()

    return tune(model.parameters(), loss_of, recipe, after)


# LoRA: the same model learns to answer in Chinese, whatever the language of the question

RANKS = (1, 2, 4, 8, 16)
WHERE = {  # the last matrix that attention writes with, the first, or all matrices
    "last": ("layers.3.self_attn.o_proj",),
    "first": ("layers.0.self_attn.o_proj",),
    "all": PROJECTIONS,
}
LORA_RECIPE = replace(RECIPE, steps=60, learning_rate=5e-3)


def in_chinese(made: Iterable[Chat]) -> list[Chat]:
    """The same chats, answered in Chinese."""
    return [chat._replace(answer=[place + TWIN * (place < TWIN) for place in chat.answer]) for chat in made]


def english(made: Iterable[Chat]) -> list[Chat]:
    """Those of the chats that are told and answered in English."""
    return [chat for chat in made if chat.answer[0] < TWIN]


def adapt(
    model: MiniMindForCausalLM, trained: Iterable[nn.Parameter], recipe: Recipe = LORA_RECIPE, seed: int = 0
) -> None:
    """Teach a chatting model to answer in Chinese: the loss on the answers, to these parameters alone."""
    ids = rows(in_chinese(chats(BATCH * recipe.steps, seed))).split(BATCH)
    device = device_of(model)

    def loss_of(step: int) -> Tensor:
        return next_token_loss(model(ids[step].to(device)).logits, labels_of(ids[step]).to(device))

    tune(trained, loss_of, recipe)


# DPO: two answers, and which is preferred

PAIRS = ("right", "chinese")  # the right place to another of the story; the answer in Chinese to the one in English
WAYS = (
    "dpo",
    "same model",
    "divided",
)  # with the frozen reference, with the model as its own, divided by a row's length
BETA, DPO_BATCH, ROW = 0.1, 8, 3000  # ROW: the tokens of a row, padding included, as MiniMind divided by in 2025
DPO_RECIPE = Recipe(steps=25, learning_rate=3e-4, warmup=1, weight_decay=0.0)


def pair_batches(pairs: str, steps: int, seed: int = 0) -> list[Tensor]:
    """For each step ids `[2 * DPO_BATCH, LENGTH]` of English chats: all chosen answers, then the rejected ones.

    Raises:
        ValueError: for other pairs.
    """
    check_choice("pairs", pairs, PAIRS)
    made = english(chats(3 * DPO_BATCH * steps, 7 + seed))[: DPO_BATCH * steps]
    chosen = made if pairs == "right" else in_chinese(made)
    rejected = [chat._replace(answer=[_other(chat)]) for chat in made] if pairs == "right" else made
    batches = [slice(step * DPO_BATCH, (step + 1) * DPO_BATCH) for step in range(steps)]
    return [rows(chosen[part] + rejected[part]) for part in batches]


def _other(chat: Chat) -> int:
    """The first place of a story that is not the answer."""
    return next(i for i in chat.question if WORDS[i] in PLACES[0] and i not in chat.answer)


def prefer(
    model: MiniMindForCausalLM,
    reference: MiniMindForCausalLM,
    ids: Sequence[Tensor],
    recipe: Recipe = DPO_RECIPE,
    beta: float = BETA,
    divided_by: int = 1,
) -> dict[str, list[float]]:
    """DPO on batches of pairs, one for each step: the loss, and the means of the margin and both log-ratios.

    Args:
        model: changed in place.
        reference: never trained here; the very same object as the model keeps every margin at 0.
        ids: of `pair_batches`, a batch for each step.
        recipe: of `tune`.
        beta: of `dpo_loss`.
        divided_by: what every log-probability is divided by.
    """
    moved: dict[str, list[float]] = {name: [] for name in ("loss", "margin", "chosen", "rejected")}
    batches = [batch.to(device_of(model)) for batch in ids]

    def log_p_of(scored: MiniMindForCausalLM, batch: Tensor) -> Tensor:
        return answer_log_probability(scored(batch).logits, labels_of(batch)) / divided_by

    with torch.no_grad():  # a reference that stays as it is reads all batches at once
        known_of = log_p_of(reference, torch.cat(batches)).split([len(batch) for batch in batches])

    def loss_of(step: int) -> Tensor:
        log_p = log_p_of(model, batches[step])
        known = log_p.detach() if reference is model else known_of[step]
        loss, margin = dpo_loss(log_p, known, beta)
        chosen, rejected = (log_p - known).detach().chunk(2)
        for name, value in (("loss", loss), ("margin", margin), ("chosen", chosen), ("rejected", rejected)):
            moved[name].append(value.mean().item())
        return loss

    tune(model.parameters(), loss_of, recipe)
    return moved


def runs() -> dict[str, Any]:
    """What is stored: see `__main__`."""
    return json.loads(RUNS.read_text(encoding="utf-8"))
