"""SinkingWords: each combination of its switches shows what models of the package do, and its claims hold elsewhere."""

from dataclasses import replace
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from browser import open_figures, read_out

from minimind_edu import MiniMindForCausalLM
from minimind_edu.figures import ResidualStream, SinkingWords, residual_stream
from minimind_edu.figures import sinking_words as module
from minimind_edu.figures.residual_stream import LOUDER, LOUDNESS

SETTINGS = list(product(module.SIDES, LOUDER, LOUDNESS))


def package_model(placement, loudness, louder="both", seed=0) -> MiniMindForCausalLM:
    """The same weights in a model of the package, whose last matrices really are that loud."""
    source = residual_stream.small_model(placement, seed=seed)
    model = MiniMindForCausalLM(replace(source.config)).double().eval().requires_grad_(False)
    model.load_state_dict(source.state_dict())
    for layer in model.model.layers:
        if louder != "networks":
            layer.self_attn.o_proj.weight.mul_(loudness)
        if louder != "attention":
            layer.mlp.down_proj.weight.mul_(loudness)
    return model


def last_output(model, ids) -> torch.Tensor:
    return F.normalize(model.model(ids)[0][0, -1], dim=-1)


def moved(model, place) -> float:
    """By how much the last word's output moves if this word is replaced, from the package's own forward."""
    ids = residual_stream.text()[0]
    other = ids.clone()
    other[0, place] = (other[0, place] + 1) % model.config.vocab_size
    return (last_output(model, other) - last_output(model, ids)).norm().item()


@pytest.mark.parametrize("placement, louder, loudness", SETTINGS[::5])
def test_a_run_is_a_model_of_the_package(placement, louder, loudness):
    run = SinkingWords(about="causes", placement=placement, louder=louder, loudness=loudness).chosen(placement)
    model = package_model(placement, loudness, louder)
    assert run["first"] == pytest.approx(moved(model, 0), rel=6e-3, abs=2e-4)
    assert run["sixth"] == pytest.approx(moved(model, 5), rel=6e-3, abs=2e-4)
    end = model.model(residual_stream.text()[0])[0][0]
    cosines = F.cosine_similarity(end[1:], end[:1], dim=-1)
    assert run["angles"][-1] == pytest.approx(cosines.clamp(-1, 1).acos().rad2deg().tolist(), abs=0.51)
    assert len(run["angles"]) == 33 and len(run["added"]) == len(run["total"]) == 64


def end_angle(run) -> float:
    return sum(run["angles"][-1]) / 15


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_loud_post_norm_makes_every_word_the_first_one(seed):
    """In three models: the last output hears the first word alone; with pre-norm no factor changes what it hears."""
    pre, post = (module.words_in(placement, "both", seed) for placement in module.SIDES)
    assert max(post["angles"][-1][-1]) == 0 and post["sixth"][-1] < 1e-3 < 1 < post["first"][-1]
    quiet, *_, loud = pre["sixth"]
    assert quiet == pytest.approx(loud, rel=0.4) and loud > 0.1
    angles = [sum(angles[-1]) / 15 for angles in pre["angles"]]
    assert max(angles) - min(angles) < 8 and min(angles) > 40
    assert max(angles[2:]) - min(angles[2:]) < 2  # from × 1 on


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_attention_alone_drowns_them_and_the_networks_alone_do_not(seed):
    attention, networks = (module.words_in("post", louder, seed) for louder in LOUDER[1:])
    assert max(attention["angles"][-1][-1]) == 0 and attention["sixth"][-1] < 1e-3
    assert sum(networks["angles"][-1][-1]) / 15 > 80 and networks["sixth"][-1] > 1


def test_at_factor_one_it_does_not_matter_who_has_it():
    one = LOUDNESS.index(1.0)
    for placement in module.SIDES:
        runs = [module.words_in(placement, louder) for louder in LOUDER]
        assert all(run[name][one] == runs[0][name][one] for run in runs for name in runs[0])


def test_the_sizes_are_those_of_the_stream_figure():
    for placement in module.SIDES:
        stream = ResidualStream(loudness=8.0).chosen(placement)
        words = SinkingWords(loudness=8.0).chosen(placement)
        assert words["added"] == stream["added"] and words["total"] == stream["total"]


def test_angles_by_hand():
    x = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [1.0, 1.0]])
    assert module.angles_to_first(x).tolist() == pytest.approx([0, 90, 180, 45], abs=1e-3)


