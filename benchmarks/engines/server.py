"""One engine behind a pipe: `python -m benchmarks.engines.server MODULE PRECISION CHECKPOINT THREADS`.

A line of JSON asks, a line of JSON answers: {"do": "generate", "prompts": [[5, 7]], "new": 2} gives
{"answer": [[3, 9]], "seconds": 0.01}. The first line says that the engine is ready, or why it is not.
"""

import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO


def serve(engine: Any, questions: TextIO, answers: TextIO, clock: Any) -> None:
    """Answer until there are no more questions; an error is an answer, too."""
    for line in questions:
        question = json.loads(line)
        work = getattr(engine, question.pop("do"))
        try:
            start = clock()
            answer = {"answer": work(**question)}
            answer["seconds"] = clock() - start
        except Exception as error:
            answer = {"error": in_words(error)}
        tell(answers, answer)


def tell(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def in_words(error: Exception) -> str:
    """The first line of what it says, and its kind where it says little."""
    lines = str(error).strip().splitlines() or [""]
    return lines[0] if len(lines[0]) > 20 else f"{type(error).__name__}: {lines[0]}"


def main() -> int:
    module, precision, checkpoint, threads = sys.argv[1:]
    # what an engine prints must not be taken for an answer
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as made:
        try:
            engine = importlib.import_module(f"benchmarks.engines.{module}")
            loaded = engine.Engine(Path(checkpoint), precision, int(threads), Path(made))
        except Exception as error:
            tell(answers, {"error": in_words(error)})
            return 1
        tell(answers, {"ready": True, "version": engine.version()})
        # CPU time counts every thread, so it says how long something takes only when there is one
        serve(loaded, sys.stdin, answers, time.process_time if threads == "1" else time.perf_counter)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
