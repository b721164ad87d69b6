"""Every color is legible where it is used, and means one thing."""

import re
from itertools import combinations

import pytest
from matplotlib.colors import to_rgb

from minimind_edu.web.palette import PALETTE, css_variables

PAPERS = ("bg", "panel", "soft")
WORDS = [name for name in PALETTE if name not in (*PAPERS, "line")]
PAGES = ("#ffffff", "#fdfbf7", "#1d1b19", "#111111")  # on which a picture with the middle colors may stand


def luminance(color: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return sum(c * weight for c, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one: str, other: str) -> float:
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", WORDS)
def test_words_are_legible_on_every_paper_of_both_themes(name):
    for paper in PAPERS:
        assert contrast(PALETTE[name].light, PALETTE[paper].light) >= 4.5
        assert contrast(PALETTE[name].dark, PALETTE[paper].dark) >= 4.5


@pytest.mark.parametrize("name", WORDS)
def test_drawings_stand_out_from_light_and_dark_pages(name):
    for page in PAGES:
        assert contrast(PALETTE[name].either, page) >= 3


def test_no_color_means_two_things():
    for one, other in combinations([name for name in PALETTE if name not in PAPERS], 2):
        assert PALETTE[one].light != PALETTE[other].light and PALETTE[one].either != PALETTE[other].either


def test_styles_have_every_color_for_both_themes():
    declared = dict(re.findall(r"--mm-([a-z]+): light-dark\((#\w{6}, #\w{6})\);", css_variables()))
    assert declared == {name: f"{color.light}, {color.dark}" for name, color in PALETTE.items()}
