// What charts are drawn with: scales from numbers to pixels, lines through points, lines across and upright. No state.

import { svg, textAt } from "./kit.js";

// A straight scale from numbers to pixels; scale.invert leads back. The numbers may fall while the pixels rise.
export function linear([from, to], [start, end]) {
  const scale = (x) => start + ((x - from) / (to - from)) * (end - start);
  scale.invert = (pixel) => from + ((pixel - start) / (end - start)) * (to - from);
  return scale;
}

// The path of a line through points [x, y], to a tenth of a pixel.
/** @type {(points: number[][]) => string} */
export function lineThrough(points) {
  return points.length ? `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}` : "";
}

// A horizontal line at y, from x1 to x2.
/** @type {(y: number, x1: number, x2: number, cls: string) => any} */
export function across(y, x1, x2, cls) {
  return svg("line", { class: cls, x1, x2, y1: y, y2: y });
}

// A vertical line at x, from y1 to y2.
/** @type {(x: number, y1: number, y2: number, cls: string) => any} */
export function upright(x, y1, y2, cls) {
  return svg("line", { class: cls, x1: x, x2: x, y1, y2 });
}

// Horizontal lines from x1 to x2 at these numbers of a scale, each with its name on the left.
/**
 * @type {(numbers: number[], y: (number: number) => number, x1: number, x2: number,
 *   nameOf?: (number: number) => string | number) => any[]}
 */
export function levels(numbers, y, x1, x2, nameOf = String) {
  return numbers.map((number) => [
    across(y(number), x1, x2, "mm-level"),
    textAt(x1 - 6, y(number) + 4, nameOf(number), { anchor: "end" }),
  ]);
}

// The names of these numbers of a scale in a row, at y.
/** @type {(numbers: number[], x: (number: number) => number, y: number, nameOf?: (number: number) => any) => any[]} */
export function ticks(numbers, x, y, nameOf = String) {
  return numbers.map((number) => textAt(x(number), y, nameOf(number), { anchor: "middle" }));
}
