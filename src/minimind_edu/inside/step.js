// The model by step.wasm, which is fast/step.cpp: the interface of live/model.js, traces too, in a tenth of its time.
// The weights are moved into the module's memory. On the way through the blocks it shows page.see() each part, as a
// hook in torch would see it: what is kept is copied there, and what falls silent is set to zero there. No DOM.
// tests/inside/test_inside_step.py compares it with live/model.js.

import {
  checkToken,
  createLiveModel,
  isPacked,
  namedWeights,
  restored,
  ropeOf,
  rotateHeads,
} from "../web/live/model.js";
import { softmax } from "../web/live/sampling.js";

/**
 * @typedef {import("../web/live/model.js").LiveModel} LiveModel
 * @typedef {import("../web/live/model.js").Matrix} Matrix
 * @typedef {Float32Array} Vector
 */

const AT_ONCE = 16; // tokens: as many as step.cpp takes through a block together
const MOST = 512; // positions of a cache
const PAGE = 65536; // bytes, by which a memory grows
// in the order of step.cpp
const KINDS = [Float32Array, null, Int8Array, Uint8Array];
const GROUP = 32; // weights of int4 that share a scale, and rows that lie side by side
const ORDER =
  "stream normed queries keys values weights heads attended feedNormed routed chosen gate up hidden fed final";
const PARTS = ORDER.split(" ");

/** Of a trace, what a reading keeps of every token: streams, weights of attention, routes. The rest is far more. */
export const PASSING = new Set(["normed", "weights", "feedNormed", "routed", "chosen", "final"]);

/** The module's memory, which only grows; what is in it has an address. Views are made anew: growing ends old ones. */
function createRoom({ memory, __heap_base: base }) {
  let end = base.value;
  function take(bytes) {
    const at = Math.ceil(end / 64) * 64;
    end = at + bytes;
    const lacks = end - memory.buffer.byteLength;
    if (lacks > 0) memory.grow(Math.ceil(lacks / PAGE));
    return at;
  }
  const view = (Kind, at, length) => new Kind(memory.buffer, at, length);
  function store(array) {
    const at = take(array.byteLength);
    view(array.constructor, at, array.length).set(array);
    return at;
  }
  const words = (list) => store(Uint32Array.from(list));
  const write = (at, list) => view(Uint32Array, at, list.length).set(list);
  /**
   * Copies of count vectors that lie one after the other.
   * @type {(at: number, count: number, width: number) => Vector[]}
   */
  function vectors(at, count, width) {
    const all = view(Float32Array, at, count * width).slice();
    return Array.from({ length: count }, (_, j) => all.subarray(j * width, (j + 1) * width));
  }
  return { take, view, store, words, write, vectors };
}

/** Move a matrix into the module: what is left shows what is there. @type {(room: any, matrix: Matrix) => any} */
function moved(room, { shape, data, scale }) {
  if (isPacked({ shape, data }))
    return {
      shape,
      data,
      scale,
      words: [KINDS.indexOf(Uint8Array), ...shape, ...sideBySide(room, shape, data, scale)],
    };
  const [Kind, length] = [/** @type {any} */ (data.constructor), data.length];
  const at = room.store(data);
  const words = [KINDS.indexOf(Kind), ...shape, at, scale ? room.store(scale) : 0];
  const get = () => room.view(Kind, at, length);
  return Object.defineProperty({ shape, scale, words }, "data", { get, enumerable: true });
}

/** The addresses of int4 values and their scales, as step.cpp wants them; rows that are missing have the scale 0. */
function sideBySide(room, [rows, columns], data, scale) {
  const [half, groups, blocks] = [columns / 2, columns / GROUP, Math.ceil(rows / GROUP)];
  const values = new Uint8Array(blocks * half * GROUP);
  const scales = new Float32Array(blocks * groups * GROUP);
  for (let row = 0; row < rows; row++) {
    const [block, lane] = [Math.floor(row / GROUP), row % GROUP];
    const shift = lane < GROUP / 2 ? 0 : 4;
    for (let i = 0; i < half; i++) {
      const [pair, fours] = [data[row * half + i], (block * half + i - (i % 2)) * GROUP];
      const at = fours + (lane % (GROUP / 2)) * 4 + (i % 2) * 2;
      values[at] |= (pair & 15) << shift;
      values[at + 1] |= (pair >> 4) << shift;
    }
    for (let g = 0; g < groups; g++) scales[(block * groups + g) * GROUP + lane] = scale[row * groups + g];
  }
  return [room.store(values), room.store(scales)];
}

