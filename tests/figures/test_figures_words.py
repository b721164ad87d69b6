"""A figure's words stand in its table and nowhere else: translated, no English is left, and all keeps its place."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from browser import ALIVE, Watch, settle, show, static_page
from figure_examples import EVERY_FIGURE, example
from traitlets import Enum

from minimind_edu import world
from minimind_edu.figures import Figure, module_source
from minimind_edu.figures.quantization_grid import MATRICES
from minimind_edu.web.base import FOLDER

# What is the same in every language: units, what code says, names of models, and the words of the book's world.
SAME = "ms µs min kB MB GB KiB MiB GiB float32 float16 bfloat16 None expand reshape transpose".split()
SAME += ["MiniMind2", "MiniMind3", "small", *MATRICES, *world.WORDS]
SYMBOLS = (
    "q k v m n m-n theta score weights output gamma rms mean norm ffn attn stream embed cache head group bytes flops "
    "logits"
).split()

CHOSEN = "return words;"
# Every letter of the table, and of what its functions answer, becomes Chinese.
TRANSLATED = """
  const foreign = (word) => {
    if (typeof word === "string") return word.replace(/\\p{L}+/gu, "字");
    if (typeof word === "function") return (...given) => foreign(word(...given));
    if (typeof word === "number") return word; // which language of the world is the page's
    if (Array.isArray(word)) return word.map(foreign);
    return Object.fromEntries(Object.entries(word).map(([name, inner]) => [name, foreign(inner)]));
  };
  return foreign(words);
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


def strings(value: Any) -> Iterator[str]:
    """All texts in a part of a state."""
    if isinstance(value, dict | list | tuple):
        for one in value.values() if isinstance(value, dict) else value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value


def no_words_of_its_own(figure: Figure) -> re.Pattern[str]:
    """What a figure may show in any language: what its state holds but for the names of choices, and SAME."""
    held = (value for name, value in figure.state().items() if not isinstance(figure.traits()[name], Enum))
    said = sorted({*SAME, *strings([*held])}, key=len, reverse=True)
    return re.compile(rf"(?<!\w)({'|'.join(map(re.escape, said))})(?!\w)")


@pytest.mark.parametrize("compact", [False, True])
@EVERY_FIGURE
def test_translated_a_figure_has_no_english_and_keeps_inside(page, name, compact):
    source = module_source(name)
    assert source.count(CHOSEN) == 1
    figure = example(name)
    figure.compact = compact
    others = no_words_of_its_own(figure)
    watch = Watch(page)
    for width in (944, 344):
        page.set_viewport_size({"width": width, "height": 900})
        opened(page, figure, source.replace(CHOSEN, TRANSLATED))
        texts = [others.sub("", text) for text in page.evaluate(READ)]
        assert any("字" in text for text in texts)
        assert [text for text in texts if re.search(r"[A-Za-z]{2}", text)] == []
        assert page.evaluate(OUTSIDE) == []
    assert watch.problems == []


@EVERY_FIGURE
def test_parts_name_the_symbols_that_the_text_uses(page, name):
    opened(page, example(name))
    symbols = page.eval_on_selector_all(".mm-fig [data-sym]", "all => all.map((one) => one.dataset.sym)")
    unknown = set(symbols) - set(SYMBOLS)
    assert not unknown, (
        f"`sym` names a symbol of the text, one of SYMBOLS above; add it there or leave it out: {unknown}"
    )
    own = "".join(path.read_text(encoding="utf-8") for path in (FOLDER / name).glob("*.js"))
    drawn_by = "".join((FOLDER / file).read_text(encoding="utf-8") for file in re.findall(r'"\.\./(\w+/\w+\.js)"', own))
    assert bool(symbols) == bool(re.search(r"\bsym", own + drawn_by))
