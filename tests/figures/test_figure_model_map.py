"""ModelMap: shapes and weights are the real model's, every part is in reach of all hands, and the camera lands."""

import math
from dataclasses import replace

import pytest
import torch
from browser import (
    ALIVE,
    FALLBACK,
    FIGURE,
    open_figures,
    serve,
    settle,
    sizes,
    static_page,
)
from torch import nn
from traitlets import TraitError

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, world
from minimind_edu.figures import ModelMap
from minimind_edu.figures.model_map import (
    LEVELS,
    NAMES,
    PARTS,
    SIDES,
    STORY,
    example_head,
    flows_of,
    level_of,
    strip_drawing,
    trained_head,
)
from minimind_edu.trained import living
from minimind_edu.trained.living.heads import attention_weights

SMALL = MiniMindConfig(
    vocab_size=48, hidden_size=24, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, head_dim=8,
    intermediate_size=40, moe_intermediate_size=20, max_position_embeddings=64,
)  # fmt: skip
CONFIGS = {
    "minimind2": MiniMindConfig(),
    "minimind3": MiniMindConfig.minimind3(),
    "small": SMALL,
    "untied": replace(SMALL, tie_word_embeddings=False),
    "experts": replace(SMALL, use_moe=True, use_qk_norm=True),
}
EVERY_CONFIG = pytest.mark.parametrize("name", CONFIGS)
LINKS = {part: {"href": f"{part}.html", "label": f"On {part}"} for part in PARTS if part not in ("ffn", "generation")}
PLACES = [(level, part) for level, name in enumerate(LEVELS) for part in ("", *SIDES[name])]
SHOWN = ".mp-scene:not([style*='none'])"


def numbers(shape: str) -> list[int]:
    """The sizes in a shape such as "[B, S, 8, 64]" that are no letters."""
    return [int(size) for size in shape.strip("[]").split(", ") if size.isdigit()]


def count(*modules: nn.Module) -> int:
    return sum(weight.numel() for module in modules for weight in module.parameters())


# The numbers, against models of the package


@EVERY_CONFIG
def test_weights_are_those_of_the_real_model(name):
    config, flows = CONFIGS[name], flows_of(CONFIGS[name])
    with torch.device("meta"):
        model = MiniMindForCausalLM(config)
        other = MiniMindForCausalLM(replace(config, use_moe=not config.use_moe))
    block = model.model.layers[0]
    mlps = {config.use_moe: block.mlp, not config.use_moe: other.model.layers[0].mlp}
    tied = model.lm_head.weight is model.model.embed_tokens.weight
    assert {part: flow.weights for part, flow in flows.items() if flow.weights} == {
        part: weights
        for part, weights in {
            "model": count(model),
            "embedding": count(model.model.embed_tokens),
            "norm": count(model.model.norm),
            "logits": 0 if tied else count(model.lm_head),
            "block": count(block),
            "attention": count(block.self_attn),
            "output": count(block.self_attn.o_proj),
            "ffn": count(mlps[False]),
            "experts": count(mlps[True]),
        }.items()
        if weights
    }


@pytest.mark.parametrize("name", ["small", "untied", "experts"])
def test_shapes_are_those_that_flow_through_the_real_model(name):
    config = CONFIGS[name]
    model, seen = MiniMindForCausalLM(config).eval(), {}

    def watch(part, module):
        def hook(_, inputs, output):
            output = output[0] if isinstance(output, tuple) else output
            seen[part] = list(inputs[0].shape), list(output.shape)

        module.register_forward_hook(hook)

    block = model.model.layers[0]
    watch("embedding", model.model.embed_tokens)
    watch("norm", model.model.norm)
    watch("logits", model.lm_head)
    watch("block", block)
    watch("attention", block.self_attn)
    watch("output", block.self_attn.o_proj)
    watch("experts" if config.use_moe else "ffn", block.mlp)
    B, S, T = 2, 3, 5
    past = model(torch.zeros(B, T - S, dtype=torch.long), use_cache=True).past_key_values
    out = model(torch.zeros(B, S, dtype=torch.long), use_cache=True, past_key_values=past)
    flows = flows_of(config)
    letters = {"B": B, "S": S, "T": T}

    def sizes(shape):
        return [letters.get(size) or int(size) for size in shape.strip("[]").split(", ")]

    for part, (inside, outside) in seen.items():
        first, last = sizes(flows[part].shapes[0]), sizes(flows[part].shapes[-1])
        assert math.prod(first) == math.prod(inside), part  # heads may be joined already
        assert last == outside, part
    assert sizes(flows["cache"].shapes[-1]) == list(out.past_key_values[0][0].shape)
    q, k, _ = block.self_attn.project(torch.zeros(B, S, config.hidden_size), *tables(model, S))
    assert sizes(flows["rope"].shapes[0]) == list(q.shape)
    assert sizes(flows["cache"].shapes[0]) == list(k.shape)
    assert sizes(flows["model"].shapes[-1]) == list(out.logits.shape)
    inner = block.mlp.experts[0] if config.use_moe else block.mlp
    middle = flows["experts" if config.use_moe else "ffn"].shapes[1]
    assert numbers(middle) == [inner.up_proj.out_features]


