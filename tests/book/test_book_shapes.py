"""The picture of the page on notation shows the numbers of the model: as many cells, where they belong, with names."""

import re

import pytest
import torch
from docutils import nodes
from docutils.utils import new_document
from minimind_book import shapes

from minimind_edu.figures.model_map import LAYER, STORY
from minimind_edu.trained.living import CONFIG
from minimind_edu.trained.living.steps import Step, last_token, sizes

SIZE = sizes(CONFIG, 7)


@pytest.fixture(scope="module")
def steps():
    return last_token(STORY, LAYER)


def boxes(drawn: str) -> list[tuple[int, int]]:
    """Where each frame begins, and how wide it is."""
    return [(int(at), int(width)) for at, width in re.findall(r'<rect x="(\d+)" width="(\d+)"', drawn)]


def test_every_step_has_a_name_and_a_hue_in_both_languages(steps):
    names = {step.name for step in steps}
    for words in shapes.WORDS.values():
        assert words.keys() == names | {"titles", "reads", "says"}
        assert {words[name][0] for name in names} == {"stream", "norm", "q", "k", "v", "ffn"}


def test_a_shape_is_told_in_letters_and_in_numbers_of_the_same_names():
    told = shapes.shape("BSHD", SIZE)
    assert re.sub("<.*?>", "", told) == "[B, S, H, D] [1, 1, 4, 32]"
    assert re.findall('data-sym="(.)"', told) == list("BSHDBSHD")


def test_a_key_head_begins_where_the_first_query_head_that_shares_it_does(steps):
    q, k, weights = (boxes(shapes.drawing(step, SIZE, "q")) for step in steps if step.name in ("q", "k", "weights"))
    assert len(q) == 4 and k == q[::2] and weights == q
    ends = [begin + width for begin, width in q]
    apart = [begin - end for end, (begin, _) in zip(ends, q[1:], strict=False)]
    assert apart[0] == apart[2] < apart[1]  # heads of one group stand closer
    assert ends[-1] == shapes.broadest(SIZE)


def test_a_cell_is_a_number_with_its_sign_and_its_strength():
    numbers = torch.zeros(1, 1, CONFIG.hidden_size)
    numbers[0, 0, 3], numbers[0, 0, 5], numbers[0, 0, 6] = 2.0, -2.0, -0.72
    drawn = shapes.drawing(Step("stream", "BSE", numbers), SIZE, "stream")
    inked = re.findall(r'fill="var\(--mm-(\w+)\)" fill-opacity="([\d.]+)" d="M(\d+) ', drawn)
    assert drawn.index("<rect") < drawn.index("<path")  # or the frame would hide them
    assert sorted(inked) == [("minus", "0.6", "6"), ("minus", "1", "5"), ("plus", "1", "3")]


def test_the_rows_of_a_cache_stand_below_each_other(steps):
    cache = next(step for step in steps if step.name == "cache")
    drawn = shapes.drawing(cache, SIZE, "k")
    heights = {int(y) // shapes.HEIGHTS[1] for y in re.findall(r"M\d+ (\d+)h", drawn)}
    assert heights == set(range(SIZE["T"])) and f'height="{SIZE["T"] * shapes.HEIGHTS[1]}"' in drawn


def test_what_a_row_says_of_itself_is_read_off_its_numbers(steps, monkeypatch):
    by_name = {step.name: step for step in steps}
    said = shapes.caption(by_name["weights"])
    word, percent, head = re.fullmatch(r"“(.+)” gets (\d+) % from head (\d)", said).groups()
    weights = by_name["weights"].numbers[0, int(head) - 1, 0]
    assert (
        f"{100 * weights.max():.0f}" == percent and STORY.split().index(word) == 4
    )  # the fourth word is "in the"'s end
    assert shapes.caption(by_name["logits"]) == "the largest is “hall”" and shapes.caption(by_name["q"]) == ""
    monkeypatch.setattr(shapes.chinese, "IS_CHINESE", True)
    assert shapes.caption(by_name["weights"]) == f"{head} 号头把 {percent}% 给了“{word}”"


def table(*classes: str) -> nodes.table:
    made = nodes.table("", classes=list(classes))
    made += (group := nodes.tgroup(cols=1))
    group += (body := nodes.tbody())
    body += nodes.row("", nodes.entry("", nodes.paragraph("", "", nodes.literal(text="B"))))
    return made


def test_only_the_letters_of_the_first_table_have_the_names_of_the_picture():
    document = new_document("page")
    document += [table("shapes"), table(), table()]
    app = type("App", (), {"env": type("Env", (), {"docname": shapes.PAGE})})
    shapes.name_letters(app, document)
    assert [one.get("sym") for one in document.findall(nodes.literal)] == [None, ' data-sym="B"', None]
