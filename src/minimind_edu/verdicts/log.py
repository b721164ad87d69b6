"""Training logs as MiniMind writes and has written them, and plain lines of steps and losses.

    until 2025-12-31    Epoch:[1/1](100/44160) loss:6.441 lr:0.000550000000 epoch_Time:200.0min:
    since 2026-01-01    Epoch:[1/2](100/39695), loss: 6.4413, logits_loss: ..., aux_loss: ..., lr: ..., epoch_time: ...
    plain               100 6.441, or 100,6.441, or step 100 ... loss 6.441, or 步数：100，损失：6.441
    progress bars       100/44160 [01:22<12:11, 9.9it/s, loss=6.441], as tqdm draws them
    CSV                 step,lr,loss: a first line that names the columns, or TensorBoard's Wall time,Step,Value
    JSON lines          {"step": 100, "loss": 6.441}; the list log_history of trainer_state.json, too

A file may hold several runs one after another; the last is read.

MiniMind: `Logger(f'Epoch:...')` in the trainers; the second form is that of commit 9d89857 and after.
"""

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from minimind_edu.weights.files import reading

STAGES = ("pretrain", "sft", "lora", "dpo", "distill")
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|nan|inf(?:inity)?)"
_PLACE = re.compile(r"Epoch:?\s*\[(\d+)/\d+\]\s*\((\d+)/(\d+)\)", re.IGNORECASE)
_FIELD = re.compile(rf"(\w[\w ]*?)\s*[:=]\s*({_NUMBER})(?![\w.])", re.IGNORECASE)
_RESUMED = re.compile(r"跳过前\s*(\d+)\s*个\s*step|skip (\d+) steps|resum\w* (?:\w+ )*?step\D{0,3}(\d+)", re.IGNORECASE)
_TWO_NUMBERS = re.compile(rf"\s*(\d+)\s*[,;\t ]\s*({_NUMBER})\s*", re.IGNORECASE)
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")  # in rows that are parted by semicolons or spaces
_PARTED = re.compile(r".*;.*|\s*\d+[\t ]+\d+,\d+\s*")
_OTHER_LOSS = "".join(rf"(?<!\b{word}[ /-])" for word in ("aux", "val", "eval", "validation", "test"))
_IN_WORDS = re.compile(
    rf"(?:\b(?:step|iter|iteration|batch)\b|步数?|迭代|第)\s*[:=]?\s*(\d+)(?!\w*\s*[轮个]).*?"
    rf"(?:{_OTHER_LOSS}\bloss\b|(?<!验证)(?<!测试)损失)\s*[:=]?\s*({_NUMBER})",
    re.IGNORECASE,
)
_BAR = re.compile(rf"\b(\d+)/\d+ \[[^\]]*{_OTHER_LOSS}\bloss=({_NUMBER})", re.IGNORECASE)
_FULL_WIDTH = str.maketrans("：，；＝（）［］", ":,;=()[]")  # as Chinese keyboards write them
_EPOCH = re.compile(r"\bepoch\b\D{0,3}(\d+)", re.IGNORECASE)
_SEPARATORS = ",;\t"
_TENSORBOARD = re.compile(r"\W?wall time\W+step\W+value\W?\s*$", re.IGNORECASE)
_COLUMNS = {  # of a CSV, by what its name is or ends in; wandb puts a run's name before, as in "run - train/loss"
    "step": re.compile(r"(?:.*[/ ])?(?:_step|global_step|current_steps|step|iter|iteration)"),
    "loss": re.compile(r"(?!.*\b(?:aux|val|eval|validation|test)\b)(?:.*[/ ])?(?:train_|train )?loss"),
    "rate": re.compile(r"(?:.*[/ ])?(?:lr|learning[ _]rate)"),
}
_SAME_START = 0.5  # nats within which two runs of one training begin
_RATE = re.compile(rf"(?:\b(?:lr|learning[ _]rate)\b|学习率)\s*[:=]?\s*({_NUMBER})", re.IGNORECASE)
_REWARDS = re.compile(r"\b(?:Reward|Actor Loss|Critic Loss)\s*:", re.IGNORECASE)
_OTHERS = {  # logs that tell no step, and whose they are
    r"['\"]loss['\"]\s*:.*['\"]epoch['\"]\s*:": "it is of transformers' Trainer, whose lines tell an epoch and no "
    "step; trainer_state.json in its checkpoint tells both, and is read",
    r"(?m)^\s*\d+,\d+,\d+\s*$": "its commas part columns, or columns and decimals: which, no line says",
    r"^wandb:": "it is what wandb says of a run; its page exports step and loss as CSV",
}
_MOST = 2**28  # bytes of a log
_LONGEST = 4096  # letters of a line that may be a step


