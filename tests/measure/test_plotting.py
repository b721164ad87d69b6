"""Pictures: numbers in, SVG out that has the book's colors, words that can be read, and a description."""

import inspect
import math
import re
from functools import cache
from xml.etree import ElementTree

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from cases import long_after
from IPython.core.formatters import DisplayFormatter
from matplotlib.colors import to_rgb

from minimind_edu import words
from minimind_edu.measure import plotting
from minimind_edu.measure.plotting import Picture
from minimind_edu.model.rope import precompute_freqs_cis
from minimind_edu.web.palette import PALETTE

ALT = "Some numbers, drawn for a test of the picture."
TABLE = torch.tensor([[1.0, -2.0], [0.5, 0.25]])
COS, _ = precompute_freqs_cis(16, 64, 10_000.0, dtype=torch.float64)
DEPTH = {
    "default": [1.0] + [0.02] * 100,
    "no bias": [0.4**n for n in range(101)],
    "large": [15.0**n for n in range(101)],
    "default, residual": [1.24**n for n in range(101)],
    "norm": [0.3] * 101,
}
WAVES = {"long": [math.cos(n / 3) for n in range(20)], "short": [2 * math.sin(n) for n in range(20)]}

DRAW = {
    "plot_lines": lambda alt=ALT: plotting.plot_lines(range(20), WAVES, "distance", "score", alt=alt),
    "plot_by_depth": lambda alt=ALT: plotting.plot_by_depth(DEPTH, "std of x", alt=alt, colors={"norm": "norm"}),
    "plot_vectors": lambda alt=ALT: plotting.plot_vectors(
        {"x": [1, -2, 0, 3], "norm": [0.5, -1, 0, 1.6]}, alt=alt, colors={"x": "stream"}
    ),
    "plot_cells": lambda alt=ALT: plotting.plot_cells({"two": ["x.", " x"]}, {".": "empty", "x": "held"}, alt=alt),
    "plot_tables": lambda alt=ALT: plotting.plot_tables(
        {"one": TABLE, "two": TABLE.T}, [["a", "coding"], ["coding", "a"]], alt=alt
    ),
    "plot_arrows": lambda alt=ALT: plotting.plot_arrows([(1.0, 0.0), (0.6, 0.8)], ["first", "second"], alt=alt),
    "plot_block": lambda alt=ALT: plotting.plot_block(
        [("input_layernorm", "attention", "v"), ("post_attention_layernorm", "feed-forward", "ffn")], alt=alt
    ),
    "plot_marked": lambda alt=ALT: plotting.plot_marked(
        range(20),
        WAVES["long"],
        "step",
        "loss",
        alt=alt,
        marks=[(3, True), (9, False)],
        others={"another": ([0, 9], [1, 0.5])},
        level=("a guess", 0.5),
    ),
    "plot_rope_table": lambda alt=ALT: plotting.plot_rope_table(COS, alt=alt),
}
# More of plot_lines: a logarithmic axis, large numbers, long names, names that cannot stand at the ends
LINES = {
    "logarithmic": lambda: plotting.plot_lines(
        [1, 10, 100, 1000], {"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]}, "tokens", "u", alt=ALT, log=True
    ),
    "small": lambda: plotting.plot_lines(
        [1e-6, 1e-3, 1], {"a": [0, 0.5, 1], "b": [0.1, 0.9, 1]}, "RMS of x", "RMS", alt=ALT, log=True
    ),
    "large numbers": lambda: plotting.plot_lines(
        [0, 16_384, 32_768],
        {"the weights": [49] * 3, **{f"K = {k}": [0, 32 * k, 64 * k] for k in (8, 4, 2, 1)}},
        "tokens in the cache",
        "MiB",
        alt=ALT,
    ),
    "long names": lambda: plotting.plot_lines(
        [0, 1], {"not divided": [0, 1], "divided by root of D": [0, 0.1]}, "D", "weight", alt=ALT
    ),
    "equal ends": lambda: plotting.plot_lines(
        [0, 1, 2], {"q = k": [0, 1, 1], "key made for distance 7": [1, 0, 1]}, "distance", "score", alt=ALT
    ),
}
EVERY = DRAW | LINES
every = pytest.mark.parametrize("name", EVERY)


@cache
def drawn(name: str) -> Picture:
    return EVERY[name]()


@cache
def written(name: str) -> str:
    """Its SVG; a picture writes it anew each time it is asked."""
    return drawn(name).svg


@cache
def another() -> str:
    """The SVG of a picture that is none of these."""
    return plotting.plot_arrows([], [], alt=ALT + " Another one.").svg


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def words_of(svg: str) -> list[str]:
    """Those of the picture as it is on a page; on a phone there may be fewer ticks."""
    return [element.text for element in without_twin(parsed(svg)).iter() if tag(element) == "text"]


def without_twin(root: ElementTree.Element) -> ElementTree.Element:
    root.remove(root.find("{*}svg"))
    return root


def luminance(color):
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


# The description


@pytest.mark.parametrize("name", DRAW)
def test_a_picture_without_a_description_is_not_drawn(name):
    parameter = inspect.signature(getattr(plotting, name)).parameters["alt"]
    assert (parameter.kind, parameter.default) == (parameter.KEYWORD_ONLY, parameter.empty)
    for alt in ("", "   ", "a plot", "a-picture-of-something-nice.png", None):
        with pytest.raises(ValueError, match="a picture needs a description of 20 characters"):
            DRAW[name](alt)


@every
def test_the_description_is_in_the_picture_and_names_it(name):
    root = parsed(written(name))
    title = root[0]
    assert (tag(title), title.text) == ("title", ALT)
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == title.get("id")


def test_a_description_may_hold_any_character_and_is_one_line():
    picture = DRAW["plot_lines"]('x < y & "z",\n   as long as it takes')
    assert parsed(picture.svg)[0].text == picture.alt == 'x < y & "z", as long as it takes'


def test_a_drawing_of_ones_own_becomes_a_picture():
    [ax] = plotting.new_axes()
    ax.plot([0, 1])
    ax.set(ylabel="height")
    picture = plotting.picture(ax, alt=ALT)
    assert picture.axes == [ax]
    assert "height" in words_of(picture.svg)
    with pytest.raises(ValueError, match="a picture needs a description"):
        plotting.picture(ax, alt="my.svg")


# In a notebook


def test_a_notebook_shows_svg_and_words_and_nothing_else():
    data, metadata = DisplayFormatter().format(drawn("plot_lines"))
    assert set(data) == {"image/svg+xml", "text/plain"}
    assert data["text/plain"] == f"Picture: {ALT}"
    assert not metadata


def test_a_picture_is_shown_once():
    """What pyplot does not know, the kernel does not show again at the end of the cell."""
    before = plt.get_fignums()
    for draw in DRAW.values():
        draw()
    assert plt.get_fignums() == before


# The SVG


@pytest.mark.parametrize("name", long_after(3, EVERY))
def test_the_same_numbers_give_the_same_bytes_whatever_the_reader_has_set(name):
    settings = {"font.size": 30, "font.family": ["serif"], "svg.fonttype": "path", "savefig.bbox": "tight"}
    with matplotlib.rc_context(settings):
        assert EVERY[name]().svg == written(name)
    assert drawn(name).svg == written(name)


@every
def test_a_picture_is_small_and_its_numbers_are_short(name):
    svg = written(name)
    assert len(svg) < (32_000 if name == "plot_rope_table" else 24_000)  # two pictures
    assert not re.search(r"\d\.\d{3}", svg)


@every
def test_a_picture_can_stand_in_a_page(name):
    """No style or script that reaches out of it, nothing from elsewhere, no id that another picture has."""
    svg = written(name)
    root = parsed(svg)
    assert svg.startswith("<svg ")
    used = {tag(element) for element in root.iter()}
    assert used <= {"svg", "title", "g", "path", "text", "defs", "clipPath", "rect", "use"}
    references = re.findall(r'(?:url\(#|href="#)([\w-]+)', svg)
    assert "href" not in re.sub(r'href="#', "", svg)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids)) and set(references) < set(ids) | {root[0].get("id")}
    assert all(id_.startswith(root[0].get("id")) for id_ in ids)
    assert another().count(ids[0]) == 0


