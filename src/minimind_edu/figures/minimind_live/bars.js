// What comes next: a bar for each of the likeliest words, a tick for the exact probability, and how a word is drawn.

import { h, slider } from "../kit/kit.js";
import { descending } from "./session.js";
import { linksToChapters, wordWithGloss } from "./marks.js";

const MOST_BARS = 7;

/** first: what Python computed for the first story, { ids, bars: [word, model, exact] }, until the model is here. */
export function createBars(words, session, glossOf, first, count = MOST_BARS) {
  const title = h("p", { class: "ml-title", "aria-live": "polite" });
  const list = h("div", { class: "ml-bars" });
  const legend = h("p", { class: "ml-legend" });
  const root = h("section", { class: "ml-answer" }, title, list, legend);
  const rows = Array.from({ length: count }, () => createRow());
  list.append(...rows.map((row) => row.root));

  function createRow() {
    let id = null;
    const word = h("span", { class: "ml-bar-word" });
    const fill = h("i", { class: "ml-fill" });
    const tick = h("i", { class: "ml-tick" });
    const number = h("span", { class: "ml-number" });
    const press = () => id !== null && session.answer(id);
    const bar = h("button", { type: "button", class: "ml-bar mm-shows", onClick: press });
    bar.append(word, h("span", { class: "ml-track" }, fill, tick), number);
    const set = (one) => {
      ({ id } = one);
      const text = session.world.words[id];
      const share = one.drawn || one.model;
      word.replaceChildren(...wordWithGloss(text, glossOf(id)).filter(Boolean));
      fill.style.width = `${100 * (share ?? 0)}%`;
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
  const { temperature, topK, topP } = session.settings;
  const sliders = [
    slider({
      label: words.temperature,
      min: 0,
      max: 2,
      step: 0.05,
      value: temperature,
      format: (x) => (x === 0 ? words.greedy : x.toFixed(2)),
      onInput: (value) => session.set({ temperature: value }),
    }),
    slider({
      label: words.topK,
      min: 0,
      max: 20,
      step: 1,
      value: topK,
      format: (x) => (x === 0 ? words.all : String(x)),
      onInput: (value) => session.set({ topK: value }),
    }),
    slider({
      label: words.topP,
      min: 0.05,
      max: 1,
      step: 0.05,
      value: topP,
      format: (x) => (x === 1 ? words.all : x.toFixed(2)),
      onInput: (value) => session.set({ topP: value }),
    }),
  ];
  const controls = h(
    "div",
    { class: "ml-sampling" },
    sliders.map((one) => one.root),
  );
  const chapters = linksToChapters(words, links, ["generation"]);
  return { root: h("details", { class: "mm-more" }, h("summary", {}, words.sampling), controls, chapters) };
}
