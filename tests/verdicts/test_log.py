"""verdicts.log: the logs of MiniMind's trainers of every age, plain ones, and those that are refused by name."""

import json
import math

import pytest
from situations import line

from minimind_edu.verdicts.curve import what_it_is
from minimind_edu.verdicts.log import read_log


def written(tmp_path, text, name="train.log", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


NEW = "as MiniMind of 2026 writes them"
TENSORBOARD = "TensorBoard's CSV, whose Value is taken for the loss"
OLDEST = "Epoch:[0/19](100/24681) loss:5.251 lr:0.00020000 epoch_Time:98.0min:"


@pytest.mark.parametrize(
    "text, form, step, loss, rate",
    [
        (OLDEST, "as MiniMind of 2024 and 2025 wrote them", 100, 5.251, 2e-4),
        (line(100, 6.4413), "as MiniMind of 2024 and 2025 wrote them", 100, 6.4413, 5e-4),
        (line(100, 6.4413, "2026"), "as MiniMind of 2026 writes them", 100, 6.4413, 5e-4),
        (f"[rank0]: {OLDEST}", "as MiniMind of 2024 and 2025 wrote them", 100, 5.251, 2e-4),
        ("100 6.44", "plain steps and losses", 100, 6.44, None),
        ("step,loss\n100,6.44", "plain steps and losses", 100, 6.44, None),
        ("step,lr,loss\n100,3e-4,6.44", "plain steps and losses", 100, 6.44, 3e-4),
        ("0;8,66", "plain steps and losses", 0, 8.66, None),
        ("Step;Loss\n100;6,44", "plain steps and losses", 100, 6.44, None),
        ('"Step","run - val/loss","run - loss"\n"100","9","6.44"', "plain steps and losses", 100, 6.44, None),
        ("step 100 aux loss .01 loss 6.44", "plain steps and losses", 100, 6.44, None),
        ("step 100 val loss 9 loss 6.44", "plain steps and losses", 100, 6.44, None),
        ("step 100: train loss 6.44, lr 3e-4", "plain steps and losses", 100, 6.44, 3e-4),
        ("iter 100: loss 6.44, time 12ms", "plain steps and losses", 100, 6.44, None),
        ("0 8,66", "plain steps and losses", 0, 8.66, None),
        ("步数：100，损失：6.44，学习率：0.0005", "plain steps and losses", 100, 6.44, 5e-4),
        ("第 1 轮 第 100 步 验证损失 9 损失 6.44", "plain steps and losses", 100, 6.44, None),
        ("train: 0%|# | 100/44160 [01:22<12:11, 9.9it/s, loss=6.44]", "plain steps and losses", 100, 6.44, None),
        (
            "12%|# | 100/900 [01:22<12:11, val_loss=9, aux_loss=.1, loss=6.44]",
            "plain steps and losses",
            100,
            6.44,
            None,
        ),
        ('{"step": 100, "loss": 6.44, "lr": 3e-4}', "plain steps and losses", 100, 6.44, 3e-4),
        ('{"current_steps": 100, "eval_loss": 9, "loss": 6.44}', "plain steps and losses", 100, 6.44, None),
        ("Wall time,Step,Value\n1764200000.1,100,6.44", TENSORBOARD, 100, 6.44, None),
        ('"Wall time","Step","Value"\n"1764200000.1","100","6.44"', TENSORBOARD, 100, 6.44, None),
        (line(100, 6.4413, "2026").replace(",", "，").replace(":", "："), NEW, 100, 6.4413, 5e-4),
    ],
)
def test_each_form_gives_its_step_its_loss_and_its_rate(tmp_path, text, form, step, loss, rate):
    found = read_log(written(tmp_path, text))
    assert found.form == form
    [point] = found.points
    assert (point.step, point.loss, point.rate) == (step, loss, rate)


def test_the_loss_of_the_language_model_is_read_where_a_mixture_adds_its_own(tmp_path):
    text = "Epoch:[1/2](100/900), loss: 3.5000, logits_loss: 3.1000, aux_loss: 0.4000, lr: 0.0005, epoch_time: 1.0min"
    [point] = read_log(written(tmp_path, text)).points
    assert (point.loss, point.aux) == (3.1, 0.4)


@pytest.mark.parametrize(
    "text, stage, loss",
    [
        (
            "Epoch:[1/1](100/900), loss: 0.7000, dpo_loss: 0.6931, aux_loss: 0.0069, learning_rate: 0.00000004",
            "dpo",
            0.6931,
        ),
        (
            "Epoch:[1/1](100/900), loss: 2.0, ce: 3.0, aux_loss: 0.0, distill: 1.0, learning_rate: 0.000005",
            "distill",
            3.0,
        ),
    ],
)
def test_some_lines_tell_what_is_trained(tmp_path, text, stage, loss):
    found = read_log(written(tmp_path, text))
    assert (found.stage, found.points[0].loss) == (stage, loss)


def test_steps_are_counted_over_epochs(tmp_path):
    text = "\n".join(line(step, 3.0, iterations=500, epochs=3) for step in (0, 499, 500, 1400))
    assert [point.step for point in read_log(written(tmp_path, text)).points] == [0, 499, 500, 1400]
    from_zero = OLDEST + "\n" + OLDEST.replace("[0/", "[1/")
    assert [point.step for point in read_log(written(tmp_path, from_zero)).points] == [100, 24781]


def test_a_resume_is_told_by_its_line_or_by_steps_that_come_again(tmp_path):
    told = [line(100, 2.0), "Epoch [1/1]: 跳过前150个step，从step 151开始", line(200, 2.0)]
    assert read_log(written(tmp_path, "\n".join(told))).resumes == (1,)
    again = [line(100, 2.0), line(200, 2.0), line(200, 2.0), line(300, 2.0)]
    assert read_log(written(tmp_path, "\n".join(again))).resumes == (2,)
    assert read_log(written(tmp_path, "100 2.0\n200 2.0\nresuming from step 100\n150 2.0")).resumes == (2,)
    assert read_log(written(tmp_path, "\n".join(again[:2]))).resumes == ()


@pytest.mark.parametrize("word", ["nan", "NaN", "inf", "-inf"])
def test_a_loss_that_is_no_number_is_kept(tmp_path, word):
    text = f"{OLDEST}\n{OLDEST.replace('(100', '(200').replace('5.251', word)}"
    assert not math.isfinite(read_log(written(tmp_path, text)).points[1].loss)
    assert not math.isfinite(read_log(written(tmp_path, f"100 5.2\n200 {word}")).points[1].loss)


def test_other_lines_are_counted_and_strange_encodings_are_read(tmp_path):
    text = f"Model Params: 25.83M\r\n{OLDEST}\r\nTraceback (most recent call last):\r\n"
    found = read_log(written(tmp_path, text))
    assert (len(found.points), found.others) == (1, 2)
    assert len(read_log(written(tmp_path, "\ufeff" + text, encoding="utf-16-le")).points) == 1
    assert len(read_log(written(tmp_path, text.replace("\r\n", "\r"))).points) == 1


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "holds no step of training that is known here"),
        ("hello", "its first is 'hello'"),
        ("0 0.0003 8.66", "more columns need a first line that names step and loss"),
        ("0,8,66", "more columns need a first line that names step and loss"),
        ("0,8,66\n100,6,44", "its commas part columns, or columns and decimals"),
        ("{'loss': 0.6931, 'epoch': 0.59}", "trainer_state.json in its checkpoint tells both, and is read"),
        ('{"loss": 1.0, "log_history": [{"loss": 3}]}', "holds no step"),
        ('{"log_history": [{"step": 1, "loss": 3}]', "holds no step"),
        ("{'loss': 0.6931, 'learning_rate': 5e-07, 'epoch': 0.59}", "it is of transformers' Trainer"),
        (
            "Epoch:[1/1](3/90), Reward: 0.2, KL_ref: 0.1, Actor Loss: 0.3, Learning Rate: 0.0000003",
            "training by rewards",
        ),
        ("Epoch: 1, Step: 3/90, Actor Loss: 0.3, Reward: 0.2", "training by rewards"),
    ],
)
def test_what_tells_no_loss_is_refused_by_name(tmp_path, text, reason):
    with pytest.raises(ValueError, match="train.log") as refused:
        read_log(written(tmp_path, text))
    assert reason in str(refused.value) and "\n" not in str(refused.value)


