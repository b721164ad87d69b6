"""Which heads carry the rhyme: by silencing each, and by cutting single kinds of edges of attention.

An *edge* leads from a place that reads, a query, to one that it reads, a key. A cut edge has no weight, and the others
of its row share what it had. What is measured is the probability, at the ends of even lines from the fourth, of all
characters that rhyme with the earlier ones.

    python -m minimind_edu.trained.verse.circuit WEIGHTS... --into circuit.json     a few minutes for each file
"""

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from torch import Tensor

from minimind_edu.model.attention import repeat_kv
from minimind_edu.model.masks import causal_mask
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained import stored
from minimind_edu.trained.living import heads
from minimind_edu.trained.verse import exam, rhymes
from minimind_edu.trained.verse.corpus import FOLDER, Corpus, line_end, read_corpus
from minimind_edu.trained.verse.exam import WHOLE
from minimind_edu.validation import check_choice
from minimind_edu.weights.checkpoints import from_checkpoint

RESULTS = FOLDER / "circuit.json"
POEMS = 200  # held-out poems that are asked
WRITTEN = 96  # poems written without a head
Head = tuple[int, int]  # indices of block and head
# what may read: the place before a rhyme, from the second on; the full stop after an even line; the comma after an odd
QUERIES = ("before", "stop", "comma")
# what may be read: of earlier even lines the last character and the stop after it, of odd ones the same with a comma
KEYS = ("word", "stop", "odd_word", "comma")
FIRST = "first_word"  # the last character of line 1 alone, which often rhymes, too
# by which ways a rhyme can come to where it is due, and the edges of each: read in the earlier words, the even ones and
# that of line 1; or brought along by a comma or a full stop, which has read these words itself
ROUTES = {
    "words": [("before", "word")],
    "line 1": [("before", FIRST)],
    "comma": [("comma", "word"), ("comma", FIRST)],
    "stop": [("stop", "word"), ("stop", FIRST)],
}
WITHOUT = ("words cut", "averaged", "silenced")  # ways to do without a head
LOOK_CLOSER = 0.05  # a cut in a whole block that costs more is tried head by head


def edges(form: str, query: str, key: str) -> Tensor:
    """The edges from one kind of place to another in poems of a form, [S, S] of bool, queries down.

    Raises:
        ValueError: for a form, or a kind of place, that there is not.
    """
    check_choice("form", form, tuple(WHOLE))
    check_choice("query", query, QUERIES)
    check_choice("key", key, (*KEYS, FIRST))
    lines, width = WHOLE[form]
    even, odd = range(1, lines, 2), range(0, lines, 2)
    reading = {
        "before": [line_end(line, width) - 1 for line in even[1:]],
        "stop": [line_end(line, width) + 1 for line in even],
        "comma": [line_end(line, width) + 1 for line in odd],
    }[query]
    whose = {"word": even, "stop": even, "odd_word": odd, "comma": odd, FIRST: odd[:1]}[key]
    read = [line_end(line, width) + (key in ("stop", "comma")) for line in whose]
    size = lines * (width + 1) + 2
    mask = torch.zeros(size, size, dtype=torch.bool)
    for row in reading:
        mask[row, [column for column in read if column < row]] = True
    return mask


