"""What is asked of every figure alike: its text form, what it refuses, that it fits, and that its words keep apart."""

from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import pytest
from browser import assert_words_are_apart, open_figures, settle, sizes, unfold
from figure_examples import EVERY_FIGURE, assert_refused, example
from traitlets import Enum, Float, Int, TraitType

from minimind_edu.figures import class_of, figure_names
from minimind_edu.figures.attention_xray import TOKENS
from minimind_edu.figures.frequency_comb import FORMULAS
from minimind_edu.figures.model_map import LEVELS, PARTS, SIDES
from minimind_edu.figures.pairing_lab import LAYOUTS
from minimind_edu.figures.sampler import STARTS
from minimind_edu.web.story import LONGEST
from minimind_edu.web.traits import Finite

# The changes of the ablations that can be chosen at once; the others are folded.
NOTICED = (
    "whole", "no attention", "no residual", "no positions", "no feed-forward", "1 layer", "initialization 0.02",
    "300 rows",
)  # fmt: skip
PLACES = [(level, part) for level, name in enumerate(LEVELS) for part in ("", *SIDES[name])]
LINKS = {part: {"href": f"{part}.html", "label": f"On {part}"} for part in PARTS if part not in ("ffn", "generation")}
NAN, INF = float("nan"), float("inf")
# The most pixels of height: 85 % of a window of 900 and of a phone's screen of 750; of a figure that is scrolled on a
# phone; and of the pictures at the head of chapters, by their width.
WINDOW, PHONE, SCROLLED = 765, 640, 860
HEADS = {738: 430, 328: 460}


@dataclass(frozen=True)
class Asked:
    """What is asked of one figure. Options are the keyword arguments of its class."""

    settings: list[dict[str, Any]] = field(default_factory=lambda: [{}])  # options: the longest words, every shape
    alike: bool = True  # equally high in all settings, so that nothing below moves
    further: list[dict[str, Any]] = field(default_factory=list)  # fit a window, and their words keep apart, too
    phone: int = PHONE
    controls: int | None = None  # of the compact figure: all that can be pressed or reached by a key
    text: tuple[dict[str, Any], str] | None = None  # options, text form
    # options, part of the error: what the types of the traits do not refuse, which no row need ask for
    refused: list[tuple[dict[str, Any], str]] = field(default_factory=list)


