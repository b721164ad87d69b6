"""Ten situations that people told in threads of MiniMind's repository, as a new user would bring them to the command.

The number is the thread's; situations and numbers are theirs, every file is made here. Each names the verdict that
must be given, its grade, and what must be said.
"""

import pytest
import torch
from model_builders import spread_weights, tiny_config
from situations import NAN, chat, curve, pair, write_log, write_merged, write_rows
from tokenizer_builders import write_tokenizer

from minimind_edu import MiniMindForCausalLM
from minimind_edu import __main__ as program
from minimind_edu.weights.older import in_halves


def pretraining_of_version_1(folder):
    """#26: 26.9 million weights; 8.86, 5.25, 3.60, 3.23, 2.80 at steps 0 to 1500, rate 2e-4."""
    places = curve((0, 8.863), (100, 5.251), (500, 3.599), (1000, 3.225), (1500, 2.802), (1900, 2.744), noise=0.05)
    return ["--log", write_log(folder / "train.log", places, rate=2e-4, iterations=24681)]


def rate_of_a_tenth(folder):
    """#225: pretraining with a rate of 0.1 ends in NaN."""
    places = [(0, 8.9), (100, 31.0), (200, 55.0), *((300 + 100 * n, NAN) for n in range(10))]
    return ["--log", write_log(folder / "pretrain.log", places, rate=0.1)]


def resumed_sft(folder):
    """#553: SFT of 104 million weights, killed and resumed: first about 1.5 as before, then 3.7."""
    before = curve((0, 2.2), (8000, 1.5), noise=0.1)
    after = [(8100, 1.52), (8200, 1.6), *((8300 + 100 * n, 3.7) for n in range(15))]
    places = [*before, "Epoch [1/2]: 跳过前8000个step，从step 8001开始", *after]
    return ["--log", write_log(folder / "full_sft.log", places, rate=5e-7, iterations=20000)]


def dpo_at_ln_2(folder):
    """#674: DPO with MiniMind's own rate, after pretraining and SFT: 0.693, and it stays."""
    places = curve((0, 0.6931), (5000, 0.6930), noise=0.001)
    return ["--log", write_log(folder / "train.log", places, form="2026", rate=4e-8, dpo_loss=None)]


def mixture_that_is_flat(folder):
    """#343 and #593: after the first epoch the loss stands at 2.7 and goes no lower."""
    places = curve((0, 8.9), (1000, 3.6), (3000, 2.8), (6000, 2.7), (20000, 2.7), noise=0.12)
    return ["--log", write_log(folder / "pretrain.log", places, iterations=10000)]


def sft_with_nan_in_its_second_epoch(folder):
    """#505: SFT of 104 million weights with the default rate, 5e-7: NaN in the second epoch."""
    places = [*curve((0, 2.3), (12000, 1.7), noise=0.1), *((12100 + 100 * n, NAN) for n in range(8))]
    return ["--log", write_log(folder / "sft_512.log", places, rate=5e-7, epochs=2)]


def weights_that_were_not_loaded(folder):
    """minimind-v#75: a training on top of a trained model stands at 7.3 to 7.5: its names did not fit."""
    places = curve((0, 7.9), (500, 7.45), (6000, 7.35), noise=0.05)
    return ["--log", write_log(folder / "sft_vlm.log", places, rate=4e-4)]


def lora_merged_twice(folder):
    """#598: the merge of a LoRA is run again on its own result."""
    return write_merged(folder, times=2)


def converted_without_its_rows(folder):
    """#494: names of Llama's class, rows of q and k in the order of the older program."""
    model = MiniMindForCausalLM(tiny_config("minimind2", num_attention_heads=8, num_key_value_heads=8)).eval()
    spread_weights(model)
    state = {
        name: in_halves(tensor, 4) if "q_proj" in name or "k_proj" in name else tensor
        for name, tensor in model.state_dict().items()
    }
    torch.save(model.state_dict(), folder / "before.pth")
    torch.save(state, folder / "after.pth")
    return [folder / "after.pth", "--same-as", folder / "before.pth"]


def older_data_with_a_newer_tokenizer(folder):
    """#388 and #416: which tokens count; here data with the older marks, and questions longer than the cut."""
    rows = [chat(question="谁在厨房？" * 40) for _ in range(6)] + [chat(answer="<s>米娅在厨房。</s>") for _ in range(4)]
    write_tokenizer(folder / "model")
    return ["--data", write_rows(folder / "sft.jsonl", rows), "--tokenizer", folder / "model", "--max-length", 120]


def pairs_without_a_difference(folder):
    """#430: DPO whose loss does not change at all; here the pairs are equal after the cut."""
    same = "米娅在厨房。" * 10
    rows = [pair(chosen=f"{same}对", rejected=f"{same}错") for _ in range(5)]
    write_tokenizer(folder / "model")
    return ["--data", write_rows(folder / "dpo.jsonl", rows), "--tokenizer", folder / "model", "--max-length", 60]


def file_of_another_depth(folder):
    """#381: a file of sixteen blocks where the program expects eight; here one block of it is lost as well."""
    model = MiniMindForCausalLM(tiny_config("minimind2", num_attention_heads=8, num_hidden_layers=3))
    state = {name: tensor for name, tensor in model.state_dict().items() if ".layers.1." not in name}
    torch.save(state, folder / "full_sft_512.pth")
    return [folder / "full_sft_512.pth"]


SITUATIONS = [
    (pretraining_of_version_1, 0, "fine", "band", "others' band there"),
    (rate_of_a_tenth, 1, "wrong", "NaN", "the rate is 0.1, 200 times MiniMind's"),
    (resumed_sft, 1, "wrong", "jump", "resumed at step 8,100, it rises from 1."),
    (dpo_at_ln_2, 1, "wrong", "ln 2", "it stands at ln 2 = 0.693 for 5,000 steps at a rate of 4e-8"),
    (mixture_that_is_flat, 0, "fine", "plateau", "it is flat at 2."),
    (sft_with_nan_in_its_second_epoch, 1, "wrong", "NaN", "out of a quiet curve"),
    (weights_that_were_not_loaded, 1, "wrong", "start", "no trained weights were loaded"),
    (lora_merged_twice, 1, "wrong", "LoRA", "merged 2 times"),
    (converted_without_its_rows, 1, "wrong", "weights", "RoPE's pairs are neighbors in one file"),
    (older_data_with_a_newer_tokenizer, 1, "wrong", "empty rows", "the cut comes before the answer in 6"),
    (pairs_without_a_difference, 1, "wrong", "pairs", "5 of 5 pairs are one and the same after the cut"),
    (file_of_another_depth, 1, "wrong", "tensors", "the first is model.layers.1."),
]


@pytest.mark.parametrize(
    "situation, code, grade, about, said", SITUATIONS, ids=[situation.__name__ for situation, *_ in SITUATIONS]
)
def test_a_situation_gets_its_verdict(situation, code, grade, about, said, tmp_path, capsys):
    arguments = ["check", *map(str, situation(tmp_path))]
    if code:
        with pytest.raises(SystemExit) as ended:
            program.main(arguments)
        assert ended.value.code == code
    else:
        program.main(arguments)
    shown = " ".join(capsys.readouterr().out.split())
    label = {"fine": "fine", "wrong": "wrong", "look": "look here"}[grade]
    assert f"{label} {about} " in shown and said in shown, shown
