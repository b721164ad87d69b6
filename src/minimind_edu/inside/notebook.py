"""A model of the reader's own in a notebook: the views of the page, and the model where it is, on its own device."""

import tempfile
from pathlib import Path
from typing import Any

import anywidget
from traitlets import Dict

from minimind_edu.inside.kernel import Kernel
from minimind_edu.inside.page import MOST_TOKENS, check_runs, facts_of
from minimind_edu.inside.tokenizer import PageTokenizer, find_tokenizer, read_tokenizer
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.notebook import language, outputs_are_stored
from minimind_edu.web import book, host, keep
from minimind_edu.web.base import own_stylesheet, shared_stylesheet
from minimind_edu.web.join import join

_MOST_VIEWS = 8  # that have read a text of their own: each keeps what it read


class Inside(anywidget.AnyWidget):
    """All parts of a model at any token of any text, computed by the kernel: `Inside(model, tokenizer, "a text")`.

    Args:
        model: on any device; it may be larger than a page could hold.
        tokenizer: one of transformers or of the tokenizers library, or the folder of a tokenizer.json; None: the text
            is token ids.
        text: what is shown first.
        name: what the model is called there.
        most: how many tokens are read of a text; attention takes a byte for each pair of them and each head.

    Raises:
        ValueError: if the views cannot show this model, or read text by this tokenizer; the message says why.
    """

    _esm = join(Path(__file__).with_name("notebook.js"), language())
    _css = shared_stylesheet() + own_stylesheet("inside")
    _ipython_display_ = None  # as in figures/base.py

    data = Dict(read_only=True).tag(sync=True)

    def __init__(
        self,
        model: MiniMindForCausalLM,
        tokenizer: Any = None,
        text: str = "",
        *,
        name: str = "my model",
        most: int = MOST_TOKENS,
    ):
        check_runs(model)
        found = None if tokenizer is None else _page_tokenizer(tokenizer, model.config.vocab_size)
        super().__init__()
        text = text or ("1 2 3" if found is None else "Once upon a time")
        facts = facts_of(model, name, text, found, book.links(language()))
        most = min(most, model.config.max_position_embeddings)
        self.set_trait("data", facts | {"bits": 32, "most": most, "isKernel": True})
        self._model = model
        self._kernels: dict[str, Kernel] = {}  # of each view that is open, by its name
        self.on_msg(self._hear)

    def _hear(self, _: Any, message: dict[str, Any], buffers: Any) -> None:
        if message == {"ask": host.KEEP}:
            self.send({"asked": host.KEEP, "value": keep.message()})
            return
        view = message.pop("view")
        if message["do"] == "close":
            self._kernels.pop(view, None)
            return
        if view not in self._kernels:
            while len(self._kernels) >= _MOST_VIEWS:
                del self._kernels[next(iter(self._kernels))]  # of a page that was closed without a word
            self._kernels[view] = Kernel(
                self._model, lambda answer, buffers: self.send(answer | {"view": view}, buffers)
            )
        self._kernels[view].hear(message)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        return {"text/plain": repr(self)} if outputs_are_stored() else super()._repr_mimebundle_(**kwargs)

    def __repr__(self) -> str:
        return f"Inside({self.data['name']!r}, text={self.data['text']!r})"


def _page_tokenizer(tokenizer: Any, vocab_size: int) -> PageTokenizer:
    if isinstance(tokenizer, PageTokenizer):
        return tokenizer
    if isinstance(tokenizer, str | Path):
        file = find_tokenizer(Path(tokenizer))
        if file is None:
            raise ValueError(f"there is no tokenizer.json in {tokenizer}; give its folder, or no tokenizer and ids")
        return read_tokenizer(file, vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        if hasattr(tokenizer, "save_pretrained"):
            tokenizer.save_pretrained(folder)
        elif hasattr(tokenizer, "save"):
            tokenizer.save(f"{folder}/tokenizer.json")
        file = Path(folder, "tokenizer.json")
        if not file.is_file():
            raise ValueError(
                f"a tokenizer is one of transformers or of tokenizers, or a folder, got {type(tokenizer).__name__}"
            )
        return read_tokenizer(file, vocab_size)
