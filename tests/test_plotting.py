"""Pictures: numbers in, Axes out; transparent, legible, and never shown by the function itself."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from minimind_edu import plotting

WHITE, DARK_PAGE = "#ffffff", "#14181e"  # the pages of the book's two themes


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def luminance(color):
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


def picture(name):
    if name == "plot_by_depth":
        return plotting.plot_by_depth({"a": [1, 0.1, 0.01], "b": [1, 2, 4]}, "std")
    if name == "plot_vectors":
        return plotting.plot_vectors({"x": [1, -2, 0, 3], "norm": [0.5, -1, 0, 1.6]})
    return plotting.plot_lines([1, 10, 100], {"a": [1, 2, 3], "b": [3, 2, 1]}, "x", "y", log=True)


ALL = ["plot_by_depth", "plot_vectors", "plot_lines"]


@pytest.mark.parametrize("page", [WHITE, DARK_PAGE])
def test_ink_and_colors_stand_out_from_both_pages(page):
    for color in (plotting.INK, *plotting.COLORS):
        assert contrast(color, page) >= 3, (color, page)


def test_lines_differ_in_more_than_color():
    assert len(set(plotting.DASHES)) == len(plotting.COLORS)


@pytest.mark.parametrize("name", ALL)
def test_pictures_are_transparent_and_use_the_ink(name):
    ax = picture(name)
    assert ax.figure.patch.get_alpha() == 0
    assert ax.patch.get_alpha() == 0
    for text in [*ax.get_xticklabels(), ax.xaxis.label, ax.yaxis.label]:
        assert text.get_color() == plotting.INK


@pytest.mark.parametrize("name", ALL)
def test_text_is_at_least_12_pixels_on_a_phone(name):
    ax = picture(name)
    ax.figure.canvas.draw()
    pixels_per_point = 330 / 72 / ax.figure.get_figwidth()
    texts = [*ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()]
    assert min(text.get_fontsize() for text in texts) * pixels_per_point >= 11.4


@pytest.mark.parametrize("name", ALL)
def test_labels_are_ascii_or_mathematics(name):
    ax = picture(name)
    assert all(text.get_text().isascii() for text in [ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()])


def test_pictures_draw_into_axes_that_are_given():
    ax = plotting.new_axes()
    assert plotting.plot_lines([0, 1], {"a": [0, 1]}, "x", "y", ax=ax) is ax
    assert plotting.plot_vectors({"a": [0, 1]}, ax=ax) is ax
    assert plotting.plot_by_depth({"a": [1, 1]}, "std", ax=ax) is ax
    assert len(plt.get_fignums()) == 1


def test_plot_by_depth_shows_the_numbers_it_was_given():
    ax = plotting.plot_by_depth({"shrinking": [1, 0.1, 0.01], "growing": [1, 2, 4]}, "std", limits=(1e-4, 1e4))
    assert ax.get_yscale() == "log"
    assert ax.get_ylim() == (1e-4, 1e4)
    assert [line.get_label() for line in ax.lines] == ["shrinking", "growing"]
    assert ax.lines[0].get_ydata().tolist() == [1, 0.1, 0.01]


def test_plot_vectors_puts_the_bars_of_a_channel_side_by_side():
    ax = plotting.plot_vectors({"x": [1, -2, 0, 3], "norm": [0.5, -1, 0, 1.6]})
    bars = sorted(ax.patches, key=lambda bar: bar.get_x())
    assert [bar.get_height() for bar in bars] == [1, 0.5, -2, -1, 0, 0, 3, 1.6]
    edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]
    assert all(right <= left for (_, right), (left, _) in zip(edges, edges[1:], strict=False))


def test_plot_lines_can_be_logarithmic_in_x():
    assert plotting.plot_lines([1, 10], {"a": [0, 1]}, "x", "y", log=True).get_xscale() == "log"
    assert plotting.plot_lines([1, 10], {"a": [0, 1]}, "x", "y").get_xscale() == "linear"
