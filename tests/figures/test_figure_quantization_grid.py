"""QuantizationGrid: the page rounds as the package does, and its model says what torch's says."""

import base64
import re

import numpy as np
import pytest
import torch
from browser import ALIVE, open_figures, read_out, serve, settle, static_page, unfold
from cases import long_after

from minimind_edu import world
from minimind_edu.figures import QuantizationGrid, living_script
from minimind_edu.figures.quantization_grid import AFTER, GROUP, KINDS, MATRICES, PER, asked, exam, matrix_of, row_of
from minimind_edu.model.quantization import Grid, quantize, rounded, rounded_model
from minimind_edu.trained.living import WEIGHTS, living_model, written
from minimind_edu.web import host
from minimind_edu.web.living_model import payload

pytestmark = pytest.mark.usefixtures("forgetful")

MATH = "figures/quantization_grid/math"
GRIDS = [(bits, per) for bits in (8, 5, 4, 3, 2) for per in PER]
OTHER_STORY = "Zoe is in the barn. where is Zoe? in the"
CHIP = ".qg-answer"
# The bars as they are drawn: { word: [before, after] }, as parts of 1.
BARS = """() => Object.fromEntries([...document.querySelectorAll(".qg-bar")].map((bar) => [
    bar.querySelector(".mm-clipped").textContent,
    [...bar.querySelectorAll(".mm-track i")].map((one) => parseFloat(one.style.width) / 100),
]))"""
# The stored weights rounded: by name, and the logits of all words of a text.
UNPACK = """async (file) => {
    const live = await import("/web/live/model.js"), grid = await import("/figures/quantization_grid/math.js");
    Object.assign(globalThis, { live, grid, unpacked: live.unpackWeights(live.bytesOf(file)) });
}"""
RUN = """([ids, bits, per]) => {
    const tensors = grid.roundedTensors(unpacked.tensors, bits, per);
    const run = (tensors) => live.createLiveModel({ config: unpacked.config, tensors }).run(ids).traces;
    const [before, after] = [unpacked.tensors, tensors].map((all) => run(all).map((trace) => trace.logits));
    const weights = Object.fromEntries(Object.entries(tensors).map(([name, { data }]) => [name, data]));
    return { weights, logits: after, kl: grid.divergenceOf(before, after) };
}"""


def grid_of(bits, per):
    return Grid(bits, per=PER[per])


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.as_tensor(ids)[None]).logits[0]


def divergence(before, after):
    """Torch's own."""
    p, q = before.double().log_softmax(-1), after.double().log_softmax(-1)
    return (torch.nn.functional.kl_div(q, p, log_target=True, reduction="sum") / len(p)).item()


def chips(page):
    """The words that the model answers, and whether they are marked as right."""
    return page.eval_on_selector_all(CHIP, "all => all.map((one) => [one.textContent, one.dataset.right === 'true'])")


def handle_of(page):
    return page.locator(".qg-row .mm-handle")


@pytest.fixture(scope="module")
def live(node):
    """Node with the stored weights, unpacked."""
    node.evaluate(UNPACK, payload()["weights"])
    return node


@pytest.fixture
def figure(page):
    page.set_viewport_size({"width": 944, "height": 900})
    open_figures(page, QuantizationGrid())
    return page


# The page against the package


@pytest.mark.parametrize("bits, per", long_after(len(PER), reversed(GRIDS)))
def test_weights_logits_and_divergence_are_those_of_the_package(live, bits, per):
    question = asked()[5]
    found = live.evaluate(RUN, [question.prompt.tolist(), bits, per])
    model = living_model()
    changed = rounded_model(model, grid_of(bits, per))
    for name, weight in changed.named_parameters():
        if name in found["weights"]:
            assert torch.equal(torch.tensor(found["weights"][name]), weight.detach().flatten()), name
    assert len(found["weights"]) == len(list(model.parameters()))
    before, after = (logits_of(one, question.prompt) for one in (model, changed))
    page_after = torch.tensor(found["logits"])
    torch.testing.assert_close(page_after, after, rtol=1e-5, atol=1e-4)
    assert page_after[-1].argmax() == after[-1].argmax()
    assert found["kl"] == pytest.approx(divergence(before, after), abs=1e-5)


def test_halves_go_to_the_even_number_as_in_torch(node):
    numbers = [-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 2.4999, -2.6, 0.0, 7.0]
    found = node.each(MATH, "roundHalfEven", [[x] for x in numbers])
    assert found == torch.tensor(numbers).round().tolist()


