"""step.cpp is compiled once for a source and a processor, kept whole, and whoever cannot compile it says why."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from minimind_edu.fast import library


def load():
    """What `why_no_library` says in a process that has not asked before."""
    found = library._tried.__wrapped__(None)
    return found if isinstance(found, str) else None


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """A folder in which nothing has been kept yet."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    return tmp_path / "hub" / "minimind_edu"


def test_without_a_compiler_it_is_told_what_to_install(kept, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert load() == f"FileNotFoundError, no C++ compiler is found; {library.INSTALL}"
    monkeypatch.setenv("CXX", "my-compiler -O1")
    assert load().startswith("FileNotFoundError, no C++ compiler is found as my-compiler; ")


def compiler(path, says, status):
    """A compiler that knows its macros and compiles nothing."""
    path.write_text(f"#!/bin/sh\ncase \"$*\" in *-dM*) echo '#define X'; exit 0;; esac\n{says}\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_a_compiler_that_fails_is_told_with_what_it_said_and_nothing_is_kept(kept, monkeypatch, tmp_path):
    says = "echo 'x.cpp:1: fatal error: no such header' >&2; echo >&2; printf 'more\\377\\nand\\nmore\\n' >&2"
    monkeypatch.setenv("CXX", compiler(tmp_path / "says", says, 3))
    assert load() == ("CalledProcessError, x.cpp:1: fatal error: no such header more\ufffd and; " + library.INSTALL)
    monkeypatch.setenv("CXX", compiler(tmp_path / "silent", "", 3))
    assert "exit status 3" in load()
    monkeypatch.setenv("CXX", compiler(tmp_path / "lazy", "", 0))
    assert load().startswith("OSError, ") and not list(kept.iterdir())


def test_an_error_without_words_has_a_sentence_too():
    assert library._in_words(RuntimeError()) == "RuntimeError, no message"
    assert library._in_words(RuntimeError("\n")) == "RuntimeError, no message"


def test_compiled_once_and_again_only_for_another_source_processor_or_flags(kept, monkeypatch):
    ran, loaded, instructions = [], [], []

    def watched(command):
        ran.append(command)
        if "-o" in command:
            Path(command[-1]).write_text("a library")
        return instructions[-1]

    monkeypatch.setattr(library, "_run", watched)
    monkeypatch.setattr(library.ctypes, "CDLL", loaded.append)
    for macros in ("#define __AVX2__ 1", "#define __AVX2__ 1", "#define __AVX512F__ 1"):
        instructions.append(macros)
        library._load("code")
    assert sum("-o" in command for command in ran) == 2 == len(list(kept.iterdir()))
    assert loaded[1] in map(str, kept.iterdir())
    Path(loaded[1]).write_text("a lib")
    instructions.append("#define __AVX2__ 1")
    library._load("code")
    assert loaded[1] not in loaded[2:], "one that was cut off is compiled anew"
    assert len(list(kept.iterdir())) == 2 and Path(loaded[1]).read_text() == "a library"
    monkeypatch.setenv("CXXFLAGS", "-g")
    library._load("code")
    assert len(list(kept.iterdir())) == 3
    library._load("other code")
    assert len(list(kept.iterdir())) == 4


def test_what_the_environment_adds_weakens_nothing(monkeypatch):
    monkeypatch.setenv("CXXFLAGS", "-O0 -g")
    its = library.flags("x86_64")
    assert its[:2] == ("-O0", "-g") and its[2] == "-O3" and "-march=native" in its
    assert "-mcpu=native" in library.flags("arm64") and "-march=native" not in library.flags("aarch64")


PROGRAM = """
import torch
from minimind_edu.fast.library import why_no_library
from minimind_edu.fast.matrix import rounded
print(why_no_library() or rounded(torch.ones(3, 8), "int8").restored().sum())
"""


def loading(home, **environment):
    """A process that loads the library and calls it; in this one it is loaded already."""
    environment = {**os.environ, "TORCH_HOME": str(home), **environment}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True)


def works(process):
    return (process.communicate()[0].strip(), process.returncode) == ("tensor(24.)", 0)


@pytest.mark.long
def test_what_is_kept_disturbs_nobody(own_step, kept, tmp_path):
    """Two processes that compile at once, files that were cut off (which end a process that loads them), no folder."""
    assert works(loading(tmp_path))
    [made] = kept.iterdir()
    whole = made.read_bytes()
    (tmp_path / "whole").write_bytes(whole)
    made.unlink()
    copies = tmp_path / "copies"  # a compiler that need not compile: it takes a second, in which the other one begins
    copies.write_text(
        f'#!/bin/sh\ncase "$*" in *-dM*) exec {library.cpp_compiler()[0]} "$@";; esac\n'
        f"sleep 1; for last; do :; done; exec cp {tmp_path}/whole $last\n"
    )
    copies.chmod(0o755)
    for process in [loading(tmp_path, CXX=str(copies)) for _ in range(2)]:
        assert works(process)
    for spoiled in (whole[: len(whole) // 2], b"", b"junk"):
        made.write_bytes(spoiled)
        assert works(loading(tmp_path, CXX=str(copies)))
        assert list(kept.iterdir()) == [made] and made.read_bytes() == whole
    assert works(loading(tmp_path / "whole", CXX=str(copies))), "where nothing can be kept"
