"""What the book's Sphinx extension makes of a page: folds, pictures, letters, figures, facts and descriptions."""

import itertools
import json
import re
from collections import defaultdict
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from book_builder import CHAPTERS
from docutils import nodes
from docutils.utils import new_document
from minimind_book import card, facts, figures, folding, headings, pictures, symbols, together
from minimind_book.figures import STATIC
from minimind_book.pages import compressed, description_of, lighter
from minimind_book.words import SCRIPT_WORDS, WORDS, words
from mutants import catalog

from minimind_edu import trained, world
from minimind_edu.checks.exercise import NOT_ATTEMPTED
from minimind_edu.figures.minimind_live import next_words
from minimind_edu.measure import plotting
from minimind_edu.trained import ablations, living, routing, sharing, sweeps, tuning, verse
from minimind_edu.trained.ablations.tables import courses
from minimind_edu.trained.living import copying, heads
from minimind_edu.trained.living.exam import accuracy
from minimind_edu.trained.routing import phone_book
from minimind_edu.trained.sharing import circles
from minimind_edu.web import host
from minimind_edu.web.palette import PALETTE
from minimind_edu.world.words import TWIN
from tools import install_cell
from tools.chapters import ROOT


def cell(source: str, *printed: str, tags: tuple[str, ...] = ()) -> nodes.container:
    """A code cell as myst-nb gives it to the extension."""
    code = nodes.container(nb_element="cell_code_source")
    code += nodes.literal_block(source, source)
    whole = nodes.container(nb_element="cell_code", cell_metadata={"tags": list(tags)}, classes=["cell"])
    whole += code
    if printed:
        out = nodes.container(nb_element="cell_code_output")
        out += [nodes.literal_block(text, text) for text in printed]
        whole += out
    folding.fold_cell(whole, words("en"))
    return whole


def test_a_cell_folds_behind_the_names_that_it_defines_and_its_length():
    """One blank line is shown of the two between functions."""
    fold, output = cell("def one():\n    pass\n\n\nclass Two:\n    pass", "printed").children
    assert (fold["what"], fold["lines"], fold["open"]) == ("one, Two", "code, 5 lines", False)
    assert output.astext() == "printed"


def test_a_title_names_the_fold_and_one_line_is_one_line():
    [fold] = cell("# @title Solution 1").children
    assert (fold["what"], fold["lines"]) == ("Solution 1", "code, 1 line")


def test_what_a_reader_must_see_stays_open_and_a_hidden_cell_folds_with_its_outputs():
    assert cell("x = 1", tags=("keep",)).children[0]["open"]
    hidden = cell("x = 1", "printed", tags=("hide-cell",))
    [fold] = hidden.children
    assert "printed" in fold.astext() and not fold["open"] and "whole" in hidden["classes"]


def test_the_cell_that_installs_the_package_is_named_for_the_styles():
    """It is hidden while one reads, and stands first among the code."""
    title = next(line for line in install_cell.source().splitlines() if line.strip())
    assert "install" in cell(install_cell.source(), tags=("hide-cell",))["classes"], title
    assert "install" not in cell("x = 1")["classes"]


def test_an_exercise_says_where_to_solve_it_instead_of_what_it_printed():
    fold, note = cell("def mine(): ...", f"check_mine\n  {NOT_ATTEMPTED}").children
    assert fold["open"] and note.astext() == WORDS["en"]["not_run"]


def test_a_picture_takes_the_colors_of_the_page_and_says_what_it_shows():
    drawn = f'<?xml version="1.0"?><!-- by a tool --><svg width="1pt"><path stroke="{PALETTE["q"].either}"/></svg>'
    written = pictures.inline(drawn, "A line that rises from 0 to 1")
    assert 'stroke="var(--mm-q)"' in written and written.startswith('<div class="picture"><svg role="img"')
    assert 'aria-label="A line that rises from 0 to 1"' in written and "<?xml" not in written and "tool" not in written


