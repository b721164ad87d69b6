// Who wrote a token, and what neurons write: looks into a trace with the weights beside it. No DOM.
// tests/inside/test_inside_insight.py compares it with torch.

import { isPacked, multiply, restored, rowOf } from "../web/live/model.js";
import { largest } from "./largest.js";

/**
 * @typedef {import("../web/live/model.js").Matrix} Matrix
 * @typedef {Float32Array} Vector
 * @typedef {{ logit: number, embedding: number, blocks: { heads: number[], feed: number }[] }} Written
 */

const dot = (a, b, offset = 0) => b.reduce((sum, value, i) => sum + value * a[offset + i], 0);

/** A matrix, transposed, times a vector [rows]: [columns]. @type {(matrix: Matrix, x: ArrayLike<number>) => Vector} */
function multiplyBack({ shape: [rows, columns], data, scale }, x) {
  const sum = new Float64Array(columns);
  for (let row = 0; row < rows; row++) {
    const value = x[row] * (scale ? scale[row] : 1);
    for (let i = 0, at = row * columns; i < columns; i++) sum[i] += value * data[at + i];
  }
  return new Float32Array(sum);
}

/** A column of a matrix: [rows]. @type {(matrix: Matrix, column: number) => Vector} */
function columnOf({ shape: [rows, columns], data, scale }, column) {
  return Float32Array.from({ length: rows }, (_, row) => data[row * columns + column] * (scale ? scale[row] : 1));
}

/** @type {(unpacked: { config: any, tensors: Record<string, Matrix> }) => any} */
export function createInsight({ config, tensors }) {
  const { num_hidden_layers: L, num_attention_heads: H, head_dim: D, vocab_size: V, rms_norm_eps: eps } = config;
  const whole = new Map(); // of int4, which cannot be read by rows: the floats of those that were asked for
  function matrix(name) {
    if (!isPacked(tensors[name])) return tensors[name];
    if (!whole.has(name)) whole.set(name, restored(tensors[name]));
    return whole.get(name);
  }
  const head = matrix("lm_head.weight" in tensors ? "lm_head.weight" : "model.embed_tokens.weight"); // [V, E]
  const gain = tensors["model.norm.weight"].data; // [E]
  let mean = null;
  /** The mean row of the output matrix: what lifts all tokens alike lifts none above the others. */
  const meanRow = () => (mean ??= multiplyBack(head, new Float32Array(V).fill(1 / V)));

  /**
   * The logit of a token, above the mean of all or above another's, as a sum over the token's own embedding, every head
   * and every feed-forward part. The sum is exact, for the last norm divides all of them by one number. silenced: the
   * heads that add nothing, as "layer.head".
   */
  /** @type {(trace: any, token: number, against?: number | null, silenced?: Set<string>) => Written} */
  function wrote({ blocks, embedding, final }, token, against = null, silenced = new Set()) {
    const by = 1 / Math.sqrt(dot(final, final) / final.length + eps);
    const other = against === null ? meanRow() : rowOf(head, against);
    const direction = rowOf(head, token).map((value, i) => (value - other[i]) * gain[i] * by); // [E]
    const written = blocks.map((block, l) => {
      const back = multiplyBack(matrix(`model.layers.${l}.self_attn.o_proj.weight`), direction); // [H*D]
      const push = (values, h) => (silenced.has(`${l}.${h}`) ? 0 : dot(back, values, h * D));
      return { heads: block.heads.map(push), feed: dot(direction, block.fed) };
    });
    return { logit: dot(direction, final), embedding: dot(direction, embedding), blocks: written };
  }

  /**
   * The neurons that write most into the stream in a block, and for each the tokens that it lifts most: { count: of
   * all, expert: which one they are of, or null, strongest: [{ neuron, activation, size, tokens }] }.
   */
  function neurons({ blocks }, l, count = 6, k = 5) {
    const { route, experts, hidden: alone } = blocks[l];
    const expert = route ? route.chosen[0] : null;
    const hidden = route ? experts[0].hidden : alone; // [F]
    const part = expert === null ? "mlp" : `mlp.experts.${expert}`;
    const down = matrix(`model.layers.${l}.${part}.down_proj.weight`); // [E, F]
    const sizes = new Float64Array(hidden.length); // of the columns, squared
    const [rows, columns] = down.shape;
    for (let row = 0; row < rows; row++) {
      const scale = (down.scale ? down.scale[row] : 1) ** 2;
      for (let i = 0; i < columns; i++) sizes[i] += scale * down.data[row * columns + i] ** 2;
    }
    const written = hidden.map((value, i) => Math.abs(value) * Math.sqrt(sizes[i]));
    const strongest = largest(written, count).map(([neuron, size]) => {
      const sign = Math.sign(hidden[neuron]);
      const lifted = multiply(
        head,
        columnOf(down, neuron).map((value, i) => value * gain[i] * sign),
      ); // [V]
      return { neuron, activation: hidden[neuron], size, tokens: largest(lifted, k).map(([id]) => id) };
    });
    return { count: hidden.length, expert, strongest };
  }
  return { wrote, neurons };
}
