"""ctranslate2, made by its own converter for transformers."""

from pathlib import Path

import ctranslate2
import numpy as np


def version() -> str:
    """Of the engine."""
    return f"{ctranslate2.__version__}, prebuilt"


class Engine:
    """One model. It is asked in words, for its generator knows no other way: those of checkpoint.py's tokenizer."""

    def __init__(self, checkpoint: Path, precision: str, threads: int, made: Path):
        converter = ctranslate2.converters.TransformersConverter(str(checkpoint))
        folder = converter.convert(str(made / "ct2"), quantization=precision)
        self.generator = ctranslate2.Generator(folder, compute_type=precision, inter_threads=1, intra_threads=threads)

    def generate(self, prompts: list[list[int]], new: int) -> list[list[int]]:
        """The `new` most probable tokens after each prompt; t0 ends a text and is thus never chosen."""
        words = [[f"t{token}" for token in prompt] for prompt in prompts]
        lengths = {"min_length": new, "max_length": new}
        results = self.generator.generate_batch(words, include_prompt_in_result=False, end_token="t0", **lengths)
        return [result.sequences_ids[0] for result in results]

    def logits(self, ids: list[int]) -> list[list[float]]:
        """Logits `[S, V]` of the whole text at once."""
        return np.array(self.generator.forward_batch([ids]))[0].tolist()
