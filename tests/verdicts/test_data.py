"""verdicts.data: what a JSONL gives to training, on rows that are right and on such that are wrong in one way."""

import json
import re

import pytest
from situations import chat, pair, write_rows
from tokenizer_builders import TEMPLATE, train_tokens, write_tokenizer

from minimind_edu.verdicts import data as looks

TEXT = {"text": "我爱编程，也爱学习语言模型。"}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return looks.tokenizer_of(write_tokenizer(tmp_path_factory.mktemp("tokenizer")))


@pytest.fixture
def read(tmp_path, tokenizer):
    def of(rows, **options):
        return looks.read_data(write_rows(tmp_path / "data.jsonl", rows), tokenizer, **options)

    return of


def grade(verdict):
    return verdict and verdict.grade


RIGHT = {"pretrain": [TEXT] * 3, "sft": [chat(), chat("你好"), chat()], "dpo": [pair(), pair("谁走了？")]}


@pytest.mark.parametrize("form", RIGHT)
def test_right_rows_have_nothing_wrong(read, form):
    data = read(RIGHT[form], max_length=80)
    verdicts = looks.check_data(data)
    assert data.form == form and {one.grade for one in verdicts if one.about != "tokenizer"} == {"fine"}
    assert f"all {len(RIGHT[form])} rows are read" in verdicts[0].finding


@pytest.mark.parametrize("form, length", [("pretrain", 340), ("sft", 768), ("dpo", 1024)])
def test_the_cut_is_minimind_s_own_where_none_is_given(read, form, length):
    assert read(RIGHT[form]).max_length == length


def test_only_as_many_rows_as_asked_are_read(read):
    data = read([TEXT] * 5, most=3)
    assert len(data.rows) == 3 and "the first 3 rows are read" in looks.what_it_is(data).finding
    assert len(read([TEXT] * 5, most=0).rows) == len(read([TEXT] * 5, most=5).rows) == 5


def test_lines_that_are_no_rows_are_named(tmp_path, tokenizer, read):
    assert looks.lines(read([TEXT])).grade == "fine"
    path = tmp_path / "broken.jsonl"
    good = json.dumps(TEXT)
    path.write_bytes(f'{good}\n{{"text": \n\n{good}\n{{"other": 1}}\n[1]\n'.encode() + b'{"text": "\xce\xd2"}\n')
    told = looks.lines(looks.read_data(path, tokenizer))
    assert told.grade == "wrong" and "4 lines are none of this form, first line 2, 5, 6" in told.finding


def test_tokens_are_counted_and_what_a_cut_loses(read, tokenizer):
    rows = [TEXT, {"text": TEXT["text"] * 4}]
    ids = [len(tokenizer(row["text"]).input_ids) + 2 for row in rows]
    told = looks.lengths(read(rows, max_length=max(ids)))
    assert (
        told.grade == "fine"
        and f"{sum(ids)} tokens" in told.finding
        and "shortens 0 of 2 and loses 0.0%" in told.finding
    )
    cut = ids[0] + 1
    told = looks.lengths(read(rows, max_length=cut))
    assert (
        told.grade == "look"
        and f"shortens 1 of 2 and loses {(ids[1] - cut) / sum(ids):.1%} of all tokens" in told.finding
    )
    told = looks.lengths(read([TEXT], max_length=20 * ids[0]))
    assert told.grade == "look" and "95% of what is computed is padding" in told.finding


def test_a_cut_text_keeps_its_end_as_minimind_cuts_it(read, tokenizer):
    data = read([{"text": TEXT["text"] * 4}], max_length=12)
    [[side]] = data.rows
    assert len(side.ids) == 12 and (side.ids[0], side.ids[-1]) == (tokenizer.bos_token_id, tokenizer.eos_token_id)


def test_a_tokenizer_that_was_made_for_another_language(read):
    assert looks.letters(read([{"text": "the model reads what it wrote, one token at a time"}])).grade == "fine"
    told = looks.letters(read([{"text": "雷湖谁" * 20}]))
    assert told.grade == "look" and float(told.finding.split()[0]) < 0.5


