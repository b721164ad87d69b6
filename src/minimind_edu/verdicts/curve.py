"""What the curve of a training log shows, one function for each question.

Each returns a Verdict, or None where a log does not tell. Losses are in nats per token, so e to a loss is a number of
tokens among which the model might as well have guessed. Bands are what others saw, by thread of MiniMind's repository
(bands.tsv): other data, other batches, so they are bands and no targets.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from minimind_edu.verdicts.log import Log, Point, finite
from minimind_edu.verdicts.verdict import Verdict

VOCABULARY = 6400  # of MiniMind's tokenizers, where no model tells another
LN2 = math.log(2)
# The lowest and the highest rate that MiniMind's own trainers begin with, 2024 to August 2026.
USUAL_RATES = {
    "pretrain": (2e-4, 5e-4),
    "sft": (5e-7, 1e-4),
    "lora": (5e-5, 1e-4),
    "dpo": (1e-8, 4e-8),
    "distill": (1e-6, 5e-6),
}
NAMES = {
    "pretrain": "pretraining",
    "sft": "fine-tuning (SFT)",
    "lora": "a LoRA",
    "dpo": "DPO",
    "distill": "distillation",
}
_SOON = 50  # steps: a first line before is a start
_NEAR = 0.35  # nats around ln V: untrained models begin there, and the threads' at 8.86 to 8.93
_WINDOW = 5  # lines of a log whose median is compared
# Above how many times MiniMind's highest rate one is looked at. Its DPO is slow: the article's own rate is 1e-6
# (Rafailov and others, 2023), and 4e-8 may stand at ln 2.
_HIGH = {"dpo": 25}
_HIGH_ELSE = 10
_BAND = 0.3  # nats around what others saw
_BEYOND = 14.0  # nats: a guess among 1.2 million, more than any vocabulary
_EARLY = {"dpo": 500}  # steps in which a healthy training may not have moved
_EARLY_ELSE = 200
_UNTIL = math.log(300_000)  # the greatest vocabulary that a model without a file may have
_LEAST = 8  # lines without which a curve has no end


def check_log(
    log: Log, vocab_size: int | None = None, stage: str | None = None, millions: float | None = None
) -> list[Verdict]:
    """Every verdict on a log.

    Args:
        log: as `read_log` returns it.
        vocab_size: of the model; None: MiniMind's 6,400.
        stage: one of `log.STAGES`; None: what the log, its name or its first loss tells.
        millions: of weights, where the model is known.
    """
    vocab = vocab_size or VOCABULARY
    kind = stage or stage_of(log, vocab)
    looks = (
        what_it_is(log, kind, given=stage is not None),
        start(log, kind, vocab, assumed=vocab_size is None),
        numbers(log, kind),
        rate(log, kind),
        jump(log, vocab),
        resumed(log),
        standing(log, kind),
        plateau(log, kind, vocab),
        too_good(log, kind),
        far_from_reference(log, kind),
        band(log, kind, millions),
        experts(log),
    )
    return [verdict for verdict in looks if verdict]


def stage_of(log: Log, vocab: int = VOCABULARY) -> str:
    """What kind of training it is, where it is not told: a new model begins near ln V, two equal ones at ln 2.

    Of a log that begins later, the rate tells: of MiniMind's trainers only pretraining has one as high as 2e-4.
    """
    if log.stage:
        return log.stage
    losses = [point.loss for point in finite(log.points)]
    if not losses:
        return "pretrain"
    if abs(losses[0] - LN2) < 0.05:
        return "dpo"
    rates = [point.rate for point in log.points if point.rate is not None]
    if log.points[0].step > _SOON and rates and max(rates) >= USUAL_RATES["pretrain"][0]:
        return "pretrain"  # where the start is not seen, a low loss proves no trained weights
    return "pretrain" if losses[0] > math.log(vocab) / 2 else "sft"


def what_it_is(log: Log, kind: str, given: bool = False) -> Verdict:
    """Which program wrote it, how much it holds, and what it is taken for."""
    first, last = log.points[0].step, log.points[-1].step
    taken = f"taken for {NAMES[kind]}" if not (given or log.stage) else NAMES[kind]
    found = f"{len(log.points):,} lines, {log.form}, steps {first:,} to {last:,}: {taken}"
    if len(log.points) == 1:
        found = f"one line, {log.form}, step {first:,}: {taken}"
    if log.runs > 1:
        found += f"; the last of {log.runs} runs in this file"
    advice = "" if given or log.stage else "if it is another, say so: --stage pretrain, sft, lora, dpo or distill"
    return Verdict("log", "fine", found, advice)


def start(log: Log, kind: str, vocab: int = VOCABULARY, assumed: bool = False) -> Verdict | None:
    """Where the loss begins: near ln V for a new model, far below for one that was loaded, at ln 2 in DPO.

    `assumed`: no model tells the vocabulary, so it may be another.
    """
    first, chance = log.points[0], math.log(vocab)
    if not math.isfinite(first.loss):
        return None
    begins = f"it begins at {first.loss:.2f}"
    if kind == "dpo":
        if abs(first.loss - LN2) < 0.02:
            return Verdict(
                "start", "fine", f"it begins at {first.loss:.3f}, which is ln 2: two equal models", at=first.step
            )
        if first.step > _SOON:
            return Verdict("start", "open", f"its first line is step {first.step:,}, so the start is not seen")
        return Verdict(
            "start",
            "wrong",
            f"it begins at {first.loss:.3f} instead of ln 2 = 0.693: model and reference differ before any step",
            "load both from the same file, and leave dropout out of the reference (eval mode)",
            first.step,
        )
    if kind != "pretrain":
        if first.loss > 0.75 * chance:
            return Verdict(
                "start",
                "wrong",
                f"{begins}, as a model that knows next to nothing (ln {vocab:,} = {chance:.2f}): no trained weights "
                "were loaded",
                "look at what load_state_dict returned: with strict=False wrong names are passed over in silence",
                first.step,
            )
        if first.step > _SOON:
            return Verdict("start", "open", f"its first line is step {first.step:,}, so the start is not seen")
        return Verdict("start", "fine", f"{begins}: trained weights were loaded", at=first.step)
    if first.step > _SOON:
        return Verdict(
            "start", "open", f"its first line is step {first.step:,}; step 0 would be near ln {vocab:,} = {chance:.2f}"
        )
    if abs(first.loss - chance) <= _NEAR:
        return Verdict(
            "start", "fine", f"{begins}, and ln {vocab:,} = {chance:.2f} is a blind guess: a new model", at=first.step
        )
    if first.loss > chance:
        return Verdict(
            "start",
            "wrong" if first.loss > (_UNTIL if assumed else chance + 1.5) else "look",
            f"{begins}, as a blind guess among {_tokens(first.loss, vocab)} tokens; of {vocab:,} it would be "
            f"{chance:.2f}",
            "either the vocabulary is another, or the weights begin too large (MiniMind draws with 0.02)",
            first.step,
        )
    return Verdict(
        "start",
        "look",
        f"{begins}, far below a blind guess (ln {vocab:,} = {chance:.2f})",
        "that is right if trained weights were loaded; if not, the labels are what the model reads: shift them by one",
        first.step,
    )


def numbers(log: Log, kind: str) -> Verdict:
    """Whether every loss is a number; where not, what went before."""
    bad = [at for at, point in enumerate(log.points) if not math.isfinite(point.loss)]
    if not bad:
        finding = f"all {len(log.points)} losses are numbers" if len(log.points) > 1 else "the only loss is a number"
        return Verdict("NaN", "fine", finding)
    if math.isfinite(log.points[-1].loss):  # NaN in the weights would have stayed
        return Verdict(
            "NaN",
            "look",
            f"{len(bad)} of {len(log.points)} losses are no number, first at step {log.points[bad[0]].step:,}; after "
            "them the loss is a number again, so the weights are whole",
            "either a batch has no token that counts (check --data), or float16 overflowed and the scaler skipped the "
            "step",
            log.points[bad[0]].step,
        )
    last_known = max((at for at, point in enumerate(log.points) if math.isfinite(point.loss)), default=-1)
    point, before = log.points[last_known + 1], finite(log.points[: last_known + 1])
    highest = max((p.rate for p in log.points if p.rate is not None), default=None)
    usual = USUAL_RATES[kind][1]
    where = f"from step {point.step:,} on the loss is no number"
    if not before:
        return Verdict(
            "NaN",
            "wrong",
            f"{where}: the first one already",
            "either the weights hold NaN (check the model), or a batch has no token that counts (check --data)",
            point.step,
        )
    last = before[-1].loss
    if highest is not None and highest > 10 * usual:
        return Verdict(
            "NaN",
            "wrong",
            f"{where}, after {last:.2f}; the rate is {_short(highest)}, {highest / usual:,.0f} times MiniMind's",
            f"begin again with {_short(usual)}: what is NaN stays NaN",
            point.step,
        )
    lowest = min(p.loss for p in before)
    if last > lowest + 1:
        return Verdict(
            "NaN",
            "wrong",
            f"{where}; before, it rose from {lowest:.2f} to {last:.2f}",
            "it ran away: a lower rate, a longer warm-up, gradients clipped at 1; go on from a file from before",
            point.step,
        )
    return Verdict(
        "NaN",
        "wrong",
        f"{where}, out of a quiet curve ({last:.2f} just before)",
        "hardly the rate: either a batch has no token that counts, and 0 is divided by 0 (check --data), or float16 "
        "overflowed (take bfloat16); go on from a file from before",
        point.step,
    )


def rate(log: Log, kind: str) -> Verdict | None:
    """The learning rate, compared with those that MiniMind's own trainers begin with."""
    rates = [point.rate for point in log.points if point.rate is not None]
    if not rates:
        return None
    highest, (low, high) = max(rates), USUAL_RATES[kind]
    usual = f"MiniMind's own for {NAMES[kind]}: {_short(low)} to {_short(high)}"
    if highest > _HIGH.get(kind, _HIGH_ELSE) * high:
        grade = "wrong" if highest > 100 * high or _ran_away(log) else "look"
        found = f"it goes up to {_short(highest)}; {usual}"
        return Verdict("rate", grade, found, f"too high by a factor of {highest / high:,.0f}: try {_short(high)}")
    if highest < low / 20:
        return Verdict("rate", "look", f"it is at most {_short(highest)}; {usual}", "so small that little will move")
    return Verdict("rate", "fine", f"it goes up to {_short(highest)}; {usual}")