def test_a_picture_stands_beside_its_twin_for_phones_and_both_are_named():
    [ax] = plotting.new_axes()
    ax.plot([0, 1])
    written = pictures.inline(plotting.picture(ax, alt='A line that rises from "a" to <b>').svg, "")
    whole = ElementTree.fromstring(written.replace(' xmlns="http://www.w3.org/2000/svg"', ""))
    narrow, wide = whole  # in this order: what has arrived of a page on a phone never holds the wide one alone
    assert (wide.find("title").text, wide.find("svg")) == ('A line that rises from "a" to <b>', None)
    assert (narrow.get("class"), narrow.get("aria-label"), narrow.get("display")) == (
        "narrow",
        'A line that rises from "a" to <b>',
        None,
    )


@pytest.mark.parametrize("alt", ["", "picture.svg", "_images/a.svg"])
def test_a_picture_without_a_sentence_is_refused(alt):
    with pytest.raises(ValueError, match="no description"):
        pictures.inline("<svg></svg>", alt)


def test_letters_are_named_only_where_they_stand_for_something():
    rope, norms = "chapters/04_rope_rotation", "chapters/02_rmsnorm_vs_layernorm"
    assert symbols.attribute(rope, "m - n") == ' data-sym="m-n"' and symbols.attribute(norms, "m - n") == ""
    assert symbols.attribute("chapters/deeper/D04_rope_rotation", "m - n") == ' data-sym="m-n"', "as in its lesson"
    assert symbols.attribute(rope, "q + k") == ""
    deeper = [
        symbols.attribute(f"chapters/deeper/{name}", "m") for name in ("D04_rope_rotation", "D09_mixture_of_experts")
    ]
    assert deeper == [' data-sym="m"', ""], "as in its lesson; in the ninth it is a number of experts"
    formula = "<math><mi>q</mi><mo>+</mo><mi>x</mi></math>"
    assert symbols.mark_formula(rope, formula) == '<math><mi data-sym="q">q</mi><mo>+</mo><mi>x</mi></math>'
    assert symbols.mark_formula(norms, formula) == formula


def test_figures_are_numbered_in_their_order_but_for_quizzes(monkeypatch):
    monkeypatch.setattr(figures, "read", lambda file: f"<b>{file.partition('-')[0]}</b>")
    html = "".join(host.element(name, "{}", "<p>numbers</p>") for name in ("rotation_dials", "quiz", "roofline"))
    done = figures.Numbering("en").complete(html, opening=True)
    assert re.findall(r'data-figure="(\w+)" id="(figure-\d)" data-number="(.*?)"', done) == [
        ("rotation_dials", "figure-1", "Figure 1. "),
        ("roofline", "figure-2", "Figure 2. "),
    ]
    assert done.count(host.OPENING_CLASS) == 3 and done.count("inert") == 2 and "<b>rotation_dials</b>" in done


def test_a_second_figure_of_a_kind_holds_only_what_the_first_has_otherwise(monkeypatch):
    """The one at the head is compact, of which a whole one says nothing."""
    monkeypatch.setattr(figures, "read", lambda file: "")
    states = ('{"at":1,"compact":true,"long":[1,2]}', '{"at":2,"long":[1,2]}')
    done = figures.Numbering("en").complete("".join(host.element("roofline", state, "") for state in states))
    found = re.findall(r'<script type="application/json"([^>]*)>(.*?)</script>', done)
    assert found == [("", states[0]), (' data-like="figure-1"', '{"at":2,"compact":null}')]


def test_a_figure_that_was_never_drawn_stops_the_build():
    with pytest.raises(RuntimeError, match=r"nothing-\w+\.html is missing.*tools\.stills"):
        figures.read(host.still_name("nothing", "{}"))


def test_numbers_about_the_book_are_counted():
    assert 0 < facts.FACTS["compared-cells"]() < facts.FACTS["code-cells"]()
    assert facts.FACTS["chapters"]() == len(CHAPTERS)
    assert facts.FACTS["mutants"]() == len(catalog.MUTANTS)
    assert facts.seeds([{"seed": 0, "runs": [{"seed": 1}]}, {"runs": 2}]) == 2
    stored = [*ablations.runs()["runs"], *courses(), *living.card()["runs"], *routing.runs()]
    stored += [one for runs in sweeps.runs().values() for one in runs]
    stored += [one for runs in copying.results().values() for one in runs]
    stored += json.loads(phone_book.RECALLED.read_text(encoding="utf-8"))
    longer = json.loads(phone_book.LONGER.read_text(encoding="utf-8"))
    stored += [None] * facts.seeds(longer)
    stored += [one for steps in sharing.STEPS for runs in sharing.runs(steps).values() for one in runs]
    stored += [*circles.circles(), *verse.runs().values()]
    stored += [None] * facts.seeds(tuning.runs())
    assert facts.FACTS["trainings"]() == len(stored)


