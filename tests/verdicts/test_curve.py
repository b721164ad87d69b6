"""verdicts.curve: what a log's curve shows, on one that is right and on one that is wrong for each question."""

import math

import pytest
from situations import NAN, curve, write_log

from minimind_edu.verdicts import curve as looks
from minimind_edu.verdicts.log import Log, Point, read_log

FALLING = [(0, 8.86), (100, 5.25), (500, 3.60), (1000, 3.23), (1500, 2.80), (5000, 2.3)]


def log(places, rate=5e-4, stage=None, **more):
    return Log(tuple(Point(step, loss, rate) for step, loss in places), "a test", stage, **more)


def grade(verdict):
    return verdict and verdict.grade


@pytest.mark.parametrize(
    "stage, first, expected, said",
    [
        ("pretrain", (0, 8.86), "fine", "ln 6,400 = 8.76 is a blind guess"),
        ("pretrain", (0, 9.4), "look", "as a blind guess among 12,088 tokens"),
        ("pretrain", (0, 11.93), "wrong", "as a blind guess among 151,752 tokens; of 6,400 it would be 8.76"),
        ("pretrain", (0, 2.4), "look", "far below a blind guess"),
        ("pretrain", (100, 6.4), "open", "its first line is step 100"),
        ("sft", (0, 2.4), "fine", "trained weights were loaded"),
        ("sft", (100, 7.4), "wrong", "no trained weights were loaded"),
        ("sft", (1000, 3.98), "open", "the start is not seen"),
        ("dpo", (0, 0.6931), "fine", "which is ln 2"),
        ("dpo", (0, 0.9), "wrong", "model and reference differ before any step"),
        ("dpo", (100, 0.6), "open", "the start is not seen"),
    ],
)
def test_where_a_loss_begins(stage, first, expected, said):
    verdict = looks.start(log([first]), stage)
    assert verdict.grade == expected and said in verdict.finding


@pytest.mark.parametrize("loss", [14.5, 2900.0, 1e30])
@pytest.mark.parametrize("stage", [None, "pretrain", "sft", "dpo"])
def test_a_loss_beyond_any_vocabulary_is_told_without_its_exponential(loss, stage):
    verdicts = looks.check_log(log([(100 * n, loss) for n in range(12)]), stage=stage)
    assert any(verdict.grade == "wrong" for verdict in verdicts)
    assert "more than 6,400 tokens" in looks.start(log([(0, loss)]), "pretrain").finding


def test_the_vocabulary_of_the_model_decides_what_a_blind_guess_is():
    assert looks.start(log([(0, 11.93)]), "pretrain", vocab=151_936).grade == "fine"


@pytest.mark.parametrize(
    "places, rate, stage, said",
    [
        ([(0, NAN)], 5e-4, "pretrain", "the first one already"),
        ([(0, 8.8), (100, 30.0), (200, NAN)], 0.1, "pretrain", "the rate is 0.1, 200 times MiniMind's"),
        ([(0, 2.0), (100, 1.9), (200, 5.0), (300, NAN)], 5e-5, "sft", "it rose from 1.90 to 5.00"),
        ([(0, 2.0), (100, 1.9), (200, 1.8), (300, NAN)], 5e-7, "sft", "out of a quiet curve (1.80 just before)"),
    ],
)
def test_a_loss_that_is_no_number_and_what_went_before(places, rate, stage, said):
    verdict = looks.numbers(log(places, rate), stage)
    assert verdict.grade == "wrong" and said in verdict.finding and verdict.advice
    assert verdict.at == next(step for step, loss in places if math.isnan(loss))


def test_losses_that_are_all_numbers():
    assert looks.numbers(log(FALLING), "pretrain").grade == "fine"


@pytest.mark.parametrize(
    "stage, rate, expected",
    [
        ("pretrain", 5e-4, "fine"),
        ("pretrain", 1e-2, "look"),
        ("pretrain", 0.1, "wrong"),
        ("sft", 1e-5, "fine"),
        ("sft", 2e-3, "look"),
        ("dpo", 4e-8, "fine"),
        ("dpo", 5e-7, "fine"),
        ("dpo", 2e-6, "look"),
        ("dpo", 5e-6, "wrong"),
        ("lora", 1e-7, "look"),
    ],
)
def test_a_rate_is_compared_with_those_of_minimind(stage, rate, expected):
    assert looks.rate(log(FALLING, rate), stage).grade == expected


