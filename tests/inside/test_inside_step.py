"""The model by step.wasm is the model in plain JavaScript: logits, traces, caches, silence, and who takes its place."""

import pytest
import torch
from cases import long_after
from own_models import EVERY, MODELS, encoded, load, load_page, logits_of, own_model
from tokenizer_builders import train_as_many_as_minimind, write_tokenizer
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM
from upstream_reference import NAMES, reference

from minimind_edu import __main__ as program
from minimind_edu import hf, save_checkpoint, world
from minimind_edu.inside.page import STEP
from minimind_edu.trained import living

CLOSE = 1e-4
ROUNDED = 1e-4  # of the largest number: with int8 rows vectors become whole numbers of 16 bits
IDS = [5, 17, 3, 44, 9, 9, 60, 21, 8, 33, 2, 50, 1, 1, 4, 30, 31, 7, 12]  # more than are read at once
COMPARE = """([ids, options]) => {
    const [found, expected] = [model, plain].map((one) =>
        one.run(ids, { ...options, silenced: new Set(options.silenced) }).traces);
    const worst = {};
    const walk = (a, b, path) => {
        if (typeof b === "number") {
            const scale = Math.max(1, path in sizes ? sizes[path] : 1);
            worst[path] = Math.max(worst[path] ?? 0, Number.isFinite(a) ? Math.abs(a - b) / scale : Infinity);
        } else if (b && typeof b === "object") for (const key of keysOf(b)) walk(a[key], b[key], pathOf(path, key));
        else if (a !== b) worst[path] = Infinity;
    };
    const keysOf = (b) => (ArrayBuffer.isView(b) ? [...b.keys()] : Object.keys(b));
    const pathOf = (path, key) => (/^\\d+$/.test(key) ? path : `${path}.${key}`);
    const sizes = {};
    const measure = (b, path) => {
        if (typeof b === "number") sizes[path] = Math.max(sizes[path] ?? 0, Math.abs(b));
        else if (b && typeof b === "object") for (const key of keysOf(b)) measure(b[key], pathOf(path, key));
    };
    measure(expected, "");
    walk(found, expected, "");
    return [worst, sizes];
}"""


def worst_of(node, ids, **options):
    """The largest difference of each part of all traces, of its largest number where that is over 1."""
    return node.evaluate(COMPARE, [ids, options])


def test_of_what_passes_no_more_is_noted_than_asked(node, tmp_path):
    """A trace of all is most of the time of a token: a reading keeps streams, weights of attention and routes."""
    for kind in MODELS:
        load(node, own_model(kind), tmp_path)
        script = """async (ids) => {
            const { PASSING } = await import("/inside/step.js");
            const tracesOf = (options) => model.run(ids, options).traces;
            const [some, all] = [tracesOf({ trace: PASSING, logits: false }), tracesOf()];
            const kept = ({ blocks, embedding, final }) => [embedding, final, ...blocks.flatMap(
                ({ output, middle, weights, route }) => [output, middle, weights, route ?? null])];
            const others = ["q", "heads", "gate", "hidden"].filter((one) => one in some[3].blocks[1]);
            return [some.map(kept), all.map(kept), others];
        }"""
        some, whole, others = node.evaluate(script, IDS)
        assert some == whole and others == []


@pytest.mark.parametrize("step", long_after(1, [7, 1]), ids=["every seventh", "all"])
def test_fifty_stories_of_the_living_model_in_both_languages(node, tmp_path, step):
    model = living.living_model()
    lengths = range(0, 50, step)
    stories = [world.stories(1, 20 + n, 20 + n, ("en zh", "en", "zh")[n % 3])[0].tolist() for n in lengths]
    load(node, model, tmp_path)
    script = """(texts) => texts.map((ids) => {
        const [a, b] = [model, plain].map((one) => one.run(ids).traces);
        return Math.max(...a.map(({ logits }, t) => Math.max(...logits.map((x, i) => Math.abs(x - b[t].logits[i])))));
    })"""
    assert max(node.evaluate(script, stories)) < CLOSE
    for ids in stories[-3:]:  # and all that happens on the way, above 1,000 in the stream of a trained model
        worst, sizes = worst_of(node, ids, lens=True)
        assert max(worst.values()) < CLOSE and len(worst) > 20 and sizes[".blocks.output"] > 1000
    load(node, model, tmp_path, bits=8)
    assert max(node.evaluate(script, stories)) < ROUNDED * 30


