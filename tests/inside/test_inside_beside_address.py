"""An address tells all that a reader has chosen of two models; what fits neither of them is left out."""

import pytest

OPEN = """async () => {
    const { addressOf, readAddress } = await import("/inside/beside/address.js");
    const config = { num_hidden_layers: 3, num_attention_heads: 4, head_dim: 8, hidden_size: 32, vocab_size: 100 };
    const models = [config, { ...config, num_hidden_layers: 2 }].map((one) => ({ config: one }));
    const data = { config, models, most: 12, beyond: 0.06, chat: { before: "", after: "" } };
    const plain = (found) => found && JSON.parse(JSON.stringify(found));
    globalThis.readAs = (said, changes) => plain(readAddress(said, { ...data, ...changes }));
    globalThis.both = ({ ids, ...session }) => {
        const said = addressOf({ ...session, prompt: ids }, data);
        return [said, readAs(said)];
    };
}"""
PLAIN = {
    "ids": [0, 17, 4], "answers": [[], []], "row": 0, "selected": 2, "zoom": None, "beyond": 0.06,
    "settings": {"temperature": 0, "topK": 0, "topP": 1}, "seed": 1, "isChat": False,
}  # fmt: skip
CHOSEN = {
    "plain": {},
    "answers, and a token of the second": {"answers": [[5], [6, 7]], "row": 1, "selected": 4},
    "a token of the text": {"selected": 0},
    "an open head and a bound": {"zoom": {"part": "head", "layer": 1, "head": 3}, "beyond": 0.8},
    "a draw": {"settings": {"temperature": 0.8, "topK": 40, "topP": 0.9}, "seed": 7},
    "a question": {"isChat": True, "typed": "什么是 attention? <b>&#"},
}  # fmt: skip


@pytest.fixture
def address(node):
    node.evaluate(OPEN)
    return node


@pytest.mark.parametrize("changes", CHOSEN.values(), ids=CHOSEN)
def test_what_is_written_is_read_again(address, changes):
    session = PLAIN | changes
    _, found = address.evaluate("(session) => both(session)", session)
    assert found == session


def test_what_is_as_at_first_is_not_said(address):
    assert address.evaluate("(session) => both(session)", PLAIN)[0] == "ids=0.17.4"


@pytest.mark.parametrize("said", ["", "a=3", "ids=", "ids=x.y", "ids=100", "ids=-1"])
def test_without_a_text_it_is_no_address(address, said):
    assert address.evaluate("(said) => readAs(said)", said) is None


@pytest.mark.parametrize(
    "wrong",
    [
        "a=x", "b=100", "at=3", "at=-1", "of=b", "of=c", "open=head.2.0", "open=head.0.4", "open=block.0", "beyond=0",
        "beyond=3", "beyond=x", "draw=9_1_1", "seed=0", "seed=100", "seed=x",
    ],
)  # fmt: skip
def test_what_fits_neither_model_is_left_out(address, wrong):
    assert address.evaluate("(said) => readAs(said)", f"ids=0.17.4&{wrong}") == PLAIN | {"seed": 1}


def test_no_more_is_read_than_a_page_reads(address):
    found = address.evaluate("(said) => readAs(said)", f"ids={'7.' * 50}&a={'5.' * 50}")
    assert (len(found["ids"]), len(found["answers"][0])) == (11, 1)


def test_heads_that_cannot_be_compared_are_not_opened_and_without_a_template_there_is_no_chat(address):
    others = """(said) => {
        const config = { num_hidden_layers: 3, num_attention_heads: 4, hidden_size: 32, vocab_size: 100 };
        const models = [config, { ...config, num_attention_heads: 8 }].map((one) => ({ config: one }));
        return readAs(said, { models, chat: null });
    }"""
    assert address.evaluate(others, "ids=0.17.4&open=head.0.0&chat=why") == PLAIN
