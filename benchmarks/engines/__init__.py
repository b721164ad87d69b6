"""The engines that people use on a CPU, as peers: made from our own export, each in a process of its own.

    checkpoint.py             the export that all of them read: weights of transformers, a tokenizer of bare numbers
    llama.py, ct2.py, ort.py  one engine each: made from the export, `generate`, `logits`; their versions in the .txt
    server.py                 runs one of them in the environment .venv-peers, asked over a pipe
    client.py                 starts a server, asks it, and says in one sentence what went wrong

Threads, memory, crashes and the clock of an engine are its process's own, and the rounds of all are still taken in
turns by the one who asks.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One engine at one precision.

    Args:
        module: the file of the engine in this folder.
        precision: what that file calls it.
        bytes_per_weight: of the matrices that a step reads, their scales included.
    """

    module: str
    precision: str
    bytes_per_weight: float


ENGINES = {
    "llama.cpp F32": Kind("llama", "F32", 4),
    "llama.cpp Q8_0": Kind("llama", "Q8_0", 34 / 32),  # 32 int8 and a float16 scale
    "ctranslate2 float32": Kind("ct2", "float32", 4),
    "ctranslate2 int8": Kind("ct2", "int8_float32", 1),  # a scale for each row: less than a hundredth
    "onnxruntime fp32": Kind("ort", "fp32", 4),
    "onnxruntime int8": Kind("ort", "int8", 1 + 4 / 32),  # a float32 scale for 32 numbers
    "onnxruntime int4": Kind("ort", "int4", 0.5 + 4 / 32),
}
