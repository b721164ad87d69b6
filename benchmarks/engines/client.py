"""An engine as it is used from here: started, asked, and missing with a sentence where it fails."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.engines import ENGINES

PYTHON = Path(".venv-peers/bin/python")
PATIENCE = 20  # seconds that an engine has to leave
ROOT = Path(__file__).resolve().parents[2]


class EngineError(RuntimeError):
    """An engine that cannot be installed, made, started or asked; the message is one sentence for a reader."""

    def __init__(self, name: str, reason: str):
        super().__init__(f"{name} {reason}")
        self.name = name


class RemoteEngine:
    """A process that serves one engine, once it has said that it is `ready`.

    Args:
        name: as it is shown, "llama.cpp F32".
        command: starts the process; `server_command` gives the usual one.
        threads: of its libraries.
    """

    def __init__(self, name: str, command: Sequence[str | Path], threads: int = 1):
        self.name = name
        counts = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
        self.output = tempfile.TemporaryFile("w+")  # what it prints, for the case that it stops
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.output,
            text=True,
            env={**os.environ, **counts, "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"},
        )

    def ready(self) -> str:
        """Wait until the engine is made and loaded; its version.

        Raises:
            EngineError: if it cannot be.
        """
        return self._answer()["version"]

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
        """End the process: without questions it tidies up and leaves."""
        try:
            self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        self.output.close()

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
            raise EngineError(self.name, f"stopped: {self._last_words()}")
        answer = json.loads(line)
        if "error" in answer:
            raise EngineError(self.name, f"failed: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        status = self.process.wait()
        self.output.seek(0)
        lines = self.output.read().strip().splitlines()
        return f"{lines[-1] if lines else 'it said nothing'} (status {status})"


def server_command(name: str, checkpoint: Path, python: Path, threads: int) -> list[str | Path]:
    """What starts the server of an engine in the environment of the engines."""
    kind = ENGINES[name]
    return [python, "-m", "benchmarks.engines.server", kind.module, kind.precision, checkpoint, str(threads)]


@dataclass
class Engines:
    """Those that run, those that do not with the reason, and the versions of the first."""

    running: dict[str, RemoteEngine] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def drop(self, name: str, error: EngineError) -> None:
        """Go on without this one."""
        self.missing[name] = str(error)
        self.running.pop(name).close()

    def close(self) -> None:
        for engine in self.running.values():
            engine.close()
        self.running.clear()


def start_engines(names: Iterable[str], checkpoint: Path, python: Path, threads: int = 1) -> Engines:
    """All of these, made from one checkpoint at the same time, for making them takes long."""
    engines = Engines({n: RemoteEngine(n, server_command(n, checkpoint, python, threads), threads) for n in names})
    for name, engine in list(engines.running.items()):
        try:
            engines.versions[name] = engine.ready()
        except EngineError as error:
            engines.drop(name, error)
    return engines