@every
def test_every_color_is_one_of_the_palette_for_any_paper(name):
    svg = written(name)
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", svg)) <= {color.either for color in PALETTE.values()}
    assert not re.findall(r"(?:fill|stroke): (?!none|#)", svg)
    assert all(element.get("style", "").count("fill: #") for element in parsed(svg).iter() if tag(element) == "text")


@every
def test_words_are_words_in_the_pages_font_as_high_as_the_text_and_12_pixels_on_a_phone(name):
    root = parsed(written(name))
    narrow = root.find("{*}svg")
    assert [one.get("viewBox").split()[2] for one in (root, narrow)] == ["553.5", "330"]
    assert [one.get("width") for one in (root, narrow)] == ["738", "440"]  # px: letters of 12 units are 16 high
    assert {(one.get("font-size"), one.get("font-family")) for one in (root, narrow)} == {("12", "sans-serif")}
    assert "font" not in " ".join(element.get("style", "") for element in root.iter())
    assert words_of(written(name))


@every
def test_the_twin_for_phones_has_the_same_curves_and_is_not_displayed_by_itself(name):
    root = parsed(written(name))
    narrow = root.find("{*}svg")
    assert (narrow.get("class"), narrow.get("display")) == ("narrow", "none")
    assert re.search("<svg [^>]*class=.narrow.", written(name))  # so the book finds it
    without_twin(root)

    def drawn(one):
        return [element.get("style", "") for element in one.iter() if tag(element) == "path"]

    colors = [set(re.findall("#[0-9a-f]{6}", " ".join(drawn(one)))) for one in (root, narrow)]
    assert colors[0] == colors[1]


