"""How much of a GPU's memory training takes, held against what is counted: `python -m benchmarks.memory`.

On a machine with an NVIDIA GPU each setting trains two steps on random tokens, and PyTorch's allocator says how many
bytes were there at most; `--into FILE` stores them. Without one nothing can be measured: the table is then that of the
stored run.

    weights   what the model holds before anything runs, tables of RoPE included
    kept      what the second forward pass left: activations, and one copy of the logits
    peak      the most of both steps; gradients are set to None after each

Bytes are those of the allocator's blocks, which are up to 1 MiB larger than what was asked for. A first run on a GPU
also holds cuBLAS's workspaces, so one is made and thrown away.
"""

import argparse
import copy
import json
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from minimind_edu.figures.memory_bars import STORED
from minimind_edu.measure.memory import Memory, training_memory
from minimind_edu.model.config import MiniMindConfig
from minimind_edu.model.lora import add_lora
from minimind_edu.model.loss import next_token_loss
from minimind_edu.model.model import MiniMindForCausalLM

MODELS = {"small": MiniMindConfig(), "base": MiniMindConfig(hidden_size=768, num_hidden_layers=16)}
RANK, BETA = 8, 0.1
SHAPES = [("small", batch, length) for batch in (1, 8, 32) for length in (128, 512)]
SETTINGS = [
    *((*shape, kind, half) for shape in SHAPES for half in (False, True) for kind in ("train", "lora", "dpo")),
    ("base", 1, 128, "train", False),
    ("base", 1, 128, "lora", False),
]
FIELDS = ("size", "batch", "length", "kind", "autocast", "weights", "kept", "peak")


def with_adapters(model: MiniMindForCausalLM, rank: int) -> MiniMindForCausalLM:
    """The same model, frozen, with adapters on q_proj and o_proj: on the square matrices, as MiniMind has them."""
    add_lora(model, rank, ("q_proj", "o_proj"))
    return model


def log_probabilities(logits: Tensor, ids: Tensor) -> Tensor:
    """How likely the tokens of each text are together: `[B, S, V]` and `[B, S]` -> `[B]`."""
    following = F.pad(ids[:, 1:], (0, 1), value=-100)
    surprise = F.cross_entropy(logits.flatten(0, 1).float(), following.flatten(), ignore_index=-100, reduction="none")
    return -surprise.view(ids.shape).sum(-1)


def loss_of(model: MiniMindForCausalLM, ids: Tensor, reference: MiniMindForCausalLM | None) -> Tensor:
    """The loss of a language model; with a reference that of DPO, for which every second text was rejected."""
    if reference is None:
        return next_token_loss(model(ids).logits, ids)
    with torch.no_grad():
        before = log_probabilities(reference(ids).logits, ids)
    gained = log_probabilities(model(ids).logits, ids) - before
    return -F.logsigmoid(BETA * (gained[0::2] - gained[1::2])).mean()


def measured(size: str, batch: int, length: int, kind: str, autocast: bool) -> dict[str, Any]:
    """One setting on this machine's GPU. DPO needs pairs: of one text it makes two."""
    cuda = torch.device("cuda")
    batch += kind == "dpo" and batch == 1
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    model = MiniMindForCausalLM(MODELS[size]).to(cuda)
    weights = torch.cuda.memory_allocated() - before
    reference = copy.deepcopy(model).requires_grad_(False) if kind == "dpo" else None
    if kind == "lora":
        with_adapters(model, RANK)
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
    ids = torch.randint(MODELS[size].vocab_size, (batch, length), device=cuda)
    kept = 0
    for _ in range(2):
        start = torch.cuda.memory_allocated()
        with torch.autocast("cuda", torch.bfloat16) if autocast else nullcontext():
            loss = loss_of(model, ids, reference)
        kept = torch.cuda.memory_allocated() - start
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    peak = torch.cuda.max_memory_allocated() - before
    return dict(zip(FIELDS, (size, batch, length, kind, autocast, weights, kept, peak), strict=True))


def counted(row: dict[str, Any]) -> Memory:
    """What `measure/memory.py` says of a row."""
    return training_memory(
        MODELS[row["size"]], row["batch"], row["length"], row["kind"], row["autocast"], gpu=True, rank=RANK
    )


def kept_of(memory: Memory) -> int:
    """What a forward pass leaves behind: of the logits their log-softmax alone, a third."""
    return memory.copies + memory.activations + memory.logits // 3


def name_of(row: dict[str, Any]) -> str:
    """For example `small train 32 x 512 autocast`."""
    return f"{row['size']} {row['kind']} {row['batch']} x {row['length']}{' autocast' * row['autocast']}"


def table(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Each row in MB, measured and counted, and by how much the count is off."""
    lines = [f"{'':30}{'kept':>7}{'counted':>9}{'':9}{'peak':>6}{'counted':>9}"]
    for row in rows:
        memory = counted(row)
        line = f"{name_of(row):30}"
        for there, here in ((row["kept"], kept_of(memory)), (row["peak"], memory.peak)):
            line += f"{there / 1e6:7.0f}{here / 1e6:9.0f}{100 * (here / there - 1):+6.1f} %"
        lines.append(line)
    return lines


def run(settings: Iterable[tuple[Any, ...]], measure: Callable[..., dict[str, Any]] = measured) -> dict[str, Any]:
    """All settings, one after the other, after one that is thrown away."""
    settings = list(settings)
    measure(*settings[0])
    rows = [measure(*setting) for setting in tqdm(settings, disable=None)]
    return {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}


def stored() -> dict[str, Any]:
    """The run that the book shows."""
    found = json.loads(STORED.read_text(encoding="utf-8"))
    return found | {"rows": [dict(zip(FIELDS, row, strict=True)) for row in found["rows"]]}


def save(found: dict[str, Any], path: Path) -> None:
    """A row a line: nothing but values, in the order of FIELDS."""
    rows = ",\n".join(json.dumps([row[name] for name in FIELDS]) for row in found["rows"])
    head = json.dumps({name: found[name] for name in ("device", "torch")})
    path.write_text(f'{head[:-1]}, "rows": [\n{rows}\n]}}\n', encoding="utf-8")


def main(arguments: list[str] | None = None) -> None:
    """Measure where there is a GPU, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description="GPU memory, measured and counted")
    parser.add_argument("--into", type=Path, help="store what was measured here")
    parser.add_argument("--only", default="", metavar="WORDS", help='rows whose name holds this, as "32 x 512"')
    options = parser.parse_args(arguments)
    if torch.cuda.is_available():
        found = run(
            setting for setting in SETTINGS if options.only in name_of(dict(zip(FIELDS, setting, strict=False)))
        )
        if options.into:
            save(found, options.into)
    else:
        print("There is no NVIDIA GPU here, so nothing was measured; this is the stored run.")
        found = stored()
    rows = [row for row in found["rows"] if options.only in name_of(row)]
    print(f"{found['device']}, torch {found['torch']}; MB", *table(rows), sep="\n")


if __name__ == "__main__":
    main()
