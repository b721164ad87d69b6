"""Exercises on the whole model.

Positions, channels, heads and vocabulary have different sizes, so that a wrong axis shows.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from minimind_edu.checks.exercise import Case, Exercise, Mistake, numbers
from minimind_edu.model.bpe import BPE, BYTES, Pair, merge


def _encode_word(word: str, merges: Sequence[Pair]) -> list[int]:
    ids = tuple(word.encode())
    for new, pair in enumerate(merges, start=BYTES):
        ids = merge(ids, pair, new)
    return list(ids)


def _in_one_pass(word: str, merges: Sequence[Pair]) -> list[int]:
    learned = {pair: new for new, pair in enumerate(merges, start=BYTES)}
    joined: list[int] = []
    for piece in word.encode():
        joined.append(piece)
        while len(joined) > 1 and (joined[-2], joined[-1]) in learned:
            joined[-2:] = [learned[joined[-2], joined[-1]]]
    return joined


def _longest_first(word: str, merges: Sequence[Pair]) -> list[int]:
    data, pieces, ids = word.encode(), BPE(tuple(merges)).pieces, []
    while data:
        ids.append(max((i for i, piece in enumerate(pieces) if data.startswith(piece)), key=lambda i: len(pieces[i])))
        data = data[len(pieces[ids[-1]]) :]
    return ids


def _first_place_only(word: str, merges: Sequence[Pair]) -> list[int]:
    ids = list(word.encode())
    for new, pair in enumerate(merges, start=BYTES):
        places = [i for i, found in enumerate(zip(ids, ids[1:], strict=False)) if found == pair]
        for place in places[:1]:
            ids[place : place + 2] = [new]
    return ids


def _letters(word: str, merges: Sequence[Pair]) -> list[int]:
    ids: tuple[int, ...] = tuple(map(ord, word))
    for new, pair in enumerate(merges, start=BYTES):
        ids = merge(ids, pair, new)
    return list(ids)


_HALL = [(97, 108), (256, 108), (104, 257)]  # al, all, hall
_AB_FIRST = [(97, 98), (98, 99), (97, 257)]  # ab, bc, abc
_BC_FIRST = [(98, 99), (97, 98)]

check_encode_word = Exercise(
    "Does `attempt(word, merges)` give the ids of a word, the pairs of `merges` in the order of learning?",
    answer=_encode_word,
    cases=(
        Case("a word that is one piece", ("hall", _HALL)),
        Case("a word that no merge fits", ("key", _HALL)),
        Case("the longest piece is not always the one", ("abc", _AB_FIRST)),
        Case("merges in the order in which they were learned", ("abc", _BC_FIRST)),
        Case("every place of a pair, not only the first", ("hallall", _HALL)),
        Case("letters of several bytes", ("大厅", [(164, 167), (229, 256)])),
    ),
    mistakes=(
        Mistake(
            lambda word, merges: [i - BYTES if i >= BYTES else i for i in _encode_word(word, merges)],
            "the first merge makes piece 256, for the ids 0 to 255 are the bytes: start to count there",
        ),
        Mistake(
            _in_one_pass,
            "you join whatever fits while you read from the left; join the pair that was learned first wherever it is, "
            "then the second, and so on",
        ),
        Mistake(
            _longest_first,
            "you take the longest piece that fits from the left; BPE repeats its merges in the order of learning, and "
            "that may end with other pieces",
        ),
        Mistake(_first_place_only, "a pair can occur several times in a word: join all of them before the next merge"),
        Mistake(
            _letters, "these are the numbers of letters, not bytes: 大 is one letter and three bytes; word.encode()"
        ),
    ),
)


def _normed(x: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def _next_word(stream: Tensor, gain: Tensor, table: Tensor) -> Tensor:
    return ((_normed(stream) * gain) @ table.T).softmax(-1)


_GAIN = numbers(6, shift=0.4) + 1.5

check_next_word = Exercise(
    "Does `attempt(stream, gain, table)` give the probabilities `[S, V]` of the next word, for a stream `[S, E]`?",
    answer=_next_word,
    cases=(
        Case("three positions, 6 channels, nine words", (numbers(3, 6), _GAIN, numbers(9, 6, shift=2.0))),
        Case("a stream a hundred times larger", (100 * numbers(2, 6), _GAIN, numbers(5, 6, shift=1.0))),
        Case("one position", (numbers(1, 6), _GAIN, 3 * numbers(7, 6))),
        Case("a stream so small that the epsilon counts", (0.003 * numbers(2, 6), _GAIN, numbers(5, 6, shift=1.0))),
    ),
    mistakes=(
        Mistake(
            lambda x, gain, table: (x @ table.T).softmax(-1),
            "the final norm is missing: without it the probabilities depend on how large the stream has grown",
        ),
        Mistake(
            lambda x, gain, table: ((x * gain) @ table.T).softmax(-1),
            "the norm is missing, only its gain is there: divide by the root of the mean square first",
        ),
        Mistake(
            lambda x, gain, table: ((x / (x.pow(2).sum(-1, keepdim=True) + 1e-5).sqrt() * gain) @ table.T).softmax(-1),
            "you divide by the length of the vector, the root of the sum of squares; RMSNorm takes their mean",
        ),
        Mistake(
            lambda x, gain, table: ((x / x.norm(dim=-1, keepdim=True) * gain) @ table.T).softmax(-1),
            "you divide by the length of the vector, the root of the sum of squares; RMSNorm takes their mean",
        ),
        Mistake(
            lambda x, gain, table: ((x / (x.pow(2).mean(-1, keepdim=True).sqrt() + 1e-5) * gain) @ table.T).softmax(-1),
            "your epsilon is outside of the root: it is added to the mean square, before the root",
        ),
        Mistake(
            lambda x, gain, table: ((x / x.pow(2).mean(-1, keepdim=True).sqrt() * gain) @ table.T).softmax(-1),
            "the epsilon is missing: 1e-5 is added to the mean square, before the root",
        ),
        Mistake(
            lambda x, gain, table: (_normed(x) @ table.T).softmax(-1),
            "the gain is missing: the norm multiplies every channel by a number of its own",
        ),
        Mistake(
            lambda x, gain, table: (_normed(x) * gain) @ table.T,
            "these are logits, which may have any sign and sum; the softmax makes probabilities of them",
        ),
        Mistake(
            lambda x, gain, table: ((_normed(x) * gain) @ table.T).softmax(0),
            "your softmax runs over the positions: the words of one position share the probability 1, so use dim=-1",
        ),
        Mistake(
            lambda x, gain, table: ((_normed(x - x.mean(-1, keepdim=True)) * gain) @ table.T).softmax(-1),
            "this is a LayerNorm: RMSNorm does not subtract the mean",
        ),
    ),
)


Step = Callable[[Tensor], Tensor]  # ids [S] -> logits [S, V]


def _greedy(step: Step, ids: Tensor, count: int) -> Tensor:
    for _ in range(count):
        ids = torch.cat([ids, step(ids)[-1:].argmax(-1)])
    return ids


def _from_the_end_of_the_prompt(step: Step, ids: Tensor, count: int) -> Tensor:
    text = ids
    for _ in range(count):
        text = torch.cat([text, step(text)[len(ids) - 1].argmax(-1, keepdim=True)])
    return text


def _without_the_past(step: Step, ids: Tensor, count: int) -> Tensor:
    for _ in range(count):
        ids = torch.cat([ids, step(ids[-1:])[-1:].argmax(-1)])
    return ids


def _reader(words: int) -> Step:
    """A model whose logits depend on all words so far and on their order, so that every word surprises."""

    def step(ids: Tensor) -> Tensor:
        read = ((ids + 1) * torch.arange(1, len(ids) + 1)).cumsum(0).double()
        return torch.sin(read[:, None] * torch.linspace(0.7, 2.9, words, dtype=torch.float64))

    return step


check_greedy = Exercise(
    "Does `attempt(step, ids, count)` append the `count` most probable words to ids `[S]`, one after the other?",
    answer=_greedy,
    cases=(
        Case("five words after a prompt of three", (_reader(11), torch.tensor([4, 0, 7]), 5)),
        Case("eight words after a prompt of one", (_reader(13), torch.tensor([3]), 8)),
        Case("one word", (_reader(11), torch.tensor([2, 2, 9, 5]), 1)),
        Case("no word at all", (_reader(11), torch.tensor([1, 6]), 0)),
    ),
    mistakes=(
        Mistake(
            _from_the_end_of_the_prompt,
            "one word again and again: the model reads your text, but you take the logits at the end of the prompt, or "
            "never append the word; the next word is at the last position of a growing text",
        ),
        Mistake(
            _without_the_past,
            "you show the model only the last word: without a cache it must read the whole text again",
        ),
        Mistake(
            lambda step, ids, count: torch.cat([ids, *[step(ids)[:1].argmax(-1)] * count]),
            "these are the logits of the first position, which predict the second word of the prompt",
        ),
        Mistake(
            lambda step, ids, count: _greedy(step, ids, count)[len(ids) :],
            "return the prompt too: the words chosen are its continuation",
        ),
        Mistake(lambda step, ids, count: _greedy(step, ids, count + 1), "this is one word too many"),
    ),
)


def _silenced(weight: Tensor, head: int, head_dim: int, axis: int = 1) -> Tensor:
    inside = torch.arange(weight.shape[axis]) // head_dim == head
    return weight.masked_fill(inside if axis else inside[:, None], 0.0)


def _every_so_many(weight: Tensor, head: int, head_dim: int) -> Tensor:
    heads = weight.shape[1] // head_dim
    return weight.masked_fill(torch.arange(weight.shape[1]) % heads == head, 0.0)


_KEPT = "you changed the weights that you were given; return a copy, or the head stays silent for ever"

check_silence = Exercise(
    "Does `attempt(weight, head, head_dim)` give o_proj's weight `[E, H * D]` with which this head adds nothing?",
    answer=_silenced,
    cases=(
        Case("the second of 3 heads, 4 channels each", (numbers(12, 12), 1, 4), untouched=_KEPT),
        Case("the first of 4 heads, 2 channels each", (numbers(8, 8), 0, 2), untouched=_KEPT),
        Case("heads that are together wider than the stream", (numbers(5, 12), 2, 4), untouched=_KEPT),
    ),
    mistakes=(
        Mistake(
            lambda weight, head, size: _silenced(weight, head, size, axis=0),
            "these are rows, which write channels of the stream; heads come in as columns, for y = x Wᵀ",
        ),
        Mistake(
            _every_so_many,
            "head h has the channels h * head_dim to (h + 1) * head_dim, side by side, not every H-th one",
        ),
        Mistake(
            lambda weight, head, size: _silenced(weight, head - 1, size) if head else _silenced(weight, -1, size),
            "this silences the head before: heads are counted from 0",
        ),
        Mistake(
            lambda weight, head, size: weight - _silenced(weight, head, size),
            "you kept this head and silenced all others",
        ),
        Mistake(
            lambda weight, head, size: torch.cat([weight[:, : head * size], weight[:, (head + 1) * size :]], 1),
            "the columns are gone, so the heads no longer fit: set them to 0 and leave the shape as it is",
        ),
    ),
)


def _divergence(exact: Tensor, logits: Tensor, default: float = 1.0) -> Tensor:
    log_exact = torch.where(exact > 0, exact, default).log()
    return (exact * (log_exact - logits.log_softmax(-1))).sum(-1).mean()


def _reversed(exact: Tensor, logits: Tensor) -> Tensor:
    log_model = logits.log_softmax(-1)
    return (log_model.exp() * (log_model - exact.log())).sum(-1).mean()


_LOGITS, _EXACT = 2 * numbers(3, 5, shift=0.3), (2 * numbers(3, 5)).softmax(-1)
_RULED_OUT = torch.tensor([[0.5, 0.5, 0, 0, 0], [0, 0, 0.2, 0.2, 0.6], [1, 0, 0, 0, 0]], dtype=torch.float64)

check_divergence = Exercise(
    "Is `attempt(exact, logits)` the mean KL(world, model) in nats, `[T, V]` each -> a number?",
    answer=_divergence,
    cases=(
        Case("every word is possible", (_EXACT, _LOGITS)),
        Case("the model agrees with the world", (_EXACT, 2 * numbers(3, 5))),
        Case("some words are ruled out", (_RULED_OUT, _LOGITS)),
        Case("only one word can follow", (_RULED_OUT[2:], 3 * _LOGITS[:1])),
    ),
    mistakes=(
        Mistake(
            lambda exact, logits: _divergence(exact, logits, default=0.0),
            "NaN: 0 times the logarithm of 0; a word that the world rules out adds nothing to the sum",
        ),
        Mistake(
            _reversed,
            "this is the distance the other way round: weigh with the world's probabilities, not with the model's",
        ),
        Mistake(
            lambda exact, logits: -(exact * logits.log_softmax(-1)).sum(-1).mean(),
            "this is the loss; subtract what even a perfect model pays, the world's own entropy",
        ),
        Mistake(
            lambda exact, logits: _divergence(exact, logits) * len(exact),
            "you added the positions up: take their mean",
        ),
        Mistake(
            lambda exact, logits: _divergence(exact, logits) / exact.shape[-1],
            "the mean is over positions only: at each of them, add up all words",
        ),
    ),
)
