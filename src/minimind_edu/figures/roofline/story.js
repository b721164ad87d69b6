// The living model under the roof: its sizes as costs are counted from, and the time that it takes in this page.

const TIMING = 100; // milliseconds in which the story is read again and again: at first, a browser's code is slow

/** The sizes of the living model, as callCost takes them. */
export function costSizes({ living }) {
  const { config } = living.model;
  return {
    hidden: config.hidden_size,
    layers: config.num_hidden_layers,
    heads: config.num_attention_heads,
    kvHeads: config.num_key_value_heads,
    vocabulary: config.vocab_size,
    headDim: config.head_dim,
    inner: config.intermediate_size,
    hasQkNorm: config.use_qk_norm,
  };
}

/** Seconds that a token of the story takes here, one decode step after the other: the fastest reading of several. */
export function secondsPerToken({ living, ids }) {
  const times = [];
  const begin = performance.now();
  while (times.length < 3 || performance.now() - begin < TIMING) {
    const start = performance.now();
    living.model.run(ids);
    times.push(performance.now() - start);
  }
  return Math.min(...times) / 1000 / ids.length;
}
