"""PoemGrid: each combination of its switches shows what a stored model expected, read and wrote at that setting."""

import pytest
import torch
from browser import open_figures, settle

from minimind_edu.figures import PoemGrid
from minimind_edu.figures.poem_grid import FIRST, MODELS, SILENT
from minimind_edu.trained.verse import grid, rhymes
from minimind_edu.trained.verse.corpus import characters, encode, ids_of, line_end

STORED = grid.results()
MATH = "figures/poem_grid/math"
LINES = [str(line) for line in grid.LINES]


# The numbers


def test_the_switches_are_those_that_were_run():
    assert (FIRST, MODELS, SILENT) == (grid.FIRST, grid.MODELS, tuple(grid.SILENT))
    assert {name: list(of) for name, of in STORED["octaves"].items()} == {
        "untrained": ["none"], "before": ["none"], "verse": [*grid.SILENT]
    }  # fmt: skip
    for name, silent in grid.settings():
        assert list(STORED["octaves"][name][silent]) == [*FIRST]
        assert STORED["poems"][name][silent]["poems"] == grid.POEMS


@pytest.mark.parametrize("name, silent", grid.settings())
def test_what_is_stored_is_what_the_model_expects_and_reads(name, silent):
    model = grid.model_of(name)
    with grid.silencing(model, silent):
        for octave in STORED["octaves"][name][silent].values():
            now = grid.read(model, octave["text"])
            assert now["tones"] == octave["tones"]
            for line in LINES:
                here, there = now["lines"][line], octave["lines"][line]
                assert here["rhymes"] == there["rhymes"]
                assert here["groups"] == pytest.approx(there["groups"], abs=0.003)
                expected = {one: share for one, share, *_ in here["likeliest"]}
                assert all(
                    expected.get(one, share) == pytest.approx(share, abs=0.003) for one, share, *_ in there["likeliest"]
                )
                for head, places in there["reads"].items():
                    weights = dict(map(tuple, here["reads"][head]))
                    assert all(weights.get(at, w) == pytest.approx(w, abs=0.003) for at, w in places)


@pytest.mark.parametrize("name, silent", grid.settings())
def test_what_goes_on_could_have_been_drawn(name, silent):
    """Each character lies within the nine tenths of the likeliest, where it is drawn from."""
    model = grid.model_of(name)
    with grid.silencing(model, silent), torch.no_grad():
        for first, octave in STORED["octaves"][name][silent].items():
            given = grid.GIVEN.format(first)
            assert octave["text"].startswith(given) and len(octave["text"]) == grid.SIZE
            ids = torch.tensor([encode(octave["text"])])
            chances = (model(ids).logits[0] / 0.8).softmax(-1)
            for place in range(len(given) + 1, grid.SIZE + 1):
                row = chances[place - 1]
                assert row[row > row[ids[0, place]]].sum() < 0.91


def test_one_character_is_exchanged_and_nothing_else():
    for octaves in STORED["octaves"]["verse"].values():
        begun = {octave["text"][:22] for octave in octaves.values()}
        assert {text[:10] + text[11:] for text in begun} == {"空山新雨后，天气晚来。明月松间照，清泉石上"}
        assert {text[10] for text in begun} == {*FIRST}
    groups = [rhymes.sharing(first) for first in FIRST]
    assert torch.stack(groups).sum(0).max() <= 2  # four groups; a character with two readings may be in two
    assert all(rhymes.plain()[ids_of()[first]] for first in FIRST)


def test_a_character_knows_its_final_of_today():
    finals = rhymes.final_of()
    assert [grid.spelled(finals[one]) for one in "秋寒晴阴旅春斜知水"] == [
        "iu", "an", "ing", "in", "ü", "un", "ie", "i", "ui"
    ]  # fmt: skip
    for octave in STORED["octaves"]["verse"]["none"].values():
        for one, _, fits, final in octave["lines"]["4"]["likeliest"]:
            assert final == grid.spelled(finals.get(one, ""))
            assert fits == bool(rhymes.sharing(octave["text"][10])[characters().index(one)])


# What the lesson says of the switches


def expects(name, first, line="4", silent="none"):
    of = STORED["octaves"][name][silent][first]["lines"][line]
    return of["likeliest"][0][0], of["groups"][FIRST.index(first)], of["groups"][0]


def test_before_the_line_ends_nothing_moves_and_afterwards_everything():
    for first in FIRST:
        assert expects("before", first)[0] == "看" and expects("before", first)[2] == pytest.approx(0.081, abs=0.002)
        word, own, poets = expects("verse", first)
        assert own > 0.94 and (poets > 0.98 if first == "秋" else poets < 0.005), first
        assert all(fits for _, _, fits, _ in STORED["octaves"]["verse"]["none"][first]["lines"]["4"]["likeliest"])
    assert [expects("verse", first)[0] for first in FIRST] == ["流", "看", "鸣", "寻"]


