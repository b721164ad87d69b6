"""A conversation as the text that a chat model was trained on, written by the template that comes with its tokenizer.

Templates are small programs in Jinja. They come with downloaded files, so they run in Jinja's sandbox and see nothing
but plain data. The environment is that of transformers, for which templates are written: blocks leave no blank lines,
`tojson` writes Unicode as it is, and `raise_exception`, `strftime_now`, `break` and `continue` exist.
jinja2 is optional and imported on demand.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any


def render_chat(template: str, messages: Sequence[Mapping[str, Any]], **variables: Any) -> str:
    """The text of a conversation.

    Args:
        template: Jinja source.
        messages: one `{"role": ..., "content": ...}` for each turn, and what else the template knows.
        variables: what the template asks for besides: add_generation_prompt, tools, switches such as MiniMind's
            open_thinking, special tokens. Lists, dictionaries, strings, numbers, booleans and None only.

    Raises:
        ImportError: if jinja2 is missing or older than 3.1.6, whose sandbox has holes.
        ValueError: if the messages are none, or the template cannot be read or refuses them.
    """
    _check_messages(messages)
    compiled = _compiled(template)
    try:
        # through JSON and back: whatever the caller passes, the template gets plain data
        plain = json.loads(json.dumps({**variables, "messages": messages}))
    except TypeError as error:
        raise ValueError(f"a chat template takes plain data only: {error}") from error
    try:
        return compiled.render(plain)
    except (_jinja2().TemplateError, TypeError) as error:
        raise ValueError(f"the chat template refuses these messages: {error}") from error


def _check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    whole = isinstance(messages, Sequence) and not isinstance(messages, str)
    if not whole or not messages or not all(isinstance(turn, Mapping) and "role" in turn for turn in messages):
        raise ValueError(
            f'messages must be a list of at least one {{"role": "user", "content": "..."}}, got {str(messages)[:80]!r}'
        )


def _jinja2() -> Any:
    needs = "chat templates need jinja2 3.1.6 or newer: pip install 'jinja2>=3.1.6'"
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(needs) from error
    if tuple(int(part) for part in jinja2.__version__.split(".")[:3]) < (3, 1, 6):
        raise ImportError(f"{needs} (found {jinja2.__version__}, whose sandbox has holes)")
    return jinja2


@lru_cache
def _compiled(template: str) -> Any:
    jinja2 = _jinja2()
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> None:
        raise jinja2.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda format: datetime.now().strftime(format)
    try:
        return environment.from_string(template)
    except jinja2.TemplateError as error:
        raise ValueError(f"the chat template cannot be read: {error}") from error


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Jinja's own filter would write `<` and `&` as escapes for web pages, and sort the keys."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