def tables(model, length):
    return model.model.freqs_cos[:length], model.model.freqs_sin[:length]


@pytest.mark.parametrize("name", [*CONFIGS, "living"])
def test_the_example_is_one_head_from_its_scores_to_its_products(name):
    config = CONFIGS.get(name, living.CONFIG)
    example, dim = trained_head() if name == "living" else example_head(config), config.head_dim
    row, column = example["reader"], example["read"]
    for scores, weights in zip(example["scores"], example["weights"], strict=True):
        assert torch.tensor(scores).softmax(0).tolist() == pytest.approx(weights)
    assert example["score"] == example["scores"][row][column] == pytest.approx(example["dot"] / dim**0.5)
    assert len(example["products"]) == dim // 2
    assert sum(example["products"]) == pytest.approx(example["dot"])
    pair_product = sum(a * b for a, b in zip(example["rotated_q"], example["rotated_k"], strict=True))
    assert example["products"][example["pair"]] == pytest.approx(pair_product)
    for vector, position in (("q", row), ("k", column)):
        before, after = complex(*example[vector]), complex(*example[f"rotated_{vector}"])
        turned = before * complex(math.cos(position * example["angle"]), math.sin(position * example["angle"]))
        assert abs(turned - after) < 1e-6 * abs(before)
    assert example["speeds"] == sorted(example["speeds"], reverse=True)


def test_the_head_of_the_front_page_is_the_trained_one_that_reads_the_answer():
    figure = ModelMap()
    example, (head, block) = figure.example, figure.sizes["trained"]
    weights = attention_weights(living.living_model(), torch.from_numpy(world.encode(STORY))[None])[block - 1, head - 1]
    for row, expected in zip(example["weights"], weights, strict=True):
        assert row == pytest.approx(expected[: len(row)].tolist(), abs=1e-5)
    last = example["weights"][example["reader"]]
    assert max(last) == last[example["read"]] > 0.8 and example["tokens"][example["read"]] == "hall"
    assert figure.flows["model"]["weights"] == living.card()["parameters"] == 203_072
    assert ModelMap(SMALL).sizes["trained"] == []


# Arguments


def test_a_level_has_a_number_and_a_name():
    assert [ModelMap(level=name).level for name in LEVELS] == [ModelMap(level=i).level for i in range(6)] == [*range(6)]
    for wrong in ("heads", 6, -1, 1.5):
        with pytest.raises(TraitError, match=r"level|0|5"):
            ModelMap(level=wrong)


def test_a_part_belongs_to_its_level_and_goes_with_it():
    figure = ModelMap(level="attention", part="cache")
    with pytest.raises(TraitError, match=r"part must be at level 2 \(attention\), got 'ffn'; there is rope, cache"):
        figure.part = "ffn"
    assert figure.part == "cache"
    figure.level = "head"
    assert figure.part == ""
    figure = ModelMap(level="model", part="norm")
    figure.level = "block"
    assert figure.part == "norm"


def test_links_are_of_parts_and_have_an_address_and_a_label():
    with pytest.raises(TraitError, match="links must be of parts of the model, got 'softmax'; there are model, block"):
        ModelMap(links={"softmax": {"href": "a", "label": "b"}})
    with pytest.raises(TraitError, match="the link of ffn must have href and label, got 'a.html'"):
        ModelMap(links={"ffn": "a.html"})


