"""The model in a page computes what torch computes from the same file, and refuses what it cannot compute."""

import base64
from contextlib import closing

import pytest
import torch
from cases import long_after
from node import Node

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, world
from minimind_edu.inside.page import rope_of
from minimind_edu.model.rope_frequencies import RopeScaling
from minimind_edu.trained.living import WEIGHTS, living_model
from minimind_edu.trained.living.heads import attention_weights, silenced
from minimind_edu.weights.checkpoints import from_checkpoint, save_checkpoint

CLOSE = 1e-4  # between logits of the page and of torch
CLEAR = 1e-3  # between the two best logits; where they are closer, either may be the first
LENGTH = 96
UNPACK = """async (file) => {
    const live = await import("/web/live/model.js");
    globalThis.model = live.createLiveModel(live.unpackWeights(live.bytesOf(file)));
}"""
# The vectors of every position that `path` names in the traces, such as "blocks.0.normed".
TRACED = """([ids, paths, options]) => {
    const { traces } = model.run(ids, { ...options, silenced: new Set(options.silenced) });
    const at = (trace, path) => path.split(".").reduce((part, key) => part[key], trace);
    return paths.map((path) => traces.map((trace) => at(trace, path)));
}"""


def encoded(path):
    return base64.b64encode(path.read_bytes()).decode()


@pytest.fixture(scope="module")
def live(node):
    """Node with `model`, the living one."""
    node.evaluate(UNPACK, encoded(WEIGHTS))
    return node


@pytest.fixture(scope="module")
def model():
    return living_model()


def traced(live, ids, *paths, **options):
    """A tensor [T, ...] of each path in the traces of a text."""
    found = live.evaluate(TRACED, [torch.as_tensor(ids).tolist(), paths, options])
    return [torch.tensor(rows, dtype=torch.float32) for rows in found]


def stories():
    """Texts of 1 to 96 words, by turns in both languages, in English, in Chinese."""
    told = ("en zh", "en", "zh")
    return [world.stories(1, length, length, told[length % 3])[0] for length in range(1, LENGTH + 1)]


def asked(count):
    """The prompts of questions of all kinds."""
    return [one.prompt for kind in world.QUESTIONS for one in world.questions(kind, count, 7, LENGTH)]


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.as_tensor(ids)[None]).logits[0]


@pytest.mark.parametrize("step", long_after(1, [8, 1]), ids=["every eighth text", "all texts"])
def test_logits_and_greedy_words_are_torchs_token_by_token(live, model, step):
    texts = [*stories(), *asked(15)]
    assert len(texts) >= 200
    texts = [*texts[7::step], texts[0]]  # lengths of 8 to 96 words, in each language
    close = total = 0
    for ids in texts:
        [found], expected = traced(live, ids, "logits"), logits_of(model, ids)
        torch.testing.assert_close(found, expected, rtol=0, atol=CLOSE)
        best = expected.topk(2).values
        clear = best[:, 0] - best[:, 1] > CLEAR
        assert (found.argmax(-1) == expected.argmax(-1))[clear].all()
        close, total = close + int((~clear).sum()), total + len(ids)
    assert close < 0.01 * total, f"the two best words are too close to tell apart at {close} of {total} positions"


def test_the_cache_may_be_filled_step_by_step_and_read_again(live, model):
    ids = stories()[40].tolist()
    found = live.evaluate(
        """(ids) => {
            const { cache } = model.run(ids.slice(0, 20));
            const traces = ids.slice(20).map((token) => model.step(token, cache));
            const shapes = cache.layers.map((layer) => [layer.keys.length, layer.values.length, layer.keys[0].length]);
            const { token, position } = traces.at(-1);
            return { logits: traces.map((trace) => trace.logits), length: cache.length, shapes, token, position };
        }""",
        ids,
    )
    torch.testing.assert_close(torch.tensor(found["logits"]), logits_of(model, ids)[20:], rtol=0, atol=CLOSE)
    config = model.config
    row = config.num_key_value_heads * config.head_dim
    assert found["shapes"] == [[41, 41, row]] * config.num_hidden_layers
    assert (found["length"], found["token"], found["position"]) == (41, ids[-1], 40)


