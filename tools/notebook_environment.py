"""The environment in which a chapter runs when its outputs are stored and when they are compared.

`tools.refresh` and the root conftest both take it from here, so what one stores the other finds again. It must be set
before torch is imported, which reads the number of threads once.
"""

import os

# Tensors as small as those of the tests and chapters are computed by one thread several times as fast as by two, most
# of all on a busy machine. No printed number may depend on it: a reader's kernel takes as many threads as torch likes.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

ENVIRONMENT = ONE_THREAD | {
    "MINIMIND_EDU_STATIC": "1",  # figures show themselves as HTML that needs no kernel
    "PYTHONUTF8": "1",  # the same text on a machine with another locale
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # ipykernel's debugger warns of frozen modules otherwise
}

# And when they are compared, but not when they are stored: what a cell times is not compared, so two rounds will do,
# the first of which warms up.
COMPARED = {"MINIMIND_EDU_MOST_ROUNDS": "2"}

CELL_TIMEOUT = 600  # seconds; no cell works longer than 15, so only a cell that hangs ever meets it


def apply() -> None:
    """Set the environment for this process and for every kernel that it starts."""
    os.environ.update(ENVIRONMENT)