TABLE = {
    "ablation_lab": Asked(
        settings=[{"variant": name} for name in NOTICED],
        phone=SCROLLED,
        controls=8,
        text=({"variant": "ReLU"}, "AblationLab(variant='ReLU')"),
    ),
    "moved_query": Asked(
        settings=[{"back": back} for back in (0, 3, 12)],
        further=[{"shows": "key", "start": 100}, {"word": 12, "back": 11}],
        phone=SCROLLED,
        controls=1,
        text=({"back": 4}, "MovedQuery(shows='keys', back=4, start=0)"),
        refused=[
            ({"back": 13}, "'back' .* should not be greater than 12, but a value of 13"),
            ({"word": 23}, "'word' .* should not be greater than 22, but a value of 23"),
            ({"start": -1}, "'start' .* should not be less than 0, but a value of -1"),
            ({"shows": "values"}, "'shows' .* expected any of"),
            ({"stored": {}}, '"stored" trait is read-only'),
        ],
    ),
    "longer_text": Asked(
        settings=[{"stretch": stretch, "word": word} for stretch, word in ((1, 384), (3, 192), (8, 96))],
        further=[
            {"shows": "far", "stretch": stretch, "far": far, "model": "twin"}
            for stretch in (1, 4, 8)
            for far in (False, True)
        ],
        phone=SCROLLED,
        controls=1,
        text=({"stretch": 4}, "LongerText(shows='stretch', stretch=4, far=False, model='living', word=384)"),
    ),
    "attention_xray": Asked(
        controls=len(TOKENS),
        refused=[
            ({"tokens": ["a"]}, "1 tokens need as many"),
            ({"order": [0, 1, 2, 3, 3]}, "the order"),
            ({"query": [[0.0] * 4] * 5}, "of length 128 <= L <= 128"),
            ({"value": [[NAN] * 4] * 5}, "a finite number"),
            ({"row": 5}, "row must be from 0 to 4, got 5"),
        ],
    ),
    "cache_stepper": Asked(
        settings=[{"calls": 10}],
        further=[{"calls": 10, "bug": "stale"}],
        phone=SCROLLED,
        controls=2,
        refused=[
            ({"calls": 13}, "this run has 12 calls, got calls=13"),
        ],
    ),
    "counted_tokens": Asked(
        settings=[{"mask": mask, "trained": trained} for mask in ("answer", "late", "padding") for trained in (0, 100)],
        further=[
            *({"shows": "row", "stage": stage} for stage in range(7)),
            *({"shows": "shift", "mask": "all", "ahead": ahead, "trained": 50} for ahead in (0, 2)),
        ],
        phone=SCROLLED,
        controls=5,
        text=({"mask": "late"}, "CountedTokens(shows='masks', mask='late', ahead=1, trained=0)"),
        refused=[
            ({"ahead": 2}, "labels are one ahead with shows='masks', got ahead=2"),
            ({"shows": "shift", "mask": "late"}, "has the masks answer and all, got mask='late'"),
            ({"stored": {}}, '"stored" trait is read-only'),
        ],
    ),
    "fixed_divisors": Asked(
        settings=[{"percentile": stop, "apart": apart} for stop in (0, 10, 50, 75, 99) for apart in (False, True)],
        further=[
            {"about": "square", "percentile": 10, switch: True, "twin": twin}
            for switch in ("proportional", "networks_only")
            for twin in (False, True)
        ],
        phone=SCROLLED,
        controls=1,
        refused=[({"percentile": 55}, "'percentile' .* expected any of")],
    ),
    "five_switches": Asked(
        settings=[{"norm": norm, "q_k": q_k} for norm in (True, False) for q_k in (True, False)],
        further=[{"shows": "all", "norm": norm} for norm in (True, False)],
        phone=SCROLLED,
        controls=5,
        refused=[({"stored": {}}, '"stored" trait is read-only')],
    ),
    "square_to_row": Asked(
        settings=[{"calls": calls} for calls in (0, 1, 3, 6)],
        further=[
            {"shows": "broken", "calls": calls, "chunk": chunk, "bug": bug}
            for bug, chunk, calls in (
                ("none", 3, 8),
                ("again", 1, 14),
                ("stale", 9, 6),
                ("square", 3, 3),
                ("offset", 1, 5),
            )
        ],
        phone=SCROLLED,
        controls=2,
        text=({"calls": 2}, "SquareToRow(shows='saved', calls=2, chunk=9, bug='none')"),
        refused=[
            ({"calls": 7}, "this run has 6 calls, got calls=7"),
            ({"chunk": 2}, "expected any of"),
            ({"bug": "cat"}, "expected any of"),
            ({"shows": "all"}, "expected any of"),
            ({"stored": {}}, '"stored" trait is read-only'),
        ],
    ),
    "frequency_comb": Asked(
        settings=[{"context": 32768, "factor": 64.0, "formula": formula} for formula in FORMULAS],
        text=(
            {"formula": "none", "head_dim": 64},
            "FrequencyComb(formula='none', rope_base=1000000.0, head_dim=64, context=2048, factor=16.0)",
        ),
    ),
    "gate_surface": Asked(
        settings=[{"gate": gate, "value": -2.5} for gate in (2.0, 0.0, -1.0, -3.0)],
        further=[{}, {"gated": False}, {"activation": "gelu", "value": -3.0}],
        phone=SCROLLED,
        controls=2,
        text=({"gate": 0.5}, "GateSurface(gate=0.5, value=-1.2, activation='silu', gated=True)"),
    ),
    "guess_ahead": Asked(
        settings=[{"first": first, "rounds": rounds} for first in ("kitchen", "hall") for rounds in (0, 1, 5000)],
        further=[
            {"shows": "draft", "rounds": 20},
            {"rule": "all", "rounds": 1000},
            {"second": "?", "third": "where is"},
        ],
        phone=SCROLLED,
        controls=15,
        text=(
            {"first": "hall", "rounds": 20},
            "GuessAhead(shows='you', first='hall', second='.', third='the', rule='leftovers', rounds=20)",
        ),
        refused=[({"first": "tower"}, "'first' .* expected any of"), ({"rounds": 5001}, "not be greater than 5000")],
    ),
    "head_wiring": Asked(
        settings=[{}, {"num_kv_heads": 1}, {"order": "tiled"}, {"as_group_size": True}, {"num_heads": 16}],
        controls=1,
        refused=[
            ({"num_kv_heads": 3}, "multiple of num_kv_heads, got 8 and 3"),
            ({"num_heads": 10}, "multiple of num_kv_heads, got 10 and 4"),
        ],
    ),
    "key_circles": Asked(
        settings=[{"width": width, "seed": seed} for width, seed in ((8, 0), (4, 1), (2, 2))],
        further=[{"shows": "query", "width": 4, "asked": 3}, {"shows": "query", "width": 8, "asked": 8}],
        controls=1,
        text=({"width": 4}, "KeyCircles(shows='keys', width=4, seed=0)"),
        refused=[
            ({"width": 3}, "expected any of"),
            ({"seed": 3}, "expected any of"),
            ({"asked": 9}, "should not be greater than 8"),
            ({"stored": {}}, '"stored" trait is read-only'),
        ],
    ),
    "memory_bars": Asked(
        settings=[{"kind": kind, "half": half} for kind in ("train", "dpo", "serve") for half in (False, True)],
        further=[{"kind": "lora", "batch": 256, "length": 8192, "card": 80, "model": "base"}, {"batch": 1}],
        phone=SCROLLED,
        controls=1,
        text=(
            {"kind": "dpo"},
            "MemoryBars(kind='dpo', batch=32, length=512, half=False, card=8, model='small')",
        ),
    ),
    "minimind_live": Asked(
        refused=[({"links": {"wheel": {"href": "a", "label": "b"}}}, "links must give href and label")],
    ),
    "mixture_walk": Asked(
        settings=[
            {"about": "load", "step": 1, "trained": trained, "renormalize": False, "top_k": k, "balanced": on}
            for k in (2, 1)
            for on, trained in ((False, 25), (True, 400))
        ],
        further=[
            {"about": "word", "view": "word", "step": 2},
            {"about": "word", "view": "word", "step": 6, "renormalize": False},
            {"about": "weights", "view": "word", "step": 3, "top_k": 1},
            *({"renormalize": False, "top_k": k, "step": step} for k in (2, 1) for step in (0, 2)),
        ],
        phone=SCROLLED,
        controls=2,
        text=({"about": "word", "view": "word"}, "MixtureWalk(about='word', view='word', step=0)"),
        refused=[
            ({"step": 3}, "has the steps 0 to 2, got step=3"),
            ({"top_k": 3}, "expected any of"),
            ({"view": "word", "trained": 50}, "a word is seen with trained=400, got 50"),
            ({"view": "word", "balanced": True}, "a word is seen with balanced=False, got True"),
        ],
    ),
    "model_map": Asked(
        settings=[{"level": level, "part": part, "links": LINKS} for level, part in PLACES],
    ),
    "neuron_words": Asked(
        settings=[{"word": at} for at in range(19)],
        further=[{"word": 11, "off": "4.76"}],
        alike=False,
        phone=SCROLLED,
        controls=4,  # a neuron of each block
        text=({"story": "Zoe is in the"}, "NeuronWords(story='Zoe is in the', word=2, off='')"),
        refused=[
            ({"story": "Mia is in the castle."}, "'castle' is no word of this world"),
            ({"story": ""}, f"1 to {LONGEST - 1} words, got 0"),
            ({"story": "Mia is in the hall. " * 8}, f"1 to {LONGEST - 1} words, got 32"),
            ({"word": 40}, "from 0 to 18"),
            ({"off": "4.999"}, "off must be empty or a neuron shown at word 18"),
        ],
    ),
    "norm_geometry": Asked(
        settings=[{"offset": offset} for offset in (0.0, 1.0, 5.0)],
        controls=3,  # the globe and its tip, and the slider
        refused=[
            ({"x": [1.0, 2.0]}, "x must have 3 channels, as many as can be drawn, got 2"),
            ({"gain": [1.0] * 4}, "gain must have 3 channels, as many as can be drawn, got 4"),
            ({"eps": 0.0}, "eps must be positive, got 0.0"),
            ({"values": []}, "'values' .* must be of length 1 <= L"),
        ],
    ),
    "pairing_lab": Asked(
        settings=[{"rotation": layout} for layout in LAYOUTS],
        controls=2,
        text=({"shift": 0}, "PairingLab(table='half-split', rotation='half-split', shift=0, permuted=False)"),
        refused=[
            ({"query": [1.0] * 4}, "got 4 and 8"),
        ],
    ),
    "parameter_ledger": Asked(
        settings=[{"tied": tied} for tied in (True, False)],
        controls=1,
        text=(
            {"tied": False},
            "ParameterLedger(hidden_size=512, num_hidden_layers=8, vocab_size=6400, num_key_value_heads=2, tied=False)",
        ),
        refused=[
            ({"hidden_size": 520}, "multiple of 64, got 520"),
        ],
    ),
    "poem_grid": Asked(
        settings=[
            {"model": model, "first": first, "line": line}
            for model, first, line in (("untrained", "秋", 8), ("before", "寒", 6), ("verse", "阴", 4))
        ],
        further=[
            {"shows": "heads", "silent": silent, "line": line} for silent in ("none", "3.1", "2.1") for line in (4, 8)
        ],
        phone=SCROLLED,
        controls=7,
        text=(
            {"model": "verse", "first": "寒"},
            "PoemGrid(shows='exchange', model='verse', silent='none', first='寒', line=4)",
        ),
        refused=[
            ({"first": "风"}, "'first' .* expected any of"),
            ({"line": 2}, "'line' .* expected any of"),
            ({"silent": "1.1"}, "'silent' .* expected any of"),
            ({"stored": {}}, '"stored" trait is read-only'),
        ],
    ),
    "quantization_grid": Asked(
        settings=[{"question": at} for at in range(12)] + [{"bits": bits, "story": 1} for bits in (2, 3, 8)],
        phone=SCROLLED,
        controls=2,
        text=(
            {"bits": 3},
            "QuantizationGrid(bits=3, per='row', layer=2, matrix='up_proj', row=6, pull=1.0, question=None, story=0)",
        ),
        refused=[
            ({"row": 128}, "row must be from 0 to 127, the last of up_proj, got 128"),
            ({"story": 3}, "'story' .* should not be greater than 2, but a value of 3"),
        ],
    ),
    "pipe_and_mill": Asked(
        settings=[{"texts": texts, "weights": place} for texts in (1, 8, 64) for place in ("memory", "hand")],
        further=[{"shows": "models", "model": model, "texts": 48} for model in ("large", "small", "living")],
        phone=SCROLLED,
        controls=2,
        text=({"texts": 8}, "PipeAndMill(shows='texts', texts=8, weights='memory', model='large')"),
    ),
    "residual_stream": Asked(
        phone=SCROLLED,
        settings=[{"placement": placement} for placement in ("post", "none", "pre")],
        text=(
            {"placement": "post", "depth": 4},
            "ResidualStream(placement='post', network='swiglu', final_norm=True, depth=4, loudness=1.0, block=4)",
        ),
    ),
    "roofline": Asked(
        settings=[{"batch": 1, "context": 1}, {"batch": 512, "context": 512}],
        alike=False,
        controls=2,  # the slider, and its handle in the picture
        refused=[
            ({"hidden_size": 500}, "hidden_size must be a multiple of 128, got 500"),
        ],
    ),
    "rotation_dials": Asked(
        settings=[{"query_position": 63, "key_position": 10}],
        controls=2,
        text=({}, "RotationDials(query_position=8, key_position=5, rope_base=10000.0)"),
        refused=[
            ({"query": [1.0, 2.0]}, "the same even length from 2 to 16.*got 2 and 8"),
            ({"query": [1.0] * 3, "key": [1.0] * 3}, "got 3 and 3"),
            ({"query": [], "key": []}, "got 0 and 0"),
            ({"key": [INF] * 8}, "a finite number"),
        ],
    ),
    "sampler": Asked(
        settings=[{"start": start, "temperature": heat} for start, heat in product(STARTS, (0.3, 1.0, 2.0))],
        phone=SCROLLED,
        controls=1,
        text=(
            {"start": "broad", "top_k": 3},
            "Sampler(start='broad', repetition_penalty=1.0, temperature=1.0, top_k=3, top_p=1.0, min_p=0.0)",
        ),
    ),
    "sinking_words": Asked(
        settings=[
            {"placement": placement, "loudness": loudness} for placement in ("pre", "post") for loudness in (0.25, 8.0)
        ],
        further=[
            {"about": "causes", "placement": placement, "loudness": 8.0, "louder": louder}
            for placement in ("pre", "post")
            for louder in ("attention", "networks")
        ],
        phone=SCROLLED,
        controls=3,
        text=(
            {"placement": "post", "loudness": 8.0},
            "SinkingWords(about='words', placement='post', loudness=8.0, louder='both')",
        ),
        refused=[
            ({"placement": "none"}, "'placement' .* expected any of"),
            ({"angles": {}}, '"angles" trait is read-only'),
        ],
    ),
    "sixteen_heads": Asked(
        settings=[
            {"shows": "chain", "story": story, "silent": silent} for story in ("en", "zh") for silent in (0, 2048)
        ],
        further=[{}, {"silent": 65535}],
        phone=SCROLLED,
        controls=16,
        text=({"silent": 2048}, "SixteenHeads(shows='heads', silent=2048, story='en')"),
        refused=[
            ({"silent": 65536}, "'silent' .* should not be greater than 65535"),
            ({"stored": {}}, '"stored" trait is read-only'),
        ],
    ),
    "story_lens": Asked(
        settings=[{"depth": depth} for depth in (0, 2, 4)],
        phone=SCROLLED,
        text=({"depth": 2}, "StoryLens(depth=2, word=18)"),
        refused=[
            ({"story": "Mia is in the tower."}, "'tower' is no word"),
            ({"story": "Mia is in the hall. " * 8}, "cannot follow"),
            ({"word": 40}, "from 0 to 18"),
        ],
    ),
    "tick_tock": Asked(
        settings=[
            {},
            {"tock": [2.6, 1.2]},
        ],
        further=[
            {"model": "two"},
            {"model": "two", "reads_tick": [1, 2], "reads_tock": [2, 0]},
            {"model": "block"},
            {"model": "block", "angle": 150},
            {"tick": [-3, -3], "tock": [3, -3]},
        ],
        phone=SCROLLED,
        controls=2,
        text=({"model": "two"}, "TickTock(model='two', tick=[2.0, 0.0], tock=[1.0, 2.0])"),
        refused=[
            ({"model": "three"}, "'model' .* expected any of"),
            ({"tick": [1.0]}, "of length 2 <= L <= 2"),
            ({"tock": [3.5, 0.0]}, "should not be greater than 3"),
            ({"angle": 361.0}, "'angle' .* should not be greater than 360"),
            ({"reads_tick": [NAN, 0.0]}, "a finite number"),
        ],
    ),
    "two_neurons": Asked(
        settings=[{"first": first} for first in (-143.0, -100.0, -40.0, 0.0)],
        alike=False,
        further=[{"shows": shows, "story": story} for shows in ("two", "inside") for story in ("en", "zh")],
        phone=SCROLLED,
        controls=1,
        refused=[
            ({"story": "zh"}, "one neuron is seen with story='en', got 'zh'; set shows='two'"),
            ({"first": -161.0}, "'first' .* should not be less than -160.0"),
            ({"gate": 18.0}, "'gate' .* should not be greater than 17.0"),
            ({"second": NAN}, "finite"),
            ({"shows": "three"}, "'shows' .* expected any of"),
        ],
    ),
    "two_tables": Asked(
        settings=[{"step": step, "kind": kind} for kind in ("two", "small", "one") for step in (0, 600)],
        phone=SCROLLED,
        controls=1,
        text=({"step": 40}, "TwoTables(kind='two', step=40)"),
        refused=[
            ({"step": 50}, "'step' .* expected any of"),
            ({"kind": "three"}, "'kind' .* expected any of"),
            ({"results": {}}, '"results" trait is read-only'),
        ],
    ),
    "who_writes": Asked(
        settings=[{"silent": head} for head in ("none", "1.2", "1.3", "4.1", "4.2")],
        further=[
            {"shows": "models", "model": "twin", "silent": "1.4"},
            *({"shows": "words", "reader": reader} for reader in ("4.1", "4.2")),
            {"shows": "words", "reader": "4.1", "exchanged": True},
        ],
        controls=16,
        text=({"silent": "4.1"}, "WhoWrites(shows='writers', model='living', silent='4.1')"),
    ),
}
ROWS = TABLE.items()