@pytest.mark.parametrize(
    "first, rate, expected",
    [(1000, 5e-4, "pretrain"), (1000, 1e-5, "sft"), (1000, None, "sft"), (0, 5e-4, "sft")],
)
def test_a_low_loss_proves_no_trained_weights_where_the_start_is_not_seen(first, rate, expected):
    assert looks.stage_of(log([(first, 3.2), (first + 100, 3.1)], rate)) == expected


def test_the_rate_that_is_advised_where_dpo_stands_is_not_too_high():
    stands = log(curve((0, 0.6931), (3000, 0.6929)), looks.USUAL_RATES["dpo"][1])
    assert "Raise the rate tenfold" in looks.standing(stands, "dpo").advice
    assert looks.rate(log(FALLING, 10 * looks.USUAL_RATES["dpo"][1]), "dpo").grade == "fine"


def test_one_loss_is_no_plural():
    assert looks.numbers(log([(0, 8.8)]), "pretrain").finding == "the only loss is a number"


def test_a_rate_that_is_high_is_wrong_where_the_loss_ran_away():
    ran = [*FALLING, *((6000 + 100 * n, 7.0) for n in range(6))]
    assert [looks.rate(log(places, 1e-2), "pretrain").grade for places in (FALLING, ran)] == ["look", "wrong"]
    assert looks.rate(log(FALLING, None), "pretrain") is None


def test_a_rise_that_stays_is_no_spike_and_no_noise():
    noisy = curve((0, 3.0), (10000, 1.5), noise=0.12)
    assert looks.jump(log(noisy)).grade == "fine"
    spike = [(step, loss + 2 * (step in (4000, 4100))) for step, loss in noisy]
    assert looks.jump(log(spike)).grade == "fine"
    stays = [(step, loss + 2 * (step >= 6000)) for step, loss in noisy]
    found = looks.jump(log(stays))
    assert found.grade == "wrong" and abs(found.at - 6000) <= 200
    back = [(step, loss + 2 * (4000 <= step < 6000)) for step, loss in noisy]
    assert looks.jump(log(back)).grade == "look"
    assert looks.jump(log(noisy[:5])) is None


@pytest.mark.parametrize("after, said", [(3.7, "the optimizer's state"), (8.8, "has not loaded the weights")])
def test_a_rise_after_a_resume_is_told_as_one(after, said):
    before = curve((0, 2.2), (6000, 1.5), noise=0.05)
    resumed = [(6100, 1.52), *((6200 + 100 * n, after) for n in range(12))]
    found = looks.jump(log([*before, *resumed], resumes=(len(before),)))
    assert found.grade == "wrong" and "resumed at step 6,100" in found.finding and said in found.advice
    assert looks.resumed(log([*before, *resumed], resumes=(len(before),))) is None


def test_a_resume_that_goes_on_is_fine():
    places = curve((0, 2.2), (9000, 1.5), noise=0.05)
    assert looks.resumed(log(places, resumes=(60,))).grade == "fine"
    assert looks.jump(log(places, resumes=(60,))).grade == "fine"
    assert looks.resumed(log(places)) is None


def test_dpo_that_stands_at_ln_2_and_dpo_that_leaves_it():
    stands = looks.standing(log(curve((0, 0.6931), (3000, 0.6929), noise=0.0005), 4e-8), "dpo")
    assert stands.grade == "wrong" and "stands at ln 2 = 0.693 for 3,000 steps at a rate of 4e-8" in stands.finding
    moves = looks.standing(log(curve((0, 0.6931), (3000, 0.52), noise=0.01), 4e-8), "dpo")
    assert moves.grade == "fine"
    assert float(moves.finding.rpartition("margin of ")[2].split(",")[0]) == pytest.approx(
        -math.log(math.exp(float(moves.finding.partition("ends at ")[2].split(":")[0])) - 1), abs=0.02
    )
    assert looks.standing(log(FALLING), "pretrain") is None


