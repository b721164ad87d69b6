// A text as the model has read it. Of each token are kept: the stream at both ends of each block and in its middle, and
// a byte for each weight of attention; the cache keeps keys and values. All else is computed again for the position
// that somebody opens: 500 tokens of a model of 26 million weights take 40 MB, where their traces would take 200. No
// DOM. tests/inside/test_inside_reading.py compares it with the model and with torch.

import { softmax } from "../web/live/sampling.js";
import { largest } from "./largest.js";
import { PASSING } from "./step.js";

/**
 * @typedef {import("../web/live/model.js").LiveModel} LiveModel
 * @typedef {import("../web/live/model.js").Trace} Trace
 * @typedef {Float32Array} Vector
 * @typedef {{ token: number, streams: Vector[], middles: Vector[], weights: Uint8Array[], routes: object[] }} Kept
 * @typedef {{ id: number, probability: number, rank: number }} Next
 * @typedef {{ at: number, top: [number, number][], entropy: number, next: Next | null, weights: Uint8Array[],
 *   routes: object[] }} Told
 */

export const TOLD = 24; // tokens that are told of a position

/** Weights from 0 to 1 [T] of each head as bytes [H, T]: of their roots, since 1/500 of the whole would be nothing. */
/** @type {(heads: Vector[], length: number) => Uint8Array} */
export function bytesOfHeads(heads, length) {
  const bytes = new Uint8Array(heads.length * length);
  for (let head = 0, at = 0; head < heads.length; head++) {
    for (let t = 0; t < length; t++) bytes[at++] = 255 * Math.sqrt(heads[head][t]) + 0.5;
  }
  return bytes;
}

/**
 * Of logits [V]: by how much each is above ln p, and the entropy of all p, in nats.
 * @type {(logits: Vector) => { above: number, entropy: number }}
 */
function spreadOf(logits) {
  let [most, sum, mean] = [-Infinity, 0, 0];
  for (let i = 0; i < logits.length; i++) most = Math.max(most, logits[i]);
  for (let i = 0; i < logits.length; i++) {
    const power = Math.exp(logits[i] - most);
    sum += power;
    mean += power * logits[i];
  }
  const above = most + Math.log(sum);
  return { above, entropy: Math.max(0, above - mean / sum) };
}

/** The reading of a model, empty at first. */
/** @type {(model: LiveModel) => any} */
export function createReading(model) {
  const { num_hidden_layers: L, num_attention_heads: H } = model.config;
  const cache = model.newCache();
  const spares = {}; // caches of what is read beside the text, by what it is read for
  const emptied = (name) => Object.assign((spares[name] ??= model.newCache()), { length: 0 });
  const atOnce = model.atOnce ?? 1; // tokens between which nobody else is heard
  /** @type {Kept[]} */
  const kept = [];
  let silenced = new Set();
  let valid = 0; // positions that are read: fewer than are kept where a reading was ended
  let opened = null; // { at, trace }: the position that was asked about last
  let last = null; // what follows the stream that was asked about last: see outlook

  /** Keep what a trace says of the blocks from `first` on. */
  function keep(at, { token, embedding, blocks }, first) {
    const entry = (kept[at] ??= { token, streams: [embedding], middles: [], weights: [], routes: [] });
    for (let l = first; l < L; l++) {
      entry.streams[l + 1] = blocks[l].output;
      entry.middles[l] = blocks[l].middle;
      entry.routes[l] = blocks[l].route ?? null;
      entry.weights[l] = bytesOfHeads(blocks[l].weights, at + 1);
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
      const { traces } = model.run(some, { cache, silenced, from, logits: false, trace: PASSING });
      traces.forEach((trace, i) => keep(start + i, trace, first));
      for (const i of some.keys()) {
        valid = start + i + 1;
        yield start + i;
      }
    }
  }

  /** The logits [V] after a position, or what they would be after a block of it. */
  const logitsAt = (at, block = L) => model.read(kept[at].streams[block]);

  /** What comes after a position, kept until another is asked about: logits [V], and what spreadOf says of them. */
  function outlook(at) {
    const stream = kept[at].streams[L];
    if (last?.stream === stream) return last;
    const logits = logitsAt(at);
    return (last = { stream, logits, ...spreadOf(logits) });
  }

  /** How much the token that follows a position was expected there; null where none does. @returns {Next | null} */
  function following(at, next) {
    if (next === undefined) return null;
    const { logits, above } = outlook(at);
    let rank = 1;
    for (let i = 0; i < logits.length; i++) if (logits[i] > logits[next]) rank++;
    return { id: next, probability: Math.exp(logits[next] - above), rank };
  }

  /** What is told of a position at once. next: the token that follows there, if one does. @returns {Told} */
  function tell(at, next) {
    const { logits, above, entropy } = outlook(at);
    const top = largest(logits, TOLD).map(([id, logit]) => [id, Math.exp(logit - above)]);
    const { weights, routes } = kept[at];
    return { at, top, entropy, next: following(at, next), weights, routes };
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
   * Returns ln p of a token after a position without a head: from its block on the text is read again, for what is
   * before a head stays as it is. Yields after every few tokens, so that somebody else may be heard.
   */
  function* without(at, token, layer, head) {
    const silent = new Set([...silenced, `${layer}.${head}`]);
    const options = { cache: emptied("without"), silenced: silent, logits: false, trace: false };
    let final = null;
    for (let start = 0; start <= at; start += atOnce) {
      const some = kept.slice(start, Math.min(start + atOnce, at + 1));
      const from = { layer, streams: some.map((entry) => entry.streams[layer]) };
      const { traces } = model.run(
        some.map((entry) => entry.token),
        { ...options, from },
      );
      final = traces.at(-1).final;
      yield;
    }
    const logits = model.read(final);
    return logits[token] - spreadOf(logits).above;
  }

  /** The logits after other ids, read beside the text. */
  function beside(ids, silent = new Set()) {
    const { traces } = model.run(ids, { cache: emptied("beside"), silenced: silent, logits: false, trace: false });
    return model.read(traces.at(-1).final);
  }

  /** What each block kept of a position. */
  const keptAt = (at) => kept[at];
  const size = () => valid;
  return { become, tell, following, traceAt, keptAt, logitsAt, lens, without, beside, size };
}
