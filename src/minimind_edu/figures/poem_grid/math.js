// Where the characters of an octave lie, and the arcs over them. No DOM in here.

export const COLUMNS = 12; // two lines of five, each with its mark
const HALF = COLUMNS / 2;

/** Row and column of a place in the text: a couplet is a row. */
export const cellOf = (place) => [Math.floor(place / COLUMNS), place % COLUMNS];

/** The place of the last character of a line, which is counted from 1. */
export const endOf = (line) => line * HALF - 2;

/** Whether places 2 and 4 of the lines of a couplet have opposite tones: a list of two, null where a tone is open. */
export function opposed(tones, row) {
  return [1, 3].map((place) => {
    const [above, below] = [0, HALF].map((start) => tones[row * COLUMNS + start + place]);
    return above === " " || below === " " ? null : above !== below;
  });
}

/** The middle of a cell, in pixels. */
export function middleOf(place, { unit, high, top }) {
  const [row, column] = cellOf(place);
  return [(column + 0.5) * unit, top + (row + 0.5) * high];
}

/** The path of an arc from the place that reads to one that is read: over the cells between, to the right of them. */
export function arcOf(from, to, size) {
  const [[x1, y1], [x2, y2]] = [middleOf(from, size), middleOf(to, size)];
  const y = (value) => value.toFixed(1);
  const half = size.unit * 0.42;
  if (y1 === y2) return `M${x1} ${y(y1 - half)}Q${(x1 + x2) / 2} ${y(y1 - 1.3 * size.unit)} ${x2} ${y(y2 - half)}`;
  const side = x2 < x1 ? -0.6 : 1.1; // commas from the left, words and stops from the right
  return `M${x1} ${y(y1 - half)}Q${x1 + side * size.unit} ${y((y1 + y2) / 2)} ${x2} ${y(y2 + half)}`;
}