def asked_of(name: str) -> Asked:
    """The row of a figure; one without a row is asked what all are asked."""
    return TABLE.get(name, Asked())


def test_every_row_is_a_figures():
    assert set(TABLE) <= set(figure_names())


@pytest.mark.parametrize("name", [name for name, asked in ROWS if asked.text])
def test_text_form_is_short_and_fixed(name):
    options, text = TABLE[name].text
    assert repr(class_of(name)(**options)) == text


def outside(name: str, kind: TraitType) -> list[tuple[Any, str]]:
    """Values that the type of a trait refuses, and what the error says: beyond its ends, not of its list, no number."""
    if kind.read_only:
        return [(None, f'"{name}" trait is read-only')]
    if isinstance(kind, Enum):
        other = "none of them" if isinstance(kind.values[0], str) else max(kind.values) + 1
        return [(other, f"'{name}' .* expected any of")]
    if not isinstance(kind, Int | Float):
        return []
    step = 1 if isinstance(kind, Int) else 0.001
    low = [] if kind.min in (None, -INF) else [(kind.min - step, f"'{name}' .* should not be less than {kind.min}")]
    high = [] if kind.max in (None, INF) else [(kind.max + step, f"'{name}' .* not be greater than {kind.max}")]
    return low + high + [(NAN, f"'{name}' .* expected a finite number")] * isinstance(kind, Finite)


