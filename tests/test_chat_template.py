import itertools
import sys

import jinja2
import pytest
from tokenizer_builders import ROLES, TEMPLATE, train_tokens
from transformers import PreTrainedTokenizerFast

from minimind_edu.chat_template import render_chat

THEIRS = PreTrainedTokenizerFast(tokenizer_object=train_tokens(), chat_template=TEMPLATE, **ROLES)

SYSTEM = {"role": "system", "content": "你是 <b>MiniMind</b> & 'friends'."}
ASK = {"role": "user", "content": "爱是什么？"}
THINK = {"role": "assistant", "content": '<think>\n想一想\n</think>\n\n爱是 "love"。'}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"function": {"name": "look_up", "arguments": {"word": "爱 <&>", "b": 1, "a": [1.5, None, True]}}},
        {"name": "again", "arguments": '{"raw": 1}'},
    ],
}
ANSWER = {"role": "tool", "content": "love"}
TOOLS = [{"type": "function", "function": {"name": "look_up", "description": "查 <词>", "parameters": {}}}]
CONVERSATIONS = {
    "a question": [ASK],
    "with a system turn": [SYSTEM, ASK],
    "several turns": [SYSTEM, ASK, THINK, ASK, THINK],
    "a later system turn": [ASK, SYSTEM, ASK],
    "tools": [SYSTEM, ASK, CALL, ANSWER, THINK],
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_conversation_is_written_as_transformers_writes_it(name):
    messages = CONVERSATIONS[name]
    for tools, prompt, switch in itertools.product(
        (None, TOOLS), (True, False), ({}, {"open_thinking": True}, {"open_thinking": False})
    ):
        expected = THEIRS.apply_chat_template(
            messages, tools=tools, add_generation_prompt=prompt, tokenize=False, **switch
        )
        found = render_chat(TEMPLATE, messages, tools=tools, add_generation_prompt=prompt, **ROLES, **switch)
        assert found == expected


def test_blocks_leave_no_blank_lines():
    template = "{% for message in messages %}\n    {% if true %}\n{{ message.role }}\n    {% endif %}\n{% endfor %}"
    assert render_chat(template, [ASK, ASK]) == "user\nuser\n"


def test_loops_can_be_left():
    template = "{% for message in messages %}{{ message.role }}{% break %}{% endfor %}"
    assert render_chat(template, [ASK, THINK]) == "user"


def test_the_day_can_be_asked_for():
    assert len(render_chat("{{ strftime_now('%Y') }}", [ASK])) == 4


@pytest.mark.parametrize(
    "attack",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ ('{0.__class__' ~ '.__mro__}').format(messages) }}",
        "{{ (messages | attr('__class__')).__mro__ }}",
    ],
)
def test_a_template_cannot_reach_out_of_its_sandbox(attack):
    with pytest.raises(ValueError, match="the chat template refuses these messages: "):
        render_chat(attack, [ASK])


class Dangerous(str):
    def burn(self):
        raise AssertionError("a template called a method of the caller's object")


def test_a_template_sees_plain_data_only():
    with pytest.raises(ValueError, match="refuses"):
        render_chat("{{ messages[0].content.burn() }}", [{"role": "user", "content": Dangerous("a")}])
    with pytest.raises(ValueError, match="plain data only: .*function is not JSON"):
        render_chat(TEMPLATE, [ASK], tools=[lambda: 1])


def test_what_a_template_refuses_is_said_in_its_own_words():
    with pytest.raises(ValueError, match="refuses these messages: .*NoneType"):
        render_chat(TEMPLATE, [{"role": "system", "content": None}])
    with pytest.raises(ValueError, match="refuses these messages: no role critic"):
        render_chat(TEMPLATE, [{"role": "critic", "content": ""}])


def test_a_broken_template_says_so():
    with pytest.raises(ValueError, match="the chat template cannot be read: "):
        render_chat("{% if %}", [ASK])


@pytest.mark.parametrize("messages", ["hello", [], [{"content": "a"}], ["a"], {"role": "user"}])
def test_what_is_no_conversation_is_told_so(messages):
    with pytest.raises(ValueError, match="messages must be a list of at least one"):
        render_chat(TEMPLATE, messages)


def test_jinja2_missing_or_with_a_leaky_sandbox_says_what_to_install(monkeypatch):
    monkeypatch.setattr(jinja2, "__version__", "3.1.5")
    with pytest.raises(ImportError, match="pip install 'jinja2>=3.1.6'.*found 3.1.5"):
        render_chat("a template not compiled before", [ASK])
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match="chat templates need jinja2 3.1.6 or newer: pip install"):
        render_chat("a template not compiled before", [ASK])
