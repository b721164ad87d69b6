"""What a reader does on the page of a model, without the page: a runner that answers by itself notes what is asked."""

import pytest
from own_pages import READER, do

OPEN = """async () => {
    const { createSession } = await import("/inside/session.js");
    globalThis.asked = [];
    globalThis.answers = { draw: 7 };
    const runner = {
        read: (ids, silenced, known) => asked.push(["read", ids, [...silenced], known]),
        look: async (what, place) => (asked.push([what, place]), answers[what]),
    };
    const data = { text: "abc", prefix: [0], ends: [26], most: 8, chat: null,
        config: { num_hidden_layers: 2, num_attention_heads: 2 } };
    globalThis.make = (changed) => {
        asked.length = 0;
        globalThis.changes = 0;
        globalThis.session = createSession({ data: { ...data, ...changed }, reader, runner }, () => changes++);
        session.settings = { temperature: 0, topK: 0, topP: 1 }; // what it writes is then the likeliest
    };
    globalThis.tell = () => {
        const top = (id) => [[id + 1, 0.5], [id + 2, 0.2]];
        const told = session.ids.map((id, at) => ({ at, top: top(id), next: null, weights: [] }));
        session.hear({ did: "read", told: told.slice(session.told.length) });
        session.hear({ did: "ready" });
    };
    globalThis.seen = () => ({ ids: session.ids, selected: session.selected, typed: session.typed,
        written: [...session.written], silenced: [...session.silenced], told: session.told.length });
}"""


@pytest.fixture
def session(node):
    node.evaluate(READER)
    node.evaluate(OPEN)
    node.evaluate("() => make({})")
    return node


def test_a_text_is_typed_continued_taken_back(session):
    found = do(session, "session.type('abc'); tell(); await session.next(); tell(); session.answer(5); tell();")
    assert (found["ids"], found["typed"], found["written"]) == ([0, 1, 2, 3, 4, 5], "abcde", [4])
    found = do(session, "session.undo(); session.undo();")
    assert (found["ids"], found["selected"], found["typed"]) == ([0, 1, 2, 3], 3, "abc")
    assert session.evaluate("() => asked.at(-1)") == ["read", [0, 1, 2, 3], [], 4]


def test_what_a_tokenizer_puts_after_a_text_comes_after_it(session):
    session.evaluate("() => make({ suffix: [9] })")
    assert do(session, "session.type('abc'); tell();")["ids"] == [0, 1, 2, 3, 9]


def test_what_begins_as_before_stays_told(session):
    assert do(session, "session.type('abcd'); tell(); session.type('abx');")["told"] == 3
    assert do(session, "tell(); session.silenceSome(['0.1'], true);")["told"] == 0


def test_another_token_takes_the_place_after_the_selected_one(session):
    found = do(session, "session.type('abc'); tell(); session.select(1); session.answer(9);")
    assert (found["ids"], found["selected"], found["typed"]) == ([0, 1, 9, 3], 2, "aic")


def test_a_draw_asks_the_worker_with_the_settings(session):
    found = do(
        session, "session.set({ settings: { temperature: 0.5 } }); session.type('a'); tell(); await session.next();"
    )
    assert found["ids"] == [0, 1, 7]
    assert session.evaluate("() => asked.find(([what]) => what === 'draw')") == [
        "draw",
        {"at": 1, "settings": {"temperature": 0.5}},
    ]


def test_the_model_ends_its_text(session):
    found = do(session, "session.type('y'); tell(); session.play();")
    assert found["ids"] == [0, 25]
    assert session.evaluate("() => [session.hasEnded, session.isPlaying]") == [True, False]


def test_a_full_text_ends_the_writing_and_it_is_drawn_once_more(session):
    steps = "session.type('abcdef'); tell(); session.play(); tell(); const before = changes; await session.next();"
    assert do(session, steps + "globalThis.more = changes - before;")["ids"] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert session.evaluate("() => [session.isPlaying, more]") == [False, 1]


