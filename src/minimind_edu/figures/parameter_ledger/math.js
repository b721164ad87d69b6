// How many parameters each part of a MiniMind has, from its sizes alone. No DOM.

/** F of the feed-forward network: a multiple of 64, by the rule of the generation. */
export function intermediateSize(hidden, generation) {
  const wanted = generation === "minimind3" ? hidden * Math.PI : Math.trunc((hidden * 8) / 3);
  return 64 * Math.ceil(wanted / 64);
}

/**
 * Parameters by part. sizes: {hidden, layers, vocabulary, heads, kvHeads, generation, tied}; hidden is a multiple of
 * heads. A model by no generation's rules says its own {headDim, inner: F, hasQkNorm}.
 */
export function parameterLedger(sizes) {
  const { hidden, layers, vocabulary, heads, kvHeads, generation, tied } = sizes;
  const { headDim = hidden / heads, hasQkNorm = generation === "minimind3" } = sizes;
  const { inner = intermediateSize(hidden, generation) } = sizes;
  const table = vocabulary * hidden;
  const attention = layers * 2 * hidden * headDim * (heads + kvHeads); // query and output, key and value
  const feedForward = layers * 3 * hidden * inner;
  const norms = layers * (2 * hidden + (hasQkNorm ? 2 * headDim : 0)) + hidden;
  const head = tied ? 0 : table;
  return {
    embedding: table,
    attention,
    feedForward,
    norms,
    head,
    total: table + attention + feedForward + norms + head,
  };
}

/** What tying saves: parameters, and their share of the untied model. */
export function savedByTying(sizes) {
  const untied = parameterLedger({ ...sizes, tied: false });
  return { parameters: untied.head, share: untied.head / untied.total };
}

/** Vocabulary sizes grow by a quarter of a doubling for each step; step 24 is MiniMind's 6,400. */
export function vocabularyAt(step) {
  return Math.round(100 * 2 ** (step / 4));
}

/** The step that comes nearest to a vocabulary. */
export function vocabularyStep(vocabulary) {
  return Math.round(4 * Math.log2(vocabulary / 100));
}

/** The rows of a matrix { shape: [rows, columns], data } nearest to one of them: [{ row, cosine }], nearest first. */
export function nearestRows({ shape: [rows, columns], data }, row, count) {
  const vector = (at) => data.subarray(at * columns, (at + 1) * columns);
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const chosen = vector(row);
  const cosineWith = (other) => dot(chosen, other) / Math.sqrt(dot(chosen, chosen) * dot(other, other));
  const all = Array.from({ length: rows }, (_, at) => ({ row: at, cosine: cosineWith(vector(at)) }));
  const others = all.filter((other) => other.row !== row).sort((a, b) => b.cosine - a.cosine);
  return others.slice(0, count);
}
