"""One training step of an exported model, shared by as many processes as torchrun starts.

python train_step.py FOLDER
torchrun --standalone --nproc-per-node 2 train_step.py FOLDER [--shard]
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoModelForCausalLM, AutoTokenizer, BatchEncoding, PreTrainedTokenizerBase

TEXTS = [
    "the dog sat on the mat, and the cat lay at the door.",
    "the cat and the dog sat on the mat.",
    "the dog lay at the door.",
    "the cat sat.",
]


def texts_of(tokenizer: PreTrainedTokenizerBase) -> BatchEncoding:
    """The texts side by side, [4, S] each: ids, where they are real, and labels that are -100 where they are not."""
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    batch["labels"] = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
    return batch


def train_step(model: torch.nn.Module, batch: BatchEncoding, rank: int, world: int) -> tuple[float, float]:
    """Change the weights once, in every process alike.

    Returns:
        the loss of all texts, and the norm of its gradient.
    """
    share = {name: values[rank::world] for name, values in batch.items()}
    if rank >= len(batch.labels):
        # no text is left for this process: it computes one anyway, and no token of it counts
        share = {name: values[:1] for name, values in batch.items()}
        share["labels"] = torch.full_like(share["labels"], -100)
    # each process knows its own texts only: what is predicted in all of them is a sum over the processes
    counted = (share["labels"][:, 1:] != -100).sum()
    if world > 1:
        dist.all_reduce(counted)
    loss = model(**share, num_items_in_batch=counted).loss
    # each loss is a part; gradients are averaged over the processes, and the factor makes it a sum
    (world * loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    whole = loss.detach()
    if world > 1:
        dist.all_reduce(whole)  # the parts, added up
    return whole.item(), (norm.full_tensor() if isinstance(norm, DTensor) else norm).item()


def sharded(model: torch.nn.Module, world: int) -> torch.nn.Module:
    """The model with each weight divided among the processes: whole only while its block computes."""
    mesh = init_device_mesh(next(model.parameters()).device.type, (world,))
    for block in model.model.layers:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--shard", action="store_true", help="divide the weights instead of copying them")
    parser.add_argument("--save", help="write the model after the step into this folder")
    arguments = parser.parse_args()
    # torchrun tells every process who it is; without torchrun there is one
    world, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if cuda else "cpu"
    if world > 1:
        dist.init_process_group("nccl" if cuda else "gloo")

    model = AutoModelForCausalLM.from_pretrained(arguments.folder, dtype=torch.float32)
    batch = texts_of(AutoTokenizer.from_pretrained(arguments.folder)).to(device)
    model = model.to(device).train()
    if world > 1:
        shared = sharded(model, world) if arguments.shard else DistributedDataParallel(model)
    else:
        shared = model
    loss, norm = train_step(shared, batch, rank, world)
    del shared  # torch 2.13 can hang if it outlives the process group
    whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True)) if arguments.save else None
    if rank == 0:
        print(f"processes: {world}, loss: {loss:.4f}, gradient norm: {norm:.4f}", flush=True)
        if whole:
            if model.config.tie_word_embeddings:
                del whole["lm_head.weight"]  # put together from its parts, it is a second copy of the embedding
            model.save_pretrained(arguments.save, state_dict=whole)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
