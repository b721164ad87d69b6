"""What a trained model still answers and writes when its cache has a bug.

Answers are compared with a guess that needs no model; what a story's first mistake is, `written` tells.
"""

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from minimind_edu import world
from minimind_edu.device import device_of
from minimind_edu.model.broken_caches import read
from minimind_edu.model.layer_cache import KeyValue
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.world.words import IDS, PLACES, TWIN

EARLIER = "<s> Tom is in the hall."  # what a cache that was not emptied still holds, if nothing else is said


@torch.no_grad()
def right_answers(
    model: MiniMindForCausalLM, bug: str, asked: Sequence[world.Question], chunk: int = 16, earlier: str = EARLIER
) -> int:
    """To how many questions the first word of the answer is right. Questions of as many calls are read together.

    Args:
        model: who is asked.
        bug: one of `minimind_edu.model.broken_caches.BUGS`.
        asked: the questions.
        chunk: so many words of a prompt go into a call.
        earlier: the text that a "stale" cache still holds.
    """
    alike = defaultdict(list)
    for question in asked:
        earlier_words = (len(question.prompt) - 1) // chunk * chunk
        # a last call of a single word gets no mask, even a square one: it is read apart
        alike[earlier_words, len(question.prompt) - earlier_words == 1].append(question)
    return sum(_right(model, bug, group, chunk, earlier) for group in alike.values())


def _right(model: MiniMindForCausalLM, bug: str, group: Sequence[world.Question], chunk: int, earlier: str) -> int:
    device, count = device_of(model), len(group)
    # shorter prompts are filled up behind their last word, which does not read what follows it
    ids = pad_sequence([torch.from_numpy(question.prompt) for question in group], batch_first=True).to(device)  # [B, S]
    last = torch.tensor([(len(question.prompt) - 1) % chunk for question in group], device=device)  # in its call
    wanted = torch.tensor([question.answer[0] for question in group], device=device)
    cache, logits = None, ids.new_zeros(0)
    if bug == "stale":
        cache = _held(model, earlier, count)
    for piece in ids.split(chunk, dim=1):
        logits, cache = read(model, piece, cache, bug)
    return int((logits[torch.arange(count, device=device), last].argmax(-1) == wanted).sum())


def _held(model: MiniMindForCausalLM, text: str, count: int) -> list[KeyValue]:
    """The cache of a text, the same for `count` rows of a batch."""
    _, held = read(model, torch.from_numpy(world.encode(text))[None].to(device_of(model)))
    return [(key.expand(count, -1, -1, -1), value.expand(count, -1, -1, -1)) for key, value in held]


@torch.no_grad()
def written(model: MiniMindForCausalLM, bug: str, prompts: Tensor, count: int, chunk: int = 3) -> Tensor:
    """The words `[B, count]` with which a model goes on after prompts `[B, S]`, each the likeliest.

    Args:
        model: who writes.
        bug: one of `minimind_edu.model.broken_caches.BUGS`. A "stale" cache still holds `EARLIER`.
        prompts: texts of one length.
        count: how many words to write, one in a call.
        chunk: so many words of a prompt go into a call.
    """
    cache = _held(model, EARLIER, len(prompts)) if bug == "stale" else None
    words: list[Tensor] = []
    unread = list(prompts.split(chunk, dim=1))
    while len(words) < count:
        for piece in unread:
            logits, cache = read(model, piece, cache, bug)
        words.append(logits[:, -1].argmax(-1, keepdim=True))
        unread = words[-1:]
    return torch.cat(words, dim=1)


@torch.no_grad()
def read_in_calls(model: MiniMindForCausalLM, bug: str, ids: Tensor, prompt: int, chunk: int = 3) -> Tensor:
    """The logits `[B, S, V]` of given texts, read in the calls in which `written` reads and writes them.

    Args:
        model: who reads.
        bug: as in `written`.
        ids: texts `[B, S]`.
        prompt: how many words of each are its prompt; each later one has a call of its own.
        chunk: so many words of the prompt go into a call.
    """
    cache, found = _held(model, EARLIER, len(ids)) if bug == "stale" else None, []
    for piece in (*ids[:, :prompt].split(chunk, dim=1), *ids[:, prompt:].split(1, dim=1)):
        logits, cache = read(model, piece, cache, bug)
        found.append(logits)
    return torch.cat(found, dim=1)


def right_by_last_place(asked: Sequence[world.Question]) -> int:
    """The same for whoever names the last place in the text, in the language of the answer; a "where" question."""
    places = {IDS[word] for words in PLACES for word in words}

    def meant(i: int) -> int:  # a place, in whichever language
        return i - TWIN if i - TWIN in places else i

    last = [[meant(i) for i in question.prompt.tolist() if i in places][-1] for question in asked]
    return sum(place == meant(int(question.answer[0])) for place, question in zip(last, asked, strict=True))
