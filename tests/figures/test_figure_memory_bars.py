"""MemoryBars: its bytes are the package's, at every stop of its sliders, and what it says of them is so."""

from dataclasses import asdict
from itertools import product

import pytest
from browser import open_figures, read_out

from benchmarks.memory import stored
from minimind_edu.figures import MemoryBars
from minimind_edu.figures.memory_bars import BATCHES, CARDS, KINDS, LENGTHS, MODELS, sizes_of

MATH = "figures/memory_bars/math"
ALL = list(product(MODELS, KINDS, BATCHES[::2], LENGTHS[::2], (False, True)))


def options(kind, batch, length, half):
    return {"kind": kind, "batch": batch, "length": length, "half": half}


def test_the_bytes_are_the_packages(node):
    asked = [[sizes_of(MODELS[model]), options(*rest)] for model, *rest in ALL]
    for (model, *rest), there in zip(ALL, node.each(MATH, "memoryOf", asked), strict=True):
        memory = MemoryBars(model=model, **options(*rest)).memory()
        expected = asdict(memory)
        expected["gradients"] += expected.pop("scratch")
        assert {name: there[name] for name in expected} == expected
        assert (there["backward"], there["step"], there["peak"]) == (memory.backward, memory.step, memory.peak)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (419.43e6, "419 MB"),
        (9.4716e9, "9.47 GB"),
        (999.6e6, "1.00 GB"),
        (8192, "8.19 kB"),
        (999.6, "1.00 kB"),
        (12, "12.0 B"),
        (120.1e9, "120 GB"),
        (5.294e12, "5.29 TB"),
    ],
)
def test_bytes_for_reading(node, count, text):
    assert node.call(MATH, "bytesText", [count]) == text


def test_sliders_and_choices_are_those_of_the_class(page):
    open_figures(page, MemoryBars())
    ends = page.locator("input[type=range]").evaluate_all("all => all.map((one) => Number(one.max) + 1)")
    assert ends == [len(BATCHES), len(LENGTHS)]
    cards = page.get_by_role("group", name="GPU memory").locator("label")
    assert cards.all_inner_texts() == [f"{card} GB" for card in CARDS]


def bars(page):
    """Name -> from, to and what is said, as the figure draws them."""
    found = page.locator(".mb-row").evaluate_all(
        """rows => rows.map((row) => [row.firstChild.textContent, row.querySelector("i").style.left,
            row.querySelector("i").style.width, row.lastChild.textContent])"""
    )
    return {name: (float(left[:-1] or 0), float(width[:-1] or 0), said) for name, left, width, said in found}


@pytest.mark.parametrize("card", [8, 80])
def test_the_parts_lie_end_to_end_and_fill_the_peak(page, card):
    open_figures(page, MemoryBars(kind="dpo", half=True, card=card))
    parts, at = bars(page), 0
    for name in ("weights", "reference", "Adam", "16-bit copies", "activations", "logits"):
        left, width, _ = parts[name]
        assert left == pytest.approx(at, abs=0.002)
        at = left + width
    assert at == pytest.approx(parts["at most"][1], abs=0.01)
    always = sum(parts[name][1] for name in ("weights", "reference", "Adam"))
    assert parts["gradients"][0] == pytest.approx(always, abs=0.005) and parts["KV cache"][2] == "–"


@pytest.mark.parametrize(("card", "ends"), [(8, 8 / 9.4716), (16, None)])
def test_one_scale_has_the_card_and_all_parts(page, card, ends):
    """The width is the card; where more is asked for than it has, a tick on every bar is where it ends."""
    open_figures(page, MemoryBars(card=card))
    peak, width = MemoryBars().memory().peak, bars(page)["at most"][1]
    assert width == pytest.approx(100 * min(1, peak / card / 1e9), abs=0.01)
    assert bars(page)["activations"][1] == pytest.approx(width * MemoryBars().memory().activations / peak, abs=0.01)
    ticks = page.locator(".mb-row .mm-tick:visible").evaluate_all("all => all.map((one) => one.style.left)")
    assert len(ticks) == (0 if ends is None else len(bars(page)))
    assert all(float(left[:-1]) == pytest.approx(100 * ends, abs=0.01) for left in ticks)


def test_it_says_what_is_largest_and_whether_it_fits(page):
    open_figures(page, MemoryBars())
    assert page.inner_text(".mm-title") == "Most of it is activations: 83 %"
    assert page.inner_text(".mm-verdict") == "Out of memory on 8 GB: 9.47 GB, when the backward pass begins."
    page.get_by_role("radio", name="16 GB").click()
    assert page.inner_text(".mm-verdict").startswith("Fits 16 GB: 9.47 GB at most")
    page.get_by_label("texts at once").press("Home")
    page.get_by_label("tokens of each").press("Home")
    assert page.inner_text(".mm-verdict") == "Fits 16 GB: 533 MB at most, while Adam steps."
    assert page.inner_text(".mm-title").startswith("Most of it is Adam: ")


def test_what_was_measured_stands_beside_what_is_counted(page):
    open_figures(page, MemoryBars())
    assert read_out(page)["on an H200"] == "9.47 GB"
    page.get_by_role("switch").click()
    assert read_out(page)["on an H200"] == "5.30 GB"
    page.get_by_label("texts at once").press("End")
    assert read_out(page)["on an H200"] == "–"
    assert len(MemoryBars().measured) == len(stored()["rows"])


def test_serving_asks_for_the_cache_alone(page):
    open_figures(page, MemoryBars(kind="serve", half=True, batch=256, length=8192))
    memory = MemoryBars(kind="serve", half=True, batch=256, length=8192).memory()
    assert {name for name, (_, width, _) in bars(page).items() if width} == {"at most", "weights", "KV cache", "logits"}
    assert read_out(page)["a token keeps"] == f"{memory.cache / 256 / 8192 / 1e3:.2f} kB"
    assert page.inner_text(".mm-title").startswith("Most of it is KV cache")
