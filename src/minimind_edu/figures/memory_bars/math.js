// Where the memory goes, as minimind_edu.measure.memory counts it.

const FLOAT = 4; // bytes of a float32, of a bfloat16, of a token's number
const HALF = 2;
const INDEX = 8;
const RANK = 8; // of LoRA

/** Numbers that a model has learned, all of them and those of its norms. */
export function weightsOf(s) {
  const heads = s.heads + s.kvHeads;
  const norms = s.layers * (2 * s.hidden + (s.qkNorm ? 2 * s.headDim : 0)) + s.hidden;
  const block = 2 * s.hidden * s.headDim * heads + 3 * s.hidden * s.inner;
  const tables = s.vocabulary * s.hidden;
  return { all: tables * (s.tied ? 1 : 2) + s.layers * block + norms, norms, tables };
}

const ropeTables = (s) => 2 * s.positions * s.headDim * FLOAT;

/** Bytes that one token leaves for the backward pass. */
export function keptForBackward(s, length, kind, half) {
  const [lora, narrow] = [kind === "lora", half ? HALF : FLOAT];
  const plain = !half && s.heads !== s.kvHeads;
  const [queries, keys] = [s.heads * s.headDim, s.kvHeads * s.headDim];
  const norm = ((lora ? 1 : 2) * s.hidden + 1) * FLOAT;
  const attentionReads = s.hidden * narrow * (half && !lora ? 3 : 1);
  const networkReads = lora ? 0 : s.hidden * narrow * (half ? 2 : 1);
  const headNorms = s.qkNorm ? (s.heads + s.kvHeads) * ((lora ? 1 : 2) * s.headDim + 1) * FLOAT : 0;
  const fused = 2 * (queries + keys) * narrow + s.heads * FLOAT;
  const attention = plain ? (4 * queries + s.heads * length) * FLOAT : fused;
  const network = (lora ? 3 : 4) * s.inner * narrow;
  const block = 2 * norm + attentionReads + networkReads + headNorms + attention + network;
  const ends = norm + (lora ? 0 : s.hidden * narrow) + INDEX;
  const adapters = lora ? s.layers * 2 * RANK * narrow : 0;
  const headNorm = s.qkNorm ? s.kvHeads * (s.headDim + 1) * FLOAT : 0;
  const never = lora ? norm + headNorm + (plain ? queries * FLOAT : 0) : 0; // before the first adapter
  return s.layers * block + ends + adapters - never;
}

/** The bytes of each part, the two moments at which memory is fullest, and the fuller of the two. */
export function memoryOf(s, { kind, batch, length, half }) {
  const { all, norms, tables } = weightsOf(s);
  const none = { reference: 0, copies: 0, adam: 0, activations: 0, gradients: 0, cache: 0 };
  if (kind === "serve") {
    const itemsize = half ? HALF : FLOAT;
    const cache = batch * length * 2 * s.layers * s.kvHeads * s.headDim * itemsize;
    const logits = batch * s.vocabulary * FLOAT;
    return moments({ ...none, weights: all * itemsize + ropeTables(s), cache, logits });
  }
  const queries = s.heads * s.headDim;
  const adapters = kind === "lora" ? s.layers * 2 * RANK * (s.hidden + queries) : 0;
  const trained = adapters || all;
  const weights = (all + adapters) * FLOAT + ropeTables(s);
  const never = adapters ? s.hidden * (queries + 2 * s.kvHeads * s.headDim + RANK) : 0;
  const matrices = all - norms - (s.tied ? 0 : tables) + adapters - never;
  return moments({
    ...none,
    weights,
    reference: kind === "dpo" ? weights : 0,
    copies: half ? matrices * HALF : 0,
    adam: 2 * trained * FLOAT,
    activations: batch * length * keptForBackward(s, length, kind, half),
    logits: 3 * batch * length * s.vocabulary * FLOAT,
    gradients: 2 * trained * FLOAT, // and as much again, in which Adam computes
  });
}

function moments(parts) {
  const always = parts.weights + parts.reference + parts.adam + parts.cache;
  const backward = always + parts.copies + parts.activations + parts.logits;
  const step = always + parts.gradients;
  return { ...parts, always, backward, step, peak: Math.max(backward, step) };
}

/** Bytes for reading, with three digits. */
export function bytesText(bytes) {
  const [size, unit] = [
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ].find(([least]) => bytes >= 0.9995 * least) ?? [1, "B"];
  const number = bytes / size;
  return `${number.toFixed(number < 9.995 ? 2 : number < 99.95 ? 1 : 0)} ${unit}`;
}
