"""The optional extra: imported on demand, and only then asked for."""

import subprocess
import sys
import textwrap


def run(code):
    """What a fresh Python prints."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_package_does_not_import_transformers():
    assert run("import sys, minimind_edu; print('transformers' in sys.modules)") == "False"


def test_says_what_to_install_when_transformers_is_missing():
    message = run("""
        import sys
        sys.modules["transformers"] = None  # makes the import fail
        try:
            import minimind_edu.hf
        except ImportError as error:
            print(error)
    """)
    assert message.startswith("minimind_edu.hf needs transformers, which is an optional extra: ")
    assert message.endswith("pip install 'transformers>=5.0'")


def test_says_so_when_transformers_is_too_old():
    message = run("""
        import sys, types
        sys.modules["transformers"] = types.ModuleType("transformers")
        sys.modules["transformers"].__version__ = "4.57.6"
        try:
            import minimind_edu.hf
        except ImportError as error:
            print(error)
    """)
    assert "needs transformers 5 or newer, found 4.57.6" in message