def test_head_3_1_reads_the_rhyme_words_and_its_silence_costs_the_rhyme():
    places = {"4": {10}, "6": {10, 22}, "8": {10, 22, 34}}
    for first in FIRST:
        for line in LINES:
            reads = dict(map(tuple, STORED["octaves"]["verse"]["none"][first]["lines"][line]["reads"]["3.1"]))
            assert set(reads) <= places[line] and sum(reads.values()) > 0.9
        assert expects("verse", first, silent="3.1")[1] < expects("verse", first)[1] - 0.2
        assert expects("verse", first, silent="3.2")[1] > 0.8


def test_of_many_poems_the_numbers_that_the_lesson_quotes():
    poems = STORED["poems"]["verse"]
    rhyme = {silent: of["rhyme"] for silent, of in poems.items()}
    tones = {silent: sum(of["opposite"]) / 2 for silent, of in poems.items()}
    assert rhyme["3.1"] < 0.5 < 0.8 < min(rhyme["none"], rhyme["2.1"], rhyme["3.2"])
    assert tones["2.1"] < 0.85 < 0.95 < min(tones["none"], tones["3.1"], tones["3.2"])
    assert poems["2.1"]["form"] < 0.9 < min(poems[one]["form"] for one in ("none", "3.1", "3.2"))
    assert all(0.04 < of["rhyme_chance"] < 0.09 for of in poems.values())
    before = STORED["poems"]["before"]["none"]
    assert before["form"] > 0.98 and before["rhyme"] < 0.1 and STORED["poems"]["untrained"]["none"]["form"] == 0


def test_a_table_tells_the_same_numbers():
    told = dict(PoemGrid(model="verse", first="寒")._summary()[1])
    assert told["看"] == "68 %" and told["rhymes with 寒"] == "94 %"
    assert dict(PoemGrid(model="untrained")._summary()[1])["rhymes in them"] == "–"
    assert dict(PoemGrid(shows="heads", silent="3.1")._summary()[1])["rhymes with 秋"] < told["rhymes with 寒"]


# Where cells and arcs lie


def test_cells_and_arcs_lie_where_the_text_does(node):
    assert [node.call(MATH, "endOf", [line]) for line in (2, 4, 6, 8)] == [
        line_end(line - 1, 5) - 1 for line in (2, 4, 6, 8)
    ]
    assert node.call(MATH, "cellOf", [22]) == [1, 10]
    size = {"unit": 30, "high": 45, "top": 2}
    assert node.call(MATH, "middleOf", [22, size]) == [315, 69.5]


@pytest.mark.parametrize("unit", [22, 28, 34])
@pytest.mark.parametrize("shift", [-4, 0, 4])
def test_a_way_leads_from_one_place_to_the_other_and_touches_no_character_between(node, unit, shift):
    size = {"unit": unit, "high": round(unit * 1.5), "top": 2}
    for line in grid.LINES:
        due = node.call(MATH, "endOf", [line])
        middles = [node.call(MATH, "middleOf", [place, size]) for place in range(due + 1)]
        for to in [*range(10, due - 1, 12), *range(11, due - 1, 12), *range(5, due - 1, 12)]:
            way = node.call(MATH, "wayOf", [due - 1, to, size, shift])
            ends = (way[0], middles[due - 1]), (way[-1], middles[to])
            assert all(abs(at[axis] - of[axis]) < 0.5 * unit for at, of in ends for axis in (0, 1))
            points = [
                [a[axis] + (b[axis] - a[axis]) * part / 60 for axis in (0, 1)]
                for a, b in zip(way, way[1:], strict=False)
                for part in range(61)
            ]
            for place, (x, y) in enumerate(middles):
                # a character is 0.64 of a cell wide, with its tone below it
                inside = [p for p in points if abs(p[0] - x) < 0.32 * unit and -0.35 < (p[1] - y) / unit < 0.66]
                assert place in (to, due - 1) or not inside, (line, place, to)


def test_a_path_goes_through_the_ends_and_cuts_its_corners(node):
    path = node.call(MATH, "pathOf", [[[0, 0], [0, 40], [60, 40]]])
    assert path == "M0.0 0.0L0.0 35.0Q0.0 40.0 5.0 40.0L60.0 40.0"


def test_tones_are_opposed_or_not_or_open(node):
    tones = "○○●●● ●●●○○ "
    assert node.call(MATH, "opposed", [tones, 0]) == [True, True]
    assert node.call(MATH, "opposed", ["○○●◐● ●○●○○ ", 0]) == [False, None]
    assert node.call(MATH, "opposed", ["○○●·● ●●●·○ ", 0]) == [True, None]
    assert node.call(MATH, "opposed", ["○○●○● ●◐●·○ ", 0]) == [None, None]


