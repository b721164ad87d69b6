"""Training in a page: gradients and steps are torch's, the task's entropy is exact, and the loss falls to it."""

import json
import math
import re
import shutil

import numpy as np
import pytest
import torch
from browser import PACKAGE

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, world
from minimind_edu.web.join import join
from minimind_edu.world.house import SENTENCES, SLOTS, TOLD, say

SIZES = {
    "vocab_size": 24, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 6, "intermediate_size": 20, "rope_theta": 100.0, "rms_norm_eps": 1e-5, "use_qk_norm": True,
    "initializer_range": 0.3,
}  # fmt: skip
ROWS, LENGTH = 4, 10
BOTH = {"positions": True, "residual": True}
CREATE = """([config, switches, rows, length, weights]) => {
    const code = trainingCode();
    const model = new code.Model(config, switches, rows, length, code.seededNumbers(5));
    model.parameters.forEach((parameter) => parameter.value.set(weights[parameter.name].flat()));
    Object.assign(globalThis, { code, model });
}"""
GRADIENTS = """([ids, count]) => {
    const loss = model.accumulate(ids, count);
    return [loss, Object.fromEntries(model.parameters.map(({ name, grad }) => [name, grad]))];
}"""


@pytest.fixture(scope="module")
def live(node):
    """Node with what the script exports."""
    node.evaluate("async () => void Object.assign(globalThis, await import('/web/live/train.js'))")
    return node


def torch_model(switches=BOTH, **changes):
    """A model with random gains, without positions or residual streams where the switches say so.

    Its weights are float32 numbers in float64, so that all rounding is the page's.
    """
    torch.manual_seed(1)
    model = MiniMindForCausalLM(MiniMindConfig(**SIZES | changes))
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    model.double()
    if not switches["positions"]:
        model.model.freqs_cos.fill_(1)
        model.model.freqs_sin.fill_(0)
    if not switches["residual"]:
        for block in model.model.layers:
            block.forward = without_residual(block)
    return model


def without_residual(block):
    def forward(x, position_embeddings, cache=None, mask=None):
        attended, _ = block.self_attn(block.input_layernorm(x), position_embeddings, cache, mask)
        return block.mlp(block.post_attention_layernorm(attended)), None

    return forward


def create(live, model, switches=BOTH, **changes):
    """The same model in the page, as `model`."""
    weights = {name: parameter.tolist() for name, parameter in model.named_parameters()}
    live.evaluate(CREATE, [SIZES | changes, switches, ROWS, LENGTH, weights])
    assert sorted(live.evaluate("model.parameters.map(({ name }) => name)")) == sorted(weights)


def batch(seed=0):
    return torch.randint(SIZES["vocab_size"], (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("switches", "changes"),
    [
        (BOTH, {}),
        (BOTH, {"use_qk_norm": False}),
        (BOTH, {"num_key_value_heads": 4}),
        (BOTH, {"num_hidden_layers": 1, "initializer_range": 0.02}),
        (BOTH | {"positions": False}, {}),
        (BOTH | {"residual": False}, {}),
        (BOTH | {"residual": False}, {"use_qk_norm": False}),
    ],
)
def test_gradients_are_those_of_torch(live, switches, changes):
    model, ids = torch_model(switches, **changes), batch()
    create(live, model, switches, **changes)
    out = model(ids, labels=ids)
    out.loss.backward()
    loss, gradients = live.evaluate(GRADIENTS, [ids.flatten().tolist(), ROWS * (LENGTH - 1)])
    assert loss == pytest.approx(out.loss.item(), rel=1e-6)
    for name, parameter in model.named_parameters():
        expected = parameter.grad.flatten().numpy()
        assert np.abs(gradients[name] - expected).max() < 1e-5 * np.abs(expected).max(), name


def test_gradients_add_up_and_are_shares(live):
    """Half of a batch at a time, as training takes it: each is its share of the whole."""
    model, ids = torch_model(), batch()
    create(live, model)
    once, gradients = live.evaluate(GRADIENTS, [ids.flatten().tolist(), 100])
    twice, added = live.evaluate(GRADIENTS, [ids.flatten().tolist(), 100])
    assert once == pytest.approx(model(ids, labels=ids).loss.item() * ROWS * (LENGTH - 1) / 100, rel=1e-6)
    assert twice == pytest.approx(once, rel=1e-12)
    for name, parameter in gradients.items():
        np.testing.assert_allclose(added[name], 2 * np.array(parameter), rtol=1e-5, atol=1e-6)


STEPS = """([batches, count, total, rate]) => batches.map((ids, step) => {
    const loss = model.accumulate(ids, count);
    const norm = Math.hypot(...model.parameters.flatMap(({ grad }) => [...grad]));
    code.adamW(model.parameters, step, code.learningRate(step, total, rate));
    return [loss, norm];
})"""


def test_steps_are_those_of_torch(live):
    """With gradients clipped in some of the steps, and rates that grow and fall."""
    model, batches, total, rate = torch_model(initializer_range=0.1), [batch(seed) for seed in range(30)], 40, 0.01
    create(live, model)
    matrices = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    gains = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": gains, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))
    expected = []
    for step, ids in enumerate(batches):
        cosine = (1 + math.cos(math.pi * step / total)) / 2
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / 20) * (0.05 + 0.95 * cosine)
        optimizer.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        expected.append([loss.item(), torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()])
        optimizer.step()
    lists = [ids.flatten().tolist() for ids in batches]
    found = live.evaluate(STEPS, [lists, ROWS * (LENGTH - 1), total, rate])
    norms = [norm for _, norm in expected]
    assert min(norms) < 1 < max(norms)
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    values = live.evaluate("Object.fromEntries(model.parameters.map(({ name, value }) => [name, value]))")
    for name, parameter in model.named_parameters():
        moved = np.abs(np.array(values[name]) - parameter.detach().flatten().numpy()).max()
        assert moved < 0.01 * rate, name