@pytest.mark.parametrize(
    "places, stage, expected, said",
    [
        (
            curve((0, 8.76), (3000, 8.75), noise=0.01),
            "pretrain",
            "wrong",
            "which is ln 6,400 = 8.76: nothing is learned",
        ),
        (curve((0, 8.1), (300, 7.45), (4000, 7.4), noise=0.03), "pretrain", "wrong", "which tokens are frequent"),
        (curve((0, 8.9), (1500, 2.8), (9000, 2.7), noise=0.1), "pretrain", "fine", "others end an epoch at 2.x"),
        (curve((0, 8.9), (3000, 4.0)), "pretrain", "fine", "still falling"),
        (curve((0, 2.0), (1000, 1.55), (9000, 1.5), noise=0.1), "sft", "fine", "it is flat at 1."),
    ],
)
def test_where_a_curve_stands_at_its_end(places, stage, expected, said):
    verdict = looks.plateau(log(places), stage)
    assert verdict.grade == expected and said in verdict.finding


def test_no_text_is_as_sure_as_a_model_that_sees_its_labels():
    leak = looks.too_good(log(curve((0, 8.9), (2000, 0.02))), "pretrain")
    assert leak.grade == "wrong" and "sees its labels" in leak.advice
    assert looks.too_good(log(curve((0, 2.0), (500, 0.2), (2000, 0.1))), "lora").grade == "look"
    assert looks.too_good(log(FALLING * 2), "pretrain") is None


def test_dpo_far_from_its_reference():
    far = looks.far_from_reference(log(curve((0, 0.69), (15000, 0.1), noise=0.03)), "dpo")
    assert far.grade == "look" and "a margin of 2." in far.finding
    assert looks.far_from_reference(log(curve((0, 0.69), (15000, 0.5), noise=0.03)), "dpo") is None


def test_a_band_is_what_threads_told_at_that_step():
    low, high, threads = looks.band_at("pretrain", 100)
    assert (low, high, threads) == (5.25, 7.46, ["26", "271", "634"])
    assert looks.band_at("pretrain", 500, millions=26)[2] == ["26", "271"]
    assert looks.band_at("pretrain", 5000) is None and looks.band_at("sft", 100) is None


def test_a_loss_is_held_against_the_band_at_the_last_step_that_others_told():
    inside = looks.band(log(curve(*FALLING)), "pretrain")
    assert inside.grade == "fine" and inside.at == 1400 and "(#26 #271)" in inside.finding
    slow = looks.band(log(curve((0, 8.8), (5000, 7.0))), "pretrain")
    assert slow.grade == "look" and "slower than theirs" in slow.advice
    fast = looks.band(log(curve((0, 8.8), (100, 2.0), (5000, 0.5))), "pretrain")
    assert fast.grade == "look" and "do texts repeat" in fast.advice
    assert looks.band(log([(0, 8.8)]), "pretrain") is None


def test_the_experts_balance_must_not_grow():
    def balanced(first, last):
        points = [Point(100 * n, 3.0, 5e-4, first + (last - first) * n / 19) for n in range(20)]
        return looks.experts(Log(tuple(points), "a test", None))

    assert [balanced(0.08, 0.08).grade, balanced(0.08, 0.3).grade] == ["fine", "look"]
    assert looks.experts(log(FALLING)) is None


@pytest.mark.parametrize(
    "places, name, expected",
    [
        ([(0, 8.9), (100, 5.2)], "train.log", "pretrain"),
        ([(100, 5.2)], "train.log", "pretrain"),
        ([(0, 2.4)], "train.log", "sft"),
        ([(0, 0.69)], "train.log", "dpo"),
        ([(0, NAN)], "train.log", "pretrain"),
        ([(0, 7.4)], "full_sft_512.log", "sft"),
    ],
)
def test_what_a_log_is_taken_for(tmp_path, places, name, expected):
    found = read_log(write_log(tmp_path / name, places))
    assert looks.stage_of(found) == expected
    told = looks.what_it_is(found, expected)
    assert ("taken for" in told.finding) == (found.stage is None) == bool(told.advice)


