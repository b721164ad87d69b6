// A whole MiniMind in plain JavaScript: a token goes in, the logits of the next one come out, with a KV cache and a
// trace of everything on the way. No DOM, no network. tests/test_live_model.py compares each number with torch's.
//
// E hidden_size, L layers, H query heads, K key/value heads, D head_dim, I intermediate_size, V words, T positions that
// were read, this one included. A vector is a Float32Array, heads joined: q [H*D] holds head 0, head 1, and so on.

import { softmax } from "./sampling.js";

/**
 * @typedef {{ vocab_size: number, hidden_size: number, num_hidden_layers: number, num_attention_heads: number,
 *   num_key_value_heads: number, head_dim: number, rope_theta: number, rms_norm_eps: number,
 *   max_position_embeddings: number, use_moe?: boolean, norm_placement?: string, rope_scaling?: object }} Config
 * @typedef {Float32Array} Vector
 * @typedef {{ shape: number[], data: Vector }} Matrix
 * @typedef {Record<string, Matrix>} Tensors
 * @typedef {{ keys: Vector[], values: Vector[] }} LayerCache
 * @typedef {{ length: number, layers: LayerCache[] }} Cache
 * @typedef {{ silenced?: Set<string>, lens?: boolean }} Options
 *
 * @typedef {{ q: Matrix, k: Matrix, v: Matrix, o: Matrix, gate: Matrix, up: Matrix, down: Matrix, gain: Vector,
 *   gain2: Vector, qGain?: Vector, kGain?: Vector }} Layer
 * @typedef {{ embedding: Matrix, layers: Layer[], finalGain: Vector, head: Matrix }} Weights
 * @typedef {Weights & { config: Config, frequencies: Vector }} Model
 *
 * @typedef {{ qRaw: Vector, kRaw: Vector, q: Vector, k: Vector, v: Vector, weights: Vector[], heads: Vector[],
 *   attended: Vector }} AttentionTrace
 * @typedef {{ gate: Vector, up: Vector, hidden: Vector, fed: Vector }} FeedForwardTrace
 * @typedef {AttentionTrace & FeedForwardTrace & { input: Vector, normed: Vector, middle: Vector, normed2: Vector,
 *   output: Vector, lens?: Vector }} BlockTrace
 * @typedef {{ token: number, position: number, embedding: Vector, blocks: BlockTrace[], final: Vector,
 *   logits: Vector }} Trace
 * @typedef {{ config: Config, newCache: () => Cache, read: (stream: Vector) => Vector,
 *   step: (token: number, cache: Cache, options?: Options) => Trace,
 *   run: (ids: Iterable<number>, options?: Options) => { cache: Cache, traces: Trace[] } }} LiveModel
 */

// The weights

/** The bytes of a base64 text. @type {(base64: string) => Uint8Array} */
export function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** What a .safetensors file of minimind_edu holds: { config, tensors: { name: { shape, data: Float32Array } } }. */
/** @type {(bytes: Uint8Array) => { config: Config, tensors: Tensors }} */
export function unpackWeights(bytes) {
  const start = 8 + Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const { __metadata__: metadata, ...entries } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  // a slice of its own, for a typed array must begin at a multiple of its items' size
  const bufferOf = ({ data_offsets: [from, to] }) => bytes.slice(start + from, start + to).buffer;
  /** @type {Tensors} */
  const tensors = {};
  for (const [name, entry] of Object.entries(entries)) {
    if (name.endsWith(".scale")) continue; // of the matrix with the name before it
    if (entry.dtype === "I8") tensors[name] = restored(entry, bufferOf(entry), bufferOf(entries[`${name}.scale`]));
    else if (entry.dtype === "F32") tensors[name] = { shape: entry.shape, data: new Float32Array(bufferOf(entry)) };
    else throw new Error(`${name} holds ${entry.dtype}, but only F32 and I8 are understood`);
  }
  return { config: JSON.parse(metadata.config), tensors };
}

