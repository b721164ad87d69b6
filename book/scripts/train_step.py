"""One training step of an exported model, shared by as many processes as torchrun starts.

python train_step.py FOLDER
torchrun --standalone --nproc-per-node 2 train_step.py FOLDER
"""

import argparse
import os

import torch
import torch.distributed as dist
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
    # gone when this function ends: torch 2.13 can hang if it outlives the process group
    shared = DistributedDataParallel(model) if world > 1 else model
    # what is predicted in all the texts, not in this process's share
    counted = (batch.labels[:, 1:] != -100).sum()
    share = {name: values[rank::world] for name, values in batch.items()}
    if rank >= len(batch.labels):
        # no text is left for this process: it lends a hand with one that counts for nothing
        share = {name: values[:1] for name, values in batch.items()}
        share["labels"] = torch.full_like(share["labels"], -100)
    loss = shared(**share, num_items_in_batch=counted).loss
    # each loss is a part; DDP averages gradients, and the factor makes it a sum
    (world * loss).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    whole = loss.detach()
    if world > 1:
        dist.all_reduce(whole)  # the parts, added up
    return whole.item(), norm.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
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
    loss, norm = train_step(model.to(device).train(), batch, rank, world)
    if rank == 0:
        print(f"processes: {world}, loss: {loss:.4f}, gradient norm: {norm:.4f}", flush=True)
        if arguments.save:
            model.save_pretrained(arguments.save)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