def test_a_larger_letter_stays_larger():
    [ax] = plotting.new_axes()
    ax.text(0, 0, "large", fontsize=20)
    texts = [element for element in parsed(plotting.picture(ax, alt=ALT).svg).iter() if element.text == "large"]
    assert ["font-size: 20px" in text.get("style") for text in texts] == [True, True]


@every
@pytest.mark.parametrize("width", [plotting.WIDTH, plotting.TEXT_WIDTH])
def test_no_word_lies_on_another_or_outside(name, width):
    picture = drawn(name)
    assert written(name), "words are said before they are laid out"
    picture.lay_out(width)
    figure, boxes = picture.figure, []
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            boxes += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        legend = ax.get_legend()
        boxes += [ax.xaxis.label, ax.yaxis.label, ax.title, *ax.texts, *(legend.get_texts() if legend else [])]
    boxes = [(text.get_text(), text.get_window_extent()) for text in boxes if text.get_text()]
    for number, (word, box) in enumerate(boxes):
        assert box.x0 >= -0.5 and box.x1 <= width + 0.5, f"{word!r} leaves the picture"
        assert box.y0 >= -0.5 and box.y1 <= figure.bbox.height + 0.5, f"{word!r} leaves the picture"
        for other, beside in boxes[:number]:
            assert not box.padded(-0.8).overlaps(beside.padded(-0.8)), f"{word!r} lies on {other!r}"


# Colors


def test_a_curve_with_a_meaning_has_its_hue_and_the_others_have_none():
    styles = plotting.curve_styles(["a", "the stream", "b", "a norm"], {"the stream": "stream", "a norm": "norm"})
    colors = [style["color"] for style in styles.values()]
    assert colors == [plotting.INK, PALETTE["stream"].either, plotting.INK, PALETTE["norm"].either]


def test_curves_differ_in_more_than_color():
    for colors in ({}, {"c": "norm"}, {"a": "stream", "b": "norm", "c": "norm"}, {"a": "q", "b": "k"}):
        styles = plotting.curve_styles("abcdef", colors)
        for hue in {style["color"] for style in styles.values()}:
            alike = [style for style in styles.values() if style["color"] == hue]
            assert len({str(style["linestyle"]) for style in alike}) == len(alike)
        drawn = [style for name, style in styles.items() if name not in colors]
        assert len({str(style["linestyle"]) for style in drawn}) == len(drawn)
        assert all(style["linewidth"] < styles[name]["linewidth"] for style in drawn for name in colors)


@pytest.mark.parametrize("colors", [{"typo": "q"}, {"a": "orange"}, {"a": "plus"}, {"a": "good"}])
def test_only_curves_that_exist_have_a_hue_and_only_one_that_exists(colors):
    with pytest.raises(ValueError, match="none"):
        plotting.plot_lines([0, 1], {"a": [0, 1]}, "x", "y", alt=ALT, colors=colors)