def test_a_page_is_described_by_its_first_paragraph_cut_at_a_word():
    page = nodes.document("", "")
    page += [nodes.paragraph("", "Short."), nodes.paragraph("", "One word after the other. " * 20)]
    text = description_of(page)
    assert len(text) <= 162 and text.endswith(" …") and text.startswith("One word")
    assert description_of(None) == ""


def test_styles_lose_comments_and_space_and_nothing_else():
    assert compressed("/* why */\na > b {\n  color: red;\n}\n") == "a>b{color: red;}"


def test_a_body_loses_what_no_rule_asks_for():
    assert lighter('<div class="scroll docutils container"><p class="">') == '<div class="scroll"><p>'


def test_words_follow_the_language_and_fall_back_to_english():
    assert words("zh-CN") == words("zh_CN") == WORDS["zh"] and words(None) == words("fr") == WORDS["en"]


def test_the_shell_says_everything_in_chinese_too():
    """A page in Chinese also has names of book and authors, a word of Sphinx, and what an untranslated one says."""
    assert WORDS["zh"].keys() - WORDS["en"].keys() == {"book", "author", "listing", "untranslated"}
    assert WORDS["en"].keys() <= WORDS["zh"].keys()
    script = (STATIC / "shell.js").read_text(encoding="utf-8")
    own = re.search(r"\?\.shell \?\? \{(.*?)\n  \};", script, re.DOTALL)[1]
    assert re.findall(r"^    (\w+):", own, re.MULTILINE) == list(SCRIPT_WORDS["shell"])


def test_the_answers_told_on_the_card_are_the_models():
    page = (ROOT / "book" / "living_card.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (\S+), (\d+)\s% \| (\S+) \|$", page, re.MULTILINE)
    assert len(rows) == 6 and sum(said != right for _, said, _, right in rows) == 1
    for story, said, share, right in rows:
        (first, probability, _), *_ = next_words(story)
        assert (first, f"{100 * probability:.0f}") == (said, share), story
        assert max(next_words(story), key=lambda word: word[2])[0] == right, story
    cellar = [dict(word[:2] for word in next_words(row[0])) for row in rows[3:]]
    shares = [100 * (one.get("cellar") or one.get("地窖")) for one in cellar]
    assert re.findall(r"gets (\d+) %", page) == [f"{share:.0f}" for share in shares]


def test_what_the_live_page_tells_of_the_model_is_so():
    """Its mistakes in the exam, the story in which it fails and two variants of it, and its training."""
    page, known = (ROOT / "book" / "live.md").read_text(encoding="utf-8"), living.card()
    exam = known["int8"]["accuracy"]
    wrong = {kind: round(known["questions"] * (1 - right)) for kind, right in exam.items() if right < 1}
    assert len(exam) == 7 and known["questions"] == 300 and wrong == {"where object": 7}
    assert "300 fresh questions of each of seven kinds, it answers all but seven" in page
    [story] = re.findall(r'^story: "(.+)"$', page, re.MULTILINE)
    (first, share, _), *_ = next_words(story)
    assert (first, round(3 * share)) == ("地窖", 2) and "gives two thirds to 地窖" in page
    assert max(next_words(story), key=lambda word: word[2])[0] == "车库"
    told = story.partition("莉")[0] + "Lily goes from the garage to the cellar. where is the hat? in the"
    lamp = "the lamp is picked up by Lily in the garage. "
    shares = [100 * dict(word[:2] for word in next_words(one))["cellar"] for one in (told, told.replace(lamp, ""))]
    model, ids = living.living_model(), torch.from_numpy(world.encode(f"<s> {story}"))[None].long()
    with torch.no_grad():
        weights = heads.attention_weights(model, ids)[3, 2, -1]
        right = {}
        for layer, head in itertools.product(range(4), range(4)):
            with heads.silenced(model, layer, head):
                says = model(ids).logits[0, -1].softmax(-1)
            if world.WORDS[int(says.argmax())] == "车库":
                right[layer, head] = float(says.max())
    assert world.WORDS[int(ids[0, weights.argmax()])] == "地窖"
    told = [*shares, 100 * weights.max(), 100 * right[3, 2]]
    assert re.findall(r"(\d+) %", page) == [f"{share:.0f}" for share in told]
    assert len(right) == 7 and "any of six other heads" in page
    recipe, [minutes] = known["recipe"], {round(run["cpu_seconds"] / 60) for run in known["runs"]}
    assert f"{recipe['steps']:,} batches of {recipe['batch_size']} stories, in {minutes} minutes" in page
    assert f"the {recipe['length']} words of its stories" in page


