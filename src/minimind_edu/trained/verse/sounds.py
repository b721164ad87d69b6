"""In which language does it rhyme: in that of the poets' lists, or in today's?

Where the second rhyme of a held-out poem is due, the probability of a set of characters is compared with their usual
one, the mean over all poems at that place. A character that rhymed then and does not today tells one language from the
other, and so does one that rhymes today and did not then. Only level characters of one reading are counted, and never
the first rhyme's character itself.
"""

from typing import Any

import torch
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.verse import rhymes
from minimind_edu.trained.verse.corpus import Corpus, line_end
from minimind_edu.trained.verse.exam import WHOLE
from minimind_edu.validation import checked_before

KINDS = ("then and today", "then", "today", "neither")


@torch.no_grad()
def second_rhymes(model: MiniMindForCausalLM, corpus: Corpus, count: int) -> tuple[Tensor, Tensor]:
    """Where the second rhyme is due: the probabilities [B, V], and the first rhyme's character [B]; of `count` poems of
    each form whose first rhyme has one reading."""
    device, chances, first = device_of(model), [], []
    for form, (_, width) in WHOLE.items():
        if form not in corpus.held_out:
            continue
        ids = corpus.held_out[form][:count].long().to(device)
        ids = ids[rhymes.plain().to(device)[ids[:, line_end(1, width)]]]
        with checked_before():
            chances.append(model(ids).logits[:, line_end(3, width) - 1].softmax(-1).cpu())
        first.append(ids[:, line_end(1, width)].cpu())
    return torch.cat(chances), torch.cat(first)


def kinds_of(first: Tensor) -> dict[str, Tensor]:
    """Which characters rhyme with the first one, [B], by the old lists, by today's finals, by both or by neither: for
    each of KINDS [B, V] of bool."""
    level, modern, plain = rhymes.in_level(), rhymes.in_modern(), rhymes.plain()
    then, today = (level[first] @ level.T) > 0, (modern[first] @ modern.T) > 0
    counted = plain.expand_as(then).clone()
    counted[torch.arange(len(first)), first] = False
    return dict(
        zip(
            KINDS,
            (kind & counted for kind in (then & today, then & ~today, today & ~then, ~then & ~today)),
            strict=True,
        )
    )


def times_usual(chances: Tensor, first: Tensor) -> dict[str, Any]:
    """For each of KINDS its probability and how many times its usual one that is, of `second_rhymes`."""
    usual = chances.mean(0)
    found = {}
    for name, kind in kinds_of(first).items():
        now, before = float((chances * kind).sum(1).mean()), float((usual * kind).sum(1).mean())
        found[name] = {"probability": now, "times": now / before}
    return found


def own_groups(chances: Tensor, first: Tensor, least: int = 8) -> dict[str, Any]:
    """Groups with at least so many poems: how many there are, and of how many their own group is the most lifted."""
    level, plain = rhymes.in_level(), rhymes.plain()
    columns = [g for g in range(level.shape[1]) if int(level[first, g].sum()) >= least]
    usual = chances.mean(0)
    lifted = torch.stack([(chances @ (level[:, g] * plain)) / (usual @ (level[:, g] * plain)) for g in columns], 1)
    table = torch.stack([lifted[level[first, g] > 0].mean(0) for g in columns])
    on_diagonal = table.argmax(1) == torch.arange(len(columns))
    return {"groups": len(columns), "own": int(on_diagonal.sum()), "diagonal": float(table.diagonal().mean())}
