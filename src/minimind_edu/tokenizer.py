"""Text to token ids and back, with the tokenizer that comes with a model.

    tokenizer = Tokenizer.from_folder("MiniMind2/")
    prompt = tokenizer.apply_chat_template([{"role": "user", "content": "你好"}], add_generation_prompt=True)
    ids, mask = tokenizer.encode_batch([prompt], add_special_tokens=False)
    for text in tokenizer.decode_stream(model.stream(ids, 100, attention_mask=mask), skip_special_tokens=True):
        print(text, end="", flush=True)

The work is done by Hugging Face's tokenizers library, optional and imported on demand; this class reads the files
beside it, pads batches on the left as generation needs it, and streams without cutting characters in half. Names and
defaults are those of transformers. The model itself knows nothing of text: without a tokenizer, ids work as ever.
MiniMind: `model/tokenizer.json` and `model/tokenizer_config.json`.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from minimind_edu.chat_template import render_chat
from minimind_edu.text_stream import whole_characters
from minimind_edu.tokenizer_files import chat_template, read_tokens, special_tokens
from minimind_edu.weights.files import read_json
from minimind_edu.weights.hub import locate


class Tokenizer:
    """One tokenizer with its special tokens and its chat template.

    Attributes:
        tokens: the `tokenizers.Tokenizer` that does the work.
        special_tokens: the text of each, by role: "bos_token", "eos_token", "pad_token", ...
        chat_template: Jinja source, or None.
    """

    def __init__(self, tokens: Any, special_tokens: Mapping[str, str] | None = None, chat_template: str | None = None):
        tokens.no_truncation()  # a file may ask for either, from the day it was trained
        tokens.no_padding()
        self.tokens = tokens
        self.special_tokens = dict(special_tokens or {})
        self.chat_template = chat_template

    @classmethod
    def from_folder(
        cls,
        path: str | os.PathLike[str],
        download: bool = False,
        cache_dir: str | os.PathLike[str] | None = None,
        revision: str | None = None,
    ) -> "Tokenizer":
        """Read tokenizer.json, and tokenizer_config.json and chat_template.jinja if they are there.

        Args:
            path: a model's folder, or "user/name" on the Hugging Face Hub.
            download, cache_dir, revision: as in `from_checkpoint`.

        Raises:
            ImportError: if the tokenizers library is missing.
            FileNotFoundError: if there is no such folder, or no tokenizer.json in it.
            ValueError: if a file cannot be read.
        """
        folder = locate(path, download, cache_dir, revision, weights=False)
        if folder.name == "tokenizer.json":
            folder = folder.parent
        tokens = read_tokens(folder / "tokenizer.json")
        beside = folder / "tokenizer_config.json"
        described = read_json(beside) if beside.is_file() else {}
        return cls(tokens, special_tokens(described), chat_template(folder, described))

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, added ones included; a model's embedding may have more rows."""
        return self.tokens.get_vocab_size()

    @property
    def bos_token_id(self) -> int | None:
        return self._id_of("bos_token")

    @property
    def eos_token_id(self) -> int | None:
        return self._id_of("eos_token")

    @property
    def pad_token_id(self) -> int | None:
        return self._id_of("pad_token")

    def _id_of(self, role: str) -> int | None:
        text = self.special_tokens.get(role)
        return None if text is None else self.tokens.token_to_id(text)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text.

        Args:
            text: special tokens that are written out in it are read as such.
            add_special_tokens: also add those that the tokenizer puts around a text (MiniMind's adds none).
        """
        return self.tokens.encode(text, add_special_tokens=add_special_tokens).ids

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> tuple[Tensor, Tensor]:
        """Several texts as one batch for `model.generate`, shorter ones padded on the left.

        Args:
            texts: at least one.
            add_special_tokens: as in `encode`; False for texts of a chat template, which hold their own.

        Returns:
            input_ids and attention_mask, `[B, S]` each.

        Raises:
            ValueError: if there is no text, or one of them has no token.
        """
        if isinstance(texts, str):
            raise ValueError("a batch is a list of texts; for one text, give [text]")
        rows = [self.encode(text, add_special_tokens) for text in texts]
        if not rows or not all(rows):
            raise ValueError(
                f"a batch needs at least one text and every text at least one token, got {len(rows)} texts of "
                f"{[len(row) for row in rows]} tokens; start an empty one with the beginning-of-sequence token"
            )
        length = max(len(row) for row in rows)
        padding = self.pad_token_id if self.pad_token_id is not None else self.eos_token_id or 0
        ids = torch.full((len(rows), length), padding)
        mask = torch.zeros(len(rows), length, dtype=torch.long)
        for index, row in enumerate(rows):
            ids[index, length - len(row) :] = torch.tensor(row)
            mask[index, length - len(row) :] = 1
        return ids, mask

    def decode(self, ids: Sequence[int] | Tensor, skip_special_tokens: bool = False) -> str:
        """The text of one row of ids; bytes that are no whole character become U+FFFD.

        Raises:
            ValueError: if there are several rows.
        """
        if isinstance(ids, Tensor):
            if ids.dim() != 1:
                raise ValueError(
                    f"decode takes one row of ids, got {list(ids.shape)}; [tokenizer.decode(row) for row in ids] "
                    "gives the text of each"
                )
            ids = ids.tolist()
        return self.tokens.decode(ids, skip_special_tokens=skip_special_tokens)

    def decode_stream(self, tokens: Iterable[int | Tensor], skip_special_tokens: bool = False) -> Iterator[str]:
        """The text of ids that come one by one, in pieces that end between characters.

        A Chinese character or an emoji is often spread over several tokens; it is yielded when its last byte is there.
        The pieces joined are what `decode` gives for all ids together.

        Args:
            tokens: integers, or the `[1]` tensors of `model.stream`.
            skip_special_tokens: leave special tokens out.

        Raises:
            ValueError: if the tokens are those of several rows.
        """
        return whole_characters(lambda ids: self.decode(ids, skip_special_tokens), tokens)

    def apply_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        **variables: Any,
    ) -> str:
        """A conversation as text, to be encoded with add_special_tokens=False.

        Args:
            messages: one `{"role": "system" | "user" | "assistant" | "tool", "content": ...}` for each turn.
            tools: descriptions of functions that the model may call, as JSON schemas.
            add_generation_prompt: end with the beginning of the assistant's next turn.
            variables: switches of the template, such as MiniMind's open_thinking=True.

        Raises:
            ImportError: if jinja2 is missing or too old.
            ValueError: if there is no template, or it refuses the messages.
        """
        if self.chat_template is None:
            raise ValueError(
                "this tokenizer has no chat template: there is none in tokenizer_config.json, and no "
                "chat_template.jinja beside it. Write the text yourself, or set tokenizer.chat_template"
            )
        variables = {**self.special_tokens, "tools": tools, **variables}
        return render_chat(self.chat_template, messages, add_generation_prompt=add_generation_prompt, **variables)