def test_the_number_on_a_cell_can_be_read():
    """4.5 on the book's papers, and what the colors for any paper allow elsewhere."""

    def tinted(color, paper, alpha):
        return alpha * np.array(to_rgb(color)) + (1 - alpha) * np.array(to_rgb(paper))

    picture = drawn("plot_tables")
    [alpha] = {patch.get_alpha() for patch in picture.axes[0].patches} - {None}
    for sign in ("plus", "minus"):
        for theme in ("light", "dark"):
            ink, color, paper = (getattr(PALETTE[name], theme) for name in ("ink", sign, "bg"))
            assert contrast(ink, tinted(color, paper, alpha)) >= 4.5
            unknowing = contrast(PALETTE["ink"].either, tinted(PALETTE[sign].either, paper, alpha))
            assert unknowing >= 3


# Names and numbers


def test_a_table_may_name_its_columns_otherwise_than_its_rows():
    axes = plotting.plot_tables(
        {"one": TABLE}, [["row a", "row b"]], column_labels=["column a", "column b"], alt=ALT
    ).axes
    assert [label.get_text() for label in axes[0].get_xticklabels()] == ["column a", "column b"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["row a", "row b"]


def test_curves_are_named_where_they_end():
    picture = drawn("plot_lines")
    [ax] = picture.axes
    assert ax.get_legend() is None
    picture.figure.draw_without_rendering()
    for line in ax.lines:
        [name] = [text for text in ax.texts if text.get_text() == line.get_label()]
        end = ax.transData.transform((line.get_xdata()[-1], line.get_ydata()[-1]))
        box = name.get_window_extent()
        assert end[0] < box.x0 < end[0] + 12 and abs((box.y0 + box.y1) / 2 - end[1]) < 12
        assert name.get_color() == line.get_color()


def test_a_long_name_is_folded():
    [ax] = drawn("long names").axes
    assert "divided by\nroot of D" in [text.get_text() for text in ax.texts]


def test_curves_that_end_together_are_named_above():
    [ax] = drawn("equal ends").axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["q = k", "key made for distance 7"]


def test_a_curve_that_leaves_is_named_where_it_leaves():
    picture = drawn("plot_by_depth")
    [ax] = picture.axes
    picture.lay_out(plotting.WIDTH)
    box = ax.get_window_extent()
    names = {text.get_text().replace("\n", " "): text.get_window_extent() for text in ax.texts}
    assert names["large"].x0 < 90 and box.y1 - 20 < names["large"].y1 < box.y1
    assert names["no bias"].x0 < 120 and box.y0 < names["no bias"].y0 < box.y0 + 20
    curve = ax.transData.transform([(n, y) for n, y in enumerate(DEPTH["default, residual"])])
    name = names["default, residual"]
    nearest = curve[(curve[:, 1] > name.y0) & (curve[:, 1] < name.y1)]
    assert name.x1 < nearest[:, 0].min()


def test_spread_moves_as_little_as_it_must():
    def moved(places, gaps):
        return plotting.spread(np.array(places, dtype=float), gaps).tolist()

    assert moved([0, 20, 40], [10, 10]) == [0, 20, 40]
    assert moved([0, 4, 40], [10, 10]) == [-3, 7, 40]
    assert moved([0, 0, 0], [10, 10]) == [-10, 0, 10]
    assert moved([], []) == []


@pytest.mark.parametrize(
    "name, numbers",
    [
        ("logarithmic", ["1", "10", "100", "1,000"]),
        ("small", ["10⁻⁶", "10⁻³", "10⁰"]),
        ("large numbers", ["0", "10,000", "20,000", "30,000"]),
    ],
)
def test_numbers_are_written_as_in_the_book(name, numbers):
    assert set(numbers) <= set(words_of(written(name)))


def test_minus_signs_are_minus_signs():
    for name in ("plot_lines", "plot_tables", "plot_vectors", "plot_rope_table"):
        words = words_of(written(name))
        assert any(word.startswith("−") for word in words) and not any(word.startswith("-") for word in words)


# The numbers that are drawn


def test_plot_lines_shows_the_numbers_it_was_given():
    curves = {"tensor": torch.tensor([1.0, 2.0, 4.0]), "list": [3, 2, 1]}
    [ax] = plotting.plot_lines(torch.tensor([1, 10, 100]), curves, "x", "y", alt=ALT, log=True).axes
    assert [line.get_xdata().tolist() for line in ax.lines] == [[1, 10, 100]] * 2
    assert [line.get_ydata().tolist() for line in ax.lines] == [[1, 2, 4], [3, 2, 1]]
    assert (ax.get_xscale(), ax.get_xlabel()) == ("log", "x")


def test_plot_by_depth_shows_the_numbers_it_was_given():
    curves = {"shrinking": [1, 0.1, 0.01], "growing": [1, 2, 4]}
    [ax] = plotting.plot_by_depth(curves, "std", alt=ALT, limits=(1e-4, 1e4)).axes
    assert (ax.get_yscale(), ax.get_ylim()) == ("log", (1e-4, 1e4))
    assert [line.get_label() for line in ax.lines] == ["shrinking", "growing"]
    assert ax.lines[0].get_ydata().tolist() == [1, 0.1, 0.01]
    assert ax.lines[0].get_xdata().tolist() == [0, 1, 2] and ax.get_xlabel() == "layer"


def test_plot_by_depth_counts_what_it_is_told_from_where_it_is_told():
    [ax] = plotting.plot_by_depth({"a": [1, 3]}, "size", alt=ALT, limits=(0.05, 500), xlabel="norm", first=1).axes
    assert ax.lines[0].get_xdata().tolist() == [1, 2] and ax.get_xlabel() == "norm"
    assert all(place == int(place) for place in ax.get_xticks())
    assert ax.get_yticks().tolist() == pytest.approx([0.1, 1, 10, 100])


def test_plot_vectors_puts_the_bars_of_a_channel_side_by_side():
    [ax] = drawn("plot_vectors").axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "3", "4"]  # as readers count
    bars = sorted(ax.patches, key=lambda bar: bar.get_x())
    assert [bar.get_height() for bar in bars] == [1, 0.5, -2, -1, 0, 0, 3, 1.6]
    edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars]
    assert all(right <= left for (_, right), (left, _) in zip(edges, edges[1:], strict=False))