def test_the_package_tells_how_long_the_stored_trainings_took():
    [minutes] = re.findall(r"three seeds, (\d+) minutes of one core each", trained.__doc__)
    runs = living.card()["runs"]
    assert len(runs) == 3 and {f"{run['cpu_seconds'] / 60:.0f}" for run in runs} == {minutes}
    runs = ablations.runs()["runs"]
    assert f"two seeds for each of {len(runs) // 2} variants: ten minutes" in trained.__doc__
    assert sum(run["cpu_seconds"] for run in runs) / 60 == pytest.approx(10, abs=0.5)


def test_the_first_guess_of_the_book_is_answered_as_the_stored_runs_have_it():
    """Percentages of right answers without a part, as the mean of the seeds, from the worst task to the best."""
    answer = (ROOT / "book" / "how_to_read.md").read_text(encoding="utf-8").partition("Answer")[2]
    right = defaultdict(list)
    for run in ablations.runs()["runs"]:
        right[run["variant"]].append(list(run["accuracy"].values()))
    means = {
        name: [f"{100 * sum(task) / len(task):.0f}" for task in zip(*runs, strict=True)] for name, runs in right.items()
    }
    least, most = sorted(means["no norm"], key=int)[::2]
    assert f"{least} to {most} % of its answers" in answer and set(means["whole"]) == {"96"} and "whole, 96 %" in answer
    assert set(means["no attention"]) == {"0"} and max(map(int, means["no residual"])) == 3 and "at most 3 %" in answer
    assert {len(runs) for runs in right.values()} == {2} and "two seeds" in answer


def test_the_heads_told_on_the_card_disagree_as_it_says():
    page = (ROOT / "book" / "living_card.md").read_text(encoding="utf-8")
    model, stories = living.living_model(), re.findall(r"^\| (Lily .+?) \| \S+, \d+\s% \|", page, re.MULTILINE)
    texts = [torch.from_numpy(world.encode(f"<s> {story}"))[None] for story in stories]

    def said() -> str:
        with torch.no_grad():
            best = [model(ids).logits[0, -1].softmax(-1).max(-1) for ids in texts]
        return " | ".join(f"{world.decode([int(word)])}, {100 * share:.0f} %" for share, word in best)

    asked = world.questions("where object", 150, 1_000_002, 96)
    assert f"| no head | {said()} |" in page
    right = [accuracy(model, asked)]
    for head in (0, 1):
        with heads.silenced(model, 3, head):
            assert f"| head {head + 1} of block 4 | {said()} |" in page
            right.append(accuracy(model, asked))
    with_it, without_it, without_2 = (f"{100 * one:.0f} %" for one in right)
    assert f"{with_it} with it and {without_it} without it.\nWithout head 2 it answers {without_2}." in page
    [address] = re.findall(r"living\.html#ids=([\d.]+)&open=head\.3\.0", page)
    assert address == ".".join(map(str, texts[1][0].tolist()))
    garage, cellar = world.encode("garage cellar")[-2:]
    pushed = (lambda parts: parts[:, garage] - parts[:, cellar])(heads.shares(model, texts[1])).tolist()
    head_1, head_2 = pushed.pop(1 + 3 * 5), pushed.pop(1 + 3 * 5)  # five parts in each block, after the word's own row
    assert f"by {head_2:.1f}, head 1 lowers it by {-head_1:.1f}," in page
    assert 0.5 < max(map(abs, pushed)) < 0.6 and "more than 0.6" in page
    assert "What head 1 reads most is the garage of *goes from the garage*." in page
    for ids in texts:
        place = int(heads.attention_weights(model, ids)[3, 0, -1].argmax())
        assert world.WORDS[int(ids[0, place - 1])] in ("goes from the", "从")
    herself = torch.from_numpy(world.encode(f"<s> {stories[0]}".replace("the hat? in", "Lily? in")))[None]
    of_head_1 = heads.shares(model, herself)[16]  # asked for Lily, it crosses out the same place
    assert of_head_1[garage] < of_head_1.mean() - 2


