"""The optional extra is asked for in words where transformers is missing or too old."""

import importlib
import sys
import types

import pytest


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (None, "needs transformers, which is an optional extra: pip install 'transformers>=5.0'"),
        ("4.57.6", "needs transformers 5 or newer, found 4.57.6: pip install 'transformers>=5.0'"),
        ("4.58.0.dev0", "needs transformers 5 or newer, found 4.58.0.dev0"),
    ],
)
def test_says_what_to_install(version, message, monkeypatch):
    found = None  # None in sys.modules makes an import fail
    if version is not None:
        found = types.ModuleType("transformers")
        found.__version__ = version
    monkeypatch.setitem(sys.modules, "transformers", found)
    monkeypatch.delitem(sys.modules, "minimind_edu.hf", raising=False)
    with pytest.raises(ImportError, match=f"^minimind_edu.hf {message}"):
        importlib.import_module("minimind_edu.hf")
