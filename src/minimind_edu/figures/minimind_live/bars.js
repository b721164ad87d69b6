// What comes next: a bar for each of the likeliest words, and a tick for the exact probability.

import { createBar } from "../../web/kit/bars.js";
import { h } from "../../web/kit/kit.js";
import { outlineOf } from "../../web/stage/road.js";
import { descending } from "./session.js";
import { wordWithGloss } from "./marks.js";

const MOST_BARS = 7;
const UNKNOWN = { model: null, drawn: null, exact: null, before: null };

/**
 * first: what Python computed for the first story, { ids, bars: [word, model, exact] }, until the model is here.
 * guess: { ids, isOpen(), take(id) }, the words to guess from before anything is answered, or null.
 */
export function createBars(words, session, glossOf, first, count = MOST_BARS, guess = null) {
  const title = h("p", { class: "ml-title", "aria-live": "polite" });
  const legend = h("p", { class: "ml-legend" });
  const seen = { place: "", silent: "", model: null, before: null };
  const rows = Array.from({ length: count }, () => createRow());
  const root = h("div", { class: "ml-answer" }, title, h("div", { class: "ml-bars" }, rows), legend);

  function createRow() {
    let id = null;
    const press = () => (guess?.isOpen() ? guess.take(id) : session.answer(id));
    const marks = ["mm-said", "mm-before", "mm-tick"];
    const bar = createBar("ml-bar st-bar mm-shows", marks, () => id !== null && press());
    const set = (entry, isGuess) => {
      ({ id } = entry);
      const { drawn, exact, before } = entry;
      const [text, gloss] = [session.world.words[id], glossOf(id)];
      const [name, share] = [words.glossed(text, gloss), drawn || entry.model];
      const value = isGuess ? "?" : share === null ? "…" : words.percent(share);
      const label = isGuess ? words.guess(name) : words.bar(name, share, exact, before);
      const shares = [[0, share ?? 0], outlineOf(before), exact || null];
      bar.set({ word: wordWithGloss(text, gloss), shares, value, label });
      bar.root.dataset.cut = drawn === 0;
    };
    return { root: bar.root, set };
  }

  /** What was said here before a part fell silent or came back: [V], or null. */
  function wasSaid() {
    const [place, silent] = [`${session.ids} ${session.selected}`, [...session.silenced].sort().join()];
    const { model } = session.after();
    if (place !== seen.place) Object.assign(seen, { place, silent, model, before: null });
    else if (silent !== seen.silent) Object.assign(seen, { silent, before: seen.model, model });
    else seen.model = model;
    return seen.before;
  }

  /** The words with their bars: [{ id, model, drawn, exact }], numbers or null. */
  function barsNow() {
    const { model, drawn, exact } = session.after();
    const isFirst = !model && session.selected === first.ids.length - 1 && `${session.ids}` === `${first.ids}`;
    if (isFirst)
      return first.bars.slice(0, count).map(([word, share, right]) => {
        return { id: session.world.words.indexOf(word), model: share, drawn: share, exact: right, before: null };
      });
    const before = wasSaid();
    const known = model ?? exact ?? new Float32Array(session.world.words.length);
    const order = descending(known);
    const [likeliest] = before ? descending(before) : order; // what was likeliest before stays in sight, to see it fall
    const ids = [...new Set([order[0], likeliest, ...order])].slice(0, count);
    return ids.map((id) => ({
      id,
      model: model?.[id] ?? null,
      drawn: drawn?.[id] ?? null,
      exact: exact?.[id] ?? null,
      before: before?.[id] ?? null,
    }));
  }

  function draw() {
    const isGuess = Boolean(guess?.isOpen());
    root.dataset.guess = isGuess;
    rows.forEach((row, at) => (row.root.hidden = isGuess && at >= guess.ids.length));
    if (isGuess) {
      title.textContent = words.guessTitle;
      legend.textContent = words.guessHint;
      legend.dataset.known = false;
      return guess.ids.forEach((id, at) => rows[at].set({ ...UNKNOWN, id }, true));
    }
    const id = session.ids[session.selected];
    title.textContent = words.after(session.world.words[id]);
    const bars = barsNow();
    rows.forEach((row, at) => row.set(bars[at], false));
    const isKnown = bars[0].exact !== null;
    legend.dataset.known = isKnown;
    legend.textContent = isKnown ? words.legend : words.noLegend;
    return undefined;
  }
  return { root, draw };
}