def test_two_figures_of_a_page_share_angles_and_the_one_about_causes_has_no_stream():
    words, causes = SinkingWords(louder="attention"), SinkingWords(about="causes")
    assert words.angles == causes.angles and words.moved == causes.moved
    assert not causes.sizes and list(words.sizes) == list(module.SIDES)
    for placement in module.SIDES:
        run = module.words_in(placement, "attention")
        for name in ("added", "total"):
            sent = torch.tensor(words.sizes[placement][name])
            assert torch.allclose(sent, torch.tensor(run[name]), rtol=0.051)
            assert sent[:, -1].equal(torch.tensor(run[name])[:, -1])


@pytest.mark.parametrize("placement, louder", list(product(module.SIDES, LOUDER)))
def test_letters_are_the_angles_word_after_word(node, placement, louder):
    run = module.words_in(placement, louder)["angles"]
    sent = SinkingWords().angles[louder][placement]
    for letters, angles in zip(sent, run, strict=True):
        threads = node.call("figures/sinking_words/math", "threadsOf", [letters, 16])
        assert threads == [list(of_word) for of_word in zip(*angles[::2], strict=True)]


def test_a_letter_is_a_change_of_an_angle(node):
    assert node.call("figures/sinking_words/math", "threadsOf", ["PQNTPO", 2]) == [[90, 91, 89], [94, 94, 93]]
    assert node.call("figures/sinking_words/math", "mean", [[1, 2, 6]]) == 3


# The figure in the browser

AT_EVERY_SETTING = """() => {
    const numbers = () => [...document.querySelectorAll(".mm-readout dd")].map((dd) => dd.textContent);
    const at = [];
    for (const side of ["pre-norm", "post-norm"]) for (const who of ["both", "attention", "networks"]) {
        for (const name of [side, who]) {
            [...document.querySelectorAll("label")].find((label) => label.textContent === name).click();
        }
        const slider = document.querySelector("input[type=range]");
        for (let stop = 0; stop <= Number(slider.max); stop++) {
            slider.value = stop;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            const ends = [...document.querySelectorAll(".sw-thread")].map((path) => path.getPointAtLength(1e9).y);
            const floor = Number(document.querySelector(".sw-first").getAttribute("y1"));
            at.push([numbers(), document.querySelector(".mm-verdict").textContent, [floor, ...ends]]);
        }
    }
    return at;
}"""


def percent(share) -> str:
    share *= 100
    return "< 0.1 %" if share < 0.1 else f"{share:.{1 if share < 9.95 else 0}f} %"


def test_each_combination_of_its_switches_shows_its_own_run(page):
    """The lesson test: what the figure of chapter 10's headline says in 36 settings is what models did."""
    page.set_viewport_size({"width": 944, "height": 900})
    open_figures(page, SinkingWords(about="causes"))
    shown = page.evaluate(AT_EVERY_SETTING)
    assert len(shown) == len(SETTINGS)
    for (placement, louder, loudness), (numbers, verdict, ends) in zip(SETTINGS, shown, strict=True):
        run = SinkingWords(about="causes", louder=louder, loudness=loudness).chosen(placement)
        degrees = end_angle(run)
        assert numbers[0] == f"{degrees:.0f}°" and f"{degrees:.0f}°" in verdict
        assert numbers[1:] == [percent(run["first"]), percent(run["sixth"])]
        assert ("has become the first" in verdict) == (degrees < 5)
        floor, *drawn = ends
        angles = [(floor - end) / 130 * 110 for end in drawn]
        assert angles == pytest.approx(run["angles"][-1], abs=0.6)


def test_the_stream_has_the_size_of_its_run(page):
    figure = SinkingWords()
    open_figures(page, figure)
    for placement, loudness in product(module.SIDES, LOUDNESS):
        page.get_by_label(f"{placement}-norm", exact=True).check()
        page.get_by_label("factor on what they add").fill(str(LOUDNESS.index(loudness)))
        size = float(page.locator("svg .mm-strong").last.text_content())
        total = module.words_in(placement, "both")["total"][LOUDNESS.index(loudness)][-1]
        assert size == pytest.approx(1 if placement == "post" else total, rel=6e-3)


def test_compact_it_shows_what_the_sixth_word_still_does(page):
    page.set_viewport_size({"width": 344, "height": 900})
    figure = SinkingWords(compact=True)
    open_figures(page, figure)
    note = page.locator("svg .mm-strong").last
    assert note.inner_html() == f"replace word 6: output moves {percent(figure.chosen('pre')['sixth'])}"
    page.get_by_label("post-norm", exact=True).check()
    page.get_by_label("factor on what they add").fill("5")
    assert "&lt; 0.1" in note.inner_html()
    assert not page.locator(".mm-readout").count()


def test_whole_the_numbers_have_names(page):
    open_figures(page, SinkingWords(placement="post", loudness=8.0))
    assert read_out(page) == {
        "mean angle to word 1": "0°",
        "output moves, word 1 replaced": "129 %",
        "output moves, word 6 replaced": "< 0.1 %",
    }
