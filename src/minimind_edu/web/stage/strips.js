// Numbers as rows of colored cells: the sign is the hue, the size the shade. Drawings, so that a still can hold them.

import { h, svg, fill, announcement, clamp, fmt } from "../kit/kit.js";

const LEVELS = 4; // shades of a cell
const FAINT = 0.06; // of the strongest: below it a cell is not drawn
const MOST_CELLS = 256; // of a strip: a phone shows no more

export const rootMeanSquare = (values) => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);

/** Cells of a table as few paths, a path for each shade: add(x, y, share of the strongest, class), then nodes(). */
export function createCells() {
  const paths = new Map();
  const add = (x, y, share, cls) => {
    if (share < FAINT) return;
    const key = `st-level-${Math.min(LEVELS, Math.ceil(share * LEVELS))} ${cls}`;
    paths.set(key, `${paths.get(key) ?? ""}M${x} ${y}h1v1h-1z`);
  };
  const nodes = () => [...paths].map(([name, d]) => svg("path", { class: name, d }));
  return { add, nodes };
}

/** As many numbers as there is room for: the largest of those that share a cell. */
export function fitting(values) {
  if (values.length <= MOST_CELLS) return values;
  const shown = new Float32Array(MOST_CELLS);
  values.forEach((x, i) => {
    const at = Math.floor((i * MOST_CELLS) / values.length);
    if (Math.abs(x) > Math.abs(shown[at])) shown[at] = x;
  });
  return shown;
}

/** A vector as a row of cells. shareOf(size): how dark a cell of this size is, from 0 to 1. */
export function createStrip(label) {
  const root = svg("svg", { class: "st-strip", preserveAspectRatio: "none", role: "img", "aria-label": label });
  const draw = (values, shareOf = sharesBy(2 * rootMeanSquare(values))) => {
    const shown = fitting(values);
    const cells = createCells();
    shown.forEach((x, i) => cells.add(i, 0, shareOf(Math.abs(x)), x > 0 ? "st-plus" : "st-minus"));
    root.setAttribute("viewBox", `0 0 ${shown.length} 1`);
    fill(root, cells.nodes());
  };
  return { root, draw };
}

/** Shares of a size. */
export const sharesBy = (size) => (x) => x / (size || 1);

/** Rows of [name, vector, what is said of it]; the number that is pointed at is told below them. */
export function stripRows(words, rows, shareOf) {
  const pointed = announcement("mm-note");
  const lines = rows.map(([name, values, meaning]) => {
    const strip = createStrip(name);
    strip.draw(values, shareOf);
    strip.root.addEventListener("pointermove", ({ clientX }) => {
      const { left, width } = strip.root.getBoundingClientRect();
      const at = clamp(Math.floor(((clientX - left) / width) * values.length), 0, values.length - 1);
      pointed.set(words.channel(at + 1, fmt(values[at])));
    });
    return h("li", {}, h("span", {}, name), strip, h("b", {}, meaning));
  });
  return [h("ol", { class: "st-list st-strips" }, lines), pointed];
}
