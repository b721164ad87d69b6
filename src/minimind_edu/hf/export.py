"""Out to transformers: a model of ours as Llama, Qwen3 or Qwen3-MoE, in memory or as a folder.

Our names of tensors are those of the files of transformers, the experts' included; what transformers does with them
when it loads (it joins a layer's experts into two tensors) is left to transformers. So an exported folder holds our
state dict bit for bit.
"""

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from tokenizers import Tokenizer
from torch import nn
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoTokenizer, PretrainedConfig, PreTrainedModel
from transformers.utils import logging

from minimind_edu.hf.adapter import MiniMindEduForCausalLM
from minimind_edu.hf.config import generation_config
from minimind_edu.hf.counterpart import counterpart_config
from minimind_edu.model.config import tokens_of
from minimind_edu.model.model import MiniMindForCausalLM
from minimind_edu.weights.checkpoints import check_complete
from minimind_edu.weights.files import read_json, reading
from minimind_edu.weights.hub import as_path

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
)
# What else an export, or save_pretrained, writes.
_MODEL_FILES = re.compile(r"(generation_)?config\.json|model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?")


def to_transformers(model: MiniMindForCausalLM) -> PreTrainedModel:
    """The model of transformers with these weights (copied), in the same dtype, on the same device, in eval mode.

    Raises:
        ValueError: if transformers has no model that computes the same, or parts of this one were replaced; the
            message gives the reason.
    """
    check_complete(model)
    config = counterpart_config(model.config)
    weights = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        del weights["lm_head.weight"]
    weight = model.lm_head.weight
    twin_class = cast(type[PreTrainedModel], MODEL_FOR_CAUSAL_LM_MAPPING[type(config)])
    with without_progress_bar():
        twin = twin_class.from_pretrained(None, config=config, state_dict=weights, dtype=weight.dtype)
    twin.generation_config = generation_config(model.config)
    return cast(PreTrainedModel, cast(nn.Module, twin).to(weight.device))


def export(
    model: MiniMindForCausalLM,
    folder: str | os.PathLike[str],
    tokenizer: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    adapter: bool = False,
) -> Path:
    """Write a folder that `AutoModelForCausalLM.from_pretrained` loads: config, generation config, weights, tokenizer.

    The folder appears only when it is complete; when something fails, one that was there before is as it was.

    Args:
        model: any model that has a counterpart in transformers; with `adapter` any model at all.
        folder: where to; it must not exist, or be empty, unless `overwrite`.
        tokenizer: a folder with tokenizer.json and what belongs to it, which are copied. Texts are then padded with
            the tokenizer's padding token if it has one, otherwise with the end of a text. None: the one that is in a
            folder stays there.
        overwrite: replace a folder that an earlier export or `save_pretrained` wrote, and that holds nothing else.
        adapter: write this book's own model type instead, which loads after `import minimind_edu.hf`.

    Returns:
        the folder.

    Raises:
        FileExistsError: if the folder holds something and must not be replaced; among it, files of a tokenizer that
            the given one does not have.
        ValueError: if the model has no counterpart or parts of it were replaced, the tokenizer's folder holds no
            tokenizer or a larger one, or the folder is the current one.
    """
    asked = as_path(folder)
    folder = asked.resolve()  # a link stays, and what it leads to is replaced
    check_complete(model)
    _check_free(folder, overwrite)
    if tokenizer is None and (folder / "tokenizer.json").is_file():
        tokenizer = folder
    twin = MiniMindEduForCausalLM.from_minimind(model) if adapter else to_transformers(model)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # on the same disk as the folder, so that moving it into place is one step
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as scratch:
        new = Path(scratch, "new")
        new.mkdir()
        if tokenizer is not None:
            _copy_tokenizer(as_path(tokenizer), new, twin)
        _check_kept(folder, new)
        with without_progress_bar():
            twin.save_pretrained(new)
        if not adapter:
            _add_older_names(new / "config.json")
        _move_into_place(new, folder, Path(scratch, "old"))
    return asked


