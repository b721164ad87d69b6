"""The files of a tokenizer: tokenizer.json, tokenizer_config.json, chat_template.jinja.

The first is read by Hugging Face's tokenizers library, imported on demand; the others say which tokens have a role and
how a conversation is written, and are optional.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minimind_edu.weights.files import read_json


def read_tokens(path: Path) -> Any:
    """The `tokenizers.Tokenizer` in a tokenizer.json.

    Raises:
        ImportError: if the tokenizers library is missing.
        FileNotFoundError: if there is no such file; the message says what is there instead.
        ValueError: if it cannot be read.
    """
    if not path.is_file():
        held = ", ".join(sorted(entry.name for entry in path.parent.iterdir())[:8]) or "nothing"
        raise FileNotFoundError(
            f"there is no tokenizer.json in {path.parent}; it holds {held}. An older kind of tokenizer is converted by "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder) of transformers"
        )
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            "a tokenizer needs the tokenizers library, which is optional: pip install 'minimind-edu[tokenizer]' "
            "or pip install tokenizers jinja2"
        ) from error
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no narrower class
        read_json(path)
        raise ValueError(f"{path} is no tokenizer that the tokenizers library knows: {error}") from error


def special_tokens(described: Mapping[str, Any]) -> dict[str, str]:
    """`{"eos_token": "..."}` and its like; some versions write a dictionary with the text as "content"."""
    texts = {
        role: value["content"] if isinstance(value, Mapping) else value
        for role, value in described.items()
        if role.endswith("_token")
    }
    return {role: text for role, text in texts.items() if isinstance(text, str)}


def chat_template(folder: Path, described: Mapping[str, Any]) -> str | None:
    """The file goes before the config; of several named templates, the default one."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = described.get("chat_template")
    if isinstance(template, list):
        return {entry["name"]: entry["template"] for entry in template}.get("default")
    return template
