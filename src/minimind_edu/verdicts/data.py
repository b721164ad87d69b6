"""What a JSONL of MiniMind's gives to training, one function for each question.

    pretrain    {"text": "..."}
    sft         {"conversations": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}
    dpo         {"chosen": [messages], "rejected": [messages]}

Rows are made into tokens as MiniMind's own data sets do it (`dataset/lm_dataset.py`, commit d65ef2c): special tokens
around a text; a chat by the tokenizer's template, cut at the greatest length; answers count for the loss. What it draws
by chance is left out: system prompts that it adds, and empty marks of thinking, which it removes from four rows of
five and which are removed from all here.
"""

import codecs
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from minimind_edu.verdicts.loss_mask import answer_mask, counted
from minimind_edu.verdicts.verdict import Verdict
from minimind_edu.weights.files import read_json

MAX_LENGTH = {"pretrain": 340, "sft": 768, "dpo": 1024}  # of MiniMind's trainers, commit d65ef2c
FORMS = {"pretrain": "pretraining", "sft": "conversations (SFT, LoRA)", "dpo": "pairs (DPO)"}
_SHAPES = '{"text"}, {"conversations": [{"role", "content"}]} and {"chosen", "rejected"}'
_FOREIGN = (  # fields of rows in other forms, whose they are, and what to do
    ({"gt"}, "of MiniMind's agent training, whose answers are written during training", "it has no labels to count"),
    ({"instruction"}, "Alpaca's", "make instruction and input the user's message, and output the assistant's"),
    ({"messages"}, "OpenAI's", "rename messages to conversations"),
    ({"prompt", "completion"}, "of prompts and completions", "make them a user's and an assistant's message"),
    ({"prompt", "response"}, "of prompts and responses", "make them a user's and an assistant's message"),
    ({"question", "answer"}, "of questions and answers", "make them a user's and an assistant's message"),
    ({"q", "a"}, "MiniMind's of 2024 for SFT", "make q and a a user's and an assistant's message"),
    ({"content"}, "of bare contents", "rename content to text"),
)
_THINKING = "<think>\n\n</think>\n\n"
_MARKS = ("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "[INST]", "<|user|>", "<|assistant|>")
_BLANK = {"", "空", "无"}  # what MiniMind's data for rewards has in place of an answer
_MOST_LINE = 2**26  # bytes of one row


@dataclass
class Side:
    """One text in tokens, as training would see it."""

    ids: list[int]  # cut
    length: int  # tokens before the cut
    mask: list[bool]
    found: bool = True  # whether the template's opening of an answer is in it
    cut_answer: bool = False  # whether the cut lies within an answer
    doubled: bool = False  # whether the token that ends a text stands twice, or the one that begins it
    answers: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()  # of its messages, without the system's


@dataclass
class Data:
    """Rows of one form, read as far as asked."""

    form: str
    rows: list[tuple[Side, ...]]  # of DPO two sides
    lines: list[int]  # their numbers in the file, from 1 on
    broken: list[int] = field(default_factory=list)  # lines that are no row of this form
    more: bool = False  # whether the file goes on
    max_length: int = 0
    letters: int = 0  # of the texts that were read
    content_tokens: int = 0  # of the same texts, without what a template adds
    marks: Counter[str] = field(default_factory=Counter)  # rows with another's special tokens, which are letters here
    opening: str = ""
    refused: str = ""  # why the template failed, where it first did
    prompts_differ: int = 0


def tokenizer_of(folder: Path) -> Any:
    """The tokenizer in a folder, by transformers; no code of the folder is run.

    Raises:
        FileNotFoundError: if there is no such place.
        ValueError: if transformers is missing, or there is none that can be read.
    """
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder}; --tokenizer takes the folder of a tokenizer.json")
    folder = folder if folder.is_dir() else folder.parent
    if not (folder / "tokenizer.json").is_file():
        raise ValueError(f"there is no tokenizer.json in {folder}; --tokenizer FOLDER gives the folder of one")
    try:
        from transformers import AutoTokenizer, PreTrainedTokenizerFast
    except ImportError as error:
        raise ValueError("data is made into tokens by transformers: pip install 'minimind-edu[hf]'") from error
    stated = (folder / "tokenizer_config.json").is_file()
    if stated and "auto_map" in read_json(folder / "tokenizer_config.json"):
        raise ValueError(f"{folder}: its tokenizer is a program that came with the model, and such are not run")
    kind: Any = AutoTokenizer if stated else PreTrainedTokenizerFast
    try:
        return kind.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # for damaged files the libraries raise whatever their parsers run into
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise ValueError(f"{folder} holds no tokenizer that can be read: {reason:.160}") from error


