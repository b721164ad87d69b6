// A whole MiniMind in plain JavaScript: a token goes in, the logits of the next one come out, with a KV cache and a
// trace of everything on the way. No DOM, no network. tests/web/test_live_model.py compares each number with torch's.
//
// E hidden_size, L layers, H query heads, K key/value heads, D head_dim, I intermediate_size, V words, T positions that
// were read, this one included. A vector is a Float32Array, heads joined: q [H*D] holds head 0, head 1, and so on. A
// matrix holds floats, or int8 rows with a scale for each, or pairs of int4 with a scale for some neighbors in a row.

import { softmax } from "./sampling.js";

/**
 * @typedef {{ vocab_size: number, hidden_size: number, num_hidden_layers: number, num_attention_heads: number,
 *   num_key_value_heads: number, head_dim: number, rope_theta: number, rms_norm_eps: number,
 *   max_position_embeddings: number, use_moe?: boolean, num_experts?: number, num_experts_per_tok?: number,
 *   num_shared_experts?: number, norm_topk_prob?: boolean, norm_placement?: string, rope_scaling?: object }} Config
 * @typedef {Float32Array} Vector
 * @typedef {{ shape: number[], data: Vector | Int8Array | Uint8Array, scale?: Vector }} Matrix
 * @typedef {Record<string, Matrix>} Tensors
 * @typedef {{ keys: Vector[], values: Vector[] }} LayerCache
 * @typedef {{ length: number, layers: LayerCache[] }} Cache
 * @typedef {{ silenced?: Set<string>, lens?: boolean, from?: { layer: number, stream: Vector },
 *   logits?: boolean }} Options
 * @typedef {{ silenced?: Set<string>, lens?: boolean, from?: { layer: number, streams: Vector[] }, logits?: boolean,
 *   cache?: Cache }} RunOptions
 *
 * @typedef {{ gate: Matrix, up: Matrix, down: Matrix }} Network
 * @typedef {{ router: Matrix, experts: Network[], shared: Network[] }} Mixture
 * @typedef {{ q: Matrix, k: Matrix, v: Matrix, o: Matrix, network?: Network, mixture?: Mixture, gain: Vector,
 *   gain2: Vector, qGain?: Vector, kGain?: Vector }} Layer
 * @typedef {{ embedding: Matrix, layers: Layer[], finalGain: Vector, head: Matrix }} Weights
 * @typedef {{ frequencies: ArrayLike<number>, factor: number }} Rope
 * @typedef {Weights & { config: Config, rope: Rope }} Model
 *
 * @typedef {{ qRaw: Vector, kRaw: Vector, q: Vector, k: Vector, v: Vector, weights: Vector[], heads: Vector[],
 *   attended: Vector }} AttentionTrace
 * @typedef {{ gate: Vector, up: Vector, hidden: Vector, fed: Vector }} NetworkTrace
 * @typedef {{ probabilities: Vector, chosen: number[], weights: number[] }} Route
 * @typedef {Partial<NetworkTrace> & { fed: Vector, route?: Route, experts?: NetworkTrace[] }} FeedForwardTrace
 * @typedef {AttentionTrace & FeedForwardTrace & { input: Vector, normed: Vector, middle: Vector, normed2: Vector,
 *   output: Vector, lens?: Vector }} BlockTrace
 * @typedef {{ token: number, position: number, embedding: Vector, blocks: BlockTrace[], final: Vector,
 *   logits?: Vector }} Trace
 * @typedef {{ config: Config, newCache: () => Cache, read: (stream: Vector) => Vector,
 *   step: (token: number, cache: Cache, options?: Options) => Trace,
 *   run: (ids: Iterable<number>, options?: RunOptions) => { cache: Cache, traces: Trace[] } }} LiveModel
 */

// The weights

/** The bytes of a base64 text. @type {(base64: string) => Uint8Array} */
export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/**
 * What a .safetensors file of minimind_edu holds: { config, tensors: { name: { shape, data } } }. Int8 rows, and the
 * int4 of a page, become floats, or stay as they are, with their scales, in a quarter of the memory or less.
 */
