"""Faster ways to read one token after another. They stand above the model, which knows nothing of them.

    fast.decoder(model).generate(ids, 100)
    fast.rounded_decoder(model, "int4").generate(ids, 100)

`decoding.py` reads with `step.cpp`, the whole step in C++, and compares it with the model, which reads where they
differ. `library.py` compiles it, `step.py` hands it the addresses of a model's weights, `matrix.py` has them in fewer
bytes, and `compilable.py` says what no comparison would show. The tokens are the model's; `rounded.py` decodes with
weights of fewer bytes and may choose other tokens.
"""

from minimind_edu.fast.decoding import WAYS, CompiledDecoder, decoder
from minimind_edu.fast.rounded import RoundedDecoder, rounded_decoder

__all__ = ["WAYS", "CompiledDecoder", "RoundedDecoder", "decoder", "rounded_decoder"]
