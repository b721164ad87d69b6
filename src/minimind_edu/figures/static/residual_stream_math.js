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
 * Whose additions the stream consists of, at the start and after each sublayer: shares of [embedding, block 1, ...],
 * each the square of its size. Vectors of many channels are nearly at right angles, so that squares of sizes add up.
 */
export function streamShares(added, sizes, depth) {
  let shares = [1, ...new Array(depth).fill(0)];
  return sizes.map((size, at) => {
    if (at === 0) return shares;
    const [before, add] = [sizes[at - 1], added[at - 1]];
    const largest = Math.max(before, add); // squares of ratios cannot overflow
    shares = shares.map((share) => share * (before / largest) ** 2);
    shares[Math.ceil(at / 2)] += (add / largest) ** 2;
    const sum = shares.reduce((a, b) => a + b);
    return (shares = shares.map((share) => share / sum));
  });
}

/** RMS of what the next sublayer reads: behind a pre-norm nearly 1, else the stream as it is. */
export function sizeSeen(size, placement, eps = 1e-5) {
  return placement === "pre" ? size / Math.sqrt(size * size + eps) : size;
}

/** A round number for the end of an axis, at least `size`. */
export function roundAbove(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 1.5, 2, 3, 4, 6, 8, 10].find((digit) => digit * power >= size * (1 - 1e-9)) * power;
}