def test_every_part_has_a_name_a_level_and_a_flow():
    assert set(PARTS) == set(LEVELS) | {part for sides in SIDES.values() for part in sides}
    assert set(flows_of(MiniMindConfig())) == set(PARTS) == set(NAMES)
    assert [level_of(part) for part in ("pair", "cache", "norm", "stream", "embedding")] == [4, 2, 1, 1, 0]


def test_a_post_norm_model_is_refused_rather_than_drawn_wrong():
    with pytest.raises(ValueError, match="norm_placement='pre'.*got 'post'"):
        ModelMap(replace(SMALL, norm_placement="post"))


def test_without_scripts_a_table_lists_all_parts_with_their_chapters():
    html = ModelMap(MiniMindConfig(), links=LINKS)._fallback_html()
    assert '<th scope="row">KV cache</th><td>[B, S, 2, 64] → [B, T, 2, 64]</td>' in html
    assert html.count("<tr>") == len(PARTS)
    assert html.count('<a href="cache.html">On cache</a>') == 1
    assert html.count("<a ") == len(LINKS)


# Camera and address


def test_python_and_javascript_know_the_same_parts(node):
    levels, sides, names = node.evaluate(
        """async () => {
            const { MAP_LEVELS, MAP_SIDES } = await import("/figures/model_map/math.js");
            const { modelMapWords } = await import("/figures/model_map/words.js");
            return [MAP_LEVELS, MAP_SIDES, modelMapWords.en.names];
        }"""
    )
    assert tuple(levels) == LEVELS
    assert [tuple(each) for each in sides] == [SIDES[level] for level in LEVELS]
    assert names == NAMES


def test_the_camera_goes_from_the_whole_to_the_portal_and_grows_evenly(node):
    portal, size = {"x": 300, "y": 120, "w": 44, "h": 30}, (880, 410)
    places = node.each("figures/model_map/math", "cameraAt", [(i / 8, portal, *size) for i in range(9)])
    assert places[0]["outer"] == pytest.approx({"x": 0, "y": 0, "scale": 1})
    assert places[-1]["inner"] == pytest.approx({"x": 0, "y": 0, "scale": 1}, abs=1e-9)
    for name in ("outer", "inner"):
        scales = [place[name]["scale"] for place in places]
        growth = [b / a for a, b in zip(scales, scales[1:], strict=False)]
        assert growth == pytest.approx([growth[0]] * 8)
    for place in places:  # the middle of the portal is the middle of what is in it, all the way
        outer, inner = place["outer"], place["inner"]
        assert outer["x"] + 322 * outer["scale"] == pytest.approx(inner["x"] + 440 * inner["scale"])
        assert outer["y"] + 135 * outer["scale"] == pytest.approx(inner["y"] + 205 * inner["scale"])


def test_every_place_has_an_address_that_leads_there(node):
    hashes = node.each("figures/model_map/math", "hashOfPlace", PLACES)
    places = node.each("figures/model_map/math", "placeInHash", [[each] for each in hashes])
    for (level, part), hash_, place in zip(PLACES, hashes, places, strict=True):
        assert hash_ == f"#map/{part or LEVELS[level]}"
        assert place == {"level": level_of(part or LEVELS[level]), "part": part}
    for other in ("", "#", "#map/", "#map/heads", "#where-to-start", "map/block"):
        assert node.call("figures/model_map/math", "placeInHash", [other]) is None


# In the browser


@pytest.fixture(scope="module")
def touched(browser):
    """A page that a finger can touch, where nothing moves by itself."""
    context = browser.new_context(has_touch=True, reduced_motion="reduce", viewport={"width": 944, "height": 900})
    yield context.new_page()
    context.close()


def wide(page, width: int = 928) -> None:
    page.set_viewport_size({"width": width + 16, "height": 900})


def level_of_page(page) -> str:
    return page.locator(SHOWN).get_attribute("data-level")


def part(page, name: str):
    return page.locator(f"{SHOWN} [data-part={name}]").first