def test_a_new_model_has_normal_weights_and_gains_of_one(live):
    create(live, torch_model())
    moments = """(seed) => {
        const config = { ...TRANSLATOR, vocab_size: 88, initializer_range: 0.02 };
        const { parameters } = new code.Model(config, { positions: true }, 4, 6, code.seededNumbers(seed));
        const of = (keep) => parameters.filter(keep).flatMap(({ value }) => [...value]);
        const weights = of(({ columns }) => columns > 1);
        const mean = (power) => weights.reduce((sum, weight) => sum + weight ** power, 0) / weights.length;
        return [of(({ columns }) => columns === 1).every((gain) => gain === 1), weights.length, ...[1, 2, 4].map(mean)];
    }"""
    ones, count, mean, square, fourth = live.evaluate(moments, 1)
    assert ones and count > 20_000
    assert abs(mean) < 4 * 0.02 / count**0.5
    assert square**0.5 == pytest.approx(0.02, rel=0.02)
    assert fourth / square**2 == pytest.approx(3, rel=0.1)  # of a normal distribution
    assert live.evaluate(moments, 1)[2] == mean != live.evaluate(moments, 2)[2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": 10}, "E must be a multiple of 4, got 10"),
        ({"num_key_value_heads": 3, "head_dim": 4}, "num_attention_heads must be a multiple of num_key_value_heads"),
    ],
)
def test_sizes_that_the_loops_cannot_take_are_refused(live, changes, message):
    create = "(config) => { try { new code.Model(config, {}, 4, 6); } catch (error) { return error.message; } }"
    live.evaluate("void (globalThis.code = trainingCode())")
    assert message in live.evaluate(create, SIZES | changes)


# The task


@pytest.fixture(scope="module")
def rows(live):
    """Of all rows that the task can write: ids -> entropy."""
    draw = """([tables, count]) => {
        const code = trainingCode(), task = code.translations(tables, code.seededNumbers(3)), found = {};
        for (let i = 0; i < count; i++) { const { ids, entropy } = task.row(); found[ids] = entropy; }
        return found;
    }"""
    found = live.evaluate(draw, [world.tables(), 40_000])
    return {tuple(map(int, ids.split(","))): entropy for ids, entropy in found.items()}


def test_the_entropy_of_a_row_is_exact(rows):
    """Its choices are uniform, so exp(-entropy) is its probability; all rows together have probability 1."""
    assert sum(math.exp(-entropy) for entropy in rows.values()) == pytest.approx(1, abs=1e-9)
    share = {}  # prefix -> its probability
    for ids, entropy in rows.items():
        for end in range(len(ids) + 1):
            share[ids[:end]] = share.get(ids[:end], 0) + math.exp(-entropy)
    following = {}  # prefix -> the probabilities of the next word
    for prefix, probability in share.items():
        if prefix:
            following.setdefault(prefix[:-1], []).append(probability / share[prefix[:-1]])
    surprise = {prefix: -sum(p * math.log(p) for p in shares) for prefix, shares in following.items()}
    for ids, entropy in rows.items():
        assert sum(surprise[ids[:end]] for end in range(1, len(ids))) == pytest.approx(entropy, abs=1e-9)


