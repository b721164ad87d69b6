"""The font by which matplotlib measures Chinese: whole, of its own making, and as wide as every Chinese letter."""

import warnings

import matplotlib
import pytest
from matplotlib.figure import Figure

from minimind_edu.measure import plotting
from tools import wide_font


def test_the_stored_font_is_the_one_that_the_tool_makes():
    assert wide_font.TARGET.read_bytes() == wide_font.made() and len(wide_font.made()) < 1000


@pytest.mark.parametrize("text", ["注意力头", "查，询：", "（键）！", "\u3400\U00020000々〇"])
def test_a_picture_measures_each_letter_as_one_em_and_lacks_none(text):
    [ax] = plotting.new_axes()
    with matplotlib.rc_context(plotting._SETTINGS), warnings.catch_warnings():
        warnings.simplefilter("error")  # matplotlib warns of a letter that no font has
        written = ax.text(0, 0, text, fontsize=10)
        assert isinstance(ax.figure, Figure) and written.get_window_extent().width == pytest.approx(40, abs=1.5)
