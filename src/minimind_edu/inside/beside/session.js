// What a reader does with two models on one page. No DOM. tests/inside/test_inside_beside_session.py tries it with a
// runner that answers by itself.

import { seededRandom } from "../../web/live/sampling.js";
import { isSamePart } from "../../web/stage/parts.js";
import { idsOfTyped } from "../field.js";
import { loopAt } from "../session.js";
import { textOf } from "../tokens.js";
import { movedHeads, partingOf } from "./compare.js";

export const WRITTEN = 40; // tokens of an answer
export const MOST_SEED = 99;
export const NEAREST = 1e-3; // from which difference on two streams may count as parted, at least,
export const FURTHEST = 2; // and at most
export const AT_FIRST = { settings: { temperature: 0, topK: 0, topP: 1 }, seed: 1 };

/**
 * data: what write_beside_page wrote; reader: its tokenizer; runner: createRunner's; changed() is called after each
 * change. It has
 *
 *   typed, isChat, isTyping   the text as it is in the field, whether it is a question, whether somebody writes it
 *   prompt                    its ids, which both models read
 *   answers                   what each of them goes on with: ids
 *   ended                     why each has ended, or null: "end", "loop", "written", "full"
 *   rows                      of the text and each answer what compare.js tells of its tokens, as far as they are read
 *   row, selected             the token that everything is about: whose answer, and its place in text and answer
 *   zoom                      null, or { part: "head", layer, head }: what is open
 *   settings, seed            of a draw; both models get the same numbers
 *   beyond                    the difference of two streams from which they have parted
 *   isWriting, isBusy         whether they write, and whether something is read
 *   complaint, failure        why a text was not read: { name, count }, or a message; why the models cannot go on
 */
