// The rotation of minimind_edu.model.rope in plain numbers, for one head and one position at a time. No DOM in here:
// tests/figures/test_figure_rotation_dials.py compares these functions with torch.

/** inv_freq, [dim/2]: by how many radians each pair turns from one position to the next. */
export function ropeFrequencies(dim, base) {
  return Array.from({ length: dim / 2 }, (_, pair) => 1 / base ** ((2 * pair) / dim));
}

/** Which two channels form each pair: (i, i + dim/2) half-split, (2i, 2i + 1) interleaved. [dim/2][2] */
export function pairChannels(dim, layout) {
  const half = dim / 2;
  return Array.from({ length: half }, (_, pair) =>
    layout === "half-split" ? [pair, pair + half] : [2 * pair, 2 * pair + 1],
  );
}

/** Which frequency the table holds for each channel, as an index into inv_freq: 0123 0123 or 00 11 22 33. [dim] */
export function tableColumns(dim, layout) {
  const columns = new Array(dim);
  pairChannels(dim, layout).forEach((channels, pair) => channels.forEach((c) => (columns[c] = pair)));
  return columns;
}

/** cos * x + sin * (x a quarter turn ahead): a rotation only if both channels of a pair get the same angle. */
export function turnChannels(vector, angles, rotation) {
  const turned = new Array(vector.length);
  for (const [first, second] of pairChannels(vector.length, rotation)) {
    turned[first] = vector[first] * Math.cos(angles[first]) - vector[second] * Math.sin(angles[first]);
    turned[second] = vector[second] * Math.cos(angles[second]) + vector[first] * Math.sin(angles[second]);
  }
  return turned;
}

/** The vector turned for its position, with the table and the rotation laid out separately. */
export function turnForPosition(vector, position, base, table, rotation) {
  const frequencies = ropeFrequencies(vector.length, base);
  const angles = tableColumns(vector.length, table).map((pair) => position * frequencies[pair]);
  return turnChannels(vector, angles, rotation);
}

/** What each pair adds to the dot product. [dim/2] */
export function pairProducts(query, key, layout) {
  return pairChannels(query.length, layout).map(([a, b]) => query[a] * key[a] + query[b] * key[b]);
}

/** The score of a query at position m and a key at position n. */
export function ropeScore(query, key, m, n, base, table, rotation) {
  const q = turnForPosition(query, m, base, table, rotation);
  const k = turnForPosition(key, n, base, table, rotation);
  return q.reduce((sum, value, channel) => sum + value * k[channel], 0);
}

/** The score at each of many distances m − n: products times cosines plus cross terms times sines. */
export function scoresAt(query, key, distances, base, layout) {
  const frequencies = ropeFrequencies(query.length, base);
  const products = pairProducts(query, key, layout);
  const crosses = pairChannels(query.length, layout).map(([a, b]) => query[a] * key[b] - query[b] * key[a]);
  const score = (angle, pair) => products[pair] * Math.cos(angle) + crosses[pair] * Math.sin(angle);
  return distances.map((distance) => frequencies.reduce((sum, f, pair) => sum + score(distance * f, pair), 0));
}

/** The score as the notes have it: every pair's product times the cosine of its turn, the cross term forgotten. */
export function cosineOnlyScore(query, key, distance, base, layout) {
  const frequencies = ropeFrequencies(query.length, base);
  const products = pairProducts(query, key, layout);
  return products.reduce((sum, p, pair) => sum + p * Math.cos(distance * frequencies[pair]), 0);
}

/** [0, 2, 4, ..., 1, 3, 5, ...]: reads interleaved pairs into half-split order. */
export function halfSplitPermutation(dim) {
  return Array.from({ length: dim }, (_, c) => (c < dim / 2 ? 2 * c : 2 * c - dim + 1));
}

/** The angle from a to b, in (-pi, pi]: positive is counter-clockwise. */
export function angleBetween([ax, ay], [bx, by]) {
  return Math.atan2(ax * by - ay * bx, ax * bx + ay * by);
}
