// What comes next: a bar for each of the likeliest words, a tick for the exact probability, and how a word is drawn.

import { h, fill, fmt, slider } from "../kit/kit.js";
import { descending } from "./session.js";
import { linksToChapters, wordWithGloss } from "./marks.js";

const MOST_BARS = 7;

/** first: what Python computed for the first story, { ids, bars: [word, model, exact] }, until the model is here. */
export function createBars(words, session, glossOf, first, count = MOST_BARS) {
  const title = h("p", { class: "ml-title", "aria-live": "polite" });
  const legend = h("p", { class: "ml-legend" });
  const rows = Array.from({ length: count }, () => createRow());
  const root = h("section", { class: "ml-answer" }, title, h("div", { class: "ml-bars" }, rows), legend);

  function createRow() {
    let id = null;
    const word = h("span", { class: "mm-clipped ml-bar-word" });
    const length = h("i", { class: "ml-fill" });
    const tick = h("i", { class: "mm-tick" });
    const number = h("span", { class: "ml-number" });
    const press = () => id !== null && session.answer(id);
    const attrs = { type: "button", class: "ml-bar mm-shows", onClick: press };
    const bar = h("button", attrs, word, h("span", { class: "mm-track" }, length, tick), number);
    const set = (one) => {
      ({ id } = one);
      const text = session.world.words[id];
      const share = one.drawn || one.model;
      fill(word, wordWithGloss(text, glossOf(id)));
      length.style.width = `${100 * (share ?? 0)}%`;
      tick.style.left = `${100 * (one.exact ?? 0)}%`;
      tick.hidden = !one.exact;
      number.textContent = share === null ? "…" : words.percent(share);
      bar.dataset.cut = one.drawn === 0;
      bar.setAttribute("aria-label", words.bar(words.glossed(text, glossOf(id)), share, one.exact));
    };
    return { root: bar, set };
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

/** The three sliders of the sampling, folded, with the chapter about them. */
export function createSampling(words, session, links) {
  const knob = (name, min, max, step, [off, offText]) => {
    const format = (x) => (x === off ? offText : fmt(x, step === 1 ? 0 : 2));
    const onInput = (value) => session.set({ [name]: value });
    return slider({ label: words[name], min, max, step, value: session.settings[name], format, onInput });
  };
  const controls = h(
    "div",
    { class: "ml-sampling" },
    knob("temperature", 0, 2, 0.05, [0, words.greedy]),
    knob("topK", 0, 20, 1, [0, words.all]),
    knob("topP", 0.05, 1, 0.05, [1, words.all]),
  );
  const chapters = linksToChapters(words, links, ["generation"]);
  return { root: h("details", { class: "mm-more" }, h("summary", {}, words.sampling), controls, chapters) };
}
