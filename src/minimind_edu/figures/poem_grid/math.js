// Where the characters of an octave lie, and the ways between them. No DOM in here.

export const COLUMNS = 12; // two lines of five, each with its mark
const HALF = COLUMNS / 2;
const ROUND = 5; // pixels, of a corner

/** Row and column of a place in the text: a couplet is a row. */
export const cellOf = (place) => [Math.floor(place / COLUMNS), place % COLUMNS];

/** Whether a mark says one tone: level or oblique. */
const isOne = (mark) => mark === "○" || mark === "●";

/** The place of the last character of a line, which is counted from 1. */
export const endOf = (line) => line * HALF - 2;

/** Whether places 2 and 4 of the lines of a couplet have opposite tones: a list of two, null where a tone is open. */
export function opposed(tones, row) {
  return [1, 3].map((place) => {
    const [above, below] = [0, HALF].map((start) => tones[row * COLUMNS + start + place]);
    return isOne(above) && isOne(below) ? above !== below : null;
  });
}

/** The middle of a cell, in pixels. */
export function middleOf(place, { unit, high, top }) {
  const [row, column] = cellOf(place);
  return [(column + 0.5) * unit, top + (row + 0.5) * high];
}

/**
 * The way from the place that reads to one that is read, as points, in the free lanes between rows and columns: up into
 * the lane over the row, along it to the lane at the column that is read, and up or down that one. shift: pixels to the
 * right of the middle, so that several ways do not cover each other.
 */
export function wayOf(from, to, size, shift = 0) {
  const [[x1, y1], [x2, y2]] = [middleOf(from, size), middleOf(to, size)];
  const { unit } = size;
  const [begin, lane] = [x1 + shift, y1 - unit / 2 - 1 + shift / 4]; // between the boxes of two rows
  const up = [
    [begin, y1 - 0.4 * unit],
    [begin, lane],
  ];
  if (y1 === y2) return [...up, [x2, lane], [x2, y2 - 0.12 * unit]]; // a mark lies low in its cell
  const side = x2 - unit / 2 + shift / 2;
  return [...up, [side, lane], [side, y2 + 0.12 * unit], [x2 - 0.38 * unit, y2 + 0.12 * unit]];
}

/** The path through points, its corners rounded. */
export function pathOf(points) {
  const say = (point) => point.map((value) => value.toFixed(1)).join(" ");
  const corners = points.slice(1, -1).map((corner, i) => {
    const towards = (other) => {
      const far = Math.hypot(other[0] - corner[0], other[1] - corner[1]);
      const part = far ? Math.min(ROUND, far / 2) / far : 0;
      return corner.map((value, axis) => value + part * (other[axis] - value));
    };
    return `L${say(towards(points[i]))}Q${say(corner)} ${say(towards(points[i + 2]))}`;
  });
  return `M${say(points[0])}${corners.join("")}L${say(points.at(-1))}`;
}