@dataclass(frozen=True)
class Point:
    """One line of a log."""

    step: int  # counted over all epochs
    loss: float  # of the language model alone where a log tells it apart
    rate: float | None = None
    aux: float | None = None  # of a mixture's router


@dataclass(frozen=True)
class Log:
    """What a log says."""

    points: tuple[Point, ...]
    form: str  # in words
    stage: str | None  # one of STAGES, where the log or its name tells
    resumes: tuple[int, ...] = ()  # before which point (its index) training was resumed
    iterations: int | None = None  # steps of an epoch
    others: int = 0  # lines that tell no step
    epochs: tuple[int, ...] = field(default=())
    runs: int = 1  # in the file, of which this is the last


def read_log(path: Path) -> Log:
    """The steps of a log, in the order in which they stand.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no step that is known, or is the log of a training by rewards; the message says what
            the lines look like that are read.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no log {path}")
    with reading(path):
        if path.stat().st_size > _MOST:
            raise ValueError(f"it is longer than {_MOST:,} bytes; give its part")
        raw = path.read_bytes()
        # what tee writes on Windows is UTF-16; what a progress bar rewrote ends in a carriage return
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", errors="replace")
    text = _history(text) or text.translate(_FULL_WIDTH)
    found = _of_minimind(text, path) or _plain(text)
    if found is None:
        others = [name for pattern, name in _OTHERS.items() if re.search(pattern, text)]
        raise ValueError(
            f"{path} holds no step of training that is known here{f' ({others[0]})' if others else ''}: lines look "
            f"like 'Epoch:[1/2](100/39695), loss: 6.44, ...', '100 6.44' or 'step 100 loss 6.44', more columns need a "
            f"first line that names step and loss, and its first is {_first(text)!r}"
        )
    stage = found.stage or _stage_in(path.name)
    return replace(found, stage=stage)


def _of_minimind(text: str, path: Path) -> Log | None:
    points: list[Point] = []
    resumes, epochs, others, stage, first, iterations, newer = [], [], 0, None, None, None, False
    rewards, runs = 0, 1
    for line in _lines(text):
        place = _PLACE.search(line)
        if place is None:
            resumes += [len(points)] if _RESUMED.search(line) and points else []
            rewards += bool(_REWARDS.search(line))
            others += bool(line.strip())
            continue
        fields = {name.strip().lower(): float(number) for name, number in _FIELD.findall(line[place.end() :])}
        if "loss" not in fields or "reward" in fields:
            rewards += bool(_REWARDS.search(line))
            others += 1
            continue
        epoch, within, total = (int(number) for number in place.groups())
        newer = newer or ", loss" in line
        stage = stage or ("dpo" if "dpo_loss" in fields else "distill" if "distill" in fields else None)
        loss = fields.get("dpo_loss", fields.get("logits_loss", fields.get("ce", fields["loss"])))
        step = (epoch - (epoch if first is None else first)) * total + within
        if points and len(points) not in resumes and (total != iterations or _begins_again(points, step, loss)):
            points, resumes, epochs, first, runs = [], [], [], None, runs + 1
        first, iterations = epoch if first is None else first, total
        point = Point((epoch - first) * iterations + within, loss, _rate(fields), fields.get("aux_loss"))
        if points and point.step <= points[-1].step and len(points) not in resumes:
            resumes.append(len(points))
        points.append(point)
        epochs += [point.step - within] if epoch not in (None, first) and within <= iterations else []
    if not points and rewards:
        raise ValueError(
            f"{path} is the log of a training by rewards (PPO, GRPO, agents): its loss says nothing about learning, so "
            "it is not judged here; look at Reward and KL_ref, whether the first rises while the second stays small"
        )
    if not points:
        return None
    form = "as MiniMind of 2026 writes them" if newer else "as MiniMind of 2024 and 2025 wrote them"
    return Log(tuple(points), form, stage, tuple(resumes), iterations, others, tuple(dict.fromkeys(epochs)), runs)


def _begins_again(points: list[Point], step: int, loss: float) -> bool:
    """Whether a line is the first of another run: the step and the loss with which this one began."""
    began, ended = abs(loss - points[0].loss), abs(loss - points[-1].loss)
    return step <= points[0].step and began < _SAME_START and began <= ended


def _rate(fields: dict[str, float]) -> float | None:
    return fields.get("lr", fields.get("learning_rate"))


def _history(text: str) -> str | None:
    """The steps of transformers' trainer_state.json as JSON lines."""
    if not text.lstrip().startswith("{") or '"log_history"' not in text:
        return None
    try:
        rows = json.loads(text)["log_history"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return "\n".join(map(json.dumps, rows)) if isinstance(rows, list) else None


def _plain(text: str) -> Log | None:
    points: list[Point] = []
    resumes, others, runs, columns, epoch, before = [], 0, 1, None, None, 0  # before: steps of earlier epochs
    form = "plain steps and losses"
    for line in _lines(text):
        if found := _header(line):
            columns, form = found[:2], found[2]
        point = _in_columns(line, *columns) if columns else _in_json(line) or _in_line(line)
        if point is None:
            resumes += [len(points)] if _RESUMED.search(line) and points else []
            others += bool(line.strip())
            continue
        match = _EPOCH.search(line)
        earlier, epoch = epoch, int(match[1]) if match else epoch
        if points and len(points) not in resumes and point.step + before < points[-1].step:
            falls_to_start = point.step <= points[0].step
            next_epoch = falls_to_start and epoch is not None and earlier is not None and epoch > earlier
            if not next_epoch and _begins_again(points, point.step, point.loss):
                points, resumes, runs, before = [], [], runs + 1, 0
            elif falls_to_start and epoch == earlier and match:
                resumes.append(len(points))
            elif falls_to_start:  # steps are counted anew in each epoch
                every = points[-1].step - points[-2].step if len(points) > 1 else 1
                before = points[-1].step + every - point.step
            else:
                resumes.append(len(points))
        point = replace(point, step=point.step + before)
        if points and point.step == points[-1].step and len(points) not in resumes:
            points.pop()  # a step that is told twice, as an evaluation and as a step of training
        points.append(point)
    if not points:
        return None
    return Log(tuple(points), form, None, tuple(resumes), None, others, runs=runs)


def _in_line(line: str) -> Point | None:
    """A step and its loss by words, or as the only two columns."""
    text = _DECIMAL_COMMA.sub(".", line) if _PARTED.fullmatch(line) else line
    found = _IN_WORDS.search(text) or _BAR.search(text) or _TWO_NUMBERS.fullmatch(text)
    if found is None:
        return None
    rate = _RATE.search(text)
    return Point(int(found[1]), float(found[2]), float(rate[1]) if rate else None)


def _header(line: str) -> tuple[str, dict[str, int], str] | None:
    """The separator of a CSV, where its columns of step, loss and rate stand, and its form, if a line names them."""
    if not ("loss" in line.lower() or _TENSORBOARD.match(line)):
        return None
    separator = max(_SEPARATORS, key=line.count)
    names = [cell.strip().lower() for cell in next(csv.reader([line], delimiter=separator), [])]
    if _TENSORBOARD.match(line):
        return separator, {"step": 1, "loss": 2}, "TensorBoard's CSV, whose Value is taken for the loss"
    places = _named(dict(zip(names, range(len(names)), strict=True)))
    return (separator, places, "plain steps and losses") if {"step", "loss"} <= places.keys() else None


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    """What stands under the first name that is one of a step, of a loss, of a rate."""
    found = {
        wanted: [value for name, value in row.items() if pattern.fullmatch(name.lower())]
        for wanted, pattern in _COLUMNS.items()
    }
    return {wanted: values[0] for wanted, values in found.items() if values}


def _in_columns(line: str, separator: str, columns: dict[str, int]) -> Point | None:
    """A row of a CSV; None where a cell that is needed is empty or no number."""
    cells = [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]
    cells = [cell.replace(",", ".") if separator == ";" else cell for cell in cells]
    return _point({wanted: cells[at] for wanted, at in columns.items() if at < len(cells)})


def _in_json(line: str) -> Point | None:
    """A line that is a JSON object with a step and a loss, as trackers of experiments write them."""
    try:
        row = json.loads(line) if line.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return _point(_named(row)) if isinstance(row, dict) else None


def _point(cells: Mapping[str, Any]) -> Point | None:
    try:
        rate = cells.get("rate")
        return Point(int(float(cells["step"])), float(cells["loss"]), float(rate) if rate not in (None, "") else None)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _lines(text: str) -> Iterator[str]:
    return (line[:_LONGEST] for line in re.split(r"[\r\n]+", text))


def _first(text: str) -> str:
    return next((line.strip()[:60] for line in _lines(text) if line.strip()), "")


def _stage_in(name: str) -> str | None:
    """The kind of training that a file's name tells, as `full_sft_512.log` does."""
    found = [stage for stage in STAGES if re.search(rf"(?<![a-z]){stage}", name.lower())]
    return found[0] if len(found) == 1 else None


def finite(points: tuple[Point, ...]) -> list[Point]:
    """The points whose loss is a number."""
    return [point for point in points if math.isfinite(point.loss)]