@pytest.mark.parametrize("name", figure_names())
def test_what_lies_outside_of_a_trait_is_refused(name):
    for trait, kind in class_of(name).class_traits(sync=True).items():
        for value, told in outside(trait, kind):
            assert_refused(partial(example, name), {trait: value}, told)


@pytest.mark.parametrize("name, options, told", [(name, *row) for name, asked in ROWS for row in asked.refused])
def test_what_no_trait_refuses_by_its_type_is_refused_too(name, options, told):
    assert_refused(partial(example, name), options, told)


# The heights of a figure while each of its controls that are shown is moved.
HEIGHTS = """async (figure) => {
    const frame = () => new Promise(requestAnimationFrame);
    const heights = [];
    const look = async () => {
        await frame();
        await frame();
        heights.push(figure.getBoundingClientRect().height);
    };
    for (const input of figure.querySelectorAll("input")) {
        if (!input.checkVisibility()) continue;
        if (input.type !== "range") {
            input.click();
            await look();
        } else for (const part of [0, 1, 0.5]) {
            input.value = Number(input.min) + part * (input.max - input.min);
            input.dispatchEvent(new Event("input", { bubbles: true }));
            await look();
        }
    }
    return heights;
}"""
CONTROLS = ".mm-fig :is(input, button, select, summary, [tabindex])"


