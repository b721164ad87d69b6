"""The page that writes verse: one small file for each language, and what the book says of it is measured."""

import json
import re
import unicodedata
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from book_builder import ROOT
from own_models import load_weights

from minimind_edu import __main__ as program
from minimind_edu.inside.page import store
from minimind_edu.inside.verse import PAGE, sounds, write_verse_page
from minimind_edu.trained.verse import STORED, card, rhymes, runs, verse_model
from minimind_edu.trained.verse.corpus import characters, ids_of
from minimind_edu.trained.verse.exam import judged
from minimind_edu.trained.verse.grid import spelled

MOST = 1_600_000  # bytes
GROUPS_IN_ENGLISH = """async (names) => {
    const { verseWords } = await import("/inside/verse/words.js");
    return names.map((name) => verseWords.en.rhymes([name]));
}"""
BOOK = {language: ROOT / folder / "book/verse.md" for language, folder in (("en", ""), ("zh", "zh"))}


@pytest.fixture(scope="module", params=["en", "zh"])
def written(request, tmp_path_factory):
    """The language and the page."""
    file = tmp_path_factory.mktemp("verse") / "verse.html"
    program.main(["verse", "-o", str(file), "--language", request.param, "--book", "../"])
    return request.param, file


def test_it_is_small_speaks_its_language_and_leads_to_the_book(written):
    language, file = written
    text = file.read_text(encoding="utf-8")
    assert file.stat().st_size <= MOST
    assert f'<html lang="{dict(en="en", zh="zh-CN")[language]}">' in text
    assert f"<title>{dict(en='A page that writes verse', zh='会写诗的页面')[language]}</title>" in text
    [data] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    data = json.loads(data)
    assert data["links"]["verse"] == "../book/verse.html" and data["bytes"] == STORED["verse"].stat().st_size
    assert data["published"].endswith(f"{'zh/' * (language == 'zh')}{PAGE}")
    assert tuple(data["characters"]) == characters()[2:]


def test_a_level_group_is_told_in_english_by_how_its_name_is_read_today(node):
    """A reading ends with the final that the lists of today have, as it is spelled after a consonant or after none."""
    finals = rhymes.final_of()
    alone = {"uei": "wei", "v": "yu", "uen": "wen", "van": "yuan", "iang": "yang", "iou": "you", "ian": "yan"}
    names = [name for name, _ in sounds()["level"]]
    for name, said in zip(names, node.evaluate(GROUPS_IN_ENGLISH, names), strict=True):
        [(head, reading)] = re.findall(r"^Rhymes \(group of (.), (\w+)\)$", said)
        plain = "".join(one for one in unicodedata.normalize("NFD", reading) if not unicodedata.combining(one))
        assert head == name[-1] and reading != plain
        if head in finals:
            after = re.sub("^(zh|ch|sh|[b-df-hj-np-tvxz])", "", plain)
            assert after in (spelled(finals[head]), alone.get(finals[head])), head


def test_it_knows_the_thirty_level_groups_by_short_names():
    names = [name for name, _ in sounds()["level"]]
    assert len(names) == len(set(names)) == 30 and {"一东", "六麻", "十三元"} <= set(names)


def test_a_language_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(ValueError, match="language must be 'en' or 'zh', got 'la'"):
        write_verse_page(tmp_path / "page.html", "la")
    assert list(tmp_path.iterdir()) == []


def asked_by(text):
    """What each link of a page of the book to this page asks for, as readAddress is told."""
    found = [urlsplit(unescape(href)).fragment for href in re.findall(rf'href="\.\./{PAGE}(#[^"]*)"', text)]
    return [{name: value for name, [value] in parse_qs(one).items()} for one in found]


@pytest.fixture(scope="module")
def answers(node, tmp_path_factory):
    """What the page writes for an address: [the poem as a text, its lines]."""
    file = tmp_path_factory.mktemp("verse") / "weights.safetensors"
    store(verse_model(), file, 8)
    load_weights(node, file.read_bytes(), None, "step", 8)
    start = """async ([sounds, characters, config]) => {
        for (const name of ["poem", "compose", "link"])
            Object.assign(globalThis, await import(`/inside/verse/${name}.js`));
        globalThis.known = new Map([...characters].map((one, i) => [one, i + 4]));
        globalThis.config = config;
    }"""
    config = {"num_hidden_layers": 3, "num_attention_heads": 4}
    node.evaluate(start, [sounds(), "".join(characters()[4:]), config])
    write = """(address) => {
        const asked = readAddress(address, config);
        const laid = layOut(asked, known);
        const idOf = (one) => (one === null ? null : known.get(one));
        const plan = { ...asked, ...laid, given: laid.given.map(idOf), rhyme: idOf(laid.rhyme) };
        const poem = compose(model, plan).places.map(({ id }) => [...known.keys()][id - 4]);
        return textOfPoem(poem, laid.width);
    }"""
    return lambda asked: node.evaluate(write, "&".join(f"{name}={value}" for name, value in asked.items()))


def test_the_poems_of_the_book_are_what_its_links_write_and_show_what_it_says(answers):
    text = BOOK["en"].read_text(encoding="utf-8")
    first, rhyme, plain, silent, wang_wei = asked_by(text)
    poem = answers(first)
    assert f"> {poem}\n" in text and poem.startswith(first["begin"])

    second, fourth = answers(rhyme).split("。")[:2]
    assert second[-1] == "门" == rhyme["rhyme"] and fourth[-1] == "繁"
    today = rhymes.in_modern()
    assert rhymes.rhymes("门", "繁") and not (today[ids_of()["门"]] * today[ids_of()["繁"]]).any()

    whole, without = (judged([answers(one)]) for one in (plain, silent))
    assert (whole["pairs"], whole["rhyme"], without["pairs"]) == (3, 1.0, 3)
    assert without["rhyme"] == pytest.approx(1 / 3) and silent == plain | {"silent": "2.0"}
    assert whole["opposite"] == without["opposite"] == [1.0, 1.0]
    assert without["even_level"] == without["odd_oblique"] == 1.0

    assert answers(wang_wei) == wang_wei["begin"] and len(wang_wei["begin"]) == 48


def test_the_book_says_in_both_languages_what_was_measured():
    told, exam, written = card()["verse"], card()["verse"]["judged"], runs()[card()["stored"]]
    config = verse_model().config
    assert (config.num_hidden_layers, config.num_attention_heads) == (3, 4)
    percents = [exam["rhyme"], exam["rhyme_chance"], exam["same"], *exam["opposite"]]
    for language, percent in (("en", "{:.0f} %"), ("zh", "{:.0f}%")):
        text = BOOK[language].read_text(encoding="utf-8").replace("\u00a0", " ")
        said = [f"{written['poems']:,}", f"{sum(written['steps']):,}", f"{len(characters()) - 4:,}"]
        said += [str(exam["poems"]), f"{told['copied']['lines']:,}"]
        assert [one for one in said if one not in text] == [], language
        rates = [percent.format(100 * one) for one in percents]
        assert re.findall(r"\d+ ?%", text) == rates, language
        assert asked_by(text) == asked_by(BOOK["en"].read_text(encoding="utf-8"))
    assert told["copied"]["lines_copied"] == 1 and told["copied"]["poems_copied"] == 0
    assert len(json.loads((ROOT / "src/minimind_edu/trained/verse/characters.json").read_text())["groups"]) == 106
    assert card()["before"]["judged"]["rhyme"] < 1.2 * card()["before"]["judged"]["rhyme_chance"]
