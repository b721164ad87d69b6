"""`open MODEL --beside OTHER`: one page with two models, and what it refuses in one sentence."""

import base64
import json
import re

import pytest
import torch
from own_models import own_folder, own_model

from minimind_edu import __main__ as program
from minimind_edu import from_checkpoint, save_checkpoint
from minimind_edu.inside.beside import Side, shared_tokenizer
from minimind_edu.inside.tokenizer import read_tokenizer
from minimind_edu.model.lora import add_lora, merge_lora
from minimind_edu.trained.living import living_model
from minimind_edu.verdicts.engines import explained_by
from minimind_edu.verdicts.lora import add_once, read_lora
from minimind_edu.verdicts.same_model import parted_beyond


def run(*arguments):
    program.main(["open", *map(str, arguments)])


def data_of(file):
    return json.loads(file.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0])


def weights_in(file, folder):
    """The models that a page holds."""
    pieces = re.findall(r'<script type="text/plain" class="weights">([^<]*)', file.read_text(encoding="utf-8"))
    whole, models = b"".join(map(base64.b64decode, pieces)), []
    for about in data_of(file)["models"]:
        (folder / "held.safetensors").write_bytes(whole[: about["bytes"]])
        whole = whole[about["bytes"] :]
        models.append(from_checkpoint(folder / "held.safetensors"))
    assert whole == b""
    return models


def other_than(model):
    """A model of the same sizes with other weights."""
    other = type(model)(model.config).eval()
    other.load_state_dict({name: weight + 0.1 * torch.sin(weight) for name, weight in model.state_dict().items()})
    return other


@pytest.fixture
def pair(tmp_path):
    """Two folders of one tokenizer, and their models."""
    one = own_folder(tmp_path / "before")
    own_folder(tmp_path / "after")
    other = other_than(one)
    save_checkpoint(other, tmp_path / "after/model.safetensors")
    return tmp_path / "before", tmp_path / "after", (one, other)


def test_the_page_holds_both_models_each_by_its_own_bits_and_what_torch_says_of_them(pair, tmp_path):
    before, after, models = pair
    target = tmp_path / "page.html"
    run(before, "--beside", after, "-o", target, "--text", "我爱你", "--bits", 32, "--beside-bits", 8)
    data = data_of(target)
    assert [one["name"] for one in data["models"]] == ["before", "after"] and data["name"] == "before, after"
    assert [one["bits"] for one in data["models"]] == [32, 8]
    held = weights_in(target, tmp_path)
    same = [torch.equal(one.lm_head.weight, other.lm_head.weight) for one, other in zip(models, held, strict=True)]
    assert same == [True, False]
    torch.testing.assert_close(held[1].lm_head.weight, models[1].lm_head.weight, rtol=0, atol=0.05)
    for about, model in zip(data["models"], held, strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([about["check"]["ids"]])).logits[0, -1]
        top = logits.topk(5)
        assert [id for id, _ in about["check"]["top"]] == top.indices.tolist()
        assert [logit for _, logit in about["check"]["top"]] == pytest.approx(top.values.tolist(), abs=1e-5)
    assert data["text"] == "我爱你" and data["tokenizer"]["kind"] == "bpe" and data["note"] is None
    assert data["most"] == 256 and data["chat"]["before"].startswith("<|im_start|>user")
    assert "<title>Side by side: before, after</title>" in target.read_text(encoding="utf-8")


def test_it_weighs_at_most_what_two_pages_do(pair, tmp_path):
    before, after, _ = pair
    target = tmp_path / "page.html"
    sizes = []
    for arguments in ([before], [before, "--beside", after]):
        run(*arguments, "-o", target)
        sizes.append(target.stat().st_size)
    assert sizes[0] < sizes[1] < 2 * sizes[0]