def meanings(ids):
    """Kind and slots of the English statements that have these words."""
    words = [world.WORDS[i] for i in ids]
    for kind in TOLD:
        template = SENTENCES[kind][0].split("|")
        pairs = list(zip(template, words, strict=True)) if len(template) == len(words) else [("", "x")]
        if all(word in SLOTS[part][0] if part in SLOTS else word == part for part, word in pairs):
            yield kind, {part: SLOTS[part][0].index(word) for part, word in pairs if part in SLOTS}


def test_a_row_is_a_statement_and_its_translation(rows):
    kinds = set()
    for ids in rows:
        ((kind, slots),) = meanings(ids[1:8])
        kinds.add(kind)
        assert ids[0] == world.BOS and world.WORDS[ids[8]] == "⇒" and list(ids[9:]) == say(kind, 1, slots)
        assert slots["P"] not in (slots.get("Q"), slots.get("X")) and ("B" not in slots or slots["A"] != slots["B"])
    assert kinds == {"take", "drop"}, "those that have seven words in either language"


def test_the_samples_join_people_with_objects_that_no_row_joins(rows, live):
    samples = live.evaluate(
        "(tables) => { const { samples, given } = trainingCode().translations(tables); return [samples, given]; }",
        world.tables(),
    )
    assert samples[1] == 9
    found = [next(meanings(ids[1:8])) for ids in samples[0]]
    assert [kind for kind, _ in found] == ["take", "drop"] * 2
    assert all(ids[9:] == say(kind, 1, slots) for ids, (kind, slots) in zip(samples[0], found, strict=True))
    assert all(slots["X"] == slots["P"] for kind, slots in found) and not set(map(tuple, samples[0])) & set(rows)


# The whole training

TRAINED = """([tables, options]) => new Promise((done) => {
    const heard = [];
    const hear = (message) => {
        heard.push(message);
        if (message.type === "done" || message.type === "error") done(heard);
    };
    createTraining({ tables, ...options }, hear).start();
})"""


def heard_of(live, **options):
    """Every message of a training; node has no Workers as pages have them."""
    return live.evaluate(TRAINED, [world.tables(), options])


@pytest.mark.long
def test_the_loss_falls_to_the_entropy_and_pairs_that_were_never_seen_are_translated(live):
    heard = heard_of(live)
    progress = [message for message in heard if message["type"] == "progress"]
    samples = [message for message in heard if message["type"] == "samples"]
    above = np.array([message["loss"] - message["entropy"] for message in progress])
    assert [message["step"] for message in progress] == list(range(1, 201)) and heard[-1] == {"type": "done"}
    assert [message["step"] for message in samples] == list(range(25, 201, 25))
    assert above[0] > 2 and 0 < above[-20:].mean() < 0.05
    assert all(0.44 < message["entropy"] < 0.47 for message in progress)
    last = samples[-1]["rows"]
    assert len(last) == 4 and all(row["ids"][row["given"] :] == row["expected"] for row in last)
    first = samples[0]["rows"]
    assert any(row["ids"][row["given"] :] != row["expected"] for row in first)


def test_without_a_residual_stream_it_stays_above(live):
    losses = {}
    for residual in (True, False):
        *_, last, _ = heard_of(live, steps=60, batch=8, switches={"residual": residual}, samplesEvery=1000)
        losses[residual] = last["loss"] - last["entropy"]
    assert losses[False] > losses[True] + 0.1


@pytest.mark.parametrize(
    ("options", "steps"),
    [({"rate": 30}, 2), ({"rate": 1e30}, 1), ({"rate": math.nan}, 1), ({"config": {"initializer_range": 1e38}}, 0)],
    ids=str,
)
def test_a_loss_that_is_no_number_ends_the_training_with_the_last_good_weights(live, options, steps):
    heard = heard_of(live, **options, batch=4, samplesEvery=1)
    progress = [message for message in heard if message["type"] == "progress"]
    assert len(progress) == steps and all(math.isfinite(message["loss"]) for message in progress)
    told = heard[-1]["message"]
    assert heard[-1]["type"] == "error" and re.match(rf"in step {steps + 1} the loss is (NaN|Infinity)", told), told
    assert "a smaller rate than" in told
    samples = {message["step"]: message["rows"] for message in heard[:-2] if message["type"] == "samples"}
    samples |= {0: heard_of(live, rate=0, batch=4, steps=1, samplesEvery=1)[1]["rows"]}  # of the untrained model
    assert all(0 <= word < 88 for rows in samples.values() for row in rows for word in row["ids"])
    if steps:  # what the model writes in the end is what it wrote when it last had a loss
        assert heard[-2] == {"type": "samples", "step": steps - 1, "rows": samples[steps - 1]}
    usual = heard_of(live, batch=4, steps=2)
    assert usual[-1] == {"type": "done"}, "the next training knows nothing of it"