/**
 * step.cpp's structs for a model: the address of Model, of the word in it that is the address of the first Layer, that
 * address, a Layer's bytes, and how wide networks are inside.
 */
function createTables(room, config, { embedding, layers, finalGain, head }, { frequencies, factor }, positions) {
  const { head_dim: D, use_moe: isMixture } = config;
  const angles = Array.from({ length: positions * D }, (_, i) => frequencies[i % (D / 2)] * Math.floor(i / D));
  const table = (of) => room.store(Float32Array.from(angles, (angle) => factor * of(angle)));
  const gain = (vector) => (vector ? room.store(vector) : 0);
  const ofNetwork = ({ gate, up, down }) => [...gate.words, ...up.words, ...down.words];
  const ofLayer = ({ q, k, v, o, gain: first, gain2, qGain, kGain, network, mixture }) => [
    ...[first, gain2, qGain, kGain].map(gain),
    ...[q, k, v, o].flatMap(({ words }) => words),
    ...(mixture ? mixture.router.words : [0, 0, 0, 0, 0]),
    room.words((mixture ? [...mixture.experts, ...mixture.shared] : [network]).flatMap(ofNetwork)),
  ];
  const written = layers.map(ofLayer);
  const firstLayer = room.words(written.flat());
  const inner = (isMixture ? layers[0].mixture.experts[0] : layers[0].network).gate.shape[0];
  const words = [
    ...[config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads, D, inner],
    ...(isMixture ? [config.num_experts, config.num_experts_per_tok, config.num_shared_experts] : [0, 0, 1]),
    Number(config.norm_topk_prob),
    ...[room.store(Float32Array.of(config.rms_norm_eps)), table(Math.cos), table(Math.sin), gain(finalGain)],
    ...[...embedding.words, ...head.words, firstLayer],
  ];
  const model = room.words(words);
  return { model, layers: model + 4 * (words.length - 1), firstLayer, layerBytes: 4 * written[0].length, inner };
}

/** What passes through a block at a position. Queries and keys before their rotation are only wanted now and then. */
class BlockTrace {
  weights = [];
  constructor(position, rope, input, normed) {
    const back = (rotated) => rotateHeads(rotated, -position, rope).map((value) => value / rope.factor ** 2);
    Object.assign(this, { input, normed });
    Object.defineProperty(this, "qRaw", { get: () => back(this.q) });
    Object.defineProperty(this, "kRaw", { get: () => back(this.k) });
  }
}

/**
 * What page.see() does while tokens go through the blocks: it puts in streams that are known already, notes what passes
 * in traces, of each token { token, position, blocks }, and silences. wanted: the PARTS that it notes, false: none but
 * the last stream, true: all.
 */
