// Where the ribbons of WhoWrites lie: as thick as what they stand for, those above 0 to one word, the others to the
// other. No DOM in here.

const LEAST = 0.7; // of a ribbon that is not nothing

export const sumOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0);

/** The rows of the writers: [top, height] of each, high enough for every setting; states: lists of what they write. */
export function rowsOf(states, { unit, least, gap }) {
  let y = 0;
  return states[0].map((_, i) => {
    const height = Math.max(least, ...states.map((writes) => Math.abs(writes[i]) * unit));
    const row = [y, height];
    y += height + gap;
    return row;
  });
}

/**
 * A ribbon for each writer: { from, to, size, isFor }, from and to being its upper edges on the left and on the right.
 * What is above 0 piles up from the top, what is below 0 from the bottom. piles: [top, height] of both.
 */
export function ribbonsOf(writes, rows, unit) {
  const sizes = writes.map((value) => (value === 0 ? 0 : Math.max(LEAST, Math.abs(value) * unit)));
  const [last, high] = rows.at(-1);
  const bottom = last + high;
  const against = sumOf(sizes.filter((_, i) => writes[i] < 0));
  const next = { true: 0, false: bottom - against };
  const ribbons = writes.map((value, i) => {
    const isFor = value >= 0;
    const [top, height] = rows[i];
    const to = next[String(isFor)];
    next[String(isFor)] += sizes[i];
    return { from: top + (height - sizes[i]) / 2, to, size: sizes[i], isFor };
  });
  return {
    ribbons,
    piles: [
      [0, next.true],
      [bottom - against, against],
    ],
    bottom,
  };
}

/** The outline of a ribbon from x1 to x2. */
export function pathOf({ from, to, size }, x1, x2) {
  const middle = (x1 + x2) / 2;
  const y = (value) => value.toFixed(1);
  const there = `M${x1} ${y(from)}C${middle} ${y(from)} ${middle} ${y(to)} ${x2} ${y(to)}`;
  return `${there}V${y(to + size)}C${middle} ${y(to + size)} ${middle} ${y(from + size)} ${x1} ${y(from + size)}Z`;
}