/** @type {(bytes: Uint8Array, keepsRows?: boolean) => { config: Config, tensors: Tensors }} */
export function unpackWeights(bytes, keepsRows = false) {
  const start = 8 + Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  // a slice of its own, for a typed array must begin at a multiple of its items' size
  const bufferOf = ({ data_offsets: [from, to] }) => bytes.slice(start + from, start + to).buffer;
  /** @type {Tensors} */
  const tensors = {};
  for (const [name, entry] of Object.entries(entries)) {
    if (name.endsWith(".scale")) continue; // of the matrix with the name before it
    if (entry.dtype === "I8" || entry.dtype === "U8") {
      const [rows, stored] = entry.shape;
      const isPacked = entry.dtype === "U8";
      const data = isPacked ? new Uint8Array(bufferOf(entry)) : new Int8Array(bufferOf(entry));
      const scale = new Float32Array(bufferOf(entries[`${name}.scale`]));
      const matrix = { shape: [rows, isPacked ? 2 * stored : stored], data, scale };
      tensors[name] = keepsRows ? matrix : restored(matrix);
    } else if (entry.dtype === "F32") tensors[name] = { shape: entry.shape, data: new Float32Array(bufferOf(entry)) };
    else throw new Error(`${name} holds ${entry.dtype}, but only F32, I8 and U8 are understood`);
  }
  return { config: JSON.parse(metadata.config), tensors };
}

/** Whether two weights of a matrix share a byte: + 8, the one of the even column in its lower half. */
/** @type {(matrix: Matrix) => boolean} */
export const isPacked = ({ data }) => data instanceof Uint8Array;

/** The floats of a matrix of whole numbers, each times its scale. @type {(matrix: Matrix) => Matrix} */
export function restored({ shape, data, scale }) {
  const all = new Float32Array(shape[0] * shape[1]);
  const sharing = all.length / scale.length;
  const valueAt = isPacked({ shape, data }) ? (i) => ((data[i >> 1] >> (4 * (i & 1))) & 15) - 8 : (i) => data[i];
  for (let i = 0; i < all.length; i++) all[i] = valueAt(i) * scale[Math.floor(i / sharing)];
  return { shape, data: all };
}

// The model

/**
 * The model of what unpackWeights gave: { config, newCache(), step(token, cache, options), read(stream), run(ids,
 * options) }. A cache is written from its length on, so less of it is kept when its length is made less. Options:
 * silenced, a Set of "layer.head" and "layer.feed", from 0, that add nothing; lens: whether each block also says what
 * the model would answer there; from: { layer, stream }, where the reading begins if the blocks before it have read
 * this token already, whose traces are then missing; logits: false leaves them out. run() reads on in a cache, if it
 * is given one, and its `from` has the streams of all.
 *
 * rope: { frequencies [D/2], factor of the tables }, as the package computes them; needed where RoPE is scaled.
 */
/** @type {(unpacked: { config: Config, tensors: Tensors, rope?: Rope }) => LiveModel} */
export function createLiveModel({ config, tensors, rope }) {
  const model = { config, ...namedWeights(config, tensors), rope: ropeOf(config, rope) };
  const newCache = () => ({ length: 0, layers: model.layers.map(() => ({ keys: [], values: [] })) });
  const step = (token, cache, options = {}) => readToken(model, token, cache, options);
  /** @type {LiveModel["run"]} */
  const run = (ids, { cache = newCache(), from, ...options } = {}) => {
    const fromOf = (i) => from && { layer: from.layer, stream: from.streams[i] };
    return { cache, traces: Array.from(ids, (token, i) => step(token, cache, { ...options, from: fromOf(i) })) };
  };
  return { config, newCache, step, read: (stream) => logitsOf(model, stream), run };
}