def read_data(path: Path, tokenizer: Any, max_length: int | None = None, most: int = 2000) -> Data:
    """The first rows of a JSONL, in tokens.

    Args:
        path: a JSON object in each line.
        tokenizer: of transformers; with beginning and end of a text, and for chats with a template.
        max_length: at which training cuts; None: MiniMind's own for this form.
        most: rows that are read; 0: all.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: for another form, which the message names, or a tokenizer that lacks what it takes.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no data {path}")
    begin, end = tokenizer.bos_token, tokenizer.eos_token
    if not begin or not end:
        raise ValueError("the tokenizer names no bos_token and eos_token, with which MiniMind begins and ends a text")
    found = _rows(path)
    number, first = next(((n, row) for n, row in found if row is not None), (0, None))
    if first is None and not _is_utf8(path):
        raise ValueError(f"{path} is not in UTF-8, perhaps in GBK; write it anew in UTF-8, as MiniMind reads it")
    if first is None:
        raise ValueError(f"{path} holds no JSON object in any line; MiniMind reads one a line: {_SHAPES}")
    form = _form(first, path)
    data = Data(form, [], [], max_length=max_length or MAX_LENGTH[form], opening=f"{begin}assistant\n")
    reader = _Reader(data, tokenizer)
    data.broken += range(1, number)
    for line, row in itertools.chain([(number, first)], found):
        if most and len(data.rows) == most:
            data.more = True
            break
        sides = None if row is None else reader.sides(row)
        if sides is None:
            data.broken.append(line)
        else:
            data.rows.append(sides)
            data.lines.append(line)
    if not data.rows:
        why = f" (the chat template fails: {data.refused:.120})" if data.refused else ""
        raise ValueError(
            f"{path}: no row could be made into tokens; the first that failed is line {data.broken[0]}{why}"
        )
    return data


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Numbers of lines, and their objects; None for a line that holds none."""
    lines = "MiniMind reads JSONL, a JSON object in each line"
    with path.open("rb") as file:
        start = file.read(4)
        if start in (b"PAR1", b"PK\x03\x04") or start[:2] == b"\x1f\x8b":
            raise ValueError(f"{path} is packed (parquet, zip or gzip); {lines}")
        file.seek(0)
        for number in itertools.count(1):
            line = file.readline(_MOST_LINE)
            if not line:
                return
            if number == 1 and line.strip() in (b"[", b"[{"):
                raise ValueError(f"{path} is one JSON list; {lines}")
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError):
                row = None
            if number == 1 and isinstance(row, list):
                raise ValueError(f"{path} is one JSON list; {lines}")
            yield number, row if isinstance(row, dict) else None


def _is_utf8(path: Path) -> bool:
    """Whether a file begins as UTF-8; the last letter of what is read may be cut."""
    with path.open("rb") as file:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(file.read(2**20))
        except UnicodeDecodeError:
            return False
    return True


def _form(row: Mapping[str, Any], path: Path) -> str:
    for fields, whose, what in _FOREIGN[:1]:
        if fields <= row.keys():
            raise ValueError(f"{path} has rows {whose} ({', '.join(fields)}): {what}")
    if {"chosen", "rejected"} <= row.keys():
        if isinstance(row["chosen"], list):
            return "dpo"
        raise ValueError(f"{path} has chosen and rejected as text; MiniMind reads lists of messages: {_SHAPES}")
    if "conversations" in row:
        turns = row["conversations"]
        if isinstance(turns, list) and turns and isinstance(turns[0], dict) and {"from", "value"} <= turns[0].keys():
            raise ValueError(
                f"{path} has conversations in ShareGPT's form (from, value); rename them to role and content, human to "
                "user, gpt to assistant"
            )
        return "sft"
    if "text" in row:
        return "pretrain"
    for fields, whose, what in _FOREIGN[1:]:
        if fields <= row.keys():
            raise ValueError(f"{path} has rows in a form that is {whose} ({', '.join(sorted(fields))}): {what}")
    raise ValueError(f"{path} has rows with {', '.join(list(row)[:6]) or 'nothing'}; MiniMind reads {_SHAPES}")