/** The matrix of int8 rows, each times its scale. */
/** @type {(entry: { shape: number[] }, values: ArrayBuffer, scales: ArrayBuffer) => Matrix} */
function restored({ shape }, values, scales) {
  const [scale, columns] = [new Float32Array(scales), shape[1]];
  const data = Float32Array.from(new Int8Array(values), (value, i) => value * scale[Math.floor(i / columns)]);
  return { shape, data };
}

// The model

/**
 * The model of what unpackWeights gave: { config, newCache(), step(token, cache, options), read(stream), run(ids,
 * options) }. Options: silenced, a Set of "layer.head", both from 0, that add nothing; lens: whether each block also
 * says what the model would answer there.
 */
/** @type {(unpacked: { config: Config, tensors: Tensors }) => LiveModel} */
export function createLiveModel({ config, tensors }) {
  if (config.use_moe || config.norm_placement === "post" || config.rope_scaling)
    throw new Error("only dense models with the norms before each part, and without RoPE scaling, run here");
  const model = { config, ...namedWeights(config, tensors), frequencies: ropeFrequencies(config) };
  const newCache = () => ({ length: 0, layers: model.layers.map(() => ({ keys: [], values: [] })) });
  const step = (token, cache, options = {}) => readToken(model, token, cache, options);
  const run = (ids, options = {}) => {
    const cache = newCache();
    return { cache, traces: Array.from(ids, (token) => step(token, cache, options)) };
  };
  return { config, newCache, step, read: (stream) => logitsOf(model, stream), run };
}

/** The weights by their parts: matrices as { shape, data }, gains of norms as vectors. */
/** @type {(config: Config, tensors: Tensors) => Weights} */
function namedWeights({ num_hidden_layers: L }, tensors) {
  const embedding = tensors["model.embed_tokens.weight"]; // [V, E]
  const layers = Array.from({ length: L }, (_, l) => {
    const part = (name) => tensors[`model.layers.${l}.${name}.weight`];
    return {
      gain: part("input_layernorm").data, // [E]
      q: part("self_attn.q_proj"), // [H*D, E]
      k: part("self_attn.k_proj"), // [K*D, E]
      v: part("self_attn.v_proj"), // [K*D, E]
      qGain: part("self_attn.q_norm")?.data, // [D], with QK-norm
      kGain: part("self_attn.k_norm")?.data,
      o: part("self_attn.o_proj"), // [E, H*D]
      gain2: part("post_attention_layernorm").data, // [E]
      gate: part("mlp.gate_proj"), // [F, E]
      up: part("mlp.up_proj"), // [F, E]
      down: part("mlp.down_proj"), // [E, F]
    };
  });
  // a tied model has one matrix for both ends
  return {
    embedding,
    layers,
    finalGain: tensors["model.norm.weight"].data,
    head: tensors["lm_head.weight"] ?? embedding,
  };
}

/** Radians per position of each pair of channels: [D/2]. @type {(config: Config) => Vector} */
function ropeFrequencies({ head_dim: D, rope_theta: theta }) {
  return Float32Array.from({ length: D / 2 }, (_, i) => theta ** ((-2 * i) / D));
}

/** Read one token; the cache grows by a position. Returns the trace of this position. */
/** @type {(model: Model, token: number, cache: Cache, options: Options) => Trace} */
function readToken(model, token, cache, options) {
  const { vocab_size: V, hidden_size: E, max_position_embeddings: most } = model.config;
  if (!(Number.isInteger(token) && token >= 0 && token < V)) throw new Error(`a token is from 0 to ${V - 1}: ${token}`);
  if (cache.length >= most) throw new Error(`the cache is full: this model reads at most ${most} tokens`);
  const position = cache.length++;
  const embedding = model.embedding.data.slice(token * E, (token + 1) * E); // [E]
  const blocks = [];
  /** @type {Vector} */
  let stream = embedding;
  for (const l of model.layers.keys()) {
    blocks.push(runBlock(model, l, stream, position, cache.layers[l], options));
    stream = blocks[l].output;
  }
  return { token, position, embedding, blocks, final: stream, logits: logitsOf(model, stream) };
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
  const feedForward = swiglu(layer, normed2);
  const output = addVectors(middle, feedForward.fed); // [E]
  const said = lens ? logitsOf(model, output) : undefined; // [V]
  return { input, normed, ...attention, middle, normed2, ...feedForward, output, lens: said };
}

