// Rounding to the levels of a grid, as minimind_edu.model.quantization does it, and how far two models are apart.
// No DOM.

export const GROUP = 16; // columns that share a scale, where a group does

/** The largest value of so many bits; the grid has twice as many levels, and 0. */
export const largestValue = (bits) => 2 ** (bits - 1) - 1;

/** To the nearest whole number; a half goes to the even one, as in PyTorch. */
export function roundHalfEven(x) {
  const up = Math.round(x);
  return up - x === 0.5 && up % 2 !== 0 ? up - 1 : up;
}

/** How many neighbors share a scale, in a matrix of so many weights and columns. */
const sharing = (per, count, columns) => ({ tensor: count, row: columns, group: GROUP })[per];

function largestSize(data, from, to) {
  let largest = 0;
  for (let i = from; i < to; i++) largest = Math.max(largest, Math.abs(data[i]));
  return largest;
}

/** In float32, for the last digit may decide which level is nearest. Where all is 0, the scale is 1. */
const scaleOf = (largest, bits) => Math.fround(largest / largestValue(bits)) || 1;
const toLevel = (weight, scale) => roundHalfEven(Math.fround(weight / scale));

/** A matrix { shape, data } with each weight on the nearest level. */
export function roundedMatrix({ shape, data }, bits, per) {
  const [step, out] = [sharing(per, data.length, shape[1]), new Float32Array(data.length)];
  for (let from = 0; from < data.length; from += step) {
    const scale = scaleOf(largestSize(data, from, from + step), bits);
    for (let i = from; i < from + step; i++) out[i] = toLevel(data[i], scale) * scale;
  }
  return { shape, data: out };
}

/** All tensors of a model, its matrices rounded; gains of norms are vectors and stay as they are. */
export function roundedTensors(tensors, bits, per) {
  const rounded = ([name, tensor]) => [name, tensor.shape.length === 2 ? roundedMatrix(tensor, bits, per) : tensor];
  return Object.fromEntries(Object.entries(tensors).map(rounded));
}

/**
 * One row of a matrix, for a picture. others: the largest size of a weight in the other rows. Returns { spans: [{ from,
 * to, scale }], the weights that share a scale; rounded: each on its level; worst: the index of the largest error,
 * error: this error; half: half a step of its span; zeros: how many weights become 0 }.
 */
export function roundedRow(values, { bits, per, others }) {
  const step = per === "group" ? GROUP : values.length;
  const spans = Array.from({ length: values.length / step }, (_, i) => {
    const [from, to] = [i * step, (i + 1) * step];
    const largest = largestSize(values, from, to);
    return { from, to, scale: scaleOf(per === "tensor" ? Math.max(largest, others) : largest, bits) };
  });
  const scaleAt = (i) => spans[Math.floor(i / step)].scale;
  const rounded = values.map((weight, i) => toLevel(weight, scaleAt(i)) * scaleAt(i));
  const errors = values.map((weight, i) => Math.abs(rounded[i] - weight));
  const error = Math.max(...errors);
  const worst = errors.indexOf(error);
  return {
    spans,
    rounded,
    worst,
    error,
    half: scaleAt(worst) / 2,
    zeros: rounded.filter((level) => level === 0).length,
  };
}

/** Natural logarithms of softmax(logits). */
function logProbabilities(logits) {
  const largest = Math.max(...logits);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return Array.from(logits, (logit) => logit - largest - Math.log(sum));
}

/** KL(before, after) in nats, the mean over many logits [V]. */
export function divergenceOf(before, after) {
  let kl = 0;
  before.forEach((logits, at) => {
    const [p, q] = [logProbabilities(logits), logProbabilities(after[at])];
    p.forEach((log, i) => (kl += Math.exp(log) * (log - q[i])));
  });
  return kl / before.length;
}
