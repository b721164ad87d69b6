// The words of the sinking words, by language.

export const sinkingWordsWords = {
  en: {
    title: "What becomes of 16 words?",
    titles: {
      words: "What becomes of 16 words?",
      causes: "Loud attention alone drowns the words; loud networks alone do not.",
    },
    caption:
      "A new, untrained model. A stripe is what one sublayer added, fainter for later blocks: the height is the RMS, " +
      "and stripes share it by their squares. A line below is a word.",
    captionOfCauses:
      "A line is a word of the same new model. Its factor is on what these sublayers add; the others add as they do.",
    more: "",
    size: "size (RMS)",
    angles: "angle of each word to the first",
    degrees: (number) => `${number}°`,
    first: "word 1",
    sixth: "word 6",
    replaced: (share) => `replace word 6: output moves ${share}`,
    loud: "factor on what they add",
    factor: "factor on",
    louder: { both: "both", attention: "attention", networks: "networks" },
    mean: "mean angle to word 1",
    firstReplaced: "output moves, word 1 replaced",
    sixthReplaced: "output moves, word 6 replaced",
    apart: (degrees) => `On average, the words end ${degrees}° from the first.`,
    ends: (degrees, rms) => `On average, the words end ${degrees}° from the first; their RMS is ${rms} at the end.`,
    alike: (degrees) => `Every word has become the first one: ${degrees}° from it.`,
  },
};