def middle_of(page, name: str) -> tuple[float, float]:
    """Where a finger would press a part."""
    box = part(page, name).locator(".mp-hit").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def text_of(page) -> str:
    return " ".join(page.locator(".mp-shown, .mp-link").all_inner_texts())


def test_a_part_whose_weights_are_elsewhere_is_not_said_to_learn_nothing(touched):
    """A head's are in the matrices of its block, tied logits' in the embedding; rotating and masking have none."""
    wide(touched)
    for config, level, part, told in [
        (SMALL, "head", "", "its weights are in q, k, v"),
        (SMALL, "head", "scores", "nothing learned"),
        (SMALL, "model", "logits", "its weights are in the embedding"),
        (CONFIGS["untied"], "model", "logits", "1,152 weights"),
    ]:
        open_figures(touched, ModelMap(config, level=LEVELS.index(level), part=part))
        assert told in text_of(touched)


@pytest.mark.parametrize("way", ["mouse", "Enter", " ", "touch"])
def test_every_portal_leads_one_level_deeper(touched, way):
    page = touched
    wide(page)
    open_figures(page, ModelMap(links=LINKS))
    for before, after in zip(LEVELS, LEVELS[1:], strict=False):
        assert level_of_page(page) == before
        portal = part(page, after)
        if way == "mouse":
            portal.click()
        elif way == "touch":
            portal.tap()
        else:
            portal.press(way)
            focus = page.evaluate("document.activeElement.closest('.mp-drawing') !== null")
            assert focus, "the keyboard stays in the picture"
        assert level_of_page(page) == after
        assert NAMES[after] in text_of(page)


@pytest.fixture(scope="module")
def at_level(touched, request):
    """The page with the map at one level, and the level; tests leave both as they found them."""
    wide(touched)
    open_figures(touched, ModelMap(level=request.param, links=LINKS))
    return touched, request.param


@pytest.mark.parametrize("way", ["mouse", "Enter", " ", "touch"])
@pytest.mark.parametrize("at_level, name", [place for place in PLACES if place[1]], indirect=["at_level"])
def test_every_side_branch_says_what_it_is_and_leads_to_its_chapter(at_level, name, way):
    page, level = at_level
    flow = flows_of(living.CONFIG)[name]
    target = part(page, name)
    if way == "mouse":
        page.mouse.click(*middle_of(page, name))
    elif way == "touch":
        page.touchscreen.tap(*middle_of(page, name))
    else:
        target.press(way)
    assert target.get_attribute("aria-pressed") == "true"
    text = text_of(page)
    assert NAMES[name] in text
    assert " → ".join(flow.shapes) in text
    assert (f"{flow.weights:,} weights" in text) == bool(flow.weights)
    link = page.locator(".mp-link a")
    if name in LINKS:
        assert link.get_attribute("href") == LINKS[name]["href"]
    else:
        assert link.count() == 0
        assert "to come" in text
    target.press("Enter")  # once more: the level itself again
    assert target.get_attribute("aria-pressed") == "false"
    assert NAMES[LEVELS[level]] in text_of(page)


def test_steps_buttons_and_keys_zoom_both_ways(touched):
    page = touched
    wide(page)
    open_figures(page, ModelMap())
    zoom_in, zoom_out = (page.get_by_role("button", name=name, exact=True) for name in ("Zoom in", "Zoom out"))
    assert zoom_out.is_disabled()
    zoom_in.click()
    assert level_of_page(page) == "block"
    for key, level in [("+", "attention"), ("=", "head"), ("-", "attention"), ("Escape", "block"), ("+", "attention")]:
        page.keyboard.press(key)
        assert level_of_page(page) == level, key
    page.get_by_role("button", name="Dot product", exact=True).click()
    assert level_of_page(page) == "product"
    assert zoom_in.is_disabled()
    assert page.locator('.mp-step[aria-current="step"]').inner_text() == "Dot product"
    page.keyboard.press("+")
    assert level_of_page(page) == "product"
    zoom_out.click()
    assert level_of_page(page) == "pair"
    page.get_by_role("button", name="Model", exact=True).click()
    page.keyboard.press("Control++")
    assert level_of_page(page) == "model"


