// What a picture of keys needs: how far they reach, and how a query shares its attention between them.

/** The largest distance of any of these points [..., 2] from the middle. */
export function reachOf(groups) {
  return Math.max(...groups.flat().map(([x, y]) => Math.hypot(x, y)));
}

/** The attention weights of a query, divided by √D already, over keys: the softmax of their dot products. */
export function weightsOf(query, keys) {
  const scores = keys.map(([x, y]) => query[0] * x + query[1] * y);
  const most = Math.max(...scores);
  const parts = scores.map((score) => Math.exp(score - most));
  const all = parts.reduce((sum, part) => sum + part, 0);
  return parts.map((part) => part / all);
}

/** How many of these percentages are nearer to all than to a guess. */
export function answered(right) {
  return right.filter((share) => share >= 60).length;
}

/** The percentage of all names that are right: each property has as many. */
export function meanOf(right) {
  return right.reduce((sum, share) => sum + share, 0) / right.length;
}
