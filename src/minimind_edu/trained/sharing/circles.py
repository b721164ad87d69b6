"""What the keys of one shared head look like: `python -m minimind_edu.trained.sharing.circles`, three
quarters of an hour of one core.

One key/value head of 1 to 8 channels serves four query heads, which ask for four properties. Of those that the figure
draws it is stored how many names are right for each property, and where the keys of a property's values lie. At other
settings of the training, with other numbers of values than eight, and where the numbers of a key are cut into several
heads, there are the numbers alone, the best first.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from minimind_edu.trained import stored
from minimind_edu.trained.sharing import (
    PEOPLE,
    PROPERTIES,
    QUERY_HEADS,
    RATE,
    STEPS,
    VALUES,
    Reader,
    Variant,
    exam,
    right,
    trained,
)

CIRCLES = Path(__file__).parent / "circles.json"
WIDTHS = 2, 4, 6, 8  # channels of the head
SEEDS = 0, 1, 2


@dataclass(frozen=True)
class Setting:
    """One way to train heads of several widths."""

    widths: tuple[int, ...] = WIDTHS
    steps: int = STEPS[-1]
    rate: float = RATE
    choices: int = VALUES
    people: int = PEOPLE
    seeds: tuple[int, ...] = SEEDS
    heads: int = 1  # key/value heads, each of these widths


DRAWN = "as drawn"
SETTINGS = {
    DRAWN: Setting(),
    "odd widths": Setting((1, 3, 5, 7), seeds=(0, 1)),
    "a quarter of the steps": Setting(steps=STEPS[0], seeds=(0, 1)),
    "half the rate": Setting(rate=RATE / 2, seeds=(0, 1)),
    "twice the rate": Setting(rate=2 * RATE, seeds=(0, 1)),
    "two values": Setting((1, 2, 3, 4), STEPS[0], choices=2, people=2, seeds=(0, 1)),
    "three values": Setting((1, 2, 3, 4), STEPS[0], choices=3, people=3, seeds=(0, 1)),
    "three values, two people": Setting((2, 4), STEPS[0], choices=3, people=2, seeds=(0, 1)),
    "sixteen values": Setting(steps=STEPS[0], choices=16, seeds=(0, 1)),
    "sixteen values, four times the steps": Setting((4,), choices=16, seeds=(0, 1)),
    "two heads": Setting((2, 4), heads=2),
    "four heads": Setting((1, 2), heads=4),
    "four heads, a quarter of the steps": Setting((2,), STEPS[0], seeds=(0, 1, 2, 3, 4), heads=4),
}


@torch.no_grad()
def key_table(reader: Reader) -> Tensor:
    """The keys of all values, [properties, values, D], of a reader with one key head, around the mean of a property."""
    keys = reader.k_proj(reader.values.weight).unflatten(0, (PROPERTIES, -1))
    return keys - keys.mean(1, keepdim=True)


@torch.no_grad()
def query_table(reader: Reader) -> Tensor:
    """The queries for all values, [properties, values, H, D]; what else is asked for counts with its mean."""
    queries = reader.q_proj(reader.asked.weight).unflatten(-1, (QUERY_HEADS, -1)).unflatten(0, (PROPERTIES, -1))
    means = queries.mean(1, keepdim=True)  # [properties, 1, H, D]
    return queries - means + means.sum(0)


def portrait(reader: Reader) -> dict[str, Any]:
    """Where the keys of each property lie, and how the head that asks for it looks at them.

    Returns:
        spread: singular values of a property's keys, [properties, D]: how far they reach in each direction;
        keys: in the plane of the two largest, [properties, values, 2], turned so that the first value is at the top;
        queries: in the same plane, divided by √D, of the head that tells the values of this property apart best.
    """
    portraits: dict[str, Any] = {"spread": [], "keys": [], "queries": []}
    for keys, queries in zip(key_table(reader), query_table(reader).transpose(1, 2), strict=True):  # [V, D], [H, V, D]
        _, sizes, directions = torch.linalg.svd(keys, full_matrices=False)
        plane = directions[:2].T  # [D, 2]
        if plane.shape[1] == 1:
            plane = torch.cat([plane, torch.zeros_like(plane)], 1)
        scores = queries @ keys.T / reader.head_dim**0.5  # [H, asked, keys]
        head = scores.softmax(-1).diagonal(dim1=1, dim2=2).mean(1).argmax()
        flat, looks = keys @ plane, queries[head] @ plane / reader.head_dim**0.5
        x, y = flat[0] / flat[0].norm()
        turn = torch.stack([torch.stack([y, x]), torch.stack([-x, y])])  # the first value to the top
        portraits["spread"].append(sizes.tolist())
        portraits["keys"].append((flat @ turn).tolist())
        portraits["queries"].append((looks @ turn).tolist())
    return stored.rounded(portraits, 2)


def training(name: str, width: int, seed: int, steps: int | None = None) -> dict[str, Any]:
    """Train heads of a width as a setting says, or with fewer steps; what is stored of them."""
    setting = SETTINGS[name]
    choices, people = setting.choices, setting.people
    variant = Variant(setting.heads, setting.heads, width)
    reader = trained(variant, seed, steps or setting.steps, setting.rate, choices, people)
    shares = (100 * right(reader, exam(choices, people))).round().int().tolist()
    result = {"setting": name, "width": width, "seed": seed}
    if name == DRAWN:
        return result | {"right": shares} | portrait(reader)
    return result | {"right": sorted(shares, reverse=True)}


@cache
def circles() -> list[dict[str, Any]]:
    """All stored trainings: setting, width, seed, and right, the percentage of names for each property."""
    return json.loads(CIRCLES.read_text(encoding="utf-8"))


def shares(name: str) -> dict[int, list[list[int]]]:
    """Of each width, for each seed, the percentages of a setting's names that are right, the best property first."""
    setting = SETTINGS[name]
    of_width: dict[int, list[list[int]]] = {width: [] for width in setting.widths}
    for training in circles():
        if training["setting"] == name:
            of_width[training["width"]].append(sorted(training["right"], reverse=True))
    return of_width


def main() -> None:
    steps, into = stored.steps_and_place(__doc__, CIRCLES)
    results = []
    for name, setting in SETTINGS.items():
        for seed in setting.seeds:
            for width in setting.widths:
                results.append(training(name, width, seed, steps))
                print(f"{name}, {width} channels, seed {seed}: {results[-1]['right']}", flush=True)
    lines = ",\n".join(json.dumps(result, separators=(",", ":")) for result in results)
    stored.write(f"[\n{lines}\n]\n", into)


if __name__ == "__main__":
    main()
