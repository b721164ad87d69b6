"""The export that all engines read: `minimind_edu.hf.export`, with a tokenizer whose words are t0, t1, t2 and so on."""

import json
import tempfile
from pathlib import Path

from minimind_edu.hf import export
from minimind_edu.model.model import MiniMindForCausalLM


def write_checkpoint(model: MiniMindForCausalLM, folder: Path) -> Path:
    """Write the model of transformers with these weights into the folder, which must be new; returns the folder.

    Raises:
        ValueError: if transformers has no model that computes the same.
    """
    with tempfile.TemporaryDirectory() as words:
        write_tokenizer(Path(words), model.config.vocab_size)
        return export(model, folder, tokenizer=words)


def write_tokenizer(folder: Path, vocab_size: int) -> None:
    """A tokenizer that engines demand and no measurement uses: they are asked in token ids."""
    vocabulary = {word(number): number for number in range(vocab_size)}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": word(0)},
    }
    special = {f"{kind}_token": word(0) for kind in ("unk", "bos", "eos", "pad")}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def word(number: int) -> str:
    """The word of a token id."""
    return f"t{number}"
