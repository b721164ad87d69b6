"""HeadWiring: shapes, wires and bytes in JavaScript are those of the package's tensors and caches."""

import itertools

import pytest
import torch
from browser import open_figures, settle, unfold
from story_reader import read_story, show_story, telling_head

from minimind_edu import MiniMindConfig
from minimind_edu.figures import HeadWiring
from minimind_edu.model.attention import Attention, attention, repeat_kv
from minimind_edu.model.for_comparison import repeat_kv_tiled
from minimind_edu.model.kv_cache import KVCache

HEADS = [(heads, kv) for heads in (2, 6, 8, 12) for kv in range(1, heads + 1) if heads % kv == 0]


def math(node, name, *args):
    return node.call("figures/head_wiring/math", name, list(args))


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


def test_both_numbers_of_heads_can_change_together():
    wiring = HeadWiring()
    with wiring.hold_trait_notifications():
        wiring.num_heads, wiring.num_kv_heads = 12, 3
    assert wiring.stops() == [12, 6, 4, 3, 2, 1]


# The mathematics, against the package


@pytest.mark.parametrize("heads, kv_heads", HEADS)
def test_wires_are_those_of_repeat_kv_and_of_the_tiled_order(node, heads, kv_heads):
    labels = labelled_heads(kv_heads)
    for order, repeat in {"repeat_kv": repeat_kv, "tiled": repeat_kv_tiled}.items():
        expected = repeat(labels, heads // kv_heads).flatten().int().tolist()
        assert math(node, "sourceHeads", heads, kv_heads, order) == expected


@pytest.mark.parametrize("heads, kv_heads", HEADS)
def test_wires_are_those_of_attention(node, heads, kv_heads):
    q, k = torch.zeros(1, 1, heads, 1).double(), torch.zeros(1, 1, kv_heads, 1).double()
    read = attention(q, k, labelled_heads(kv_heads), None)[0].flatten().int().tolist()
    assert math(node, "sourceHeads", heads, kv_heads, "repeat_kv") == read


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_bytes_are_those_of_real_caches(node, dtype):
    sizes = itertools.product((1, 3), (1, 5, 64), (1, 8), (1, 2, 4), (6, 96))
    itemsize = math(node, "cacheBytes", 1, 1, 1, 1, 1, 1) // 2 * getattr(torch, dtype).itemsize
    for batch, length, layers, kv_heads, head_dim in sizes:
        cache = KVCache(layers)
        for layer in cache.layers:
            pair = torch.zeros(2, batch, length, kv_heads, head_dim, dtype=getattr(torch, dtype))
            layer.append(*pair)
        args = [batch, length, layers, kv_heads, head_dim, itemsize]
        assert math(node, "cacheBytes", *args) == cache.num_bytes(), args


def new_bytes(result: torch.Tensor, source: torch.Tensor) -> int:
    """Bytes of the result's storage; 0 if it is the source's own."""
    new, old = result.untyped_storage(), source.untyped_storage()
    return 0 if new.data_ptr() == old.data_ptr() else new.nbytes()


@pytest.mark.parametrize("heads, kv_heads", HEADS)
def test_copied_bytes_are_those_of_a_new_storage(node, heads, kv_heads):
    keys = torch.zeros(2, 5, kv_heads, 6)
    for order, repeat in {"repeat_kv": repeat_kv, "tiled": repeat_kv_tiled}.items():
        new = new_bytes(repeat(keys, heads // kv_heads), keys)
        assert math(node, "copiedBytes", 2, 5, heads, kv_heads, 6, 4, order) == 2 * new


@pytest.mark.parametrize("heads, kv_heads", HEADS)
def test_every_line_of_the_step_has_the_shape_of_the_tensor(node, heads, kv_heads):
    batch, length, dim = 3, 7, 10
    query, keys = torch.zeros(batch, 1, heads, dim), torch.zeros(batch, length, kv_heads, dim)
    fifth = keys[:, :, :, None]
    wide = fifth.expand(batch, length, kv_heads, heads // kv_heads, dim)
    repeated = repeat_kv(keys, heads // kv_heads)
    weights = attention(query, keys, keys, None)[1]
    tensors = [query, keys, fifth, wide, repeated, repeated.transpose(1, 2), weights]
    steps = math(node, "stepShapes", batch, length, heads, kv_heads, dim, 4, "repeat_kv")
    assert [shape for _, shape, _ in steps] == [list(tensor.shape) for tensor in tensors]
    new = {name: size for name, _, size in steps}
    assert new["expand"] == new_bytes(wide, keys) == 0
    assert new["transpose"] == new_bytes(tensors[5], repeated) == 0
    assert new["reshape"] == new_bytes(repeated, keys)
    assert new["scores"] == new_bytes(weights, keys)


@pytest.mark.parametrize("config", [MiniMindConfig.minimind2(), MiniMindConfig.minimind3()])
def test_weights_are_those_of_the_layer(node, config):
    layer = Attention(config)
    expected = layer.k_proj.weight.numel() + layer.v_proj.weight.numel()
    args = config.hidden_size, config.num_key_value_heads, config.head_dim
    assert math(node, "projectionWeights", *args) == expected


@pytest.mark.parametrize(
    "size, text", [(512, "512 B"), (3072, "3 KiB"), (96 * 2**20, "96 MiB"), (1.5 * 2**30, "1.5 GiB")]
)
def test_sizes_are_written_short(node, size, text):
    assert math(node, "formatBytes", size) == text


def test_equal_words_are_counted_together(node):
    most = math(node, "mostRead", [0.25, 0.125, 0.125, 0.5], ["the", "cat", "the", "sees", "the"], 2)
    assert most == [["sees", 0.5], ["the", 0.375]]


@pytest.mark.parametrize("heads", [1, 2, 6, 8, 12])
def test_the_stops_are_all_that_divide_the_heads(node, heads):
    assert math(node, "kvHeadStops", heads) == [kv for of, kv in [(1, 1), *HEADS] if of == heads]


# The figure in the browser


@pytest.fixture
def wiring(page):
    page.set_viewport_size({"width": 800, "height": 1400})
    open_figures(page, HeadWiring())
    unfold(page)
    return page


def shown(page) -> list[str]:
    return page.locator(".mm-verdict + .mm-readout dd").all_inner_texts()


def set_heads(page, kv_heads: int) -> None:
    page.get_by_label("key/value heads", exact=True).fill(str([1, 2, 4, 8].index(kv_heads)))


def test_the_slider_shows_the_bytes_of_a_real_cache_and_of_its_copies(wiring):
    figure = HeadWiring()
    for kv_heads in (8, 4, 2, 1):
        set_heads(wiring, kv_heads)
        token = figure.cache(kv_heads, 1).num_bytes()
        context = figure.cache(kv_heads, 32768).num_bytes() // 2**20
        copied = {8: "0 B", 1: "0 B"}.get(kv_heads, "96 MiB")  # what MHA keeps in one of 8 layers, or nothing
        assert shown(wiring) == [f"{token:,}", f"{context} MiB", copied]
        wires = wiring.locator(".mm-fig > .mm-stage svg[role=img]")
        assert wires.get_attribute("aria-label").endswith(f"query head 8 reads key/value head {kv_heads}")
        assert wires.locator(".mm-ink").count() == wires.locator("[data-sym=k]").count() == kv_heads
        assert f"{context} MiB of 768 MiB" in wires.text_content()


def test_the_title_says_what_the_order_shown_does(wiring):
    title = wiring.locator(".mm-title")
    assert "cache shrinks" in title.inner_text()
    wiring.get_by_label("x.repeat (tiled)").check()
    settle(wiring)
    assert "queries read the wrong ones" in title.inner_text()
    set_heads(wiring, 8)  # the same order as repeat_kv's
    assert "cache shrinks" in title.inner_text()
    set_heads(wiring, 2)
    wiring.get_by_label("repeat_kv", exact=True).check()
    settle(wiring)
    assert "cache shrinks" in title.inner_text()


def test_the_tiled_order_crosses_wires_only_where_it_matters(wiring):
    wiring.get_by_label("x.repeat (tiled)").check()
    for kv_heads, wrong in {8: 0, 4: 6, 2: 4, 1: 0}.items():
        set_heads(wiring, kv_heads)
        assert wiring.locator("path.hw-wrong").count() == wrong
        assert wiring.locator(".hw-name[data-tone=bad]").count() == wrong  # among the copies
        verdict = wiring.locator(".mm-verdict")
        assert verdict.inner_text().startswith(f"≠ {wrong} of 8" if wrong else "With ")
        assert verdict.get_attribute("data-tone") == ("bad" if wrong else None)


def test_a_right_wiring_is_told_without_a_verdicts_color(wiring):
    said = {8: "MHA", 4: "GQA: 2 neighboring", 2: "GQA: 4 neighboring", 1: "MQA: all 8"}
    for kv_heads, words in said.items():
        set_heads(wiring, kv_heads)
        assert wiring.locator(".mm-verdict").inner_text().startswith(words)
        assert wiring.locator(".mm-verdict[data-tone]").count() == 0


def test_a_number_taken_for_the_group_size_gives_another_cache(wiring):
    wiring.get_by_role("switch").check()
    for dial, kv_heads in {8: 1, 4: 2, 2: 4, 1: 8}.items():
        set_heads(wiring, dial)
        assert shown(wiring)[0] == f"{HeadWiring().cache(kv_heads, 1).num_bytes():,}"
        verdict = wiring.locator(".mm-verdict").inner_text()
        assert verdict == f"≠ Misread as queries per key/value head, {dial} keeps {kv_heads}."


def test_layers_context_head_size_and_dtype_scale_the_memory(wiring):
    wiring.get_by_label("layers").fill("16")
    wiring.get_by_label("positions in the cache").fill("10")
    wiring.get_by_label("64 (MiniMind2)").check()
    wiring.get_by_label("float32").check()
    figure = HeadWiring(num_layers=16, length=1024, head_dim=64, dtype="float32")
    assert shown(wiring)[0] == f"{figure.cache(4, 1).num_bytes():,}"
    assert shown(wiring)[1] == f"{figure.cache(4, 1024).num_bytes() // 2**20} MiB"


# Every box of words in the drawing, and every wire as points.
DRAWN = """(drawing) => {
    const boxes = [...drawing.querySelectorAll("text")].map((text) => {
        const { x, y, width, height } = text.getBBox();
        return [text.textContent, x, y, x + width, y + height];
    });
    const wires = [...drawing.querySelectorAll(".hw-wire")].map((wire) => {
        const length = wire.getTotalLength();
        return Array.from({ length: 40 }, (_, i) => wire.getPointAtLength((length * i) / 39)).map((p) => [p.x, p.y]);
    });
    return { boxes, wires };
}"""


@pytest.mark.parametrize("width", [944, 344])
def test_no_label_cuts_a_wire_or_leaves_the_drawing(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    for heads, kv_heads, order in [(8, 8, "repeat_kv"), (8, 4, "tiled"), (8, 1, "repeat_kv"), (16, 16, "repeat_kv")]:
        open_figures(page, HeadWiring(num_heads=heads, num_kv_heads=kv_heads, order=order))
        settle(page)
        drawing = page.locator(".mm-fig > .mm-stage svg")
        drawn, limit = drawing.evaluate(DRAWN), float(drawing.get_attribute("width"))
        assert len(drawn["wires"]) == heads
        for words, x0, y0, x1, y1 in drawn["boxes"]:
            assert x0 > -1 and x1 < limit + 1, words
            cut = [(x, y) for wire in drawn["wires"] for x, y in wire if x0 < x < x1 and y0 + 2 < y < y1 - 2]
            assert not cut, words


def test_compact_the_slider_wires_anew(page):
    open_figures(page, HeadWiring(compact=True))
    wires = page.locator(".mm-stage svg")
    drawings = []
    for kv_heads in (8, 4, 2, 1):
        set_heads(page, kv_heads)
        assert wires.locator(".mm-ink").count() == kv_heads
        drawings.append(wires.inner_html())
    assert len(set(drawings)) == 4


# The reader's story


def test_the_story_shows_what_each_head_reads(page):
    open_figures(page, HeadWiring())
    show_story(page)
    reading, (layer, head) = read_story(), telling_head()
    config = reading.model.config
    weights = reading.blocks[layer].weights[:, -1]
    expected = []
    for row in weights.tolist():
        shares = dict.fromkeys(reading.words, 0.0)
        for word, weight in zip(reading.words, row, strict=True):
            shares[word] += weight
        expected.append(sorted(shares.items(), key=lambda share: -share[1])[:3])
    columns = page.eval_on_selector_all(
        ".hw-columns ul",
        "all => all.map((one) => [...one.children].map((row) => [...row.children].map((part) => part.textContent)))",
    )
    assert columns == [[[word, f"{100 * share:.0f} %"] for word, share in column] for column in expected]
    size = config.num_attention_heads // config.num_key_value_heads
    verdict = page.inner_text(".mm-verdict")
    assert f"share k{head // size + 1}" in verdict
    for query in range(head // size * size, (head // size + 1) * size):
        word, share = expected[query][0]
        assert f"q{query + 1} looks at “{word}” ({100 * share:.0f}\N{NO-BREAK SPACE}%)" in verdict
    cache = KVCache(config.num_hidden_layers)
    for one in cache.layers:
        one.append(*(torch.empty(1, 1, config.num_key_value_heads, config.head_dim) for _ in range(2)))
    assert shown(page.locator(".mm-fig"))[0] == f"{cache.num_bytes():,}"


def test_another_word_of_the_story_and_another_layer(page):
    open_figures(page, HeadWiring())
    show_story(page)
    page.locator(".mm-word").nth(5).click()
    page.locator(".mm-source .mm-choice").nth(1).locator("input").last.check()
    settle(page)
    reading = read_story()
    row = reading.blocks[-1].weights[0, 5, :6]
    best = page.inner_text(".hw-columns ul >> nth=0").split()
    word = reading.words[int(row.argmax())]
    assert best[0] == word.split()[0]
    assert page.inner_text(".hw-telling .mm-label").startswith(f"layer {len(reading.blocks)} at “{reading.words[5]}”")


def test_the_dial_gives_way_to_the_story(page):
    open_figures(page, HeadWiring())
    dial = page.get_by_label("key/value heads", exact=True)
    assert dial.is_visible()
    show_story(page)
    assert not dial.is_visible()
    assert page.locator(".mm-ink").count() == read_story().model.config.num_key_value_heads