@pytest.mark.parametrize(("bits", "beyond"), [(32, 0.001), (8, 0.06), (4, 0.36)])
def test_they_part_from_where_check_says_it_for_the_coarser_of_two_roundings(tmp_path, bits, beyond):
    """As in verdicts/same_model.py, whose function it is: what rounding explains, three times."""
    file = save_checkpoint(living_model(), tmp_path / "living.safetensors")
    target = tmp_path / "page.html"
    run("--beside", file, "-o", target, "--bits", 32, "--beside-bits", bits)
    assert data_of(target)["beyond"] == pytest.approx(beyond) == parted_beyond(explained_by(bits))


def test_the_books_own_model_gives_its_words_to_a_file_of_its_vocabulary(tmp_path, capsys):
    file = save_checkpoint(living_model("twin"), tmp_path / "twin.safetensors")
    target = tmp_path / "page.html"
    run("--beside", file, "-o", target, "--language", "zh")
    assert "twin has no tokenizer of its own here: it reads by that of 本书的模型" in capsys.readouterr().err
    data = data_of(target)
    assert data["note"] == ["tokenizer", "twin", "本书的模型"] and data["tokenizer"]["kind"] == "words"
    assert 'lang="zh-CN"' in target.read_text(encoding="utf-8")


def test_without_any_tokenizer_ids_are_taken_and_either_may_give_one(pair, tmp_path):
    before, _, (one, _) = pair
    bare = save_checkpoint(one, tmp_path / "bare.safetensors")
    target = tmp_path / "page.html"
    run(bare, "--beside", bare, "-o", target)
    assert (data_of(target)["tokenizer"], data_of(target)["text"]) == (None, "1 2 3")
    run(bare, "--beside", before, "-o", target)
    assert data_of(target)["tokenizer"]["kind"] == "bpe" and data_of(target)["note"] == ["tokenizer", "bare", "before"]
    run(bare, "--beside", bare, "-o", target, "--tokenizer", before)
    assert data_of(target)["tokenizer"]["kind"] == "bpe" and data_of(target)["note"] is None


def edited(folder, change):
    """Change a folder's tokenizer.json in place."""
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    change(content)
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")


def exchange(content):
    vocab = content["model"]["vocab"]
    names = sorted(vocab, key=vocab.__getitem__)[5:7]
    vocab[names[0]], vocab[names[1]] = vocab[names[1]], vocab[names[0]]


def forget_a_merge(content):
    content["model"]["merges"].pop()


def lose_a_token(content):
    pair = content["model"]["merges"].pop()
    del content["model"]["vocab"]["".join(pair).replace(" ", "")]


def strip(content):
    content["added_tokens"][0]["lstrip"] = True


