"""Interactive figures: a folder each, with one Python class and one plain ES module, alive with a kernel and without.

Every folder with a `figure.js` is found, none is listed; its class is imported from here: `from minimind_edu.figures
import MixtureWalk`. `Inside`, a model of the reader's own, needs its kernel and is no such figure.
"""

from importlib import import_module
from typing import Any

from minimind_edu.figures.quiz import choice
from minimind_edu.web.base import Figure, figure_names, module_source, own_stylesheet, shared_stylesheet
from minimind_edu.web.keep import keep_script
from minimind_edu.web.living_model import asks_for_living, living_script


def __getattr__(name: str) -> Any:
    if name != "Inside":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from minimind_edu.inside.notebook import Inside
    except ModuleNotFoundError as error:  # a notebook that carries the package does without its largest page
        raise AttributeError("Inside needs the whole package: install it as README.md tells") from error
    return Inside


def class_of(name: str) -> type[Figure]:
    """The class of the figure `name`: the one that its folder defines."""
    module = import_module(f"{__name__}.{name}")
    kinds = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Figure)]
    [found] = [kind for kind in kinds if kind.__module__ == module.__name__]
    return found


__all__ = [
    "Figure",
    "asks_for_living",
    "choice",
    "class_of",
    "figure_names",
    "keep_script",
    "living_script",
    "module_source",
    "own_stylesheet",
    "shared_stylesheet",
]
for _name in figure_names():
    globals()[class_of(_name).__name__] = class_of(_name)
    __all__ += [class_of(_name).__name__]
