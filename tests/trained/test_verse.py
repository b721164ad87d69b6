"""verse: the corpus is what it says, and every measure tells a poem that keeps a rule from one that does not."""

import json
import random
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from cases import long_after

from minimind_edu.trained.verse import CONFIG, WAYS, exam, new_model, phases, recipe, replay, rhymes, sounds
from minimind_edu.trained.verse import __main__ as program
from minimind_edu.trained.verse.corpus import (
    BOS,
    EOS,
    FORMS,
    Corpus,
    Phase,
    batches,
    characters,
    decode,
    encode,
    ids_of,
    line_end,
    punctuated,
    read_corpus,
    tails,
)
from minimind_edu.trained.verse.sources import lines_of, paired, regular, shares_level, small, split

# in its second and fourth line 秋 and 流, in its sixth and eighth 舟 and 留: one group, 下平声十一尤
OCTAVE = "空山新雨后天气晚来秋明月松间照清泉石上流竹喧归浣女莲动下渔舟随意春芳歇王孙自可留"


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_corpus()


class Expecting:
    """A model that knows one thing: at each place these characters [V] of bool, by a rule of the text so far."""

    def __init__(self, rule):
        self.rule = rule

    def __call__(self, ids, logits_to_keep=0):
        logits = torch.zeros(*ids.shape, len(characters()))
        for place in range(ids.shape[1]):
            logits[:, place][self.rule(ids[:, : place + 1])] += 8.0
        return SimpleNamespace(logits=logits[:, -logits_to_keep:])


def nothing(ids):
    return torch.zeros(len(ids), len(characters()), dtype=torch.bool)


def rhymes_with_line_two(ids, width=5):
    """Where a rhyme is due, after the second line, what is in a group with its last character."""
    if ids.shape[1] not in [line_end(line, width) for line in (3, 5, 7)]:
        return nothing(ids)
    level = rhymes.in_level()
    return (level[ids[:, line_end(1, width)]] @ level.T) > 0


# The corpus


def test_every_character_has_an_id_of_its_own():
    assert len(set(characters())) == len(characters()) == CONFIG.vocab_size == 3515
    assert (characters()[BOS], characters()[EOS]) == ("<s>", "</s>") == (characters()[CONFIG.bos_token_id], "</s>")
    assert decode(torch.tensor(encode("远上寒山，"))) == "远上寒山，"
    with pytest.raises(ValueError, match="each character must be one of the 3,515 of the vocabulary, got 'a'; try"):
        encode("a")


def test_a_poem_is_read_with_its_punctuation(corpus):
    assert {name: ids.shape[1] for name, ids in corpus.training.items()} == {
        "4x5": 26, "4x7": 34, "8x5": 50, "8x7": 66, "8x1": 18, "8x3": 34
    }  # fmt: skip
    for held in (corpus.training, corpus.held_out):
        for name, ids in held.items():
            assert (ids[:, 0] == BOS).all() and (ids[:, -1] == EOS).all() and (ids[:, 1:-1] > EOS).all()
            if name in exam.WHOLE:
                assert all(exam.well_formed(decode(poem)) for poem in ids[:50])
    assert sum(len(corpus.training[name]) for name in exam.WHOLE) > 29_000
    assert punctuated(OCTAVE)[:12] == "空山新雨后，天气晚来秋。"


def test_tails_are_the_ends_of_lines():
    ids = torch.tensor([[*encode(punctuated(OCTAVE)), EOS]])
    assert decode(tails(ids, 5, 1)[0]) == "后，秋。照，流。女，舟。歇，留。"
    assert decode(tails(ids, 5, 3)[0]).startswith("新雨后，晚来秋。")
    assert tails(ids, 5, 3)[0, -1] == EOS


def test_held_out_poems_are_no_training_poems(corpus):
    known = Counter()
    for name, (lines, width) in exam.WHOLE.items():
        for poem in corpus.training[name]:
            text = "".join(characters()[index] for index in poem[1:-1].tolist())
            known.update(text[line_end(line, width) - width : line_end(line, width)] for line in range(lines))
    for name in exam.WHOLE:
        for poem in corpus.held_out[name]:
            assert sum(line in known for line in exam.lines_of(decode(poem))) < 2


def test_all_even_lines_of_the_filtered_poems_share_a_level_group(corpus):
    level = rhymes.in_level()
    for name, (lines, width) in exam.WHOLE.items():
        ids = corpus.training[name][:2000].long()
        ends = [level[ids[:, line_end(line, width)]] for line in range(1, lines, 2)]
        assert (torch.stack(ends).prod(0).sum(1) > 0).all()