# Parts of a block -> the paths of what they get and of what they give
PARTS = {
    "": ("input", "output"),
    "input_layernorm": ("input", "normed"),
    "self_attn.q_norm": (None, "qRaw"),
    "self_attn.k_norm": (None, "kRaw"),
    "self_attn.v_proj": ("normed", "v"),
    "self_attn.o_proj": (None, "attended"),
    "post_attention_layernorm": ("middle", "normed2"),
    "mlp.gate_proj": ("normed2", "gate"),
    "mlp.up_proj": (None, "up"),
    "mlp.down_proj": ("hidden", "fed"),
}


@torch.no_grad()
def trace_of(model, ids):
    """What passes through the parts of every block: path -> [T, ...]."""
    found, hooks = {}, []

    def note(part, before, after):
        def hook(_, given, returned):
            returned = returned[0] if isinstance(returned, tuple) else returned
            for path, value in ((before, given[0]), (after, returned)):
                if path:
                    found[f"{part}.{path}"] = value[0].flatten(1)

        return hook

    for index, layer in enumerate(model.model.layers):
        for name, paths in PARTS.items():
            hooks.append(layer.get_submodule(name).register_forward_hook(note(f"blocks.{index}", *paths)))
    found["logits"] = logits_of(model, ids)
    for hook in hooks:
        hook.remove()
    found["embedding"] = model.model.embed_tokens(torch.as_tensor(ids))
    found["final"] = found[f"blocks.{len(model.model.layers) - 1}.output"]
    return found


def test_the_trace_holds_what_passes_through_every_part(live, model):
    ids = stories()[-1]
    expected = trace_of(model, ids)
    assert len(expected) == 3 + 13 * model.config.num_hidden_layers
    for path, found in zip(expected, traced(live, ids, *expected), strict=True):
        largest = max(1.0, expected[path].abs().max().item() / 100)  # a trained stream has entries above 1,000
        torch.testing.assert_close(found, expected[path], rtol=CLOSE, atol=CLOSE * largest, msg=path)


@torch.no_grad()
def test_queries_and_keys_are_rotated_and_the_cache_holds_them(live, model):
    ids = stories()[-1]
    expected = trace_of(model, ids)
    positions = model.model.freqs_cos[: len(ids)], model.model.freqs_sin[: len(ids)]
    calculated = {}
    for index, layer in enumerate(model.model.layers):
        q, k, v = layer.self_attn.project(expected[f"blocks.{index}.normed"][None], *positions)
        calculated |= {f"blocks.{index}.q": q, f"blocks.{index}.k": k, f"blocks.{index}.v": v}
    for found, value in zip(traced(live, ids, *calculated), calculated.values(), strict=True):
        torch.testing.assert_close(found, value[0].flatten(1), rtol=0, atol=CLOSE)
    kept = live.evaluate("(ids) => model.run(ids).cache.layers.at(-1).keys", ids.tolist())
    torch.testing.assert_close(torch.tensor(kept), k[0].flatten(1), rtol=0, atol=CLOSE)


@torch.no_grad()
def test_the_lens_is_the_norm_and_the_head_of_every_blocks_stream(live, model):
    blocks = range(model.config.num_hidden_layers)
    paths = [f"blocks.{index}.{name}" for index in blocks for name in ("output", "lens")]
    for ids in (stories()[-1], asked(1)[-1]):
        found = traced(live, ids, *paths, lens=True)
        for stream, lens in zip(found[::2], found[1::2], strict=True):
            torch.testing.assert_close(lens, model.lm_head(model.model.norm(stream)), rtol=0, atol=CLOSE)
    lens, logits = live.evaluate("""() => {
        const [trace] = model.run([0]).traces;
        return [trace.blocks[0].lens ?? null, model.read(trace.final)];
    }""")
    assert lens is None, "nobody asked for it"
    torch.testing.assert_close(torch.tensor([logits]), logits_of(model, [0]), rtol=0, atol=CLOSE)


