// The bars of the sampler: what the model says of a word, what the knobs make of it, and its share of the draws.

import { createBar } from "../../web/kit/bars.js";
import { h, fill } from "../../web/kit/kit.js";

/** onPress(id) hears which word was pressed; without it the bars are no buttons. */
export function createSamplerBars(words, onPress) {
  const list = h("div", { class: "sp-bars", "data-sym": "logits" });
  const legend = h(
    "p",
    { class: "mm-legend sp-legend" },
    Object.entries(words.legend)
      .filter(([name]) => onPress || name !== "drawn")
      .map(([name, text]) => h("span", {}, h("i", { class: `mm-${name}` }), text)),
  );
  const root = h("div", { class: "sp-answer" }, list, legend);
  let rows = [];

  function createRow(isButton) {
    let id = null;
    const row = createBar("sp-row", ["mm-before", "mm-after", "mm-drawn"], isButton ? () => onPress(id) : null);

    function set(one) {
      id = one.id;
      const [was, now] = [words.percent(one.before), one.isCut ? words.cut : words.percent(one.after)];
      row.set({
        word: one.word,
        shares: [[0, one.before], [0, one.after], one.share],
        said: [was === now ? null : h("small", {}, was), h("b", {}, now)],
        label: words.bar(one.word, one.before, one.isCut ? null : one.after, one.share),
      });
      Object.assign(row.root.dataset, { cut: one.isCut, seen: one.isSeen, last: one.isLast });
    }
    return { root: row.root, set };
  }

  /** items: { id, word, before, after, share: of the draws or null, isCut, isSeen, isLast }; the last has no id. */
  function draw(items) {
    if (rows.length !== items.length) {
      rows = items.map(({ id }) => createRow(Boolean(onPress) && id !== null));
      fill(list, rows);
    }
    rows.forEach((row, at) => row.set(items[at]));
  }
  return { root, draw };
}