def test_the_tokens_that_count_are_those_of_answers_and_their_ends(read, tokenizer):
    answer = "米娅在厨房。"
    count = len(tokenizer(f"{answer}<|im_end|>\n").input_ids)
    told = looks.counting(read([chat(answer=answer)]))
    assert told.grade == "fine" and told.finding.startswith(f"{count} of ")
    assert looks.counting(read([chat("谁在厨房？" * 60, "在。")], max_length=2000)).grade == "look"
    told = looks.counting(read([chat()], max_length=10))
    assert told.grade == "wrong" and told.finding.startswith("0 of 10 ")


def test_rows_in_which_none_counts_and_why(read):
    assert looks.none_counts(read([chat()])).grade == "fine"
    long, silent = chat("谁在厨房？" * 60), {"conversations": [{"role": "user", "content": "你好"}]}
    told = looks.none_counts(read([chat(), long, silent, silent], max_length=60))
    assert told.grade == "wrong" and "in 3 of 4 rows none counts, first line 2" in told.finding
    assert "the cut comes before the answer in 1, no answer is found in 2" in told.finding
    assert looks.none_counts(read([chat()] * 200 + [silent])).grade == "look"


def test_the_opening_of_an_answer_must_be_in_the_template(read, tokenizer, tmp_path):
    assert looks.template(read([chat()])).grade == "fine"
    assert looks.template(read([TEXT])) is None
    folder = write_tokenizer(tmp_path / "other")
    file = folder / "tokenizer_config.json"
    other = TEMPLATE.replace("'<|im_start|>' + message.role + '\\n'", "message.role + ': '")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"chat_template": other}))
    data = looks.read_data(write_rows(tmp_path / "chat.jsonl", [chat()]), looks.tokenizer_of(folder))
    told = looks.template(data)
    assert told.grade == "wrong" and "'<|im_start|>assistant\\n'" in told.finding and "in 0 of 1 chats" in told.finding
    assert looks.none_counts(data).grade == "wrong"
    silent = {"conversations": [{"role": "user", "content": "你好"}]}
    told = looks.template(read([chat(), silent]))
    assert told.grade == "look" and "in 1 of 2 chats" in told.finding


def test_answers_whose_end_is_cut_away(read):
    assert looks.cut_answers(read([chat()])).grade == "fine"
    told = looks.cut_answers(read([chat(answer="米娅在厨房。" * 20)], max_length=60))
    assert told.grade == "look" and "in 1 of 1 chats" in told.finding


@pytest.mark.parametrize(
    "row",
    [
        {"text": "<|im_start|>我爱编程<|im_end|>"},
        {"text": "我爱编程<|im_end|>"},
        chat(answer="米娅在厨房。<|im_end|>"),
        pair(rejected="没有人。<|im_end|>\n"),
    ],
)
def test_special_tokens_that_the_data_holds_already(read, row):
    right = {"text": TEXT, "conversations": chat(), "chosen": pair()}[next(iter(row))]
    assert looks.ends(read([right])).grade == "fine"
    told = looks.ends(read([right, row]))
    assert told.grade == "wrong" and "in 1 of 2 rows a beginning or an end stands twice, first line 2" in told.finding


def test_special_tokens_of_another_tokenizer_are_letters(read):
    assert looks.marks(read([chat()])) is None
    told = looks.marks(read([{"text": "<s>我爱编程</s>"}, {"text": "<s>你好"}]))
    assert told.grade == "look" and "<s> × 2, </s> × 1" in told.finding


@pytest.mark.parametrize("answer", ["", "空", "无"])
def test_answers_that_say_nothing_are_for_rewards(read, answer):
    told = looks.blank_answers(read([chat(answer=answer)] * 3 + [chat()]))
    assert told.grade == "wrong" and "3 of 4 chats end with an answer that says nothing" in told.finding
    assert looks.blank_answers(read([chat(answer=answer)] + [chat()] * 3)).grade == "look"
    assert looks.blank_answers(read([chat()])) is None and looks.blank_answers(read([TEXT])) is None


def test_calls_of_tools_are_answers(read):
    calls = json.dumps([{"name": "look", "arguments": {"room": "kitchen"}}])
    data = read([chat(answer="", tool_calls=calls)])
    assert looks.blank_answers(data) is None and looks.lines(data).grade == "fine"


