"""How well a model keeps to the rules: what it writes, what it expects of held-out poems, whether it reads rhymes.

A high probability of the right rhyme proves no rhyming: the line foretells its last word. The proof is `exchange`:
put a character of another group where the first rhyme stands, and see whether the next rhyme follows.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from minimind_edu.device import device_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.trained.drawing import drawn
from minimind_edu.trained.verse import rhymes
from minimind_edu.trained.verse.corpus import BOS, COMMA, FORMS, STOP, Corpus, characters, decode, ids_of, line_end
from minimind_edu.validation import checked_before

WHOLE = {f"{lines}x{width}": (lines, width) for lines, width in FORMS.values()}
LONGEST = 8 * 8 + 1  # tokens of an octave of 7, with its end
DRAWS = 4_000  # of two poems, for what chance gives


@torch.no_grad()
def write(model: MiniMindForCausalLM, count: int, seed: int, temperature: float = 0.8, top_p: float = 0.9) -> list[str]:
    """Poems that a model writes from nothing."""
    with checked_before():
        ids = drawn(model, torch.full((count, 1), BOS), LONGEST, seed, temperature=temperature, top_p=top_p)
    return [decode(row) for row in ids]


def lines_of(poem: str) -> list[str]:
    """The lines of a poem, without punctuation."""
    return poem.replace(STOP, COMMA).rstrip(COMMA).split(COMMA)


def well_formed(poem: str) -> bool:
    """Whether a poem has 4 or 8 lines of 5 or 7 characters, commas and full stops in turn."""
    lines = lines_of(poem)
    sizes = {len(line) for line in lines}
    if len(sizes) != 1 or (len(lines), *sizes) not in FORMS.values():
        return False
    return poem == "".join(line + (STOP if number % 2 else COMMA) for number, line in enumerate(lines))


def judged(poems: Sequence[str], seed: int = 0) -> dict[str, Any]:
    """How poems keep to form, rhyme and tones; shares of what could be judged, None where nothing could.

    Returns:
        poems, form: how many, and the share with one of the four forms. What follows is of these.
        rhyme: of neighboring even lines, the share that end with two characters of one level group.
        same: that end with one and the same character.
        rhyme_chance: the same for line ends of two different poems.
        paired, paired_chance: as rhyme, but by what poets paired, without a table of sounds.
        opposite: of pairs of lines, how often places 2 and 4 have opposite tones.
        even_level, odd_oblique: how often lines end as the rules want, odd lines from the third.
    """
    fine = [lines_of(poem) for poem in poems if well_formed(poem)]
    rng = random.Random(seed)
    ends = [[line[-1] for line in lines[1::2]] for lines in fine]
    neighbors = [pair for of_poem in ends for pair in zip(of_poem, of_poem[1:], strict=False)]
    strangers = []
    if len(ends) > 1:
        for _ in range(DRAWS):
            first, second = rng.sample(ends, 2)
            strangers.append((rng.choice(first), rng.choice(second)))
    known, tones = ids_of(), rhymes.tones().tolist()

    def tone(character: str) -> int:
        return tones[known[character]]

    def opposite(place: int) -> float | None:
        pairs = [
            (tone(a[place]), tone(b[place])) for lines in fine for a, b in zip(lines[::2], lines[1::2], strict=True)
        ]
        return _share(a != b for a, b in pairs if a and b)

    return {
        "poems": len(poems),
        "form": len(fine) / len(poems),
        "pairs": len(neighbors),
        "rhyme": _share(rhymes.rhymes(*pair) for pair in neighbors),
        "same": _share(a == b for a, b in neighbors),
        "rhyme_chance": _share(rhymes.rhymes(*pair) for pair in strangers),
        "paired": _share(
            is_pair for is_pair in (rhymes.poets_pair(*pair) for pair in neighbors) if is_pair is not None
        ),
        "paired_chance": _share(
            is_pair for is_pair in (rhymes.poets_pair(*pair) for pair in strangers) if is_pair is not None
        ),
        "opposite": [opposite(1), opposite(3)],
        "even_level": _share(tone(end) == 1 for of_poem in ends for end in of_poem if tone(end)),
        "odd_oblique": _share(tone(line[-1]) == -1 for lines in fine for line in lines[2::2] if tone(line[-1])),
    }


def _share(values: Any) -> float | None:
    found = [float(value) for value in values]
    return sum(found) / len(found) if found else None


@torch.no_grad()
def expected(model: MiniMindForCausalLM, corpus: Corpus, count: int) -> dict[str, float]:
    """What a model expects in held-out poems, `count` of each form, means over places.

    Returns:
        loss, rhyme_loss: in nats a token, of all tokens, and of the last characters of even lines from the fourth.
        rhyme: there, the probability of all characters that rhyme with the earlier even lines.
        rhyme_other: of those that rhyme with another poem's, if no character does both.
        likeliest: how often the likeliest character there rhymes.
        repeated: the probability of the earlier rhyme characters themselves.
    """
    device = device_of(model)
    level = rhymes.in_level().to(device)
    found: dict[str, list[Tensor]] = defaultdict(list)
    for name, (lines, width) in WHOLE.items():
        if name not in corpus.held_out:
            continue
        ids = corpus.held_out[name][:count].long().to(device)
        with checked_before():
            log_p = model(ids).logits.log_softmax(-1)
        losses = -log_p[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
        found["loss"].append(losses.flatten())
        ends = [line_end(line, width) for line in range(1, lines, 2)]
        shared = level[ids[:, ends[0]]]  # [B, 30], the groups that fit all rhymes so far
        for number, end in enumerate(ends[1:], 1):
            p = log_p[:, end - 1].exp()
            fits = ((shared @ level.T) > 0).float()  # [B, V]
            others = shared.roll(number + 1, 0)
            apart = (others * shared).sum(1) == 0
            found["rhyme_loss"].append(losses[:, end - 1])
            found["rhyme"].append((p * fits).sum(1))
            found["rhyme_other"].append((p * ((others @ level.T) > 0)).sum(1)[apart])
            found["likeliest"].append(fits.gather(1, p.argmax(1, keepdim=True))[:, 0])
            used = torch.zeros_like(p).scatter(1, ids[:, ends[:number]], 1.0)
            found["repeated"].append((p * used).sum(1))
            shared = shared * level[ids[:, end]]
    return {name: float(torch.cat(parts).double().mean()) for name, parts in found.items()}


@torch.no_grad()
def exchange(
    model: MiniMindForCausalLM, corpus: Corpus, count: int, forms: Sequence[str] = tuple(WHOLE), seed: int = 0
) -> dict[str, float]:
    """Let line 2 (and line 1, if it rhymes) end with a character of another level group; look at the end of line 4.

    Only characters with one reading count, `rhymes.plain`.

    Returns:
        new_before, new_after: the probability of the new character's group before and after the exchange.
        old_before, old_after: the same of the old one's.
        times: new_after by new_before; 1 if the rhyme is not read.
        poems: how many could be used.
    """
    device, generator = device_of(model), torch.Generator().manual_seed(seed)
    level, plain = rhymes.in_level().to(device), rhymes.plain().to(device)
    sums, poems = torch.zeros(4, dtype=torch.float64), 0
    for name in forms:
        if name not in corpus.held_out:
            continue
        lines, width = WHOLE[name]
        ids = corpus.held_out[name][:count].long().to(device)
        first, second, place = line_end(0, width), line_end(1, width), line_end(3, width) - 1
        pool = ids[plain[ids[:, second]], second]
        new = pool[torch.randint(len(pool), (len(ids),), generator=generator).to(device)]
        old = ids[:, second]
        usable = plain[old] & ((level[new] * level[old]).sum(1) == 0)
        changed = ids.clone()
        changed[:, second] = new
        rhyming = (level[ids[:, first]] * level[old]).sum(1) > 0
        changed[rhyming, first] = new[rhyming]
        with checked_before():  # what comes after the place changes nothing there
            before, after = (
                model(read[:, : place + 1], logits_to_keep=1).logits[:, 0].softmax(-1) for read in (ids, changed)
            )
        of_new, of_old = (((level[end] @ level.T) > 0) & plain for end in (new, old))
        values = [(p * group).sum(1)[usable].sum() for group in (of_new, of_old) for p in (before, after)]
        sums += torch.stack(values).double().cpu()
        poems += int(usable.sum())
    new_before, new_after, old_before, old_after = (sums / poems).tolist()
    return {
        "new_before": new_before,
        "new_after": new_after,
        "old_before": old_before,
        "old_after": old_after,
        "times": new_after / new_before,
        "poems": poems,
    }


def copied(poems: Sequence[str], corpus: Corpus) -> dict[str, int]:
    """How many lines, and how many whole poems, stand in the training poems."""
    lines: set[str] = set()
    wholes: set[str] = set()
    table = characters()
    for name, (count, width) in WHOLE.items():
        for row in corpus.training.get(name, torch.empty(0, 2, dtype=torch.int16)).tolist():
            text = "".join(table[index] for index in row[1:-1])
            wholes.add(text)
            lines.update(text[line * (width + 1) : line * (width + 1) + width] for line in range(count))
    written = [line for poem in poems for line in lines_of(poem)]
    return {
        "lines": len(written),
        "lines_copied": sum(line in lines for line in written),
        "poems_copied": sum(poem in wholes for poem in poems),
    }
