// The words of the sampler, by language.

const percent = (share) => {
  const value = 100 * share;
  return `${value.toFixed((value >= 0.05 && value < 9.95) || (value > 99 && value < 99.95) ? 1 : 0)} %`;
};

export const samplerWords = {
  en: {
    title: "The knobs reshape the distribution, and the draws follow its new shape.",
    caption: "Press a bar to add its word to the text. The trained model then predicts the next one.",
    more: "More: presets, top-k, top-p, min-p, repetition penalty, your own story",
    start: "What can follow the text",
    starts: { broad: "many words", medium: "a few places", sharp: "one word" },
    percent,
    others: (count) => `${count} other words`,
    cut: "cut",
    bar: (word, before, after, share) =>
      `${word}: ${percent(before)}, ${after === null ? "cut" : `${percent(after)} after the knobs`}` +
      (share === null ? "" : `, ${percent(share)} of the draws`),
    legend: { before: "the model", after: "after the knobs", drawn: "share of the draws" },
    presets: "preset",
    presetNames: { plain: "no knobs", greedy: "greedy", careful: "careful", free: "free" },
    knobs: {
      repetition_penalty: "repetition penalty",
      temperature: "temperature",
      top_k: "top-k",
      top_p: "top-p",
      min_p: "min-p",
    },
    off: "off",
    left: (value, count) => `${value}, ${count} left`,
    order: "They apply in this order. A dotted line marks words that are already in the text.",
    recipe: (active) => (active.length ? active.join(" → ") : "no knob is on"),
    verdict: {
      plain: "Nothing is changed: these are the model's own probabilities.",
      one: (word, share) => `Only “${word}” is left: every draw gives it. The model gave it ${percent(share)}.`,
      cut: (left, all, share) =>
        `${left} of ${all} words are left. The cut words held ${percent(share)}; the rest shares it.`,
      penalized: "All words are left; those already in the text have become less likely.",
      sharper: "All words are left; likely ones have become likelier.",
      flatter: "All words are left; unlikely ones have become likelier.",
    },
    drawOne: "Draw 1",
    drawMany: (count) => `Draw ${count}`,
    take: (word) => (word ? `Take “${word}”` : "Take it"),
    back: "Take back",
    newSeed: "Other draws: change the seed",
    before: "entropy of the model",
    after: "after the knobs",
    nats: (value) => `${value} nats`,
    gap: (count) => (count ? `gap after ${count} draws` : "gap between draws and bars"),
    none: "–",
    status: {
      ready: "",
      loading: "The trained model is on its way…",
      unavailable: "The trained model is not within reach, so the text cannot grow here.",
      full: "The text is as long as it gets here. Take words back, or choose another start.",
    },
  },
};
