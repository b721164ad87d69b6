"""What llama.cpp makes of a GGUF file, asked in a process of its own: a line of JSON in, a line of JSON out.

It runs in the environment of the other engines (`make engines`), which has llama-cpp-python and of this package only
the one file that needs nothing else.
"""

import json
import sys
from pathlib import Path

import llama_cpp

sys.path.append(str(Path(__file__).parents[1] / "src" / "minimind_edu" / "verdicts"))

from llama_cpp_file import LlamaCppFile


def main():
    print(json.dumps([answer(**question) for question in json.load(sys.stdin)]))


def answer(file, ids=(), new=0, texts=(), bare=False):
    """Logits `[S, V]` of the ids, the `new` most probable tokens after them, and the ids of texts.

    Texts are read as they are, with the tokens that frame them and controls by their names; `bare`, without both.
    """
    with LlamaCppFile(file, len(ids) + new + 1) as model:
        found = {"ids": [tokenized(model.vocab, text.encode(), not bare) for text in texts]}
        found["size"] = model.vocab_size
        found["ends"] = [token for token in range(model.vocab_size) if llama_cpp.llama_vocab_is_eog(model.vocab, token)]
        if ids:
            logits = model.logits(ids)
            found["logits"], found["new"] = logits.tolist(), []
            for _ in range(new):
                found["new"].append(int(logits[-1].argmax()))
                logits = model.logits(found["new"][-1:])
    return found


def tokenized(vocab, text, special):
    room = (llama_cpp.llama_token * (len(text) + 8))()
    count = llama_cpp.llama_tokenize(vocab, text, len(text), room, len(room), special, special)
    return list(room[:count])


if __name__ == "__main__":
    main()
