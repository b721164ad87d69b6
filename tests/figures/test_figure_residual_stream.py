"""ResidualStream: its runs are the package's models, its picture adds up, and its claims hold at every setting."""

import itertools
import re
from dataclasses import replace
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from browser import open_figures, read_out, settle, unfold
from cases import long_after
from story_reader import read_story, show_story
from torch import nn
from traitlets import TraitError

from minimind_edu import MiniMindForCausalLM, world
from minimind_edu.figures import ResidualStream
from minimind_edu.figures import residual_stream as module
from minimind_edu.figures.residual_stream import DEPTHS, LOUDNESS, NETWORKS, PLACEMENTS, SEQUENCES
from minimind_edu.model.for_comparison import PlainFeedForward
from minimind_edu.model.norms import RMSNorm


def package_model(placement, depth=32, loudness=1.0, final_norm=True, network="swiglu") -> MiniMindForCausalLM:
    """The same weights in a model of the package, whose output projections really are that loud."""
    source = module.small_model(placement)
    config = source.config
    model = MiniMindForCausalLM(replace(config, num_hidden_layers=depth)).double().eval()
    weights = {k: v for k, v in source.state_dict().items() if k in model.state_dict()}
    model.load_state_dict(weights)
    with torch.no_grad():
        for i, layer in enumerate(model.model.layers):
            if network == "relu":
                plain = PlainFeedForward(config.hidden_size, config.intermediate_size).double()
                plain.up_proj.weight.copy_(layer.mlp.up_proj.weight)
                scale = module.small_model(placement, "relu").model.layers[i].mlp.scale
                plain.down_proj.weight.copy_(scale * layer.mlp.down_proj.weight)
                layer.mlp = plain
            layer.self_attn.o_proj.weight.mul_(loudness)
            layer.mlp.down_proj.weight.mul_(loudness)
            if placement == "none":
                layer.input_layernorm = layer.post_attention_layernorm = nn.Identity()
    if not final_norm:
        model.model.norm = nn.Identity()
    return model


def gradients_by_hooks(model) -> tuple[torch.Tensor, float, torch.Tensor]:
    """RMS of the gradient after each block, the loss and the logits, from the package's own forward."""
    ids, labels = module.text()
    streams = []
    for layer in model.model.layers:
        layer.register_forward_hook(lambda _, inputs, output: streams.append(output[0]))
    logits = model(ids).logits
    loss = F.cross_entropy(logits.transpose(1, 2), labels, reduction="none").sum()
    gradients = torch.autograd.grad(loss, streams)
    sizes = torch.stack([g.pow(2).mean().sqrt() for g in gradients])
    return sizes / sizes[-1], loss.item() / labels.numel(), logits.detach()


# The runs, against models of the package


@pytest.mark.parametrize(
    "placement, loudness, depth, final_norm, network",
    [
        ("pre", 1.0, 32, True, "swiglu"),
        ("pre", 8.0, 8, False, "swiglu"),
        ("post", 1.0, 16, True, "swiglu"),
        ("post", 4.0, 32, True, "swiglu"),
        ("post", 8.0, 16, True, "relu"),
        ("pre", 2.0, 8, False, "relu"),
        ("none", 0.5, 32, True, "swiglu"),
        ("none", 2.0, 4, False, "swiglu"),
    ],
)
def test_every_run_is_a_model_of_the_package(placement, loudness, depth, final_norm, network):
    figure = ResidualStream(placement=placement, loudness=loudness, depth=depth, final_norm=final_norm, network=network)
    run = figure.chosen(placement)
    model = package_model(placement, depth, loudness, final_norm, network)
    gradient, loss, logits = gradients_by_hooks(model)
    assert run["gradient"] == pytest.approx(gradient.tolist(), rel=6e-3)
    assert run["loss"] == pytest.approx(loss, rel=6e-3)
    assert run["spread"] == pytest.approx(logits.std().item(), rel=6e-3)


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_sizes_and_cosines_are_those_of_the_streams(placement):
    run, streams = module.run_forward(placement)
    start = streams[0][:SEQUENCES]
    for i, depth in itertools.product((0, 2), (1, 5)):
        stream = streams[depth][i * SEQUENCES : (i + 1) * SEQUENCES]
        size = stream.pow(2).mean().sqrt().item()
        assert size == pytest.approx(1.0 if placement == "post" else run.total[i, 2 * depth - 1].item(), rel=1e-4)
        cosine = F.cosine_similarity(stream, start, dim=-1).mean()
        assert run.cosine[i, depth].item() == pytest.approx(cosine.item())


