"""Every program says what it does when asked, and does nothing it was not asked for."""

import importlib
import pkgutil
import sys
from unittest import mock

import pytest

import tools

TOOLS = [f"tools.{module.name}" for module in pkgutil.iter_modules(tools.__path__)]
STORING = ("ablations", "living", "routing", "sharing")
PACKAGES = ["minimind_edu.__main__", *(f"minimind_edu.trained.{name}.__main__" for name in STORING)]
PROGRAMS = [
    name
    for name in [
        *TOOLS,
        *PACKAGES,
        "minimind_edu.trained.living.copying",
        "minimind_edu.trained.living.divisors",
        "minimind_edu.trained.living.rounding",
        "minimind_edu.trained.sharing.circles",
        "benchmarks.__main__",
    ]
    if hasattr(importlib.import_module(name), "main")
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_is_all_that_help_does(program, monkeypatch, capsys):
    main = importlib.import_module(program).main
    for arguments, code in ((["--help"], 0), (["--halp"], 2)):
        monkeypatch.setattr(sys, "argv", ["it", *arguments])
        with mock.patch.multiple(
            "pathlib.Path", write_bytes=mock.DEFAULT, write_text=mock.DEFAULT, unlink=mock.DEFAULT
        ):
            with pytest.raises(SystemExit) as ended:
                main()
        assert ended.value.code == code
        told = capsys.readouterr()
        assert "usage: " in (told.out if code == 0 else told.err)


def test_there_are_programs():
    assert len(PROGRAMS) > 12 and "tools.share_card" in PROGRAMS and "tools.run_unaided" in PROGRAMS