@pytest.mark.long
def test_the_failure_told_on_the_card_is_not_of_one_story():
    """The same stories with other names: how often the model says where the person went, with and without two heads."""
    page = (ROOT / "book" / "living_card.md").read_text(encoding="utf-8")
    stories = [
        world.encode(f"<s> {one}") for one in re.findall(r"^\| (Lily .+?) \| \S+, \d+\s% \|", page, re.MULTILINE)
    ]
    model, names = living.living_model(), world.encode("Lily hat lamp garage cellar")
    shuffled = np.random.Generator(np.random.PCG64(0)).permuted(np.tile(np.arange(8), (1000, 3, 1)), axis=2)
    others = world.encode("Mia ball ball garden garden") + shuffled[:, [0, 1, 1, 2, 2], [0, 0, 1, 0, 1]]

    def shares(count: int = 1000) -> list[tuple[float, float]]:
        """How often each kind of story is answered with where the person went and where the other is, in percent."""
        found = []
        for ids in stories:
            texts, is_chinese = np.tile(ids, (count, 1)), ids[-1] > TWIN
            for name, other in zip(names, others[:count].T, strict=True):
                for twin in (0, TWIN):
                    texts[:, ids == name + twin] = other[:, None] + twin
            with torch.no_grad():
                said = model(torch.from_numpy(texts)).logits[:, -1].argmax(-1).numpy()
            right, wrong = (np.mean(said == others[:count, place] + TWIN * is_chinese) for place in (-2, -1))
            found.append((100 * float(right), 100 * float(wrong)))
        return found

    found = shares()
    wrong = [other for _, other in found]
    assert [one + other for one, other in found] == pytest.approx([100] * 3)
    [told] = re.findall(r"1,000 stories of each kind, the model goes wrong in (\d+) %, (\d+) % and (\d+) %", page)
    assert wrong == pytest.approx([float(one) for one in told], abs=1)
    assert "in the 3,000 stories with other names: without head 1 none goes wrong, without head 2 all do" in page
    for layer, head, share in ((3, 0, 0), (3, 1, 100), (2, 2, 0)):
        with heads.silenced(model, layer, head):
            assert [other for _, other in shares()] == [share] * 3
    live = (ROOT / "book" / "live.md").read_text(encoding="utf-8")
    assert "Of the seven, only two mend all [3,000 stories with other names]" in live
    for layer, head in ((0, 0), (0, 1), (1, 0), (2, 0), (3, 2)):  # they mend the story of that page, too
        with heads.silenced(model, layer, head):
            assert max(other for _, other in shares(100)) > 0


def test_what_the_card_says_of_the_floor_of_a_stranger_and_of_long_stories():
    page = (ROOT / "book" / "living_card.md").read_text(encoding="utf-8")
    stored = living.card()["int8"]
    assert f"{stored['entropy']:.2f} nats per word. The model adds {stored['kl']:.3f}." in page
    [story] = re.findall(r'In "(.+? in the)" nobody', page)
    with torch.no_grad():
        logits = living.living_model()(torch.from_numpy(world.encode(f"<s> {story}"))[None]).logits
    share, word = logits[0, -1].softmax(-1).max(-1)
    assert f"*{world.decode([int(word)])}*, with {100 * share:.0f} %" in page
    chapter = (ROOT / "chapters" / "C1_norms_and_positions.ipynb").read_text(encoding="utf-8")
    first, *_, last = re.search(r"nats above the least, by quarters: ([\d. ]+)", chapter)[1].split()
    assert f"{last} nats per word, in the first {first} ([E37]" in page


def test_the_picture_of_the_card_shows_what_the_page_says():
    known = living.card()
    where = {run["seed"]: {one["step"]: one["accuracy"]["where"] for one in run["glances"]} for run in known["runs"]}
    assert all(0.4 <= share <= 0.65 for seen in where.values() for step, share in seen.items() if 0 < step <= 5000)
    late = [[share for step, share in where[seed].items() if step >= 8000] for seed in (0, 1, 2)]
    assert min(late[0] + late[1]) > 0.96 and max(late[2]) <= 0.5
    svg = card.learning(known).svg
    assert all(f"seed {run['seed']}" in svg for run in known["runs"]) and "98, 100, 100" in svg


