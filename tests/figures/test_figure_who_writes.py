"""WhoWrites: each switch shows what the model writes without that head, as thick as it is."""

import re

import pytest
from browser import open_figures, settle

from minimind_edu.figures import WhoWrites
from minimind_edu.figures.who_writes import HEADS
from minimind_edu.trained.living.writers import measured

STORED = measured()
MATH = "figures/who_writes/math"
SIZE = {"unit": 6.4, "least": 31, "gap": 5}


def numbers(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.\d+", text.replace("−", "-"))]


# The numbers


def test_the_heads_of_the_switches_are_those_that_were_silenced():
    for of_model in STORED["models"].values():
        assert list(of_model["states"]) == ["none", *HEADS] and list(of_model["own"]) == [*HEADS]


def test_what_the_lesson_says_of_the_switches():
    states = STORED["models"]["living"]["states"]
    assert states["none"]["lead"] == pytest.approx(11.34, abs=0.005)
    assert states["4.1"]["lead"] == pytest.approx(4.50, abs=0.005)
    network = [states[one]["writes"][2] for one in ("none", "4.1")]
    assert network == pytest.approx([4.58, 1.46], abs=0.005) and 0.3 < network[1] / network[0] < 0.35
    assert states["1.3"]["word"] == STORED["models"]["twin"]["states"]["1.4"]["word"] == "kitchen"


def test_a_table_tells_the_same_numbers():
    _, rows = WhoWrites(silent="4.1")._summary()
    told = dict(rows)
    assert told["network 4"] == "1.46" and told["hall − kitchen, logits"] == "4.50"
    assert told["with no head silenced"] == "11.34" and told["next word"] == "hall, 98 %"
    assert dict(WhoWrites(shows="models", model="twin")._summary()[1])["hall − kitchen, logits"] == "9.62"


@pytest.mark.parametrize("model", STORED["models"])
def test_ribbons_are_as_thick_as_what_they_stand_for_and_lie_in_their_rows(node, model):
    states = [state["writes"] for state in STORED["models"][model]["states"].values()]
    rows = node.call(MATH, "rowsOf", [states, SIZE])
    for writes in states:
        drawn = node.call(MATH, "ribbonsOf", [writes, rows, SIZE["unit"]])
        for value, ribbon, (top, height) in zip(writes, drawn["ribbons"], rows, strict=True):
            assert ribbon["size"] == pytest.approx(abs(value) * SIZE["unit"] if value else 0, abs=0.71)
            assert top - 1e-9 <= ribbon["from"] and ribbon["from"] + ribbon["size"] <= top + height + 1e-9
            assert ribbon["isFor"] == (value >= 0)
        (first, hall), (second, kitchen) = drawn["piles"]
        assert hall + kitchen == pytest.approx(sum(one["size"] for one in drawn["ribbons"]))
        assert first == 0 and second + kitchen == pytest.approx(drawn["bottom"]) and hall < second
        for of_pile, start in ((True, first), (False, second)):
            for ribbon in (one for one in drawn["ribbons"] if one["isFor"] == of_pile):
                assert ribbon["to"] == pytest.approx(start)
                start += ribbon["size"]


# In the browser

READ = """() => ({
    values: [...document.querySelectorAll(".ww-ribbons g > .mm-strong")].slice(0, 5).map((one) => one.textContent),
    sizes: [...document.querySelectorAll(".ww-bar")].map((one) => Number(one.getAttribute("height"))),
    lead: document.querySelector(".ww-lead").textContent,
    said: document.querySelector(".ww-said").textContent })"""


def assert_shows(page, model: str, head: str) -> None:
    state = STORED["models"][model]["states"][head]
    read = page.evaluate(READ)
    assert [numbers(one)[0] for one in read["values"]] == pytest.approx(state["writes"], abs=0.0051), head
    assert numbers(read["lead"]) == pytest.approx([state["lead"]], abs=0.0051), head
    assert read["said"] == state["word"], head
    thick = [abs(value) * SIZE["unit"] for value in state["writes"]]
    assert read["sizes"] == pytest.approx(thick, abs=0.8), head


@pytest.mark.parametrize(("model", "options"), [("living", {"compact": True}), ("living", {}), ("twin", {})])
def test_each_switch_shows_what_the_model_writes_without_that_head(page, model, options):
    """The lesson test: every switch, in every view that has them, pressed and released."""
    shown = {"shows": "models", "model": model} if model == "twin" else {}
    page.set_viewport_size({"width": 800, "height": 700})
    open_figures(page, WhoWrites(**shown, **options))
    assert_shows(page, model, "none")
    for head in HEADS:
        switch = page.locator(".ww-chip", has_text=head)
        switch.click()
        settle(page)
        assert_shows(page, model, head)
        assert switch.get_attribute("aria-pressed") == "true"
        assert page.locator(".ww-chip[aria-pressed=true]").count() == 1
        if not options:
            of = STORED["models"][model]
            gone = of["states"]["none"]["lead"] - of["states"][head]["lead"]
            told = numbers(page.locator(".ww-verdict").inner_text().removeprefix(f"Without {head}"))
            assert told[:3] == pytest.approx([of["own"][head], of["states"][head]["lead"], abs(gone)], abs=0.0051)
            assert ("more." in page.locator(".ww-verdict").inner_text()) == (gone < 0)
    switch.click()
    settle(page)
    assert_shows(page, model, "none")


def test_the_other_model_is_one_press_away(page):
    open_figures(page, WhoWrites(shows="models", silent="1.4"))
    assert "5.06 less" in page.locator(".ww-verdict").inner_text()
    page.get_by_label("the twin").check()
    settle(page)
    assert "lead is −2.34: 11.96 less. Next word: kitchen" in page.locator(".ww-verdict").inner_text()


def test_exchanged_each_head_reads_the_other_room():
    for head, most in {"4.1": (11, 13), "4.2": (13, 3)}.items():
        reads = [STORED["readers"][how][head]["weights"] for how in ("as it is", "exchanged")]
        assert tuple(max(range(len(one)), key=one.__getitem__) for one in reads) == most
        assert STORED["readers"]["as it is"][head]["lead"] > 0 > STORED["readers"]["exchanged"][head]["lead"]


@pytest.mark.parametrize("how", STORED["readers"])
@pytest.mark.parametrize("reader", ["4.2", "4.1"])
def test_a_head_shows_what_it_reads_and_adds(page, reader, how):
    open_figures(page, WhoWrites(shows="words"))
    page.locator(".mm-choice label", has_text=reader).click()
    if how == "exchanged":
        page.get_by_label("exchange what 1.3 wrote at the two rooms").check()
    settle(page)
    of = STORED["readers"][how][reader]
    below = page.locator(".ww-word .ww-weight").all_inner_texts()
    assert below == [f"{weight:.2f}" if weight >= 0.05 else "" for weight in of["weights"][1:]]
    read = page.evaluate(READ)
    assert [numbers(one)[0] for one in read["values"]] == pytest.approx(of["writes"], abs=0.0051)
    assert numbers(read["lead"]) == pytest.approx([of["lead"]], abs=0.0051)
    assert numbers(page.locator(".ww-verdict").inner_text())[1] == pytest.approx(of["lead"], abs=0.0051)
    assert page.locator(".ww-ghost").first.is_visible() == (how == "exchanged")
    assert not page.locator(".ww-said").is_visible()