def test_arrow_keys_go_around_the_parts_of_a_level(touched):
    page = touched
    open_figures(page, ModelMap(level="block"))
    names = page.locator(f"{SHOWN} .mp-part").evaluate_all("all => all.map((one) => one.dataset.part)")
    page.locator(f"{SHOWN} .mp-part").first.focus()
    visited = []
    for _ in names:
        page.keyboard.press("ArrowRight")
        visited.append(page.evaluate("document.activeElement.dataset.part"))
    assert visited == [*names[1:], names[0]]
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.dataset.part") == names[-1]


def test_the_camera_flies_cuts_when_motion_is_not_wanted_and_can_be_turned_around(browser):
    context = browser.new_context(viewport={"width": 944, "height": 900})
    page = context.new_page()
    open_figures(page, ModelMap())
    page.clock.install(time=0)
    page.clock.pause_at(60)
    part(page, "block").click()
    page.clock.run_for(300)
    assert page.locator(".mp-scene:not([style*='none'])").count() == 2
    page.keyboard.press("Escape")  # on the way
    page.clock.run_for(3000)
    assert level_of_page(page) == "model" and page.locator(".mp-flying").count() == 0
    part(page, "block").click()
    page.clock.run_for(3000)
    assert page.locator("[data-level='model']").is_hidden() and page.locator(".mp-flying").count() == 0
    assert level_of_page(page) == "block"
    assert page.locator(SHOWN).get_attribute("transform") == "translate(0 0) scale(1)"
    context.close()


# How far to the right the scene of the block is in the first frame that shows it: read in that frame, for it flies.
FIRST_PLACE = """async (pressed) => {
    document.querySelector(pressed).dispatchEvent(new MouseEvent("click", { bubbles: true }));
    const scene = document.querySelector("[data-level=block]");
    while (scene.style.display !== "") await new Promise(requestAnimationFrame);
    return Number(scene.getAttribute("transform").match(/translate\\(([^ ,]+)/)[1]);
}"""


def test_the_block_that_is_pressed_is_the_one_that_opens(browser):
    context = browser.new_context(viewport={"width": 944, "height": 900})
    page = context.new_page()
    starts = []
    for block in (0, 3):
        open_figures(page, ModelMap())
        starts.append(page.evaluate(FIRST_PLACE, f"[data-block='{block}']"))
        page.wait_for_function("!document.querySelector('.mp-flying')")
    assert starts[0] < starts[1] - 100
    context.close()


def test_you_are_here_is_marked_on_every_level_that_leads_there(touched):
    page = touched
    for level, marked in [("model", "block"), ("block", "attention"), ("attention", "cache"), ("head", None)]:
        open_figures(page, ModelMap(level=level, here="cache"))
        here = page.locator(f"{SHOWN} .mp-here").evaluate_all("all => all.map((one) => one.dataset.part)")
        assert here == ([marked] if marked else [])
        if marked:
            assert "(you are here)" in part(page, marked).get_attribute("aria-label")
            assert part(page, marked).locator(".mp-pin").is_visible()
    open_figures(page, ModelMap(level="attention", here="cache"))
    assert "You are here" not in text_of(page)
    part(page, "cache").click()
    assert "You are here" in text_of(page)


def test_the_address_says_the_level_and_leads_to_it(touched):
    page = touched
    open_figures(page, ModelMap(in_url=True))
    assert "#" not in page.url
    part(page, "block").click()
    part(page, "attention").click()
    part(page, "cache").click()
    assert page.evaluate("location.hash") == "#map/cache"
    page.go_back()
    page.wait_for_url("**#map/attention")
    page.wait_for_function("!document.querySelector('[aria-pressed=true]')")
    page.go_back()
    page.wait_for_url("**#map/block")
    settle(page)
    assert level_of_page(page) == "block"
    page.go_back()
    settle(page)
    assert level_of_page(page) == "model"
    page.evaluate("location.hash = '#map/groups'")
    page.wait_for_selector("[data-part=groups][aria-pressed=true]")
    assert level_of_page(page) == "attention"
    page.evaluate("location.hash = '#map/nowhere'")
    settle(page)
    assert level_of_page(page) == "model"
    page.evaluate("location.hash = '#map/pair'")
    page.reload()
    page.wait_for_selector(ALIVE)
    assert level_of_page(page) == "pair"


