// What a call of a MiniMind costs and the least time it can take: minimind_edu.measure.costs once more, from sizes. No
// DOM.

import { intermediateSize } from "../parameter_ledger/math.js";

/**
 * sizes: {hidden, layers, heads, kvHeads, vocabulary, batch, itemsize}; `fresh` new positions after `past` cached ones.
 * A model that is not built by MiniMind2's rules says its own {headDim, inner: F, hasQkNorm}.
 */
export function callCost(sizes, fresh, past) {
  const { hidden, layers, heads, kvHeads, vocabulary, batch, itemsize } = sizes;
  const { headDim = hidden / heads, inner = intermediateSize(hidden, "minimind2"), hasQkNorm = false } = sizes;
  const projections = 2 * hidden * headDim * (heads + kvHeads);
  const matrices = layers * (projections + 3 * hidden * inner);
  const head = vocabulary * hidden;
  const norms = layers * (2 * hidden + (hasQkNorm ? 2 * headDim : 0)) + hidden;
  const attention = 2 * layers * heads * headDim * fresh * (past + fresh);
  return {
    operations: 2 * batch * (fresh * matrices + attention + head),
    weightBytes: itemsize * (matrices + norms + head),
    cacheBytes: itemsize * 2 * layers * kvHeads * headDim * batch * (past + fresh),
  };
}

/** One new token for every sequence, which attends to `context` positions, itself included. */
export function decodeCost(sizes, context) {
  return callCost(sizes, 1, context - 1);
}

/** A prompt of `context` tokens in one call. */
export function prefillCost(sizes, context) {
  return callCost(sizes, context, 0);
}

/** Where a cost lies under the roof of machine {bandwidth, peak}, and the seconds it needs at least. */
export function underRoof(cost, machine) {
  const bytes = cost.weightBytes + cost.cacheBytes;
  const moving = bytes / machine.bandwidth;
  const computing = cost.operations / machine.peak;
  const seconds = Math.max(moving, computing);
  return {
    intensity: cost.operations / bytes,
    attainable: cost.operations / seconds,
    moving,
    computing,
    seconds,
    limit: moving > computing ? "memory" : "arithmetic",
  };
}

/** The most operations a second at this intensity. */
export function attainableAt(intensity, machine) {
  return Math.min(machine.peak, intensity * machine.bandwidth);
}

/** The option whose intensity is nearest to `wanted` on a logarithmic scale. */
export function nearestIntensity(options, intensityOf, wanted) {
  const distance = (option) => Math.abs(Math.log(intensityOf(option) / wanted));
  return options.reduce((best, option) => (distance(option) < distance(best) ? option : best));
}

const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** 165200000000 -> "165 G": three significant digits at most. */
export function withPrefix(x) {
  const step = x > 0 ? Math.max(0, Math.min(PREFIXES.length - 1, Math.floor(Math.log10(x * 1.0005) / 3))) : 0;
  const scaled = x / 1000 ** step;
  const digits = scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2;
  return `${Number(scaled.toFixed(digits))} ${PREFIXES[step]}`.trim();
}

const UNITS = [
  [3600, "h"],
  [60, "min"],
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
];

/** Seconds for reading, to three digits: "7.92 ms", "120 µs", "27.2 min". */
export function duration(seconds) {
  const [size, unit] = UNITS.find(([least]) => seconds >= least) || UNITS[UNITS.length - 1];
  const scaled = seconds / size;
  return `${scaled >= 100 ? Math.round(scaled) : scaled.toPrecision(3)} ${unit}`;
}
