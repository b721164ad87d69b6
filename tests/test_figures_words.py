"""A figure's words stand in its table and nowhere else: translated, no English is left, and all keeps its place."""

import re

import pytest
from browser import ALIVE, Watch, settle, show, static_page
from figure_examples import example

from minimind_edu import world
from minimind_edu.figures import module_source
from minimind_edu.figures.quantization_grid import MATRICES
from minimind_edu.world.words import WORDS

# What is no word of a figure's: names and units, and what its state holds.
NAMES = {
    "ablation_lab": r"copy|reverse|sort",
    "attention_xray": r"the|cat|naps|it|purrs",
    "cache_stepper": r"what|was|once|read|is|kept|so|that|it|need|not|be|again",
    "gate_surface": r"gate_proj|up_proj",
    "neuron_words": "|".join(map(re.escape, sorted((word for word in WORDS if word.isascii()), key=len, reverse=True))),
    "parameter_ledger": r"MiniMind\d?( small)?",
    "quantization_grid": "|".join(
        map(re.escape, sorted((*MATRICES, *(word for word in WORDS if word.isascii())), key=len, reverse=True))
    ),
    "quiz": r"Which letter comes first|script|bold|What is|How many",
    "router_flow": r"the|ball|is picked up by|Mia|in the|hall|where is|Tom|garden",
    "roofline": r"ms|µs|MiB|GiB|min",
    "sampler": "|".join(filter(re.compile("[A-Za-z ]+").fullmatch, sorted(world.WORDS, key=len, reverse=True))),
}
SYMBOLS = (
    "q k v m n m-n theta score weights output gamma rms mean norm ffn attn stream embed cache head group bytes flops "
    "logits"
).split()

CHOSEN = "return table[language] ?? table.en;"
# Every letter of the table, and of what its functions answer, becomes Chinese.
TRANSLATED = """
  const foreign = (word) => {
    if (typeof word === "string") return word.replace(/\\p{L}+/gu, "字");
    if (typeof word === "function") return (...given) => foreign(word(...given));
    if (Array.isArray(word)) return word.map(foreign);
    return Object.fromEntries(Object.entries(word).map(([name, inner]) => [name, foreign(inner)]));
  };
  return foreign(table.en);
"""

READ = """() => [...document.querySelectorAll(".mm-fig, .mm-fig *")].flatMap((node) => [
    ...[...node.childNodes].filter((child) => child.nodeType === 3).map((child) => child.data),
    ...["aria-label", "aria-valuetext", "title", "placeholder"].map((name) => node.getAttribute(name) ?? ""),
])"""
OUTSIDE = """() => [...document.querySelectorAll(".mm-fig *")].flatMap((node) => {
    const figure = node.closest(".mm-fig").getBoundingClientRect();
    const { left, right, width } = node.getBoundingClientRect();
    const isOut = width && (left < figure.left - 1 || right > figure.right + 1);
    return isOut && node.checkVisibility() && !node.closest(".mm-hidden") ? [node.outerHTML] : [];
})"""


def opened(page, figure, source=None):
    show(page, static_page(figure, source=source))
    page.wait_for_selector(ALIVE)
    page.eval_on_selector_all("details", "all => all.forEach((one) => (one.open = true))")
    settle(page)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_translated_a_figure_has_no_english_and_keeps_inside(page, name, compact):
    source = module_source(name)
    assert source.count(CHOSEN) == 1
    figure = example(name)
    figure.compact = compact
    watch = Watch(page)
    for width in (944, 344):
        page.set_viewport_size({"width": width, "height": 900})
        opened(page, figure, source.replace(CHOSEN, TRANSLATED))
        texts = [re.sub(rf"\b({NAMES[name]})\b", "", text) for text in page.evaluate(READ)]
        assert any("字" in text for text in texts)
        assert [text for text in texts if re.search(r"[A-Za-z]{2}", text)] == []
        assert page.evaluate(OUTSIDE) == []
    assert watch.problems == []


@pytest.mark.parametrize("name", NAMES)
def test_parts_name_the_symbols_that_the_text_uses(page, name):
    opened(page, example(name))
    symbols = page.eval_on_selector_all(".mm-fig [data-sym]", "all => all.map((one) => one.dataset.sym)")
    assert set(symbols) <= set(SYMBOLS)
    assert bool(symbols) == (name not in ("ablation_lab", "quiz"))
