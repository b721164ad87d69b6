"""Checks for the exercises: each compares an attempt with the package and names the usual mistake.

`check_rms_norm(my_function)` prints one line for every property it tries and returns whether all of them hold;
`help(check_rms_norm)` says what is asked. The exercises of a chapter are in the file that is called as its notebook,
without the number: chapters change places. All are found, none is listed. In a Chinese notebook they answer in Chinese
(language.py).
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from minimind_edu.checks.exercise import Exercise

if TYPE_CHECKING:

    def __getattr__(name: str) -> Exercise: ...


__all__ = []
for _file in iter_modules(__path__):
    for _name, _value in vars(import_module(f"{__name__}.{_file.name}")).items():
        if isinstance(_value, Exercise):
            _value.__set_name__(None, _name)
            _value.chapter = _file.name
            globals()[_name] = _value
            __all__ += [_name]
