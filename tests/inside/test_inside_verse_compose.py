"""A poem that the page writes is the model's: every probability is torch's, every choice the draw's, all by a seed."""

import pytest
import torch
from own_models import load_weights, logits_of

from minimind_edu.inside.page import store
from minimind_edu.trained.verse import verse_model
from minimind_edu.trained.verse.corpus import BOS, EOS, characters, encode, ids_of
from minimind_edu.trained.verse.exam import judged

CLOSE = 1e-3  # of a logit: with int8 rows vectors are rounded to 16 bits
COMMA, STOP = 2, 3
PLAN = {"given": [], "rhyme": None, "lines": 4, "width": 5, "seed": 1, "temperature": 0.8, "silenced": []}
WRITE = """async (plans) => {
    const { compose } = await import("/inside/verse/compose.js");
    return plans.map((plan) => compose(model, plan));
}"""


@pytest.fixture(scope="module")
def verse(node, tmp_path_factory):
    """The model in node by the module of the page; gives the same one in torch."""
    file = tmp_path_factory.mktemp("verse") / "weights.safetensors"
    stored = store(verse_model(), file, 8)
    load_weights(node, file.read_bytes(), None, "step", 8)
    return stored


def write(node, *plans):
    return node.evaluate(WRITE, [PLAN | plan for plan in plans])


