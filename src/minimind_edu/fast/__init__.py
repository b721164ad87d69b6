"""Faster ways to read one token after another. They stand above the model, which knows nothing of them.

    fast.decoder(model, "compiled").generate(ids, 100)

`decoding.py` chooses the way, `packing.py` lays weights out, `token_step.py` is the step that `compiled_steps.py`
compiles, and `compilable.py` says where that would be wrong or impossible.
"""

from minimind_edu.fast.decoding import WAYS, CompiledDecoder, decoder

__all__ = ["WAYS", "CompiledDecoder", "decoder"]