def test_what_is_added_is_what_the_sublayers_say():
    run, streams = module.run_forward("pre")
    layer = module.small_model("pre").model.layers[0]
    x = streams[0][:SEQUENCES].detach()
    tables = tuple(table[: x.shape[1]] for table in model_tables())
    attended = layer.self_attn(layer.input_layernorm(x), tables)[0]
    fed = layer.mlp(layer.post_attention_layernorm(x + LOUDNESS[0] * attended))
    for half, added in enumerate((attended, fed)):
        expected = LOUDNESS[0] * added.pow(2).mean().sqrt()
        torch.testing.assert_close(run.added[0, half], expected)


def model_tables():
    core = module.small_model("pre").model
    return core.freqs_cos, core.freqs_sin


# What the chapter says of the figure


def ratio(placement, loudness, depth=32):
    return ResidualStream(depth=depth, loudness=loudness).chosen(placement)["gradient"][0]


def test_pre_norm_spreads_the_gradient_alike_at_every_loudness():
    ratios = [ratio("pre", loudness) for loudness in LOUDNESS]
    assert max(ratios) / min(ratios) < 1.06


def test_post_norm_is_even_when_quiet_and_grows_with_depth_when_loud():
    assert ratio("post", 0.25) < 1.05
    loud = [ratio("post", 8.0, depth) for depth in (8, 16, 32)]
    assert loud[2] > 1000
    assert loud[2] / loud[1] > 5 * loud[1] / loud[0] > 5


@pytest.mark.parametrize("seed", long_after(1, [0, 1, 2]))
def test_the_explosion_is_that_of_the_product(seed):
    """With three seeds: a relative change passes a product multiplied by the root of 2, all else by 1."""
    ends = {network: module.first_to_last(network, seed)[8.0] for network in ("swiglu", *module.INNER)}
    assert set(ends) > set(NETWORKS)
    for network, ratio_of_ends in ends.items():
        assert ratio_of_ends > 200 if network in ("swiglu", "bilinear") else ratio_of_ends < 10
    assert seed or ends["swiglu"] == pytest.approx(ratio("post", 8.0), rel=6e-3)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_explosion_is_as_strong_as_that_says(seed):
    added = module.run_forward("post", seed=seed)[0].added[:, 1::2].pow(2).mean(1)
    theory = ((1 + 2 * added) / (1 + added)).sqrt()
    for i, (loudness, measured) in enumerate(module.first_to_last("swiglu", seed).items()):
        if loudness >= 1:
            assert measured ** (1 / 31) == pytest.approx(theory[i].item(), abs=0.04)


@cache
def forward(placement):
    """The run of the gated network, which is compared with each of the others."""
    return module.run_forward(placement)[0]