def test_pairs_must_differ_after_the_cut_and_ask_the_same(read):
    assert looks.pairs(read([pair()])).grade == "fine" and looks.pairs(read([chat()])) is None
    told = looks.pairs(read([pair(), pair(rejected="米娅在厨房。")]))
    assert told.grade == "wrong" and "1 of 2 pairs are one and the same after the cut" in told.finding
    long = pair(chosen="我爱编程" * 30 + "对", rejected="我爱编程" * 30 + "错")
    assert looks.pairs(read([long], max_length=40)).grade == "wrong"
    assert looks.pairs(read([long])).grade == "fine"
    other = pair() | {"rejected": chat("你好")["conversations"]}
    told = looks.pairs(read([other]))
    assert told.grade == "look" and "in 1 the two have different questions" in told.finding


FOREIGN = [
    ({"instruction": "a", "input": "", "output": "b"}, "Alpaca's (instruction)"),
    ({"messages": []}, "OpenAI's (messages)"),
    ({"conversations": [{"from": "human", "value": "a"}]}, "ShareGPT's form (from, value)"),
    ({"prompt": "a", "completion": "b"}, "of prompts and completions"),
    ({"prompt": "a", "response": "b"}, "of prompts and responses"),
    ({"q": "a", "a": "b"}, "MiniMind's of 2024 for SFT"),
    ({"conversations": [], "gt": ["a"]}, "of MiniMind's agent training"),
    ({"chosen": "a", "rejected": "b"}, "has chosen and rejected as text"),
    ({"title": "a", "body": "b"}, "has rows with title, body"),
    ({}, "has rows with nothing"),
]


@pytest.mark.parametrize("row, reason", FOREIGN)
def test_another_form_is_refused_by_name(read, row, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as refused:
        read([row])
    assert "data.jsonl" in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "holds no JSON object in any line"),
        (b"hello\n", "holds no JSON object in any line"),
        (b"PAR1....", "is packed (parquet"),
        (b"\x1f\x8b..", "is packed (parquet"),
        (b'[{"text": "a"}]', "is one JSON list"),
        (b'[\n{"text": "a"}\n]', "is one JSON list"),
        (b'{"conversations": []}\n', "no row could be made into tokens"),
    ],
)
def test_what_is_no_jsonl_is_refused(tmp_path, tokenizer, content, reason):
    path = tmp_path / "data.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(reason)):
        looks.read_data(path, tokenizer)


def test_data_and_a_tokenizer_must_be_there(tmp_path, tokenizer, monkeypatch):
    with pytest.raises(FileNotFoundError, match="there is no data"):
        looks.read_data(tmp_path / "none.jsonl", tokenizer)
    with pytest.raises(ValueError, match="there is no tokenizer.json in"):
        looks.tokenizer_of(tmp_path)
    folder = write_tokenizer(tmp_path / "code")
    file = folder / "tokenizer_config.json"
    stated = json.loads(file.read_text())
    file.write_text(json.dumps(stated | {"auto_map": {"AutoTokenizer": ["x.X", None]}}))
    with pytest.raises(ValueError, match="a program that came with the model"):
        looks.tokenizer_of(folder)
    file.write_text(json.dumps({name: value for name, value in stated.items() if name != "chat_template"}))
    with pytest.raises(ValueError, match="has no chat template"):
        looks.read_data(write_rows(tmp_path / "chat.jsonl", [chat()]), looks.tokenizer_of(folder))
    file.write_text(json.dumps({name: value for name, value in stated.items() if name != "bos_token"}))
    with pytest.raises(ValueError, match="names no bos_token"):
        looks.read_data(write_rows(tmp_path / "chat.jsonl", [chat()]), looks.tokenizer_of(folder))
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="holds no tokenizer that can be read"):
        looks.tokenizer_of(folder)
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ValueError, match="data is made into tokens by transformers"):
        looks.tokenizer_of(folder)


def test_templates_that_fail_and_messages_without_a_role_are_no_rows(read, tmp_path, tokenizer):
    strange = {"conversations": [{"content": "你好"}, {"content": "再见"}]}
    assert read([chat(), strange]).broken == [2]
    assert train_tokens(300).get_vocab_size() == len(tokenizer)


