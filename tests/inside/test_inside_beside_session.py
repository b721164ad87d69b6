"""What a reader does with two models, without the page: a runner that answers by itself says what each writes."""

import pytest
from own_pages import READER, do

OPEN = """async () => {
    const { createPair } = await import("/inside/beside/session.js");
    globalThis.asked = [];
    globalThis.answers = { next: [[], []] }; // what each of the two goes on with
    globalThis.held = null; // answers that wait
    const heads = (at) => [at, 2 * at];
    const moved = (id) => (id === 6 ? 0.9 : 0.5);
    const told = (row, ids) => ids.map((id, at) => ({ at, id, row, moved: moved(id), apart: [0], heads: heads(at) }));
    const looks = {
        read: ({ row, ids, known }) => told(row, ids).slice(known),
        next: ({ row }) => answers.next[row].shift(),
        maps: ({ row, layer, head }) => [`A ${row} ${layer} ${head}`, `B ${row} ${layer} ${head}`],
    };
    const runner = {
        look: async (what, place) => {
            asked.push([what, { ...place }]);
            if (held) await held;
            return looks[what](place);
        },
    };
    const models = [{ ends: [26] }, { ends: [25] }];
    const data = { text: "abc", prefix: [0], most: 12, chat: null, beyond: 0.06, models };
    globalThis.make = (changed) => {
        asked.length = 0;
        globalThis.session = createPair({ data: { ...data, ...changed }, reader, runner }, () => {});
    };
    globalThis.seen = () => ({ prompt: session.prompt, answers: session.answers, ended: session.ended,
        read: session.rows.map((told) => told.length), at: [session.row, session.selected], parts: session.partsAt,
        isBusy: session.isBusy });
}"""


@pytest.fixture
def session(node):
    node.evaluate(READER)
    node.evaluate(OPEN)
    node.evaluate("() => make({})")
    return node


def write(one, other, text="abc"):
    return f"await session.type('{text}'); answers.next = [{one}, {other}]; await session.write();"


def test_both_read_the_text_and_each_writes_its_own_answer(session):
    found = do(session, write([4, 5, 6, 26], [4, 5, 7, 8, 25]))
    assert (found["prompt"], found["answers"]) == ([0, 1, 2, 3], [[4, 5, 6, 26], [4, 5, 7, 8, 25]])
    assert (found["ended"], found["read"], found["isBusy"]) == (["end", "end"], [8, 9], False)
    assert (found["parts"], found["at"]) == (2, [0, 5]), "the last token that both have written"
    texts = session.evaluate("() => session.rows.map((told) => told.map(({ id, row }) => [row, id]))")
    assert texts == [[[0, id] for id in (0, 1, 2, 3, 4, 5, 6, 26)], [[1, id] for id in (0, 1, 2, 3, 4, 5, 7, 8, 25)]]


def test_both_draw_by_the_same_numbers_which_the_seed_tells(session):
    def draws(seed):
        do(session, f"asked.length = 0; session.set({{ seed: {seed} }}); {write([4, 5, 26], [4, 6, 7, 25])}")
        asked = session.evaluate("() => asked.filter(([what]) => what === 'next').map(([, place]) => place)")
        assert all(place["settings"]["temperature"] == 0 for place in asked)
        return [[place["random"] for place in asked if place["row"] == row] for row in (0, 1)]

    first, second = draws(1), draws(2)
    assert first[0] == first[1][:3] and len(first[1]) == 4 and len(set(first[1])) == 4
    assert draws(1) == first and second[0] != first[0]


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [([4] * 20, [4, 5] * 20, "loop"), ([4, 5, 6, 7, 8, 9, 10, 11], [4, 5, 6, 7, 8, 9, 10, 12], "full")],
)
def test_an_answer_stops_where_it_goes_in_circles_or_the_page_is_full(session, one, other, why):
    found = do(session, write(one, other))
    assert found["ended"] == [why, why] and max(found["read"]) <= 12
    if why == "full":
        assert found["answers"] == [one, other] and found["parts"] == 7


def test_the_same_answer_parts_nowhere_and_one_that_ends_before_parts_at_its_end(session):
    found = do(session, write([4, 5, 25, 26], [4, 5, 25]))
    assert (found["answers"], found["parts"]) == ([[4, 5, 25, 26], [4, 5, 25]], 3)
    found = do(session, write([4, 5, 6, 7, 8, 9, 10, 11], [4, 5, 6, 7, 8, 9, 10, 11], "abd"))
    assert found["parts"] is None and found["at"] == [0, 6], "where they came nearest to parting"


def test_while_they_write_the_one_that_is_ahead_has_not_parted(session):
    do(session, "session.answers = [[4, 5], [4]]; session.isWriting = true;")
    assert session.evaluate("() => session.partsAt") is None
    assert session.evaluate("() => (session.answers = [[4, 5], [4, 6]], session.partsAt)") == 1


def test_a_token_that_was_chosen_stays_chosen_while_they_write(session):
    found = do(session, "await session.type('abc'); session.pick(0, 1);" + write([4, 26], [5, 25]).split(";", 1)[1])
    assert found["at"] == [0, 1]
    assert do(session, "session.pick(1, 99)")["at"] == [1, 5], "no further than it was read"
    assert do(session, "session.select(0)")["at"] == [1, 0]


def test_another_text_ends_the_writing_and_what_comes_late_is_of_nobody(session):
    steps = """await session.type('abc'); answers.next = [[4, 5, 26], [4, 6, 25]];
        let free; held = new Promise((done) => (free = done));
        const writing = session.write(); const other = session.type('xy');
        free(); held = null; await writing; await other;"""
    found = do(session, steps)
    assert (found["prompt"], found["answers"], found["read"]) == ([0, 24, 25], [[], []], [3, 0])
    assert not found["isBusy"] and session.evaluate("() => session.isWriting") is False
    assert session.evaluate("() => session.rows[0].map(({ id }) => id)") == [0, 24, 25]


