// A small dense MiniMind that is trained in the page: forward and backward pass written out, AdamW, and a task. No DOM.
// tests/web/test_live_train.py compares gradients and steps with torch.

/**
 * @typedef {typeof TRANSLATOR & { vocab_size: number }} Config
 * @typedef {{ positions: boolean, residual: boolean }} Switches
 * @typedef {{ tables: import("./world.js").Tables, config: Config, switches: Switches, steps: number, batch: number,
 *   rate: number, seed: number, samplesEvery: number }} Options
 * @typedef {Pick<Options, "tables"> & Partial<Omit<Options, "config" | "switches">> &
 *   { config?: Partial<Config>, switches?: Partial<Switches> }} Wishes
 * @typedef {{ ids: number[], given: number, expected: number[] }} Sample
 * @typedef {{ type: "progress", step: number, loss: number, entropy: number } | { type: "done" } |
 *   { type: "samples", step: number, rows: Sample[] } | { type: "error", message: string }} Message
 * @typedef {(message: Message) => void} Hear
 *
 * @typedef {Float32Array} Vector
 * @typedef {{ name: string, rows: number, columns: number, value: Vector, grad: Vector, mean: Vector,
 *   square: Vector }} Parameter
 * @typedef {{ B: number, T: number, N: number, V: number, E: number, F: number, H: number, K: number,
 *   D: number }} Sizes
 */

/** The sizes of the translator, 21,440 parameters with 88 words; names as in MiniMindConfig. Embeddings are tied. */
export const TRANSLATOR = {
  hidden_size: 32,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 8,
  intermediate_size: 64,
  rope_theta: 10000,
  rms_norm_eps: 1e-6,
  use_qk_norm: true,
  initializer_range: 0.1,
};

/**
 * Training in the background: a model learns to translate English statements into Chinese.
 *
 * options: tables (of minimind_edu.world), and what differs from the defaults: config (as TRANSLATOR), switches
 * { positions, residual }, steps, batch, rate (the largest learning rate), seed, samplesEvery.
 *
 * onMessage gets { type: "progress", step, loss, entropy } after each step, both in nats per word over the same batch;
 * { type: "samples", step, rows: [{ ids, given, expected }] }: what the model writes after `given` words, and the right
 * words; { type: "done" } at the end; { type: "error", message } where nothing can be trained.
 *
 * start() begins from the first step; no message comes after stop(). The same options give the same numbers.
 */
/** @type {(wishes: Wishes, onMessage: Hear) => { start: () => void, stop: () => void }} */
export function createTraining({ config, switches, ...others }, onMessage) {
  /** @type {Options} */
  const options = {
    steps: 200,
    batch: 16,
    rate: 0.015,
    seed: 0,
    samplesEvery: 25,
    ...others,
    config: { vocab_size: others.tables.words.length, ...TRANSLATOR, ...config },
    switches: { positions: true, residual: true, ...switches },
  };
  let end = () => {};

  function start() {
    end();
    let [over, stopWork] = [false, () => {}];
    end = () => {
      over = true;
      stopWork();
    };
    const hear = (message) => {
      if (over) return;
      if (message.type === "done" || message.type === "error") end();
      onMessage(message);
    };
    const refused = () => {
      if (!over) stopWork = trainingCode().run(options, hear, 8); // milliseconds: half a frame
    };
    stopWork = trainInWorker(options, hear, refused);
  }
  return { start, stop: () => end() };
}

/** Run in a Worker made of the text of `trainingCode`; refused() where a page's policy forbids that. */
function trainInWorker(options, hear, refused) {
  const run = `onmessage = ({ data }) => (${trainingCode})().run(data, (message) => postMessage(message), Infinity);`;
  const url = URL.createObjectURL(new Blob([run], { type: "text/javascript" }));
  let worker = null;
  const stop = () => {
    worker?.terminate();
    URL.revokeObjectURL(url);
  };
  const giveUp = (event) => {
    event?.preventDefault();
    stop();
    setTimeout(refused);
  };
  try {
    worker = new Worker(url);
    worker.onmessage = ({ data }) => hear(data);
    worker.onerror = giveUp; // errors of the training itself come as messages
    worker.postMessage(options);
  } catch {
    giveUp();
  }
  return stop;
}

