// The words of the grid of quantization, by language.

export const quantizationGridWords = {
  en: {
    title: "15 levels for each weight keep this model's answers; 3 levels lose them.",
    caption:
      "Above: each weight (dot) moves to the nearest level of its grid. Below: all 29 matrices of the book's trained " +
      "model, rounded like this; outlines are the model before. Its rows are stored in 8 bits, so 8 bits per row " +
      "change nothing.",
    more: "More: who shares a scale, other rows, your story",
    bits: "bits per weight",
    levels: (bits, levels) => `${bits} bits, ${levels} levels`,
    place: (layer, matrix, row, count) => `${matrix} of layer ${layer}, row ${row}: ${count} weights`,
    error: (error, half) => `largest error ${error}, half a step ${half}`,
    step: (step) => `step ${step}`,
    drag: "drag me",
    handle: "the largest weight of the row",
    handleAt: (value, times) => `${value}, ${times} times its own size`,
    row: (bits, zeros, count) => `The row on a grid of ${bits} bits: ${zeros} of ${count} weights become 0`,
    answers: "It answers 12 questions:",
    answer: (said, right) => (said === right ? `${said}, right` : `${said}, wrong: ${right}`),
    asked: (text, said) => `${text}: ${said}`,
    others: "others",
    bar: (word, before, after) => `${word}: ${before} before, ${after} rounded`,
    percent: (p) => `${(100 * p).toFixed(p > 0.0005 && p < 0.9995 ? 1 : 0)} %`,
    change: (before, after) => `${before} → ${after}`,
    verdict: {
      pulled: (size, step, zeros, count) =>
        `One weight of ${size} makes the step ${step}: ${zeros} of ${count} weights become 0. The model keeps its own.`,
      same: "255 levels per row are what the model is stored with: nothing changes.",
      all: (levels, total) => `With ${levels} levels, all ${total} answers are right.`,
      some: (levels, right, total) => `With ${levels} levels, ${right} of ${total} answers are right.`,
      none: (levels, total) => `With ${levels} levels, none of ${total} answers is right.`,
      kept: (levels, word) => `With ${levels} levels, your story still goes on with “${word}”.`,
      lost: (levels, word, instead) =>
        `With ${levels} levels, your story goes on with “${instead}” instead of “${word}”.`,
    },
    size: "bits per weight, with scales",
    rms: "change of the logits (RMS)",
    kl: "KL from the stored model",
    nats: (value) => `${value} nats`,
    less: (value) => `< ${value}`,
    per: "one scale for each",
    perNames: { tensor: "matrix", row: "row", group: "16 weights" },
    layer: "layer",
    matrix: "matrix",
    rowNumber: "row",
    whole: "The whole text of the question:",
    loading: "The trained model is on its way…",
    unavailable: "The trained model is not within reach, so this row cannot be shown.",
  },
};
