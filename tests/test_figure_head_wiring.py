"""HeadWiring: shapes, wires and bytes in the browser are those of the package's tensors and caches."""

import itertools

import pytest
import torch
from browser import open_figures, run_js_module
from figure_examples import assert_refused

from minimind_edu import MiniMindConfig
from minimind_edu.attention import Attention, attention, repeat_kv, repeat_kv_tiled
from minimind_edu.figures import HeadWiring
from minimind_edu.kv_cache import KVCache

HEADS = [(heads, kv) for heads in (2, 6, 8, 12) for kv in range(1, heads + 1) if heads % kv == 0]


def math(page, name, *args):
    return run_js_module(page, "head_wiring_math", name, list(args))


def labelled_heads(kv_heads: int) -> torch.Tensor:
    """[B=1, T=1, K, D=1], every head filled with its own number."""
    return torch.arange(kv_heads, dtype=torch.float64).view(1, 1, kv_heads, 1)


# The Python side


def test_minimind3_needs_the_bytes_the_chapter_quotes():
    wiring = HeadWiring()
    assert wiring.stops() == [8, 4, 2, 1]
    tokens = [wiring.cache(kv, 1).num_bytes() for kv in wiring.stops()]
    assert tokens == [24576, 12288, 6144, 3072]
    contexts = [wiring.cache(kv, 32768).num_bytes() / 2**20 for kv in wiring.stops()]
    assert contexts == [768, 384, 192, 96]


def test_the_table_holds_a_row_for_every_stop():
    rows = dict(HeadWiring(num_layers=2, length=1024, head_dim=64)._summary()[1])
    assert rows == {
        "8 KV heads (MHA)": "4,096 B a token, 4.00 MiB",
        "4 KV heads": "2,048 B a token, 2.00 MiB",
        "2 KV heads": "1,024 B a token, 1.00 MiB",
        "1 KV heads (MQA)": "512 B a token, 0.50 MiB",
    }


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_kv_heads": 3}, "multiple of num_kv_heads, got 8 and 3"),
        ({"num_heads": 10}, "multiple of num_kv_heads, got 10 and 4"),
        ({"num_kv_heads": 0}, "'num_kv_heads' .* should not be less than 1, but a value of 0"),
        ({"num_heads": 32}, "'num_heads' .* should not be greater than 16, but a value of 32"),
        ({"num_layers": 33}, "'num_layers' .* should not be greater than 32, but a value of 33"),
        ({"head_dim": 0}, "'head_dim' .* should not be less than 1, but a value of 0"),
        ({"length": 1000}, "'length' .* expected any of .*, not the int 1000"),
        ({"length": 65536}, "not the int 65536"),
        ({"dtype": "int8"}, "'dtype' .* expected any of"),
    ],
)
def test_impossible_values_are_refused(arguments, message):
    assert_refused(HeadWiring, arguments, message)


def test_both_numbers_of_heads_can_change_together():
    wiring = HeadWiring()
    with wiring.hold_trait_notifications():
        wiring.num_heads, wiring.num_kv_heads = 12, 3
    assert wiring.stops() == [12, 6, 4, 3, 2, 1]


# The mathematics, against the package


