"""verdicts.same_model and lora: files that are one model by every way that people take, and such that are not."""

import json

import pytest
import torch
from model_builders import spread_weights, tiny_config, tiny_model
from situations import adapter, merged

from minimind_edu import MiniMindForCausalLM, RopeScaling, save_checkpoint
from minimind_edu.hf import export
from minimind_edu.hf.gguf import write_gguf
from minimind_edu.verdicts import lora
from minimind_edu.verdicts.opened import open_weights
from minimind_edu.verdicts.same_model import compare
from minimind_edu.weights.older import in_halves

WIDE = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "head_dim": 16, "num_attention_heads": 2}


def model_of(kind="minimind3", **changes):
    model = MiniMindForCausalLM(
        tiny_config(kind, **{"num_attention_heads": 8, "num_key_value_heads": 8, **changes})
    ).eval()
    spread_weights(model)
    return model


def saved(state, path):
    torch.save(dict(state), path)
    return open_weights(path)


def grades(verdicts):
    return {verdict.about: verdict.grade for verdict in verdicts}


SAME = {"settings": "fine", "weights": "fine", "logits": "fine"}


@pytest.mark.parametrize("kind", ["minimind2", "minimind3", "minimind3_moe"])
def test_a_file_is_itself_and_its_export(tmp_path, kind):
    model = model_of(kind)
    bare = saved(model.state_dict(), tmp_path / "bare.pth")
    same = compare(bare, saved(model.state_dict(), tmp_path / "again.pth"))
    assert grades(same) == SAME and "bit for bit" in same[1].finding
    assert grades(compare(bare, open_weights(export(model, tmp_path / "exported")))) == SAME


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_the_same_model(tmp_path, dtype):
    model = model_of()
    whole = saved(model.state_dict(), tmp_path / "whole.pth")
    half = saved({name: tensor.to(dtype) for name, tensor in model.state_dict().items()}, tmp_path / "half.pth")
    for pair in ((whole, half), (half, whole)):
        verdicts = compare(*pair)
        assert grades(verdicts) == SAME and f"equal once both are {dtype}".replace("torch.", "") in verdicts[1].finding


@pytest.mark.parametrize("precision, said", [("F32", "bit for bit"), ("Q8_0", "as rounding to Q8_0 explains")])
@pytest.mark.parametrize("kind", ["minimind2", "minimind3", "minimind3_moe"])
def test_a_gguf_file_is_the_same_model(tmp_path, kind, precision, said):
    sizes = WIDE | ({"moe_intermediate_size": 64} if "moe" in kind else {})
    model = tiny_model(kind, **sizes, rope_scaling=RopeScaling(4.0, 16), max_position_embeddings=128)
    folder = export(model, tmp_path / "exported")
    with pytest.warns(UserWarning, match="token ids only"):
        file = write_gguf(folder, tmp_path / "model.gguf", precision)
    verdicts = compare(open_weights(file), open_weights(folder))
    found = grades(verdicts)
    assert found.pop("llama.cpp") in ("fine", "open"), verdicts  # open: not installed
    assert found == SAME and said in verdicts[1].finding


def test_int8_rows_are_the_same_model(tmp_path):
    model = tiny_model("minimind3", **WIDE)
    whole = open_weights(save_checkpoint(model, tmp_path / "whole.safetensors"))
    rounded = open_weights(save_checkpoint(model, tmp_path / "int8.safetensors", int8=True))
    assert grades(compare(whole, rounded)) == SAME


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_first_block_where_two_part_is_named(tmp_path, layer):
    model = model_of(num_hidden_layers=3)
    whole = saved(model.state_dict(), tmp_path / "a.pth")
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state[f"model.layers.{layer}.mlp.down_proj.weight"] += 0.05 * torch.randn(32, 48)
    settings, weights, logits = compare(whole, saved(state, tmp_path / "b.pth"))
    assert (weights.grade, logits.grade) == ("wrong", "wrong")
    assert f"the first is model.layers.{layer}.mlp.down_proj.weight" in weights.finding
    assert f"they part in block {layer + 1} (layers.{layer})," in logits.finding


def test_an_embedding_and_an_output_of_another_part_there(tmp_path):
    model = model_of(tie_word_embeddings=False)
    whole = saved(model.state_dict(), tmp_path / "a.pth")
    for name, place in (("model.embed_tokens", "in the embedding"), ("lm_head", "in the output layer")):
        state = dict(model.state_dict())
        state[f"{name}.weight"] = state[f"{name}.weight"].roll(1, 0)
        assert f"they part {place}," in compare(whole, saved(state, tmp_path / "b.pth"))[2].finding