/** Attention from this position to all that the cache holds; its own key and value are added first. */
/**
 * @type {(model: Model, layer: Layer, x: Vector, position: number, cache: LayerCache,
 *   isSilenced: (head: number) => boolean) => AttentionTrace}
 */
function attend({ config, frequencies }, layer, x, position, cache, isSilenced) {
  const { num_attention_heads: H, num_key_value_heads: K, head_dim: D } = config;
  const qRaw = normHeads(multiply(layer.q, x), layer.qGain, config); // [H*D]
  const kRaw = normHeads(multiply(layer.k, x), layer.kGain, config); // [K*D]
  const q = rotateHeads(qRaw, position, frequencies);
  const k = rotateHeads(kRaw, position, frequencies);
  const v = multiply(layer.v, x); // [K*D]
  cache.keys.push(k); // [T] of [K*D]
  cache.values.push(v);
  const weights = [];
  const heads = [];
  const joined = new Float32Array(H * D);
  for (let head = 0; head < H; head++) {
    const shared = Math.floor(head / (H / K)); // the key/value head that this query head reads with its neighbours
    weights.push(attentionWeights(headOf(q, head, D), cache.keys, shared)); // [T]
    heads.push(weightedSum(weights[head], cache.values, shared, D)); // [D]
    if (!isSilenced(head)) joined.set(heads[head], head * D);
  }
  return { qRaw, kRaw, q, k, v, weights, heads, attended: multiply(layer.o, joined) };
}

/** softmax(q · k / √D) over all keys: [T]. @type {(query: Vector, keys: Vector[], head: number) => Vector} */
function attentionWeights(query, keys, head) {
  const D = query.length;
  const scores = new Float32Array(keys.length);
  for (let t = 0; t < keys.length; t++) scores[t] = dotProduct(query, keys[t], head * D) / Math.sqrt(D);
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

/** SwiGLU: down(silu(gate(x)) * up(x)). @type {(layer: Layer, x: Vector) => FeedForwardTrace} */
function swiglu(layer, x) {
  const gate = multiply(layer.gate, x); // [F]
  const up = multiply(layer.up, x); // [F]
  const hidden = gate.map((g, i) => (g / (1 + Math.exp(-g))) * up[i]); // [F]
  return { gate, up, hidden, fed: multiply(layer.down, hidden) }; // fed [E]
}

/** The logits [V] of a stream [E]: the final norm, then the head. Of an earlier stream they are the logit lens. */
/** @type {(model: Model, stream: Vector) => Vector} */
function logitsOf({ config, finalGain, head }, stream) {
  return multiply(head, applyRmsNorm(stream, finalGain, config));
}

// Arithmetic

/** A matrix { shape: [rows, columns], data } times a vector [columns]. @type {(matrix: Matrix, x: Vector) => Vector} */
function multiply({ shape: [rows, columns], data }, x) {
  const y = new Float32Array(rows);
  for (let row = 0; row < rows; row++) y[row] = dotProduct(x, data, row * columns);
  return y;
}

/** The dot product of a with as many numbers of b, from an offset on. */
/** @type {(a: Vector, b: Vector, offset?: number) => number} */
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

/** RoPE: channels i and i + D/2 of each head are a pair, which turns by position * frequency. */
/** @type {(x: Vector, position: number, frequencies: Vector) => Vector} */
function rotateHeads(x, position, frequencies) {
  const half = frequencies.length;
  return x.map((value, at) => {
    const i = at % half;
    const angle = position * frequencies[i];
    const isFirst = at % (2 * half) < half;
    const partner = isFirst ? -x[at + half] : x[at - half];
    return value * Math.cos(angle) + partner * Math.sin(angle);
  });
}