@pytest.mark.parametrize("heads, kv_heads", HEADS)
def test_wires_are_those_of_repeat_kv_and_of_the_tiled_order(page, heads, kv_heads):
    labels = labelled_heads(kv_heads)
    for order, repeat in {"repeat_kv": repeat_kv, "tiled": repeat_kv_tiled}.items():
        expected = repeat(labels, heads // kv_heads).flatten().int().tolist()
        assert math(page, "sourceHeads", heads, kv_heads, order) == expected


@pytest.mark.parametrize("heads, kv_heads", HEADS)
def test_wires_are_those_of_attention(page, heads, kv_heads):
    q, k = torch.zeros(1, 1, heads, 1).double(), torch.zeros(1, 1, kv_heads, 1).double()
    read = attention(q, k, labelled_heads(kv_heads))[0].flatten().int().tolist()
    assert math(page, "sourceHeads", heads, kv_heads, "repeat_kv") == read


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_bytes_are_those_of_real_caches(page, dtype):
    sizes = itertools.product((1, 3), (1, 5, 64), (1, 8), (1, 2, 4), (6, 96))
    itemsize = math(page, "cacheBytes", 1, 1, 1, 1, 1, 1) // 2 * getattr(torch, dtype).itemsize
    for batch, length, layers, kv_heads, head_dim in sizes:
        cache = KVCache(layers)
        for layer in cache.layers:
            pair = torch.zeros(2, batch, length, kv_heads, head_dim, dtype=getattr(torch, dtype))
            layer.append(*pair)
        args = [batch, length, layers, kv_heads, head_dim, itemsize]
        assert math(page, "cacheBytes", *args) == cache.num_bytes(), args


def new_bytes(result: torch.Tensor, source: torch.Tensor) -> int:
    """Bytes of the result's storage; 0 if it is the source's own."""
    new, old = result.untyped_storage(), source.untyped_storage()
    return 0 if new.data_ptr() == old.data_ptr() else new.nbytes()


@pytest.mark.parametrize("heads, kv_heads", HEADS)
def test_copied_bytes_are_those_of_a_new_storage(page, heads, kv_heads):
    keys = torch.zeros(2, 5, kv_heads, 6)
    for order, repeat in {"repeat_kv": repeat_kv, "tiled": repeat_kv_tiled}.items():
        new = new_bytes(repeat(keys, heads // kv_heads), keys)
        assert math(page, "copiedBytes", 2, 5, heads, kv_heads, 6, 4, order) == 2 * new


@pytest.mark.parametrize("heads, kv_heads", HEADS)
def test_every_line_of_the_step_has_the_shape_of_the_tensor(page, heads, kv_heads):
    batch, length, dim = 3, 7, 10
    query, keys = torch.zeros(batch, 1, heads, dim), torch.zeros(batch, length, kv_heads, dim)
    fifth = keys[:, :, :, None]
    wide = fifth.expand(batch, length, kv_heads, heads // kv_heads, dim)
    repeated = repeat_kv(keys, heads // kv_heads)
    weights = attention(query, keys, keys)[1]
    tensors = [query, keys, fifth, wide, repeated, repeated.transpose(1, 2), weights]
    steps = math(page, "stepShapes", batch, length, heads, kv_heads, dim, 4, "repeat_kv")
    assert [shape for _, shape, _ in steps] == [list(tensor.shape) for tensor in tensors]
    new = {name: size for name, _, size in steps}
    assert new["expand"] == new_bytes(wide, keys) == 0
    assert new["transpose"] == new_bytes(tensors[5], repeated) == 0
    assert new["reshape"] == new_bytes(repeated, keys)
    assert new["scores"] == new_bytes(weights, keys)


@pytest.mark.parametrize("config", [MiniMindConfig.minimind2(), MiniMindConfig.minimind3()])
def test_weights_are_those_of_the_layer(page, config):
    layer = Attention(config)
    expected = layer.k_proj.weight.numel() + layer.v_proj.weight.numel()
    args = config.hidden_size, config.num_key_value_heads, config.head_dim
    assert math(page, "projectionWeights", *args) == expected


@pytest.mark.parametrize(
    "size, text", [(512, "512 B"), (3072, "3 KiB"), (96 * 2**20, "96 MiB"), (1.5 * 2**30, "1.5 GiB")]
)
def test_sizes_are_written_short(page, size, text):
    assert math(page, "formatBytes", size) == text


# The figure in the browser


@pytest.fixture
def wiring(page):
    page.set_viewport_size({"width": 800, "height": 1400})
    open_figures(page, HeadWiring())
    return page


def shown(page) -> list[str]:
    return page.locator(".mm-readout dd").all_inner_texts()


def turn_dial(page, kv_heads: int) -> None:
    page.get_by_label("KV heads", exact=True).fill(str([8, 4, 2, 1].index(kv_heads)))


def test_the_dial_shows_the_bytes_of_a_real_cache(wiring):
    figure = HeadWiring()
    for kv_heads in (8, 4, 2, 1):
        turn_dial(wiring, kv_heads)
        token = figure.cache(kv_heads, 1).num_bytes()
        context = figure.cache(kv_heads, 32768).num_bytes() // 2**20
        assert shown(wiring)[:3] == [f"{token:,}", f"{context} MiB", f"{100 * kv_heads / 8:.1f} %"]
        wires = wiring.locator("svg[role=img]").get_attribute("aria-label")
        assert wires.endswith(f"query 7 reads key head {kv_heads - 1}")


def test_the_tiled_order_crosses_wires_only_where_it_matters(wiring):
    wiring.get_by_label("x.repeat (tiled)").check()
    for kv_heads, wrong in {8: 0, 4: 6, 2: 4, 1: 0}.items():
        turn_dial(wiring, kv_heads)
        assert wiring.locator("path.hw-wrong").count() == wrong
        verdict = wiring.locator(".hw-verdict").inner_text()
        assert verdict.startswith(f"≠ {wrong} of 8" if wrong else "With ")


def test_a_number_taken_for_the_group_size_gives_another_cache(wiring):
    wiring.get_by_role("switch").check()
    for dial, kv_heads in {8: 1, 4: 2, 2: 4, 1: 8}.items():
        turn_dial(wiring, dial)
        assert shown(wiring)[0] == f"{HeadWiring().cache(kv_heads, 1).num_bytes():,}"
        assert wiring.locator(".hw-verdict").inner_text().startswith(f"≠ {dial} was meant")


def test_the_bar_answers_to_arrow_keys_and_to_the_mouse(wiring):
    handle = wiring.get_by_role("slider", name="key/value heads, by the end of the bar")
    handle.focus()
    wiring.keyboard.press("ArrowRight")
    assert handle.get_attribute("aria-valuenow") == "8"
    for _ in range(4):
        wiring.keyboard.press("ArrowLeft")
    assert handle.get_attribute("aria-valuenow") == "1"
    knob = handle.locator(".mm-grip").bounding_box()
    rail = wiring.locator(".hw-rail").first.bounding_box()
    wiring.mouse.move(knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2)
    wiring.mouse.down()
    wiring.mouse.move(rail["x"] + rail["width"], knob["y"], steps=4)
    wiring.mouse.up()
    assert handle.get_attribute("aria-valuenow") == "8"
    knob = handle.locator(".mm-grip").bounding_box()
    wiring.mouse.move(knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2)
    wiring.mouse.down()
    wiring.mouse.move(knob["x"], wiring.locator(".hw-rail").nth(2).bounding_box()["y"], steps=4)
    wiring.mouse.up()
    assert handle.get_attribute("aria-valuenow") == "2"


def test_layers_context_head_size_and_dtype_scale_the_memory(wiring):
    wiring.get_by_label("layers").fill("16")
    wiring.get_by_label("positions in the cache").fill("10")
    wiring.get_by_label("64 (MiniMind2)").check()
    wiring.get_by_label("float32").check()
    figure = HeadWiring(num_layers=16, length=1024, head_dim=64, dtype="float32")
    assert shown(wiring)[0] == f"{figure.cache(4, 1).num_bytes():,}"
    assert shown(wiring)[1] == f"{figure.cache(4, 1024).num_bytes() // 2**20} MiB"
