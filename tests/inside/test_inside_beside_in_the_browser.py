"""The page of two models in real browsers: from a file, without a network, and its numbers are torch's."""

import re

import pytest
import torch
from accessible import axe_problems
from axe_playwright_python.sync_playwright import Axe
from own_models import own_folder, own_model
from own_pages import TEXTS, settled, windows, write
from web_engines import Firefox, WebKit, start

from minimind_edu import save_checkpoint, world
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.heads import attention_weights
from minimind_edu.verdicts.same_model import passed
from minimind_edu.web.living_model import QUESTION, TOLD

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

TEXT = f"{TOLD} {QUESTION}"
ANSWERED = 40  # tokens


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """The page of the book's own model beside its twin in float32, and the models."""
    folder = tmp_path_factory.mktemp("twins")
    models = living_model(), living_model("twin")
    save_checkpoint(models[1], folder / "twin.safetensors")
    return write(folder, "--beside", folder / "twin.safetensors", "--bits", "32"), models


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The page of a model of bytes with a chat, beside one whose second block was trained further."""
    folder = tmp_path_factory.mktemp("tuned")
    model = own_folder(folder / "before")
    own_folder(folder / "after")
    with torch.no_grad():
        for weight in model.model.layers[1].parameters():
            weight += 0.2 * torch.sin(9 * weight)
    save_checkpoint(model, folder / "after/model.safetensors")
    return write(folder, folder / "before", "--beside", folder / "after", "--bits", "32", "--text", "我爱编程 today")


@pytest.fixture
def visit(browser):
    with windows(browser) as opened:
        yield opened


def answer(page):
    page.locator(".mm-primary").click()
    page.locator(".in-token[data-parts]").first.wait_for()
    settled(page)


def percents(text):
    return [float(one) for one in re.findall(r"[\d.]+(?=\s?%)", text.replace("\u00a0", " "))]


def chips(page, row):
    return page.locator(".bs-answer").nth(row).locator(".in-token").all_inner_texts()


def test_both_answers_are_torchs_and_the_token_by_which_they_part_is_marked(visit, twins):
    file, models = twins
    page = visit(file)
    assert page.locator(".bs-model strong").all_inner_texts() == ["the book's own model", "twin"]
    answer(page)
    begin = [0, *world.encode(TEXT)]
    ids = [one.generate(torch.tensor([begin]), ANSWERED, eos_token_id=None)[0].tolist() for one in models]
    written = [[world.WORDS[id].replace(" ", "·") for id in one[len(begin) :]] for one in ids]
    for row in (0, 1):
        assert chips(page, row) == written[row]
    at = next(at for at, (one, other) in enumerate(zip(*written, strict=True)) if one != other)
    marked = page.locator('.in-token[data-parts="true"]').all_inner_texts()
    assert marked == [written[0][at], written[1][at]]
    said = page.inner_text(".bs-parting")
    assert said == f"They part at token {at + 1}: A writes “{marked[0]}”, B writes “{marked[1]}”."
    selected = page.locator('.in-token[aria-current="true"]')
    assert selected.all_inner_texts() == [written[0][at - 1]], "the last token that both have written"
    assert page.inner_text(".bs-next .in-token >> nth=0") in {marked[0], marked[1]} | set(world.WORDS)


def test_bars_blocks_and_heads_are_as_torch_has_them(visit, twins):
    file, models = twins
    page = visit(file)
    ids = torch.tensor([[0, *world.encode(TEXT)]])
    ways = [passed(one, ids) for one in models]
    apart = [100 * float((x - y)[0, -1].norm() / x[0, -1].norm()) for x, y in zip(*ways, strict=True)][:-1]
    shown = [percents(one)[0] for one in page.locator(".bs-apart b").all_inner_texts()]
    assert shown == pytest.approx(apart, abs=0.51)
    maps = [attention_weights(one, ids) for one in models]
    moved = 100 * ((maps[0] - maps[1]).abs().sum(-1) / 2)[:, :, 1:].mean(-1).flatten()
    assert [float(one) for one in page.locator(".bs-head").all_inner_texts()] == pytest.approx(moved.tolist(), abs=0.51)
    order = moved.sort(descending=True).indices[:5].tolist()
    named = re.findall(r"head (\d) of block (\d)", page.inner_text(".bs-most"))
    assert named == [(str(at % 4 + 1), str(at // 4 + 1)) for at in order]
    chances = [way[-1][0, -1].softmax(-1) for way in ways]
    part = 50 * (chances[0] - chances[1]).abs().sum().item()
    assert percents(page.inner_text(".bs-bars + p"))[0] == pytest.approx(part, abs=0.51)
    for row in page.locator(".bs-next").all():
        id = world.WORDS.index(row.locator(".in-token").inner_text().replace("·", " "))
        for one, said in zip(chances, row.locator(".bs-numbers span").all_inner_texts(), strict=True):
            assert "<" in said or percents(said)[0] == pytest.approx(100 * one[id].item(), abs=0.51)
    assert "They part in the embedding" in page.inner_text(".bs-verdict")
    assert page.get_by_text("Streams that have nothing to do with each other").is_visible()


def test_a_token_of_either_answer_can_be_chosen_and_both_have_read_up_to_it(visit, twins):
    file, models = twins
    page = visit(file)
    answer(page)
    begin = [0, *world.encode(TEXT)]
    for row in (1, 0):
        button = page.locator(".bs-answer").nth(row).locator(".in-token").nth(9)
        button.click()
        settled(page)
        assert page.locator('.in-token[aria-current="true"]').count() == 1
        written = models[row].generate(torch.tensor([begin]), 10, eos_token_id=None)
        ways = [passed(one, written) for one in models]
        apart = [100 * float((x - y)[0, -1].norm() / x[0, -1].norm()) for x, y in zip(*ways, strict=True)][:-1]
        shown = [percents(one)[0] for one in page.locator(".bs-apart b").all_inner_texts()]
        assert shown == pytest.approx(apart, abs=0.51)
    page.keyboard.press("ArrowRight")
    assert button.get_attribute("aria-current") == "false"
    assert page.locator('.in-token[aria-current="true"]').evaluate("(one) => one === document.activeElement")


def test_the_block_by_which_they_part_follows_the_bound(visit, tuned):
    page = visit(tuned)
    page.get_by_role("switch", name="as a chat").uncheck()
    settled(page)
    assert page.inner_text(".bs-verdict").startswith("They part in block 2, by ")
    assert page.locator('.bs-block[data-parted="true"]').inner_text().startswith("block 2")
    values = page.locator(".bs-apart b").all_inner_texts()
    assert values[:2] == ["0\u00a0%", "0\u00a0%"] and percents(values[2])[0] > 1
    assert page.get_by_text("Streams that have nothing").is_hidden()
    slider = page.get_by_role("slider", name="parted from")
    assert percents(slider.get_attribute("aria-valuetext")) == [0.1]
    slider.fill("0.3")
    assert page.inner_text(".bs-verdict").startswith("They nowhere part by more than 200\u00a0%; the largest")
    assert page.locator('.bs-block[data-parted="true"]').count() == 0


def test_a_head_opens_with_what_it_reads_in_both_models(visit, twins):
    file, models = twins
    page = visit(file)
    page.locator(".bs-most .mm-link").first.click()
    page.locator(".bs-side li").first.wait_for()
    head, block = (int(one) - 1 for one in re.findall(r"head (\d) of block (\d)", page.inner_text(".bs-most"))[0])
    assert page.inner_text(".st-title") == f"Block {block + 1}, head {head + 1}"
    ids = torch.tensor([[0, *world.encode(TEXT)]])
    for one, side in zip(models, page.locator(".bs-side").all(), strict=True):
        expected = 100 * attention_weights(one, ids)[block, head, -1].max().item()
        assert percents(side.locator("li").first.inner_text())[0] == pytest.approx(expected, abs=1)
        dark = "(one) => new Set(one.getContext('2d').getImageData(0, 0, one.width, one.height).data).size"
        assert side.locator("canvas").evaluate(dark) > 20
        box = side.locator(".st-map").bounding_box()
        page.mouse.move(box["x"] + 110, box["y"] + 92)
        assert "read" in side.locator(".st-mapside .mm-note").inner_text(), "who reads whom, there"
    page.get_by_role("button", name="Close").click()
    page.locator(".st-open").wait_for(state="hidden")  # drawn with the next picture


def test_the_same_draws_give_the_same_and_another_seed_something_else(visit, twins):
    page = visit(twins[0])
    page.get_by_text("How a token is drawn").click()
    page.get_by_role("slider", name="temperature").fill("1")
    seed = page.get_by_role("slider", name="seed")
    texts = []
    for value in ("3", "8", "3"):
        seed.fill(value)
        answer(page)
        texts.append([chips(page, 0), chips(page, 1)])
    assert texts[0] == texts[2] != texts[1]


def test_models_of_other_widths_have_answers_and_chances_and_no_streams(visit, tmp_path):
    for name, changes in (("small", {}), ("wide", {"hidden_size": 64, "num_attention_heads": 8, "head_dim": 8})):
        save_checkpoint(own_model(**changes), tmp_path / f"{name}.safetensors")
    page = visit(write(tmp_path, tmp_path / "small.safetensors", "--beside", tmp_path / "wide.safetensors"))
    answer(page)
    assert "A’s stream has 32 channels and B’s 64" in page.inner_text(".bs-inside")
    assert "A has 4 heads in a block and B 8" in page.inner_text(".bs-inside")
    assert page.locator(".bs-beyond, .bs-verdict, .bs-head").count() == 0
    assert page.locator(".bs-next").count() == 8 and chips(page, 0) and chips(page, 1)


def test_what_cannot_be_read_is_said(visit, twins):
    page = visit(twins[0])
    before = page.locator(".bs-next").count()
    page.fill(".in-field", "Mia sings")
    page.locator(".in-complaint", has_text="is no word of this model").wait_for()
    assert page.locator(".bs-next").count() == before, "of the text before"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_fits_and_can_be_used_by_everybody(visit, twins, tuned, width, theme):
    for file in (twins[0], tuned):
        page = visit(file, width, theme)
        page.evaluate(Axe().axe_script)
        assert axe_problems(page) == []
        answer(page)
        page.get_by_text("How a token is drawn").click()
        page.locator(".bs-head").nth(5).click()
        page.locator(".bs-side li").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert axe_problems(page) == []


# What stays Latin on the Chinese page: names, units, and the words of the model's own world.
LATIN = {"MiniMind", "token", "logits", "PyTorch", "QK", "norm", "top", "k", "p", "s", "A", "B", "twin"}


@pytest.mark.parametrize("width", [1280, 360])
def test_it_speaks_chinese_in_every_part(visit, tmp_path, width):
    save_checkpoint(living_model("twin"), tmp_path / "twin.safetensors")
    page = visit(write(tmp_path, "--beside", tmp_path / "twin.safetensors", "--language", "zh"), width)
    answer(page)
    page.get_by_text("怎样抽取 token").click()
    page.locator(".bs-head").nth(2).click()
    page.locator(".bs-side li").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    told = page.evaluate(TEXTS)
    assert {word for text in told for word in re.findall(r"[A-Za-z]+", text)} <= LATIN | set(
        " ".join(world.WORDS).split()
    )


@pytest.mark.parametrize("kind", [Firefox, WebKit], ids=lambda kind: kind.name)
def test_other_engines_run_it_from_a_file(twins, kind):
    engine = start(kind)
    try:
        engine.open(twins[0].as_uri())
        engine.wait_until("/Checked|differs/.test([...document.querySelectorAll('.in-check')].at(-1)?.textContent)")
        said = engine.evaluate("return [...document.querySelectorAll('.in-check')].map((one) => one.textContent)")
        assert said == ["Checked: the same logits as PyTorch."] * 2
        engine.wait_until("document.querySelector('main').dataset.busy === 'false'")
        engine.evaluate("document.querySelector('.mm-primary').click()")
        engine.wait_until("/part at token/.test(document.querySelector('.bs-parting')?.textContent)")
        engine.wait_until("document.querySelector('main').dataset.busy === 'false'")
        engine.evaluate("document.querySelector('.bs-head').click()")
        engine.wait_until("document.querySelectorAll('.bs-side li').length > 2")
        assert engine.evaluate("return document.querySelectorAll('.bs-answer .in-token').length") == 2 * ANSWERED
    finally:
        engine.close()
