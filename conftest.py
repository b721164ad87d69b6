"""What every test run shares. `pytest --nbval` works as typed, here or below, without further options."""

from tools import notebook_environment

# Built pages contain copies of the chapters, which are not the chapters.
collect_ignore = ["_build"]

NBVAL_DEFAULT_TIMEOUT = 2000

notebook_environment.apply()


def pytest_configure(config):
    """Give nbval what it needs: the kernel of this environment, and patience that ends."""
    option = config.option
    if not getattr(option, "nbval", False):
        return
    if not option.nbval_kernel_name:
        option.nbval_current_env = True
    if option.nbval_cell_timeout == NBVAL_DEFAULT_TIMEOUT:
        option.nbval_cell_timeout = notebook_environment.CELL_TIMEOUT
