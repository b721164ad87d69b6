// A text as the model has read it. Of each token are kept: the stream at both ends of each block and in its middle, and
// a byte for each weight of attention; the cache keeps keys and values. All else is computed again for the position
// that somebody opens: 500 tokens of a model of 26 million weights take 40 MB, where their traces would take 200. No
// DOM. tests/test_inside_reading.py compares it with the model and with torch.

import { softmax } from "../live/sampling.js";

/**
 * @typedef {import("../live/model.js").LiveModel} LiveModel
 * @typedef {import("../live/model.js").Trace} Trace
 * @typedef {Float32Array} Vector
 * @typedef {{ token: number, streams: Vector[], middles: Vector[], weights: Uint8Array[], routes: object[] }} Kept
 * @typedef {{ id: number, probability: number, rank: number }} Next
 * @typedef {{ at: number, top: [number, number][], entropy: number, next: Next | null, weights: Uint8Array[],
 *   routes: object[] }} Told
 */

export const TOLD = 24; // tokens that are told of a position

/** A weight from 0 to 1 as a byte: of its root, since 1/500 of the whole would round to nothing. */
const byteOf = (weight) => Math.round(255 * Math.sqrt(weight));

/** The k largest as [index, value], the largest first: one pass, where sorting all takes the time of many. */
/** @type {(values: ArrayLike<number>, k: number) => [number, number][]} */
export function largest(values, k) {
  /** @type {[number, number][]} */
  const best = [];
  for (let i = 0; i < values.length; i++) {
    if (best.length === k && values[i] <= best[k - 1][1]) continue;
    const at = best.findIndex(([, value]) => value < values[i]);
    best.splice(at < 0 ? best.length : at, 0, [i, values[i]]);
    if (best.length > k) best.pop();
  }
  return best;
}

/** The reading of a model, empty at first. */
/** @type {(model: LiveModel) => any} */
export function createReading(model) {
  const { num_hidden_layers: L, num_attention_heads: H } = model.config;
  const cache = model.newCache();
  let spare = null; // a cache of what is read beside the text
  const emptied = () => Object.assign((spare ??= model.newCache()), { length: 0 });
  const atOnce = model.atOnce ?? 1; // tokens between which nobody else is heard
  /** @type {Kept[]} */
  const kept = [];
  let silenced = new Set();
  let valid = 0; // positions that are read: fewer than are kept where a reading was ended
  let opened = null; // { at, trace }: the position that was asked about last

  /** Keep what a trace says of the blocks from `first` on. */
  function keep(at, { token, embedding, blocks }, first) {
    const one = (kept[at] ??= { token, streams: [embedding], middles: [], weights: [], routes: [] });
    for (let l = first; l < L; l++) {
      one.streams[l + 1] = blocks[l].output;
      one.middles[l] = blocks[l].middle;
      one.routes[l] = blocks[l].route ?? null;
      const length = at + 1;
      const bytes = (one.weights[l] = new Uint8Array(H * length)); // [H, T]
      blocks[l].weights.forEach((weights, head) => weights.forEach((w, t) => (bytes[head * length + t] = byteOf(w))));
    }
  }

  /**
   * Read these ids with these heads silent, and no more than that takes: what begins the text as before is kept, and
   * a head that falls silent changes its own block and those after it. Yields each position that was read anew.
   */
  function* become(ids, wanted) {
    opened = null;
    const differs = ids.findIndex((id, at) => id !== kept[at]?.token);
    const same = Math.min(valid, differs < 0 ? ids.length : differs);
    const changed = [...new Set([...silenced, ...wanted])].filter((key) => silenced.has(key) !== wanted.has(key));
    const first = Math.min(L, ...changed.map((key) => Number(key.split(".")[0]))); // the first block that differs
    silenced = new Set(wanted);
    kept.length = same;
    cache.length = valid = first === L ? same : 0;
    if (first < L) yield* readOn(ids, same, first);
    yield* readOn(ids, ids.length, 0);
  }

  /** Read from where the cache ends to a position, those that are kept from their block `first` on. */
  function* readOn(ids, to, first) {
    while (cache.length < to) {
      const start = cache.length;
      const some = ids.slice(start, Math.min(to, start + atOnce));
      const from = first ? { layer: first, streams: some.map((_, i) => kept[start + i].streams[first]) } : undefined;
      const { traces } = model.run(some, { cache, silenced, from, logits: false });
      traces.forEach((trace, i) => keep(start + i, trace, first));
      for (const i of some.keys()) {
        valid = start + i + 1;
        yield start + i;
      }
    }
  }

  /** The logits [V] after a position, or what they would be after a block of it. */
  const logitsAt = (at, block = L) => model.read(kept[at].streams[block]);

  /** What is told of a position at once. next: the token that follows there, if one does. @returns {Told} */
  function tell(at, next) {
    const probabilities = softmax(logitsAt(at));
    const entropy = probabilities.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
    const p = probabilities[next];
    const rank = 1 + probabilities.reduce((count, other) => count + Number(other > p), 0);
    const { weights, routes } = kept[at];
    const following = next === undefined ? null : { id: next, probability: p, rank };
    return { at, top: largest(probabilities, TOLD), entropy, next: following, weights, routes };
  }

  /** All that happens at a position: it is read once more, after what the cache holds of those before it. */
  function traceAt(at) {
    if (opened?.at === at) return opened.trace;
    const { length } = cache;
    cache.length = at; // what is written there is what was there
    const trace = model.step(kept[at].token, cache, { silenced, logits: false });
    cache.length = length;
    opened = { at, trace };
    return trace;
  }

  /** What each block would say after a position: the k likeliest [id, probability] of each. */
  const lens = (at, k) => Array.from({ length: L }, (_, l) => largest(softmax(logitsAt(at, l + 1)), k));

  /**
   * ln p of a token after a position, without each head in turn: yields { layer, head, without }, from the last block
   * to the first, since what is before a head stays as it is.
   */
  function* trial(at, token) {
    for (let layer = L - 1; layer >= 0; layer--) {
      for (let head = 0; head < H; head++) {
        const key = `${layer}.${head}`;
        if (silenced.has(key)) continue;
        const before = kept.slice(0, at + 1);
        const from = { layer, streams: before.map((one) => one.streams[layer]) };
        const options = { cache: emptied(), from, silenced: new Set([...silenced, key]), logits: false, trace: false };
        const { traces } = model.run(
          before.map((one) => one.token),
          options,
        );
        yield { layer, head, without: Math.log(softmax(model.read(traces.at(-1).final))[token]) };
      }
    }
  }

  /** The logits after other ids, read beside the text. */
  function beside(ids, silent = new Set()) {
    const { traces } = model.run(ids, { cache: emptied(), silenced: silent, logits: false, trace: false });
    return model.read(traces.at(-1).final);
  }

  /** What each block kept of a position. */
  const keptAt = (at) => kept[at];
  const size = () => valid;
  return { become, tell, traceAt, keptAt, logitsAt, lens, trial, beside, size };
}
