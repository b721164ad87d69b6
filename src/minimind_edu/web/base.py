"""Figure: what every interactive figure shares, whether a kernel is there or not.

Live, a figure is an ordinary anywidget. With `MINIMIND_EDU_STATIC=1` it shows itself as plain HTML instead: its state
as JSON, and inside the same element one sentence and a table for viewers that run no scripts. The book's host script
mounts the figure's own ES module on that element, so one module serves both.
"""

import json
import math
import reprlib
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import anywidget
from traitlets import Bool

from minimind_edu.device import one_thread
from minimind_edu.notebook import language, outputs_are_stored
from minimind_edu.web import host, keep, living_model, palette
from minimind_edu.web.join import join, styles
from minimind_edu.web.traits import limits_of
from minimind_edu.words import in_state, translated

WEB = Path(__file__).parent
FOLDER = WEB.parent / "figures"
# the folders whose views of a model are those of stage/, and the styles of these views
PARTS = {  # of a figure's styles that others have, too
    "inside": ("stage/style", "stage/link", "../inside/frame"),
    "inside/beside": ("stage/style", "stage/link", "../inside/frame", "../inside/style"),
    "inside/verse": ("../inside/frame",),
    "minimind_live": ("stage/style", "stage/link", "stage/road"),
    "guess_first": ("stage/link", "stage/road"),
    **dict.fromkeys(("cache_stepper", "counted_tokens", "mixture_walk", "square_to_row"), ("kit/transport",)),
    **dict.fromkeys(("sixteen_heads", "two_neurons"), ("kit/story",)),
    **dict.fromkeys(("residual_stream", "sinking_words"), ("../figures/residual_stream/stripes",)),
}
_DIGITS = 6  # significant digits of a number on a page: more than any reader sees, fewer than machines disagree about

_short = reprlib.Repr()
_short.maxlist = _short.maxtuple = 4
_short.maxstring = 40


def figure_names() -> list[str]:
    """Names of all figures, sorted: every folder with a figure.js."""
    return sorted(path.parent.name for path in FOLDER.glob("*/figure.js"))


def module_source(name: str, language: str = "en") -> str:
    """The ES module of the figure `name` with its helpers inlined, ready to run from a blob URL.

    In another language than English its words are those of `words.zh.js` beside `words.js`, where there is one.
    """
    path = FOLDER / name / "figure.js"
    if not path.is_file():
        raise ValueError(f"no figure is called {name!r}; there are {', '.join(figure_names())}")
    return join(path, language)


def shared_stylesheet() -> str:
    """The CSS that all figures share: the palette as variables, and the rules that use them."""
    colors = f".mm-fig, .mm-keep, .minimind-figure {{ {palette.css_variables()} }}\n"
    return colors + styles(WEB / "kit" / "figure.css")


def own_stylesheet(name: str) -> str:
    """The CSS of the figure `name` alone, with that of the views that it shares."""
    folder = (FOLDER if name in figure_names() else WEB.parent) / name
    return styles(*(WEB / f"{part}.css" for part in PARTS.get(name, ())), folder / "style.css")


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
    if not math.isfinite(value):
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

    A subclass in a folder of figures/ has the ES module of that folder (any other names one in `_module`). It
    declares JSON-able traits tagged `sync=True` and implements `_summary`. `_repr_traits` names the few traits that
    belong in its text form. Traits bound their own values, so that an assignment is refused like an argument; what is
    measured, not chosen, is read-only.

    Args:
        compact: the picture and its one control alone, as at the head of a chapter.

    Raises:
        TypeError: if an argument is no trait of the figure.
        TraitError: if a value is not one that its trait takes.
    """

    _module: ClassVar[str]
    _repr_traits: ClassVar[tuple[str, ...]] = ()

    compact = Bool(False).tag(sync=True)

    # ipywidgets 7 shows widgets through this method, which IPython prefers to the bundle below; 8 has it no longer.
    _ipython_display_ = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        package, _, name = cls.__module__.rpartition(".")
        if package == "minimind_edu.figures" and not hasattr(cls, "_module"):  # widgets make subclasses of their own
            cls._module = name
        if "_module" in cls.__dict__:
            cls._esm = module_source(cls._module, language())
            cls._css = shared_stylesheet() + own_stylesheet(cls._module)

    @one_thread()  # a live figure computes its first state here
    def __init__(self, **kwargs: Any) -> None:
        if unknown := sorted(name for name in kwargs if not self.has_trait(name)):
            raise TypeError(
                f"{type(self).__name__} has no argument {', '.join(unknown)}; it has {', '.join(self._choices())}"
            )
        super().__init__(**kwargs)
        self.on_msg(self._answer)

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        """Send a view what it asks for, and what is too large to travel with every figure."""
        for asked, answer in {host.LIVING: living_model.message, host.KEEP: keep.message}.items():
            if message == {"ask": asked}:
                self.send({"asked": asked, "value": answer()})

    def _summary(self) -> tuple[str, list[tuple[str, str]]]:
        """One sentence on what the figure shows, and its key numbers as (label, value) rows."""
        raise NotImplementedError(f"{type(self).__name__} must implement _summary()")

    @classmethod
    def _own_traits(cls) -> list[str]:
        names = set(cls.class_trait_names(sync=True)) - set(Figure.class_trait_names(sync=True))
        return sorted(name for name in names if not name.startswith("_"))

    @classmethod
    def _choices(cls) -> list[str]:
        """The traits that are chosen, by arguments or assignments."""
        return [name for name in cls._own_traits() if not getattr(cls, name).read_only]

    @classmethod
    def limits(cls) -> dict[str, dict[str, Any]]:
        """What a page may set from outside, and to which values: see `limits_of`."""
        found = {name: limits_of(getattr(cls, name)) for name in cls._choices()}
        return {name: limits for name, limits in found.items() if limits is not None}

    @one_thread()
    def state(self) -> dict[str, Any]:
        """The figure's own traits: what the ES module reads through `model.get`."""
        shape = {"compact": True} if self.compact else {}  # a whole figure, as notebooks store it, says nothing of this
        return shape | {name: getattr(self, name) for name in self._own_traits()}

    def _fallback_html(self) -> str:
        """What a viewer without scripts sees, and what the book folds below the figure."""
        sentence, rows = self._summary()
        cells = "".join(
            f'<tr><th scope="row">{escape(translated(label))}</th><td>{escape(translated(value))}</td></tr>'
            for label, value in rows
        )
        return f"<p>{escape(translated(sentence))}</p><table><tbody>{cells}</tbody></table>"

    @one_thread()
    def static_html(self) -> str:
        """The figure as one HTML element that needs no kernel: state, sentence and table as the notebook says them."""
        return host.element(self._module, to_json(in_state(self.state(), translated)), self._fallback_html())

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={_short.repr(rounded(getattr(self, name)))}" for name in self._repr_traits)
        return f"{type(self).__name__}({arguments})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if outputs_are_stored():
            return {"text/plain": repr(self), "text/html": self.static_html()}
        return super()._repr_mimebundle_(**kwargs)