/** The weights by their parts: matrices as { shape, data }, gains of norms as vectors. */
/** @type {(config: Config, tensors: Tensors) => Weights} */
export function namedWeights({ num_hidden_layers: L, use_moe: isMixture, ...config }, tensors) {
  const embedding = tensors["model.embed_tokens.weight"]; // [V, E]
  const vector = (name) => /** @type {Vector | undefined} */ (tensors[name]?.data);
  const layers = Array.from({ length: L }, (_, l) => {
    const part = (name) => tensors[`model.layers.${l}.${name}.weight`];
    const gain = (name) => vector(`model.layers.${l}.${name}.weight`);
    const network = (name) => ({
      gate: part(`${name}.gate_proj`), // [F, E]
      up: part(`${name}.up_proj`), // [F, E]
      down: part(`${name}.down_proj`), // [E, F]
    });
    const networks = (name, count) => Array.from({ length: count }, (_, i) => network(`mlp.${name}.${i}`));
    const mixture = () => ({
      router: part("mlp.gate"), // [N, E]
      experts: networks("experts", config.num_experts),
      shared: networks("shared_experts", config.num_shared_experts),
    });
    return {
      gain: gain("input_layernorm"), // [E]
      q: part("self_attn.q_proj"), // [H*D, E]
      k: part("self_attn.k_proj"), // [K*D, E]
      v: part("self_attn.v_proj"), // [K*D, E]
      qGain: gain("self_attn.q_norm"), // [D], with QK-norm
      kGain: gain("self_attn.k_norm"),
      o: part("self_attn.o_proj"), // [E, H*D]
      gain2: gain("post_attention_layernorm"), // [E]
      ...(isMixture ? { mixture: mixture() } : { network: network("mlp") }),
    };
  });
  // a tied model has one matrix for both ends
  return {
    embedding,
    layers,
    finalGain: vector("model.norm.weight"),
    head: tensors["lm_head.weight"] ?? embedding,
  };
}

/** What rotates in this model, or an error about what nobody can read. @type {(config: Config, rope?: Rope) => Rope} */
export function ropeOf(config, rope) {
  if (config.norm_placement === "post") throw new Error("only models with the norms before each part run here");
  if (config.rope_scaling && !rope) throw new Error("RoPE is scaled in this model, but its frequencies were not given");
  return rope ?? plainRope(config);
}

/** Radians per position of each pair of channels, [D/2], and tables as they are. @type {(config: Config) => Rope} */
function plainRope({ head_dim: D, rope_theta: theta }) {
  return { frequencies: Float32Array.from({ length: D / 2 }, (_, i) => theta ** ((-2 * i) / D)), factor: 1 };
}

/** @type {(config: Config, token: number, position: number, most?: number) => void} */
export function checkToken(
  { vocab_size: V, max_position_embeddings },
  token,
  position,
  most = max_position_embeddings,
) {
  if (!(Number.isInteger(token) && token >= 0 && token < V)) throw new Error(`a token is from 0 to ${V - 1}: ${token}`);
  if (position >= most) throw new Error(`the cache is full: this model reads at most ${most} tokens`);
}

/** Read one token; the cache grows by a position. Returns the trace of this position. */
/** @type {(model: Model, token: number, cache: Cache, options: Options) => Trace} */
function readToken(model, token, cache, options) {
  checkToken(model.config, token, cache.length);
  const position = cache.length++;
  const embedding = rowOf(model.embedding, token); // [E]
  const blocks = [];
  let { layer: first, stream } = options.from ?? { layer: 0, stream: embedding };
  for (let l = first; l < model.layers.length; l++) {
    blocks[l] = runBlock(model, l, stream, position, cache.layers[l], options);
    stream = blocks[l].output;
  }
  const logits = options.logits === false ? undefined : logitsOf(model, stream);
  return { token, position, embedding, blocks, final: stream, logits };
}

