// The words of the sampler, by language.

const percent = (share) => {
  const value = 100 * share;
  return `${value.toFixed((value >= 0.05 && value < 9.95) || (value > 99 && value < 99.95) ? 1 : 0)} %`;
};

export const samplerWords = {
  en: {
    title: "Reshape the distribution, and the draws follow.",
    titleCompact: "A low temperature favors the likely words, a high one evens them out.",
    caption: "Press a bar to add its word to the text.",
    more: "More: presets, repetition penalty, your story",
    start: "How many words can follow?",
    starts: { broad: "many", medium: "a few", sharp: "one" },
    percent,
    others: (count) => `${count} others`,
    cut: "cut",
    bar: (word, before, after, share) =>
      `${word}: ${percent(before)}, ${after === null ? "cut" : `${percent(after)} after the knobs`}` +
      (share === null ? "" : `, ${percent(share)} of the draws`),
    legend: { before: "model", after: "after the knobs", drawn: "draws" },
    presets: "preset",
    presetNames: { plain: "none", greedy: "greedy", careful: "careful", free: "free" },
    knobs: {
      repetition_penalty: "repetition penalty",
      temperature: "temperature",
      top_k: "top-k",
      top_p: "top-p",
      min_p: "min-p",
    },
    all: "all",
    none: "none",
    left: (value, count) => `${value} · ${count} left`,
    order:
      "The order is fixed: repetition penalty, temperature, top-k, top-p, min-p. With a penalty, a dotted line marks " +
      "words that the text has already. The gap is the share of draws that would have to move for the dots to reach " +
      "the ends of the bars.",
    recipe: (active) => active.join(" → "),
    verdict: {
      plain: "Nothing is changed: these are the model's own probabilities.",
      one: (word, share) => `All draws give “${word}”; the model gave it ${percent(share)}.`,
      cut: (left, all, share) => `${left} of ${all} words are left; the others had ${percent(share)}.`,
      penalized: "No word is cut; those that the text has already are less likely.",
      sharper: "No word is cut; likely words are likelier still.",
      flatter: "No word is cut; unlikely words get a better chance.",
    },
    drawOne: "Draw 1",
    drawMany: (count) => `Draw ${count}`,
    take: (word) => (word ? `Take “${word}”` : "Take it"),
    back: "Undo",
    newSeed: (seed) => `Other draws: seed ${seed}`,
    before: "entropy of the model",
    after: "entropy after the knobs",
    nats: (value) => `${value} nats`,
    gap: (count) => (count ? `gap after ${count} ${count === 1 ? "draw" : "draws"}` : "gap to the draws"),
    noGap: "–",
    status: {
      ready: "",
      loading: "The trained model is on its way…",
      unavailable: "The trained model is not within reach, so the text cannot grow here.",
      full: "The text is as long as it gets here. Undo words, or choose another start.",
    },
  },
};