def opened(page, name, width, settings, compact=False, language="en"):
    """The figure in these settings on one page, each so wide."""
    page.set_viewport_size({"width": width + 16, "height": 900})
    figures = [example(name, **setting) for setting in settings]
    for figure in figures:
        figure.compact = compact
    open_figures(page, *figures, language=language)
    return page.locator(".mm-fig")


WIDTHS = [(name, width) for name in figure_names() if name != "minimind_live" for width in (928, 328)]  # it is a page


@pytest.mark.parametrize("name, width", [*WIDTHS, ("model_map", 738)])
def test_it_fits_the_window_and_nothing_moves_while_a_hand_is_at_a_control(page, name, width):
    asked, is_phone = asked_of(name), width < 400
    boxes = sizes(opened(page, name, width, asked.settings + ([] if is_phone else asked.further)))
    heights = [box["height"] for box in boxes]
    assert {box["width"] for box in boxes} == {width} and max(heights) <= (asked.phone if is_phone else WINDOW)
    assert len(set(heights[: len(asked.settings)])) == 1 or not asked.alike
    moved = page.locator(".mm-fig").first.evaluate(HEIGHTS)
    assert set(moved) <= {heights[0]}


@pytest.mark.parametrize("width, most", HEADS.items())
@pytest.mark.parametrize("name", [name for name, asked in ROWS if asked.controls])
def test_compact_it_is_a_picture_with_few_controls(page, name, width, most):
    settings = asked_of(name).settings
    figures = opened(page, name, width, settings, compact=True)
    assert max(box["height"] for box in sizes(figures)) <= most
    assert page.locator(CONTROLS).count() == asked_of(name).controls * len(settings)


@pytest.mark.parametrize("compact, width", [(False, 928), (False, 328), (True, 738), (True, 328)])
@pytest.mark.parametrize("language", ["en", "zh"])
@EVERY_FIGURE
def test_no_words_lie_on_each_other_or_leave_their_drawing(page, name, language, compact, width):
    asked = asked_of(name)
    figures = opened(page, name, width, asked.settings + asked.further, compact, language)
    unfold(page)
    settle(page)
    for drawing in figures.locator("svg:visible").all():
        assert_words_are_apart(drawing)