def test_what_was_before_the_first_silent_head_is_kept_to_compare_with(session):
    do(
        session,
        "session.type('ab'); tell(); session.silenceSome(['0.1'], true); tell(); session.silenceSome(['1.0'], true);",
    )
    assert session.evaluate("() => session.before.length") == 3
    found = do(session, "tell(); session.silenceSome([...session.silenced], false);")
    assert found["silenced"] == [] and session.evaluate("() => session.before") is None
    found = do(session, "tell(); session.undo();")
    assert found["silenced"] == ["0.1", "1.0"] and session.evaluate("() => session.before.length") == 3
    do(session, "tell(); session.type('abc');")
    assert session.evaluate("() => session.before") is None, "of another text"


def test_a_text_that_is_none_is_refused_and_the_old_one_stays(session):
    found = do(session, "session.type('ab'); tell(); session.type('a1');")
    assert found["ids"] == [0, 1, 2] and session.evaluate("() => session.complaint") == "1 is no letter"
    assert do(session, "session.type('abcdefghij');")["ids"] == [0, 1, 2, 3, 4, 5, 6]
    assert session.evaluate("() => session.complaint") == {"name": "long", "count": 11}
    session.evaluate("() => make({ prefix: [] })")
    do(session, "session.type('');")
    assert session.evaluate("() => [session.complaint, asked.length]") == [{"name": "empty"}, 0]


def test_a_chat_frames_the_words_and_keeps_the_question(session):
    session.evaluate("() => make({ chat: { before: 'x', after: 'y' } })")
    found = do(session, "session.type('a'); tell(); await session.next();")
    assert (found["ids"], found["typed"]) == ([24, 1, 25], "a"), "the model ends at once"
    assert session.evaluate("() => session.answerNow") == ""
    do(session, "session.append(3, true); tell(); session.append(4, true); tell();")
    assert session.evaluate("() => session.answerNow") == "cd"
    do(
        session,
        f"await session.restore({restored().replace('false', 'true').replace('undefined', repr('b'))}); tell();",
    )
    assert session.evaluate("() => session.answerNow") == "c", "of an address"
    found = do(session, "session.set({ isChat: false }); session.type('a');")
    assert found["ids"] == [0, 1] and session.evaluate("() => session.answerNow") == ""


@pytest.mark.parametrize(
    "pinned, ids, expected",
    [
        (None, [1, 2], [0, 0]),
        ([1, 2], [1, 2, 3, 4], [0, 0]),
        ([1, 2, 3], [1, 7, 3], [1, 2]),
        ([1, 2, 3], [1, 7, 8, 3], [1, 3]),
        ([1, 2], [3, 4], [0, 2]),
    ],
)
def test_what_is_written_after_a_pinned_text_does_not_differ_from_it(node, pinned, ids, expected):
    assert node.each("inside/text", "differing", [[pinned, ids]]) == [expected]


def test_an_answer_about_an_older_text_is_not_used(session):
    script = """async () => {
        const used = [];
        const ask = () => session.look("lens", { at: 0 }, (answer) => used.push(answer));
        answers.lens = "of ab";
        session.type("ab"); tell(); ask(); session.type("abc"); tell();
        await Promise.resolve();
        ask();
        answers.lens = "late";
        await new Promise((done) => setTimeout(done));
        ask(); ask();
        return used;
    }"""
    assert session.evaluate(script) == ["of ab", "of ab"]


def test_an_answer_from_before_a_head_fell_silent_is_not_used(session):
    script = """async () => {
        const used = [];
        const ask = () => session.look("lens", { at: 0 }, (answer) => used.push(answer));
        answers.lens = "before";
        session.type("ab"); tell(); ask(); session.silenceSome(["0.1"], true); tell();
        await new Promise((done) => setTimeout(done));
        answers.lens = "after";
        ask();
        await new Promise((done) => setTimeout(done));
        ask();
        return used;
    }"""
    assert session.evaluate(script) == ["after"]


def test_a_trial_is_of_the_token_that_is_explained(session):
    do(session, "session.type('ab'); session.silenceSome(['1.0'], true); tell(); session.set({ target: 4 });")
    do(session, "answers.without = -2; session.set({ isAgainst: true }); await session.tryAll();")
    heads = [{"layer": 1, "head": 1}, {"layer": 0, "head": 0}, {"layer": 0, "head": 1}]
    tried = session.evaluate("() => asked.filter(([what]) => what === 'without').map(([_, place]) => place)")
    assert tried == [{"at": 2, "token": 4, **head} for head in heads]
    trial, *shown = session.evaluate("() => [session.trial, session.targetNow, session.againstNow]")
    assert trial == {"at": 2, "token": 4, "found": [{**head, "without": -2} for head in heads], "isGoing": False}
    assert shown == [4, 3]


