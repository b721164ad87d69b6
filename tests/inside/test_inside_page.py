"""The page of a model is one file that fetches nothing, runs what it knows, and shows what others wrote as text."""

import base64
import hashlib
import html.parser
import json
import re

import pytest
import torch
from own_models import MODELS, logits_of, own_folder, own_model
from tokenizers import Tokenizer

from minimind_edu import MiniMindConfig, MiniMindForCausalLM, from_checkpoint
from minimind_edu.figures import keep_script
from minimind_edu.inside import page
from minimind_edu.inside.page import write_page
from minimind_edu.inside.tokenizer import read_tokenizer
from minimind_edu.model.quantization import Grid, rounded_model

EVIL = "</script><img src=x onerror=alert(1)>\u2028<!-- "


class Elements(html.parser.HTMLParser):
    """What a browser makes of a page: its elements, and the text of those that hold scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.found, self.is_open = [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])
        self.is_open = True

    def handle_endtag(self, tag):
        self.is_open = False

    def handle_data(self, data):
        if self.is_open:
            self.found[-1][2] += data

    def texts(self, tag, **attrs):
        return [text for name, has, text in self.found if name == tag and attrs.items() <= has.items()]


def written(tmp_path, model, **changes):
    target = tmp_path / "page.html"
    write_page(model, target, **{"name": "mine", "text": "1 2 3"} | changes)
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    return Elements(target.read_text(encoding="utf-8"))


@pytest.mark.parametrize("bits", [4, 8, 32])
@pytest.mark.parametrize("part", ["self_attn.q_proj", "self_attn.k_norm", "mlp.down_proj"])
def test_weights_that_are_not_finite_are_refused_by_name_before_a_page_is_written(tmp_path, part, bits):
    model = own_model("minimind3")
    model.get_parameter(f"model.layers.0.{part}.weight").data.flatten()[-1] = torch.nan
    with pytest.raises(ValueError, match=f"weights must be finite numbers, but model.layers.0.{part}.weight holds NaN"):
        written(tmp_path, model, bits=bits)
    assert list(tmp_path.iterdir()) == []


def data_of(elements):
    return json.loads(elements.texts("script", id="data")[0])


def weights_of(elements, tmp_path):
    pieces = elements.texts("script", **{"class": "weights"})
    stored = tmp_path / "stored.safetensors"
    stored.write_bytes(b"".join(base64.b64decode(piece) for piece in pieces))
    return pieces, from_checkpoint(stored)


@pytest.mark.parametrize("kind", MODELS)
def test_it_holds_the_weights_and_what_torch_says_of_them(tmp_path, kind):
    model = own_model(kind)
    for bits in (8, 32):
        elements = written(tmp_path, model, bits=bits)
        _, stored = weights_of(elements, tmp_path)
        assert stored.config == model.config
        same = all(torch.equal(one, other) for one, other in zip(model.parameters(), stored.parameters(), strict=True))
        assert same == (bits == 32)
        data = data_of(elements)
        check = data["check"]
        expected = logits_of(stored, check["ids"])[-1].topk(5)
        assert [id for id, _ in check["top"]] == expected.indices.tolist()
        assert [logit for _, logit in check["top"]] == pytest.approx(expected.values.tolist(), abs=1e-5)
        given = logits_of(model, check["ids"]).softmax(-1)
        change = (given - logits_of(stored, check["ids"]).softmax(-1)).abs().max().item()
        assert check["change"] == pytest.approx(change, abs=1e-6) and (change == 0) == (bits == 32)
        assert len(check["ids"]) == 16 and data["bytes"] == (tmp_path / "stored.safetensors").stat().st_size


def test_four_bits_take_half_of_eight_and_torch_is_asked_about_them(tmp_path):
    model = own_model("minimind2_moe", vocab_size=600, intermediate_size=64, moe_intermediate_size=64)
    eight, four = (data_of(written(tmp_path, model, bits=bits)) for bits in (8, 4))
    assert four["bytes"] < 0.8 * eight["bytes"] and four["bits"] == 4  # of a large one 5/8: scales, a router
    rounded = rounded_model(model, Grid(4, 32), lambda name: not name.endswith("mlp.gate.weight"))
    expected = logits_of(rounded, four["check"]["ids"])[-1].topk(5)
    top = zip(expected.indices.tolist(), expected.values.tolist(), strict=True)
    assert four["check"]["top"] == [list(pair) for pair in top]
    with pytest.raises(ValueError, match="32 neighbors in a row share a scale, but a row of .*down_proj.weight has 48"):
        written(tmp_path, own_model("minimind2_moe"), bits=4)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("bits", [8, 32])
def test_what_the_page_is_compared_with_is_what_it_holds(kind, bits, tmp_path):
    """Bit by bit: the rounded model is made from the given one, not read from the page's file."""
    rounded = page.store(own_model(kind), tmp_path / "w.safetensors", bits)
    held = from_checkpoint(tmp_path / "w.safetensors")
    assert rounded.config == held.config
    for one, other in zip(rounded.parameters(), held.parameters(), strict=True):
        assert torch.equal(one, other)