/**
 * All that training needs, in one function that refers to nothing outside, so that a Worker can be made of its text.
 *
 * Matrices are Float32Arrays, row by row; a weight is [out, in] as in torch. N = B * T are the positions of B rows of T
 * words; E, F, V, H, K, D as in the package. Each part is followed by its backward pass, which adds to the gradients of
 * parameter and input where it says +=. All sizes are multiples of 4, so that four sums can run at once.
 */
export function trainingCode() {
  // Parts

  /** A weight [rows, columns] with its gradient and AdamW's two means; a gain of a norm has one column. */
  /** @type {(name: string, rows: number, columns: number, init: () => number) => Parameter} */
  function createParameter(name, rows, columns, init) {
    const empty = () => new Float32Array(rows * columns);
    return { name, rows, columns, value: empty().map(init), grad: empty(), mean: empty(), square: empty() };
  }

  /** y = x Wᵀ: [N, I] -> [N, O]. @type {(parameter: Parameter, x: Vector, y: Vector) => void} */
  function linear({ value: W, rows: O, columns: I }, x, y) {
    for (let n = 0, at = 0; n < x.length; n += I) {
      for (let o = 0; o < O * I; o += 4 * I, at += 4) {
        let a = 0;
        let b = 0;
        let c = 0;
        let d = 0;
        for (let i = 0, w = o; i < I; i++, w++) {
          const xi = x[n + i];
          a += xi * W[w];
          b += xi * W[w + I];
          c += xi * W[w + 2 * I];
          d += xi * W[w + 3 * I];
        }
        y[at] = a;
        y[at + 1] = b;
        y[at + 2] = c;
        y[at + 3] = d;
      }
    }
  }

  /** dx += dy W and dW += dyᵀ x. @type {(parameter: Parameter, dy: Vector, x: Vector, dx: Vector) => void} */
  function linearBackward({ value: W, grad: dW, rows: O, columns: I }, dy, x, dx) {
    for (let n = 0, at = 0; n < x.length; n += I) {
      for (let o = 0; o < O * I; o += 4 * I, at += 4) {
        const a = dy[at];
        const b = dy[at + 1];
        const c = dy[at + 2];
        const d = dy[at + 3];
        for (let i = 0, w = o; i < I; i++, w++) {
          dx[n + i] += a * W[w] + b * W[w + I] + c * W[w + 2 * I] + d * W[w + 3 * I];
        }
      }
    }
    for (let n = 0, at = 0; n < x.length; n += 4 * I, at += 4 * O) {
      for (let o = 0; o < O; o++) {
        const a = dy[at + o];
        const b = dy[at + o + O];
        const c = dy[at + o + 2 * O];
        const d = dy[at + o + 3 * O];
        for (let i = n, w = o * I; i < n + I; i++, w++) {
          dW[w] += a * x[i] + b * x[i + I] + c * x[i + 2 * I] + d * x[i + 3 * I];
        }
      }
    }
  }

  /** y = gain * x / rms(x), vector by vector: [N, E] -> [N, E], or [N * H, D] -> [N * H, D]. inverse [N]: 1 / rms. */
  /** @type {(parameter: Parameter, x: Vector, y: Vector, inverse: Vector, eps: number) => void} */
  function rmsNorm({ value: gain, rows: E }, x, y, inverse, eps) {
    for (let n = 0, at = 0; at < x.length; n++, at += E) {
      inverse[n] = 1 / Math.sqrt(dot(x, at, x, at, E) / E + eps);
      for (let i = 0; i < E; i++) y[at + i] = gain[i] * x[at + i] * inverse[n];
    }
  }

  /** dx += and dGain +=. @type {(parameter: Parameter, dy: Vector, x: Vector, dx: Vector, inverse: Vector) => void} */
  function rmsNormBackward({ value: gain, grad: dGain, rows: E }, dy, x, dx, inverse) {
    for (let n = 0, at = 0; at < x.length; n++, at += E) {
      const r = inverse[n];
      let sum = 0;
      for (let i = 0; i < E; i++) {
        sum += dy[at + i] * gain[i] * x[at + i];
        dGain[i] += dy[at + i] * x[at + i] * r;
      }
      const along = (sum * r * r * r) / E; // what the length of x takes away
      for (let i = 0; i < E; i++) dx[at + i] += dy[at + i] * gain[i] * r - x[at + i] * along;
    }
  }

  /** Rotate heads [N, heads, D] in place for their positions. Direction -1 rotates back: a rotation's gradient. */
  function rotate({ T, D }, { cos, sin }, x, heads, direction) {
    const half = D / 2;
    for (let at = 0, n = 0; at < x.length; n++) {
      const row = (n % T) * half;
      for (let h = 0; h < heads; h++, at += D) {
        for (let i = 0; i < half; i++) {
          const c = cos[row + i];
          const s = direction * sin[row + i];
          const a = x[at + i];
          const b = x[at + half + i];
          x[at + i] = a * c - b * s;
          x[at + half + i] = b * c + a * s;
        }
      }
    }
  }

  /** weights = softmax(q kᵀ / √D) over earlier positions, joined = weights v. q [N, H, D], k and v [N, K, D]. */
  function attend(sizes, { q, k, v, weights, joined }) {
    const { D, K } = sizes;
    joined.fill(0);
    forEachQuery(sizes, (t, query, keys, row) => {
      for (let s = 0; s <= t; s++) weights[row + s] = dot(q, query, k, keys + s * K * D, D) / Math.sqrt(D);
      softmax(weights, row, t + 1);
      for (let s = 0; s <= t; s++) addScaled(joined, query, v, keys + s * K * D, weights[row + s], D);
    });
  }

  /** dq, dk, dv from the gradient of joined. dWeights [T] is room for one query. */
  function attendBackward(sizes, { q, k, v, weights }, { q: dq, k: dk, v: dv, joined: dJoined, weights: dWeights }) {
    const { D, K } = sizes;
    for (const gradient of [dq, dk, dv]) gradient.fill(0);
    forEachQuery(sizes, (t, query, keys, row) => {
      let mean = 0;
      for (let s = 0, key = keys; s <= t; s++, key += K * D) {
        dWeights[s] = dot(dJoined, query, v, key, D);
        mean += weights[row + s] * dWeights[s];
        addScaled(dv, key, dJoined, query, weights[row + s], D);
      }
      for (let s = 0, key = keys; s <= t; s++, key += K * D) {
        const dScore = (weights[row + s] * (dWeights[s] - mean)) / Math.sqrt(D);
        addScaled(dq, query, k, key, dScore, D);
        addScaled(dk, key, q, query, dScore, D);
      }
    });
  }

  /** visit(t, and where its query, the key of position 0 and its row of weights [B, H, T, T] begin). */
  /** @type {(sizes: Sizes, visit: (t: number, query: number, keys: number, row: number) => void) => void} */
  function forEachQuery({ B, T, H, K, D }, visit) {
    for (let b = 0; b < B; b++) {
      for (let h = 0; h < H; h++) {
        const keys = (b * T * K + Math.floor((h * K) / H)) * D;
        for (let t = 0; t < T; t++) visit(t, ((b * T + t) * H + h) * D, keys, ((b * H + h) * T + t) * T);
      }
    }
  }

  /** hidden = silu(gate) * up, [N, F]. */
  function gated({ gate, up, hidden }) {
    for (let i = 0; i < gate.length; i++) hidden[i] = (gate[i] / (1 + Math.exp(-gate[i]))) * up[i];
  }

  /** dGate and dUp from the gradient of hidden. */
  function gatedBackward({ gate, up }, { gate: dGate, up: dUp, hidden: dHidden }) {
    for (let i = 0; i < gate.length; i++) {
      const open = 1 / (1 + Math.exp(-gate[i]));
      dUp[i] = dHidden[i] * gate[i] * open;
      dGate[i] = dHidden[i] * up[i] * open * (1 + gate[i] * (1 - open));
    }
  }

  /** The cross-entropy of the next words, over `count`. The logits [N, V] become their own gradients. */
  /** @type {(sizes: Sizes, logits: Vector, ids: number[], count: number) => number} */
  function crossEntropy({ T, V }, logits, ids, count) {
    let loss = 0;
    for (let n = 0, at = 0; n < ids.length; n++, at += V) {
      if (n % T === T - 1) {
        logits.fill(0, at, at + V); // nothing follows the last word of a row
        continue;
      }
      softmax(logits, at, V);
      loss -= Math.log(logits[at + ids[n + 1]]) / count;
      logits[at + ids[n + 1]] -= 1;
      for (let i = at; i < at + V; i++) logits[i] /= count;
    }
    return loss;
  }

  /** @type {(x: Vector, from: number, length: number) => void} */
  function softmax(x, from, length) {
    let [largest, sum] = [-Infinity, 0];
    for (let i = from; i < from + length; i++) largest = Math.max(largest, x[i]);
    for (let i = from; i < from + length; i++) sum += x[i] = Math.exp(x[i] - largest);
    for (let i = from; i < from + length; i++) x[i] /= sum;
  }

  /** @type {(x: Vector, from: number, y: Vector, start: number, length: number) => number} */
  function dot(x, from, y, start, length) {
    let sum = 0;
    for (let i = 0; i < length; i++) sum += x[from + i] * y[start + i];
    return sum;
  }

  /** x += scale * y. */
  /** @type {(x: Vector, from: number, y: Vector, start: number, scale: number, length: number) => void} */
  function addScaled(x, from, y, start, scale, length) {
    for (let i = 0; i < length; i++) x[from + i] += scale * y[start + i];
  }

  // The model

  /** Parameters, and room for what is computed on B rows of T words. */
  class Model {
    /** @param {Config} config  @param {Switches} switches  @param {number} B  @param {number} T */
    constructor(config, switches, B, T, random) {
      const { vocab_size: V, hidden_size: E, intermediate_size: F } = config;
      const { num_attention_heads: H, num_key_value_heads: K, head_dim: D } = config;
      this.sizes = { B, T, N: B * T, V, E, F, H, K, D };
      checkSizes(this.sizes);
      this.config = config;
      this.switches = switches;
      this.eps = config.rms_norm_eps;
      /** @type {Parameter[]} */
      this.parameters = [];
      this.createParameters(gaussian(random, config.initializer_range));
      this.createRoom();
      this.tables = rotations(this.sizes, config.rope_theta, switches.positions);
    }

    /** Names and shapes of the state dict. */
    createParameters(init) {
      const { V, E, F, H, K, D } = this.sizes;
      const create = (name, rows, columns) => {
        const parameter = createParameter(name, rows, columns, columns > 1 ? init : () => 1);
        this.parameters.push(parameter);
        return parameter;
      };
      this.embedding = create("model.embed_tokens.weight", V, E);
      this.blocks = Array.from({ length: this.config.num_hidden_layers }, (_, layer) => {
        const at = (name, rows, columns) => create(`model.layers.${layer}.${name}.weight`, rows, columns);
        return {
          attentionNorm: at("input_layernorm", E, 1),
          q: at("self_attn.q_proj", H * D, E),
          k: at("self_attn.k_proj", K * D, E),
          v: at("self_attn.v_proj", K * D, E),
          qNorm: this.config.use_qk_norm ? at("self_attn.q_norm", D, 1) : null,
          kNorm: this.config.use_qk_norm ? at("self_attn.k_norm", D, 1) : null,
          o: at("self_attn.o_proj", E, H * D),
          feedForwardNorm: at("post_attention_layernorm", E, 1),
          gate: at("mlp.gate_proj", F, E),
          up: at("mlp.up_proj", F, E),
          down: at("mlp.down_proj", E, F),
        };
      });
      this.norm = create("model.norm.weight", E, 1);
    }

    /** What the forward pass keeps for the backward pass, of each block; and the gradients, in one place for all. */
    createRoom() {
      const { B, T, N, V, E, F, H, K, D } = this.sizes;
      /** @type {<L extends Record<string, number>>(lengths: L) => { [name in keyof L]: Vector }} */
      const room = (lengths) => {
        /** @type {any} */
        const vectors = {};
        for (const [name, length] of Object.entries(lengths)) vectors[name] = new Float32Array(length);
        return vectors;
      };
      const heads = { projectedQ: N * H * D, projectedK: N * K * D, q: N * H * D, k: N * K * D, v: N * K * D };
      const shared = { x: N * E, y: N * E, ...heads, joined: N * H * D, gate: N * F, up: N * F, hidden: N * F };
      const kept = { z: N * E, middle: N * E, weights: B * H * T * T };
      const inverses = { inverse: N, inverseQ: N * H, inverseK: N * K, inverseZ: N };
      this.kept = this.blocks.map(() => room({ ...shared, ...kept, ...inverses }));
      this.last = room({ x: N * E, y: N * E, inverse: N, logits: N * V });
      this.gradients = room({ ...shared, weights: T });
    }

    /** Where a block writes its output. */
    after(layer) {
      return (this.kept[layer + 1] ?? this.last).x;
    }

    /** Logits [N, V] of ids [N]. @type {(ids: number[]) => Vector} */
    forward(ids) {
      const { E } = this.sizes;
      const { x } = this.kept[0] ?? this.last;
      ids.forEach((id, n) => x.set(this.embedding.value.subarray(id * E, (id + 1) * E), n * E));
      for (const layer of this.blocks.keys()) {
        this.attention(layer);
        this.feedForward(layer);
      }
      rmsNorm(this.norm, this.last.x, this.last.y, this.last.inverse, this.eps);
      linear(this.embedding, this.last.y, this.last.logits);
      return this.last.logits;
    }

    /** The loss of ids [N], as a share of `count` words; adds the gradients of that share. */
    /** @type {(ids: number[], count: number) => number} */
    accumulate(ids, count) {
      const { E } = this.sizes;
      const { x, y } = this.gradients;
      const loss = crossEntropy(this.sizes, this.forward(ids), ids, count);
      for (const gradient of [x, y]) gradient.fill(0);
      linearBackward(this.embedding, this.last.logits, this.last.y, y);
      rmsNormBackward(this.norm, y, this.last.x, x, this.last.inverse);
      for (let layer = this.blocks.length - 1; layer >= 0; layer--) {
        this.feedForwardBackward(layer);
        this.attentionBackward(layer);
      }
      ids.forEach((id, n) => addScaled(this.embedding.grad, id * E, x, n * E, 1, E));
      return loss;
    }

    /** middle = x + attention(norm(x)). */
    attention(layer) {
      const { sizes, eps, tables } = this;
      const [block, s] = [this.blocks[layer], this.kept[layer]];
      rmsNorm(block.attentionNorm, s.x, s.y, s.inverse, eps);
      linear(block.q, s.y, s.projectedQ);
      linear(block.k, s.y, s.projectedK);
      linear(block.v, s.y, s.v);
      if (block.qNorm) {
        rmsNorm(block.qNorm, s.projectedQ, s.q, s.inverseQ, eps);
        rmsNorm(block.kNorm, s.projectedK, s.k, s.inverseK, eps);
      } else {
        s.q.set(s.projectedQ);
        s.k.set(s.projectedK);
      }
      rotate(sizes, tables, s.q, sizes.H, 1);
      rotate(sizes, tables, s.k, sizes.K, 1);
      attend(sizes, s);
      linear(block.o, s.joined, s.middle);
      if (this.switches.residual) addScaled(s.middle, 0, s.x, 0, 1, s.x.length);
    }

    /** The gradient of `middle` in gradients.x becomes that of `x`. */
    attentionBackward(layer) {
      const { sizes, tables, gradients: d } = this;
      const [block, s] = [this.blocks[layer], this.kept[layer]];
      for (const gradient of [d.joined, d.y, d.projectedQ, d.projectedK]) gradient.fill(0);
      linearBackward(block.o, d.x, s.joined, d.joined);
      attendBackward(sizes, s, d);
      rotate(sizes, tables, d.q, sizes.H, -1);
      rotate(sizes, tables, d.k, sizes.K, -1);
      if (block.qNorm) {
        rmsNormBackward(block.qNorm, d.q, s.projectedQ, d.projectedQ, s.inverseQ);
        rmsNormBackward(block.kNorm, d.k, s.projectedK, d.projectedK, s.inverseK);
      } else {
        d.projectedQ.set(d.q);
        d.projectedK.set(d.k);
      }
      linearBackward(block.q, d.projectedQ, s.y, d.y);
      linearBackward(block.k, d.projectedK, s.y, d.y);
      linearBackward(block.v, d.v, s.y, d.y);
      if (!this.switches.residual) d.x.fill(0);
      rmsNormBackward(block.attentionNorm, d.y, s.x, d.x, s.inverse);
    }

    /** The block's output = middle + down(silu(gate(z)) * up(z)), z = norm(middle). */
    feedForward(layer) {
      const [block, s, out] = [this.blocks[layer], this.kept[layer], this.after(layer)];
      rmsNorm(block.feedForwardNorm, s.middle, s.z, s.inverseZ, this.eps);
      linear(block.gate, s.z, s.gate);
      linear(block.up, s.z, s.up);
      gated(s);
      linear(block.down, s.hidden, out);
      if (this.switches.residual) addScaled(out, 0, s.middle, 0, 1, out.length);
    }

    /** The gradient of the block's output in gradients.x becomes that of `middle`. */
    feedForwardBackward(layer) {
      const [block, s, d] = [this.blocks[layer], this.kept[layer], this.gradients];
      for (const gradient of [d.hidden, d.y]) gradient.fill(0);
      linearBackward(block.down, d.x, s.hidden, d.hidden);
      gatedBackward(s, d);
      linearBackward(block.gate, d.gate, s.z, d.y);
      linearBackward(block.up, d.up, s.z, d.y);
      if (!this.switches.residual) d.x.fill(0);
      rmsNormBackward(block.feedForwardNorm, d.y, s.middle, d.x, s.inverseZ);
    }
  }

  /** @type {(sizes: Sizes) => void} */
  function checkSizes({ N, V, E, F, H, K, D }) {
    for (const [name, size] of Object.entries({ "B * T": N, V, E, F, "K * D": K * D })) {
      if (size % 4) throw new Error(`${name} must be a multiple of 4, got ${size}`);
    }
    if (H % K) throw new Error(`num_attention_heads must be a multiple of num_key_value_heads, got ${H} and ${K}`);
  }

  /** cos and sin [T, D/2] of position * theta^(-2i/D); without positions every angle is 0. */
  /** @type {(sizes: Sizes, theta: number, positions: boolean) => { cos: Vector, sin: Vector }} */
  function rotations({ T, D }, theta, positions) {
    const angle = (_, at) => (positions ? Math.floor(at / (D / 2)) * theta ** ((-2 * (at % (D / 2))) / D) : 0);
    const angles = Float64Array.from({ length: (T * D) / 2 }, angle);
    return { cos: Float32Array.from(angles, Math.cos), sin: Float32Array.from(angles, Math.sin) };
  }

  // Random numbers

  /** Numbers in [0, 1), the same for a seed on every machine (mulberry32). @type {(seed: number) => () => number} */
  function seededNumbers(seed) {
    let state = seed;
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let bits = Math.imul(state ^ (state >>> 15), 1 | state);
      bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
      return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  /** Numbers of N(0, deviation²), by Box and Muller. */
  /** @type {(random: () => number, deviation: number) => () => number} */
  function gaussian(random, deviation) {
    return () => deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  }

  // The optimizer

  /** Warm-up over the first 20 steps, then a cosine down to 5 % of the largest rate. step: from 0. */
  /** @type {(step: number, steps: number, largest: number) => number} */
  function learningRate(step, steps, largest) {
    const cosine = (1 + Math.cos((Math.PI * step) / steps)) / 2;
    return largest * Math.min(1, (step + 1) / 20) * (0.05 + 0.95 * cosine);
  }

  /** The norm of all gradients together. @type {(parameters: Parameter[]) => number} */
  function gradientNorm(parameters) {
    return Math.sqrt(parameters.reduce((sum, { grad }) => sum + dot(grad, 0, grad, 0, grad.length), 0));
  }

  /** Step `step`, from 0, of AdamW: gradients clipped to a norm of 1, decay of matrices only. Clears the gradients. */
  /** @type {(parameters: Parameter[], step: number, rate: number, options?: Record<string, number>) => void} */
  function adamW(parameters, step, rate, { beta1 = 0.9, beta2 = 0.98, eps = 1e-8, decay = 0.01 } = {}) {
    const clip = Math.min(1, 1 / (gradientNorm(parameters) + 1e-6));
    const [correct1, correct2] = [1 - beta1 ** (step + 1), 1 - beta2 ** (step + 1)]; // both means begin at 0
    for (const { value, grad, mean, square, columns } of parameters) {
      const kept = columns > 1 ? 1 - rate * decay : 1;
      for (let i = 0; i < value.length; i++) {
        const g = grad[i] * clip;
        mean[i] += (1 - beta1) * (g - mean[i]);
        square[i] += (1 - beta2) * (g * g - square[i]);
        value[i] = kept * value[i] - (rate * (mean[i] / correct1)) / (Math.sqrt(square[i] / correct2) + eps);
      }
      grad.fill(0);
    }
  }

  // The task

  /**
   * Rows "<s> statement ⇒ its translation", all of one length. Every choice is uniform and shows in one word, so the
   * entropy of a row's words is the sum of log(how many could be chosen). Person i never occurs with object i: these
   * pairs are left for the samples.
   */
  function translations(tables, random) {
    const id = new Map(tables.words.map((word, at) => [word, at]));
    const differs = { B: "A", Q: "P", P: "X" };
    const sizesOf = (kind) => tables.sentences[kind].map((text) => text.split("|").length);
    const longest = Math.max(...tables.told.flatMap(sizesOf));
    const kinds = tables.told.filter((kind) => sizesOf(kind).every((size) => size === longest));

    function say(kind, language, slots) {
      const spell = (word) => (word in slots ? tables[tables.slots[word]][language][slots[word]] : word);
      return tables.sentences[kind][language].split("|").map((word) => id.get(spell(word)));
    }

    function row() {
      let entropy = 0;
      const pick = (items) => {
        entropy += Math.log(items.length);
        return items[Math.floor(random() * items.length)];
      };
      const eight = [0, 1, 2, 3, 4, 5, 6, 7];
      const slots = {};
      const kind = pick(kinds);
      for (const letter of tables.sentences[kind][0].split("|")) {
        if (letter in tables.slots) slots[letter] = pick(eight.filter((person) => person !== slots[differs[letter]]));
      }
      return { ids: both(kind, slots), entropy };
    }

    const both = (kind, slots) => [0, ...say(kind, 0, slots), id.get(tables.translate), ...say(kind, 1, slots)];
    const samples = [0, 1, 2, 3].map((i) =>
      both(kinds[i % kinds.length], { P: i, X: i, A: i + 2, B: i + 4, Q: i + 3 }),
    );
    return { row, samples, length: 2 * longest + 2, given: longest + 2 };
  }

  // The run

  const ROWS = 4; // at a time, so that a step can be taken in slices

  /**
   * All steps; each `yield` is an opportunity to pause. A step without a finite loss and finite gradients ends them
   * with an error, after a last look at the weights that gave the loss before.
   */
  /** @type {(options: Options, report: Hear) => Generator<void, void>} */
  function* steps({ config, switches, tables, steps: count, batch, rate, seed, samplesEvery }, report) {
    if (batch % ROWS) throw new Error(`batch must be a multiple of ${ROWS}, got ${batch}`);
    const task = translations(tables, seededNumbers(seed + 1));
    const model = new Model(config, switches, ROWS, task.length, seededNumbers(seed));
    const words = batch * (task.length - 1);
    const good = model.parameters.map(({ value }) => value.slice()); // the weights of the last finite loss

    function* look(step) {
      const rows = yield* continued(model, task);
      if (rows) report({ type: "samples", step, rows });
    }

    for (let step = 0; step < count; step++) {
      let [loss, entropy] = [0, 0];
      for (let rows = 0; rows < batch; rows += ROWS) {
        const some = Array.from({ length: ROWS }, task.row);
        entropy += some.reduce((sum, row) => sum + row.entropy, 0) / words;
        loss += model.accumulate(
          some.flatMap(({ ids }) => ids),
          words,
        );
        yield;
      }
      if (!Number.isFinite(loss + gradientNorm(model.parameters))) {
        model.parameters.forEach(({ value }, i) => value.set(good[i]));
        if (step > 0) yield* look(step - 1);
        const { initializer_range: range } = config;
        throw new Error(
          `in step ${step + 1} the loss is ${loss} or a gradient is not finite: a smaller rate than ${rate} or ` +
            `smaller weights to begin with than ${range} may help`,
        );
      }
      model.parameters.forEach(({ value }, i) => good[i].set(value));
      adamW(model.parameters, step, learningRate(step, count, rate));
      report({ type: "progress", step: step + 1, loss, entropy });
      if ((step + 1) % samplesEvery === 0) yield* look(step + 1);
    }
    report({ type: "done" });
  }

  /** The samples with what the model writes after the given words, always the likeliest; null where none is. */
  function* continued(model, { samples, given, length }) {
    const { V } = model.sizes;
    const rows = samples.map((ids) => ids.map((id, at) => (at < given ? id : 0)));
    for (let at = given; at < length; at++) {
      const logits = model.forward(rows.flat());
      if (logits.some(Number.isNaN)) return null;
      rows.forEach((ids, b) => {
        const row = logits.subarray((b * length + at - 1) * V, (b * length + at) * V);
        ids[at] = row.indexOf(Math.max(...row));
      });
      yield;
    }
    return rows.map((ids, b) => ({ ids, given, expected: samples[b].slice(given) }));
  }

  /** Take steps in slices of some milliseconds; returns what stops them. */
  /** @type {(options: Options, report: Hear, milliseconds: number) => () => void} */
  function run(options, report, milliseconds) {
    const work = steps(options, report);
    let stopped = false;
    function slice() {
      const until = performance.now() + milliseconds;
      try {
        while (!stopped && !work.next().done) if (performance.now() > until) return void setTimeout(slice);
      } catch (error) {
        report({ type: "error", message: error.message });
      }
    }
    slice();
    return () => (stopped = true);
  }

  return { run, Model, adamW, learningRate, translations, seededNumbers };
}