@contextmanager
def _attending(
    model: MiniMindForCausalLM, cuts: Mapping[Head, Tensor], averaged: Sequence[Head] = (), over: tuple[int, ...] = ()
) -> Iterator[None]:
    """Inside the block some edges are gone, and what some heads give, [B, S], is averaged over these dimensions."""
    layers = {layer for layer, _ in (*cuts, *averaged)}

    def of(layer: int) -> Any:
        def forward(self: Any, x: Tensor, positions: tuple[Tensor, Tensor], *_: Any, **__: Any) -> tuple[Tensor, None]:
            q, k, v = self.project(x, *positions)
            k, v = (repeat_kv(each, self.num_heads // self.num_kv_heads) for each in (k, v))
            length = x.shape[1]
            scores = torch.einsum("bshd,bthd->bhst", q, k) / math.sqrt(self.head_dim)
            scores = scores.masked_fill(~causal_mask(length, length, x.device), -torch.inf)
            for (at, head), mask in cuts.items():
                if at == layer:
                    scores[:, head] = scores[:, head].masked_fill(mask[:length, :length].to(x.device), -torch.inf)
            output = torch.einsum("bhst,bthd->bshd", scores.softmax(-1), v)
            for at, head in averaged:
                if at == layer:
                    output[:, :, head] = output[:, :, head].mean(over, keepdim=True)
            return self.o_proj(output.flatten(2)), None

        return forward

    attends = {layer: heads.block(model, layer).self_attn for layer in layers}
    for layer, attend in attends.items():
        attend.forward = MethodType(of(layer), attend)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for attend in attends.values():
            del attend.forward


def cut(model: MiniMindForCausalLM, cuts: Mapping[Head, Tensor]) -> AbstractContextManager[None]:
    """Inside the block these edges, [S, S] of bool for each head, are gone; the model reads whole poems, without cache.

    Each query needs an edge that stays.
    """
    return _attending(model, cuts)


def averaged(model: MiniMindForCausalLM, *which: Head, places: bool = False) -> AbstractContextManager[None]:
    """Inside the block these heads give every poem of a batch, at each place, what they give all of them on average.

    A head that always adds the same is missed when it is silenced, though it tells nothing of this poem: averaged, it
    is not.

    Args:
        model: reads whole poems of one form, without cache.
        which: heads.
        places: average over places, too: a head that tells which place this is, as a clock does, tells that no more.
    """
    return _attending(model, {}, which, (0, 1) if places else (0,))


def without(model: MiniMindForCausalLM, head: Head | None, way: str, form: str) -> AbstractContextManager[None]:
    """Inside the block a head does not do all that it does.

    Args:
        model: reads whole poems of a form, without cache.
        head: which one.
        way: one of WITHOUT: the edges from before a rhyme to the earlier rhyme words are gone; `averaged`; or the head
            adds nothing at all. Or `whole`, where nothing is done, to any head or None.
        form: of the poems.

    Raises:
        ValueError: for a way, or a form, that there is not.
    """
    check_choice("way", way, (*WITHOUT, "whole"))
    words = edges(form, "before", "word")
    if head is None or way == "whole":
        return nullcontext()
    if way == "words cut":
        return cut(model, {head: words})
    return averaged(model, head) if way == "averaged" else heads.silenced(model, *head)


@torch.no_grad()
def kept(model: MiniMindForCausalLM, form: str, ids: Tensor) -> dict[str, float]:
    """What a model keeps of the rules in held-out poems of a form, ids [B, S].

    Returns:
        rhyme: the probability of what rhymes, where a rhyme is due.
        tones: at places 2 and 4 of even lines, the share of the tone that the line before asks for.
        loss: in nats a token, everywhere but at these rhymes.
    """
    lines, width = WHOLE[form]
    level, tones = rhymes.in_level(), rhymes.tones()
    log_p = model(ids).logits.log_softmax(-1)
    losses = -log_p[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
    ends = [line_end(line, width) for line in range(1, lines, 2)]
    shared, found = level[ids[:, ends[0]]], []
    for end in ends[1:]:
        found.append((log_p[:, end - 1].exp() * ((shared @ level.T) > 0)).sum(1))
        losses[:, end - 1] = torch.nan
        shared = shared * level[ids[:, end]]
    kinds = torch.stack([tones == -1, tones == 1], 1).float()  # [V, 2]
    right = []
    for line in range(1, lines, 2):
        for place in (1, 3):
            at = line * (width + 1) + 1 + place
            above = tones[ids[:, at - width - 1]]
            of_kind = log_p[:, at - 1].exp() @ kinds  # [B, 2]
            wanted = of_kind.gather(1, (above < 0).long()[:, None])[:, 0] / of_kind.sum(1)
            right.append(wanted[above != 0])
    return {
        "rhyme": float(torch.cat(found).mean()),
        "tones": float(torch.cat(right).mean()),
        "loss": float(losses.nanmean()),
    }


def of_form(corpus: Corpus, form: str, count: int = POEMS) -> Tensor:
    """Held-out poems of a form, ids [B, S]."""
    return corpus.held_out[form][:count].long()


@torch.no_grad()
def weights_between(model: MiniMindForCausalLM, form: str, ids: Tensor) -> dict[str, list[list[float]]]:
    """How much each head's queries of one kind read keys of one kind, summed over keys: `query key` to [L, H]."""
    total = sum(heads.attention_weights(model, poem[None]) for poem in ids) / len(ids)  # [L, H, S, S]
    found = {}
    for query in QUERIES:
        for key in KEYS:
            mask = edges(form, query, key)
            rows = mask.any(1)
            found[f"{query} {key}"] = (total * mask).sum(-1)[..., rows].mean(-1).tolist()
    return found


def measured(model: MiniMindForCausalLM, form: str, corpus: Corpus, count: int = POEMS) -> dict[str, Any]:
    """All that is known of a model's heads at one form.

    Returns:
        whole: what the model keeps; each of the following as the change from it.
        silenced: by head, as `0.2`, if it adds nothing.
        averaged: by head, if it adds to every poem what it adds on average.
        blocks: by block and edge, as `2 before stop`, with these edges cut in all heads of a block.
        cut: by head and edge, as `2.1 before stop`, where the cut in the whole block costs LOOK_CLOSER or more.
        weights: of `weights_between`, of a tenth of the poems.
    """
    ids = of_form(corpus, form, count)
    whole = kept(model, form, ids)

    def change(inside: Any) -> dict[str, float]:
        with inside:
            now = kept(model, form, ids)
        return {name: now[name] - whole[name] for name in whole}

    layers, size = model.config.num_hidden_layers, model.config.num_attention_heads
    every = [(layer, head) for layer in range(layers) for head in range(size)]
    silenced = {f"{layer}.{head}": change(heads.silenced(model, layer, head)) for layer, head in every}
    mean = {f"{layer}.{head}": change(averaged(model, (layer, head))) for layer, head in every}
    blocks, single = {}, {}
    for query in QUERIES:
        for key in KEYS:
            mask = edges(form, query, key)
            for layer in range(layers):
                found = change(cut(model, {(layer, head): mask for head in range(size)}))
                blocks[f"{layer} {query} {key}"] = found
                if found["rhyme"] <= -LOOK_CLOSER:
                    for head in range(size):
                        single[f"{layer}.{head} {query} {key}"] = change(cut(model, {(layer, head): mask}))
    return {
        "poems": len(ids),
        "whole": whole,
        "silenced": silenced,
        "averaged": mean,
        "blocks": blocks,
        "cut": single,
        "weights": weights_between(model, form, ids[: max(1, count // 10)]),
    }


def routes(model: MiniMindForCausalLM, form: str, ids: Tensor) -> dict[str, dict[str, float]]:
    """What is kept while the ways of ROUTES are cut one after the other, each in all heads, and those before it, too.

    A way that is cut alone may cost nothing, where another brings the same rhyme; together they show where it comes
    from. What is left in the end is what a line foretells.

    Returns:
        whole, and each of ROUTES with all cuts up to it: `rhyme`, `tones` and `loss` as of `kept`.
    """
    found, mask = {"whole": kept(model, form, ids)}, torch.zeros_like(edges(form, "before", "word"))
    every = [(i, j) for i in range(model.config.num_hidden_layers) for j in range(model.config.num_attention_heads)]
    for way, kinds in ROUTES.items():
        for query, key in kinds:
            mask = mask | edges(form, query, key)
        with cut(model, dict.fromkeys(every, mask)):
            found[way] = kept(model, form, ids)
    return found


def written_without(model: MiniMindForCausalLM, count: int = WRITTEN, seed: int = 1) -> dict[str, dict[str, Any]]:
    """How poems keep the rules that a model writes with one head silenced, by head, and `whole` with none."""
    found = {"whole": exam.judged(exam.write(model, count, seed))}
    for layer in range(model.config.num_hidden_layers):
        for head in range(model.config.num_attention_heads):
            with heads.silenced(model, layer, head):
                found[f"{layer}.{head}"] = exam.judged(exam.write(model, count, seed))
    return found


@cache
def results() -> dict[str, Any]:
    """What is stored, by run: what `measured` found for a form, `routes` by form, and `written` without each head."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path, nargs="+")
    parser.add_argument("--forms", nargs="+", default=["8x5", "8x7"])
    parser.add_argument("--poems", type=stored.whole_number(1), default=POEMS)
    parser.add_argument("--written", type=stored.whole_number(0), default=WRITTEN)
    stored.add_into(parser)
    args = parser.parse_args()
    into = stored.place(parser, args.into, RESULTS, whole=False)
    corpus, found = read_corpus(), {}
    for path in args.weights:
        model = from_checkpoint(path)
        found[path.stem] = {form: measured(model, form, corpus, args.poems) for form in args.forms}
        found[path.stem]["routes"] = {form: routes(model, form, of_form(corpus, form, args.poems)) for form in WHOLE}
        if args.written:
            found[path.stem]["written"] = written_without(model, args.written)
        stored.write(json.dumps(stored.rounded(found, 4)) + "\n", into)
        print(path.stem, flush=True)


if __name__ == "__main__":
    main()