@pytest.mark.parametrize("bits, per", GRIDS)
def test_the_row_of_the_picture_is_the_row_of_the_matrix(node, bits, per):
    for layer, matrix, row in ((2, "up_proj", 6), (4, "down_proj", 3), (1, "k_proj", 63)):
        stored, whole = row_of(layer, matrix, row), matrix_of(layer, matrix)
        options = {"bits": bits, "per": per, "others": stored["others"]}
        found = node.call(MATH, "roundedRow", [stored["values"], options])
        expected = rounded(whole, grid_of(bits, per))[row]
        torch.testing.assert_close(torch.tensor(found["rounded"]), expected, rtol=1e-6, atol=0)
        scales = quantize(whole, grid_of(bits, per)).scales
        own = scales[0] if per == "tensor" else scales[row]
        assert [span["scale"] for span in found["spans"]] == pytest.approx(own.tolist())
        errors = (expected - whole[row]).abs()
        assert found["error"] == pytest.approx(errors.max().item(), abs=1e-7)
        assert found["error"] <= found["half"] * (1 + 1e-5)
        assert found["zeros"] == int((expected == 0).sum())


def test_a_row_of_zeros_stays_zero(node):
    [found] = node.each(MATH, "roundedRow", [[[0] * 16, {"bits": 2, "per": "row", "others": 0}]])
    assert found["rounded"] == [0] * 16 and found["error"] == 0 and found["zeros"] == 16


# What is stored


def test_the_questions_are_answered_as_the_rounded_model_answers_each_alone():
    known, model = exam(), living_model()
    for bits, per in ((8, "row"), (4, "tensor"), (3, "row"), (3, "group"), (2, "group")):
        changed = rounded_model(model, grid_of(bits, per))
        stored = known["results"][per][str(bits)]
        befores, afters = [], []
        for at, (question, one) in enumerate(zip(asked(), known["questions"], strict=True)):
            before, after = (logits_of(which, question.prompt) for which in (model, changed))
            assert one["words"][stored["said"][at]] == world.WORDS[after[-1].argmax()]
            ids = [world.WORDS.index(word) for word in one["words"]]
            for told, logits in ((one["before"], before), (stored["after"][at], after)):
                assert told == pytest.approx((1000 * logits[-1].softmax(-1))[ids].tolist(), abs=0.51)
            befores.append(before)
            afters.append(after)
        assert stored["kl"] == pytest.approx(divergence(torch.cat(befores), torch.cat(afters)), abs=1e-2)


def test_of_the_words_that_are_told_the_answer_comes_first():
    known = exam()
    for at, one in enumerate(known["questions"]):
        assert one["words"][0] == one["answer"] and len(set(one["words"])) == len(one["words"])
        assert world.decode(asked()[at].prompt[1:]) == one["text"]
        assert one["before"][0] > 500, "the stored model answers all twelve"
    assert [one.kind for one in asked()] == [kind for kind in KINDS for _ in range(2)]


def test_what_the_notes_claim():
    """15 levels keep the answers, 3 lose them; 8 bits per row change nothing; shared scales fail sooner."""
    right = QuantizationGrid().right
    assert right("row", 4) == 12 and max(right(per, 2) for per in PER) < 6
    results = exam()["results"]
    assert results["row"]["8"]["kl"] == 0
    assert right("tensor", 3) < right("row", 3) < right("group", 3)
    for bits in range(3, 8):
        kl = [results[per][str(bits)]["kl"] for per in ("tensor", "row", "group")]
        assert kl[0] > kl[1] > kl[2]


def test_the_others_of_a_row_are_the_other_rows():
    whole = matrix_of(2, "up_proj")
    sizes = whole.abs().amax(1)
    largest, second = sizes.sort(descending=True).values[:2].tolist()
    assert row_of(2, "up_proj", int(sizes.argmax()))["others"] == second < largest
    assert row_of(2, "up_proj", int(sizes.argmin()))["others"] == largest
    assert row_of(2, "up_proj", 6)["rows"] == len(whole)


def test_sizes_are_bits_and_scales():
    model = living_model()
    weights = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    rows = sum(len(p) for p in model.parameters() if p.dim() == 2)
    sizes = {per: one["3"]["size"] for per, one in exam()["results"].items()}
    assert sizes["row"] == pytest.approx(3 + 32 * rows / weights, abs=1e-3)
    assert sizes["group"] == 3 + 32 / GROUP and sizes["tensor"] == pytest.approx(3 + 32 * 29 / weights, abs=1e-3)


