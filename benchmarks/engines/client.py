"""An engine as it is used from here: started, asked, and missing with a sentence where it fails."""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.engines import ENGINES

PYTHON = Path(".venv-peers/bin/python")
ROOT = Path(__file__).resolve().parents[2]


class EngineError(RuntimeError):
    """An engine that cannot be installed, made, started or asked; the message is one sentence for a reader."""


class RemoteEngine:
    """A process that serves one engine.

    Args:
        name: as it is shown, "llama.cpp F32".
        command: starts the process; `server_command` gives the usual one.
        threads: of its libraries.

    Raises:
        EngineError: if it does not become ready.
    """

    def __init__(self, name: str, command: Sequence[str | Path], threads: int = 1):
        self.name = name
        counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        self.said = tempfile.TemporaryFile("w+")  # what it prints, for the case that it stops
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
            env={**os.environ, **counts, "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"},
        )
        try:
            self.version = self._answer()["version"]
        except EngineError:
            self.close()
            raise

    def generate(self, ids: Tensor, new: int) -> Tensor:
        """Continue prompts `[B, S]` greedily: `[B, S + new]`."""
        return self.timed(ids, new)[0]

    def timed(self, ids: Tensor, new: int) -> tuple[Tensor, float]:
        """`generate`, and the seconds of the engine's own clock, without pipe and JSON."""
        answer = self._ask(do="generate", prompts=ids.tolist(), new=new)
        return torch.cat([ids, torch.tensor(answer["answer"])], dim=1), answer["seconds"]

    def logits(self, ids: Tensor) -> Tensor:
        """Logits `[S, V]` of one text `[S]`."""
        return torch.tensor(self._ask(do="logits", ids=ids.tolist())["answer"])

    def close(self) -> None:
        """End the process."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.said):
            if stream:
                stream.close()

    def _ask(self, **question: Any) -> dict[str, Any]:
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # it has stopped, and says why where it would answer
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        line = self.process.stdout.readline()
        if not line:
            raise EngineError(f"{self.name} stopped: {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(f"{self.name} failed: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        status = self.process.wait()
        self.said.seek(0)
        lines = self.said.read().strip().splitlines()
        return f"{lines[-1] if lines else 'it said nothing'} (status {status})"


def server_command(name: str, checkpoint: Path, python: Path = PYTHON, threads: int = 1) -> list[str | Path]:
    """What starts the server of an engine in the environment of the engines."""
    kind = ENGINES[name]
    return [python, "-m", "benchmarks.engines.server", kind.module, kind.precision, checkpoint, str(threads)]


def start_engines(
    names: Sequence[str], checkpoint: Path, python: Path = PYTHON, threads: int = 1
) -> tuple[dict[str, RemoteEngine], dict[str, str]]:
    """Start these engines, one after the other; those that run, and for the others the reason."""
    running: dict[str, RemoteEngine] = {}
    missing: dict[str, str] = {}
    for name in names:
        try:
            running[name] = RemoteEngine(name, server_command(name, checkpoint, python, threads), threads)
        except EngineError as error:
            missing[name] = str(error)
    return running, missing
