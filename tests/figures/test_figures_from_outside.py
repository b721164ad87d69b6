"""Addresses and what a browser has kept may hold anything: a figure takes what it can show, and stays as it is else."""

import random

from browser import ALIVE, Watch, open_figures, serve, static_page
from figure_examples import EVERY_FIGURE, Probe, example
from traitlets import Bool, Dict, Enum, Int, List, Unicode

from minimind_edu.figures import class_of
from minimind_edu.web import host
from minimind_edu.web.traits import Finite, limits_of

WILD = [
    *(None, True, "x", "", "javascript:alert(1)", -1, -5, 0.5, 10**9, -(10**9), 1e308, 5e-324, 2**53, 10**400),
    *([], {}, [1], {"cache": {"href": "javascript:alert(1)", "label": "x"}}, {"__proto__": {"length": 9}}),
]

# Sets traits one after the other, each as addresses and stores do, and tells after which the drawing is broken.
SET = """async ([event, steps]) => {
    const figure = document.querySelector("[data-figure]");
    const broken = /NaN|undefined|Infinity|\\[object|javascript:/;
    for (const [key, value] of steps) {
        figure.dispatchEvent(new CustomEvent(event, { detail: { [key]: value } }));
        await new Promise((done) => requestAnimationFrame(done));
        for (const node of figure.querySelectorAll(".mm-mount *")) {
            const texts = [...node.childNodes].filter((child) => child.nodeType === 3).map((child) => child.data);
            const found = [...[...node.attributes].map((one) => one.value), ...texts].find((one) => broken.test(one));
            if (found) return [key, value, node.tagName, found];
        }
    }
    return null;
}"""


def wild_values(start, limits):
    """For a trait: nonsense, the ends of what it takes, and what lies in between."""
    yield from WILD
    if isinstance(start, list):
        yield from ([value] * len(start) for value in (0, -(10**9), 1e308, None, "x"))
    limits = limits or {}
    yield from limits.get("of", [])
    if {"from", "to"} <= limits.keys():
        low, high = limits["from"], limits["to"]
        yield from (low, high, (low + high) // 2 if "whole" in limits else (low + high) / 2, low + 1, low + 2)
    if "each" in limits:
        yield from ([limits["each"][end]] * len(start) for end in ("from", "to"))


@EVERY_FIGURE
def test_no_value_from_outside_breaks_a_figure(page, name):
    """In any order, so that one is set while others are far from where they begin."""
    figure = example(name)
    start, limits = figure.state(), figure.limits()
    steps = [(key, value) for key in start for value in wild_values(start[key], limits.get(key))]
    random.Random(name).shuffle(steps)
    open_figures(page, figure)
    watch = Watch(page)
    assert page.evaluate(SET, [host.SET, steps[:120]]) is None
    assert watch.problems == []


def test_what_a_page_may_set_follows_from_the_trait():
    """Texts and objects stay the author's: they may hold addresses."""
    assert limits_of(Bool()) == {"of": [False, True]}
    assert limits_of(Enum(("a", 2, 0.5))) == {"of": ["a", 2, 0.5]}
    assert limits_of(Int(3, min=0, max=63)) == {"whole": True, "from": 0, "to": 63}
    assert limits_of(Int(3, min=0)) == {"whole": True, "from": 0}
    assert limits_of(Int(3)) == {"whole": True}
    assert limits_of(Finite(1.0, min=0.5, max=2.0)) == {"from": 0.5, "to": 2.0}
    assert limits_of(Finite(1.0, min=0.5).tag(outside=(0.5, 9.0))) == {"from": 0.5, "to": 9.0}
    assert limits_of(List(Finite()).tag(outside=(-1.0, 1.0))) == {"each": {"from": -1.0, "to": 1.0}}
    for kept in (
        Finite(1.0),
        Finite(1.0, min=0.0),
        List(Finite()),
        List(Int()).tag(outside=(0, 1)).tag(outside=None),
        List(List(Finite())),
        Unicode(""),
        Dict(),
        Bool().tag(outside=None),
        Int(3, max=9).tag(outside=None),
    ):
        assert limits_of(kept) is None, kept


def test_what_is_measured_is_not_set():
    limits = class_of("residual_stream").limits()
    assert limits.keys() == {"placement", "network", "final_norm", "depth", "loudness", "block"}


PROBE = """
export default { render({ model, el }) {
  const names = ["flag", "kind", "count", "share", "vector", "text", "head"];
  window.state = () => names.map((name) => model.get(name));
  el.append("alive");
} };
"""


class Outside(Probe):
    """One trait of each kind."""

    flag = Bool(False).tag(sync=True)
    kind = Enum(("a", 2), default_value="a").tag(sync=True)
    count = Int(3, min=0, max=63).tag(sync=True)
    share = Finite(0.5, min=0.0, max=1.0).tag(sync=True)
    vector = List(Finite(), default_value=[1.0, 2.0]).tag(sync=True, outside=(-8.0, 8.0))
    text = Unicode("as it is").tag(sync=True)
    head = Enum(("none", "3.1"), default_value="none").tag(sync=True)


TAKEN = {
    "flag": [True],
    "kind": [2],
    "count": [0, 63],
    "share": [0, 1, 0.25],
    "vector": [[-8, 8], [0.5, 0]],
    "text": [],
    "head": ["3.1", "none"],
}
LEFT_OUT = {
    "flag": [1, "true", None], "kind": ["b", "2", [2]], "count": [-1, 64, 1.5, "3", None, True, [3]],
    "share": [-0.1, 1.1, 1e999, "0.5", None], "vector": [[1], [1, 2, 3], [1, 9], [1, None], ["1", 2], "12", {}, 1],
    "text": ["another", None, 1], "head": ["3.2", 3.2, [3.1], None],
}  # fmt: skip


def test_the_host_takes_what_fits_and_leaves_out_the_rest(page):
    figure = Outside()
    serve(page, static_page(figure, source=PROBE))
    page.wait_for_selector(ALIVE)
    send = """([event, name, value]) => {
        const detail = { [name]: value, constructor: 1, __proto__: { flag: true } };
        document.querySelector("[data-figure]").dispatchEvent(new CustomEvent(event, { detail }));
        return state();
    }"""
    for at, name in enumerate(TAKEN):
        for value in TAKEN[name]:
            assert page.evaluate(send, [host.SET, name, value])[at] == value
        before = page.evaluate("state()")
        for value in LEFT_OUT[name]:
            assert page.evaluate(send, [host.SET, name, value]) == before, (name, value)
    assert page.evaluate(send, [host.SET, "head", 3.1])[-1] == "3.1"  # as a link says it: figure:name?head=3.1