# The whole training, as a page has it that was opened as a file

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">{policy}<title>training</title><script type="module">
{code}
const heard = [];
const start = (options) => {{
    heard.length = 0;
    window.training = createTraining({{ tables: {tables}, ...options }}, (message) => heard.push(message));
    training.start();
}};
Object.assign(window, {{ heard, start }});
</script>"""
POLICY = """<meta http-equiv="Content-Security-Policy" content="worker-src 'none'">"""
NO_WORKER = """<script>window.Worker = class { constructor() { throw new Error("no Workers here"); } };</script>"""


@pytest.fixture(scope="module")
def open_file(browser, tmp_path_factory):
    """A function that opens a page with `start(options)`, `training` and `heard` from a file."""
    folder = tmp_path_factory.mktemp("page")
    shutil.copy(PACKAGE / "web/live" / "train.js", folder)
    (folder / "page.js").write_text(
        'import { createTraining } from "./train.js";\nexport default { createTraining };\n', encoding="utf-8"
    )
    code = join(folder / "page.js").replace("export default { createTraining };", "")
    context = browser.new_context()

    def open_with(policy=""):
        text = PAGE.format(policy=policy, code=code, tables=json.dumps(world.tables()))
        (folder / "page.html").write_text(text, encoding="utf-8")
        page = context.new_page()
        page.goto((folder / "page.html").as_uri())
        return page

    yield open_with
    context.close()


DONE = "heard.some(({ type }) => type === 'done' || type === 'error')"


def trained(page, **options):
    """Every message of a training."""
    page.evaluate("(options) => start(options)", options)
    page.wait_for_function(DONE, timeout=120_000)
    return page.evaluate("heard")


@pytest.mark.parametrize("policy", [POLICY, NO_WORKER])
def test_where_no_worker_may_run_the_page_trains_the_same_model(open_file, policy):
    options = {"steps": 8, "batch": 8, "seed": 3, "samplesEvery": 4}
    without = trained(open_file(policy), **options)
    page = open_file()
    page.evaluate("() => { window.made = 0; const own = Worker; window.Worker = class extends own { constructor(url) "
                  "{ super(url); made += 1; } }; }")  # fmt: skip
    assert without == trained(page, **options) and page.evaluate("made") == 1
    assert len(without) == 8 + 2 + 1


def test_the_page_goes_on_while_it_trains(open_file):
    page = open_file(NO_WORKER)
    page.evaluate("() => { window.ticks = []; setInterval(() => ticks.push(heard.length), 1); }")
    trained(page, steps=10, samplesEvery=1000)
    seen = set(page.evaluate("ticks"))
    assert len(seen & set(range(1, 10))) > 5


@pytest.mark.parametrize("policy", ["", NO_WORKER])
def test_no_message_comes_after_stop(open_file, policy):
    page = open_file(policy)
    page.evaluate("start({ steps: 10_000, batch: 4 })")
    page.wait_for_function("heard.length > 3")
    count = page.evaluate("() => { training.stop(); return heard.length; }")
    page.wait_for_timeout(300)
    assert page.evaluate("heard.length") == count < 9_000


def test_started_again_it_begins_again(open_file):
    page = open_file()
    count = page.evaluate("""() => new Promise((done) => {
        const again = () => {
            if (heard.length <= 3) return setTimeout(again);
            training.start();
            done(heard.length);
        };
        start({ steps: 20, batch: 4, samplesEvery: 1000 });
        again();
    })""")
    # the first may have ended before, on a busy machine
    page.wait_for_function(DONE.replace("heard", f"heard.slice({count})"))
    heard = page.evaluate("heard")
    assert [message.get("step") for message in heard[count:]] == [*range(1, 21), None]
    assert heard[:3] == heard[count : count + 3]


@pytest.mark.parametrize("policy", ["", NO_WORKER])
def test_what_cannot_be_trained_is_told(open_file, policy):
    heard = trained(open_file(policy), batch=6)
    assert heard == [{"type": "error", "message": "batch must be a multiple of 4, got 6"}]
