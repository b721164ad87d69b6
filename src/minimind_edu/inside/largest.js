// The largest of many numbers, and how far logits are from those that torch found. No DOM.

/** The k largest as [index, value], the largest first: one pass, where sorting all takes the time of many. */
/** @type {(values: ArrayLike<number>, k: number) => [number, number][]} */
export function largest(values, k) {
  /** @type {[number, number][]} */
  const best = [];
  let least = -Infinity; // that a value must be above, to be among them
  for (let i = 0; i < values.length; i++) {
    if (values[i] <= least) continue;
    const at = best.findIndex(([, value]) => value < values[i]);
    best.splice(at < 0 ? best.length : at, 0, [i, values[i]]);
    if (best.length > k) best.pop();
    if (best.length === k) least = best[k - 1][1];
  }
  return best;
}

/**
 * The likeliest token by logits [V], and by how much the worst of some tokens is off. top: [id, logit] by torch.
 * @type {(logits: ArrayLike<number>, top: [number, number][]) => { first: number, far: number }}
 */
export function farFrom(logits, top) {
  return { first: largest(logits, 1)[0][0], far: Math.max(...top.map(([id, logit]) => Math.abs(logits[id] - logit))) };
}