export function createPair({ data, reader, runner }, changed) {
  const session = { typed: data.text, isChat: Boolean(data.chat), isTyping: false, prompt: [], row: 0, selected: 0 };
  Object.assign(session, { answers: [[], []], ended: [null, null], rows: [[], []], zoom: null });
  Object.assign(session, { ...AT_FIRST, beyond: data.beyond });
  Object.assign(session, { isWriting: false, isBusy: false, complaint: null, failure: null });
  let run = 0; // what was begun before another is given up
  let isChosen = false; // whether a reader has chosen the token
  const maps = new Map(); // of the texts of now: what heads read

  const idsIn = (row) => [...session.prompt, ...session.answers[row]];

  /** Both read the text of a row, as far as it is not read; whether nothing else was begun meanwhile. */
  async function read(row, mine) {
    const answer = await runner.look("read", { row, ids: idsIn(row), known: session.rows[row].length });
    if (run !== mine || answer === null) return false;
    session.rows[row] = [...session.rows[row], ...answer];
    changed();
    return true;
  }

  /** Another text; the answers to the one before go. Gives whether nothing else was begun meanwhile. */
  async function become(prompt, answers = [[], []]) {
    const mine = ++run;
    const same = partingOf(prompt, session.prompt) ?? prompt.length;
    const rows = session.rows.map((row) => row.slice(0, same));
    Object.assign(session, { prompt, rows, answers, ended: [null, null], isWriting: false, isBusy: true });
    Object.assign(session, { row: 0, selected: prompt.length - 1 });
    isChosen = false;
    maps.clear();
    changed();
    if (!(await read(0, mine))) return false; // the other row is read when there are answers
    if (answers.some((ids) => ids.length) && !(await read(1, mine))) return false;
    session.isBusy = false;
    changed();
    return true;
  }

  /** What address.js read: a text with the answers to it, and all that was chosen. */
  async function restore({ ids, answers, row, selected, typed, ...chosen }) {
    const between = ids.slice(data.prefix.length, ids.length - (data.suffix ?? []).length);
    Object.assign(session, chosen, { typed: typed ?? textOf(reader, between), isTyping: false, complaint: null });
    if (!(await become(ids, answers))) return;
    session.ended = answers.map((answer, side) => (answer.length ? endOf(side) : null));
    pick(row, selected);
  }

  /** The text of the field. */
  function type(text) {
    const { ids, complaint } = idsOfTyped(data, reader, text, session.isChat);
    Object.assign(session, { typed: text, isTyping: false, complaint });
    return !ids.length || partingOf(ids, session.prompt) === null ? changed() : become(ids);
  }

  /** Why an answer goes no further, or null. */
  function endOf(row) {
    const [answer, { ends }] = [session.answers[row], data.models[row]];
    if (ends.includes(answer.at(-1))) return "end";
    if (loopAt(idsIn(row), session.prompt.length)) return "loop";
    if (session.prompt.length + answer.length >= data.most) return "full";
    return answer.length >= WRITTEN ? "written" : null;
  }

  /** Both answer, from the beginning, a token each in turn. */
  async function write() {
    if (!session.prompt.length || session.isBusy) return;
    const mine = ++run;
    const rows = session.rows.map((row) => row.slice(0, session.prompt.length));
    Object.assign(session, { rows, answers: [[], []], ended: [null, null], isWriting: true, isBusy: true });
    if (session.selected >= session.prompt.length) isChosen = false;
    if (!isChosen) Object.assign(session, { row: 0, selected: session.prompt.length - 1 });
    maps.clear();
    changed();
    if (!((await read(0, mine)) && (await read(1, mine)))) return; // the worker forgets the answers of before
    const draws = seededRandom(session.seed);
    while (session.ended.includes(null)) {
      const random = draws(); // one for both: models that say the same draw the same
      for (const row of [0, 1]) {
        if (session.ended[row]) continue;
        const id = await runner.look("next", { row, settings: session.settings, random });
        if (run !== mine) return;
        session.answers[row] = [...session.answers[row], id];
        session.ended[row] = endOf(row);
        if (!(await read(row, mine))) return;
      }
      choose();
    }
    Object.assign(session, { isWriting: false, isBusy: false });
    changed();
  }

  /**
   * As long as nobody has chosen a token: the last one that both have written, for there they part; or else that after
   * which they came nearest to it.
   */
  function choose() {
    if (isChosen) return;
    const { answers, partsAt, prompt, rows } = session;
    const [first, end] = [prompt.length - 1, prompt.length + answers[0].length - 1];
    const nearest = rows[0]
      .slice(first, end)
      .reduce((best, position) => (position.moved > best.moved ? position : best));
    session.selected = partsAt === null ? nearest.at : first + partsAt;
    changed();
  }

  function stop() {
    if (!session.isWriting) return;
    run++;
    const read = session.answers.map((answer, row) => session.rows[row].length - session.prompt.length);
    session.answers = session.answers.map((answer, row) => answer.slice(0, read[row])); // what was not read yet
    Object.assign(session, { isWriting: false, isBusy: false });
    changed();
  }

  /** A token of the text or of an answer. */
  function pick(row, at) {
    isChosen = true;
    const last = session.rows[row].length - 1;
    if (last >= 0) Object.assign(session, { row, selected: Math.max(0, Math.min(last, at)) });
    changed();
  }

  function toggle(zoom) {
    session.zoom = isSamePart(session.zoom, zoom) ? null : zoom;
    changed();
  }

  function set(changes) {
    Object.assign(session, changes);
    changed();
  }

  /** The bytes of what a head reads in both models, or null: on their way. Nothing is asked while they write. */
  function mapsOf({ layer, head }) {
    const { row, rows } = session;
    const key = `${row} ${rows[row].length} ${layer} ${head}`;
    if (maps.has(key)) return maps.get(key);
    if (session.isBusy) return null;
    maps.set(key, null);
    const mine = run;
    runner.look("maps", { row, layer, head }).then((found) => {
      if (run === mine) maps.set(key, found);
      changed();
    });
    return null;
  }

  let summed = { row: null, at: 0, heads: [] };
  /** How much of each head's attention has moved up to the selected token: [L * H]. */
  function headsNow() {
    const [row, at] = [session.rows[session.row], session.selected];
    if (summed.row !== row || summed.at !== at) summed = { row, at, heads: movedHeads(row, at) };
    return summed.heads;
  }

  /** What the runner tells by itself: that it failed. */
  function hear({ message }) {
    Object.assign(session, { failure: message, isWriting: false, isBusy: false });
    changed();
  }

  const methods = { type, restore, write, stop, pick, toggle, set, mapsOf, headsNow, hear };
  return Object.defineProperties(Object.assign(session, methods, { select: (at) => pick(session.row, at) }), {
    now: { get: () => session.rows[session.row][session.selected] ?? null },
    ids: { get: () => idsIn(session.row) },
    partsAt: {
      /** The first token by which the answers differ, or null while none does. */
      get() {
        const at = partingOf(...session.answers);
        const isYetToCome = at !== null && session.isWriting && at >= Math.min(...session.answers.map((a) => a.length));
        return isYetToCome ? null : at;
      },
    },
  });
}