def test_of_two_vectors_with_one_hue_the_first_is_hollow():
    colors = {"LayerNorm": "norm", "RMSNorm": "norm"}
    [ax] = plotting.plot_vectors({"LayerNorm": [1], "RMSNorm": [2]}, alt=ALT, colors=colors).axes
    assert [bar.get_facecolor()[3] for bar in ax.patches] == [0, 1]


def test_tables_write_every_entry_in_its_own_cell_above_a_bar_of_its_size():
    picture = drawn("plot_tables")
    for ax, table, labels in zip(picture.axes, (TABLE, TABLE.T), (["a", "coding"], ["coding", "a"]), strict=True):
        written = {text.get_position(): text.get_text() for text in ax.texts}
        # column first: x before y
        assert written == {(j, i - 0.08): f"{table[i, j]:.2f}".replace("-", "−") for i in range(2) for j in range(2)}
        bars = [bar for bar in ax.patches if bar.get_alpha() is None]
        widths = torch.tensor([bar.get_width() for bar in bars]).reshape(2, 2)
        torch.testing.assert_close(widths / widths.max(), table.abs() / table.abs().max())
        colors = [bar.get_facecolor()[:3] for bar in bars]
        assert colors == [to_rgb(plotting.PLUS if value > 0 else plotting.MINUS) for value in table.flatten()]
        assert [label.get_text() for label in ax.get_xticklabels()] == labels
        assert [label.get_text() for label in ax.get_yticklabels()] == labels


def test_tables_share_one_scale():
    picture = plotting.plot_tables({"large": TABLE, "small": TABLE / 10}, [["a", "b"]] * 2, alt=ALT)
    large, small = (max(bar.get_width() for bar in ax.patches if bar.get_alpha() is None) for ax in picture.axes)
    assert large == pytest.approx(10 * small)
    assert [label.get_text() for label in picture.axes[1].get_yticklabels()] == ["", ""]  # they stand at the first


