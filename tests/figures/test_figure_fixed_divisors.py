"""FixedDivisors: each setting shows the run that was stored for it, bar by bar and in numbers."""

import itertools
import math

import pytest
from browser import open_figures, settle

from minimind_edu.figures import FixedDivisors
from minimind_edu.figures.fixed_divisors import OWN
from minimind_edu.trained.living.divisors import PERCENTILES, measured

MATH = "figures/fixed_divisors/math"
NAMES = ("percentile", "apart", "proportional", "networks_only", "twin")
SETTINGS = [*itertools.product((OWN, 10, 50, 60, 75, 90, 99), *[(False, True)] * 4)]

READ = """() => ({
    ends: [...document.querySelectorAll(".fd-ends b")].map((b) => b.textContent),
    verdict: document.querySelector(".fd-verdict")?.textContent,
    bars: [...document.querySelectorAll(".fd-bar")].map((bar) => Number(bar.style.transform.match(/[\\d.]+/)[0])),
    lines: [...document.querySelectorAll(".fd-line")].map(
        (line) => line.style.display === "none" ? null : Number(line.style.transform.match(/[\\d.]+/)[0])),
    gone: [...document.querySelectorAll(".fd-gone")].filter((path) => path.getAttribute("d")).length,
})"""


def height(size: float) -> float:
    return min(1.0, math.log(size / 0.1) / math.log(1e6))


def number(text: str) -> float:
    parts = text.replace(",", "").split()
    return float(parts[0]) * {"million": 1e6, "billion": 1e9}.get(parts[-1], 1)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: "-".join(map(str, setting)))
def test_python_and_the_page_take_the_same_run(node, setting):
    traits = dict(zip(NAMES, setting, strict=True))
    told = FixedDivisors(**traits).setting()
    found = node.call(MATH, "runOf", [measured(), traits])
    assert found["run"] == told
    own = measured()["twin" if traits["twin"] else "living"]["own"]
    for norm in range(8):
        is_fixed = traits["percentile"] and (norm in (1, 3, 5, 7) or not traits["networks_only"])
        expected = [told["first"][norm], told["others"][norm]]  # measured: the line lies on the bar
        if is_fixed:
            number = told["divisors"][norm]
            expected = [own["first"][norm] if traits["apart"] else number, number]
        assert [found["divisors"][who][norm] for who in ("first", "others")] == expected


def test_the_page_names_every_value_of_a_run(node):
    found = node.call(MATH, "unpacked", [FixedDivisors().stored])
    for name, model in measured().items():
        assert found[name]["own"] == model["own"]
        shown = [{field: row[field] for field in found[name]["rows"][0]} for row in model["rows"]]
        assert found[name]["rows"] == shown  # a switch is sent as 0 or 1
    assert found.keys() == measured().keys()


@pytest.mark.parametrize("setting", SETTINGS[:: len(SETTINGS) // 14], ids=str)
def test_each_combination_of_the_switches_shows_its_run(page, setting):
    """The lesson test: bars, lines and numbers are those of the stored run."""
    figure = FixedDivisors(**dict(zip(NAMES, setting, strict=True)))
    told = figure.setting()
    open_figures(page, figure)
    settle(page)
    read = page.evaluate(READ)
    ends = [number(text) for text in read["ends"]]
    assert ends[0] == pytest.approx(told["nats"], abs=0.0051)
    assert ends[1:] == pytest.approx([told["first"][-1], told["others"][-1]], rel=6e-3)
    bars = [height(size) for pair in zip(told["first"], told["others"], strict=True) for size in pair]
    assert read["bars"] == pytest.approx(bars, abs=1e-3)
    assert read["gone"] == sum(size > 1e5 for size in told["first"] + told["others"])
    assert len([at for at in read["lines"] if at is not None]) == 16
    percentile, apart, _, networks_only, _ = setting
    pairs = zip(read["lines"][4:16:2], read["lines"][5:16:2], strict=True)  # at norm 1 all sizes are alike
    before_attention, before_networks = (apart or percentile == OWN or only for only in (networks_only, False))
    assert [first != others for first, others in pairs] == [before_attention, before_networks] * 3


def test_a_slider_goes_from_the_own_size_through_every_percentile(page):
    open_figures(page, FixedDivisors())
    slider = page.locator(".mm-fig input[type=range]")
    said = []
    for place in range(len(PERCENTILES) + 1):
        slider.fill(str(place))
        settle(page)
        said.append(page.evaluate(READ)["ends"][0])
    own, *rows = said
    assert own == "0.01 nats"
    nats = [FixedDivisors(percentile=percentile).setting()["nats"] for percentile in PERCENTILES]
    assert [number(text) for text in rows] == pytest.approx(nats, abs=0.0051)


KINDS = {
    (OWN, False): "own",
    (50, False): "all",
    (60, False): "first",
    (99, False): "little",
    (10, True): "others",
    (50, True): "near",
}


@pytest.mark.parametrize(("setting", "kind"), KINDS.items())
def test_what_it_says_is_what_is_to_be_seen(node, setting, kind):
    percentile, apart = setting
    run, own = FixedDivisors(percentile=percentile, apart=apart).setting(), measured()["living"]["own"]
    assert node.call(MATH, "kindOf", [run, own, percentile == OWN]) == kind


def test_the_title_of_the_square_is_what_was_measured():
    """Squared, `<s>` runs away, whether attention is handed it or not; in proportion it does not."""
    for model in ("living", "twin"):
        own, rows = (measured()[model][part] for part in ("own", "rows"))
        held = [row["first"][-1] / own["first"][-1] for row in rows if row["proportional"]]
        assert max(held) < 11.5
        all_eight, networks = (
            FixedDivisors(percentile=50, networks_only=only, twin=model == "twin").setting() for only in (False, True)
        )
        assert min(run["first"][-1] for run in (all_eight, networks)) > 9 * own["first"][-1]
        assert networks["nats"] < 0.08 * all_eight["nats"]
    worst = max(row["first"][-1] for row in measured()["living"]["rows"])
    assert worst / measured()["living"]["own"]["first"][-1] > 1e9
