"""An address tells all that a reader has chosen; what fits no part of the model is left out."""

import dataclasses
import re
from pathlib import Path

import pytest
import torch

from minimind_edu import world
from minimind_edu.trained.living import living_model
from minimind_edu.trained.living.heads import attention_weights, shares, silenced

PAGE = Path(__file__).parents[2] / "book/own_model.md"

OPEN = """async () => {
    const { addressOf, readAddress } = await import("/inside/address.js");
    const data = {
        config: { num_hidden_layers: 2, num_attention_heads: 4, vocab_size: 100 },
        most: 8, chat: { before: "", after: "" },
    };
    const listed = (_, one) => (one instanceof Set ? [...one] : one);
    const plain = (found) => found && JSON.parse(JSON.stringify(found, listed));
    globalThis.both = (session) => {
        const sets = { written: new Set(session.written), silenced: new Set(session.silenced) };
        const pinned = session.pinned && { ...session.pinned, silenced: new Set(session.pinned.silenced) };
        const said = addressOf({ ...session, ...sets, pinned });
        return [said, plain(readAddress(said, data))];
    };
    globalThis.readAs = (said) => plain(readAddress(said, data));
}"""
PLAIN = {
    "ids": [0, 17, 4], "selected": 2, "written": [], "silenced": [], "zoom": None, "target": None, "isAgainst": False,
    "settings": {"temperature": 0.7, "topK": 0, "topP": 1}, "isChat": False,
}  # fmt: skip
CHOSEN = {
    "plain": {},
    "a position, what the model wrote, what is explained": {
        "selected": 1, "written": [1, 2], "target": 99, "isAgainst": True
    },
    "silent parts and an open head": {
        "silenced": ["0.1", "1.feed"], "zoom": {"part": "head", "layer": 1, "head": 3}
    },
    "always the likeliest": {"settings": {"temperature": 0, "topK": 0, "topP": 1}},
    "an open block": {"zoom": {"part": "block", "layer": 0}},
    "an open part and a draw": {
        "zoom": {"part": "feed", "layer": 1}, "settings": {"temperature": 0.8, "topK": 40, "topP": 0.9}
    },
}  # fmt: skip


@pytest.fixture
def address(node):
    node.evaluate(OPEN)
    return node


@pytest.mark.parametrize("changes", CHOSEN.values(), ids=CHOSEN)
def test_what_is_written_is_read_again(address, changes):
    session = PLAIN | changes
    said, found = address.evaluate("(session) => both(session)", session | {"pinned": None, "typed": "a text"})
    assert found == session | {"pin": None}
    assert set(said) <= set("abcdefghijklmnopqrstuvwxyz0123456789=&._"), "nothing that has to be escaped"


def test_a_pinned_text_and_a_question_are_told_too(address):
    pinned = {"ids": [0, 5], "silenced": ["1.2"], "top": [[3, 0.5]]}
    question = "什么是 attention? <b>&#"
    _, found = address.evaluate(
        "(session) => both(session)", PLAIN | {"pinned": pinned, "isChat": True, "typed": question}
    )
    assert found == PLAIN | {"isChat": True, "typed": question, "pin": {"ids": [0, 5], "silenced": ["1.2"]}}


@pytest.mark.parametrize("said", ["", "at=3", "ids=", "ids=x.y", "ids=100", "ids=-1", "section-3", "%E0%A4%A"])
def test_without_a_text_it_is_no_address(address, said):
    assert address.evaluate("(said) => readAs(said)", said) is None


def test_what_fits_no_part_of_the_model_is_left_out(address):
    said = (
        "ids=0.17.4.1.5.1000&at=9&by=1.77&silent=0.1_2.0_0.4_1.fed_0.1.2_<b>&open=head.0.4&who=100&draw=9_1_1"
        "&pin=x&chat"
    )
    found = address.evaluate("(said) => readAs(said)", said)
    expected = {
        "ids": [0, 17, 4, 1, 5],
        "selected": 4,
        "written": [1],
        "silenced": ["0.1"],
        "isChat": True,
        "typed": "",
    }
    assert found == PLAIN | {"pin": None} | expected
    assert len(address.evaluate("readAs('ids=' + '7.'.repeat(500)).ids")) == 7, "one less than a page reads"
    for wrong in ("open=eye.0", "open=head.0", "open=head.0.x", "open=block.2", "open=feed.-1", "draw=a_b_c"):
        assert address.evaluate("(said) => readAs(said)", f"ids=0.17.4&{wrong}") == PLAIN | {"pin": None}


def test_the_page_tells_what_the_books_own_model_says_there():
    """Block by block, what one head reads, what its bar is, and what is said without it."""
    page = PAGE.read_text(encoding="utf-8")
    model, core = living_model(), living_model().model
    [written] = set(re.findall(r"ids=([\d.]+)&(?:open|silent)", page))
    ids = torch.tensor([[int(one) for one in written.split(".")]])

    def said(logits: torch.Tensor) -> str:
        share, word = logits[0, -1].softmax(-1).max(-1)
        return f"*{world.decode([int(word)])}* {100 * share:.0f} %"

    x, tables, answers = core.embed_tokens(ids), (core.freqs_cos[: ids.shape[1]], core.freqs_sin[: ids.shape[1]]), []
    with torch.no_grad():
        for block in core.layers:
            x, _ = block(x, tables)
            answers.append(said(model.lm_head(core.norm(x))))
        *before, last = answers
        first = ", ".join(one.split()[0] for one in before)
        assert f"Here it is {first}, and only after the last block {last.replace(' ', ' with ', 1)}." in page
        assert f"gives it {100 * attention_weights(model, ids)[0, 2, -1].max():.0f} % of its attention" in page
        with silenced(model, 0, 2):
            word, share = re.fullmatch(r"(\S+) (.+)", said(model(ids).logits)).groups()
    assert f"this model says {word}, where Mia was before, with {share}." in page
    pushed = shares(model, ids)
    lifted = pushed[:, int(world.encode("hall")[-1])] - pushed.mean(1)
    assert f"head 3 of block 1 has {lifted[3]:.1f} of the {lifted.sum():.1f} that lift *hall*" in page


def test_the_links_of_the_book_open_what_they_say(address):
    """Nothing in them is left out when they are read: all of it fits the book's own model."""
    said = re.findall(r'href="\.\./inside/living\.html#([^"]+)"', PAGE.read_text(encoding="utf-8"))
    assert len(said) == 4
    config = dataclasses.asdict(living_model().config)
    script = """async ([said, config]) => {
        const { addressOf, readAddress } = await import("/inside/address.js");
        const { pin, ...found } = readAddress(said, { config, most: 512, chat: null });
        const again = addressOf({ ...found, pinned: pin });
        return [said, again].map((one) => [...new URLSearchParams(one)].sort());
    }"""
    for one in said:
        told, again = address.evaluate(script, [one, config])
        assert [[name, value.rstrip(".")] for name, value in again] == told
