// What a residual stream is made of, from the sizes of what was added to it. No DOM.

/**
 * The stream's RMS at the start and after each sublayer that it reached. total: RMS of stream plus addition, null
 * where it overflowed. A post-norm brings every sum back to 1.
 */
export function streamSizes(total, placement, embedding, depth) {
  const reached = total.slice(0, 2 * depth).findIndex((size) => size === null);
  const sums = total.slice(0, reached < 0 ? 2 * depth : reached);
  return [embedding, ...sums.map((size) => (placement === "post" ? 1 : size))];
}

/**
 * Whose additions the stream consists of, at the start and after each sublayer: shares of [embedding, attention 1,
 * feed-forward 1, attention 2, ...], each the square of its size. Vectors of many channels are nearly at right angles,
 * so that squares of sizes add up.
 */
export function streamShares(added, sizes, depth) {
  let shares = [1, ...new Array(2 * depth).fill(0)];
  return sizes.map((size, at) => {
    if (at === 0) return shares;
    const [before, add] = [sizes[at - 1], added[at - 1]];
    const largest = Math.max(before, add); // squares of ratios cannot overflow
    shares = shares.map((share) => share * (before / largest) ** 2);
    shares[at] += (add / largest) ** 2;
    const sum = shares.reduce((a, b) => a + b);
    return (shares = shares.map((share) => share / sum));
  });
}

/** Root mean square of a vector. */
export function rootMeanSquare(vector) {
  return Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0) / vector.length);
}

/** Cosine of the angle between two vectors. */
export function cosineOf(a, b) {
  const size = Math.hypot(...a) * Math.hypot(...b);
  return a.reduce((sum, x, i) => sum + x * b[i], 0) / size;
}

/** What parts have in the stream that is their sum: their projections on it, as shares that add up to 1. */
export function projectedShares(parts, stream) {
  const dot = (a) => a.reduce((sum, x, i) => sum + x * stream[i], 0);
  return parts.map((part) => dot(part) / dot(stream));
}

/**
 * The run of one word through a model, from the trace of live_model.js. At the embedding and after each sublayer: the
 * streams, their sizes, and the shares [embedding, attention 1, feed-forward 1, ...] of what was added so far.
 */
export function traceSizes({ embedding, blocks }) {
  const parts = [embedding, ...blocks.flatMap(({ attended, fed }) => [attended, fed])];
  const streams = [embedding, ...blocks.flatMap(({ middle, output }) => [middle, output])];
  const none = (count) => new Array(count).fill(0);
  return {
    streams,
    sizes: streams.map(rootMeanSquare),
    added: parts.slice(1).map(rootMeanSquare),
    shares: streams.map((stream, at) => [
      ...projectedShares(parts.slice(0, at + 1), stream),
      ...none(streams.length - 1 - at),
    ]),
  };
}

/** [embedding, all attention, all feed-forward] of such shares. */
export function sharesByKind([embedding, ...others]) {
  const sumOf = (kind) => others.filter((_, i) => i % 2 === kind).reduce((a, b) => a + b, 0);
  return [embedding, sumOf(0), sumOf(1)];
}

/** RMS of what the next sublayer reads: after a pre-norm nearly 1, else the stream as it is. */
export function sizeSeen(size, placement, eps = 1e-5) {
  return placement === "pre" ? size / Math.sqrt(size * size + eps) : size;
}

/** A smooth path through points from left to right that never overshoots them: monotone cubics (Fritsch, Carlson). */
export function smoothPath(points) {
  const slopes = points.slice(1).map(([x, y], i) => (y - points[i][1]) / (x - points[i][0]));
  const tangents = points.map((_, i) => {
    const [left, right] = [slopes[i - 1] ?? slopes[i], slopes[i] ?? slopes[i - 1]];
    return left * right <= 0 ? 0 : (2 * left * right) / (left + right); // the harmonic mean
  });
  const text = (...numbers) => numbers.map((number) => number.toFixed(1)).join(" ");
  const curves = points.slice(1).map(([x, y], i) => {
    const [x0, y0] = points[i];
    const third = (x - x0) / 3;
    return `C${text(x0 + third, y0 + third * tangents[i], x - third, y - third * tangents[i + 1], x, y)}`;
  });
  return text(...points[0]) + curves.join("");
}
