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

    function set(item) {
      id = item.id;
      const [was, now] = [words.percent(item.before), item.isCut ? words.cut : words.percent(item.after)];
      row.set({
        word: item.word,
        shares: [[0, item.before], [0, item.after], item.share],
        value: [was === now ? null : h("small", {}, was), h("b", {}, now)],
        label: words.bar(item.word, item.before, item.isCut ? null : item.after, item.share),
      });
      Object.assign(row.root.dataset, { cut: item.isCut, seen: item.isSeen, last: item.isLast });
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
