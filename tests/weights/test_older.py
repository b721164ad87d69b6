"""A MiniMind from before 2025-04-26, and Meta's Llama, compute here what they computed there: neighbors rotated."""

import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_builders import PROPERTY, tiny_model, token_ids

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, from_checkpoint
from minimind_edu.weights.older import in_halves, modern_config

SIZES = {"vocab_size": 61, "dim": 32, "n_layers": 2, "n_heads": 8, "n_kv_heads": 2, "norm_eps": 1e-5}
TABLES = {"freqs_cos": torch.ones(4, 2), "freqs_sin": torch.ones(4, 2), "rope.freqs": torch.ones(2),
          "pos_cis": torch.ones(4, 2, dtype=torch.complex64),
          "layers.0.attention.mask": torch.ones(1, 1, 4, 4)}  # fmt: skip


def width(n_heads):
    """Of two channels in a head, neighbors and halves are the same; so there are four at least."""
    return max(32, 4 * n_heads)


def state(n_heads=8, n_kv_heads=2, experts=0, tied=True, layers=2, seed=0):
    """Weights of those names, drawn wide."""
    generator = torch.Generator().manual_seed(seed)

    def matrix(rows, columns):
        return 1.5 * torch.randn(rows, columns, generator=generator) / columns**0.5

    E = width(n_heads)
    V, D, inner = 61, E // n_heads, 48
    found = {"tok_embeddings.weight": matrix(V, E) * E**0.5, "norm.weight": torch.rand(E, generator=generator) + 0.5}
    found["output.weight"] = found["tok_embeddings.weight"] if tied else matrix(V, E)
    for layer in range(layers):
        at = f"layers.{layer}."
        for name, rows in (("wq", n_heads * D), ("wk", n_kv_heads * D), ("wv", n_kv_heads * D), ("wo", E)):
            found[f"{at}attention.{name}.weight"] = matrix(rows, E)
        for name in ("attention_norm", "ffn_norm"):
            found[f"{at}{name}.weight"] = torch.rand(E, generator=generator) + 0.5
        parts = [f"experts.{i}." for i in range(experts)] + ["shared_experts."] if experts else [""]
        for part in parts:
            for name, shape in (("w1", (inner, E)), ("w2", (E, inner)), ("w3", (inner, E))):
                found[f"{at}feed_forward.{part}{name}.weight"] = matrix(*shape)
        if experts:
            found[f"{at}feed_forward.gate.weight"] = matrix(experts, E)
    return found


