"""QuantizationGrid: a row of the trained model's weights on a grid of few levels, and what such rows answer and write.

The row is rounded in JavaScript (quantization_grid/math.js, compared with `minimind_edu.model.quantization` in the
tests). What the rounded model answers to twelve questions is computed here for every grid, and what it writes is stored
(`minimind_edu.trained.living.written`), so that the control needs no model in the page; other rows and the reader's
story are read with the living model, which arrives when it is asked.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from traitlets import Bunch, Dict, Enum, Int, TraitError, default, observe, validate

from minimind_edu import world
from minimind_edu.device import one_thread
from minimind_edu.model.quantization import FEWEST, MOST, Grid, bytes_of_model, matrices, rounded_model
from minimind_edu.trained.living import CONFIG, living_model, written
from minimind_edu.web.base import Figure
from minimind_edu.web.traits import Finite, proposed

PER = written.PER
GROUP = 16  # columns that share a scale, where a group does
MATRICES = {
    "q_proj": "self_attn.q_proj",
    "k_proj": "self_attn.k_proj",
    "v_proj": "self_attn.v_proj",
    "o_proj": "self_attn.o_proj",
    "gate_proj": "mlp.gate_proj",
    "up_proj": "mlp.up_proj",
    "down_proj": "mlp.down_proj",
}
MOST_PULL = 1.7  # times its own size
KINDS = ("where", "where object", "who", "recall", "people", "objects")  # asked in English, answered in a word
EACH, SEED = 2, 1  # questions of a kind, all that are drawn with this seed
WORDS = 4  # that are told of a question, at least
AFTER = 2  # words that are shown after the first impossible one
FIRST_LETTER = "#"  # stands for the first word of the stories


class QuantizationGrid(Figure):
    """Drag the number of bits: a row of weights moves to the levels of its grid; stories fail first, answers later.

    Args:
        bits: of a weight, 2 to 8; the grid has 2^bits - 1 levels.
        per: which weights share a scale: the `tensor`, the `row`, or a `group` of 16 neighbors in it.
        layer: 1 to 4, of the row that is shown.
        matrix: of this layer, a key of MATRICES.
        row: from 0, as an index; the picture counts from 1.
        pull: how many times its own size the row's largest weight is drawn, 0 to 1.7; only in the picture.
        question: of the twelve, whose next word is shown, 0 to 11; None: a story is shown instead.
        story: of those with the same beginning, which one is shown, 0 to 2.

    Raises:
        TraitError: if a value is out of its range, or the matrix has no such row.
    """

    _repr_traits = ("bits", "per", "layer", "matrix", "row", "pull", "question", "story")

    bits = Int(4, min=FEWEST, max=MOST).tag(sync=True)
    per = Enum(tuple(PER), default_value="row").tag(sync=True)
    layer = Int(2, min=1, max=CONFIG.num_hidden_layers).tag(sync=True)
    matrix = Enum(tuple(MATRICES), default_value="up_proj").tag(sync=True)
    row = Int(6, min=0).tag(sync=True)
    pull = Finite(1.0, min=0.0, max=MOST_PULL).tag(sync=True)
    question = Int(None, min=0, max=len(KINDS) * EACH - 1, allow_none=True).tag(sync=True)
    story = Int(0, min=0, max=written.SHOWN - 1).tag(sync=True)
    # what follows from the weights
    weights = Dict(read_only=True).tag(sync=True)
    exam = Dict(read_only=True).tag(sync=True)
    stories = Dict(read_only=True).tag(sync=True)

    @validate("row")
    def _row_of_the_matrix(self, proposal: Bunch) -> int:
        row, layer, matrix = proposed(self, proposal, "row", "layer", "matrix")
        last = len(matrix_of(layer, matrix)) - 1
        if row > last:
            raise TraitError(f"row must be from 0 to {last}, the last of {matrix}, got {row}")
        return row

    @observe("layer", "matrix", "row")
    def _read_anew(self, _: Bunch) -> None:
        self.row = min(self.row, len(matrix_of(self.layer, self.matrix)) - 1)
        self.set_trait("weights", row_of(self.layer, self.matrix, self.row))

    @default("weights")
    def _weights_of_the_row(self) -> dict[str, Any]:
        return row_of(self.layer, self.matrix, self.row)

    @default("exam")
    def _stored_exam(self) -> dict[str, Any]:
        return _packed(exam())

    @default("stories")
    def _stored_stories(self) -> dict[str, Any]:
        return free_stories()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        asked = len(self.exam["questions"])
        rows = [
            (
                f"{bits} bits",
                f"{self.right(self.per, int(bits))} of {asked} answers right, "
                f"{self.stories['results'][self.per][bits]['holds']} of {written.STORIES} stories hold, "
                f"KL {result['kl']:.3g} nats, {result['size']:.2f} bits with scales",
            )
            for bits, result in self.exam["results"][self.per].items()
        ]
        return (
            f"The book's trained model with all matrices rounded, one scale per {self.per}: with {self.bits} bits it "
            f"answers {self.right(self.per, self.bits)} of {asked} questions.",
            rows,
        )

    def right(self, per: str, bits: int) -> int:
        """How many of the questions the model rounded to this grid answers."""
        return exam()["results"][per][str(bits)]["said"].count(0)  # of the words of a question it is the first


@cache
def _tensors() -> dict[str, Tensor]:
    """The matrices of the trained model by their names."""
    return {name: matrix.detach() for name, matrix in matrices(living_model())}


def matrix_of(layer: int, matrix: str) -> Tensor:
    """The weights [R, C] of a matrix of MATRICES, in a layer counted from 1."""
    return _tensors()[f"model.layers.{layer - 1}.{MATRICES[matrix]}.weight"]


def row_of(layer: int, matrix: str, row: int) -> dict[str, Any]:
    """What the picture needs of a row: its weights, how many rows there are, and the largest size in the others."""
    weights = matrix_of(layer, matrix)
    others = weights[torch.arange(len(weights)) != row].abs().max().item()
    values = weights[row].tolist()
    return {"layer": layer, "matrix": matrix, "row": row, "rows": len(weights), "values": values, "others": others}


def asked() -> list[world.Question]:
    """The twelve questions, in the order of their kinds."""
    return [question for kind in KINDS for question in world.questions(kind, EACH, SEED, story="en", asked="en")]


def _packed(exam: dict[str, Any]) -> dict[str, Any]:
    """The same with shorter rows of numbers: the zeros at their ends, most of all numbers, are left out."""
    questions = [question | {"before": _shorter(question["before"])} for question in exam["questions"]]
    results = {
        per: {
            bits: result | {"said": _shorter(result["said"]), "after": [*map(_shorter, result["after"])]}
            for bits, result in of_bits.items()
        }
        for per, of_bits in exam["results"].items()
    }
    return {"questions": questions, "results": results}


def _shorter(row: list[int]) -> list[int]:
    return row[: max((at for at, share in enumerate(row, 1) if share), default=0)]


@cache
@one_thread()
@torch.no_grad()
def exam() -> dict[str, Any]:
    """What the model says to the twelve questions, as it is and with all matrices rounded to every grid.

    Returns:
        questions: of each its `text`, its `answer`, the `words` that are told of, and `before`: their probabilities in
            thousandths.
        results: by `per` and bits, `said`: which of its words is the likeliest after each question; `after`: as
            `before`; `kl` in nats, over all words of the twelve texts; `size` in bits per weight, with scales.
    """
    model, questions = living_model(), asked()
    ids, lengths = _filled_up([question.prompt for question in questions])
    read = torch.arange(ids.shape[1]) < lengths[:, None]  # [questions, S], where a text has a word
    before = model(ids).logits
    weights = sum(matrix.numel() for _, matrix in matrices(model))
    after, results = {}, {}
    for name, per in PER.items():
        results[name] = {}
        for bits in range(FEWEST, MOST + 1):
            logits = rounded_model(model, Grid(bits, per=per)).eval()(ids).logits
            kl = divergence(before[read], logits[read])
            size = 8 * bytes_of_model(model, Grid(bits, per=per)) / weights
            results[name][str(bits)] = {"kl": _short(kl), "size": round(size, 3)}
            after[name, bits] = _next(logits, lengths)
    after_each = torch.stack([*after.values()], dim=1)  # [questions, grids, V]
    listed = [_words_of(question, p) for question, p in zip(questions, after_each, strict=True)]
    for (name, bits), p in after.items():
        results[name][str(bits)] |= {
            "said": [words.index(i) for words, i in zip(listed, p.argmax(-1).tolist(), strict=True)],
            "after": [_thousandths(row[words]) for row, words in zip(p, listed, strict=True)],
        }
    described = [
        {
            "text": world.decode(question.prompt[1:]),
            "answer": world.WORDS[question.answer[0]],
            "words": [world.WORDS[i] for i in words],
            "before": _thousandths(p[words]),
        }
        for question, words, p in zip(questions, listed, _next(before, lengths), strict=True)
    ]
    return {"questions": described, "results": results}


@cache
def free_stories() -> dict[str, Any]:
    """What the model writes with all matrices rounded to every grid.

    Returns:
        words: those that occur, in the order of the letters that stand for them, from FIRST_LETTER on; beginning: of
            all stories, in letters; texts: how the different ones go on, each in letters, up to AFTER words behind its
            first impossible word, and the index of this word, or None; count: how many free stories were drawn.
        results: by `per` and bits, `holds`: how many free stories hold to their ends; `texts`: the indices of those
            with this beginning.
    """
    letters: dict[int, str] = {}

    def spelled(words: Iterable[int]) -> str:
        return "".join(letters.setdefault(word, chr(ord(FIRST_LETTER) + len(letters))) for word in words)

    beginning = world.encode(written.BEGINNING).tolist()
    texts: dict[tuple[int, ...], int] = {}
    results = {
        per: {
            bits: {
                "holds": result["holds"],
                "texts": [texts.setdefault(tuple(s), len(texts)) for s in result["stories"]],
            }
            for bits, result in of_bits.items()
        }
        for per, of_bits in written.results()["living"].items()
    }
    ends = []
    for story in texts:
        at = written.first_impossible(story)
        wrong = None if at is None else at - len(beginning)
        end = None if at is None else at + 1 + AFTER
        ends.append([spelled(story[len(beginning) : end]), wrong])
    begun = spelled(beginning[1:])  # without <s>
    words = [world.WORDS[word] for word in letters]
    return {"words": words, "beginning": begun, "texts": ends, "count": written.STORIES, "results": results}


def divergence(before: Tensor, after: Tensor) -> float:
    """KL(before, after) in nats, the mean over rows of logits [texts, V]."""
    p, q = before.double().log_softmax(-1), after.double().log_softmax(-1)
    return (p.exp() * (p - q)).sum(-1).mean().item()


def _filled_up(texts: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Texts as ids [texts, S], filled up behind their ends, where a causal model cannot look, and their lengths."""
    lengths = torch.tensor([len(text) for text in texts])
    ids = torch.zeros(len(texts), int(lengths.max()), dtype=torch.long)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = torch.from_numpy(text)
    return ids, lengths


def _next(logits: Tensor, lengths: Tensor) -> Tensor:
    """The probabilities [texts, V] of the word after each text, from logits [texts, S, V]."""
    return logits[torch.arange(len(lengths)), lengths - 1].softmax(-1)


def _words_of(question: world.Question, after: Tensor) -> list[int]:
    """The ids to tell of: the answer, what any grid makes the model say, and the likeliest others. after: [G, V]."""
    likeliest = after.argmax(-1).tolist()
    often = sorted(set(likeliest), key=lambda word: (-likeliest.count(word), word))
    likely = after.mean(0).argsort(descending=True, stable=True).tolist()
    order = dict.fromkeys([int(question.answer[0]), *often, *likely])
    return list(order)[: max(WORDS, len({int(question.answer[0]), *likeliest}))]


def _thousandths(probabilities: Tensor) -> list[int]:
    return [round(1000 * p) for p in probabilities.tolist()]


def _short(value: float) -> float:
    return float(f"{value:.3g}") if value > 1e-5 else 0.0