def test_batches_come_by_the_shares_of_the_phases(corpus):
    chosen = [Phase(300, 512, {"8x1": 0.5, "whole": 0.5}), Phase(20, 2048, {"8x3": 1.0})]
    made = list(batches(corpus, chosen, seed=3))
    assert len(made) == 320
    lengths = Counter(ids.shape[1] for ids in made[:300])
    assert 0.4 < lengths[18] / 300 < 0.6 and set(lengths) == {18, 26, 34, 50, 66}
    assert all(512 - 66 < ids.numel() <= 512 for ids in made[:300])
    assert {tuple(ids.shape) for ids in made[300:]} == {(2048 // 34, 34)}
    assert all(torch.equal(a, b) for a, b in zip(made, batches(corpus, chosen, seed=3), strict=True))
    with pytest.raises(ValueError, match="a form must be 'whole' or .*, got '9x5'"):
        next(batches(corpus, [Phase(1, 512, {"9x5": 1.0})], seed=3))


def test_a_form_goes_through_all_its_poems_before_it_repeats_one(corpus):
    few = Corpus({"4x5": corpus.training["4x5"][:90]}, {})
    made = torch.cat(list(batches(few, [Phase(6, 30 * 26, {"4x5": 1.0})], seed=0)))
    for third in made.split(90):
        assert len({tuple(poem) for poem in third.tolist()}) == 90


def test_the_ways_differ_in_what_is_read_and_in_nothing_else():
    ways = {way: phases(way) for way in WAYS if way != "lesson"}
    sizes = {way: sorted((phase.steps, phase.tokens) for phase in chosen) for way, chosen in ways.items()}
    assert sizes["recipe"] == sizes["plain"] == sizes["tails_first"]
    assert [phase.tokens for phase in ways["plain"]] == [phase.tokens for phase in ways["recipe"]]
    assert all(phase.shares == {"whole": 1.0} for phase in ways["plain"])
    assert any("8x1" in phase.shares for phase in ways["recipe"])
    assert len({recipe(chosen) for chosen in ways.values()}) == 1
    assert recipe(phases("plain", 4)).steps == 4 * recipe(phases()).steps
    lesson = recipe(phases("lesson"))
    assert lesson.rate(lesson.steps - 1) == lesson.rate(40) == lesson.learning_rate  # it does not fall


# Sounds


def test_a_rhyme_is_a_rhyme_of_the_old_lists():
    assert rhymes.rhymes("花", "斜") and rhymes.rhymes("门", "言") and rhymes.rhymes("秋", "流")
    assert not rhymes.rhymes("门", "春") and not rhymes.rhymes("东", "冬") and not rhymes.rhymes("花", "花")
    assert not rhymes.rhymes("月", "雪")  # both oblique


def test_today_other_characters_rhyme():
    modern, known = rhymes.in_modern(), ids_of()

    def today(a: str, b: str) -> bool:
        return bool((modern[known[a]] * modern[known[b]]).any())

    assert today("门", "春") and today("东", "冬") and today("秋", "流")
    assert not today("花", "斜") and not today("门", "言") and not today("知", "西")
    assert (modern[4:].sum(1) > 0).float().mean() > 0.999


def test_level_and_oblique():
    tones, known = rhymes.tones(), ids_of()
    assert [int(tones[known[one]]) for one in "花春白月看，"] == [1, 1, -1, -1, 0, 0]  # 看 was both
    assert (tones[4:] != 0).float().mean() > 0.8
    assert rhymes.plain().sum() > 1000 and (tones[rhymes.plain()] == 1).all()


def test_what_poets_paired_agrees_with_the_lists_that_it_knows_nothing_of():
    rng, told = random.Random(0), Counter()
    known = [one for one in characters()[4:1200] if rhymes.plain()[ids_of()[one]]]
    for _ in range(20_000):
        a, b = rng.sample(known, 2)
        if (pair := rhymes.poets_pair(a, b)) is not None:
            told[pair, rhymes.rhymes(a, b)] += 1
    assert told[True, True] / (told[True, True] + told[False, True]) > 0.9
    assert told[True, False] / (told[True, False] + told[False, False]) < 0.05
    assert rhymes.poets_pair("花", "花") is None


# Measures


@pytest.mark.parametrize(
    "poem, fine",
    [
        (punctuated(OCTAVE), True),
        (punctuated(OCTAVE[:20]), True),
        (punctuated(OCTAVE)[:-1], False),
        (punctuated(OCTAVE).replace("，", "。"), False),
        (punctuated(OCTAVE)[:36], False),  # six lines
        (punctuated(OCTAVE).replace("空", ""), False),
        ("", False),
    ],
)
def test_a_form_is_one_of_four(poem, fine):
    assert exam.well_formed(poem) is fine


def test_real_poems_rhyme_and_scan_and_shuffled_ones_do_not(corpus):
    poems = [decode(poem) for name in exam.WHOLE for poem in corpus.held_out[name]]
    told = exam.judged(poems)
    assert told["form"] == 1 and told["rhyme"] > 0.999 and told["same"] < 0.001  # a poet may take a word twice
    assert told["rhyme_chance"] < 0.08 and told["paired"] > 0.97 and told["paired_chance"] < 0.08
    assert min(told["opposite"]) > 0.9 and told["even_level"] == 1 and told["odd_oblique"] > 0.95
    lines = [line for poem in poems for line in exam.lines_of(poem) if len(line) == 5]
    random.Random(0).shuffle(lines)
    mixed = [punctuated("".join(lines[i : i + 4])) for i in range(0, len(lines) - 3, 4)]
    told = exam.judged(mixed)
    assert told["form"] == 1 and told["rhyme"] < 0.1
    assert max(abs(share - 0.5) for share in told["opposite"]) < 0.08


def test_what_is_not_well_formed_is_not_judged():
    told = exam.judged(["花。", punctuated(OCTAVE)])
    assert (told["form"], told["pairs"], told["rhyme"], told["rhyme_chance"]) == (0.5, 3, 1, None)
    assert exam.judged(["花。"])["rhyme"] is None


def test_a_model_that_expects_everything_alike_reads_no_rhyme(corpus):
    few = Corpus({}, {"8x5": corpus.held_out["8x5"]})
    told = exam.expected(Expecting(nothing), few, 40)
    assert told["loss"] == pytest.approx(torch.tensor(float(len(characters()))).log().item())
    assert 0.01 < told["rhyme"] < 0.03 and 0.01 < told["rhyme_other"] < 0.03
    swapped = exam.exchange(Expecting(nothing), few, 40)
    assert swapped["times"] == pytest.approx(1) and 20 < swapped["poems"] < 40
    assert swapped["new_before"] == pytest.approx(swapped["new_after"])


def test_a_model_that_reads_the_rhyme_follows_the_exchange(corpus):
    few = Corpus({}, {"8x5": corpus.held_out["8x5"]})
    reader = Expecting(rhymes_with_line_two)
    told = exam.expected(reader, few, 40)
    assert told["rhyme"] > 0.9 and told["rhyme_other"] < 0.01 and told["likeliest"] > 0.9
    swapped = exam.exchange(reader, few, 40)
    assert swapped["times"] > 50
    assert swapped["old_before"] > 0.6 > 0.05 > swapped["old_after"]


def test_one_that_foretells_the_rhyme_without_reading_it_does_not(corpus):
    """It knows each poem by its first line, and so how it rhymes: its probability is right, and a false sign."""
    few = Corpus({}, {"8x5": corpus.held_out["8x5"]})
    level = rhymes.in_level()
    ends = {tuple(poem[1:5].tolist()): int(poem[line_end(1, 5)]) for poem in few.held_out["8x5"]}

    def by_line_one(ids):
        if ids.shape[1] < 12:
            return nothing(ids)
        return (level[[ends[tuple(row[1:5].tolist())] for row in ids]] @ level.T) > 0

    model = Expecting(by_line_one)
    assert exam.expected(model, few, 40)["rhyme"] > 0.9
    assert exam.exchange(model, few, 40)["times"] == pytest.approx(1)


def test_copies_are_found_line_by_line(corpus):
    poem = decode(corpus.training["4x5"][7])
    other = punctuated(OCTAVE[::-1])
    told = exam.copied([poem, other], Corpus({"4x5": corpus.training["4x5"]}, {}))
    assert told == {"lines": 12, "lines_copied": 4, "poems_copied": 1}


def test_the_old_language_is_told_from_todays(corpus):
    few = Corpus({}, {"8x5": corpus.held_out["8x5"]})
    chances, first = sounds.second_rhymes(Expecting(rhymes_with_line_two), few, 200)
    told = sounds.times_usual(chances, first)
    assert min(told["then"]["times"], told["then and today"]["times"]) > 5 > 0.5 > told["today"]["times"]
    groups = sounds.own_groups(chances, first)
    assert groups["own"] == groups["groups"] > 5
    flat = sounds.times_usual(*sounds.second_rhymes(Expecting(nothing), few, 200))
    assert all(kind["times"] == pytest.approx(1) for kind in flat.values())
    kinds = torch.stack(list(sounds.kinds_of(first).values()))
    assert kinds.sum(0).max() == 1 and not kinds[:, torch.arange(len(first)), first].any()


# The sources


def test_only_the_four_forms_are_kept_each_poem_once():
    octave = punctuated(OCTAVE)
    assert regular([octave, octave, octave[:24], octave[:18], octave.replace("空", "□")]) == [OCTAVE, OCTAVE[:20]]
    assert {len(lines_of("花" * size)) for size in FORMS} == {4, 8}


def test_a_level_group_is_shared_by_all_even_lines_or_not():
    groups = {"秋": {"尤"}, "流": {"尤", "x"}, "舟": {"尤"}, "留": {"尤"}}
    assert shares_level(OCTAVE, groups)
    assert not shares_level(OCTAVE, groups | {"留": {"x"}})
    assert not shares_level(OCTAVE, {})


def test_pairs_are_counted_against_chance():
    """Poems end with 东 and 空, or with 花 and 家: those are pairs, the others are none."""
    poems = [f"一二三四五一二三四{a}一二三四五一二三四{b}" for a, b in (("东", "空"), ("花", "家")) for _ in range(8)]
    assert sorted(paired(poems)) == ["东家-", "东空+", "东花-", "家空-", "家花+", "空花-"]
    assert paired(poems[:1]) == []  # too few to tell


def test_what_shares_two_lines_with_another_poem_is_not_held_out(monkeypatch):
    from minimind_edu.trained.verse import sources

    rng = random.Random(0)
    poems = ["".join(rng.choice(characters()[4:]) for _ in range(20)) for _ in range(400)]
    monkeypatch.setattr(sources, "HELD_OUT", 30)
    first = split(poems, [])
    assert (len(first["t"]), len(first["h"])) == (370, 30)
    double = first["h"][0]
    again = split(poems, [double[:10] + "花" * 10, first["h"][1][:5] + "花" * 15])
    assert double not in again["h"] and len(again["h"]) == 29
    kept = small(again, most=6000)
    assert sum(line[0] == "h" for line in kept) == 29 and 0 < sum(line[0] == "t" for line in kept) < 370


# The training


@pytest.mark.parametrize("way", long_after(1, WAYS))
def test_a_short_run_writes_what_the_book_keeps(way, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "HELD", 4)
    monkeypatch.setattr(program, "WRITTEN", 2)
    monkeypatch.setattr(program, "WRITTEN_LAST", 2)
    monkeypatch.setattr(exam, "LONGEST", 6)
    monkeypatch.setattr(
        "sys.argv", ["verse", "--way", way, "--longer", ".0005", "--into", str(tmp_path), "--device", "cpu"]
    )
    program.main()
    told = json.loads((tmp_path / f"{way}-0.json").read_text(encoding="utf-8"))
    assert told["way"] == way and told["looks"][-1]["step"] == sum(told["steps"])
    assert told["looks"][-1]["tokens"] > 400
    assert (tmp_path / f"{way}-0.safetensors").exists()
    assert (tmp_path / f"{way}-0-before.safetensors").exists() == (way == "recipe")
    assert f"{way}-0 is done" in capsys.readouterr().out


def test_no_run_replaces_what_the_package_has(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["verse"])
    with pytest.raises(SystemExit):
        program.main()
    assert "--into PATH must say where this goes" in capsys.readouterr().err


def test_a_model_is_the_same_for_a_seed():
    assert new_model(3).num_parameters() == 1_003_968
    same = [new_model(3).lm_head.weight[100, :3].tolist() for _ in range(2)]
    assert same[0] == same[1] != new_model(4).lm_head.weight[100, :3].tolist()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="recordings are CUDA's")
def test_replayed_steps_learn_what_launched_ones_learn(corpus):
    from minimind_edu.trained.training import Recipe, train

    made = list(batches(corpus, [Phase(40, 512, {"8x1": 0.5, "8x5": 0.5})], seed=0))
    short = Recipe(40, 4e-3, warmup=10)
    launched = train(new_model(0).cuda(), made, short)
    replayed = replay.train(new_model(0).cuda(), made, short)
    assert replayed == pytest.approx(launched, abs=0.02)
