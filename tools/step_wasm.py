"""Write `figures/inside/step.wasm`: `fast/step.cpp` for pages, by clang and its linker for WebAssembly.

    python -m tools.step_wasm          (on Debian and Ubuntu: apt install clang lld)

Whoever uses the package needs no clang. The file ends with the name of the compiler that wrote it: only that one is
sure to write the same bytes again, and `tests/fast/test_step_wasm.py` asks it to.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

from minimind_edu.fast.library import SOURCE
from minimind_edu.inside.page import STEP

SECTION = b"compiler"  # a custom section, which engines skip
# -O3 makes it half as large again and no faster to speak of. SIMD is what every browser has had since 2023.
FLAGS = (
    "--target=wasm32", "-O2", "-msimd128", "-mbulk-memory", "-std=c++20", "-ffreestanding", "-nostdlib",
    "-fno-exceptions", "-fno-rtti", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno",
    "-Wl,--no-entry,--strip-all,--export=read_tokens,--export=room,--export=__heap_base",
)  # fmt: skip


def compiler() -> str | None:
    """What clang calls itself here, in one line; None without clang."""
    try:
        version = subprocess.run(["clang++", "--version"], capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return version.splitlines()[0]


def compiled() -> bytes:
    """The module, by the clang that is here."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "step.wasm")
        subprocess.run(["clang++", *FLAGS, str(SOURCE), "-o", str(made)], check=True)
        section = bytes([len(SECTION)]) + SECTION + (compiler() or "").encode()
        return made.read_bytes() + bytes([0, len(section)]) + section  # a length under 128 is one byte


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    STEP.write_bytes(compiled())
    print(f"{STEP}: {STEP.stat().st_size:,} bytes, by {compiler()}")


if __name__ == "__main__":
    main()