def test_the_weights_of_attention_are_torchs(live, model):
    for ids in (stories()[-1], asked(1)[0]):
        rows = live.evaluate(
            "(ids) => model.run(ids).traces.map((one) => one.blocks.map((block) => block.weights))",
            ids.tolist(),
        )
        expected = attention_weights(model, torch.from_numpy(ids)[None])  # [L, H, S, S]
        for position, row in enumerate(rows):
            found = torch.tensor(row, dtype=torch.float32)  # [L, H, T]
            torch.testing.assert_close(found, expected[:, :, position, : position + 1], rtol=0, atol=1e-5)


def test_a_silenced_head_adds_nothing_and_the_others_go_on(live, model):
    ids = asked(1)[3]
    config, whole = model.config, logits_of(model, ids)
    heads = [(layer, head) for layer in range(config.num_hidden_layers) for head in range(config.num_attention_heads)]
    for layer, head in heads:
        [found] = traced(live, ids, "logits", silenced=[f"{layer}.{head}"])
        with silenced(model, layer, head):
            expected = logits_of(model, ids)
        torch.testing.assert_close(found, expected, rtol=0, atol=CLOSE)
        assert (expected - whole).abs().max() > 10 * CLOSE, "nothing would be noticed"
    [found] = traced(live, ids, "logits", silenced=[f"{layer}.{head}" for layer, head in heads])
    assert (found - whole).abs().max() > 1
    [found] = traced(live, ids, "logits")
    torch.testing.assert_close(found, whole, rtol=0, atol=CLOSE)


# Other models

YARN = RopeScaling(4.0, original_max_position_embeddings=4)
OTHERS = {
    "without QK-norm, untied": {"use_qk_norm": False, "tie_word_embeddings": False},
    "one key/value head": {"num_key_value_heads": 1},
    "as many key/value heads": {"num_key_value_heads": 4, "head_dim": 6, "rope_theta": 100.0, "rms_norm_eps": 1e-2},
    "YaRN": {"rope_scaling": YARN},
    "MiniMind2's scaling": {"rope_scaling": RopeScaling(4.0, 4, formula="minimind2")},
    "a table that needs no scaling": {"rope_scaling": RopeScaling(4.0, original_max_position_embeddings=9)},
    "a mixture with a shared expert": {"use_moe": True, "num_experts": 5},
    "a mixture of one": {"use_moe": True, "num_experts_per_tok": 1, "num_shared_experts": 0, "norm_topk_prob": False},
}
OPEN = """async ([file, rope, keepsRows]) => {
    const live = await import("/web/live/model.js");
    const unpacked = live.unpackWeights(live.bytesOf(file), keepsRows);
    globalThis.model = live.createLiveModel({ ...unpacked, rope });
    return Object.values(unpacked.tensors).filter(({ data }) => data instanceof Int8Array).length;
}"""


IDS = [3, 12, 0, 7, 7, 1, 5, 2, 9]


