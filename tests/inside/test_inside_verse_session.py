"""What a reader does on the page that writes verse, without a page: its runner answers when it is told to."""

import pytest

from minimind_edu.inside.verse import sounds
from minimind_edu.trained.verse.corpus import characters

START = """async ([sounds, characters]) => {
    const { createSession } = await import("/inside/verse/session.js");
    globalThis.asked = [];
    // a poem of the given characters, and of the one whose id is 4 plus the seed's last digit
    const answer = ({ given, lines, width, seed }) => {
        const ids = Array.from({ length: lines * width }, (_, at) => given[at] ?? 4 + (seed % 10));
        return { places: ids.map((id) => ({ id, p: 0.5, top: [[id, 0.5]] })), marks: Array(lines + 1).fill(true) };
    };
    globalThis.fails = false;
    const runner = { look: (what, plan) => new Promise((resolve, reject) => {
        asked.push({ plan, go: () => (fails ? reject(new Error("no more memory")) : resolve(answer(plan))) });
    }) };
    globalThis.session = createSession({ data: { sounds, characters }, runner, isStill: () => true }, () => {});
    globalThis.turn = () => new Promise((done) => setTimeout(done));
    globalThis.settle = async () => {
        while (asked.some(({ done }) => !done)) {
            const one = asked.find(({ done }) => !done);
            one.done = true;
            one.go();
            await turn();
        }
    };
    globalThis.poemNow = () => session.written?.poem.join("") ?? null;
}"""


@pytest.fixture
def session(node):
    node.evaluate(START, [sounds(), "".join(characters()[2:])])
    node.evaluate("session.restore({ ...session.asked })")
    node.evaluate("session.open()")
    return node


def test_again_draws_another_poem_and_keeps_what_is_typed(session):
    script = """async () => {
        session.ask({ begin: "春" });
        session.write();
        await settle();
        const first = session.written.asked.seed;
        session.write();
        await settle();
        return [first, session.written.asked.seed, session.written.asked.begin, poemNow()[0], session.written.given];
    }"""
    first, second, begin, start, given = session.evaluate(script)
    assert first != second and (begin, start, given) == ("春", "春", 1)


def test_what_is_refused_stays_typed_and_the_poem_stays_there(session):
    script = """async () => {
        session.ask({ begin: "春" });
        session.write(1);
        await settle();
        session.ask({ begin: "春雲" });
        session.write();
        await settle();
        const refused = [session.problem.name, session.asked.begin, session.written.asked.begin, asked.length];
        session.ask({ begin: "春云" });
        return [refused, session.problem];
    }"""
    assert session.evaluate(script) == [["strange", "春雲", "春", 1], None]


def test_while_a_poem_is_written_only_the_last_wish_waits(session):
    """A slider tells many: a backlog of poems that nobody sees would keep the last one waiting."""
    script = """async () => {
        session.write(1);
        session.write(2);
        session.write(3);
        for (const temperature of [0.1, 0.2, 0.3]) session.ask({ temperature });
        await settle();
        return [asked.map(({ plan }) => [plan.seed, plan.temperature]), session.written.asked.seed, session.isBusy];
    }"""
    assert session.evaluate(script) == [[[1, 0.8], [3, 0.8]], 3, False]


def test_a_silent_head_writes_the_same_draws_anew_and_comes_back(session):
    script = """async () => {
        session.write(7);
        await settle();
        session.toggleHead("2.0");
        session.toggleHead("0.1");
        await settle();
        const both = [...session.written.asked.silenced];
        session.toggleHead("2.0");
        await settle();
        return [both, session.written.asked.silenced, asked.map(({ plan }) => plan.seed)];
    }"""
    assert session.evaluate(script) == [["0.1", "2.0"], ["0.1"], [7, 7, 7, 7]]


def test_another_character_begins_a_poem_that_is_the_same_up_to_it(session):
    script = """async () => {
        session.ask({ begin: "春眠不觉晓", rhyme: "花" });
        session.write(1);
        await settle();
        session.put(6, 20);
        await settle();
        const early = [session.asked.begin, session.asked.rhyme, session.written.given];
        session.put(12, 21);
        await settle();
        return [early, session.asked.begin, session.asked.rhyme, session.problem];
    }"""
    known = characters()
    early, begin, rhyme, problem = session.evaluate(script)
    assert early == [f"春眠不觉晓，{known[5]}{known[20]}", "花", 7]
    assert begin.startswith(early[0]) and begin.count("，") == 2 and begin.endswith(known[21])
    assert rhyme == "" and problem is None


def test_poems_are_counted_by_the_heads_that_are_silent(session):
    script = """async () => {
        const run = async () => {
            const counted = session.count();
            for (let i = 0; i < 10; i++) await settle();
            await counted;
        };
        session.ask({ begin: "" });
        session.write(1);
        await settle();
        await run();
        await run();
        session.toggleHead("1.3");
        await settle();
        await run();
        const told = session.tallies.map(({ key, poems, rhymes, marks }) => [key, poems, rhymes, marks]);
        session.ask({ lines: 8 });
        return [told, session.tallies.length, session.counting];
    }"""
    told, after, counting = session.evaluate(script)
    assert told == [["", 20, [0, 20], [100, 100]], ["1.3", 10, [0, 10], [50, 50]]]
    assert (after, counting) == (0, 0)


def test_a_count_ends_where_something_else_is_asked_for(session):
    script = """async () => {
        session.ask({ begin: "" });
        session.count();
        await turn();
        session.ask({ lines: 8 });
        await settle();
        return [asked.length, session.counting, session.tallies];
    }"""
    assert session.evaluate(script) == [1, 0, []]


def test_what_fails_is_told(session):
    script = """async () => {
        fails = true;
        session.write(1);
        await settle();
        return [session.failure, session.isBusy, session.written];
    }"""
    assert session.evaluate(script) == ["no more memory", False, None]


def test_a_link_shows_its_poem_as_soon_as_the_model_is_there(node):
    node.evaluate(START, [sounds(), "".join(characters()[2:])])
    script = """async () => {
        session.restore({ ...session.asked, begin: "春", seed: 3 });
        await turn();
        const before = asked.length;
        session.open();
        await settle();
        return [before, poemNow().slice(0, 2), session.shown];
    }"""
    assert node.evaluate(script) == [0, f"春{characters()[7]}", 20]