def _tokens(loss: float, vocab: int, digits: int = 0) -> str:
    """Among how many tokens a guess has this loss; e to a loss far above any vocabulary tells nothing."""
    return f"{math.exp(loss):,.{digits}f}" if loss < _BEYOND else f"more than {vocab:,}"


def _margin(loss: float) -> float:
    """DPO's margin, beta included, whose loss is -ln sigmoid(margin)."""
    return -loss - math.log(-math.expm1(-loss)) if loss > 0 else math.inf


def _is_early(log: Log, kind: str) -> bool:
    """Whether standing still proves nothing yet: few steps, at a rate that is not 0."""
    rates = [point.rate for point in log.points if point.rate is not None]
    passed = log.points[-1].step - log.points[0].step
    return passed < _EARLY.get(kind, _EARLY_ELSE) and not (rates and max(rates) == 0)


def _short(number: float) -> str:
    """5e-7, and not 5e-07."""
    return f"{number:g}".replace("e-0", "e-")


def _ran_away(log: Log) -> bool:
    losses = [point.loss for point in log.points]
    known = [loss for loss in losses if math.isfinite(loss)]
    return len(known) < len(losses) or (len(known) > _WINDOW and median(known[-_WINDOW:]) > min(known) + 1)


def _noise(points: Sequence[Point]) -> float:
    """How much the loss of one line strays: from differences between neighbors, whose trend is small."""
    steps = np.abs(np.diff([point.loss for point in points]))
    return 1.48 / math.sqrt(2) * float(np.median(steps)) if len(steps) else 0.0