def test_the_address_belongs_to_the_page_unless_it_is_given_to_the_map(touched):
    page = touched
    open_figures(page, ModelMap())
    page.evaluate("location.hash = '#map/pair'")
    settle(page)
    assert level_of_page(page) == "model"
    part(page, "block").click()
    assert page.url.endswith("#map/pair")


# For each figure: words that leave the drawing or lie on each other, and the smaller side of each part's own area.
LAID_OUT = """(maps) => maps.map((map) => {
    const stage = map.querySelector(".mp-drawing").getBoundingClientRect();
    const scene = ".mp-scene:not([style*='none'])";
    const boxes = [...map.querySelectorAll(`${scene} text`)]
        .map((text) => [text.textContent, text.getBoundingClientRect()]);
    const outside = boxes.filter(([, box]) => box.left < stage.left - 1 || box.right > stage.right + 1
        || box.top < stage.top - 1 || box.bottom > stage.bottom + 1);
    const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4;
    const pairs = boxes.flatMap(([one, a], i) =>
        boxes.slice(i + 1).filter(([, b]) => meet(a, b)).map(([other]) => [one, other]));
    const areas = [...map.querySelectorAll(`${scene} .mp-hit`)].map((area) => area.getBoundingClientRect());
    return {
        words: boxes.length,
        wrong: [...outside.map(([text]) => text), ...pairs],
        areas: areas.map(({ width, height }) => Math.min(width, height)),
    };
})"""


@pytest.mark.parametrize("config", ["minimind2", "minimind3", "experts"])
@pytest.mark.parametrize("width", [928, 700, 328])
def test_words_keep_apart_and_inside_and_parts_have_room_for_a_finger(touched, width, config):
    page = touched
    wide(page, width)
    open_figures(page, *(ModelMap(CONFIGS[config], level=level) for level in LEVELS))
    laid_out = page.eval_on_selector_all(FIGURE, LAID_OUT)
    for level, seen in zip(LEVELS, laid_out, strict=True):
        assert seen["words"] and seen["wrong"] == [], level
        assert all(side >= 24 for side in seen["areas"]) and bool(seen["areas"]) == (level != LEVELS[-1]), level


@pytest.mark.parametrize("width", [738, 328])
@pytest.mark.parametrize("scripts", [True, False])
def test_the_strip_of_a_chapter_is_one_line_with_and_without_scripts(browser, width, scripts):
    context = browser.new_context(java_script_enabled=scripts, viewport={"width": width + 16, "height": 600})
    page = context.new_page()
    figures = [ModelMap(compact=True, here=here, map_href="../book/index.html") for here in PARTS]
    if scripts:
        open_figures(page, *figures)
        assert page.locator(FALLBACK).count() == 0
    else:
        serve(page, static_page(*figures))
    strips = page.locator(".mp-strip")
    assert all(box["height"] <= 90 for box in sizes(strips))
    told = strips.evaluate_all(
        """all => all.map((strip) => ({
            lit: strip.querySelectorAll(".mp-mini.mp-lit").length,
            here: [...strip.querySelectorAll("[aria-current=location]")].map((one) => one.innerText),
            steps: [...strip.querySelectorAll("a")].map((one) => one.getAttribute("href")),
        }))"""
    )
    for here, strip in zip(PARTS, told, strict=True):
        assert strip["lit"] >= 1 and strip["here"] == [NAMES[here]], here
        levels = LEVELS[: level_of(here) + 1]
        way = levels if here in LEVELS else (*levels, here)
        assert strip["steps"] == [f"../book/index.html#map/{step}" for step in way]
    context.close()


def test_the_strip_lights_one_part_and_has_no_dead_links(page):
    lit = {part: strip_drawing(part).count("mp-lit") for part in PARTS}
    assert lit.pop("model") == 7
    assert set(lit.values()) == {1}
    assert strip_drawing("cache") == strip_drawing("pair") != strip_drawing("norm")
    open_figures(page, ModelMap(compact=True, here="cache"))
    assert page.locator(".mp-strip a").count() == 0
    assert page.locator(".mp-strip li").all_inner_texts() == ["Model", "Block", "Attention", "KV cache"]
