// Every word of the model map that a reader sees or hears.

export const modelMapWords = {
  en: {
    title: "One line runs through the whole model: every part reads from it and adds to it. Press a part to zoom in.",
    more: "",
    names: {
      model: "Model",
      block: "Block",
      attention: "Attention",
      head: "Head",
      pair: "Pair",
      product: "Dot product",
      embedding: "Embedding",
      stream: "Residual stream",
      norm: "RMSNorm",
      logits: "Logits",
      generation: "Generation",
      ffn: "Feed-forward network",
      experts: "Mixture of experts",
      rope: "RoPE",
      cache: "KV cache",
      groups: "Grouped heads",
      output: "Output projection",
      scores: "Scores",
      weights: "Weights",
      values: "Values",
      frequencies: "Frequencies",
    },
    // one sentence for each part, from the sizes of the model
    says: {
      model: (s) =>
        `Token ids become vectors, ${s.layers} equal blocks refine them, and every token gets a score for being next.`,
      block: () =>
        "A block adds twice to the stream: first what attention reads from other tokens, then what a small network makes of each token.",
      attention: (s) =>
        `Each token asks (q), is found (k) and is read (v): ${s.heads} heads look at the text at the same time.`,
      head: () =>
        "A head compares every token with all tokens up to itself, turns the scores into weights, and mixes the values by them.",
      pair: (s) =>
        `RoPE takes the ${s.head_dim} channels of a head in ${s.head_dim / 2} pairs and rotates each pair by an angle that grows with the position.`,
      product: () =>
        "It ends with numbers multiplied and added. Their sum is one score: how much one token has to say to another.",
      embedding: (s) => `A table with one row for each of the ${s.vocabulary} tokens; a token's row begins its stream.`,
      stream: (s) =>
        `${s.hidden} numbers per token. Nothing replaces them: every part reads a copy and adds its result.`,
      norm: () =>
        "RMSNorm brings the copy of the stream that a part reads to a standard size; the stream itself stays as it is.",
      logits: (s) =>
        s.tied
          ? "The stream is compared with every row of the embedding table: one logit per token of the vocabulary."
          : "A last matrix makes one logit per token of the vocabulary.",
      generation: () =>
        "The logits become probabilities, one token is drawn, and it joins the input: that is how a text grows.",
      ffn: (s) => `Every token for itself: from ${s.hidden} numbers to ${s.inner}, through a gate (SwiGLU), and back.`,
      experts: (s) =>
        `${s.moe ? "A" : "MiniMind's larger models replace the network: a"} router sends each token to ${s.chosen} of ${s.experts} networks.`,
      rope: () =>
        "RoPE rotates queries and keys by their position, so that a score depends on how far apart two tokens are.",
      cache: () => "Keys and values of earlier tokens are kept, so that a new token computes only its own.",
      groups: (s) =>
        `${s.heads} query heads share ${s.kv_heads} key/value heads: ${s.heads / s.kv_heads} queries read the same keys and values.`,
      output: (s) => `One matrix mixes what ${s.heads} heads have found; the result is added to the stream.`,
      scores: (s) =>
        `Each query times each key, divided by √${s.head_dim}. Tokens in the future are hidden by the mask.`,
      weights: () => "Softmax turns a row of scores into weights that sum to 1.",
      values: () => "A token receives the values of the tokens it reads, mixed by its weights.",
      frequencies: () =>
        "The first pair rotates fastest, the last one slowest: near and far distances both leave a mark.",
    },
    weights: (count) => `${count} weights`,
    noWeights: "nothing learned",
    read: (label) => `Read chapter ${label}`,
    toCome: "Its chapter is to come.",
    here: "You are here",
    levels: "Zoom level",
    zoomIn: "Zoom in",
    zoomOut: "Zoom out",
    strip: "Where this is in the model",
    picture: (name, sentence) => `${name}. ${sentence}`,
    opens: (name) => `${name}: zoom in`,
    tells: (name) => `${name}: what it does`,
    isHere: (label) => `${label} (you are here)`,
    // in the drawings
    tokenIds: "token ids",
    embedding: "embedding",
    blocks: (count) => `${count} equal blocks`,
    norm: "norm",
    logits: "logits",
    next: "the next token joins the input",
    tied: "the same table",
    stream: "residual stream",
    attention: "attention",
    ffn: "feed-forward",
    experts: "or experts",
    expertsIn: "experts",
    heads: (count) => `${count} heads`,
    q: "q",
    k: "k",
    v: "v",
    rope: "RoPE",
    cache: ["KV", "cache"],
    groups: (count) => `${count} share one k, v`,
    output: "out",
    in: "from the norm",
    back: "to the stream",
    scores: "scores",
    softmax: "softmax",
    weightsOf: "weights",
    values: "× v",
    result: "output",
    queriesDown: "queries",
    keysAcross: "keys",
    pairs: (q, k, count) => `q of “${q}” · k of “${k}”: ${count} pairs of channels, added`,
    pairsShort: (count) => `one score = ${count} pairs, added`,
    query: (token) => `q of “${token}”`,
    key: (token) => `k of “${token}”`,
    rotated: (position, angle) => [`stands at position ${position}: rotated by ${angle}°`],
    rotatedShort: (position, angle) => [`position ${position}:`, `rotated by ${angle}°`],
    compare: "multiply and add",
    speeds: "every pair has its own speed",
    thisPair: (index) => `pair ${index}`,
    allPairs: (count, sum) => `${count} such sums: ${sum}`,
    divided: (root) => `÷ √${root}`,
  },
};
