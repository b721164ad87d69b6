// How far two models are apart. No DOM. tests/inside/test_inside_beside.py compares it with torch.
//
//   moved   the share of a distribution that lies elsewhere in the other's: half the sum of what they differ by
//   apart   how long the difference of two streams is, as a part of the first's length

/**
 * @typedef {ArrayLike<number>} Numbers
 * @typedef {{ at: number, moved: number, tops: [number, number][][], apart: number[], heads: number[] }} Told
 *   tops: of both the likeliest [id, probability]; apart: of the embedding and after each block; heads: what moved of
 *   each head's attention, block by block
 */

/** @type {(a: Numbers, b: Numbers) => number} */
export function movedBetween(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += Math.abs(a[i] - b[i]);
  return sum / 2;
}

/** @type {(a: Numbers, b: Numbers) => number} */
export function apartBy(a, b) {
  let [difference, size] = [0, 0];
  for (let i = 0; i < a.length; i++) {
    difference += (a[i] - b[i]) ** 2;
    size += a[i] ** 2;
  }
  return Math.sqrt(difference / Math.max(size, 1e-60));
}

/**
 * What of two models can be compared: blocks, from the first on, whose streams are equally wide, null: none, not even
 * the embedding; and of how many blocks the heads, 0 where one has more of them in a block.
 * @type {(configs: any[]) => { blocks: number | null, heads: number }}
 */
export function comparable([a, b]) {
  const common = Math.min(a.num_hidden_layers, b.num_hidden_layers);
  return {
    blocks: a.hidden_size === b.hidden_size ? common : null,
    heads: a.num_attention_heads === b.num_attention_heads ? common : 0,
  };
}

/** Where two lists of ids part: the first place where one has another id, or none; null if they are the same. */
/** @type {(a: number[], b: number[]) => number | null} */
export function partingOf(a, b) {
  const length = Math.max(a.length, b.length);
  for (let at = 0; at < length; at++) if (a[at] !== b[at]) return at;
  return null;
}

/** The first place of apart that is above a bound: 0 the embedding, 1 the first block; null: none. */
/** @type {(apart: number[], beyond: number) => number | null} */
export function partedAt(apart, beyond) {
  const at = apart.findIndex((far) => !(far <= beyond));
  return at < 0 ? null : at;
}

/**
 * How much of each head's attention has moved, the mean over the tokens up to a position; the first token, which has
 * only itself to read, does not count.
 * @type {(positions: Told[], at: number) => number[]}
 */
export function movedHeads(positions, at) {
  const sums = new Array(positions[at].heads.length).fill(0);
  for (let q = 1; q <= at; q++) positions[q].heads.forEach((moved, head) => (sums[head] += moved));
  return sums.map((sum) => sum / Math.max(1, at));
}
