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

const INNER = 82; // how far from the center of a dial letters may stand, in its units
const HEAD = 6; // from the tip of an arrow to the middle of its head

/**
 * Where the letters of arrows ([length, angle] each) stand: near their tips, on the dial, `gap` from each other, and
 * off heads and other arrows by so much that none is hidden.
 */
export function lettersApart(arrows, gap) {
  const at = (far, angle) => [far * Math.cos(angle), -far * Math.sin(angle)];
  const clear = 0.65 * gap;
  const places = arrows.map(([length, angle], i) => {
    const far = length + 0.75 * gap;
    if (far <= INNER) return at(far, angle);
    // no room beyond the tip: beside the head, on the side away from the nearest of the others
    const between = arrows.filter((_, j) => j !== i).map(([, other]) => Math.sin(angle - other) || 1);
    const nearest = between.sort((a, b) => Math.abs(a) - Math.abs(b))[0] ?? 1;
    return at(Math.min(length, INNER), angle + (Math.sign(nearest) * clear) / INNER);
  });
  const push = (place, from, least, share) => {
    const away = [place[0] - from[0], place[1] - from[1]];
    const between = Math.hypot(...away);
    if (between >= least) return;
    const [x, y] = between > 1e-6 ? away.map((part) => part / between) : [1, 0];
    const step = share * (least - between + 0.5);
    place[0] += step * x;
    place[1] += step * y;
  };
  for (let round = 0; round < 60; round++) {
    places.forEach((place, i) => {
      arrows.forEach(([length, angle], j) => {
        const [x, y] = at(1, angle);
        const along = Math.min(Math.max(place[0] * x + place[1] * y, 0), length);
        if (j !== i) push(place, at(along, angle), 0.45 * gap, 0.5);
        push(place, at(length - HEAD, angle), clear, 0.5);
      });
      places.forEach((other, j) => {
        if (j === i) return;
        const before = [...place];
        push(place, other, gap, 0.5);
        push(other, before, gap, 0.5);
      });
      const out = Math.max(1, Math.hypot(...place) / INNER);
      place.forEach((part, axis) => (place[axis] = part / out));
    });
  }
  return places;
}