def logits(weights, ids, n_heads=8, n_kv_heads=2, theta=1e6, eps=1e-5, k=2):
    """The whole model by its formulas, written for this test: each pair (2i, 2i + 1) of a head is turned together."""
    layers = len({name.split(".")[1] for name in weights if name.startswith("layers.")})
    x = weights["tok_embeddings.weight"][ids]
    B, S, E = x.shape
    D = E // n_heads
    angles = torch.arange(S)[:, None] * theta ** (-torch.arange(0, D, 2) / D)

    def norm(x, name):
        return x / (x.pow(2).mean(-1, keepdim=True) + eps).sqrt() * weights[name]

    def turned(x):
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    def network(x, at):
        gate, up, down = (weights[f"{at}{name}.weight"] for name in ("w1", "w3", "w2"))
        return (torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T

    for layer in range(layers):
        at = f"layers.{layer}."
        y = norm(x, f"{at}attention_norm.weight")
        q, keys, v = (y @ weights[f"{at}attention.{name}.weight"].T for name in ("wq", "wk", "wv"))
        q, keys = (turned(part.view(B, S, -1, D)) for part in (q, keys))
        groups = n_heads // n_kv_heads
        keys, v = (part.view(B, S, -1, D).repeat_interleave(groups, 2) for part in (keys, v))
        scores = torch.einsum("bihd,bjhd->bhij", q, keys) / math.sqrt(D)
        scores = scores.masked_fill(torch.ones(S, S).triu(1).bool(), -math.inf).softmax(-1)
        x = x + torch.einsum("bhij,bjhd->bihd", scores, v).flatten(2) @ weights[f"{at}attention.wo.weight"].T
        y, at = norm(x, f"{at}ffn_norm.weight"), f"{at}feed_forward."
        if f"{at}gate.weight" in weights:
            shares = (y @ weights[f"{at}gate.weight"].T).softmax(-1)
            top, chosen = shares.topk(k, -1)
            top = top / top.sum(-1, keepdim=True) if k > 1 else top
            every = torch.stack([network(y, f"{at}experts.{i}.") for i in range(shares.shape[-1])], 2)
            picked = every.gather(2, chosen[..., None].expand(-1, -1, -1, E))
            x = x + (top[..., None] * picked).sum(2) + network(y, f"{at}shared_experts.")
        else:
            x = x + network(y, at)
    return norm(x, "norm.weight") @ weights["output.weight"].T


def check(model, expected):
    torch.testing.assert_close(model(token_ids(2, 30)).logits, expected, rtol=0, atol=1e-4)


WRAPPED = {
    "bare": lambda weights: weights,
    "with its tables": lambda weights: weights | TABLES,
    "compiled": lambda weights: {f"_orig_mod.{name}": value for name, value in weights.items()},
    "Lightning": lambda weights: {"state_dict": {f"model.{name}": value for name, value in weights.items()}},
    "one matrix": lambda weights: {n: value for n, value in weights.items() if n != "tok_embeddings.weight"},
    "the other": lambda weights: {n: value for n, value in weights.items() if n != "output.weight"},
}


@pytest.mark.parametrize("wrapped", WRAPPED)
@pytest.mark.parametrize("experts", [0, 4])
def test_a_bare_file_of_2025_is_read(wrapped, experts, tmp_path, caplog):
    weights = state(experts=experts)
    torch.save(WRAPPED[wrapped](weights), tmp_path / "full_sft.pth")
    check(from_checkpoint(tmp_path / "full_sft.pth"), logits(weights, token_ids(2, 30)))
    [told] = caplog.messages
    assert "num_attention_heads=8, rope_theta=1000000.0" in told and told.endswith("MiniMind had before 2025-04-26")


def test_a_bare_file_of_2024_is_read(tmp_path, caplog):
    weights = state(16, 8)
    torch.save(weights, tmp_path / "pretrain.pth")
    check(from_checkpoint(tmp_path / "pretrain.pth"), logits(weights, token_ids(2, 30), 16, 8, theta=1e4))
    assert "num_attention_heads=16, rope_theta=10000.0" in caplog.text


@pytest.mark.parametrize(("n_heads", "n_kv_heads"), [(4, 4), (8, 1), (16, 16)])
def test_heads_that_no_preset_has_are_asked_for_and_believed(n_heads, n_kv_heads, tmp_path, caplog):
    weights = state(n_heads, n_kv_heads)
    torch.save(weights, tmp_path / "m.pth")
    with pytest.raises(ValueError, match="m.pth: its names are those of MiniMind before 2025-04-26, or of .*give"):
        from_checkpoint(tmp_path / "m.pth")
    expected = logits(weights, token_ids(2, 30), n_heads, n_kv_heads, theta=1e4)
    check(from_checkpoint(tmp_path / "m.pth", num_attention_heads=n_heads, rope_theta=1e4), expected)
    assert "num_attention_heads" not in caplog.text and "rope_theta" not in caplog.text
    config = from_checkpoint(tmp_path / "m.pth", head_dim=width(n_heads) // n_heads, rope_theta=1e4).config
    check(from_checkpoint(tmp_path / "m.pth", config), expected)


@PROPERTY
@given(
    heads=st.sampled_from([(1, 1), (2, 1), (4, 2), (8, 8), (8, 4), (16, 2)]),
    experts=st.sampled_from([0, 1, 3]),
    theta=st.sampled_from([1e4, 5e5, 1e6]),
    eps=st.sampled_from([1e-5, 1e-6]),
    tied=st.booleans(),
    layers=st.integers(1, 3),
    name=st.sampled_from(["config.json", "params.json"]),
)
def test_their_own_config_is_obeyed(heads, experts, theta, eps, tied, layers, name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("older")
    weights = state(*heads, experts=experts, tied=tied, layers=layers)
    k = min(2, experts) or 2
    torch.save(weights, folder / "consolidated.00.pth")
    described = SIZES | {
        "dim": width(heads[0]),
        "n_heads": heads[0],
        "n_kv_heads": heads[1],
        "rope_theta": theta,
        "norm_eps": eps,
    }
    described |= {"n_layers": layers, "multiple_of": 64, "max_seq_len": 8192, "hidden_dim": None}
    if experts:
        described |= {"use_moe": True, "n_routed_experts": experts, "n_shared_experts": True, "num_experts_per_tok": k}
    if name == "params.json":
        described["vocab_size"] = -1
    (folder / name).write_text(json.dumps(described))
    expected = logits(weights, token_ids(2, 30), *heads, theta=theta, eps=eps, k=k)
    for place in (folder, folder / "consolidated.00.pth"):
        check(from_checkpoint(place), expected)


def test_what_llama2_c_stores_with_its_weights_is_obeyed(tmp_path, caplog):
    weights = state(4, 4)
    arguments = {"dim": 32, "n_layers": 2, "n_heads": 4, "n_kv_heads": 4, "vocab_size": 61, "multiple_of": 32,
                 "max_seq_len": 256, "dropout": 0.0}  # fmt: skip
    model = {f"_orig_mod.{name}": value for name, value in weights.items()}
    torch.save({"model": model, "optimizer": {}, "model_args": arguments, "iter_num": 3}, tmp_path / "ckpt.pt")
    check(from_checkpoint(tmp_path / "ckpt.pt"), logits(weights, token_ids(2, 30), 4, 4, theta=1e4))
    assert caplog.messages == []


def test_a_rope_that_is_not_computed_here_is_refused(tmp_path):
    torch.save(state(), tmp_path / "consolidated.00.pth")
    (tmp_path / "params.json").write_text(json.dumps(SIZES | {"use_scaled_rope": True}))
    with pytest.raises(ValueError, match="its config asks for use_scaled_rope, Llama 3.1's RoPE"):
        from_checkpoint(tmp_path)


@pytest.mark.parametrize(("n_heads", "n_kv_heads"), [(4, 4), (8, 2), (16, 8)])
def test_heads_that_its_config_leaves_out_are_read_off_the_weights_and_null_is_as_many_as_queries(
    n_heads, n_kv_heads, tmp_path
):
    """Each program has a default of its own: LMConfig 8 of 16, then 2 of 8; Meta's and llama2.c's as many."""
    weights = state(n_heads, n_kv_heads)
    torch.save(weights, tmp_path / "m.pth")
    described = SIZES | {"dim": width(n_heads), "n_heads": n_heads, "n_kv_heads": None}

    def read(*left_out):
        kept = {name: value for name, value in described.items() if name not in left_out}
        (tmp_path / "config.json").write_text(json.dumps(kept))
        return from_checkpoint(tmp_path)

    expected = logits(weights, token_ids(2, 30), n_heads, n_kv_heads, theta=1e4)
    check(read("n_kv_heads"), expected)
    if n_heads == n_kv_heads:
        check(read(), expected)
        with pytest.raises(ValueError, match="the number of heads cannot be told"):
            read("n_heads", "n_kv_heads")
    else:
        check(read("n_heads", "n_kv_heads"), expected)
        with pytest.raises(ValueError, match=f"num_key_value_heads={n_heads}; the weights show .*={n_kv_heads}"):
            read()


@pytest.mark.parametrize("shared", [True, False])
def test_the_weights_show_whether_an_expert_is_shared(shared, tmp_path):
    """Its program asks for anything but null, and makes one for False as well."""
    torch.save(weights := state(experts=3), tmp_path / "m.pth")
    described = SIZES | {"model_type": "minimind", "use_moe": True, "n_routed_experts": 3, "n_shared_experts": shared,
                         "num_experts_per_tok": 2, "rope_theta": 1e6}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(described))
    check(from_checkpoint(tmp_path), logits(weights, token_ids(2, 30)))


def test_a_minimind_of_that_time_is_tied_and_a_field_that_it_had_not_is_refused(tmp_path):
    torch.save(state(tied=False), tmp_path / "m.pth")
    for more, message in (({"model_type": "minimind"}, "are not tied"), ({"n_streams": 2}, "n_streams=2, a field")):
        (tmp_path / "config.json").write_text(json.dumps(SIZES | more))
        with pytest.raises(ValueError, match=message):
            from_checkpoint(tmp_path)


def test_todays_config_is_left_as_it_is():
    described = {"hidden_size": 32, "n_routed_experts": 4}
    assert modern_config(described) is described


@PROPERTY
@given(heads=st.integers(1, 4), head_dim=st.sampled_from([2, 4, 6, 16]))
def test_rows_keep_their_heads_and_pairs_come_apart(heads, head_dim):
    rows = torch.arange(heads * head_dim)[:, None].expand(-1, 3)
    for head, part in enumerate(in_halves(rows, head_dim).view(heads, head_dim, 3)):
        pairs = [(2 * i + head * head_dim, 2 * i + 1 + head * head_dim) for i in range(head_dim // 2)]
        assert list(zip(*part[:, 0].view(2, -1).tolist(), strict=True)) == pairs


def test_todays_names_are_not_put_in_another_order(tmp_path):
    model = tiny_model(dtype=torch.float32)
    torch.save(model.state_dict(), tmp_path / "m.pth")
    read = from_checkpoint(tmp_path / "m.pth", num_attention_heads=4)
    assert isinstance(read, MiniMindForCausalLM) and isinstance(read.config, MiniMindConfig)
    assert torch.equal(read(token_ids(2, 30)).logits, model(token_ids(2, 30)).logits)