def test_max_seq_len_is_lowered_only_as_far_as_no_row_is_cut(read, tokenizer):
    longest = read([TEXT], max_length=1000).rows[0][0].length
    short = looks.lengths(read([TEXT] * 3, max_length=20 * longest))
    assert short.grade == "look" and f"down to {longest}, the longest row" in short.advice
    part = looks.lengths(read([TEXT] * 3, max_length=20 * longest, most=2))
    assert part.grade == "look" and "read all" in part.advice
    tall = {"text": TEXT["text"] * 18}
    mixed = looks.lengths(read([*[TEXT] * 60, tall], max_length=20 * longest))
    assert mixed.grade == "look" and "rows of like length" in mixed.advice


def test_letters_are_counted_over_tokens_of_the_contents_alone(read, tokenizer):
    data = read([chat("你", "好")], max_length=200)
    tokens = sum(len(tokenizer(text, add_special_tokens=False).input_ids) for text in "你好")
    assert looks.letters(data).finding == f"{2 / tokens:.2f} letters in a token"


def test_what_is_not_utf_8_and_a_tokenizer_that_is_nowhere_are_told_as_that(tmp_path, tokenizer):
    path = tmp_path / "gbk.jsonl"
    path.write_bytes((json.dumps(TEXT, ensure_ascii=False) + "\n").encode("gbk"))
    with pytest.raises(ValueError, match=r"gbk.jsonl is not in UTF-8, perhaps in GBK"):
        looks.read_data(path, tokenizer)
    path.write_text("none\n")
    with pytest.raises(ValueError, match="holds no JSON object in any line"):
        looks.read_data(path, tokenizer)
    with pytest.raises(FileNotFoundError, match="there is no folder .*nowhere"):
        looks.tokenizer_of(tmp_path / "nowhere")


def test_one_line_that_is_no_row_is_told_in_the_singular(tmp_path, tokenizer):
    path = tmp_path / "broken.jsonl"
    path.write_text(json.dumps(TEXT) + "\nnone\n")
    assert looks.lines(looks.read_data(path, tokenizer)).finding == "line 2 is none of this form"


def roled(*roles):
    return {"conversations": [{"role": role, "content": "我爱编程"} for role in roles]}


@pytest.mark.parametrize(
    "rows, expected, said",
    [
        ([chat()] * 3, "fine", "every chat begins with a question and ends with an answer"),
        ([roled("system", "user", "assistant", "tool", "assistant")], "fine", "every chat begins"),
        ([roled("assistant", "user")] * 3, "wrong", "3 of 3 chats begin with an answer, and 3 end without one"),
        ([chat()] * 3 + [roled("user", "assistant", "user")], "look", "0 of 4 chats begin with an answer, and 1 end"),
        ([roled("human", "bot")] * 3, "wrong", "in 3 of 3 chats nobody answers: their roles are bot, human"),
        ([chat()] * 200 + [roled("user", "user")], "look", "in 1 of 201 chats nobody answers: their roles are user"),
    ],
)
def test_chats_go_from_questions_to_answers(read, rows, expected, said):
    told = looks.turns(read(rows))
    assert told.grade == expected and said in told.finding


def test_texts_have_no_turns(read):
    assert looks.turns(read([TEXT])) is None


def test_an_answer_that_begins_with_a_line_break_is_not_found_and_told_as_that(tmp_path):
    lines = ["assistant\n\n\n我爱编程", "user\n\n\n", "\n\n\n\n"] * 30  # so that line breaks become one token
    tokenizer = looks.tokenizer_of(write_tokenizer(tmp_path / "model", train_tokens(400, lines)))
    rows = [chat(), chat(answer="\n\n米娅在厨房。"), chat(answer="\n\n没有人。")]
    told = looks.template(looks.read_data(write_rows(tmp_path / "data.jsonl", rows), tokenizer))
    assert told.grade == "look" and "finds it in 1 of 3 chats; in 2 an answer begins with a line break" in told.finding
    assert told.advice == "take the line breaks from the beginning of answers"


def test_why_a_template_fails_is_told(tmp_path):
    folder = write_tokenizer(tmp_path / "model")
    config = folder / "tokenizer_config.json"
    stored = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps(stored | {"chat_template": "{{ messages[9].content.name"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"no row .* line 1 \(the chat template fails: .*\)$"):
        looks.read_data(write_rows(tmp_path / "data.jsonl", [chat()]), looks.tokenizer_of(folder))