class _Reader:
    """Makes rows into tokens."""

    def __init__(self, data: Data, tokenizer: Any):
        self.data, self.tokenizer = data, tokenizer
        self.begin, self.end = tokenizer.bos_token_id, tokenizer.eos_token_id
        self.framing = tokenizer.bos_token, tokenizer.eos_token
        self.opening = self._ids(data.opening)
        self.closing = self._ids(f"{tokenizer.eos_token}\n")
        self.letters_only = [mark for mark in _MARKS if len(self._ids(mark)) > 1]
        if data.form != "pretrain" and not tokenizer.chat_template:
            raise ValueError("the tokenizer has no chat template, by which MiniMind makes chats into text")

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def sides(self, row: Mapping[str, Any]) -> tuple[Side, ...] | None:
        """A row in tokens; None if it is not of the form of the first."""
        if self.data.form == "pretrain":
            return (self._text(str(row["text"])),) if "text" in row else None
        names = ("conversations",) if self.data.form == "sft" else ("chosen", "rejected")
        sides = [self._chat(row.get(name)) for name in names]
        if any(side is None for side in sides):
            return None
        if self.data.form == "dpo":
            asked = [[m for m in row[name] if m["role"] != "assistant"] for name in names]
            self.data.prompts_differ += asked[0] != asked[1]
        return tuple(side for side in sides if side)

    def _text(self, text: str) -> Side:
        self._note(text)
        ids = self._ids(text)
        whole = [self.begin, *ids, self.end]
        kept = [self.begin, *ids[: self.data.max_length - 2], self.end]
        doubled = ids[:1] == [self.begin] or ids[-1:] == [self.end]
        return Side(kept, len(whole), [True] * len(kept), cut_answer=len(kept) < len(whole), doubled=doubled)

    def _chat(self, messages: Any) -> Side | None:
        if not isinstance(messages, list) or not messages:
            return None
        if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
            return None
        messages = [_with_calls(message) for message in messages]
        tools = next((_parsed(message["tools"]) for message in messages if message.get("tools")), None)
        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, tools=tools)
        except Exception as error:  # a template may fail in any way
            self.data.refused = self.data.refused or next(iter(str(error).splitlines()), "") or type(error).__name__
            return None
        text = text.replace(_THINKING, "")
        for message in messages:
            self._note(str(message.get("content") or ""))
        whole = self.tokenizer(text).input_ids
        kept = whole[: self.data.max_length]
        mask = answer_mask(kept, self.opening, self.closing)
        answers = tuple(str(message.get("content") or "") for message in messages if message["role"] == "assistant")
        roles = tuple(message["role"] for message in messages if message["role"] != "system")
        calls = any(message.get("tool_calls") for message in messages)
        cut = len(kept) < len(whole) and bool(mask) and mask[-1] and kept[-len(self.closing) :] != self.closing
        contents = [str(message.get("content") or "") for message in messages]
        doubled = any(token in content for content in contents for token in self.framing)
        doubled = doubled or whole[:2] == [self.begin, self.begin]
        return Side(kept, len(whole), mask, any(answer_mask(whole, self.opening, self.closing)), cut, doubled,
                    ("(calls)",) if calls else answers, roles)  # fmt: skip

    def _note(self, text: str) -> None:
        self.data.letters += len(text)
        self.data.content_tokens += len(self._ids(text))
        for mark in self.letters_only:
            self.data.marks[mark] += mark in text