@contextlib.contextmanager
def without_progress_bar() -> Iterator[None]:
    """What takes a moment needs no bar; in a notebook its timing would change with every run."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _check_free(folder: Path, overwrite: bool) -> None:
    if folder in (Path.cwd(), *Path.cwd().parents):
        raise ValueError(
            f"an export makes its folder anew, so this cannot be the current folder or one above it, got {folder}; "
            "give a new name, such as 'my-model'"
        )
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise FileExistsError(f"{folder} exists already; give another name, or overwrite=True to replace it")
    entries = list(folder.iterdir()) if folder.is_dir() else [folder]
    others = sorted(entry.name for entry in entries if not _is_exported(entry))
    if others or not (folder / "config.json").is_file():
        held = f"it holds {', '.join(others[:6])}" if others else "it holds no config.json"
        raise FileExistsError(
            f"{folder} is not replaced, overwrite=True or not, because {held}: only what an export wrote is replaced, "
            "and nothing else is ever deleted; give another name"
        )


def _check_kept(folder: Path, new: Path) -> None:
    """A tokenizer cannot be made again from the model, and its template may be somebody's own work."""
    lost = [name for name in _TOKENIZER_FILES if (folder / name).exists() and not (new / name).exists()]
    if lost:
        raise FileExistsError(
            f"{folder} is not replaced, because its {', '.join(lost)} would be lost: no such file comes with this "
            "export. Give another name, a tokenizer= that has them, or delete them yourself"
        )


def _is_exported(entry: Path) -> bool:
    ours = entry.name in _TOKENIZER_FILES or _MODEL_FILES.fullmatch(entry.name)
    return bool(ours) and entry.is_file() and not entry.is_symlink()


def _move_into_place(new: Path, folder: Path, old: Path) -> None:
    if folder.exists():
        folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise


def _copy_tokenizer(source: Path, folder: Path, twin: PreTrainedModel) -> None:
    found = [source / name for name in _TOKENIZER_FILES if os.path.lexists(source / name)]
    names = [path.name for path in found]
    if "tokenizer.json" not in names:
        raise ValueError(f"a tokenizer's folder must hold tokenizer.json, and {source} does not")
    for path in found:
        with reading(path):
            shutil.copy(path, folder)
    try:
        if "tokenizer_config.json" not in names:
            # AutoTokenizer would guess from the model's type, and Llama's and Qwen's special tokens are others
            _write_tokenizer_config(folder / "tokenizer.json", twin.config, folder)
        elif "auto_map" in read_json(folder / "tokenizer_config.json"):
            raise ValueError(
                "tokenizer_config.json asks for code of the folder (auto_map), and such code is never run; without "
                "that entry, tokenizer.json is read as it is"
            )
        tokenizer = AutoTokenizer.from_pretrained(folder, config=twin.config, trust_remote_code=False)
    except Exception as error:  # for damaged files the libraries raise whatever their parsers run into
        raise ValueError(f"{source} holds no tokenizer that can be read: {error}") from error
    if len(tokenizer) > twin.config.vocab_size:
        raise ValueError(
            f"the tokenizer in {source} has {len(tokenizer)} tokens and the model's vocab_size is "
            f"{twin.config.vocab_size}; does the tokenizer belong to this model?"
        )
    if tokenizer.pad_token_id is not None:
        twin.generation_config.pad_token_id = tokenizer.pad_token_id


def _write_tokenizer_config(tokens: Path, config: PretrainedConfig, folder: Path) -> None:
    """Say which class reads the file, and which tokens begin and end a text."""
    id_to_token = Tokenizer.from_file(str(tokens)).id_to_token
    roles = {"bos_token": config.bos_token_id, "eos_token": next(iter(tokens_of(config.eos_token_id)), None)}
    texts = {role: id_to_token(token) for role, token in roles.items() if token is not None}
    values = {"tokenizer_class": "PreTrainedTokenizerFast"} | {role: text for role, text in texts.items() if text}
    text = json.dumps(values, indent=2)
    (folder / "tokenizer_config.json").write_text(text + "\n", encoding="utf-8")


def _add_older_names(path: Path) -> None:
    """Say in the words of transformers 4 what newer ones renamed: read without them, RoPE's base would be 10,000."""
    config = json.loads(path.read_text(encoding="utf-8"))
    rope = config["rope_parameters"]
    config["rope_theta"] = rope["rope_theta"]
    if rope["rope_type"] != "default":
        config["rope_scaling"] = {name: rope[name] for name in rope if name != "rope_theta"}
    if "num_local_experts" in config:
        config["num_experts"] = config["num_local_experts"]
    config["torch_dtype"] = config["dtype"]
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")
