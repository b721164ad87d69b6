// The words of the pipe and the mill, by language.

export const pipeAndMillWords = {
  en: {
    titleCompact: "How much of the time does the mill turn?",
    titles: {
      texts: "One text: the mill waits. Many texts: the barrels wait.",
      models: "What fits the core's own cache never waits for bytes.",
    },
    captions: {
      texts:
        "Measured on one core. Gray: reading the weights alone. Strong: the same step with its weights at hand. " +
        "Orange: half of the runs. How finely turning and waiting alternate is only drawn.",
      models:
        "Measured on one core: 16 blocks of width 768, 8 of width 512, and the book's little model, " +
        "which fits into the core's own cache. Strong is what is left with the weights at hand, calls included.",
    },
    more: "",
    texts: "texts",
    textsValue: (count) => String(count),
    weights: "the weights are",
    places: { memory: "in memory", hand: "at hand" },
    model: "weights of",
    play: "Play a step",
    stop: "Stop",
    slower: (factor) => `${factor} times slower`,
    memory: "memory",
    bytes: (count) => `${count} MB`,
    grindsFor: (texts) => (texts === 1 ? "1 text" : `${texts} texts`),
    lanes: {
      pipe: "its bytes alone",
      mill: "its arithmetic alone",
      hand: "the step with its weights at hand",
      step: "the step",
    },
    none: "none come",
    ms: (number) => `${number} ms`,
    numbers: { step: "a step", turns: "the mill turns", words: "words/s" },
    percent: (number) => `${number}\u00a0%`,
    verdict: {
      waits: (waits, factor) => `The mill waits for ${waits} of a step ${factor} times as long as that of one text.`,
      one: (waits) => `The mill waits for ${waits} of the step.`,
      busy: "The mill turns nearly all the time.",
      fits: "Hardly any of this step waits for bytes.",
      hand: (step, memory) => `With its weights at hand the same step takes ${step}, not ${memory}.`,
      none: "With its weights at hand the step takes as long: it never waited for them.",
    },
    picture: (texts, step, turns) =>
      `A pipe from memory leads to a mill. Texts: ${texts}. A step takes ${step}, in ${turns} of which the mill turns.`,
  },
};
