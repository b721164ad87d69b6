"""What tests and chapters take: CPU time of all their processes, stored by file, and the order that follows from it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import durations
from tools.chapters import ROOT, notebooks


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A file of durations of its own."""
    path = tmp_path / "durations.json"
    monkeypatch.setattr(durations, "FILE", path)
    durations.stored.cache_clear()
    yield path
    durations.stored.cache_clear()


def test_each_file_that_is_named_exists_and_every_long_chapter_is():
    assert [name for name in durations.stored() if not (ROOT / name).is_file()] == []
    assert len([name for name in durations.stored() if name.endswith(".ipynb")]) > len(notebooks()) / 2


def test_what_has_been_measured_replaces_what_was_and_what_is_gone_goes(file, tmp_path):
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).touch()
    file.write_text(json.dumps({"a.py": 5, "b.py": 7, "gone.py": 9}), encoding="utf-8")
    durations.store([("a.py::x", 2.0), ("a.py::y[1]", 1.5), ("c.py::x", 1)], tmp_path)
    assert json.loads(file.read_text(encoding="utf-8")) == {"a.py": 1.8, "b.py": 7, "c.py": 0.5}


def test_chapters_that_take_longest_come_first_and_a_new_one_before_the_short_ones(file):
    long, new, short = notebooks()[:3]
    names = {long: 40.0, short: 3.0}
    file.write_text(json.dumps({path.relative_to(ROOT).as_posix(): sec for path, sec in names.items()}))
    here = Path(__file__)
    assert sorted([here, short, new, long], key=durations.longest_first) == [long, new, short, here]
    assert durations.of(new) == durations.CHAPTER and durations.of("tests/new.py") == durations.UNKNOWN


def test_the_time_of_other_processes_counts_while_they_run_and_afterwards():
    """Each child works for half a second of CPU time; one ends, and one then waits."""
    work = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\n"
    before = durations.cpu_seconds()
    subprocess.run([sys.executable, "-c", work], check=True, capture_output=True)
    with subprocess.Popen(
        [sys.executable, "-c", f"{work}input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as waiting:
        waiting.stdout.readline()
        assert 0.95 < durations.cpu_seconds() - before < 2
        waiting.communicate(b"\n")


@pytest.mark.long
def test_a_run_stores_what_its_files_take(tmp_path):
    """With the project's conftest, in two processes: what the controller stores, the workers have measured."""
    run = "import sys, pytest\nfrom tools import durations\nfrom pathlib import Path\n"
    run += f"durations.FILE = Path({str(tmp_path / 'durations.json')!r})\n"
    run += "durations.FILE.write_text('{}')\nsys.exit(pytest.main(sys.argv[1:]))"
    files = ["tests/tools/test_parted.py", "tests/tools/test_printed.py"]
    command = [sys.executable, "-c", run, "-n", "2", "-q", "--store-durations", *files]
    before = durations.FILE.stat().st_mtime_ns
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "durations.json").read_text(encoding="utf-8"))
    assert set(found) == set(files) and all(0 <= seconds < 60 for seconds in found.values())
    assert durations.FILE.stat().st_mtime_ns == before  # no worker stores its part
