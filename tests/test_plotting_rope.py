"""Pictures of the chapter on RoPE: the numbers given are the numbers drawn."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from minimind_edu import plotting
from minimind_edu.rope import precompute_freqs_cis


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


TABLE = torch.tensor([[1.0, -2.0], [0.5, 0.25]])


def test_tables_write_every_entry_in_its_own_cell():
    axes = plotting.plot_tables({"one": TABLE, "two": TABLE.T}, [["a", "b"], ["c", "d"]])
    for ax, table, labels in zip(axes, (TABLE, TABLE.T), ("ab", "cd"), strict=True):
        written = {text.get_position(): text.get_text() for text in ax.texts}
        assert written == {(j, i): f"{table[i, j]:.2f}" for i in range(2) for j in range(2)}  # column first: x before y
        assert [label.get_text() for label in ax.get_xticklabels()] == list(labels)
        assert [label.get_text() for label in ax.get_yticklabels()] == list(labels)


def test_one_table_may_stand_alone():
    [ax] = plotting.plot_tables({"only": TABLE}, [["a", "b"]])
    assert (ax.get_title(), len(ax.texts)) == ("only", 4)


def test_tables_share_one_scale_that_is_the_same_above_and_below_zero():
    axes = plotting.plot_tables({"large": TABLE, "small": TABLE / 10}, [["a", "b"]] * 2)
    assert [ax.images[0].get_clim() for ax in axes] == [(-2.0, 2.0)] * 2


def test_the_text_on_a_table_can_be_read_on_all_of_its_colors():
    def luminance(color):
        rgb = np.array(to_rgb(color))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    ink = luminance(plotting._ON_TABLE)
    for place in np.linspace(0, 1, 11):
        background = luminance(plotting._TWO_SIDED(place))
        assert (background + 0.05) / (ink + 0.05) >= 4.5


def test_arrows_start_at_the_origin_and_are_named_at_their_tips():
    tips = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    ax = plotting.plot_arrows(tips, ["first", "second"])
    drawn = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert [tuple(arrow.xy) for arrow in drawn] == [(1.0, 0.0), (0.0, 1.0)]
    assert [tuple(arrow.xyann) for arrow in drawn] == [(0, 0), (0, 0)]
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["first", "second"]
    assert ax.get_aspect() == 1


def test_a_rope_table_is_drawn_row_by_row_with_its_seam_in_the_middle():
    cos, _ = precompute_freqs_cis(8, 20, 100.0, dtype=torch.float64)
    ax = plotting.plot_rope_table(cos)
    np.testing.assert_array_equal(ax.images[0].get_array(), cos.numpy())
    assert [tuple(line.get_xdata()) for line in ax.lines] == [(3.5, 3.5)]


@pytest.mark.parametrize("draw", [lambda: plotting.plot_tables({"t": TABLE, "u": TABLE}, ["ab", "ab"])[0],
                                  lambda: plotting.plot_arrows([(1.0, 0.0)], ["a"]),
                                  lambda: plotting.plot_rope_table(TABLE)])  # fmt: skip
def test_pictures_are_transparent_and_use_the_ink(draw):
    ax = draw()
    assert ax.figure.patch.get_alpha() == 0
    assert ax.patch.get_alpha() == 0
    for text in [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label]:
        assert text.get_color() == plotting.INK
