"""A GGUF file as llama.cpp itself reads it, by the plain bindings of llama-cpp-python.

Keys and values are float32 and attention is not fused, so that only the order of sums differs from ours. It stands on
numpy alone: the tests also read it where llama.cpp is compiled and this package is not installed.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path

import llama_cpp  # pyright: ignore[reportMissingImports]
import numpy as np

VERSION = llama_cpp.__version__
_ERROR = 4  # the level of its messages at which something failed
_errors: list[str] = []


@llama_cpp.llama_log_callback
def _note(level, text, _data):
    if level == _ERROR:
        _errors.append(text.decode(errors="replace").strip())


class LlamaCppFile:
    """A model in llama.cpp, and a text that it reads on from call to call.

    Args:
        file: the GGUF file.
        length: the most tokens of the text.

    Raises:
        ValueError: if llama.cpp cannot read the file; the message quotes its reason.
    """

    def __init__(self, file: Path, length: int):
        llama_cpp.llama_log_set(_note, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        _errors.clear()
        self.model = llama_cpp.llama_model_load_from_file(str(file).encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise ValueError(f"llama.cpp cannot read {file} ({_errors[0] if _errors else 'it does not say why':.160})")
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.vocab_size = llama_cpp.llama_vocab_n_tokens(self.vocab)
        self.read = 0
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = -(-length // 256) * 256
        settings.type_k = settings.type_v = 0  # float32
        settings.flash_attn_type = 0  # LLAMA_FLASH_ATTN_TYPE_DISABLED
        settings.n_threads = settings.n_threads_batch = 1
        self.context = llama_cpp.llama_init_from_model(self.model, settings)
        if not self.context:
            llama_cpp.llama_model_free(self.model)
            raise ValueError(f"llama.cpp cannot run {file} ({_errors[0] if _errors else 'it does not say why':.160})")

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """Read these tokens after those that were read before; the logits [S, V] after each."""
        batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for place, token in enumerate(tokens):
            batch.token[place], batch.pos[place], batch.logits[place] = token, self.read + place, True
            batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
        failed = llama_cpp.llama_decode(self.context, batch)
        llama_cpp.llama_batch_free(batch)
        if failed:
            raise ValueError(f"llama.cpp cannot read these {len(tokens)} tokens (llama_decode returned {failed})")
        self.read += len(tokens)
        rows = [llama_cpp.llama_get_logits_ith(self.context, place) for place in range(len(tokens))]
        return np.stack([np.ctypeslib.as_array(row, (self.vocab_size,)).copy() for row in rows])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)
