"""Models as readers bring them to the page: tiny, every part of them counts, with a byte-level tokenizer."""

import base64
import json
import re

import torch
from model_builders import spread_weights, tiny_config
from tokenizer_builders import train_tokens, write_tokenizer

from minimind_edu import MiniMindForCausalLM, RopeScaling, save_checkpoint, world
from minimind_edu.inside.page import STEP, rope_of, store
from minimind_edu.trained.training import Recipe, initialize, train

YARN = RopeScaling(4.0, original_max_position_embeddings=16)
MODELS = {
    "minimind2": ("minimind2", {}),
    "minimind3": ("minimind3", {"rope_scaling": YARN, "tie_word_embeddings": False}),
    "minimind2_moe": ("minimind2_moe", {}),
    "minimind3_moe": ("minimind3_moe", {"rope_scaling": YARN}),
}
ENGINES = ("step", "plain")  # step.wasm, and JavaScript
EVERY = [(kind, engine) for kind in MODELS for engine in ENGINES]


def own_model(kind="minimind3", **changes):
    """A tiny model of one of MODELS."""
    preset, more = MODELS[kind]
    model = MiniMindForCausalLM(tiny_config(preset, **more | changes)).eval()
    spread_weights(model)
    return model


def own_folder(folder, kind="minimind3"):
    """The folder of a model with a vocabulary of 300 byte-level tokens; returns the model."""
    write_tokenizer(folder)
    model = own_model(kind, vocab_size=300, max_position_embeddings=256)
    save_checkpoint(model, folder / "model.safetensors")
    return model


def encoded(path):
    return base64.b64encode(path.read_bytes()).decode()


def load(node, model, folder, engine="step", bits=32):
    """In node: `model` by one of ENGINES, `plain` by the other, `unpacked`, the page's modules by their names."""
    path = folder / "weights.safetensors"
    rounded = store(model, path, bits)
    load_weights(node, path.read_bytes(), rope_of(model.config), engine, bits)
    return rounded


def load_page(node, file):
    """In node, as by `load`: the model of a page; returns what else the page knows."""
    text = file.read_text(encoding="utf-8")
    pieces = re.findall(r'<script type="text/plain" class="weights">([^<]*)', text)
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    load_weights(node, b"".join(map(base64.b64decode, pieces)), data["rope"], "step", data["bits"])
    return data


def load_weights(node, weights, rope, engine, bits):
    script = """async ([file, module, rope, engine, bits]) => {
        const [live, step, ...others] = await Promise.all(
            ["web/live/model", "inside/step", "inside/largest", "inside/reading", "inside/insight"].map(
                (name) => import(`/${name}.js`)));
        const unpack = (keepsRows) => ({ ...live.unpackWeights(live.bytesOf(file), keepsRows), rope });
        globalThis.unpacked = unpack(true);
        globalThis.plain = live.createLiveModel(unpack(bits === 8));
        globalThis.model = plain;
        if (engine === "step") {
            const opened = await step.openModel(unpacked, live.bytesOf(module));
            if (opened.why) throw new Error(opened.why);
            globalThis.model = opened.model;
        }
        Object.assign(globalThis, ...others);
        globalThis.read = (reading, ids, silenced = []) => [...reading.become(ids, new Set(silenced))];
    }"""
    given = [base64.b64encode(one).decode() for one in (weights, STEP.read_bytes())]
    node.evaluate(script, [*given, rope, engine, bits])


def logits_of(model, ids, *heads):
    """The logits [S, V] with these heads silent, by a hook on what joins them."""
    size, hooks = model.config.head_dim, []
    for layer, head in heads:

        def silence(module, given, head=head):
            joined = given[0].clone()
            joined[..., head * size : (head + 1) * size] = 0
            return (joined,)

        hooks.append(model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(silence))
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    for hook in hooks:
        hook.remove()
    return logits


def trained_folder(folder):
    """The folder of a model of bytes and their merges that has learned to write, in seconds, stories of the house."""
    stories = "\n".join(world.decode(ids) for ids in world.stories(2400, 48, 5, "en"))
    tokens = train_tokens(300, stories.splitlines()[:400])
    write_tokenizer(folder, tokens)
    ids = torch.tensor(tokens.encode(stories).ids)
    sizes = {"vocab_size": 300, "hidden_size": 96, "num_hidden_layers": 2, "intermediate_size": 256}
    model = initialize(MiniMindForCausalLM(tiny_config("minimind3", **sizes, max_position_embeddings=256)), seed=1)
    steps, batch, length = 300, 8, 96
    rows = ids[: len(ids) // length * length].view(-1, length)
    batches = (rows[(step * batch + torch.arange(batch)) % len(rows)] for step in range(steps))
    train(model, batches, Recipe(steps=steps, learning_rate=4e-3, warmup=20))
    save_checkpoint(model, folder / "model.safetensors")
    return model