def test_the_table_tells_every_number_of_bits():
    figure = QuantizationGrid(bits=3, per="tensor")
    sentence, rows = figure._summary()
    assert f"with 3 bits it answers {figure.right('tensor', 3)} of 12" in sentence and "per tensor" in sentence
    assert [label for label, _ in rows] == [f"{bits} bits" for bits in range(2, 9)]
    assert re.fullmatch(
        r"\d+ of 12 answers right, 0 of 200 stories hold, KL [\d.]+ nats, 3\.00 bits with scales",
        rows[1][1],
    )


def test_the_state_is_small():
    assert len(QuantizationGrid().static_html().encode()) < 15_000


def test_another_place_brings_its_row():
    figure = QuantizationGrid(row=100)
    figure.matrix = "k_proj"
    assert figure.row == 63 and figure.weights == row_of(2, "k_proj", 63)
    figure.layer = 1
    assert figure.weights["values"] == matrix_of(1, "k_proj")[63].tolist()
    assert QuantizationGrid(matrix="down_proj", row=3).weights == row_of(2, "down_proj", 3)


# The control


def test_bits_move_the_row_the_answers_and_the_numbers(figure):
    questions, results = exam()["questions"], exam()["results"]["row"]
    slider = figure.get_by_label("bits per weight")
    levels = []
    for bits in range(8, 1, -1):
        slider.fill(str(bits))
        assert slider.get_attribute("aria-valuetext") == f"{bits} bits, {2**bits - 1} levels"
        result = results[str(bits)]
        expected = [[one["words"][at], at == 0] for at, one in zip(result["said"], questions, strict=True)]
        assert chips(figure) == expected
        numbers = read_out(figure)
        assert numbers["bits with scales"] == f"{result['size']:.2f}"
        kl = numbers["KL per word, nats"]
        assert kl == "< 0.001" if result["kl"] < 5e-4 else float(kl) == pytest.approx(result["kl"], rel=0.06, abs=6e-4)
        levels.append(len(set(figure.locator(".qg-levels").get_attribute("d").replace("H", " ").split("M"))))
        verdict = figure.locator(".mm-verdict").inner_text()
        right = sum(is_right for _, is_right in expected)
        if bits == 8:
            assert verdict == "255 levels: as stored, no change."
        else:
            assert verdict.startswith(f"{2**bits - 1} levels: ")
            assert (f"{right} of 12" if right < 12 else "all 12 answers right") in verdict
    assert right == 1 and len(chips(figure)) == 12


def heights_of(page):
    """Pixels of the levels on which weights are, each once."""
    ticks = re.findall(r"M[\d.]+ ([\d.]+)H", page.locator(".qg-levels").get_attribute("d"))
    return sorted({float(tick) for tick in ticks})


def test_weights_are_on_the_lines_of_the_grid(figure):
    figure.get_by_label("bits per weight").fill("3")
    lines = re.findall(r"M[\d.]+ ([\d.]+)H", figure.locator(".qg-grid").get_attribute("d"))
    zero = re.findall(r"M[\d.]+ ([\d.]+)H", figure.locator(".qg-row .mm-axis").get_attribute("d"))
    assert set(heights_of(figure)) <= {float(one) for one in lines + zero}
    gaps = np.diff(heights_of(figure))
    assert gaps.min() > 10 and gaps == pytest.approx(np.round(gaps / gaps.min()) * gaps.min(), abs=0.3)


def test_the_error_is_told_with_half_a_step(figure):
    for bits in ("2", "4", "6"):
        figure.get_by_label("bits per weight").fill(bits)
        told = figure.locator(".qg-row text:not([class])").text_content()
        error, half = map(float, re.fullmatch(r"largest error ([\d.]+), half a step ([\d.]+)", told).groups())
        values = matrix_of(2, "up_proj")[[6]]
        scale = quantize(values, Grid(int(bits))).scales.item()
        assert half == pytest.approx(scale / 2, abs=6e-4) and 0 < error <= half
        assert figure.locator(".qg-step").text_content() == f"step {scale:.3f}"


