"""onnxruntime-genai, made by its own model builder."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import onnxruntime_genai


def version() -> str:
    """Of the engine, and of what makes and drives its models."""
    return f"{onnxruntime.__version__}, driven by onnxruntime-genai {onnxruntime_genai.__version__}, prebuilt"


class Engine:
    """One model, with its builder's usual options for a CPU."""

    def __init__(self, checkpoint: Path, precision: str, threads: int, made: Path):
        folder, cache = made / "ort", made / "cache"
        options = {"-i": checkpoint, "-o": folder, "-p": precision, "-e": "cpu", "-c": cache}
        command = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
        command += [str(part) for option in options.items() for part in option]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode:
            raise RuntimeError(f"its model builder failed: {built.stderr.strip().splitlines()[-1]}")
        config = onnxruntime_genai.Config(str(folder))
        session = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
        config.overlay(json.dumps({"model": {"decoder": {"session_options": session}, "eos_token_id": [0]}}))
        self.model = onnxruntime_genai.Model(config)

    def generate(self, prompts: list[list[int]], new: int) -> list[list[int]]:
        """The `new` most probable tokens after each prompt; all prompts have one length."""
        length = len(prompts[0])
        generator = self._generator(len(prompts), length + new)
        generator.append_tokens(np.array(prompts, dtype=np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        return [generator.get_sequence(row)[length:].tolist() for row in range(len(prompts))]

    def logits(self, ids: list[int]) -> list[list[float]]:
        """Logits `[S, V]`, one token after the other."""
        generator, logits = self._generator(1, len(ids) + 1), []
        for token in ids:
            generator.append_tokens(np.array([[token]], dtype=np.int32))
            logits.append(generator.get_logits()[0, -1].tolist())
        return logits

    def _generator(self, batch: int, length: int) -> "onnxruntime_genai.Generator":
        """For texts of exactly this length: the token that ends one, t0, is not chosen before."""
        settings = onnxruntime_genai.GeneratorParams(self.model)
        settings.set_search_options(do_sample=False, min_length=length, max_length=length, batch_size=batch)
        return onnxruntime_genai.Generator(self.model, settings)