@pytest.mark.parametrize("bits", [32, 8])
@pytest.mark.parametrize("kind", MODELS)
def test_every_part_of_every_kind(node, tmp_path, kind, bits):
    model = own_model(kind)
    load(node, model, tmp_path, bits=bits)
    for silenced in ([], ["0.1", "1.3", "1.feed"], ["0.feed"]):
        worst, _ = worst_of(node, IDS, silenced=silenced, lens=True)
        parts = {".logits", ".embedding", ".final", ".token", ".position"} | {
            f".blocks.{name}"
            for name in "input normed qRaw kRaw q k v weights heads attended middle normed2 fed output lens".split()
        }
        inner = {"gate", "up", "hidden"}
        parts |= {f".blocks.experts.{one}" for one in inner | {"fed"}} if model.config.use_moe else set()
        parts |= {f".blocks.{one}" for one in inner} if not model.config.use_moe else set()
        routed = ("probabilities", "chosen", "weights")
        parts |= {f".blocks.route.{one}" for one in routed} if model.config.use_moe else set()
        if "0.feed" in silenced or "1.feed" in silenced:
            worst = {path: far for path, far in worst.items() if path != ".blocks.experts.fed"}  # nothing, there
            parts -= {".blocks.experts.fed"}
        assert set(worst) == parts
        assert max(worst.values()) < (4 * ROUNDED if bits == 8 else CLOSE)


@pytest.mark.parametrize("kind", MODELS)
def test_of_four_bits_logits_are_torchs_but_for_the_rounding_of_vectors(node, tmp_path, kind):
    rounded = load(node, own_model(kind, intermediate_size=64, moe_intermediate_size=64), tmp_path, bits=4)
    script = "(ids) => [plain, model].map((one) => one.run(ids).traces.map(({ logits }) => logits))"
    plain, found = map(torch.tensor, node.evaluate(script, IDS))
    expected = logits_of(rounded, IDS)
    torch.testing.assert_close(plain, expected, rtol=0, atol=CLOSE)
    assert (found - expected).abs().mean() < 0.1 * expected.abs().mean(), "one value in another place is more"


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The folder of a tokenizer of 6,400 words, as MiniMind's is."""
    return write_tokenizer(tmp_path_factory.mktemp("words") / "tokenizer", train_as_many_as_minimind())


@pytest.mark.parametrize("kind, theirs", {"minimind2": "LlamaForCausalLM", "minimind3": "Qwen3ForCausalLM"}.items())
def test_an_exported_folder_gives_the_logits_of_transformers(node, tmp_path, words, kind, theirs):
    model = own_model(kind, vocab_size=6400, **({"rope_scaling": None} if kind == "minimind3" else {}))
    folder = hf.export(model, tmp_path / "exported", tokenizer=words)
    program.main(["open", str(folder), "--bits", "32", "-o", str(tmp_path / "page.html")])
    data = load_page(node, tmp_path / "page.html")
    assert len(data["tokenizer"]["content"]["model"]["vocab"]) == 6400
    text = "def attention(q, k, v):  # 注意力\n    return softmax(q @ k.T) @ v"
    ids = Tokenizer.from_file(f"{words}/tokenizer.json").encode(text).ids
    other = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert type(other).__name__ == theirs
    with torch.no_grad():
        expected = other(torch.tensor([ids])).logits[0]
    found = torch.tensor(node.evaluate("(ids) => model.run(ids).traces.map(({ logits }) => logits)", ids))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_weights_of_upstream_give_the_logits_of_upstream(node, tmp_path, name):
    found = reference(name)
    save_checkpoint(found.model, tmp_path / "upstreams.safetensors")
    program.main(["open", f"{tmp_path}/upstreams.safetensors", "--bits", "32", "-o", str(tmp_path / "page.html")])
    load_page(node, tmp_path / "page.html")
    script = "(texts) => texts.map((ids) => model.run(ids).traces.map(({ logits }) => logits))"
    logits = node.evaluate(script, found.tensors["input_ids"].tolist())
    torch.testing.assert_close(torch.tensor(logits), found.tensors["logits"], rtol=0, atol=1e-3)


def test_of_eight_bits_the_likeliest_tokens_of_a_trained_model_stay(node, tmp_path):
    model = living.living_model()
    load(node, model, tmp_path, bits=8)
    texts = world.stories(21, 96, 7).tolist()
    script = "(texts) => texts.map((ids) => model.run(ids).traces.map(({ logits }) => largest(logits, 1)[0][0]))"
    with torch.no_grad():
        expected = model(torch.tensor(texts)).logits.argmax(-1)
    same = torch.tensor(node.evaluate(script, texts)) == expected
    assert same.numel() > 2000 and same.float().mean() >= 0.98


@pytest.mark.parametrize("kind, engine", EVERY)
def test_silent_parts_are_as_hooks_make_them(node, tmp_path, kind, engine):
    model = own_model(kind)
    load(node, model, tmp_path, engine)
    silent = model.model.layers[0].mlp.register_forward_hook(
        lambda _, x, y: (torch.zeros_like(y[0]), *y[1:]) if isinstance(y, tuple) else torch.zeros_like(y)
    )
    expected = logits_of(model, IDS, (1, 2))
    silent.remove()
    script = "(ids) => model.run(ids, { silenced: new Set(['1.2', '0.feed']) }).traces.map((one) => one.logits)"
    torch.testing.assert_close(torch.tensor(node.evaluate(script, IDS)), expected, rtol=0, atol=CLOSE)
    assert (expected - logits_of(model, IDS, (1, 2))).abs().max() > 100 * CLOSE