def test_one_scale_for_more_weights_fails_sooner_and_for_fewer_later(figure):
    unfold(figure)
    figure.get_by_label("bits per weight").fill("3")
    wrong = {}
    for label, per in (("matrix", "tensor"), ("row", "row"), ("16 weights", "group")):
        figure.get_by_role("radio", name=label, exact=True).check()
        wrong[per] = [is_right for _, is_right in chips(figure)].count(False)
        assert figure.locator(".qg-grid").count() == (4 if per == "group" else 1)
    assert wrong["tensor"] > wrong["row"] > wrong["group"] == 0


# The weight that is pulled


def test_pulling_the_largest_weight_makes_the_step_coarser_for_its_row(figure):
    def step():
        return float(figure.locator(".qg-step").text_content().removeprefix("step "))

    before, chips_before = step(), chips(figure)
    box = handle_of(figure).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    figure.mouse.move(x, y)
    figure.mouse.down()
    figure.mouse.move(x + 5, y - 300, steps=4)  # beyond the end
    figure.mouse.up()
    assert handle_of(figure).get_attribute("aria-valuenow") == "1.7"
    assert step() == pytest.approx(1.7 * before, abs=2e-3)
    zeros = re.match(r"(\d+) of 64 become 0", figure.locator(".qg-hint").text_content())[1]
    assert int(zeros) > 15
    assert chips(figure) == chips_before, "the model keeps its own weights"
    handle_of(figure).focus()
    for _ in range(30):
        figure.keyboard.press("ArrowDown")
    assert handle_of(figure).get_attribute("aria-valuenow") == "0"
    rest = matrix_of(2, "up_proj")[6].abs().sort(descending=True).values
    assert step() == pytest.approx(rest[1].item() / 7, abs=1e-3), "the next one sets the scale"


def test_a_pulled_weight_spoils_its_own_group_alone(node):
    def steps(pull):
        values = [weight * (pull if at == 19 else 1) for at, weight in enumerate(row_of(2, "up_proj", 6)["values"])]
        return [one["scale"] for one in node.call(MATH, "roundedRow", [values, options])["spans"]]

    options = {"bits": 4, "per": "group", "others": 1}
    before, after = steps(1), steps(1.7)
    assert [b == a for b, a in zip(before, after, strict=True)] == [True, False, True, True]


def test_a_weight_with_a_minus_is_pulled_down(page):
    matrix = matrix_of(1, "q_proj")
    row = next(i for i, one in enumerate(matrix) if one.abs().max() == -one.min())
    page.set_viewport_size({"width": 944, "height": 900})
    open_figures(page, QuantizationGrid(layer=1, matrix="q_proj", row=row))
    handle_of(page).focus()
    page.keyboard.press("ArrowDown")
    assert float(handle_of(page).get_attribute("aria-valuenow")) > 1
    assert handle_of(page).get_attribute("aria-valuetext").startswith("−")


# The answers


def test_a_question_is_chosen_by_its_answer_and_shows_its_next_word(figure):
    known = exam()
    for at in (0, 7, 11):
        figure.locator(CHIP).nth(at).click()
        assert figure.locator(f"{CHIP}[aria-pressed=true]").count() == 1
        text = figure.locator(".qg-text").inner_text()
        assert known["questions"][at]["text"].endswith(text.strip().lstrip("…").strip())
        assert known["questions"][at]["text"] in figure.locator(".qg-more").text_content()
        for bits in ("8", "3", "2"):
            figure.get_by_label("bits per weight").fill(bits)
            bars = figure.evaluate(BARS)
            one, after = known["questions"][at], known["results"]["row"][bits]["after"][at]
            said = one["words"][known["results"]["row"][bits]["said"][at]]
            assert one["answer"] in bars and said in bars
            for word, before, now in zip(one["words"], one["before"], after, strict=True):
                assert word not in bars or bars[word] == pytest.approx([before / 1000, now / 1000])
            assert sum(now for _, now in bars.values()) == pytest.approx(1, abs=0.01)


def test_answers_are_one_tab_stop_with_arrow_keys(figure):
    assert figure.locator(f'{CHIP}[tabindex="0"]').count() == 1
    figure.locator(CHIP).nth(5).focus()
    figure.keyboard.press("ArrowRight")
    chosen = figure.locator(f"{CHIP}[aria-pressed=true]").get_attribute("aria-label")
    assert chosen == "the map is picked up by Mia in the: attic, right"
    assert figure.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"


def test_every_answer_says_what_was_asked_and_whether_it_is_right(page):
    open_figures(page, QuantizationGrid(bits=3))
    labels = page.eval_on_selector_all(CHIP, "all => all.map((one) => one.getAttribute('aria-label'))")
    wrong = [label for label in labels if "wrong: " in label]
    assert len(wrong) == 1 and wrong[0] == "who has the book?: Leo, wrong: Lily"


