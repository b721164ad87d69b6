"""Prove without Colab that every chapter runs there.

    python -m tools.colab                      in .venv-colab, made when it is missing or its pins have changed
    python -m tools.colab --python PYTHON      with another Python than the one chosen

With Colab's versions (tools/colab_requirements.txt): every chapter that carries the package runs from top to bottom,
live, with no network and no checkout in sight, and says what is stored; installing the package changes no installed
version.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools import notebook_environment
from tools.chapters import ROOT, notebooks
from tools.durations import longest_first
from tools.self_contained import build_wheel, write_all

ENVIRONMENT = ROOT / ".venv-colab"
PINS = ROOT / "tools" / "colab_requirements.txt"
RUNNER = [ROOT / "tools" / name for name in ("run_unaided.py", "printed.py")]

COLABS_PYTHON = "python3.13"

# torch says this of Python 3.13.0 alone, whenever something is compiled.
QUIET = {"PYTHONWARNINGS": "ignore:Guards may run slower"}

# Linux can give a process a network of its own, with nothing in it.
UNSHARE = ["unshare", "--map-root-user", "--net"]

# Elsewhere Python itself refuses; it runs this file at its start.
SITECUSTOMIZE = """\
import socket


def refuse(*arguments):
    raise OSError("the network is switched off")


class Socket(socket.socket):
    def connect(self, address):
        return refuse() if self.family != socket.AF_UNIX else super().connect(address)


socket.socket, socket.getaddrinfo = Socket, refuse
"""


class ColabError(Exception):
    """The proof failed; the message says in one sentence where."""


def run(*command: str | Path, **options) -> subprocess.CompletedProcess:
    """Run a command, at the root if no other `cwd` is given; `env` adds to what a reader's environment would hold."""
    ours = {"PYTHONPATH", *notebook_environment.ENVIRONMENT}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {"PYDEVD_DISABLE_FILE_VALIDATION": "1"} | options.pop("env", {})
    words = [str(word) for word in command]
    return subprocess.run(words, env=environment, **{"cwd": ROOT} | options)


def works(*command: str) -> bool:
    """Whether the command exists and succeeds."""
    try:
        return run(*command, capture_output=True).returncode == 0
    except OSError:
        return False


def pythons(named: str | None) -> list[str]:
    """The Pythons to try, best first: the one named, or else Colab's where there is one, and the one that runs this."""
    if named:
        return [named]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [COLABS_PYTHON, *sorted(map(str, pyenv.glob(f"*/bin/{COLABS_PYTHON}")), reverse=True)]
    usable = [python for python in found if works(python, "-c", "import ensurepip, venv")]
    return [*usable[:1], sys.executable]


def make_environment(python: str) -> bool:
    """Make the environment with `python` unless it is there with these pins; return whether it is there now."""
    version = run(python, "--version", capture_output=True, text=True).stdout
    stamp, made_from = ENVIRONMENT / "made_from", version + PINS.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_from:
        return True
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    return run("sh", "tools/env.sh", ENVIRONMENT.name, PINS, env={"PYTHON": python}).returncode == 0


def environments_python() -> Path:
    return ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def pip(*arguments: str | Path, **options) -> subprocess.CompletedProcess:
    return run(environments_python(), "-m", "pip", *arguments, **options)


def versions() -> set[str]:
    """Everything that is installed, but the package itself."""
    listed = pip("freeze", "--all", capture_output=True, text=True, check=True).stdout
    return {line for line in listed.splitlines() if not line.startswith("minimind-edu")}


def without_network(folder: Path) -> tuple[list[str], dict[str, str], str]:
    """What to put in front of a command and into its environment to take its network away, and the means' name."""
    if works(*UNSHARE, "true"):
        return UNSHARE, {}, "unshare"
    blocker = folder / "no_network"
    blocker.mkdir()
    (blocker / "sitecustomize.py").write_text(SITECUSTOMIZE, encoding="utf-8")
    return [], {"PYTHONPATH": str(blocker)}, "a Python that refuses"


def run_unaided(chapters: list[Path]) -> str:
    """Run each chapter, with the package inside, alone in a folder; return how the network was taken away."""
    chapters = sorted(chapters, key=longest_first)
    with tempfile.TemporaryDirectory() as name:
        home, reader = Path(name) / "home", Path(name) / "reader"
        home.mkdir()
        notebooks = write_all(reader, chapters)
        (reader / "tools").mkdir()
        for file in RUNNER:
            shutil.copy(file, reader / "tools")
        prefix, environment, means = without_network(home)
        command = [*prefix, environments_python(), "-m", "tools.run_unaided", *(path.name for path in notebooks)]
        environment |= {"HOME": str(home)} | QUIET | notebook_environment.ONE_THREAD | notebook_environment.COMPARED
        if run(*command, env=environment, cwd=reader).returncode:
            raise ColabError("A chapter that carries the package does not run unaided as it is stored; see above.")
    return means


def install_package() -> int:
    """Install the package's wheel as a chapter's first cell does; return how many versions were there and still are.

    pip could change any of them here, as it could there, if the package's requirements asked for it.
    """
    before, complaints = versions(), pip("check", capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as name:
        pip("install", "--quiet", build_wheel(Path(name)), check=True)
    if changed := versions() ^ before:
        raise ColabError(f"Installing the package changed {', '.join(sorted(changed))}.")
    if (now := pip("check", capture_output=True, text=True).stdout) != complaints:
        raise ColabError(f"Installing the package breaks requirements: {now.strip()}.")
    if run(environments_python(), "-c", "import minimind_edu.figures", cwd=ENVIRONMENT).returncode:
        raise ColabError("What the first cell installs cannot be imported; see above.")
    return len(before)


def prove(named: str | None, chapters: list[Path]) -> str:
    """Take all steps and return the summary."""
    started = time.perf_counter()
    if not any(make_environment(python) for python in pythons(named)):
        raise ColabError("No environment could be made; pip says above why.")
    pip("uninstall", "--yes", "minimind-edu", capture_output=True, check=True)
    print("1 of 2: every chapter that carries the package runs, without a network, and is compared.", flush=True)
    means = run_unaided(chapters)
    print("2 of 2: the package is installed, and no installed version changes.", flush=True)
    count = install_package()
    python = run(environments_python(), "--version", capture_output=True, text=True).stdout.strip()
    minutes = (time.perf_counter() - started) / 60
    return (
        f"{python} with Colab's versions: {len(chapters)} chapters ran unaided (network taken away by {means}) and "
        f"said what is stored; {count} installed versions are as they were. {minutes:.1f} minutes."
    )


def main(arguments: list[str] | None = None) -> int:
    """Prove it, or say in one sentence what failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.colab", description="Prove without Colab that every chapter runs there."
    )
    parser.add_argument("--python", help=f"default: {COLABS_PYTHON} if there is one, else this one")
    options = parser.parse_args(arguments)
    try:
        print(prove(options.python, notebooks()))
    except ColabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