/** One block: the stream [E] goes in, attention and the feed-forward part add to it. */
/** @type {(model: Model, l: number, x: Vector, position: number, cache: LayerCache, o: Options) => BlockTrace} */
function runBlock(model, l, input, position, cache, { silenced, lens }) {
  const { config } = model;
  const layer = model.layers[l];
  const normed = applyRmsNorm(input, layer.gain, config); // [E]
  const attention = attend(model, layer, normed, position, cache, (head) => silenced?.has(`${l}.${head}`));
  const middle = addVectors(input, attention.attended); // [E]
  const normed2 = applyRmsNorm(middle, layer.gain2, config); // [E]
  const feedForward = layer.mixture ? mix(layer.mixture, normed2, config) : swiglu(layer.network, normed2);
  if (silenced?.has(`${l}.feed`)) feedForward.fed.fill(0);
  const output = addVectors(middle, feedForward.fed); // [E]
  const lensLogits = lens ? logitsOf(model, output) : undefined; // [V]
  return { input, normed, ...attention, middle, normed2, ...feedForward, output, lens: lensLogits };
}

/** Attention from this position to all that the cache holds; its own key and value are added first. */
/**
 * @type {(model: Model, layer: Layer, x: Vector, position: number, cache: LayerCache,
 *   isSilenced: (head: number) => boolean) => AttentionTrace}
 */
function attend({ config, rope }, layer, x, position, cache, isSilenced) {
  const { num_attention_heads: H, num_key_value_heads: K, head_dim: D } = config;
  const qRaw = normHeads(multiply(layer.q, x), layer.qGain, config); // [H*D]
  const kRaw = normHeads(multiply(layer.k, x), layer.kGain, config); // [K*D]
  const q = rotateHeads(qRaw, position, rope);
  const k = rotateHeads(kRaw, position, rope);
  const v = multiply(layer.v, x); // [K*D]
  cache.keys[position] = k; // [T] of [K*D]
  cache.values[position] = v;
  const weights = [];
  const heads = [];
  const joined = new Float32Array(H * D);
  for (let head = 0; head < H; head++) {
    const shared = Math.floor(head / (H / K)); // the key/value head that this query head reads with its neighbours
    weights.push(attentionWeights(headOf(q, head, D), cache.keys, shared, position + 1)); // [T]
    heads.push(weightedSum(weights[head], cache.values, shared, D)); // [D]
    if (!isSilenced(head)) joined.set(heads[head], head * D);
  }
  return { qRaw, kRaw, q, k, v, weights, heads, attended: multiply(layer.o, joined) };
}

/** softmax(q · k / √D) over the first T keys: [T]. */
/** @type {(query: Vector, keys: Vector[], head: number, T: number) => Vector} */
function attentionWeights(query, keys, head, T) {
  const D = query.length;
  const scores = new Float32Array(T);
  for (let t = 0; t < T; t++) scores[t] = dotProduct(query, keys[t], head * D) / Math.sqrt(D);
  return softmax(scores);
}

/** What a head reads: its values, each as much as its weight says, [D]. */
/** @type {(weights: Vector, values: Vector[], head: number, D: number) => Vector} */
function weightedSum(weights, values, head, D) {
  const sum = new Float64Array(D);
  for (let t = 0; t < weights.length; t++) {
    for (let i = 0; i < D; i++) sum[i] += weights[t] * values[t][head * D + i];
  }
  return new Float32Array(sum);
}

/** SwiGLU: down(silu(gate(x)) * up(x)). @type {(network: Network, x: Vector) => NetworkTrace} */
function swiglu(network, x) {
  const gate = multiply(network.gate, x); // [F]
  const up = multiply(network.up, x); // [F]
  const hidden = gate.map((g, i) => (g / (1 + Math.exp(-g))) * up[i]); // [F]
  return { gate, up, hidden, fed: multiply(network.down, hidden) }; // fed [E]
}

/** A mixture: the router's likeliest experts, each as much as its weight says, and the shared ones whole. */
/** @type {(mixture: Mixture, x: Vector, config: Config) => FeedForwardTrace} */
function mix({ router, experts, shared }, x, config) {
  const probabilities = softmax(multiply(router, x)); // [N]
  const likeliest = [...probabilities.keys()].sort((a, b) => probabilities[b] - probabilities[a]);
  const chosen = likeliest.slice(0, config.num_experts_per_tok);
  const sum = config.norm_topk_prob ? chosen.reduce((total, e) => total + probabilities[e], 0) : 1;
  const weights = chosen.map((e) => probabilities[e] / sum);
  const traces = chosen.map((e) => swiglu(experts[e], x));
  const fed = new Float32Array(x.length);
  const add = (part, weight) => part.forEach((value, i) => (fed[i] += weight * value));
  traces.forEach((trace, i) => add(trace.fed, weights[i]));
  shared.forEach((network) => add(swiglu(network, x).fed, 1));
  return { fed, route: { probabilities, chosen, weights }, experts: traces };
}

