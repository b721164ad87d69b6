"""llama.cpp through the plain bindings of llama-cpp-python: one call for each step, no tokenizer, no sampler.

Its settings are the usual ones: keys and values are float16, also beside weights in float32, and attention is fused.
"""

import ctypes
import os
import subprocess
import sys
from importlib.metadata import version as installed
from pathlib import Path

import llama_cpp
import numpy as np


def version() -> str:
    """llama.cpp has no version of its own: that of its library of tensors, with the commit, and of what wraps it."""
    ggml = ctypes.CDLL(str(next((Path(llama_cpp.__file__).parent / "lib").glob("*ggml-base*"))))
    ggml.ggml_version.restype = ggml.ggml_commit.restype = ctypes.c_char_p
    built = f"ggml {ggml.ggml_version().decode()} at {ggml.ggml_commit().decode()}"
    return f"{built}, wrapped by llama-cpp-python {installed('llama-cpp-python')}, compiled on this machine"


@llama_cpp.llama_log_callback
def _quiet(*_: object) -> None:
    pass


class Engine:
    """One model; the context is made anew when the number or the length of texts changes."""

    def __init__(self, checkpoint: Path, precision: str, threads: int, made: Path):
        llama_cpp.llama_log_set(_quiet, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        settings = llama_cpp.llama_model_default_params()
        settings.use_mmap = False
        path = made / "model.gguf"
        # in a process of its own: what writes the file brings torch along, and this one's memory is measured
        writes = [sys.executable, "-m", "minimind_edu.hf.gguf", str(checkpoint), str(path), "--precision", precision]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        subprocess.run(writes, check=True, stdout=subprocess.DEVNULL, env=environment)
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), settings)
        if not self.model:
            raise RuntimeError("llama.cpp cannot read the file that was written for it")
        self.vocab_size = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.threads = threads
        self.shape, self.context, self.batch = (0, 0), None, None

    def generate(self, prompts: list[list[int]], new: int) -> list[list[int]]:
        """The `new` most probable tokens after each prompt; all prompts have one length."""
        length = len(prompts[0])
        self._prepare(len(prompts), length + new)
        tokens = [[token] for token in self._read(prompts, 0).argmax(-1).tolist()]
        for position in range(length, length + new - 1):
            last = [[row[-1]] for row in tokens]
            for row, token in zip(tokens, self._read(last, position).argmax(-1).tolist(), strict=True):
                row.append(token)
        return tokens

    def logits(self, ids: list[int]) -> list[list[float]]:
        """Logits `[S, V]`, one token after the other."""
        self._prepare(1, len(ids))
        return [self._read([[token]], position)[0].tolist() for position, token in enumerate(ids)]

    def _prepare(self, count: int, length: int) -> None:
        """An empty cache for `count` texts of at most this length."""
        if self.shape != (count, length):
            if self.context:
                llama_cpp.llama_batch_free(self.batch)
                llama_cpp.llama_free(self.context)
            settings = llama_cpp.llama_context_default_params()
            settings.n_ctx, settings.n_seq_max = count * -(-length // 256) * 256, count
            settings.n_batch = count * length
            settings.n_threads = settings.n_threads_batch = self.threads
            self.context = llama_cpp.llama_init_from_model(self.model, settings)
            if not self.context:
                raise RuntimeError(f"llama.cpp cannot make a context for {count} texts of {length} tokens")
            self.batch, self.shape = llama_cpp.llama_batch_init(count * length, 0, 1), (count, length)
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)

    def _read(self, texts: list[list[int]], start: int) -> np.ndarray:
        """Append tokens to each text, from this position on; logits `[B, V]` after the last of each."""
        batch, place, last = self.batch, 0, []
        for sequence, tokens in enumerate(texts):
            for position, token in enumerate(tokens, start):
                batch.token[place], batch.pos[place] = token, position
                batch.n_seq_id[place], batch.seq_id[place][0] = 1, sequence
                batch.logits[place] = position == start + len(tokens) - 1
                place += 1
            last.append(place - 1)
        batch.n_tokens = place
        if llama_cpp.llama_decode(self.context, batch):
            raise RuntimeError(f"llama.cpp cannot read {place} tokens at once")
        rows = [llama_cpp.llama_get_logits_ith(self.context, place) for place in last]
        return np.stack([np.ctypeslib.as_array(row, (self.vocab_size,)) for row in rows])