def saved(tmp_path, int8=False, **changes):
    sizes = {"vocab_size": 13, "hidden_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 7, "max_position_embeddings": 9}
    config = MiniMindConfig(**sizes | {"use_qk_norm": True, "initializer_range": 0.5, "rope_theta": 1e4} | changes)
    torch.manual_seed(0)
    model = MiniMindForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.uniform_(parameter, 0.5, 2)
    return model, save_checkpoint(model, tmp_path / "other.safetensors", int8=int8)


@pytest.fixture(scope="module")
def other():
    """A node of its own, in which models of other files run."""
    with closing(Node()) as process:
        yield process


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_other_dense_models_run_from_their_checkpoints(other, tmp_path, changes):
    model, path = saved(tmp_path, **changes)
    assert other.evaluate(OPEN, [encoded(path), rope_of(model.config), False]) == 0
    [found] = traced(other, IDS, "logits")
    torch.testing.assert_close(found, logits_of(model, IDS), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS)
def test_int8_rows_may_stay_as_they_are(other, tmp_path, changes):
    model, path = saved(tmp_path, int8=True, **changes)
    matrices = sum(tensor.dim() == 2 for tensor in dict(model.named_parameters()).values())
    assert other.evaluate(OPEN, [encoded(path), rope_of(model.config), True]) == matrices
    [found] = traced(other, IDS, "logits")
    torch.testing.assert_close(found, logits_of(from_checkpoint(path), IDS), rtol=0, atol=CLOSE)


def test_the_trace_of_a_mixture_holds_what_its_router_chose(other, tmp_path):
    model, path = saved(tmp_path, use_moe=True, num_experts=5)
    other.evaluate(OPEN, [encoded(path), None, False])
    parts = ("normed2", "fed", "route.probabilities", "route.weights", "route.chosen")
    given, fed, *found = traced(other, IDS, *(f"blocks.1.{part}" for part in parts))
    with torch.no_grad():
        expected, routed = model.model.layers[1].mlp(given[None])
    torch.testing.assert_close(fed, expected[0], rtol=0, atol=CLOSE)
    for one, value in zip(found, (routed.probabilities, routed.weights, routed.experts), strict=True):
        torch.testing.assert_close(one, value.float(), rtol=0, atol=CLOSE)


def test_a_reading_may_begin_in_a_later_block_and_leave_the_logits_out(live):
    """As after a change in that block: what lies before it is not read again."""
    same = live.evaluate(
        """(ids) => {
            const silenced = new Set(["2.1"]);
            const { traces, cache } = model.run(ids);
            const layers = cache.layers.map((one, l) => (l < 2 ? one : { keys: [], values: [] }));
            const again = { length: 0, layers };
            const steps = traces.map(({ token, blocks }) =>
                model.step(token, again, { silenced, from: { layer: 2, stream: blocks[1].output }, logits: false }));
            const { traces: whole } = model.run(ids, { silenced });
            const differs = whole.some(({ final }, at) => final.some((x, i) => x !== steps[at].final[i]));
            const kept = layers.map(({ keys, values }) => [keys.length, values.length]);
            return { differs, kept, missing: [steps[0].blocks[1] ?? null, steps[0].logits ?? null] };
        }""",
        stories()[30].tolist(),
    )
    assert same == {"differs": False, "kept": [[31, 31]] * 4, "missing": [None, None]}


REFUSED = {
    "norms after the parts": ({"norm_placement": "post"}, "only models with the norms before each part"),
    "RoPE scaling without its frequencies": ({"rope_scaling": YARN}, "RoPE is scaled in this model"),
}


@pytest.mark.parametrize("changes, message", REFUSED.values(), ids=REFUSED)
def test_a_model_of_another_kind_is_refused(other, tmp_path, changes, message):
    with pytest.raises(RuntimeError, match=message):
        other.evaluate(UNPACK, encoded(saved(tmp_path, **changes)[1]))


def test_a_file_in_half_precision_is_refused_by_name(other, tmp_path):
    path = save_checkpoint(saved(tmp_path)[0].half(), tmp_path / "half.safetensors")
    with pytest.raises(RuntimeError, match="weight holds F16, but only F32, I8 and U8 are understood"):
        other.evaluate(UNPACK, encoded(path))


@pytest.mark.parametrize("token", [-1, 13, 1.5, None])
def test_a_token_outside_the_vocabulary_is_refused(other, tmp_path, token):
    other.evaluate(UNPACK, encoded(saved(tmp_path, int8=True)[1]))
    with pytest.raises(RuntimeError, match=f"a token is from 0 to 12: {'null' if token is None else token}"):
        other.evaluate("(token) => model.run([token])", token)


def test_a_full_cache_takes_no_more(other, tmp_path):
    other.evaluate(UNPACK, encoded(saved(tmp_path, int8=True)[1]))
    with pytest.raises(RuntimeError, match="the cache is full: this model reads at most 9 tokens"):
        other.evaluate("model.run(Array(10).fill(1))")