@pytest.mark.parametrize(
    "act, is_kept",
    {
        "the button": ("session.stopTrying()", True),
        "another token": ("session.select(1)", True),
        "another target": ("session.set({ target: 4 })", True),
        "another trial": ("session.tryAll()", False),
        "a new text": ("session.type('xy')", False),
        "a token written": ("session.next()", False),
        "a silent head": ("session.silenceSome(['0.0'], true)", False),
    }.values(),
)
def test_a_trial_is_ended_by(session, act, is_kept):
    """What was found before stays, or all of it is gone; and nobody is asked on."""
    script = f"""async () => {{
        session.type("ab"); tell();
        const later = [];
        const resolved = () => new Promise((done) => setTimeout(done));
        answers.without = {{ then: (use) => later.push(use) }}; // answers when it is told to
        session.tryAll(); await resolved();
        const trial = session.trial;
        later.shift()(-1); await resolved();
        {act}; await resolved();
        later.shift()(-2); await resolved();
        const asked_ = asked.filter(([what]) => what === "without").length;
        return [trial === session.trial, trial.isGoing && trial === session.trial, trial.found.length, asked_];
    }}"""
    again = "tryAll" in act
    assert session.evaluate(script) == [is_kept, False, 1, 3 if again else 2]


def test_a_pinned_text_is_what_all_others_are_compared_with(session):
    do(session, "session.type('ab'); tell(); session.pin(); session.type('xy'); tell();")
    reference = "() => session.referenceNow?.top ?? null"
    assert session.evaluate(reference) == [[3, 0.5], [4, 0.2]]
    do(session, "session.silenceSome(['0.1'], true); tell();")
    assert session.evaluate(reference) == [[3, 0.5], [4, 0.2]], "also with silent parts"
    do(session, "session.set({ pinned: null });")
    assert session.evaluate(reference) == [[26, 0.5], [27, 0.2]], "and then with what was before they fell silent"


RESTORED = """{ ids: [0, 1, 2, 3], selected: 2, written: new Set([3]), silenced: new Set(SILENT), zoom: null,
    target: null, isAgainst: true, settings: { temperature: 1, topK: 0, topP: 1 }, isChat: false,
    typed: undefined, pin: PIN }"""


def restored(silent="[]", pin="null"):
    return RESTORED.replace("SILENT", silent).replace("PIN", pin)


def test_an_address_brings_back_a_text_and_what_was_chosen(session):
    found = do(session, f"session.type('x'); tell(); session.restore({restored()}); tell();")
    assert (found["ids"], found["selected"], found["written"], found["typed"]) == ([0, 1, 2, 3], 2, [3], "abc")
    assert session.evaluate("() => [session.isAgainst, session.settings.temperature, asked.length]") == [True, 1, 2]
    assert do(session, "session.undo();")["ids"] == [0, 24]


@pytest.mark.parametrize(
    "state, ids, silent",
    [
        (restored("['0.1']", "{ ids: [5], silenced: new Set(['1.0']) }"), [5], ["1.0"]),
        (restored("['0.1']"), [0, 1, 2], []),
    ],
    ids=["what is pinned", "what was before parts fell silent"],
)
def test_what_an_address_compares_with_is_read_beside(session, state, ids, silent):
    do(session, f"answers.beside = [[9, 1]]; const end = session.restore({state}); tell(); await end;")
    assert session.evaluate("() => asked.at(-1)") == ["beside", {"ids": ids, "silenced": silent}]
    assert session.evaluate("() => session.referenceNow.top") == [[9, 1]]


def test_silent_parts_are_named_blocks_as_one(node):
    script = """async () => {
        const { partsOf, silentParts } = await import("/inside/session.js");
        const silenced = new Set([...partsOf(1, 2), "2.feed", "0.1"]);
        return silentParts(silenced, { num_hidden_layers: 3, num_attention_heads: 2 });
    }"""
    assert node.evaluate(script) == [
        {"part": "head", "layer": 0, "head": 1},
        {"part": "block", "layer": 1},
        {"part": "feed", "layer": 2},
    ]


