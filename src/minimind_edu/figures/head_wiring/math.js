// Which key/value head each query head reads, the shapes on the way, and what they weigh. No DOM.

export const ITEM_SIZES = { float32: 4, bfloat16: 2, float16: 2 };

/** The numbers of key/value heads that divide the query heads, from 1 (MQA) to all of them (MHA). */
export function kvHeadStops(heads) {
  return Array.from({ length: heads }, (_, i) => i + 1).filter((kvHeads) => heads % kvHeads === 0);
}

/** The key/value head behind each query head: repeat_kv writes h1 h1 h2 h2, x.repeat ("tiled") h1 h2 h1 h2. */
export function sourceHeads(heads, kvHeads, order) {
  const group = heads / kvHeads;
  return Array.from({ length: heads }, (_, query) => (order === "tiled" ? query % kvHeads : Math.floor(query / group)));
}

/** Bytes of the keys and values of all layers. */
export function cacheBytes(batch, length, layers, kvHeads, headDim, itemSize) {
  return 2 * layers * batch * length * kvHeads * headDim * itemSize;
}

/**
 * Bytes that repeating writes anew in one layer, for keys and values. repeat_kv returns its input when every query has
 * a head of its own, and a view with stride 0 when all share one; x.repeat always copies.
 */
export function copiedBytes(batch, length, heads, kvHeads, headDim, itemSize, order) {
  const view = order === "repeat_kv" && (kvHeads === heads || kvHeads === 1);
  return view ? 0 : 2 * batch * length * heads * headDim * itemSize;
}

/** Weights of k_proj and v_proj in one layer. */
export function projectionWeights(hiddenSize, kvHeads, headDim) {
  return 2 * hiddenSize * kvHeads * headDim;
}

/** One decode step, line by line, for the keys of one layer: [step, shape, bytes of new memory]. */
export function stepShapes(batch, length, heads, kvHeads, headDim, itemSize, order) {
  const group = heads / kvHeads;
  const repeated = copiedBytes(batch, length, heads, kvHeads, headDim, itemSize, order) / 2;
  return [
    ["query", [batch, 1, heads, headDim], null],
    ["keys", [batch, length, kvHeads, headDim], null],
    ["[:, :, :, None]", [batch, length, kvHeads, 1, headDim], 0],
    ["expand", [batch, length, kvHeads, group, headDim], 0],
    ["reshape", [batch, length, heads, headDim], repeated],
    ["transpose", [batch, heads, length, headDim], 0],
    ["scores", [batch, heads, 1, length], batch * heads * length * itemSize],
  ];
}

/** 12,288 -> "12 KiB"; at most two decimals. */
export function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${Number(bytes.toFixed(2))} ${units[unit]}`;
}

/** The words that attention weights [T] read most, as [word, share]; equal words are counted together. */
export function mostRead(weights, tokens, count) {
  const shares = new Map();
  tokens.slice(0, weights.length).forEach((word, at) => shares.set(word, (shares.get(word) ?? 0) + weights[at]));
  return [...shares].sort(([, a], [, b]) => b - a).slice(0, count);
}