def test_a_log_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no log"):
        read_log(tmp_path / "none.log")


def test_a_training_that_was_started_again_in_one_file_is_another_run(tmp_path):
    once = [line(step, 8.8 - step / 100) for step in (0, 100, 200, 300)]
    found = read_log(written(tmp_path, "\n".join([*once, *once[:3]])))
    assert ([point.step for point in found.points], found.resumes, found.runs) == ([0, 100, 200], (), 2)
    sft = [line(step, 2.0, iterations=7000) for step in (100, 200)]
    found = read_log(written(tmp_path, "\n".join([*once, *sft])))
    assert ([point.loss for point in found.points], found.resumes, found.runs) == ([2.0, 2.0], (), 2)
    assert (found.iterations, found.epochs) == (7000, ())
    told = "Epoch [1/1]: 跳过前0个step，从step 1开始"
    assert read_log(written(tmp_path, "\n".join([*once, told, *once[:3]]))).resumes == (4,)
    plain = "0 8.8\n100 7.0\n200 6.0\n"
    found = read_log(written(tmp_path, plain * 3))
    assert (len(found.points), found.resumes, found.runs) == (3, (), 3)


def test_a_screen_says_that_a_file_holds_several_runs(tmp_path):
    found = read_log(written(tmp_path, "0 8.8\n100 7.0\n" * 2))
    assert "the last of 2 runs in this file" in what_it_is(found, "pretrain").finding


def test_evaluations_and_epochs_of_plain_logs_are_no_resumes(tmp_path):
    nano = "step 0: train loss 10.9, val loss 10.8\niter 0: loss 10.91, time 27ms\niter 10: loss 9.0, time 27ms\n"
    nano += "step 20: train loss 8.0, val loss 8.1\niter 20: loss 8.02, time 27ms"
    found = read_log(written(tmp_path, nano))
    assert ([point.step for point in found.points], found.resumes) == ([0, 10, 20], ())
    for lines in (
        [f"epoch {epoch} step {step} loss {loss}" for epoch, step, loss in
         ((1, 0, 8.8), (1, 100, 8.7), (2, 0, 8.6), (2, 100, 8.5), (3, 0, 8.4))],
        ["0 8.8", "100 7.0", "0 6.5", "100 6.0", "0 5.5"],
    ):  # fmt: skip
        found = read_log(written(tmp_path, "\n".join(lines)))
        assert ([point.step for point in found.points], found.resumes) == ([0, 100, 200, 300, 400], ())


def test_the_history_that_transformers_keeps_is_read(tmp_path):
    history = [{"epoch": 0.1, "step": 10, "loss": 3.0, "learning_rate": 1e-5}, {"step": 10, "eval_loss": 9.0}]
    state = json.dumps({"global_step": 20, "log_history": [*history, {"step": 20, "loss": 2.5}]}, indent=2)
    found = read_log(written(tmp_path, state, "trainer_state.json"))
    assert [(point.step, point.loss, point.rate) for point in found.points] == [(10, 3.0, 1e-5), (20, 2.5, None)]
