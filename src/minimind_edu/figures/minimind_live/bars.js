// What comes next: a bar for each of the likeliest words, and a tick for the exact probability.

import { createBar } from "../../web/kit/bars.js";
import { h } from "../../web/kit/kit.js";
import { descending } from "./session.js";
import { wordWithGloss } from "./marks.js";

const MOST_BARS = 7;

/** first: what Python computed for the first story, { ids, bars: [word, model, exact] }, until the model is here. */
export function createBars(words, session, glossOf, first, count = MOST_BARS) {
  const title = h("p", { class: "ml-title", "aria-live": "polite" });
  const legend = h("p", { class: "ml-legend" });
  const rows = Array.from({ length: count }, () => createRow());
  const root = h("section", { class: "ml-answer" }, title, h("div", { class: "ml-bars" }, rows), legend);

  function createRow() {
    let id = null;
    const bar = createBar("ml-bar mm-shows", ["mm-said", "mm-tick"], () => id !== null && session.answer(id));
    const set = (one) => {
      ({ id } = one);
      const [text, gloss] = [session.world.words[id], glossOf(id)];
      const share = one.drawn || one.model;
      const said = share === null ? "…" : words.percent(share);
      const label = words.bar(words.glossed(text, gloss), share, one.exact);
      bar.set({ word: wordWithGloss(text, gloss), shares: [[0, share ?? 0], one.exact || null], said, label });
      bar.root.dataset.cut = one.drawn === 0;
    };
    return { root: bar.root, set };
  }

  /** The words with their bars: [{ id, model, drawn, exact }], numbers or null. */
  function barsNow() {
    const { model, drawn, exact } = session.after();
    const isFirst = !model && session.selected === first.ids.length - 1 && `${session.ids}` === `${first.ids}`;
    if (isFirst)
      return first.bars.slice(0, count).map(([word, share, right]) => {
        return { id: session.world.words.indexOf(word), model: share, drawn: share, exact: right };
      });
    const known = model ?? exact ?? new Float32Array(session.world.words.length);
    const ids = descending(known).slice(0, count);
    return ids.map((id) => ({
      id,
      model: model?.[id] ?? null,
      drawn: drawn?.[id] ?? null,
      exact: exact?.[id] ?? null,
    }));
  }

  function draw() {
    const id = session.ids[session.selected];
    title.textContent = words.after(session.world.words[id]);
    const bars = barsNow();
    rows.forEach((row, at) => row.set(bars[at]));
    const isKnown = bars[0].exact !== null;
    legend.dataset.known = isKnown;
    legend.textContent = isKnown ? words.legend : words.noLegend;
  }
  return { root, draw };
}
