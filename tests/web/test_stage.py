"""What the living page and the page of one's own show of a model in the same way; browsers try it on both pages."""

import pytest

COUNTS = {"final": [], "block": [4], "head": [4, 3]}
HEAD = {"part": "head", "layer": 1, "head": 2}


@pytest.mark.parametrize(
    "name, first, found",
    [
        (["head", "2", "3"], 1, HEAD),
        (["head", "1", "2"], 0, HEAD),
        (["block", "4"], 1, {"part": "block", "layer": 3}),
        (["block", "0"], 0, {"part": "block", "layer": 0}),
        (["final"], 1, {"part": "final"}),
    ],
)
def test_a_name_leads_to_its_part(node, name, first, found):
    part = node.call("web/stage/parts", "partNamed", [name, COUNTS, first])
    assert {key: value for key, value in part.items() if value is not None} == found


@pytest.mark.parametrize(
    "name",
    ["", "eye", "eye-1", "head", "head-1", "head-0-1", "head-5-1", "head-1-4", "head-1-x", "head-1-1-1", "block--1"]
    + ["final-1", "toString", "block-1e0", "block-99999", "block-"],
)
def test_what_is_no_part_of_the_model_is_none(node, name):
    assert node.call("web/stage/parts", "partNamed", [name.split("-"), COUNTS, 1]) is None


def test_parts_are_the_same_by_kind_and_numbers(node):
    others = [None, HEAD | {"part": "block"}, HEAD | {"layer": 0}, HEAD | {"head": 1}]
    same = [(HEAD, dict(HEAD)), (None, None), ({"part": "final"}, {"part": "final"})]
    assert (
        node.each("web/stage/parts", "isSamePart", [*same, *((HEAD, other) for other in others)])
        == [True] * 3 + [False] * 4
    )


def test_a_strip_of_more_numbers_than_cells_shows_the_largest_of_each(node):
    values = [0.0] * 1024
    values[5], values[6], values[7], values[1023] = 1.0, -3.0, 2.0, -0.5
    shown = node.evaluate("async (all) => [...(await import('/web/stage/strips.js')).fitting(all)]", values)
    assert len(shown) == 256 and (shown[1], shown[255]) == (-3, -0.5) and sum(map(abs, shown)) == 3.5
    assert node.call("web/stage/strips", "fitting", [[0.5, -1]]) == [0.5, -1]


def test_an_outline_is_longer_than_its_border(node):
    """What a bar was before something changed, as a part of its track."""
    outlines = node.each("web/stage/road", "outlineOf", [[one] for one in (0.5, 0.011, 0.01, 0, None)])
    assert outlines == [[0, 0.5], [0, 0.011], None, None, None]