def test_an_entry_that_is_written_as_zero_has_no_sign():
    [ax] = plotting.plot_tables({"only": [[-0.001, 1.0], [1.0, -0.0]]}, [["a", "b"]], alt=ALT).axes
    assert [text.get_text() for text in ax.texts] == ["0.00", "1.00", "1.00", "0.00"]
    assert plotting.MINUS not in plotting.picture(ax, alt=ALT).svg
    assert ax.get_title() == "only"


def test_arrows_begin_at_the_origin_and_are_named_at_their_tips():
    tips = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    [ax] = plotting.plot_arrows(tips, ["first", "second"], alt=ALT).axes
    drawn = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert [tuple(arrow.xy) for arrow in drawn] == [(1.0, 0.0), (0.0, 1.0)]
    assert [tuple(arrow.xyann) for arrow in drawn] == [(0, 0), (0, 0)]
    assert {"first", "second"} <= {text.get_text() for text in ax.texts}
    assert ax.get_aspect() == 1


def test_a_block_is_a_straight_line_with_branches_that_return_to_it():
    [ax] = plotting.plot_block([("norm", "attention", "v"), ("other norm", "feed-forward", "ffn")], alt=ALT).axes
    stream, *branches = [line for line in ax.lines if len(line.get_xdata()) > 1]
    assert list(stream.get_ydata()) == [0, 0]
    assert [line.get_color() for line in branches] == [PALETTE[hue].either for hue in ("v", "ffn")]
    assert all(line.get_xdata()[0] < line.get_xdata()[-1] <= stream.get_xdata()[1] for line in branches)


def test_a_rope_table_is_drawn_row_by_row_with_its_seam_in_the_middle():
    [ax] = drawn("plot_rope_table").axes
    shown = np.zeros(COS.shape)
    for patch in ax.patches:
        sign = 1 if patch.get_facecolor()[:3] == to_rgb(plotting.PLUS) else -1
        for corners in patch.get_path().vertices.reshape(-1, 4, 2):
            (left, top), (right, end) = corners.min(0) + 0.5, corners.max(0) + 0.5
            shown[int(top) : int(end), int(left) : int(right)] += sign * patch.get_alpha()
    assert abs(shown - COS.numpy()).max() <= 0.05 + 1e-9
    assert ax.get_ylim() == (63.5, -0.5)  # position 0 on top
    assert (7.5, 7.5) in [tuple(line.get_xdata()) for line in ax.lines]
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    assert [(at, label.get_text()) for at, label in ticks][:2] == [(0, "1"), (2, "3")], "channels count from 1"


def test_cells_are_as_many_as_letters_and_as_dark_as_their_kind():
    kinds = {".": "empty", "x": "held", "s": "shared"}
    maps = {"alone": ["xx..", " x"], "together": ["ss"]}
    shown = plotting.plot_cells(maps, kinds, alt="Cells of memory of two users, alone and together.")
    boxes = [(patch.get_fill(), patch.get_alpha()) for patch in shown.axes[0].patches if patch.get_linewidth() == 0]
    held = sum(row.count("x") for rows in maps.values() for row in rows) + 1  # one more in the legend
    assert sorted(alpha for _, alpha in boxes) == [0.5] * held + [1.0] * 3
    assert len(shown.axes[0].patches) == len(boxes) + len("xx..xss") + len(kinds)
    assert all(word in shown.svg for word in [*maps, *kinds.values()])


def test_a_picture_says_what_its_notebook_has_learned():
    """Axes, names at the ends, in legends, titles and at ticks, and the description; also what its reader adds."""
    try:
        words.learn({ALT: "画来做测试的一些数。", "distance": "距离", "score": "分数", "short": "短的", "two": "二"})
        lines = DRAW["plot_lines"]()
        lines.axes[0].text(0, 0, "two")
        assert repr(lines) == "Picture: 画来做测试的一些数。" and "<title" in lines.svg
        assert {"距离", "分数", "短的", "long", "二"} <= set(words_of(lines.svg))
        [ax] = plotting.new_axes()
        ax.set(title="distance", xticks=[0, 1], xticklabels=["one", "two"])
        ax.plot([0, 1], label="short")
        ax.legend()
        assert {"距离", "one", "二", "短的"} <= set(words_of(plotting.picture(ax, alt=ALT).svg))
    finally:
        words.learn({})
    assert {"distance", "score", "short"} <= set(words_of(DRAW["plot_lines"]().svg))