/** The logits [V] of a stream [E]: the final norm, then the head. Of an earlier stream they are the logit lens. */
/** @type {(model: Model, stream: Vector) => Vector} */
function logitsOf({ config, finalGain, head }, stream) {
  return multiply(head, applyRmsNorm(stream, finalGain, config));
}

// Arithmetic

/** A matrix [rows, columns] times a vector [columns]; four rows at once, since each sum has to wait for itself. */
/** @type {(matrix: Matrix, x: Vector) => Vector} */
export function multiply({ shape: [rows, columns], data, scale }, x) {
  const y = new Float32Array(rows);
  const inFours = rows - (rows % 4);
  for (let row = 0; row < inFours; row += 4) {
    const [a, b, c, d] = [row * columns, (row + 1) * columns, (row + 2) * columns, (row + 3) * columns];
    let [sumA, sumB, sumC, sumD] = [0, 0, 0, 0];
    for (let i = 0; i < columns; i++) {
      sumA += x[i] * data[a + i];
      sumB += x[i] * data[b + i];
      sumC += x[i] * data[c + i];
      sumD += x[i] * data[d + i];
    }
    [y[row], y[row + 1], y[row + 2], y[row + 3]] = [sumA, sumB, sumC, sumD];
  }
  for (let row = inFours; row < rows; row++) y[row] = dotProduct(x, data, row * columns);
  if (scale) for (let row = 0; row < rows; row++) y[row] *= scale[row];
  return y;
}

/** One row of a matrix, [columns]. @type {(matrix: Matrix, row: number) => Vector} */
export function rowOf({ shape: [, columns], data, scale }, row) {
  const by = scale ? scale[row] : 1;
  return Float32Array.from(data.subarray(row * columns, (row + 1) * columns), (value) => value * by);
}

/** The dot product of a with as many numbers of b, from an offset on. */
/** @type {(a: Vector, b: Matrix["data"], offset?: number) => number} */
function dotProduct(a, b, offset = 0) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[offset + i];
  return sum;
}

/** @type {(a: Vector, b: Vector) => Vector} */
function addVectors(a, b) {
  return a.map((x, i) => x + b[i]);
}

/** x divided by its root mean square, times a gain for each channel. */
/** @type {(x: Vector, gain: Vector, config: Config) => Vector} */
function applyRmsNorm(x, gain, { rms_norm_eps: eps }) {
  const rms = Math.sqrt(dotProduct(x, x) / x.length + eps);
  return x.map((value, i) => (gain[i] * value) / rms);
}

/** A view [D] of one head of a vector. @type {(x: Vector, head: number, D: number) => Vector} */
function headOf(x, head, D) {
  return x.subarray(head * D, (head + 1) * D);
}

/** QK-norm: each head by itself; without a gain there is none. */
/** @type {(x: Vector, gain: Vector | undefined, config: Config) => Vector} */
function normHeads(x, gain, config) {
  const D = config.head_dim;
  if (gain)
    for (let head = 0; head < x.length / D; head++) x.set(applyRmsNorm(headOf(x, head, D), gain, config), head * D);
  return x;
}

/** RoPE: channels i and i + D/2 of each head are a pair, which rotates by position * frequency. */
/** @type {(x: Vector, position: number, rope: Rope) => Vector} */
export function rotateHeads(x, position, { frequencies, factor }) {
  const half = frequencies.length;
  return x.map((value, at) => {
    const i = at % half;
    const angle = position * frequencies[i];
    const isFirst = at % (2 * half) < half;
    const partner = isFirst ? -x[at + half] : x[at - half];
    return factor * (value * Math.cos(angle) + partner * Math.sin(angle));
  });
}