@pytest.mark.parametrize("loss, expected", [(10.9, "look"), (11.93, "look"), (14.0, "wrong")])
def test_a_vocabulary_that_no_model_tells_may_be_another(loss, expected):
    started = [v for v in looks.check_log(log([(0, loss)]), stage="pretrain") if v.about == "start"]
    assert [v.grade for v in started] == [expected]
    assert looks.start(log([(0, loss)]), "pretrain").grade == "wrong"


def test_dpo_that_stands_is_judged_after_500_steps_unless_its_rate_is_0():
    places = curve((0, 0.6931), (499, 0.6930), every=10, noise=0.0005)
    for steps, rate, expected in ((4, 4e-8, "open"), (50, 4e-8, "open"), (50, None, "open"), (50, 0.0, "wrong")):
        assert looks.standing(log(places[:steps], rate), "dpo").grade == expected
    assert looks.standing(log([*places, (500, 0.693)], 4e-8), "dpo").grade == "wrong"


def test_dpo_whose_rejected_answers_win_is_wrong():
    worse = looks.standing(log(curve((0, 0.6931), (3000, 0.958), noise=0.01)), "dpo")
    assert worse.grade == "wrong" and "a margin of -0." in worse.finding and "exchanged" in worse.advice
    assert looks.standing(log(curve((0, 0.6931), (3000, 0.70), noise=0.01)), "dpo").grade == "fine"


@pytest.mark.parametrize("level", [8.75, 7.4])
def test_a_plateau_is_judged_after_200_steps_unless_the_rate_is_0(level):
    places = [(step, level + 0.001 * (step % 3)) for step in range(1, 13)]
    early = looks.plateau(log(places), "pretrain")
    assert early.grade == "open" and "too early to judge" in early.finding
    assert looks.plateau(log(places, 0.0), "pretrain").grade == "wrong"
    assert looks.plateau(log([(20 * step, loss) for step, loss in places]), "pretrain").grade == "wrong"


def test_a_plateau_has_no_cause_that_another_verdict_contradicts():
    climbed = [*((100 * n, 14.0) for n in range(12)), (1200, NAN)]
    assert looks.plateau(log(climbed), "pretrain") is None and looks.plateau(log(climbed[:-1]), "pretrain") is None
    fell = [*((100 * n, 4.0) for n in range(12)), (1200, NAN)]
    assert looks.plateau(log(fell), "pretrain") is None and looks.plateau(log(fell[:-1]), "pretrain").grade == "fine"
    stands = log([(100 * n, 7.4) for n in range(12)])
    advice = {stage: looks.plateau(stands, stage).advice for stage in ("pretrain", "sft")}
    assert "weights loaded" in advice["sft"] and "loaded" not in advice["pretrain"]
    leak = log([(0, 8.9), *((100 * n, 0.02) for n in range(1, 30))])
    assert looks.too_good(leak, "pretrain").grade == "wrong" and looks.plateau(leak, "pretrain") is None


def test_a_loss_that_is_a_number_again_leaves_the_weights_whole():
    places = [(0, 2.0), (100, NAN), (200, 1.9), (300, 1.8)]
    once = looks.numbers(log(places, 5e-7), "sft")
    assert once.grade == "look" and once.at == 100 and "1 of 4 losses are no number" in once.finding
    twice = looks.numbers(log([*places, (400, NAN), (500, NAN)], 5e-7), "sft")
    assert twice.grade == "wrong" and twice.at == 400 and "from step 400 on" in twice.finding


def test_a_log_of_one_line_is_told_in_the_singular():
    assert (
        looks.what_it_is(log([(100, 5.2)]), "pretrain").finding == "one line, a test, step 100: taken for pretraining"
    )
    assert looks.what_it_is(log(FALLING), "pretrain").finding.startswith("6 lines, a test, steps 0 to 5,000")