@pytest.mark.parametrize("network", module.INNER)
def test_networks_add_equally_much(network):
    for placement in ("pre", "post"):
        gated, other = forward(placement), module.run_forward(placement, network)[0]
        torch.testing.assert_close(other.added[2, 1::2].mean(), gated.added[2, 1::2].mean(), rtol=0.2, atol=0)
    x = torch.randn(500, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    net = module.small_model("post", network).model.layers[3].mlp
    assert torch.equal(net(-x), -net(x)) == (network == "linear")
    assert torch.equal(net(-x), net(x)) == (network == "bilinear")


def test_without_norms_it_is_silence_or_overflow():
    quiet, loud = (ResidualStream(depth=32, loudness=loud).chosen("none") for loud in (0.25, 4))
    assert quiet["total"][-1] < 1.03 * ResidualStream().embedding
    assert loud["total"][-1] is None and loud["loss"] is None


def test_a_run_that_float16_could_not_hold_has_no_numbers():
    run = ResidualStream(depth=16, loudness=4.0).chosen("none")
    held = [size for size in run["total"] if size is not None]
    assert 0 < len(held) < 32 and max(held) <= torch.finfo(torch.float16).max == module.LARGEST
    assert run["gradient"] == [None] * 16
    assert run["loss"] is None and run["spread"] is None


def test_without_a_final_norm_a_loud_pre_norm_model_begins_far_worse_than_guessing():
    figure = ResidualStream(depth=16, loudness=8.0)
    assert figure.chosen("pre")["loss"] < 1.1 * figure.guess
    figure.final_norm = False
    assert figure.chosen("pre")["loss"] > 3 * figure.guess
    assert figure.chosen("post")["loss"] < 1.1 * figure.guess  # post-norm needs none


def test_a_block_that_is_not_there_is_told():
    with pytest.raises(TraitError, match="block must be from 0 to depth=4, got 5"):
        ResidualStream(depth=4, block=5)
    figure = ResidualStream(depth=4)
    with pytest.raises(TraitError, match="block must be from 0 to depth=4, got 5"):
        figure.block = 5
    assert figure.block == 4


def test_what_was_measured_cannot_be_set():
    with pytest.raises(TraitError, match="read-only"):
        ResidualStream().guess = 1.0


def test_the_numbers_depend_neither_on_the_notebooks_default_dtype_nor_on_whether_it_computes_gradients():
    expected = module.measurements("relu")
    module.measurements.cache_clear()
    module.small_model.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad():
            assert module.measurements("relu") == expected
    finally:
        torch.set_default_dtype(torch.float32)


def test_measuring_leaves_the_random_numbers_alone():
    module.small_model.cache_clear()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    module.small_model("pre")
    assert torch.equal(torch.rand(1), expected)


# The mathematics in JavaScript


def parts_by_origin(placement, loud, depth):
    """Every position's stream, taken apart exactly: the embedding's and each sublayer's share of its square."""
    model = module.small_model(placement)
    tables = tuple(table[: module.LENGTH] for table in model_tables())
    start = model.model.embed_tokens(module.text()[0])
    parts = [start]  # their sum is the stream
    for layer in model.model.layers[:depth]:
        for norm, function in module.sublayers(layer, tables):
            added, total, after = module.step(placement, norm, function, sum(parts), torch.tensor(loud))
            parts.append(added)
            if placement == "post":
                shrink = after.norm(dim=-1, keepdim=True) / total.norm(dim=-1, keepdim=True)
                parts = [part * shrink for part in parts]
    squares = torch.stack([part.pow(2).sum() for part in parts])
    return squares / squares.sum()


@pytest.mark.parametrize("placement, loudness", [("pre", 0.25), ("pre", 2.0), ("post", 2.0), ("none", 0.25)])
def test_shares_are_what_the_stream_is_made_of(node, placement, loudness):
    depth, i = 8, LOUDNESS.index(loudness)
    figure = ResidualStream()
    run = {name: values[i] for name, values in figure.forward_runs["swiglu"][placement].items()}
    args = [run["total"], placement, figure.embedding, depth]
    sizes = node.call("figures/residual_stream/math", "streamSizes", args)
    assert len(sizes) == 2 * depth + 1
    shares = node.call("figures/residual_stream/math", "streamShares", [run["added"], sizes, depth])
    for at in shares:
        assert sum(at) == pytest.approx(1)
    exact = parts_by_origin(placement, loudness, depth)
    assert shares[-1] == pytest.approx(exact.tolist(), abs=0.05)


def test_shares_of_four_additions_by_hand(node):
    args = [[1.0, 2.0, 2.0, 1.0], [1.0, 1.5, 2.0, 3.0, 3.0], 2]
    shares = node.call("figures/residual_stream/math", "streamShares", args)
    assert shares[0] == [1, 0, 0, 0, 0]
    assert shares[1] == pytest.approx([1 / 2, 1 / 2, 0, 0, 0])
    before, added = 1.5**2, 2.0**2
    third = [before / 2 / (before + added), before / 2 / (before + added), added / (before + added)]
    assert shares[2] == pytest.approx([*third, 0, 0])
    assert shares[3] == pytest.approx([*(share / 2 for share in third), 1 / 2, 0])
    assert shares[4] == pytest.approx([*(0.9 * share for share in shares[3][:4]), 0.1])  # less than what was there


def test_shares_by_kind_are_those_of_attention_and_of_the_feed_forward_networks(node):
    shares = [0.1, 0.2, 0.3, 0.15, 0.25]
    assert node.call("figures/residual_stream/math", "sharesByKind", [shares]) == pytest.approx([0.1, 0.35, 0.55])


def test_smooth_path_goes_through_every_point_and_never_beyond_them(node):
    points = [[0, 10], [10, 4], [20, 4], [25, 0], [60, 8]]
    text = node.call("figures/residual_stream/math", "smoothPath", [points])
    start, *curves = [[float(number) for number in part.split()] for part in text.split("M")[-1].split("C")]
    assert start == points[0]
    assert [curve[4:] for curve in curves] == points[1:]
    for (_, low), (_, high), curve in zip(points, points[1:], curves, strict=False):
        assert min(low, high) <= curve[1] <= max(low, high) and min(low, high) <= curve[3] <= max(low, high)
    for before, after in itertools.pairwise(curves):  # no kink: the same slope on both sides of a point
        (x, y), left, right = before[4:], before[2:4], after[:2]
        assert (y - left[1]) / (x - left[0]) == pytest.approx((right[1] - y) / (right[0] - x), abs=0.05)


def test_sizes_end_where_the_numbers_overflow(node):
    def sizes(placement, total):
        args = [total, placement, 0.5, 2]
        return node.call("figures/residual_stream/math", "streamSizes", args)

    assert sizes("pre", [1, 2, 3, 4, 9, 9]) == [0.5, 1, 2, 3, 4]
    assert sizes("none", [1, 2, None, None]) == [0.5, 1, 2]
    assert sizes("post", [1, 2, 3, 4]) == [0.5, 1, 1, 1, 1]


def test_shares_survive_sizes_whose_squares_overflow(node):
    args = [[1e200, 1e100], [1.0, 1e200, 1e200], 1]
    shares = node.call("figures/residual_stream/math", "streamShares", args)
    assert shares[2] == pytest.approx([0, 1, 0])


def test_a_word_that_was_read_is_the_sum_of_what_all_parts_added(node):
    reading = read_story()
    added = [part for block in reading.blocks for part in (block.attended, block.fed)]
    parts = torch.stack([reading.embedding, *added])[:, -1].double()  # [1 + 2L, E]
    streams = parts.cumsum(0)
    blocks = [
        dict(zip(("attended", "middle", "fed", "output"), vectors, strict=True))
        for vectors in zip(
            *(rows.tolist() for rows in (parts[1::2], streams[1::2], parts[2::2], streams[2::2])), strict=True
        )
    ]
    trace = {"embedding": parts[0].tolist(), "blocks": blocks}
    found = node.call("figures/residual_stream/math", "traceSizes", [trace])
    assert found["streams"] == streams.tolist()
    assert found["sizes"] == pytest.approx(streams.pow(2).mean(1).sqrt().tolist())
    assert found["added"] == pytest.approx(parts[1:].pow(2).mean(1).sqrt().tolist())
    for at, (stream, shares) in enumerate(zip(streams, found["shares"], strict=True)):
        expected = parts @ stream / stream.dot(stream)  # what each part has along the stream
        assert shares == pytest.approx([*expected[: at + 1].tolist(), *[0] * (len(parts) - 1 - at)])
        assert sum(shares) == pytest.approx(1)
    cosine = node.call("figures/residual_stream/math", "cosineOf", [streams[0].tolist(), streams[-1].tolist()])
    assert cosine == pytest.approx(F.cosine_similarity(streams[0], streams[-1], dim=0).item())


@pytest.mark.parametrize("size", [1e-3, 0.02, 1.0, 30.0])
def test_size_behind_a_pre_norm_is_the_packages(node, size):
    x = size * torch.tensor([1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
    expected = RMSNorm(4).double()(x).pow(2).mean().sqrt().item()
    seen = node.call("figures/residual_stream/math", "sizeSeen", [size, "pre"])
    assert seen == pytest.approx(expected, rel=1e-9)
    for placement in ("post", "none"):
        assert node.call("figures/residual_stream/math", "sizeSeen", [size, placement]) == size


# The figure in the browser


@pytest.fixture
def stream(page):
    page.set_viewport_size({"width": 800, "height": 1400})
    open_figures(page, ResidualStream(depth=16))
    unfold(page)
    return page


def number(page, label) -> str:
    [told] = [value for name, value in read_out(page).items() if label in name]
    return told


def percent(share) -> str:
    share *= 100
    return "< 0.1 %" if share < 0.1 else f"{share:.{1 if share < 9.95 else 0}f} %"


def test_the_first_picture_is_the_default_run(stream):
    assert number(stream, "stream after block 16") == "1.24"
    assert number(stream, "the next sublayer reads") == "1.00"
    assert stream.locator("path[data-sym=attn]").count() == stream.locator("path[data-sym=ffn]").count() == 16
    assert stream.locator("path[data-sym=embed]").count() == 1
    assert "grows to 1.24 in 16 blocks" in stream.locator(".mm-verdict").first.inner_text()
    assert stream.get_by_text("gradient: block 1 gets 3.26 times the last block's", exact=True).is_visible()


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_three_shares_are_those_of_the_runs(node, page, placement):
    figure = ResidualStream(depth=8, placement=placement, block=4)
    run = {name: values[LOUDNESS.index(1.0)] for name, values in figure.forward_runs["swiglu"][placement].items()}
    args = [run["total"], placement, figure.embedding, 8]
    sizes = node.call("figures/residual_stream/math", "streamSizes", args)
    shares = node.call("figures/residual_stream/math", "streamShares", [run["added"], sizes, 8])[8]
    open_figures(page, figure)
    told = {name: number(page, name) for name in ("embedding", "attention", "feed-forward")}
    expected = (shares[0], sum(shares[1::2]), sum(shares[2::2]))
    assert list(told.values()) == [percent(share) for share in expected]


# The loss, the sentence and the drawings' words at every stop of the two sliders, blocks outermost.
AT_EVERY_STOP = """() => {
    const [loudness, blocks] = document.querySelectorAll("input[type=range]");
    const slide = (input, stop) => {
        input.value = stop;
        input.dispatchEvent(new Event("input"));
    };
    const stops = (input) => Array.from({ length: Number(input.max) + 1 }, (_, stop) => stop);
    return stops(blocks).flatMap((i) => stops(loudness).map((k) => {
        slide(blocks, i);
        slide(loudness, k);
        const rows = [...document.querySelectorAll(".mm-more .mm-readout > div")];
        const row = rows.find((one) => one.textContent.startsWith("loss"));
        const words = [...document.querySelectorAll(".mm-stage svg text")].map((text) => text.textContent);
        const heights = [document.querySelector(".mm-fig").offsetHeight];
        const verdict = document.querySelector(".mm-verdict").textContent;
        return [row.querySelector("dd").textContent, verdict, words, heights];
    }));
}"""


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_every_setting_shows_its_own_run(stream, placement):
    names = {"pre": "pre-norm", "post": "post-norm", "none": "none"}
    stream.get_by_label(names[placement], exact=True).check()
    heights = set()
    for final_norm in (True, False):
        stream.get_by_role("switch").set_checked(final_norm)
        settings = list(itertools.product(DEPTHS, LOUDNESS))
        for (depth, loudness), shown in zip(settings, stream.evaluate(AT_EVERY_STOP), strict=True):
            loss, verdict, words, height = shown
            run = ResidualStream(depth=depth, loudness=loudness, final_norm=final_norm).chosen(placement)
            assert verdict
            heights.update(height)
            assert ("no gradient: the numbers overflowed" in words) == (run["gradient"][0] is None)
            if run["loss"] is None:
                assert loss == "overflow"
            else:
                assert float(loss.replace(",", "")) == pytest.approx(run["loss"], rel=6e-3)
    assert len(heights) == 1  # no sentence's length moves the controls


def test_another_network_takes_the_explosion_away(stream):
    stream.get_by_label("post-norm", exact=True).check()
    stream.get_by_label("blocks", exact=True).fill("4")
    stream.get_by_label("what the sublayers add").fill("5")
    told = {}
    for name, network in zip(("SwiGLU", "ReLU", "linear"), NETWORKS, strict=True):
        stream.get_by_label(name, exact=True).check()
        run = ResidualStream(depth=32, loudness=8.0, network=network).chosen("post")
        told[network] = float(re.search(r"gets ([\d.,]+) times", stream.content())[1].replace(",", ""))
        assert told[network] == pytest.approx(run["gradient"][0], rel=6e-3)
        added = (run["added"][-2] ** 2 + run["added"][-1] ** 2) ** 0.5
        assert float(number(stream, "block 32 adds")) == pytest.approx(added, rel=6e-3)
    assert told["swiglu"] > 1000 > 100 * told["relu"]


def test_the_line_goes_to_the_embedding_by_keys_and_its_numbers_follow(stream):
    handle = stream.get_by_role("slider", name="block to look at")
    handle.focus()
    for key in ["Shift+ArrowLeft"] * 3 + ["ArrowLeft"]:
        stream.keyboard.press(key)
    assert handle.get_attribute("aria-valuenow") == "0"
    assert handle.get_attribute("aria-valuetext") == "the embedding"
    assert number(stream, "the embedding, RMS").startswith("0.0")
    assert number(stream, "added so far") == "nothing"
    assert list(read_out(stream).values())[:3] == ["100 %", "< 0.1 %", "< 0.1 %"]
    stream.keyboard.press("ArrowRight")
    run = ResidualStream(depth=16).chosen("pre")
    added = (run["added"][0] ** 2 + run["added"][1] ** 2) ** 0.5
    assert float(number(stream, "block 1 adds")) == pytest.approx(added, rel=6e-3)
    assert float(number(stream, "gradient here")) == pytest.approx(run["gradient"][0], rel=6e-3)


def test_the_line_stays_inside_when_the_model_becomes_shallow(stream):
    stream.get_by_label("blocks", exact=True).fill("1")
    assert stream.get_by_role("slider", name="block to look at").get_attribute("aria-valuenow") == "4"
    stream.get_by_label("blocks", exact=True).fill("4")
    assert stream.get_by_role("slider", name="block to look at").get_attribute("aria-valuenow") == "32"


def test_an_overflow_is_told_in_words_and_in_place(stream):
    stream.get_by_label("none", exact=True).check()
    stream.get_by_label("what the sublayers add").fill("5")
    assert "passes 65,504" in stream.locator(".mm-verdict").first.inner_text()
    assert number(stream, "stream after block 16") == "overflow"
    assert number(stream, "attention") == "–"


def test_only_pre_norm_has_a_dashed_line_for_what_is_read(stream):
    assert stream.locator(".mm-guide").count() == 1
    for name in ("none", "post-norm"):
        stream.get_by_label(name, exact=True).check()
        assert stream.locator(".mm-guide").count() == 0


def test_the_embedding_never_gets_thinner_than_two_pixels(stream):
    thickness = """(stripe) => {
        const { x, y, width, height } = stripe.getBBox();
        const at = (dy) => stripe.isPointInFill(new DOMPoint(x + 0.9 * width, y + height - dy));
        return [at(1.5), at(4)];
    }"""
    assert stream.locator("path[data-sym=embed]").evaluate(thickness) == [True, False]


# The reader's story


def test_the_story_shows_the_trained_models_stream(page):
    open_figures(page, ResidualStream())
    show_story(page)
    reading = read_story()
    shown = read_out(page)
    last = reading.blocks[-1]
    stream = last.output[-1]
    before = reading.blocks[-2].output[-1]
    final = reading.model.model.norm(stream)
    number = {name: float(text.replace("−", "-")) for name, text in shown.items() if "%" not in text}
    depth = len(reading.blocks)
    rms = lambda x: float(x.detach().pow(2).mean().sqrt())  # noqa: E731
    assert number[f"stream after block {depth}, RMS"] == pytest.approx(rms(stream), rel=5e-3)
    assert number["the next sublayer reads, RMS"] == pytest.approx(rms(final), rel=5e-3)
    assert number[f"block {depth} adds, RMS"] == pytest.approx(rms(stream - before), rel=5e-3)
    cosine = float(torch.cosine_similarity(stream, reading.embedding[-1], dim=0))
    assert number["cosine with the embedding"] == pytest.approx(cosine, abs=6e-3)
    parts = {
        "embedding": reading.embedding[-1],
        "attention": torch.stack([block.attended[-1] for block in reading.blocks]).sum(0),
        "feed-forward": torch.stack([block.fed[-1] for block in reading.blocks]).sum(0),
    }
    for name, part in parts.items():
        share = 100 * float(part @ stream / (stream @ stream))
        assert float(shown[name].strip("< %").replace("−", "-")) == pytest.approx(share, abs=0.51), name


@torch.no_grad()
def test_the_story_says_what_the_model_would_say_after_each_block(page):
    open_figures(page, ResidualStream())
    show_story(page)
    reading = read_story()
    probe = page.locator(".mm-handle")
    streams = [reading.embedding[-1], *(block.output[-1] for block in reading.blocks)]
    for stream in reversed(streams):
        likely = reading.model.lm_head(reading.model.model.norm(stream)).softmax(-1)
        share, word = likely.max(0)
        verdict = page.inner_text(".mm-verdict")
        assert f"“{world.WORDS[int(word)]}”" in verdict
        said = re.search(r"\((> )?([\d.]+)\xa0%\)", verdict)
        assert said and float(said[2]) == pytest.approx(100 * float(share), abs=0.51)
        probe.focus()
        page.keyboard.press("ArrowLeft")
        settle(page)


# More of the runs: who gets the factor, who is silent, at which depth


@pytest.mark.parametrize("placement, silent", [("pre", "attention"), ("post", "networks")])
def test_a_silent_half_is_a_model_whose_last_matrices_are_zero(placement, silent):
    _, streams = module.run_forward(placement, silent=silent)
    model = package_model(placement, loudness=8.0)
    with torch.no_grad():
        for layer in model.model.layers:
            quiet = layer.self_attn.o_proj if silent == "attention" else layer.mlp.down_proj
            quiet.weight.zero_()
        expected = model.model(module.text()[0])[0]
    end = model.model.norm(streams[-1][-SEQUENCES:])
    torch.testing.assert_close(end.detach(), expected.detach(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("seed", long_after(1, [0, 1, 2]))
@pytest.mark.parametrize("network", ["swiglu", *module.INNER])
def test_without_attention_the_gradient_is_the_root_of_the_depth_or_the_depth_or_it_explodes(network, seed):
    pre, post = (module.first_to_last_by_depth(name, network, seed, "attention") for name in ("pre", "post"))
    has_product = network in ("swiglu", "bilinear")
    for depth, ratio_of_ends in pre.items():
        assert ratio_of_ends == pytest.approx(depth if has_product else depth**0.5, rel=0.25)
    assert post[32] > 1500 if has_product else post[32] < 3


def test_by_depth_it_is_the_figures_own_gradient():
    by_depth = module.first_to_last_by_depth("pre", "swiglu")
    assert list(by_depth) == list(DEPTHS[1:])
    assert [by_depth[depth] for depth in by_depth] == pytest.approx(
        [ratio("pre", 8.0, depth) for depth in by_depth], rel=6e-3
    )