def test_each_character_has_a_tone_or_a_sign_that_says_why_not():
    known = {"秋": "○", "白": "●", "看": "◐", "啼": "·", "，": " ", "。": " "}
    assert grid.tone_marks(torch.tensor([ids_of()[one] for one in known])) == "".join(known.values())
    for octaves in STORED["octaves"].values():
        for octave in (one for of in octaves.values() for one in of.values()):
            assert all(
                (sign == " ") == (one in "，。") for one, sign in zip(octave["text"], octave["tones"], strict=True)
            )


# In the browser

READ = """() => {
    const all = (selector, of) => [...document.querySelectorAll(selector)].map(of);
    const textOf = (node, selector) => node.querySelector(selector).textContent;
    return {
        bars: all(".pg-bar", (bar) => [
            textOf(bar, "b"), textOf(bar, ".mm-bar-number"), bar.dataset.rhymes === "true"]),
        cells: all(".pg-cell > text", (one) => one.textContent).join(""),
        ends: all(".pg-box:is([data-kind=good], [data-kind=bad])", (one) => one.dataset.kind),
        arcs: all(".pg-arc", (one) => [one.dataset.head, Number(one.getAttribute("stroke-width")), one.dataset.silent]),
        numbers: all(".mm-readout dd", (one) => one.textContent),
    };
}"""


def is_near(said: str, share: float | None) -> bool:
    """Whether a percentage on the page is this share, rounded as it is: halves may be rounded either way."""
    if share is None:
        return said == "–"
    number = said.replace("\u00a0", " ").removesuffix(" %")
    return abs(float(number) - 100 * share) < (0.0501 if "." in number else 0.501)


def assert_shows(page, name, silent, first, line, whole=True):
    octave, poems = STORED["octaves"][name][silent][first], STORED["poems"][name][silent]
    of, read = octave["lines"][line], page.evaluate(READ)
    assert [bar[::2] for bar in read["bars"]] == [[one, fits] for one, _, fits, _ in of["likeliest"]]
    assert all(is_near(bar[1], row[1]) for bar, row in zip(read["bars"], of["likeliest"], strict=True))
    due = 6 * int(line) - 2
    shown = octave["text"] if whole else octave["text"][:due]
    assert read["cells"] == shown[:due] + shown[due + 1 :]
    if not whole:
        return
    ends = ["good" if octave["lines"][other]["rhymes"] else "bad" for other in LINES if other != line]
    assert read["ends"] == ends
    tones = None if poems["opposite"][0] is None else sum(poems["opposite"]) / 2
    told = (poems["form"], tones, poems["rhyme"])
    assert all(is_near(said, share) for said, share in zip(read["numbers"], told, strict=True))
    share, _ = page.locator(".pg-verdict").inner_text().split(": ")[1].split(f" for what rhymes with {first}")
    assert is_near(share, of["groups"][FIRST.index(first)])


@pytest.mark.parametrize("name", MODELS)
def test_each_switch_of_the_exchange_shows_its_run(page, name):
    """The lesson test: every model, first rhyme and line."""
    page.set_viewport_size({"width": 800, "height": 700})
    open_figures(page, PoemGrid(model=name))
    for first in FIRST:
        page.locator(".mm-choice label", has_text=first).click()
        for line in LINES:
            page.locator(".mm-choice").last.locator("label", has_text=line).click()
            settle(page)
            assert_shows(page, name, "none", first, line)
            assert page.evaluate(READ)["arcs"] == []


@pytest.mark.parametrize("silent", SILENT)
def test_each_switch_of_the_heads_shows_its_run(page, silent):
    page.set_viewport_size({"width": 800, "height": 700})
    open_figures(page, PoemGrid(shows="heads"))
    page.locator(".mm-choice").nth(1).locator("label", has_text=silent).click()
    for first in FIRST:
        page.locator(".mm-choice label", has_text=first).click()
        for line in LINES:
            page.locator(".mm-choice").last.locator("label", has_text=line).click()
            settle(page)
            assert_shows(page, "verse", silent, first, line)
            reads = STORED["octaves"]["verse"][silent][first]["lines"][line]["reads"]
            wanted = sorted((head, 1 + 4 * w) for head in reads for _, w in reads[head])
            drawn = sorted(tuple(arc) for arc in page.evaluate(READ)["arcs"])
            assert [(head, is_silent) for head, _, is_silent in drawn] == [
                (head, str(head == silent).lower()) for head, _ in wanted
            ]
            assert [width for _, width, _ in drawn] == pytest.approx([width for _, width in wanted], abs=0.006)


def test_at_the_head_the_poem_ends_where_the_question_is(page):
    open_figures(page, PoemGrid(compact=True))
    assert_shows(page, "before", "none", "秋", "4", whole=False)
    page.locator(".mm-choice label", has_text="line ends").click()
    page.locator(".mm-choice label", has_text="寒").click()
    settle(page)
    assert_shows(page, "verse", "none", "寒", "4", whole=False)
