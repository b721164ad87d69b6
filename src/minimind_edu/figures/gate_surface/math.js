// One neuron in the plane of gate g and value u: its output, and where in the plane it is larger than a level.

export const LIMIT = 3; // of both axes, as in Python

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// The error function, Abramowitz and Stegun 7.1.26: off by 1.5e-7 at most.
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const terms = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
  const sum = terms.reduce((inner, term) => (inner + term) * t, 0);
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

const CURVES = {
  silu: (x) => x * sigmoid(x),
  gelu: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2,
  relu: (x) => Math.max(0, x),
};

/** The activation of the gate: how far it is open. */
export function activate(name, g) {
  return CURVES[name](g);
}

/** activation(g)·u with a gate, activation(g) without. */
export function neuronOutput(name, isGated, g, u) {
  return activate(name, g) * (isGated ? u : 1);
}

// The values u of the plane, [low, high], where the output at g is at least `level` (at most, for a negative one).
function bandAt(name, isGated, g, level) {
  const slope = activate(name, g) * Math.sign(level);
  const size = Math.abs(level);
  if (!isGated) return slope >= size ? [-LIMIT, LIMIT] : null;
  const edge = size / slope; // infinite where the gate is shut
  if (Math.abs(edge) > LIMIT || slope === 0) return null;
  return slope > 0 ? [edge, LIMIT] : [-LIMIT, edge];
}

/** The regions of the plane beyond a level: runs of neighboring columns, [g, low, high] each. */
export function regionsBeyond(name, isGated, level, columns) {
  const runs = [[]];
  for (let i = 0; i < columns; i++) {
    const g = -LIMIT + (2 * LIMIT * i) / (columns - 1);
    const band = bandAt(name, isGated, g, level);
    if (band) runs.at(-1).push([g, ...band]);
    else if (runs.at(-1).length) runs.push([]);
  }
  return runs.filter((run) => run.length > 1);
}