def _with_calls(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as a template takes it: calls of tools as objects, a missing content empty."""
    made = {name: value for name, value in message.items() if value is not None}
    if isinstance(made.get("tool_calls"), str) and made["tool_calls"]:
        made["tool_calls"] = _parsed(made["tool_calls"])
    return {"content": "", **made}


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


# Verdicts


def check_data(data: Data) -> list[Verdict]:
    """Every verdict on a data file."""
    looks = (
        what_it_is(data),
        lines(data),
        lengths(data),
        letters(data),
        counting(data),
        none_counts(data),
        turns(data),
        template(data),
        cut_answers(data),
        ends(data),
        marks(data),
        blank_answers(data),
        pairs(data),
    )
    return [verdict for verdict in looks if verdict]


def _sides(data: Data) -> list[Side]:
    return [side for row in data.rows for side in row]


def what_it_is(data: Data) -> Verdict:
    """Its form, and how much of it was read."""
    part = "the first" if data.more else "all"
    return Verdict("data", "fine", f"{FORMS[data.form]}; {part} {len(data.rows):,} rows are read")


def lines(data: Data) -> Verdict:
    """Whether every line is a row of this form."""
    if not data.broken:
        return Verdict("rows", "fine", "every line is a row of this form")
    first = ", ".join(map(str, data.broken[:3]))
    return Verdict(
        "rows",
        "wrong",
        f"{len(data.broken):,} lines are none of this form, first line {first}"
        if len(data.broken) > 1
        else f"line {first} is none of this form",
        "a line must be one JSON object in UTF-8, with the fields of the others; training stops there, or skips it",
    )


def lengths(data: Data) -> Verdict:
    """How long rows are, and what is lost by cutting them."""
    sides = _sides(data)
    long = [side.length for side in sides]
    cut = sum(length > data.max_length for length in long)
    lost = sum(max(0, length - data.max_length) for length in long) / sum(long)
    padding = 1 - sum(min(length, data.max_length) for length in long) / (data.max_length * len(long))
    finding = f"{sum(long):,} tokens, {median(long):,.0f} in the middle row, {max(long):,} in the longest; the cut at "
    finding += f"{data.max_length:,} shortens {cut:,} of {len(long):,} and loses {lost:.1%} of all tokens; "
    finding += f"{padding:.0%} of what is computed is padding"
    if lost > 0.1:
        return Verdict(
            "length", "look", finding, "a greater --max_seq_len in training, or shorter rows; memory grows with it"
        )
    if padding > 0.8:
        return Verdict("length", "look", finding, _shorter(max(long), data))
    return Verdict("length", "fine", finding)


def _shorter(longest: int, data: Data) -> str:
    """What to do about padding, without a row that would be cut."""
    if longest >= 0.8 * data.max_length:
        return "a few long rows need this length: put rows of like length into one batch, and pad to its longest"
    if data.more:
        return "rows are short so far: read all (--rows 0), and lower --max_seq_len to the longest"
    return f"--max_seq_len down to {longest:,}, the longest row, trains the same in less time and memory"


def letters(data: Data) -> Verdict | None:
    """Whether the tokenizer was made for such texts: how many letters a token holds."""
    if not data.content_tokens:
        return None
    share = data.letters / data.content_tokens
    finding = f"{share:.2f} letters in a token"
    if share < 0.9:
        return Verdict(
            "tokenizer", "look", finding, "words fall into bytes: was this tokenizer made for this language?"
        )
    return Verdict("tokenizer", "fine", finding)


def counting(data: Data) -> Verdict:
    """How many tokens count for the loss."""
    sides = _sides(data)
    kept, count = sum(len(side.ids) for side in sides), sum(counted(side.mask) for side in sides)
    finding = f"{count:,} of {kept:,} tokens that are left ({count / kept:.0%}) count for the loss"
    if count == 0:
        return Verdict("loss mask", "wrong", finding, "the loss would be the mean over nothing, NaN: see below")
    if count / kept < 0.05:
        return Verdict("loss mask", "look", finding, "most of the work teaches nothing: the questions are too long")
    return Verdict("loss mask", "fine", finding)


def none_counts(data: Data) -> Verdict:
    """Rows in which no token counts, and why."""
    none = [at for at, row in enumerate(data.rows) if any(counted(side.mask) == 0 for side in row)]
    if not none:
        return Verdict("empty rows", "fine", "in every row some token counts")
    found = [side.found for at in none for side in data.rows[at] if counted(side.mask) == 0]
    finding = f"in {len(none):,} of {len(data.rows):,} rows none counts, first line {data.lines[none[0]]:,}: the cut "
    finding += f"comes before the answer in {sum(found):,}, no answer is found in {len(found) - sum(found):,}"
    return Verdict(
        "empty rows",
        "wrong" if len(none) > len(data.rows) / 100 else "look",
        finding,
        "a batch of such rows alone has the loss NaN, and one NaN spoils the weights: leave them out",
    )


def turns(data: Data) -> Verdict | None:
    """Whether chats go from questions to answers."""
    if data.form == "pretrain":
        return None
    chats = [side.roles for side in _sides(data)]
    of = f"of {len(chats):,} chats"
    none = [roles for roles in chats if "assistant" not in roles]
    if none:
        finding = f"in {len(none):,} {of} nobody answers: their roles are {', '.join(sorted(set().union(*none)))}"
        advice = "MiniMind's roles are system, user, assistant and tool; answers are the assistant's"
        return Verdict("turns", "wrong" if len(none) > len(chats) / 100 else "look", finding, advice)
    early = sum(roles[0] == "assistant" for roles in chats)
    late = sum(roles[-1] != "assistant" for roles in chats)
    if early or late:
        finding = f"{early:,} {of} begin with an answer, and {late:,} end without one"
        advice = "are user and assistant exchanged? Then the questions would be learned"
        return Verdict("turns", "wrong" if early > len(chats) / 2 else "look", finding, advice)
    return Verdict("turns", "fine", "every chat begins with a question and ends with an answer")


def template(data: Data) -> Verdict | None:
    """Whether chats show what MiniMind's program looks for."""
    if data.form == "pretrain":
        return None
    found = sum(side.found for side in _sides(data))
    looked = f"MiniMind looks for {data.opening!r} before an answer"
    if found == len(_sides(data)):
        return Verdict("template", "fine", f"{looked}, and finds it in all {found:,} chats")
    finding = f"{looked}, and finds it in {found:,} of {len(_sides(data)):,} chats"
    grade = "wrong" if found == 0 else "look"
    breaks = sum(not side.found and any(text.startswith("\n") for text in side.answers) for side in _sides(data))
    if breaks:
        finding += f"; in {breaks:,} an answer begins with a line break, which becomes one token with the template's"
        return Verdict("template", grade, finding, "take the line breaks from the beginning of answers")
    return Verdict(
        "template",
        grade,
        finding,
        "either the template of this tokenizer is another, or a chat has no message of the role assistant",
    )


def cut_answers(data: Data) -> Verdict | None:
    """How often the cut takes the end of an answer away."""
    if data.form == "pretrain":
        return None
    cut = sum(side.cut_answer for side in _sides(data))
    finding = f"the cut falls into an answer in {cut:,} of {len(_sides(data)):,} chats"
    if cut > len(_sides(data)) / 20:
        return Verdict(
            "cut answers", "look", finding, "there the model does not see an answer end: it may go on and on"
        )
    return Verdict("cut answers", "fine", finding)


def ends(data: Data) -> Verdict:
    """Special tokens that stand twice: in the data, and put there once more by the program."""
    twice = [at for at, row in enumerate(data.rows) if any(side.doubled for side in row)]
    if not twice:
        return Verdict("double ends", "fine", "no beginning or end of a text stands twice")
    return Verdict(
        "double ends",
        "wrong" if len(twice) > len(data.rows) / 100 else "look",
        f"in {len(twice):,} of {len(data.rows):,} rows a beginning or an end stands twice, first line "
        f"{data.lines[twice[0]]:,}",
        "the texts hold the special tokens already, and the program adds its own: take them out of the data",
    )


def marks(data: Data) -> Verdict | None:
    """Special tokens of another tokenizer, which are plain letters to this one."""
    found = {mark: count for mark, count in data.marks.items() if count}
    if not found:
        return None
    finding = ", ".join(f"{mark} × {count:,}" for mark, count in found.items())
    return Verdict(
        "marks",
        "look",
        f"special tokens of another tokenizer stand in texts as plain letters: {finding}",
        "the data was made for another tokenizer (MiniMind's changed from <s> to <|im_start|>): take them out",
    )


def blank_answers(data: Data) -> Verdict | None:
    """Answers that say nothing."""
    if data.form == "pretrain":
        return None
    chats = [side for side in _sides(data) if side.answers]
    blank = sum(side.answers[-1].strip() in _BLANK for side in chats)
    if not blank:
        return None
    advice = (
        "such rows are made for PPO and GRPO, where the model writes the answer (rlaif.jsonl); SFT would teach them"
    )
    finding = f"{blank:,} of {len(chats):,} chats end with an answer that says nothing (empty, 空 or 无)"
    return Verdict("answers", "wrong" if blank > len(chats) / 2 else "look", finding, advice)


def pairs(data: Data) -> Verdict | None:
    """Whether the two answers of a pair differ where it counts, after the cut."""
    if data.form != "dpo":
        return None
    same = [at for at, (chosen, rejected) in enumerate(data.rows) if chosen.ids == rejected.ids]
    finding = f"{len(same):,} of {len(data.rows):,} pairs are one and the same after the cut"
    if data.prompts_differ:
        finding += f"; in {data.prompts_differ:,} the two have different questions"
    if not same and not data.prompts_differ:
        return Verdict("pairs", "fine", finding)
    return Verdict(
        "pairs",
        "wrong" if len(same) > len(data.rows) / 10 else "look",
        finding,
        "a pair without a difference has the loss ln 2 = 0.693 for ever; a difference of questions teaches nothing",
    )
