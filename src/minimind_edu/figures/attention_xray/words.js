// What the attention X-ray says.

export const attentionXrayWords = {
  en: {
    title: "Softmax turns scores into weights: every row adds up to 1.",
    titleCompact: "Choose a token: its weights add up to 1, and they mix the values.",
    caption: "Choose any cell: row query, column key.",
    choose: "Choose a word: it reads itself and the words before it. The stronger its color, the larger the weight.",
    more: "More: a story, RoPE, QK-norm",
    headDim: "head_dim D",
    switches: {
      scaled: "divide by √D",
      causal: "causal mask",
      permuted: "permute",
    },
    others: { rope: "RoPE", qk_norm: "QK-norm" },
    scores: "Scores",
    scoresNote: "before softmax",
    weights: "Weights",
    weightsNote: "after softmax",
    query: "query",
    sum: "sum",
    cell: (query, key, text) => `${query} reads ${key}: ${text}`,
    score: "The score ",
    origin: (dim) => ` the sum of ${dim} products`,
    products: (positive, dim, sum) => `${positive} of ${dim} products are positive; the sum is ${sum}`,
    dot: (products, dot) => `${products} = ${dot}`,
    scaled: (dot, dim, score) => `, and ${dot} / √${dim} = ${score}`,
    bare: " (not scaled)",
    masked: "; it is in the future, so the mask puts −∞ in its place",
    end: ".",
    receives: ["What ", " receives"],
    mixed: " a mix of the values",
    value: (weight, token) => `${weight}·value(${token})`,
    reader: "the token that reads",
    future: "future",
    reads: (reader, shares) => `${reader} reads ${shares}`,
    share: (token, weight) => `${token} ${weight}`,
    verdictSame: "✓ Permuted: every token receives exactly what it received before.",
    verdictChange: (change, hasRope, hasMask) => {
      const tellers = hasRope && hasMask ? "RoPE and the mask tell" : `${hasRope ? "RoPE" : "The mask"} tells`;
      return `≠ Permuted: outputs change by up to ${change}. ${tellers} the head where each token is.`;
    },
    verdictFirst: (token) =>
      `Nothing comes before the first token: “${token}” reads itself, with weight 1, whatever its score.`,
    verdictSaturated: (token, share) =>
      `Saturated: “${token}” gives one token ${share} of its weight, and the others hardly count.`,
    verdictSpread: (token, largest) => `“${token}” reads from several tokens; the largest weight is ${largest}.`,
    verdictStory: (token, key, weight) => `“${token}” reads “${key}” most, with weight ${weight}.`,
    percent: (number) => `${number} %`,
    spread: "spread of the scores (std)",
    largest: "largest weight, mean of the rows",
    change: "change by permuting",
    none: "–",
    note: (token) => `The vectors are random, and one key (${token}) is twice as long as the others.`,
  },
};
