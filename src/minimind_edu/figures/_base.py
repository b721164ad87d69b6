"""Figure: what every interactive figure shares, whether a kernel is there or not.

Live, a figure is an ordinary anywidget. With `MINIMIND_EDU_STATIC=1` it shows itself as plain HTML instead: its state
as JSON, and inside the same element one sentence and a table for viewers that run no scripts. The book's host script
mounts the figure's own ES module on that element, so one module serves both.
"""

import json
import reprlib
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import anywidget

from minimind_edu.figures._join import join
from minimind_edu.notebook import outputs_are_stored

STATIC = Path(__file__).parent / "static"
_DIGITS = 6  # significant digits of a number on a page: more than any reader sees, fewer than machines disagree about

_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = 4
_short.maxstring = 40


def figure_names() -> list[str]:
    """Names of all figures, sorted: every module in static/ that has a default export."""
    return sorted(path.stem for path in STATIC.glob("*.js") if "\nexport default " in path.read_text(encoding="utf-8"))


def module_source(name: str) -> str:
    """The ES module of the figure `name` with its helpers inlined, ready to run from a blob URL."""
    path = STATIC / f"{name}.js"
    if not path.is_file():
        raise ValueError(f"no figure is called {name!r}; there are {', '.join(figure_names())}")
    return join(path)


def stylesheet() -> str:
    """The CSS that all figures share."""
    return (STATIC / "figure.css").read_text(encoding="utf-8")


def rounded(value: Any, name: str = "value") -> Any:
    """Return a JSON-able value with every float rounded to 6 significant digits.

    Raises:
        ValueError: if a number is not finite: JSON has no word for it.
    """
    if isinstance(value, dict):
        return {key: rounded(item, f"{name}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, f"{name}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, float):
        return value
    if value - value != 0:
        raise ValueError(f"{name} is {value}, but a figure can only hold finite numbers")
    return float(f"{value:.{_DIGITS}g}") + 0.0  # the sum turns -0.0 into 0.0


def to_json(state: dict[str, Any]) -> str:
    """Byte-stable JSON that is safe inside a <script> element: no `<` can close it or open a comment."""
    text = json.dumps(
        rounded(state, "state"), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    return text.replace("<", "\\u003c")


class Figure(anywidget.AnyWidget):
    """Base of all interactive figures.

    A subclass names its ES module in `_module`, declares JSON-able traits tagged `sync=True`, and implements
    `_summary`. `_repr_traits` names the few traits that belong in its text form.
    """

    _module: ClassVar[str]
    _repr_traits: ClassVar[tuple[str, ...]] = ()

    # ipywidgets 7 shows widgets through this method, which IPython prefers to the bundle below; 8 has it no longer.
    _ipython_display_ = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_module" in cls.__dict__:
            cls._esm = module_source(cls._module)
            cls._css = stylesheet()

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        """One sentence on what the figure shows, and its key numbers as (label, value) rows."""
        raise NotImplementedError(f"{type(self).__name__} must implement _summary()")

    def state(self) -> dict[str, Any]:
        """The figure's own traits: what the ES module reads through `model.get`."""
        names = set(self.trait_names(sync=True)) - set(Figure.class_trait_names(sync=True))
        return {name: getattr(self, name) for name in sorted(names) if not name.startswith("_")}

    def _fallback_html(self) -> str:
        """What a viewer without scripts sees, and what the book folds below the figure."""
        sentence, rows = self._summary()
        cells = "".join(
            f'<tr><th scope="row">{escape(label)}</th><td>{escape(value)}</td></tr>' for label, value in rows
        )
        return f"<p>{escape(sentence)}</p><table><tbody>{cells}</tbody></table>"

    def static_html(self) -> str:
        """The figure as one HTML element that needs no kernel: state, sentence and table."""
        return (
            f'<div class="minimind-figure" data-figure="{self._module}">'
            f'<script type="application/json">{to_json(self.state())}</script>'
            f'<div class="mm-fallback">{self._fallback_html()}</div></div>'
        )

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={_short.repr(rounded(getattr(self, name)))}" for name in self._repr_traits)
        return f"{type(self).__name__}({arguments})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if outputs_are_stored():
            return {"text/plain": repr(self), "text/html": self.static_html()}
        return super()._repr_mimebundle_(**kwargs)