def test_what_heads_read_is_asked_for_once_and_then_only_what_is_new(session):
    script = """async () => {
        const later = () => new Promise((done) => setTimeout(done));
        const rows = (from) => session.ids.slice(from).map((_, i) => `row ${from + i}`);
        const seen = [];
        session.type("ab"); tell();
        for (const from of [0, 3]) {
            answers.maps = rows(from);
            seen.push(session.sees(1)); await later();
            seen.push(session.sees(1), session.sees(1));
            session.answer(3); seen.push(session.sees(1)); tell();
        }
        const maps = asked.filter(([what]) => what === "maps").map(([_, place]) => place);
        return [seen, maps, session.told.map(({ weights }) => weights[1] ?? null)];
    }"""
    seen, asked, rows = session.evaluate(script)
    assert seen == 2 * [False, True, True, True]
    assert asked == [{"layer": 1, "from": 0}, {"layer": 1, "from": 3}]
    assert rows == ["row 0", "row 1", "row 2", "row 3", None]


def test_at_first_a_token_is_drawn_and_not_the_likeliest(session):
    session.evaluate("async () => { globalThis.opened = await import('/inside/session.js'); }")
    found = session.evaluate("""() => opened.createSession({
        data: { text: "", chat: null, prefix: [], config: {} }, reader: {}, runner: {} }, () => {}).settings""")
    assert found == {"temperature": session.evaluate("opened.TEMPERATURE"), "topK": 0, "topP": 1}
    assert found["temperature"] == 0.7


PLAYING = """const { PLAYED } = await import('/inside/session.js');
    session.type('a'); tell(); const from = session.ids.length; session.play();
    for (let step = 0; step < 3 * PLAYED && session.isPlaying; step++) {
        await new Promise((done) => setTimeout(done)); tell();
    }
    globalThis.ended = { written: session.ids.length - from, isPlaying: session.isPlaying, paused: session.paused };"""


def test_play_rests_after_so_many_tokens_and_goes_on_when_it_is_pressed(session):
    """A text that does not repeat itself: each token is one more than the one before."""
    session.evaluate("() => make({ most: 500, ends: [] })")
    do(session, PLAYING)
    ended = session.evaluate("ended")
    assert (ended["written"], ended["isPlaying"], ended["paused"]) == (40, False, {"loop": None, "count": 40})
    do(session, "tell(); session.play();")
    assert session.evaluate("() => [session.isPlaying, session.paused]") == [True, None]


def test_play_stops_where_the_model_goes_in_circles(session):
    session.evaluate("() => make({ most: 500, ends: [] })")
    circle = "let turn = 0; session.settings = { temperature: 1 }; answers.draw = 9; "
    circle += "Object.defineProperty(answers, 'draw', { get: () => [5, 6, 7][turn++ % 3], configurable: true }); "
    do(session, circle + PLAYING)
    ended = session.evaluate("ended")
    assert ended["written"] == 9 and not ended["isPlaying"] and ended["paused"] == {"loop": [5, 6, 7], "count": 9}
    do(session, "tell(); session.undo();")
    assert session.evaluate("() => session.paused") is None


@pytest.mark.parametrize(
    ("ids", "begin", "loop"),
    [
        ([1, 2, 3, 3, 3, 3], 0, [3]),
        ([1, 2, 3, 3, 3], 0, None),  # three alike are no loop yet
        ([1, 2, 1, 2, 1, 2], 0, [1, 2]),
        ([1, 2, 1, 2, 1, 2], 1, None),  # what somebody typed does not count
        ([9, *range(12), *range(12), *range(12)], 0, list(range(12))),
        ([*range(13), *range(13), *range(13)], 0, None),
        ([1, 2, 1, 2, 1, 3], 0, None),
        ([], 0, None),
    ],
)
def test_a_loop_is_what_ends_a_text_three_times_over(session, ids, begin, loop):
    session.evaluate("async () => { globalThis.opened = await import('/inside/session.js'); }")
    found = session.evaluate("([ids, begin]) => opened.loopAt(ids, begin)", [ids, begin])
    assert found == loop
