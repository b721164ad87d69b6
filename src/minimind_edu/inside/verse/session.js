// What a reader does on the page that writes verse. No DOM. tests/inside/test_inside_verse_session.py tries it with a
// runner that answers by itself.

import { AT_FIRST, MOST_SEED } from "./link.js";
import { countsOf, judge, layOut, soundsOf } from "./poem.js";

const STEP = 90; // milliseconds from one character to the next
export const COUNTED = 10; // poems at a press
const SIGNS = 4; // of the vocabulary, before its characters
const newSeed = () => Math.floor(Math.random() * MOST_SEED);
const added = (sums, more) => sums.map((sum, i) => sum + more[i]);

/**
 * data: what write_verse_page wrote; runner: createRunner's; isStill(): whether poems appear at once; changed() is
 * called after each change. It has
 *
 *   asked     what the controls say: as readAddress gives it
 *   problem   why it is not written, or null: of layOut
 *   written   null, or the poem that is shown: { asked: of it, poem: its characters, given: how many of them are typed,
 *             lines, width, places, marks: as compose.js gives them }
 *   shown     how many of its characters are to be seen
 *   chosen    the index of the character that is looked at, or null
 *   tallies   of each set of silent heads { key, silenced, poems, rhymes, tones, marks }: [right, all] of each
 *   counting  the number of the poem that is counted, or 0
 */
export function createSession({ data, runner, isStill }, changed) {
  const characters = ["<s>", "</s>", ...data.characters];
  const known = new Map(
    characters.map((character, id) => /** @type {[string, number]} */ ([character, id])).slice(SIGNS),
  );
  const soundOf = soundsOf(data.sounds);
  const session = { asked: { ...AT_FIRST }, problem: null, written: null, shown: 0, chosen: null, tallies: [] };
  Object.assign(session, { counting: 0, isOpen: false, isBusy: false, failure: null, known, soundOf, characters });
  let [due, timer] = [null, null]; // the poem that is to be written next; what shows the next character

  function planOf(asked) {
    const { given, rhyme, lines, width } = layOut(asked, known);
    const { seed, temperature, silenced } = asked;
    const ids = given.map((character) => known.get(character));
    return { given: ids, rhyme: rhyme === null ? null : known.get(rhyme), lines, width, seed, temperature, silenced };
  }

  /** Other controls. The poem that is there is written again where nothing else is typed: its draws stay. */
  function ask(changes) {
    const isTyped = ["begin", "rhyme", "lines", "width"].some((name) => name in changes);
    session.asked = { ...session.asked, ...changes };
    const { problem, lines, width } = layOut(session.asked, known);
    session.problem = problem;
    if (isTyped || "temperature" in changes) session.tallies = [];
    if (!problem) Object.assign(session.asked, { lines, width });
    if (!isTyped && session.written) return write(session.asked.seed, true);
    return changed();
  }

  /** Write a poem of these draws. isWhole: at once, not a character after the other. */
  async function write(seed = newSeed(), isWhole = false) {
    if (!session.isOpen || session.problem) return changed();
    session.asked = { ...session.asked, seed };
    due = { asked: session.asked, isWhole };
    if (session.isBusy) return changed();
    session.isBusy = true;
    while (due) {
      const now = due;
      due = null;
      changed();
      const plan = planOf(now.asked);
      const answer = await answerOf(plan);
      if (!answer) return undefined;
      if (!due) show(now, plan, answer);
    }
    session.isBusy = false;
    return changed();
  }

  async function answerOf(plan) {
    try {
      return await runner.look("write", plan);
    } catch (error) {
      Object.assign(session, { failure: error.message, isBusy: false, counting: 0 });
      changed();
      return null;
    }
  }

  const textOf = ({ places }) => places.map(({ id }) => characters[id]);

  function show({ asked, isWhole }, { lines, width, given }, answer) {
    const poem = textOf(answer);
    session.written = { ...answer, asked, poem, lines, width, given: given.length };
    session.chosen = null;
    session.shown = isWhole || isStill() ? poem.length : given.length;
    clearTimeout(timer);
    showNext();
  }

  function showNext() {
    changed();
    if (!session.written || session.shown >= session.written.poem.length) return;
    session.shown++;
    timer = setTimeout(showNext, STEP);
  }

  /** Another character at a place, and from there a new poem that begins as this one. */
  function put(at, id) {
    const { poem, width, lines } = session.written;
    const all = [...poem.slice(0, at), characters[id]];
    const rows = Array.from({ length: Math.ceil(all.length / width) }, (_, i) => all.slice(i * width, (i + 1) * width));
    const rhyme = at < 2 * width - 1 ? session.asked.rhyme : "";
    ask({ begin: rows.map((row) => row.join("")).join("，"), rhyme, lines, width });
    return write();
  }

  function toggleHead(key) {
    const { silenced } = session.asked;
    return ask({
      silenced: silenced.includes(key) ? silenced.filter((head) => head !== key) : [...silenced, key].sort(),
    });
  }

  /** More poems as the one that is asked for, of other draws: what they keep is added up. */
  async function count() {
    if (!session.isOpen || session.problem || session.counting) return;
    const { asked, tallies } = session;
    const key = asked.silenced.join("_");
    for (let number = 1; number <= COUNTED && session.tallies === tallies; number++) {
      session.counting = number;
      changed();
      const plan = { ...planOf(asked), seed: newSeed() };
      const answer = await answerOf(plan);
      if (!answer) return;
      const { rhymes, tones, ends } = countsOf(judge(textOf(answer), plan, soundOf));
      const before = tallies.find((tally) => tally.key === key);
      const row = before ?? { key, silenced: asked.silenced, poems: 0, rhymes: [0, 0], tones: [0, 0], marks: [0, 0] };
      if (!before) tallies.push(row);
      row.poems++;
      row.rhymes = added(row.rhymes, rhymes);
      row.tones = added(row.tones, added(tones, ends));
      row.marks = added(row.marks, [answer.marks.filter(Boolean).length, answer.marks.length]);
    }
    session.counting = 0;
    changed();
  }

  /** Begin with what an address says. */
  function restore(asked) {
    Object.assign(session, { asked: { ...AT_FIRST }, written: null });
    ask(asked);
    if (asked.seed !== null) write(asked.seed, true);
  }

  /** The model is there. */
  function open() {
    session.isOpen = true;
    if (session.asked.seed === null) changed();
    else write(session.asked.seed, true);
  }

  const choose = (at) => ((session.chosen = session.chosen === at ? null : at), changed());
  return Object.assign(session, { ask, write, put, toggleHead, count, restore, open, choose });
}
