"""checks.whole_model: right answers in other words pass, and what a comparison of results cannot show is noticed."""

import torch
import torch.nn.functional as F
from judged_answers import judged

from minimind_edu import checks
from minimind_edu.model.bpe import BPE


def encoded_by_the_package(word, merges):
    return BPE(tuple(merges)).encode(word)


def next_word_by_pytorch(stream, gain, table):
    return F.linear(F.rms_norm(stream, gain.shape, gain, eps=1e-5), table).softmax(-1)


def greedy_with_a_list(step, ids, count):
    words = ids.tolist()
    for _ in range(count):
        words.append(int(step(torch.tensor(words))[-1].argmax()))
    return words


def silenced_by_slices(weight, head, head_dim):
    weight = weight.clone()
    weight[:, head * head_dim : (head + 1) * head_dim] = 0
    return weight


def divergence_by_pytorch(exact, logits):
    return F.kl_div(logits.log_softmax(-1), exact, reduction="batchmean")


RIGHT = [
    (checks.check_encode_word, encoded_by_the_package),
    (checks.check_next_word, next_word_by_pytorch),
    (checks.check_greedy, greedy_with_a_list),
    (checks.check_silence, silenced_by_slices),
    (checks.check_divergence, divergence_by_pytorch),
]


def silenced_for_ever(weight, head, head_dim):
    weight[:, head * head_dim : (head + 1) * head_dim] = 0
    return weight


def words_learned_last_first(word, merges):
    ids = tuple(word.encode())
    for new, (left, right) in reversed([*enumerate(merges, start=256)]):
        while (left, right) in zip(ids, ids[1:], strict=False):
            place = [*zip(ids, ids[1:], strict=False)].index((left, right))
            ids = (*ids[:place], new, *ids[place + 2 :])
    return list(ids)


def next_word_with(size):
    def next_word(stream, gain, table):
        return F.linear(stream / size(stream) * gain, table).softmax(-1)

    return next_word


def root_of(squares):
    return lambda stream: squares(stream * stream).unsqueeze(-1).sqrt()


WRONG = [
    (checks.check_next_word, next_word_with(lambda stream: 1), "the norm is missing, only its gain is there"),
    (
        checks.check_next_word,
        lambda stream, gain, table: F.linear(stream, table).softmax(-1),
        "the final norm is missing",
    ),
    (checks.check_next_word, next_word_with(root_of(lambda squares: squares.sum(-1))), "the length of the vector"),
    (
        checks.check_next_word,
        next_word_with(root_of(lambda squares: squares.sum(-1) + 1e-5)),
        "the length of the vector",
    ),
    (checks.check_next_word, next_word_with(root_of(lambda squares: squares.mean(-1))), "the epsilon is missing"),
    (
        checks.check_next_word,
        next_word_with(lambda stream: root_of(lambda squares: squares.mean(-1))(stream) + 1e-5),
        "your epsilon is outside of the root",
    ),
    (checks.check_silence, silenced_for_ever, "the head stays silent for ever"),
    (checks.check_encode_word, words_learned_last_first, "expected"),
    (checks.check_divergence, lambda exact, logits: divergence_by_pytorch(exact, logits) / 0.6931, "expected"),
    (checks.check_greedy, lambda step, ids, count: None if count else ids, "returns None here"),
]


test_a_right_answer_passes, test_a_wrong_answer_gets_the_hint_that_fits = judged(RIGHT, WRONG)