# The story


def story_of(page):
    """The beginning, what holds, the first impossible word and what follows it, as they are drawn."""
    return [page.locator(f".qg-{part}").all_inner_texts() for part in ("begun", "held", "wrong", "after")]


def written_story(per, bits, at):
    """The same, from the ids that are stored."""
    story = written.results()["living"][per][str(bits)]["stories"][at]
    wrong, begun = written.first_impossible(story), len(world.encode(written.BEGINNING))
    beginning, held = world.decode(story[1:begun]), world.decode(story[begun:wrong])
    if wrong is None:
        return [[beginning], [held], [], []]
    after = world.decode(story[wrong + 1 : wrong + 1 + AFTER])
    return [[beginning], [held] if held else [""], [world.WORDS[story[wrong]]], [after]]


def test_every_grid_shows_its_stories_and_how_many_hold(figure):
    unfold(figure)
    another = figure.get_by_role("button", name="another")
    for label, per in (("matrix", "tensor"), ("row", "row"), ("16 weights", "group")):
        figure.get_by_role("radio", name=label, exact=True).check()
        for bits in range(2, 9):
            figure.get_by_label("bits per weight").fill(str(bits))
            found = written.results()["living"][per][str(bits)]
            assert read_out(figure)["stories that hold"] == f"{found['holds']}/{written.STORIES}"
            for at in range(written.SHOWN):
                shown, expected = story_of(figure), written_story(per, bits, at)
                assert without_spaces(shown) == without_spaces(expected), (per, bits, at)
                another.click()


def without_spaces(parts):
    """Where a part ends, the page and Python do not agree whether a space follows."""
    return [["".join(text.split()) for text in texts] for texts in parts]


def test_an_impossible_word_says_that_it_is_one_and_a_story_that_holds_has_none(page):
    open_figures(page, QuantizationGrid(bits=3))
    assert page.locator(".qg-wrong").get_attribute("aria-label") == "在: cannot follow what is told"
    page.get_by_label("bits per weight").fill("4")
    assert page.locator(".qg-wrong").count() == 0


def test_an_answer_takes_the_place_of_the_story_until_it_is_pressed_again(figure):
    told, text = figure.locator(".qg-told"), figure.locator(".qg-text")
    assert told.is_visible() and not text.is_visible()
    figure.locator(CHIP).nth(3).click()
    assert text.is_visible() and not told.is_visible()
    figure.locator(CHIP).nth(3).click()
    assert told.is_visible() and not text.is_visible()
    assert figure.locator(f"{CHIP}[aria-pressed=true]").count() == 0


# The living model


def test_other_rows_come_with_the_living_model(figure):
    unfold(figure)
    figure.get_by_label("down_proj", exact=True).check()
    figure.get_by_role("radio", name="4", exact=True).check()
    figure.get_by_role("slider", name="row", exact=True).fill("3")
    figure.wait_for_function(
        "document.querySelector('.qg-row .mm-strong').textContent === 'layer 4, down_proj, row 4: 128 weights'"
    )
    scale = quantize(matrix_of(4, "down_proj")[[3]], Grid(4)).scales.item()
    assert figure.locator(".qg-step").text_content() == f"step {scale:.3f}"
    figure.get_by_role("radio", name="matrix", exact=True).check()
    scale = quantize(matrix_of(4, "down_proj"), Grid(4, per="tensor")).scales.item()
    assert figure.locator(".qg-step").text_content() == f"step {scale:.3f}"
    figure.get_by_label("k_proj", exact=True).check()
    figure.get_by_role("slider", name="row", exact=True).press("End")
    assert "k_proj, row 64: 64 weights" in figure.locator(".qg-row .mm-strong").text_content()