def normalize(content):
    content["normalizer"] = {"type": "NFC"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (exchange, r"one tokenizer, but token 5 is '.+' in the one and is '.+' in the other"),
        (forget_a_merge, "one tokenizer, but they have different merges"),
        (lose_a_token, r"one tokenizer, but token 299 is '.+' in the one and is missing in the other"),
        (strip, "one tokenizer, but they have different added tokens"),
        (normalize, "one tokenizer, but they have different steps in its normalizer"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_would_read_a_text_as_other_tokens_is_refused_by_name(pair, tmp_path, capsys, change, reason):
    before, after, _ = pair
    edited(after, change)
    with pytest.raises(SystemExit):
        run(before, "--beside", after, "-o", tmp_path / "page.html")
    told = capsys.readouterr().err.splitlines()[-1]
    assert re.search(reason, told) and told.startswith("minimind-edu: two models side by side must have")
    assert not (tmp_path / "page.html").exists()


def test_merges_written_in_two_ways_are_one_tokenizer(pair, tmp_path):
    before, after, _ = pair

    def rewrite(content):
        merges = content["model"]["merges"]
        content["model"]["merges"] = [one.split(" ") if isinstance(one, str) else " ".join(one) for one in merges]

    edited(after, rewrite)
    run(before, "--beside", after, "-o", tmp_path / "page.html")


def test_another_chat_template_is_named_and_that_of_the_first_is_read(pair, tmp_path, capsys):
    before, after, _ = pair
    (after / "tokenizer_config.json").unlink()
    target = tmp_path / "page.html"
    for one, other in ((before, after), (after, before)):
        run(one, "--beside", other, "-o", target)
        assert "their chat templates differ: after reads a chat as before does" in capsys.readouterr().err
        assert data_of(target)["note"] == ["chat", "after", "before"] and data_of(target)["chat"]


REFUSED = {
    "another vocabulary": (["{before}", "--beside", "{small}"], "must have one vocabulary, got 300 and 61 tokens"),
    "a part": (["{before}", "--beside", "{after}", "--at", "cache"], "--at leads to a part in the page of one model"),
    "bits of nothing": (["{before}", "--beside-bits", "4"], "--beside-bits needs --beside OTHER"),
    "an adapter of nothing": (["{before}", "--lora", "x.pth"], "--lora needs --beside OTHER"),
    "no file": (["{before}", "--beside", "{before}/none"], "there is no file or folder"),
    "no adapter": (["{before}", "--beside", "{before}", "--lora", "none.pth"], "there is no adapter none.pth"),
    "four bits": (["{before}", "--beside", "{after}", "--beside-bits", "4"], "of 4 bits, 32 neighbors in a row share"),
    "ids": (
        ["{small}", "--beside", "{small}", "--text", "你好"],
        "without a tokenizer --text is token ids",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_shown_is_refused_in_one_sentence(pair, tmp_path, capsys, case):
    before, after, _ = pair
    small = save_checkpoint(own_model(), tmp_path / "small.safetensors")
    arguments, reason = REFUSED[case]
    places = {"before": before, "after": after, "small": small}
    with pytest.raises(SystemExit):
        run(*(one.format(**places) for one in arguments), "-o", tmp_path / "page.html")
    assert reason in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "page.html").exists()


def test_a_tokenizer_that_cannot_be_read_is_an_error_here(pair, tmp_path, capsys):
    """With one model the page takes ids instead; with two, ids of one tokenizer would be no text of the other."""
    before, after, _ = pair
    edited(after, lambda content: content.update(normalizer={"type": "Lowercase"}))
    with pytest.raises(SystemExit):
        run(before, "--beside", after, "-o", tmp_path / "page.html")
    assert "normalizes text by Lowercase" in capsys.readouterr().err.splitlines()[-1]


def test_an_adapter_is_merged_into_the_other_once(pair, tmp_path):
    before, _, (one, _) = pair
    tuned = own_model(vocab_size=300, max_position_embeddings=256)
    tuned.load_state_dict(one.state_dict())
    add_lora(tuned, rank=2)
    generator = torch.Generator().manual_seed(1)
    adapter = {}
    for name, part in tuned.named_modules():
        if hasattr(part, "linear"):
            part.B.data.normal_(generator=generator)
            adapter |= {f"{name}.lora.{factor}.weight": getattr(part, factor).data.clone() for factor in "AB"}
    torch.save(adapter, tmp_path / "polite.pth")
    merge_lora(tuned)
    target = tmp_path / "page.html"
    run(before, "--beside", before, "--lora", tmp_path / "polite.pth", "-o", target, "--bits", 32)
    assert [about["name"] for about in data_of(target)["models"]] == ["before", "before + polite"]
    held = weights_in(target, tmp_path)
    for model, expected in zip(held, (one, tuned), strict=True):
        for (name, found), weight in zip(model.named_parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(found, weight, msg=name)
    added = read_lora(tmp_path / "polite.pth")
    with pytest.raises(ValueError, match=r"the adapter is for model.layers.0.* \[\d+, \d+\], and the model has there"):
        add_once(own_model(hidden_size=64), added)


def test_a_notebook_has_no_second_model_and_says_so(pair):
    from minimind_edu import figures

    with pytest.raises(TypeError, match="beside"):
        figures.Inside(pair[2][0], beside=pair[2][1])


def test_words_and_pieces_are_not_one_tokenizer(pair):
    tokenizer = read_tokenizer(pair[0] / "tokenizer.json", 300)
    model = pair[2][0]
    words = Side(model, "b", type(tokenizer)("words", {"words": ["a"]}))
    with pytest.raises(ValueError, match="one tokenizer, but they are of different kinds"):
        shared_tokenizer(Side(model, "a", tokenizer), words)
