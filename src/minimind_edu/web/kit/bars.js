// Rows of bars, as of probabilities: a word, a track with marks on it, and what is said of it at the end.

import { h, fill, setAttributes } from "./kit.js";

const INVISIBLE = 0.0005; // of the track: an outline of this length would be nothing but its border

const lengthAt = (share) => `${(100 * share).toFixed(3)}%`;

/**
 * A row of a class of its own. marks: the classes of what is drawn on the track, in their order; onPress: what a press
 * does, which makes it a button. set({ word, shares, value, label }): the content of its two ends, the sentence for
 * whoever does not see it, and for each mark where it is, or [from, to], as shares of the track; null: nowhere.
 */
/**
 * @type {(cls: string, marks: string[], onPress?: (() => void) | null) => { root: any,
 *   set: (row: { word: any, shares: (number | number[] | null)[], value: any, label?: string }) => void }}
 */
export function createBar(cls, marks, onPress = null) {
  const drawn = marks.map((name) => h("i", { class: name }));
  const [first, last] = [h("span", { class: "mm-clipped mm-bar-word" }), h("span", { class: "mm-bar-number" })];
  const attrs = { class: `mm-bar ${cls}`, type: onPress && "button", onClick: onPress };
  const root = h(onPress ? "button" : "div", attrs, first, h("span", { class: "mm-track" }, drawn), last);

  function set({ word, shares, value, label }) {
    fill(first, word);
    fill(last, value);
    if (label) setAttributes(root, { role: onPress ? "button" : "img", "aria-label": label });
    drawn.forEach((mark, i) => {
      const share = shares[i];
      const [from, to] = [share ?? [0, 0]].flat();
      mark.hidden = to - from < INVISIBLE;
      Object.assign(mark.style, { left: lengthAt(from), width: to === undefined ? "" : lengthAt(to - from) });
    });
  }
  return { root, set };
}