def test_stopping_keeps_what_was_read_and_a_new_answer_begins_anew(session):
    steps = """await session.type('abc'); answers.next = [[4, 5, 6, 26], [4, 5, 6, 25]];
        const { look } = session; let count = 0;
        const { set } = session;
        const writing = session.write();
        while (session.answers[0].length < 2) await Promise.resolve();
        session.stop(); await writing;"""
    found = do(session, steps)
    assert not found["isBusy"] and found["answers"][0] in ([4], [4, 5])
    assert [4 + len(answer) for answer in found["answers"]] == found["read"]
    found = do(session, "answers.next = [[7, 26], [7, 25]]; await session.write();")
    assert found["answers"] == [[7, 26], [7, 25]] and found["read"] == [6, 6]
    reads = session.evaluate("() => asked.filter(([what]) => what === 'read').map(([, { row, ids }]) => [row, ids])")
    assert reads[-6:-4] == [[0, [0, 1, 2, 3]], [1, [0, 1, 2, 3]]], "the worker forgets the answers of before"


def test_a_text_that_is_none_is_refused_and_the_old_one_stays(session):
    found = do(session, "await session.type('abc'); await session.type('a1');")
    assert found["prompt"] == [0, 1, 2, 3] and session.evaluate("() => session.complaint") == "1 is no letter"
    do(session, "await session.type('abcdefghijklm');")
    assert session.evaluate("() => [session.complaint, session.prompt.length]") == [{"name": "long", "count": 14}, 11]
    session.evaluate("() => make({ prefix: [] })")
    do(session, "await session.type('');")
    assert session.evaluate("() => [session.complaint, asked.length]") == [{"name": "empty"}, 0]


def test_what_begins_as_before_is_not_read_again_and_a_chat_frames_the_words(session):
    do(session, "await session.type('abcd'); await session.type('abx');")
    reads = session.evaluate("() => asked.map(([, { row, known, ids }]) => [row, known, ids.length])")
    assert reads == [[0, 0, 5], [0, 3, 4]], "the other row is read when there are answers"
    session.evaluate("() => make({ chat: { before: 'x', after: 'y' } })")
    assert do(session, "await session.type('a');")["prompt"] == [24, 1, 25]
    assert do(session, "session.set({ isChat: false }); await session.type('a');")["prompt"] == [0, 1]


def test_maps_are_asked_for_once_a_text_and_not_while_somebody_writes(session):
    steps = "await session.type('abc'); const place = { layer: 1, head: 0 }; globalThis.first = session.mapsOf(place);"
    do(session, steps + "session.mapsOf(place); await null; await null; globalThis.second = session.mapsOf(place);")
    found = session.evaluate("() => [first, second, asked.filter(([what]) => what === 'maps').length]")
    assert found == [None, ["A 0 1 0", "B 0 1 0"], 1]
    assert session.evaluate("() => (session.isBusy = true, session.mapsOf({ layer: 0, head: 0 }))") is None
    assert session.evaluate("() => asked.filter(([what]) => what === 'maps').length") == 1
    do(session, "session.isBusy = false; await session.type('ab');")
    assert session.evaluate("() => session.mapsOf({ layer: 1, head: 0 })") is None


def test_heads_are_summed_up_to_the_chosen_token_of_the_row(session):
    do(session, write([4, 26], [5, 25]))
    assert session.evaluate("() => (session.pick(0, 3), session.headsNow())") == [2, 4]
    assert session.evaluate("() => (session.pick(1, 5), session.headsNow())") == [3, 6]


def test_a_failure_ends_the_writing(session):
    do(session, "session.isBusy = true; session.hear({ did: 'fail', message: 'no memory' });")
    assert session.evaluate("() => [session.failure, session.isBusy]") == ["no memory", False]


def test_an_address_brings_back_the_answers_and_the_token_and_later_ones_are_written_as_ever(session):
    chosen = (
        "{ ids: [0, 1, 2], answers: [[4, 26], [4, 5, 7]], row: 1, selected: 4, zoom: null, seed: 3, isChat: false }"
    )
    found = do(session, f"await session.restore({chosen})")
    assert (found["prompt"], found["answers"]) == ([0, 1, 2], [[4, 26], [4, 5, 7]])
    assert (found["read"], found["at"], found["parts"]) == ([5, 6], [1, 4], 1)
    assert (found["ended"], found["isBusy"]) == (["end", None], False), "the second was stopped on its way"
    assert session.evaluate("() => [session.typed, session.seed]") == ["ab", 3]
    found = do(session, write([4, 26], [5, 25], "ab"))
    assert (found["answers"], found["at"][0]) == ([[4, 26], [5, 25]], 0)


def test_an_address_without_answers_is_read_by_one_row(session):
    found = do(session, "await session.restore({ ids: [0, 1], answers: [[], []], row: 0, selected: 0, seed: 1 })")
    assert (found["read"], found["ended"], found["at"]) == ([2, 0], [None, None], [0, 0])


def test_another_text_overtakes_what_an_address_brings_back(session):
    steps = """
        let go;
        held = new Promise((resolve) => (go = resolve));
        const first = session.restore({ ids: [0, 1, 2], answers: [[4], [5]], row: 1, selected: 3, seed: 1 });
        const second = session.type("c");
        held = null;
        go();
        await Promise.all([first, second]);"""
    found = do(session, steps)
    assert (found["prompt"], found["answers"], found["at"]) == ([0, 3], [[], []], [0, 1])
