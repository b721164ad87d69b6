"""Faster ways to read one token after another. They stand above the model, which knows nothing of them.

    fast.decoder(model, "compiled").generate(ids, 100)
    fast.rounded_decoder(model, "int8").generate(ids, 100)

`decoding.py` chooses the way, `packing.py` lays weights out, `token_step.py` is the step that `compiled_steps.py`
compiles, and `compilable.py` says where that would be wrong or impossible. Those give the same tokens.

`rounded.py` decodes with weights of fewer bytes, which may choose others: `rows.py` holds such weights, and
`row_products.py` multiplies them.
"""

from minimind_edu.fast.decoding import WAYS, CompiledDecoder, decoder
from minimind_edu.fast.rounded import RoundedDecoder, rounded_decoder

__all__ = ["WAYS", "CompiledDecoder", "RoundedDecoder", "decoder", "rounded_decoder"]