def test_the_card_of_the_living_model_shows_its_exams():
    """Every kind of question has a row, and the numbers are those of the stored card."""
    known, twin = living.card(), living.card("twin")
    exam, recipe = card.exam_rows(known, twin), card.recipe_rows(known, twin)
    assert len(exam) == len(world.QUESTIONS) + 1 and set(card.words()["asks"]) == set(world.QUESTIONS)
    for kind, row in zip(card.words()["asks"], exam, strict=False):
        assert row[1] == f"{100 * known['int8']['accuracy'][kind]:.1f} %"
        assert row[2] == f"{100 * twin['int8']['accuracy'][kind]:.1f} %"
        assert row[3:] == [f"{100 * run['accuracy'][kind]:.1f} %" for run in known["runs"]]
    assert card.exam_titles(known)[2:] == ["Twin, in int8", "Seed 0", "Seed 1", "Seed 2"]
    assert exam[-1][1:3] == [f"{one['int8']['kl']:.3f}" for one in (known, twin)]
    assert [row[1] for row in recipe if row[0] == "Seeds trained"] == ["0, 1, 2; stored: 1, its twin: 0"]
    assert known["bytes"] == twin["bytes"]
    text = " ".join(" ".join(row) for row in recipe)
    assert f"{known['parameters']:,}" in text and f"{known['bytes']:,} bytes" in text
    assert card.spread([0.25, 0.5], card.percent) == "25.0 % to 50.0 %"


def test_the_chinese_card_has_the_same_numbers(monkeypatch):
    known = living.card()
    both = known, living.card("twin")

    def numbers() -> list[list[str]]:
        rows = card.exam_rows(*both) + card.recipe_rows(*both)
        return [sorted(re.findall(r"\d[\d,.]*\d|\d", " ".join(row))) for row in rows]

    english = numbers()
    monkeypatch.setattr(card.chinese, "IS_CHINESE", True)
    assert numbers() == english and card.words()["asks"].keys() == card.WORDS["en"]["asks"].keys()
    assert card.spread([0.25, 0.5], card.percent) == "25.0% 到 50.0%"
    rows = [card.exam_titles(known), *card.exam_rows(*both), *card.recipe_rows(*both)]
    assert all(re.search("[\u3400-\u9fff]", row[0]) for row in rows)


def test_a_sign_stays_with_the_formula_before_it_even_where_another_stands_earlier():
    document = new_document("page")
    code, first, second = nodes.literal(text="q"), nodes.math(text="k"), nodes.math(text="v")
    document += nodes.paragraph("", "", code, nodes.Text("，"), first, nodes.Text("，"), second, nodes.Text("。"))
    together.keep_signs_at_formulas(SimpleNamespace(), document)
    assert document.astext() == "q，k，v。"
    assert [one.astext() for one in document.findall(nodes.inline)] == ["k，", "v。"]


@pytest.mark.parametrize(
    "text, whole",
    {
        "98 % of 260 MB in 3 ms, × 1.5": "98~% of 260~MB in 3~ms, ×~1.5",
        "14.8 GB/s and 0.3 nats": "14.8~GB/s and 0.3~nats",
        "3 blocks, 5 % 2 MBps": "3 blocks, 5~% 2 MBps",
    }.items(),
)
def test_a_number_stays_with_its_unit(text, whole):
    document = new_document("page")
    document += nodes.paragraph("", "", nodes.Text(text), nodes.literal(text="5 % 2"))
    together.keep_units_at_numbers(SimpleNamespace(), document)
    assert document.astext() == whole.replace("~", "\u00a0") + "5 % 2"


NAMES = {
    "14 · Speed": "14",
    "14 · 速度": "14",
    "E109a · Tying trains better": "e109a",
    "Common mistakes": "common-mistakes",
    "2. Two limits": "2-two-limits",
}


@pytest.mark.parametrize("title, name", NAMES.items())
def test_a_numbered_heading_is_called_by_its_number_in_either_language(title, name):
    assert headings.name_of(title) == name
