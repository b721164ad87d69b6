"""What llama.cpp makes of a GGUF file, asked in a process of its own: a line of JSON in, a line of JSON out.

It runs in the environment of the other engines (`make engines`), which has llama-cpp-python and none of this package.
Keys and values are float32 and attention is not fused, so that only the order of sums differs from ours.
"""

import ctypes
import json
import sys

import llama_cpp
import numpy as np


@llama_cpp.llama_log_callback
def log(_level, text, _data):
    sys.stderr.write(text.decode(errors="replace"))


def main():
    llama_cpp.llama_log_set(log, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    print(json.dumps([answer(**question) for question in json.load(sys.stdin)]))


def answer(file, ids=(), new=0, texts=(), bare=False):
    """Logits `[S, V]` of the ids, the `new` most probable tokens after them, and the ids of texts.

    Texts are read as they are, with the tokens that frame them and controls by their names; `bare`, without both.
    """
    model = llama_cpp.llama_model_load_from_file(file.encode(), llama_cpp.llama_model_default_params())
    assert model, f"llama.cpp cannot read {file}"
    vocab = llama_cpp.llama_model_get_vocab(model)
    found = {"ids": [tokenized(vocab, text.encode(), not bare) for text in texts]}
    found["size"] = llama_cpp.llama_vocab_n_tokens(vocab)
    found["ends"] = [token for token in range(found["size"]) if llama_cpp.llama_vocab_is_eog(vocab, token)]
    if ids:
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = -(-(len(ids) + new) // 256) * 256
        settings.type_k = settings.type_v = 0  # float32
        settings.flash_attn_type = 0  # LLAMA_FLASH_ATTN_TYPE_DISABLED
        settings.n_threads = settings.n_threads_batch = 1
        context = llama_cpp.llama_init_from_model(model, settings)
        read = list(ids)
        logits = decoded(context, found["size"], read, 0)
        found["logits"] = logits.tolist()
        for _ in range(new):
            read.append(int(logits[-1].argmax()))
            logits = decoded(context, found["size"], read[-1:], len(read) - 1)
        found["new"] = read[len(ids) :]
        llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return found


def decoded(context, size, tokens, start):
    batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for place, token in enumerate(tokens):
        batch.token[place], batch.pos[place], batch.logits[place] = token, start + place, True
        batch.n_seq_id[place], batch.seq_id[place][0] = 1, 0
    assert llama_cpp.llama_decode(context, batch) == 0
    rows = [llama_cpp.llama_get_logits_ith(context, place) for place in range(len(tokens))]
    logits = np.stack([np.ctypeslib.as_array(row, (size,)).copy() for row in rows])
    llama_cpp.llama_batch_free(batch)
    return logits


def tokenized(vocab, text, special):
    room = (llama_cpp.llama_token * (len(text) + 8))()
    count = llama_cpp.llama_tokenize(vocab, text, len(text), room, len(room), special, special)
    return list(room[:count])


if __name__ == "__main__":
    main()
