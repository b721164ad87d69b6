// What MovedQuery computes: arrows, what pairs add, weights. No DOM in here.

import { ropeFrequencies, pairChannels } from "../../web/kit/rope.js";

export const PAIRS = 4; // the fastest, each with a dial

/** The pairs of a vector as arrows, before any rotation: [length, angle in radians] each. */
export function arrowsOf(vector) {
  return pairChannels(vector.length, "half-split").map(([a, b]) => [
    Math.hypot(vector[a], vector[b]),
    Math.atan2(vector[b], vector[a]),
  ]);
}

/** What each pair adds to the score of a query at m with a key at n, divided by the root of D. [D/2] */
export function addsOf(query, key, m, n, base) {
  const frequencies = ropeFrequencies(query.length, base);
  const [q, k] = [arrowsOf(query), arrowsOf(key)];
  return q.map(([length, angle], i) => {
    const between = angle + m * frequencies[i] - k[i][1] - n * frequencies[i];
    return (length * k[i][0] * Math.cos(between)) / Math.sqrt(query.length);
  });
}

/** The softmax of scores. */
export function weightsOf(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / sum);
}

export const sumOf = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