@pytest.mark.parametrize("bits, per", [(4, "row"), (3, "tensor"), (2, "group")])
def test_it_reads_the_readers_story(page, bits, per):
    open_figures(page, QuantizationGrid(bits=bits, per=per))
    page.evaluate(f"localStorage.setItem('minimind-story', {OTHER_STORY!r})")
    unfold(page)
    page.get_by_label("This story").check()
    page.wait_for_function("document.querySelector('.qg-text').textContent.includes('Zoe is in')")
    ids = world.encode(f"<s> {OTHER_STORY}")
    model = living_model()
    before, after = (logits_of(one, ids) for one in (model, rounded_model(model, grid_of(bits, per))))
    shown = read_out(page)
    assert float(shown["KL per word, nats"]) == pytest.approx(divergence(before, after), abs=0.006)
    for word, parts in page.evaluate(BARS).items():
        if word in world.WORDS:
            at = world.WORDS.index(word)
            assert parts == pytest.approx([one[-1].softmax(-1)[at].item() for one in (before, after)], abs=6e-5)
    first, second = (world.WORDS[one[-1].argmax()] for one in (before, after))
    said = f"still “{first}”" if first == second else f"“{second}”, not “{first}”"
    assert page.locator(".mm-verdict").inner_text() == f"{2**bits - 1} levels: {said}."
    assert page.locator(f"{CHIP}[aria-pressed=true]").count() == 0


def test_while_the_model_is_awaited_the_slider_stays_where_it_was_put(page):
    awaited = host.registration(host.LIVING, "\nexport default new Promise(() => {});")
    serve(page, static_page(QuantizationGrid()).replace(living_script(), awaited))
    page.wait_for_selector(ALIVE)
    unfold(page)
    slider = page.get_by_role("slider", name="row", exact=True)
    slider.fill("30")
    assert "on its way" in page.locator(".qg-more").text_content()
    assert "up_proj, row 7:" in page.locator(".qg-row .mm-strong").text_content()
    assert slider.input_value() == "30"


def test_without_the_script_the_row_stays_and_the_control_works(page):
    serve(page, static_page(QuantizationGrid()).replace(living_script(), ""))
    page.wait_for_selector(ALIVE)
    unfold(page)
    page.get_by_label("q_proj", exact=True).check()
    page.wait_for_function("document.querySelector('.qg-more').textContent.includes('not within reach')")
    assert "up_proj, row 7:" in page.locator(".qg-row .mm-strong").text_content()
    slider = page.get_by_role("slider", name="row", exact=True)
    slider.fill("30")
    assert slider.input_value() == "6", "it says which row is shown"
    page.get_by_label("bits per weight").fill("2")
    assert [is_right for _, is_right in chips(page)].count(True) == 1


def test_the_page_reads_the_same_file_as_python():
    assert payload()["weights"] == base64.b64encode(WEIGHTS.read_bytes()).decode()
    for matrix, name in MATRICES.items():
        assert name.endswith(matrix)


# Its size


@pytest.mark.parametrize("width", [928, 328])
def test_unfolded_nothing_moves_and_all_answers_are_in_the_window(page, width):
    page.set_viewport_size({"width": width + 16, "height": 900})
    open_figures(page, QuantizationGrid())
    unfold(page)
    heights = set()
    for label in ("matrix", "row", "16 weights"):
        page.get_by_role("radio", name=label, exact=True).check()
        for bits in range(2, 9):
            page.get_by_label("bits per weight").fill(str(bits))
            for _ in range(written.SHOWN):
                page.get_by_role("button", name="another").click()
                settle(page)
                heights.add(page.locator(".mm-fig").bounding_box()["height"])
    assert len(heights) == 1  # nothing moves while a hand is at the control
    page.eval_on_selector_all(".mm-more", "all => all.forEach((one) => (one.open = false))")
    for at in range(12):
        page.locator(CHIP).nth(at).click()
        settle(page)
    assert page.eval_on_selector_all(
        f"{CHIP}, .qg-row text", "all => all.every((one) => one.getBoundingClientRect().right <= innerWidth - 8)"
    )


def test_compact_few_bits_spoil_the_answers(page):
    open_figures(page, QuantizationGrid(compact=True))
    assert page.locator(".mm-fig :is(button, summary)").count() == 0
    page.get_by_label("bits per weight").fill("2")
    assert [is_right for _, is_right in chips(page)].count(False) == 11


def test_compact_it_writes_a_story_too(page):
    """The lesson's first sentence asks the reader to read what the model says."""
    figure = QuantizationGrid(compact=True, bits=8)
    open_figures(page, figure)
    assert page.locator(".qg-story").inner_text().startswith("Mia is in the hall.") and not marked(page)
    page.get_by_label("bits per weight").fill("3")
    letters, wrong = figure.stories["texts"][figure.stories["results"]["row"]["3"]["texts"][0]]
    assert marked(page) == [figure.stories["words"][ord(letters[wrong]) - ord("#")]]


def marked(page) -> list[str]:
    return page.locator(".qg-wrong").all_inner_texts()