def largest_jump(points: Sequence[Point]) -> tuple[int, float, float] | None:
    """Where the loss rises most and stays: an index, and the medians of the lines before and from there on."""
    least = max(0.4, 5 * _noise(points))
    found = None
    for at in range(2, len(points) - 1):
        before = median(point.loss for point in points[max(0, at - _WINDOW) : at])
        after = median(point.loss for point in points[at : at + _WINDOW])
        if after - before > least and (found is None or after - before > found[2] - found[1]):
            found = at, before, after
    if found is None:
        return None
    # medians see it a few lines early or late
    near = range(max(1, found[0] - _WINDOW // 2), min(len(points), found[0] + _WINDOW // 2 + 1))
    return max(near, key=lambda at: points[at].loss - points[at - 1].loss), *found[1:]


def jump(log: Log, vocab: int = VOCABULARY) -> Verdict | None:
    """A rise that stays, and whether it follows a resume."""
    places = [at for at, point in enumerate(log.points) if math.isfinite(point.loss)]
    points = [log.points[at] for at in places]
    if len(points) < _LEAST:
        return None
    found = largest_jump(points)
    if found is None:
        return Verdict("jump", "fine", "no rise that stays")
    at, before, after = found
    step, ended = points[at].step, median(point.loss for point in points[-_WINDOW:])
    near = [log.points[index].step for index in log.resumes if -2 <= places[at] - index <= _WINDOW]
    finding = f"at step {step:,} it rises from {before:.2f} to {after:.2f}, and ends at {ended:.2f}"
    if not near:
        grade = "look" if ended < before + 0.3 * (after - before) else "wrong"
        advice = "look at the data from there on, and at the rate; a file from before the rise is the better start"
        return Verdict("jump", grade, finding, advice, step)
    finding = f"resumed at step {near[0]:,}, it rises from {before:.2f} to {after:.2f}, and ends at {ended:.2f}"
    if after > 0.75 * math.log(vocab):
        advice = "the model begins anew: the resumed program has not loaded the weights"
    else:
        advice = (
            "resume with the optimizer's state, the same rate and the same place in the data (MiniMind: --from_resume "
            "1, which takes the file in checkpoints, not the one in out)"
        )
    return Verdict("jump", "wrong", finding, advice, step)


def resumed(log: Log) -> Verdict | None:
    """Whether a resumed training went on where it had stopped."""
    points = log.points
    for index in log.resumes:
        before = [p.loss for p in points[max(0, index - _WINDOW) : index] if math.isfinite(p.loss)]
        after = [p.loss for p in points[index : index + _WINDOW] if math.isfinite(p.loss)]
        if before and after:
            change = median(after) - median(before)
            finding = f"resumed at step {points[index].step:,}: {median(before):.2f} before, {median(after):.2f} after"
            if change <= max(0.4, 5 * _noise(finite(points))):
                return Verdict("resume", "fine", finding, at=points[index].step)
            return None  # `jump` tells
    return None


def standing(log: Log, kind: str) -> Verdict | None:
    """DPO that stays at ln 2: the model is still the reference."""
    losses = [point.loss for point in finite(log.points)]
    if kind != "dpo" or len(losses) < 3:
        return None
    ended, farthest = median(losses[-_WINDOW:]), max(abs(loss - LN2) for loss in losses)
    steps = f"{log.points[-1].step - log.points[0].step:,} steps"
    if farthest < 0.01 and _is_early(log, kind):
        return Verdict("ln 2", "open", f"it stands at ln 2 = 0.693, but {steps} are too few to judge: go on to 500")
    if farthest < 0.01:
        rates = [point.rate for point in log.points if point.rate is not None]
        at = f" at a rate of {_short(max(rates))}" if rates else ""
        return Verdict(
            "ln 2",
            "wrong",
            f"it stands at ln 2 = 0.693 for {steps}{at}, and strays by "
            f"{farthest:.4f}: the model is still its reference",
            "the margin must move: log-probability of chosen minus rejected, less the same of the reference. Raise "
            "the rate tenfold; look whether the weights are trained, and whether pairs differ after the cut (--data)",
            log.points[-1].step,
        )
    finding = f"it leaves ln 2 = 0.693 and ends at {ended:.3f}: a margin of {_margin(ended):+.2f}, beta included"
    if ended > LN2 + max(0.02, _noise(finite(log.points))):
        advice = "the rejected answers win: either chosen and rejected are exchanged, or the rate is too high"
        return Verdict("ln 2", "wrong", finding, advice, log.points[-1].step)
    return Verdict("ln 2", "fine", finding)


def _end(log: Log) -> tuple[float, float] | None:
    """The level of the last two fifths of a log, and how much it falls on their way.

    Of one that jumps or ends in NaN, none.
    """
    points = finite(log.points)
    if len(points) < _LEAST or not math.isfinite(log.points[-1].loss) or largest_jump(points):
        return None
    losses = [point.loss for point in points[-max(_LEAST // 2, int(0.4 * len(points))) :]]
    half = len(losses) // 2
    return median(losses), median(losses[:half]) - median(losses[half:])


def plateau(log: Log, kind: str, vocab: int = VOCABULARY) -> Verdict | None:
    """Where the loss stands at the end, and of what that is the logarithm."""
    end, chance = _end(log), math.log(vocab)
    if kind == "dpo" or end is None:
        return None
    level, fall = end
    if level > chance + 0.5:  # `start` or `rate` tells: no vocabulary explains it
        return None
    points = finite(log.points)
    early = Verdict(
        "plateau", "open", f"at {level:.2f} after {points[-1].step:,} steps: too early to judge, go on to 200"
    )
    among = f"{level:.2f}, as a guess among {_tokens(level, vocab, 1)} tokens"
    if abs(level - chance) < 0.15:
        if _is_early(log, kind):
            return early
        return Verdict(
            "plateau",
            "wrong",
            f"it stands at {level:.2f}, which is ln {vocab:,} = {chance:.2f}: nothing is learned",
            "are the parameters in the optimizer, is the rate above 0, does the loss reach them (no detach, no frozen "
            "weights)?",
            points[-1].step,
        )
    if fall > max(0.1, 2 * _noise(points) / math.sqrt(max(1, len(points) // 5))):
        return Verdict("plateau", "fine", f"still falling: by {fall:.2f} over the last two fifths, to {level:.2f}")
    if level > 0.7 * chance:
        if _is_early(log, kind):
            return early
        loaded = "were the weights loaded (strict=False hides wrong names), and is the rate far from MiniMind's?"
        return Verdict(
            "plateau",
            "wrong",
            f"it stands at {among}: it knows which tokens are frequent, and little of what stands before",
            "is the rate far from MiniMind's, and does attention see the tokens before?"
            if kind == "pretrain"
            else loaded,
            points[-1].step,
        )
    if (good := too_good(log, kind)) and good.grade == "wrong":
        return None
    finding = f"it is flat at {among}"
    if kind == "pretrain":
        return Verdict(
            "plateau",
            "fine",
            f"{finding}; others end an epoch at 2.x (#593), and a mixture at 2.7 (#343)",
            "a flat loss hides gain: judge by what the model writes, and by the loss on text that it has not read",
        )
    return Verdict("plateau", "fine", finding, "judge by answers to questions that were not in the data")


def too_good(log: Log, kind: str) -> Verdict | None:
    """A loss that text does not allow: labels that the model can see, or data that it knows by heart."""
    end = _end(log)
    if kind == "dpo" or end is None or end[0] > (1.0 if kind == "pretrain" else 0.3):
        return None
    finding = f"it ends at {end[0]:.2f}, as if it chose among {math.exp(end[0]):.2f} tokens"
    if kind == "pretrain" and end[0] < 0.3:
        advice = "no text is so sure: the model sees its labels. Shift them by one, and look at the causal mask"
        return Verdict("too good", "wrong", finding, advice, log.points[-1].step)
    return Verdict("too good", "look", finding, "it knows this data by heart: fewer epochs, or more and other data")


def far_from_reference(log: Log, kind: str) -> Verdict | None:
    """DPO that tells its pairs apart by far, at a price that the loss does not show."""
    losses = [point.loss for point in finite(log.points)]
    if kind != "dpo" or len(losses) < _LEAST or (level := median(losses[-2 * _WINDOW :])) > 0.25:
        return None
    return Verdict(
        "far",
        "look",
        f"it ends at {level:.2f}, a margin of {_margin(level):.1f} with beta: far from its reference",
        "the margin may grow while both answers become unlikely: read what it writes, lower the rate, stop earlier",
    )


def others(kind: str, millions: float | None = None) -> dict[tuple[str, float], tuple[list[float], list[float]]]:
    """Thread and size -> the steps and the losses that it tells; those of about this size, where there are some."""
    runs = defaultdict(lambda: ([], []))
    with Path(__file__).with_name("bands.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["stage"] == kind:
                steps, losses = runs[row["thread"], float(row["millions"])]
                steps.append(float(row["step"]))
                losses.append(float(row["loss"]))
    near = {run for run in runs if millions and 0.5 <= run[1] / millions <= 2}
    return {run: series for run, series in runs.items() if run in (near or runs)}


def band_at(kind: str, step: float, millions: float | None = None) -> tuple[float, float, list[str]] | None:
    """The lowest and the highest loss that others saw at a step, and their threads; between two, by its logarithm."""
    seen = {}
    for (thread, _), (steps, losses) in others(kind, millions).items():
        if steps[0] <= step <= steps[-1]:
            seen[thread] = float(np.interp(math.log1p(step), np.log1p(steps), losses))
    return (min(seen.values()), max(seen.values()), sorted(seen, key=int)) if len(seen) > 1 else None


def band(log: Log, kind: str, millions: float | None = None) -> Verdict | None:
    """The loss at the last step at which others' are known; of a curve that broke, none."""
    if not all(math.isfinite(point.loss) for point in log.points):
        return None
    points = [point for point in finite(log.points) if point.step >= 100 and band_at(kind, point.step, millions)]
    if not points:
        return None
    point = points[-1]
    known = band_at(kind, point.step, millions)
    assert known is not None
    low, high, threads = known
    near = [p.loss for p in finite(log.points) if abs(math.log1p(p.step) - math.log1p(point.step)) < 0.2]
    loss = median(near)
    finding = f"{loss:.2f} at step {point.step:,}; others' band there is {low:.2f} to {high:.2f}"
    finding += f" ({' '.join(f'#{thread}' for thread in threads)})"
    if loss > high + _BAND:
        advice = "slower than theirs: a smaller batch, a lower rate, other data, or a fault; bands are no targets"
        return Verdict("band", "look", finding, advice, point.step)
    if loss < low - 4 * _BAND:
        return Verdict(
            "band", "look", finding, "faster than theirs by far: do texts repeat, or labels leak?", point.step
        )
    return Verdict("band", "fine", finding, at=point.step)


def experts(log: Log) -> Verdict | None:
    """The balance loss of a mixture: it must not grow."""
    balance = [point.aux for point in log.points if point.aux is not None and math.isfinite(point.aux)]
    if len(balance) < _LEAST or max(balance) == 0:
        return None
    first, last = median(balance[:_WINDOW]), median(balance[-_WINDOW:])
    finding = f"the experts' balance loss goes from {first:.4f} to {last:.4f}"
    if last > 1.5 * first:
        return Verdict("experts", "look", finding, "a few experts take all: raise its coefficient, or lower the rate")
    return Verdict("experts", "fine", finding)