WRONG = {
    "bits": ({"bits": 5}, "bits must be 8 or 4 or 32, got 5"),
    "a part": ({"at": "foo"}, "at must be .*'attention'.*, got 'foo'"),
    "a language": ({"language": "fr"}, "language must be 'en' or 'zh', got 'fr'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_there_is_not_is_refused_before_anything_is_written(case, tmp_path, monkeypatch):
    arguments, message = WRONG[case]
    monkeypatch.setattr(page, "store", lambda *_: pytest.fail("weights were written"))
    with pytest.raises(ValueError, match=message):
        written(tmp_path, own_model(), **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_model_in_training_is_asked_without_its_dropout(tmp_path):
    model = own_model("minimind2", dropout=0.5)
    expected = data_of(written(tmp_path, model, bits=32))["check"]
    assert data_of(written(tmp_path, model.train(), bits=32))["check"] == expected and model.training


def test_large_weights_come_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "_PIECE", 999)
    pieces, stored = weights_of(written(tmp_path, own_model(), bits=32), tmp_path)
    assert len(pieces) > 5
    torch.testing.assert_close(stored.lm_head.weight, own_model().lm_head.weight)


def test_half_precision_is_stored_as_float32(tmp_path):
    _, stored = weights_of(written(tmp_path, own_model().half(), bits=32), tmp_path)
    torch.testing.assert_close(stored.lm_head.weight, own_model().lm_head.weight, rtol=1e-3, atol=1e-3)


def test_it_knows_the_tokenizer_and_what_the_library_makes_of_texts(tmp_path):
    model = own_folder(tmp_path)
    tokenizer = read_tokenizer(tmp_path / "tokenizer.json", 300)
    data = data_of(written(tmp_path, model, tokenizer=tokenizer, text="我爱编程"))
    library = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert data["tokenizer"] == {"kind": "bpe", "content": tokenizer.content}
    assert len(data["check"]["texts"]) > 5
    assert data["check"]["texts"] == [[text, library.encode(text).ids] for text, _ in data["check"]["texts"]]
    assert data["check"]["texts"][0][0] == data["text"] == "我爱编程" and data["chat"]["before"].startswith(
        "<|im_start"
    )


def test_the_policy_lets_its_own_code_run_and_nothing_in(tmp_path):
    elements = written(tmp_path, own_model())
    [policy] = [has["content"] for tag, has, _ in elements.found if has.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and rules["worker-src"] == "blob:"
    running = [text for tag, has, text in elements.found if tag == "script" and "type" not in has]
    styles = elements.texts("style")
    assert len(styles) == 1 and len(running) == 2 and running[0] == keep_script(with_fonts=False)
    for texts, rule, also in ((running, "script-src", ["'wasm-unsafe-eval'"]), (styles, "style-src", [])):
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
        assert rules[rule].split() == [*(f"'sha256-{digest}'" for digest in digests), *also]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", "".join(running))
    assert rules["font-src"] == "data:" and styles[0].count("@font-face") == 1
    assert [has for _, has, _ in elements.found if has.get("src") or has.get("href", "data:,") != "data:,"] == []


def test_it_speaks_the_language_that_it_was_asked_for(tmp_path):
    titles, told = {"en": "Inside mine", "zh-CN": "内部：mine"}, {"en": "Checked: ", "zh-CN": "已核对："}
    for language, tag in (("en", "en"), ("zh", "zh-CN")):
        elements = written(tmp_path, own_model(), language=language)
        assert elements.texts("html", lang=tag) and elements.texts("title") == [titles[tag]]
        code = "".join(elements.texts("script"))
        assert [one for one in told if told[one] in code] == [tag]


def test_names_and_tokens_are_shown_never_executed(tmp_path):
    tokenizer = read_tokenizer(own_folder_file(tmp_path), 300)
    tokenizer.content["added_tokens"].append({"id": 0, "content": EVIL})
    elements = written(tmp_path, own_model(vocab_size=300), name=EVIL, text=EVIL, tokenizer=tokenizer)
    assert "img" not in {tag for tag, _, _ in elements.found}
    data = data_of(elements)
    assert data["name"] == data["text"] == data["tokenizer"]["content"]["added_tokens"][-1]["content"] == EVIL


def test_half_a_character_is_shown_as_it_was_given(tmp_path):
    assert data_of(written(tmp_path, own_model(), text="1 \ud800 天")).get("text") == "1 \ud800 天"


def own_folder_file(folder):
    own_folder(folder)
    return folder / "tokenizer.json"


def test_what_a_page_cannot_hold_or_run_is_refused_and_leaves_no_file(tmp_path):
    with torch.device("meta"):
        large = MiniMindForCausalLM(MiniMindConfig.minimind3_moe(max_position_embeddings=8))
    for model, reason in (
        (large, "198 million weights, and a page holds up to 150"),
        (post(), "norms after each part"),
    ):
        with pytest.raises(ValueError, match=reason):
            write_page(model, tmp_path / "page.html", name="it", text="1")
    assert list(tmp_path.iterdir()) == []


def post():
    return own_model("minimind2", norm_placement="post")
