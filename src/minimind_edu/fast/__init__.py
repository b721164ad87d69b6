"""Faster ways to read one token after another. They stand above the model, which knows nothing of them.

    fast.decoder(model, "compiled").generate(ids, 100)
    fast.rounded_decoder(model, "int8").generate(ids, 100)

`decoding.py` chooses the way, `layout.py` gathers the weights, `token_step.py` is the step that reads them, as it is or
compiled (`compiled_steps.py`), and `compilable.py` says where that would be wrong. The tokens stay the same in each of
these ways.

`row_products.py` compiles loops for products of a few vectors, and `rows.py` holds the matrices that they read: those
of a model in float32, and those of `rounded.py`, which decodes with weights of fewer bytes and may choose other tokens.
"""

from minimind_edu.fast.decoding import WAYS, CompiledDecoder, LeanDecoder, decoder
from minimind_edu.fast.rounded import RoundedDecoder, rounded_decoder

__all__ = ["WAYS", "CompiledDecoder", "LeanDecoder", "RoundedDecoder", "decoder", "rounded_decoder"]
