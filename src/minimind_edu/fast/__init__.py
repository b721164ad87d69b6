"""Faster ways to read one token after another. They stand above the model, which knows nothing of them.

    fast.decoder(model).generate(ids, 100)
    fast.rounded_decoder(model, "int4").generate(ids, 100)

`decoding.py` chooses the way, and `compilable.py` says where one would be wrong. `step.cpp` is the whole step in C++:
`library.py` compiles it, `step.py` hands it the addresses of a model's weights, `matrix.py` has them in fewer bytes.
`token_step.py` is the step in torch, for where there is no compiler. The tokens stay the same in each of these ways;
`rounded.py` decodes with weights of fewer bytes and may choose other tokens.
"""

from minimind_edu.fast.decoding import WAYS, CompiledDecoder, LeanDecoder, decoder
from minimind_edu.fast.rounded import RoundedDecoder, rounded_decoder

__all__ = ["WAYS", "CompiledDecoder", "LeanDecoder", "RoundedDecoder", "decoder", "rounded_decoder"]