def whole(places, width):
    """The ids of a poem with its signs."""
    ids = [BOS]
    for at, place in enumerate(places):
        ids.append(place["id"])
        if at % width == width - 1:
            ids.append(COMMA if at // width % 2 == 0 else STOP)
    return ids


def text_of(poem, width):
    return "".join(characters()[id] for id in whole(poem["places"], width)[1:])


@pytest.mark.parametrize("silenced", [[], ["2.0"], ["0.0", "1.3", "2.2"]], ids=str)
@pytest.mark.parametrize("lines, width", [(4, 5), (4, 7), (8, 5), (8, 7)])
def test_each_probability_and_each_mark_is_torch_s(node, verse, lines, width, silenced):
    plan = {"lines": lines, "width": width, "silenced": silenced, "given": encode("春")[1:]}
    [poem] = write(node, plan)
    ids = whole(poem["places"], width)
    heads = [tuple(map(int, key.split("."))) for key in silenced]
    logits = logits_of(verse, ids, *heads)
    p, expected = logits.softmax(-1), logits.argmax(-1).tolist()
    assert len(poem["places"]) == lines * width and poem["places"][0]["id"] == ids_of()["春"]
    for at, place in enumerate(poem["places"]):
        before = at + at // width
        assert place["p"] == pytest.approx(p[before, place["id"]].item(), abs=CLOSE)
        values, likeliest = p[before].topk(8)
        assert [share for _, share in place["top"]] == pytest.approx(values.tolist(), abs=CLOSE)
        assert {id for id, _ in place["top"][:4]} <= set(likeliest.tolist())
    due = [(width + 1) * line + width for line in range(lines)]
    assert poem["marks"] == [expected[at] == ids[at + 1] for at in due] + [expected[-1] == EOS]


def test_at_temperature_0_it_is_the_likeliest_character_at_every_place(node, verse):
    [poem] = write(node, {"temperature": 0, "lines": 8, "given": encode("空山新雨后")[1:]})
    logits = logits_of(verse, whole(poem["places"], 5))
    logits[:, : STOP + 1] = -torch.inf
    assert [place["id"] for place in poem["places"][5:]] == [
        logits[at + at // 5].argmax().item() for at in range(5, 40)
    ]


def test_where_the_model_would_end_a_line_the_form_makes_it_go_on(node, verse):
    [poem] = write(node, {"given": encode("空山新雨后")[1:], "width": 7, "temperature": 0})
    assert poem["places"][5]["top"][0][0] == COMMA and poem["places"][5]["top"][0][1] > 0.5
    assert all(place["id"] > STOP for place in poem["places"]) and len(poem["places"]) == 28


def test_a_plan_gives_one_poem_and_another_seed_another(node, verse):
    first, again, other = write(node, {"seed": 5}, {"seed": 5}, {"seed": 6})
    assert first == again and first["places"] != other["places"]


@pytest.mark.long
def test_it_draws_as_often_as_is_probable_and_no_mark(node, verse):
    """The last character of a poem, 400 times, against its probability, of the likeliest that share 90 %."""
    given = encode("空山新雨后天气晚来秋明月松间照清泉石上")[1:]
    poems = write(node, *({"seed": seed, "temperature": 1.0, "given": given} for seed in range(400)))
    ids = whole(poems[0]["places"], 5)
    p = logits_of(verse, ids[:-2])[-1]
    p[: STOP + 1] = -torch.inf
    p, drawn = p.softmax(-1), [poem["places"][-1]["id"] for poem in poems]
    order = p.argsort(descending=True)
    kept = order[: int((p[order].cumsum(0) < 0.9).sum()) + 1].tolist()
    assert set(drawn) <= set(kept) and len(set(drawn)) > 4
    for id in kept[:4]:
        expected = (p[id] / p[kept].sum()).item()
        assert abs(drawn.count(id) / 400 - expected) < 4 * (expected * (1 - expected) / 400) ** 0.5


@pytest.mark.long
def test_a_given_rhyme_ends_the_second_line_and_the_first_couplet_leads_to_it(node, verse):
    """The rhyme is expected there several times as much as after a couplet that knew nothing of it."""
    rhyme = ids_of()["花"]
    led = write(node, *({"seed": seed, "rhyme": rhyme} for seed in range(12)))
    plain = write(node, *({"seed": seed} for seed in range(12)))
    assert [poem["places"][9]["id"] for poem in led] == [rhyme] * 12
    expected = sum(poem["places"][9]["p"] for poem in led) / 12
    without = [logits_of(verse, whole(poem["places"], 5)[:11]).softmax(-1)[-1, rhyme].item() for poem in plain]
    assert expected > 4 * sum(without) / 12
    assert len({tuple(place["id"] for place in poem["places"][:9]) for poem in led}) == 12
    found = judged([text_of(poem, 5) for poem in led])
    assert found["rhyme"] > 0.5  # and the fourth line rhymes with it


def test_what_is_typed_of_the_first_couplet_stays_when_a_rhyme_is_asked_for(node, verse):
    given = encode("空山新雨后天气")[1:]
    [poem] = write(node, {"given": given, "rhyme": ids_of()["秋"]})
    assert [place["id"] for place in poem["places"][:7]] == given
    logits = logits_of(verse, whole(poem["places"], 5)).softmax(-1)
    for at, place in enumerate(poem["places"]):
        assert place["p"] == pytest.approx(logits[at + at // 5, place["id"]].item(), abs=CLOSE)
    assert len(poem["marks"]) == 5


def test_a_whole_poem_may_be_given(node, verse):
    text = "空山新雨后天气晚来秋明月松间照清泉石上流"
    [poem] = write(node, {"given": encode(text)[1:]})
    assert text_of(poem, 5) == "空山新雨后，天气晚来秋。明月松间照，清泉石上流。"


@pytest.mark.long
def test_without_the_heads_that_carry_it_the_rhyme_goes(node, verse):
    """The form is the page's, so what a head is for can be seen also where the model alone would lose the form."""
    seeds = [{"seed": seed, "lines": 8} for seed in range(10)]
    shares = {}
    for silenced in ([], ["2.0"], ["0.0"]):
        poems = write(node, *(plan | {"silenced": silenced} for plan in seeds))
        shares[str(silenced)] = judged([text_of(poem, 5) for poem in poems])["rhyme"]
    assert shares["[]"] > 0.7 and shares["['2.0']"] < shares["[]"] - 0.2
    assert shares["['0.0']"] < shares["[]"] - 0.1
