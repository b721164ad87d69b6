// What TwoTables draws, from the stored runs.

// The stored run of one seed, tied or not.
export function runOf(results, tied, seed) {
  return results.runs.find((run) => run.tied === tied && run.seed === seed);
}

// The way of every word up to a stop, in units: [pair][word] -> [[x, y], ...], a point for each stop.
export function waysOf({ points }, stop, pairs) {
  const pointAt = (at, pair, word) => {
    const i = 2 * (2 * (pairs * at + pair) + word);
    return [points[i] / 100, points[i + 1] / 100];
  };
  const way = (pair, word) => Array.from({ length: stop + 1 }, (_, at) => pointAt(at, pair, word));
  return Array.from({ length: pairs }, (_, pair) => [way(pair, 0), way(pair, 1)]);
}

// The largest coordinate of any run: one scale for all pictures.
export function reachOf(results) {
  const all = results.runs.flatMap((run) => Object.values(run.tables).flatMap(({ points }) => points));
  return Math.max(...all.map(Math.abs)) / 100;
}
