// What GuessAhead says.

const percent = (thousandths) => `${Math.round(thousandths / 10)} %`;

export const guessAheadWords = {
  en: {
    title: "What both models say stays. Where the draft says too little, the large model fills in.",
    caption:
      "p: the large model, q: the draft. The dart falls at random along the draft's bar of the guessed word. " +
      "In the solid part the guess is kept, in the dashed part rejected; then the striped leftovers give a word.",
    more: "More: other draws",
    step: "words checked",
    seed: "seed",
    legend: { both: "both, min(p, q)", often: "draft too often", left: "leftover, p − q" },
    p: "p",
    q: "q",
    percent,
    kept: (word, p, q) =>
      p >= q
        ? `“${word}” is kept for sure: the large model gives it ${percent(p)}, the draft ${percent(q)}.`
        : `“${word}” is kept by luck: the chance was ${percent(p)} of ${percent(q)}.`,
    rejected: (word, said) => `“${word}” is rejected, with all guesses after it. From the leftovers comes “${said}”.`,
    free: (word) => `All four guesses are kept, and the same pass gives a word for free: “${word}”.`,
    written: "words written",
    passes: "passes of the large model",
    bar: (word, p, q) => `${word}: large model ${percent(p)}, draft ${percent(q)}`,
  },
};
