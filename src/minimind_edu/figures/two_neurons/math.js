// The next word with two neurons of the last block held at other activations: their columns are added to the rest of
// the stream, then come the last norm and the softmax.

export const ACTIVE = [-160, 20]; // the ends of activations
export const GATE = [-4, 17];
export const UP = [-12, 6];

export function silu(z) {
  return z / (1 + Math.exp(-z));
}

/** The logits of all words, with the two neurons at these activations. telling: a story of the state. */
export function logitsAt(stored, telling, [first, second]) {
  const [[ones, twos], [restSquare, restFirst, restSecond], [a, b, c]] = [
    stored.columns,
    telling.products,
    stored.products,
  ];
  const square =
    restSquare +
    2 * (first * restFirst + second * restSecond) +
    first * first * a +
    2 * first * second * b +
    second * second * c;
  const size = Math.sqrt(square / stored.size + stored.eps);
  return telling.rest.map((rest, i) => (rest + first * ones[i] + second * twos[i]) / size);
}

/** The probabilities of all words. */
export function chancesOf(logits) {
  const most = Math.max(...logits);
  const parts = logits.map((logit) => Math.exp(logit - most));
  const all = parts.reduce((sum, part) => sum + part, 0);
  return parts.map((part) => part / all);
}

/** The indices of the largest of these numbers, the largest first. */
export function largest(numbers, count) {
  const order = numbers.map((_, i) => i).sort((i, j) => numbers[j] - numbers[i]);
  return order.slice(0, count);
}

/** In how many of these places the first neuron, at this activation, makes its word the next one. */
export function countThen(places, active) {
  return places.filter(([, , , , end]) => active <= end).length;
}

/**
 * Where a word follows in a plane: [from, to] in pixels, a list for each row of `step` pixels. activeAt(x, y): the
 * activations of both neurons at a pixel.
 */
export function regionOf(stored, telling, word, { width, height, step, activeAt }) {
  const [columns, rows] = [width, height].map((pixels) => Math.ceil(pixels / step));
  const follows = (column, row) => {
    const logits = logitsAt(stored, telling, activeAt((column + 0.5) * step, (row + 0.5) * step));
    return logits[word] === Math.max(...logits);
  };
  return Array.from({ length: rows }, (_, row) => {
    const runs = [];
    for (let column = 0, before = false; column < columns; column++) {
      const now = follows(column, row);
      if (now && !before) runs.push([column * step, width]);
      if (!now && before) runs[runs.length - 1][1] = column * step;
      before = now;
    }
    return runs;
  });
}
