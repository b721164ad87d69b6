// Wavelengths and their scaling as in minimind_edu.model.rope, in plain numbers. No DOM in here:
// tests/figures/test_figure_frequency_comb.py compares these functions with torch.

/** Positions from one full rotation of each pair to the next. [dim/2] */
export function ropePeriods(dim, base) {
  return Array.from({ length: dim / 2 }, (_, pair) => 2 * Math.PI * base ** ((2 * pair) / dim));
}

/** Between which pairs YaRN's ramp runs: [low, high]. */
export function yarnRange(dim, base, context, betaFast, betaSlow) {
  const pairTurning = (beta) => (dim * Math.log(context / (beta * 2 * Math.PI))) / (2 * Math.log(base));
  return [Math.max(Math.floor(pairTurning(betaFast)), 0), Math.min(Math.ceil(pairTurning(betaSlow)), dim - 1)];
}

function yarnScaling(dim, base, context, factor, betaFast, betaSlow) {
  const [low, high] = yarnRange(dim, base, context, betaFast, betaSlow);
  return Array.from({ length: dim / 2 }, (_, pair) => {
    const ramp = Math.min(1, Math.max(0, (pair - low) / Math.max(high - low, 0.001)));
    return 1 - ramp + ramp / factor;
  });
}

function minimind2Scaling(dim, base, context, factor, betaFast, betaSlow) {
  const half = dim / 2;
  const corner = ropePeriods(dim, base).findIndex((period) => period > context);
  return Array.from({ length: half }, (_, pair) => {
    const beta = betaSlow + ((betaFast - betaSlow) * pair) / Math.max(half - 1, 1);
    return corner < 0 || pair < corner ? (beta * factor - beta + 1) / (beta * factor) : 1 / factor;
  });
}

/** By what each pair's frequency is multiplied: formula is none, linear, yarn or minimind2. [dim/2] */
export function pairScaling(formula, dim, base, context, factor, betaFast, betaSlow) {
  if (formula === "yarn") return yarnScaling(dim, base, context, factor, betaFast, betaSlow);
  if (formula === "minimind2") return minimind2Scaling(dim, base, context, factor, betaFast, betaSlow);
  return new Array(dim / 2).fill(formula === "linear" ? 1 / factor : 1);
}

/** How many pairs do not complete a rotation in `length` positions. */
export function unfinishedPairs(dim, base, length) {
  return ropePeriods(dim, base).filter((period) => period > length).length;
}

/** Which pairs meet angles in the longer context that never occurred in the trained one. [dim/2] of booleans */
export function meetsNewAngles(dim, base, context, factor, scaling) {
  // 1e-9: a pair that is slowed by exactly the factor ends at exactly its trained angle
  return ropePeriods(dim, base).map((period, pair) => period > context && scaling[pair] * factor > 1 + 1e-9);
}

/** How far each pair rotates in the trained and in the longer context, in rotations, at most 1. [dim/2] each */
export function reachedShares(dim, base, context, factor, scaling) {
  const periods = ropePeriods(dim, base);
  return {
    trained: periods.map((period) => Math.min(1, context / period)),
    reached: periods.map((period, pair) => Math.min(1, (context * factor * scaling[pair]) / period)),
  };
}

/** The root mean square of what the scaling changes in the score of random q and k at this distance. */
export function scoreChange(dim, base, scaling, distance) {
  const changes = ropePeriods(dim, base).map((period, pair) => {
    const slip = (distance * 2 * Math.PI * (1 - scaling[pair])) / period; // radians
    return 2 - 2 * Math.cos(slip);
  });
  return Math.sqrt(changes.reduce((sum, change) => sum + change, 0) / changes.length);
}