function createWatch(room, { config, rope, inner }, { traces, from, silenced = new Set(), wanted = true }) {
  const { hidden_size: E, num_attention_heads: H, num_key_value_heads: K, head_dim: D } = config;
  const { num_experts: N, num_shared_experts: shared } = config;
  let [stream, layer, heads, visits] = [0, (from?.layer ?? 0) - 1, 0, []]; // visits: the notes of networks to come
  const blocks = () => traces.map((trace) => trace.blocks[layer]);
  const streams = () => room.vectors(stream, traces.length, E);
  const areSilent = () => [...silenced].filter((key) => key.startsWith(`${layer}.`)).map((key) => key.split(".")[1]);

  /** What notes a vector of each block of now, or of each in the next visit. */
  const noter = (name, width) => (at) => note(name, room.vectors(at, traces.length, width), blocks());
  const noterOfVisit = (name, width) => (at, n) => note(name, room.vectors(at, n, width), visits[0]);
  function note(name, vectors, into) {
    into.forEach((trace, j) => (trace[name] = vectors[j]));
  }

  const follow = {
    stream(at) {
      stream = at;
      note("embedding", streams(), traces);
      from?.streams.forEach((known, j) => room.view(Float32Array, at + 4 * j * E, E).set(known));
    },
    normed: () => ([layer, heads] = [layer + 1, 0]),
    final: () => note("final", streams(), traces),
  };

  /** A block begins, and with it the one before has ended. */
  function begin(at) {
    const [inputs, normed] = [streams(), room.vectors(at, traces.length, E)];
    traces.forEach(({ blocks: all, position }, j) => {
      if (all[layer - 1]) all[layer - 1].output = inputs[j];
      all[layer] = new BlockTrace(position, rope, inputs[j], normed[j]);
    });
  }

  /** Of a mixture: which experts each vector visits, the likeliest first; experts are run in their own order. */
  function choose(at) {
    const rows = room.vectors(at, traces.length, N);
    visits = Array.from({ length: N + shared }, () => []);
    blocks().forEach((block, j) => {
      const { probabilities } = block.route;
      const chosen = [...rows[j].keys()].filter((e) => rows[j][e] !== -1);
      chosen.sort((a, b) => probabilities[b] - probabilities[a]);
      Object.assign(block.route, { chosen, weights: chosen.map((e) => rows[j][e]) });
      block.experts = chosen.map((e) => (visits[e].push({}), visits[e].at(-1)));
      block.shared = Array.from({ length: shared }, (_, i) => (visits[N + i].push({}), visits[N + i].at(-1)));
    });
    visits = visits.filter((visit) => visit.length);
  }

  /** After the last network of a mixture: what all of them add. */
  function addUp({ experts, shared: whole, route }) {
    const parts = [...experts, ...whole].map((network) => network.fed);
    return parts[0].map((_, i) => parts.reduce((sum, fed, e) => sum + (route.weights[e] ?? 1) * fed[i], 0));
  }

  const notes = {
    normed: begin,
    queries: noter("q", H * D),
    keys: noter("k", K * D),
    values: noter("v", K * D),
    weights: (at, n) =>
      traces[Math.floor(heads++ / H)].blocks[layer].weights.push(room.view(Float32Array, at, n).slice()),
    heads(at) {
      const all = room.vectors(at, traces.length * H, D);
      blocks().forEach((block, j) => (block.heads = all.slice(j * H, (j + 1) * H)));
    },
    attended: noter("attended", E),
    feedNormed(at) {
      note("middle", streams(), blocks());
      note("normed2", room.vectors(at, traces.length, E), blocks());
      visits = [blocks()];
    },
    routed(at) {
      const routes = room.vectors(at, traces.length, N).map((logits) => ({ probabilities: softmax(logits) }));
      note("route", routes, blocks());
    },
    chosen: choose,
    gate: noterOfVisit("gate", inner),
    up: noterOfVisit("up", inner),
    hidden: noterOfVisit("hidden", inner),
    fed(at, n) {
      noterOfVisit("fed", E)(at, n);
      visits.shift();
      if (!visits.length) blocks().forEach((block) => block.experts && (block.fed = addUp(block)));
    },
    final: () => traces.forEach(({ blocks: all, final }) => all.length && (all.at(-1).output = final)),
  };

  const silences = {
    heads(at) {
      const all = room.view(Float32Array, at, traces.length * H * D);
      for (const part of areSilent()) {
        for (let j = 0; part !== "feed" && j < traces.length; j++)
          all.fill(0, (j * H + +part) * D, (j * H + +part + 1) * D);
      }
    },
    hidden: (at, n) => areSilent().includes("feed") && room.view(Float32Array, at, n * inner).fill(0),
  };

  return (part, at, n) => {
    follow[part]?.(at);
    if (wanted === true || (wanted && wanted.has(part))) notes[part]?.(at, n);
    if (silenced.size) silences[part]?.(at, n);
  };
}

