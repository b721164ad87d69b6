// The bars of the sampler: what the model says of a word, what the knobs make of it, and its share of the draws.

import { h, fill, setAttributes } from "../kit/kit.js";

const INVISIBLE = 0.0005; // probability whose outline would be nothing but its border

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
    const word = h("span", { class: "mm-clipped sp-word" });
    const [before, after, drawn] = ["before", "after", "drawn"].map((name) => h("i", { class: `mm-${name}` }));
    const [was, now] = [h("small", {}), h("b", {})];
    const parts = [
      word,
      h("span", { class: "mm-track sp-track" }, before, after, drawn),
      h("span", { class: "sp-number" }, was, now),
    ];
    const listeners = isButton ? { type: "button", onClick: () => onPress(id) } : { role: "img" };
    const row = h(isButton ? "button" : "div", { class: "sp-row", ...listeners }, parts);

    function set(one) {
      id = one.id;
      word.textContent = one.word;
      before.hidden = one.before < INVISIBLE;
      before.style.width = `${(100 * one.before).toFixed(3)}%`;
      after.style.width = `${(100 * one.after).toFixed(3)}%`;
      drawn.hidden = one.share === null;
      drawn.style.left = `${(100 * (one.share ?? 0)).toFixed(2)}%`;
      const [first, second] = [words.percent(one.before), one.isCut ? words.cut : words.percent(one.after)];
      was.textContent = first === second ? "" : first;
      now.textContent = second;
      Object.assign(row.dataset, { cut: one.isCut, seen: one.isSeen, last: one.isLast });
      setAttributes(row, { "aria-label": words.bar(one.word, one.before, one.isCut ? null : one.after, one.share) });
    }
    return { root: row, set };
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