def test_rows_in_the_order_of_before_2025_are_told_as_that(tmp_path):
    model = model_of()
    whole = saved(model.state_dict(), tmp_path / "a.pth")
    state = {
        name: in_halves(tensor, 4) if "q_proj" in name or "k_proj" in name else tensor
        for name, tensor in model.state_dict().items()
    }
    _, weights, logits = compare(whole, saved(state, tmp_path / "b.pth"))
    assert weights.grade == "wrong" and "RoPE's pairs are neighbors in one file" in weights.finding
    assert "in 4 of 4 tensors" in weights.finding and "they part in block 1 (layers.0)," in logits.finding


def test_the_same_tensors_read_in_two_ways(tmp_path):
    model = model_of("minimind2")
    folders = [export(model, tmp_path / name) for name in "ab"]
    file = folders[1] / "config.json"
    described = json.loads(file.read_text())
    described["rope_theta"] = described["rope_parameters"]["rope_theta"] = 1e4
    file.write_text(json.dumps(described))
    settings, weights, logits = compare(*map(open_weights, folders))
    assert settings.grade == "wrong" and "rope_theta 1000000.0 ≠ 10000.0" in settings.finding
    assert (weights.grade, logits.grade) == ("fine", "wrong") and "they part in block 1 (layers.0)," in logits.finding


def test_models_of_two_sizes_are_not_compared(tmp_path):
    pair = [saved(model_of(num_hidden_layers=n).state_dict(), tmp_path / f"{n}.pth") for n in (2, 3)]
    [verdict] = compare(*pair)
    assert verdict.grade == "wrong" and "num_hidden_layers 2 ≠ 3" in verdict.finding


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("with_adapter", [False, True])
def test_a_file_with_nan_is_named_and_compared_no_further(tmp_path, bad, with_adapter):
    model = model_of()
    good = saved(model.state_dict(), tmp_path / "good.pth")
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state["model.layers.0.self_attn.q_proj.weight"][0, 0] = bad
    broken = saved(state, tmp_path / "broken.pth")
    added = {"model.layers.0.self_attn.q_proj.weight": torch.ones(32, 32)} if with_adapter else None
    for pair in ((broken, good), (good, broken)):
        [verdict] = compare(*pair, added)
        assert (verdict.about, verdict.grade) == ("NaN", "wrong")
        assert verdict.finding.startswith("broken.pth: ") and "model.layers.0.self_attn.q_proj" in verdict.finding


def test_float16_and_bfloat16_of_one_model_are_the_same(tmp_path):
    state = {name: tensor.clone() for name, tensor in model_of().state_dict().items()}
    state["model.layers.0.mlp.up_proj.weight"][0, :4] = torch.tensor([1e-7, -3e-6, 1e-8, 0.0])
    pair = [saved({k: v.to(dtype) for k, v in state.items()}, tmp_path / f"{dtype}.pth")
            for dtype in (torch.float16, torch.bfloat16)]  # fmt: skip
    assert grades(compare(*pair)) == grades(compare(*pair[::-1])) == SAME
    state["model.layers.1.mlp.up_proj.weight"] *= 1.02
    other = saved({k: v.to(torch.bfloat16) for k, v in state.items()}, tmp_path / "other.pth")
    assert compare(pair[0], other)[1].grade == "wrong"


def test_what_one_file_only_assumes_is_taken_from_the_other(tmp_path):
    model = model_of("minimind2", num_attention_heads=4, num_key_value_heads=4)
    bare = saved(model.state_dict(), tmp_path / "bare.pth")
    exported = open_weights(export(model, tmp_path / "exported"))
    for pair in ((bare, exported), (exported, bare)):
        verdicts = compare(*pair)
        assert grades(verdicts) == SAME | {"settings": "look"}
        assert "bare.pth does not tell num_attention_heads=4: taken from exported" in verdicts[0].finding
    state = {
        name: in_halves(tensor, 8) if "q_proj" in name or "k_proj" in name else tensor
        for name, tensor in model.state_dict().items()
    }
    weights = compare(saved(state, tmp_path / "turned.pth"), exported)[1]
    assert weights.grade == "wrong" and "RoPE's pairs are neighbors in one file" in weights.finding


# LoRA