/** The model of what unpackWeights gave, as in live/model.js, whose matrices move into the module. */
/** @type {(unpacked: any, module: BufferSource, most?: number) => Promise<LiveModel & { atOnce: number }>} */
async function createStepModel({ config, tensors, rope: given }, module, most = MOST) {
  const { vocab_size: V, hidden_size: E, num_hidden_layers: L, num_key_value_heads: K, head_dim: D } = config;
  const rope = ropeOf(config, given);
  let watch = null;
  const page = { see: (part, at, n) => watch(PARTS[part], at, n) };
  const { exports } = (await WebAssembly.instantiate(module, { page })).instance;
  const room = createRoom(exports);
  for (const [name, matrix] of Object.entries(tensors)) {
    // a router is small and never rounded there
    const isRounded = name.endsWith("mlp.gate.weight") && matrix.scale;
    if (matrix.shape.length === 2) tensors[name] = moved(room, isRounded ? restored(matrix) : matrix);
  }
  const positions = Math.min(most, config.max_position_embeddings);
  const weights = namedWeights(config, tensors);
  const tables = createTables(room, config, weights, rope, positions);
  const { inner } = tables;
  const [ids, padding, texts] = [room.take(8 * AT_ONCE), room.words([0, 0]), room.take(40)];
  const logitsAt = room.take(4 * AT_ONCE * V);
  const writeTexts = (length, start, wanted, keys) =>
    room.write(texts, [1, length, start, positions, wanted, ids, padding, keys, keys + 4 * L, logitsAt]);
  writeTexts(1, 0, 1, 0);
  const scratch = room.take(4 * exports.room(tables.model, texts, 1));

  function newCache() {
    const bytes = 4 * positions * K * D;
    const at = room.take(2 * L * bytes);
    return { length: 0, keys: room.words(Array.from({ length: 2 * L }, (_, i) => at + i * bytes)) };
  }

  /** At most AT_ONCE tokens. */
  function readSome(tokens, cache, { from, logits, trace, silenced }) {
    const traces = tokens.map((token, j) => {
      checkToken(config, token, cache.length + j, positions);
      return { token, position: cache.length + j, blocks: [] };
    });
    const layer = from?.layer ?? 0;
    watch = createWatch(room, { config, rope, inner }, { traces, from, silenced, wanted: trace });
    room.write(tables.model, [L - layer]);
    room.write(tables.layers, [tables.firstLayer + layer * tables.layerBytes]);
    room.write(
      ids,
      tokens.flatMap((token) => [token, 0]),
    );
    writeTexts(tokens.length, cache.length, logits === false ? 0 : tokens.length, cache.keys + 4 * layer);
    exports.read_tokens(tables.model, texts, scratch, 1);
    cache.length += tokens.length;
    if (logits !== false) room.vectors(logitsAt, tokens.length, V).forEach((vector, j) => (traces[j].logits = vector));
    return traces;
  }

  function run(tokens, { cache = newCache(), from = null, lens = false, ...options } = {}) {
    const all = Array.from(tokens);
    const traces = [];
    for (let at = 0; at < all.length; at += AT_ONCE) {
      const here = from && { layer: from.layer, streams: from.streams.slice(at, at + AT_ONCE) };
      traces.push(...readSome(all.slice(at, at + AT_ONCE), cache, { ...options, from: here }));
    }
    if (lens) traces.forEach(({ blocks }) => blocks.forEach((block) => (block.lens = read(block.output))));
    return { cache, traces };
  }

  const nothing = { length: 0, keys: 0 };
  function read(stream) {
    nothing.length = 0;
    return readSome([0], nothing, { from: { layer: L, streams: [stream] }, trace: false }).at(0).logits;
  }
  function step(token, cache, { from, ...options } = {}) {
    const known = from && { layer: from.layer, streams: [from.stream] };
    return run([token], { cache, from: known, ...options }).traces[0];
  }
  return { config, newCache, step, read, run, atOnce: AT_ONCE };
}

/**
 * The model by the module, or by plain JavaScript where WebAssembly or its SIMD is missing or forbidden:
 * { model, why }, the reason or null. module: the bytes of step.wasm.
 */
export async function openModel(unpacked, module) {
  try {
    return { model: await createStepModel(unpacked, module), why: null };
  } catch (error) {
    const { tensors } = unpacked;
    for (const name of Object.keys(tensors)) if (isPacked(tensors[name])) tensors[name] = restored(tensors[name]);
    return { model: createLiveModel(unpacked), why: String(error) };
  }
}