@pytest.mark.parametrize("kind, engine", EVERY)
def test_a_cache_is_written_from_its_length_on(node, tmp_path, kind, engine):
    model = own_model(kind)
    load(node, model, tmp_path, engine)
    script = """(ids) => {
        const logits = ({ traces }) => traces.map((one) => one.logits);
        const cache = model.newCache();
        model.run([9, 9, 9, ...ids], { cache });
        cache.length = 0;
        const first = model.run(ids.slice(0, 7), { cache });
        const second = model.step(ids[7], cache);
        const third = model.run(ids.slice(8), { cache, trace: false });
        cache.length = 0;
        const streams = [...first.traces, second, ...third.traces].map((one) => one.final);
        const from = { layer: 1, streams: model.run(ids).traces.map((one) => one.blocks[0].output) };
        const again = model.run(ids, { cache, from });
        const missing = [again.traces[0].blocks[0] ?? null, model.run(ids, { logits: false }).traces[0].logits ?? null];
        const whole = [...logits(first), second.logits, ...logits(third)];
        return [whole, logits(again), streams.map(model.read), missing, cache.length];
    }"""
    *found, missing, length = node.evaluate(script, IDS)
    for logits in found:
        torch.testing.assert_close(torch.tensor(logits), logits_of(model, IDS), rtol=0, atol=CLOSE)
    assert (missing, length) == ([None, None], len(IDS))


def open_model(node, tmp_path, module, **changes):
    path = save_checkpoint(own_model(**changes), tmp_path / "weights.safetensors")
    script = """async ([file, module]) => {
        const [live, step] = await Promise.all([import("/web/live/model.js"), import("/inside/step.js")]);
        const { model, why } = await step.openModel(live.unpackWeights(live.bytesOf(file), true), live.bytesOf(module));
        globalThis.model = model;
        return [why, model.atOnce ?? 1];
    }"""
    return node.evaluate(script, [encoded(path), module])


def test_plain_javascript_takes_its_place_where_it_cannot_run(node, tmp_path):
    whole = encoded(STEP)
    assert open_model(node, tmp_path, whole, kind="minimind2") == [None, 16]
    why, at_once = open_model(node, tmp_path, whole[:4000], kind="minimind2")
    assert why.startswith("CompileError: ") and at_once == 1
    node.evaluate("() => { globalThis.kept = WebAssembly; delete globalThis.WebAssembly; }")
    why, at_once = open_model(node, tmp_path, whole, kind="minimind2")
    node.evaluate("() => { globalThis.WebAssembly = kept; }")
    assert why == "ReferenceError: WebAssembly is not defined" and at_once == 1
    found = node.evaluate("(ids) => model.run(ids).traces.at(-1).logits", IDS)
    expected = logits_of(own_model("minimind2"), IDS)[-1]
    torch.testing.assert_close(torch.tensor(found), expected, rtol=0, atol=CLOSE)


def test_what_neither_reads_is_refused_and_so_is_a_token_too_many(node, tmp_path):
    with pytest.raises(RuntimeError, match="only models with the norms before each part"):
        open_model(node, tmp_path, encoded(STEP), kind="minimind2", norm_placement="post")
    open_model(node, tmp_path, encoded(STEP), kind="minimind2", max_position_embeddings=9)
    with pytest.raises(RuntimeError, match="a token is from 0 to 60: 61"):
        node.evaluate("model.run([61])")
    with pytest.raises(RuntimeError, match="the cache is full: this model reads at most 9 tokens"):
        node.evaluate("model.run(Array(10).fill(1))")


@pytest.mark.parametrize("layers", long_after(1, [1, 4, 12]))
@pytest.mark.parametrize("bits", [8, 4])
def test_what_a_page_allows_its_rounding_holds_for_many_blocks_and_is_not_loose(node, tmp_path, bits, layers):
    """Of the largest logit, as a page compares: a page of eight blocks once called itself wrong.

    Of as many tokens as MiniMind has: of 61 at random, the largest logit may be a small one. The draws are those of
    forty that are farthest off, 0.88 of the limit with one block and 0.39 with twelve.
    """
    sizes = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 16, "vocab_size": 6400}
    for seed in (7, 12, 21, 22):
        model = own_model("minimind2", num_hidden_layers=layers, **sizes)
        generator = torch.Generator().manual_seed(seed)
        for parameter in model.parameters():
            if parameter.ndim == 2:
                torch.nn.init.normal_(parameter, 0, parameter.shape[1] ** -0.5, generator=generator)
        expected = logits_of(load(node, model, tmp_path, bits=bits), IDS)[-1].topk(5)
        found = node.evaluate("(ids) => createReading(model).beside(ids)", IDS)
        far = (torch.tensor(found)[expected.indices] - expected.values).abs().max() / expected.values[0]
        limit = node.call("inside/opening", "roundingOf", [{"bits": bits, "config": {"num_hidden_layers": layers}}])
        assert limit / 50 < far < limit, (layers, seed)