@pytest.fixture
def tuned(tmp_path):
    """A base, its adapter, and what was merged how often; in half precision, as MiniMind writes them."""
    model = model_of(head_dim=4)
    base = {name: tensor.half() for name, tensor in model.state_dict().items()}
    stored, added = adapter(model)
    torch.save({name: tensor.half() for name, tensor in stored.items()}, tmp_path / "lora_identity_512.pth")
    files = {times: saved({k: v.half() for k, v in merged(model.state_dict(), added, times).items()},
                          tmp_path / f"merged{times}.pth") for times in (-1, 0, 1, 2, 3)}  # fmt: skip
    return saved(base, tmp_path / "base.pth"), lora.read_lora(tmp_path / "lora_identity_512.pth"), files


@pytest.mark.parametrize(
    "times, grade, said",
    [
        (1, "fine", ""),
        (2, "wrong", "merged 2 times"),
        (3, "wrong", "merged 3 times"),
        (0, "wrong", "it was not merged"),
        (-1, "wrong", "in the wrong order"),
    ],
)
def test_how_often_a_lora_was_merged_is_counted(tuned, times, grade, said):
    base, added, files = tuned
    [verdict] = compare(files[times], base, added)
    assert (verdict.grade, verdict.about) == (grade, "LoRA") and said in verdict.advice
    assert abs(float(verdict.finding.partition("lies ")[2].partition(" times")[0]) - times) < 0.01


def test_a_merged_lora_without_its_file_is_a_difference_of_low_rank(tuned):
    base, _, files = tuned
    verdict = compare(files[1], base)[1]
    assert verdict.grade == "look" and "each by a matrix of rank 4 to 4" in verdict.finding


def test_another_adapter_another_base_and_further_changes_are_told(tuned, tmp_path):
    base, added, files = tuned
    _, others = adapter(base.whole, seed=7)
    assert "another adapter" in compare(files[1], base, others)[0].advice
    state = {name: tensor.clone() for name, tensor in files[1].whole.state_dict().items()}
    state["model.layers.0.mlp.up_proj.weight"] += 0.1
    [verdict] = compare(saved(state, tmp_path / "more.pth"), base, added)
    assert verdict.grade == "wrong" and "1 matrices differ that it does not touch" in verdict.finding


def test_a_lora_that_was_merged_into_some_matrices_only_is_told_with_one_of_them(tuned, tmp_path):
    base, added, files = tuned
    state, left = dict(files[1].whole.state_dict()), "model.layers.1.self_attn.o_proj.weight"
    state[left] = base.whole.state_dict()[left]
    [verdict] = compare(saved(state, tmp_path / "part.pth"), base, added)
    assert verdict.grade == "wrong"
    assert verdict.finding == f"of its 4 matrices it lies 0 times in 1, 1 times in 3, such as {left}"


def test_an_adapter_of_peft_has_its_scale_beside_it(tmp_path):
    from safetensors.torch import save_file

    a, b = torch.randn(2, 32), torch.randn(32, 2)
    prefix = "base_model.model.model.layers.0.self_attn.q_proj"
    save_file({f"{prefix}.lora_A.weight": a, f"{prefix}.lora_B.weight": b}, tmp_path / "adapter_model.safetensors")
    config = tmp_path / "adapter_config.json"
    config.write_text(json.dumps({"r": 2, "lora_alpha": 16}))
    [(name, delta)] = lora.read_lora(tmp_path).items()
    assert name == "model.layers.0.self_attn.q_proj.weight"
    torch.testing.assert_close(delta, 8 * b @ a)
    config.write_text(json.dumps({"r": 2, "lora_alpha": 16, "use_dora": True}))
    with pytest.raises(ValueError, match="it is DoRA"):
        lora.read_lora(tmp_path)


def test_adapters_that_are_none_or_do_not_fit(tmp_path):
    model = model_of()
    torch.save(model.state_dict(), tmp_path / "base.pth")
    with pytest.raises(ValueError, match="holds no LoRA: no name ends in"):
        lora.read_lora(tmp_path / "base.pth")
    with pytest.raises(FileNotFoundError, match="there is no adapter"):
        lora.read_lora(tmp_path / "none.pth")
    torch.save({"x.lora.A.weight": torch.ones(2, 4)}, tmp_path / "half.pth")
    with pytest.raises(ValueError, match="needs A .* and B"):
        lora.read_lora(tmp_path / "half.pth")
    state = model.state_dict()
    bad = {"model.layers.0.self_attn.q_proj.weight": torch.full((32, 32), torch.nan)}
    assert "the adapter holds NaN" in lora.merged(state, state, bad).finding
    with pytest.raises(ValueError, match="the adapter is for other.weight"):
        lora.merged(state, state, {"other.weight": torch.ones(2, 2)})
    with pytest.raises(ValueError, match="the adapter adds nothing"):
        lora.merged(state, state, {"model.layers.0.self_attn.q_proj.weight": torch.zeros(32, 32)})
