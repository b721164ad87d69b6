// The words of the neurons, by language.

export const neuronWordsWords = {
  en: {
    title: "A few neurons decide the next word; most can go.",
    caption: (stories) =>
      "The neurons of each block without which the next word changes most: “moves” is the part of all " +
      `probability that goes to other words then. “Answers to” is measured on ${stories} stories.`,
    more: "More: activations, logits, words pushed down",
    note:
      "A neuron answers to the words at which its mean |activation| is largest. Pushes are what the head reads in " +
      "its output, in logits at this word; what it reads in an early block, later blocks may still change. " +
      "A negative activation swaps the words pushed up and down. " +
      "Keys and values of a memory: Geva et al. (2021).",
    neuron: (block, number) => `block ${block}, neuron ${number}`,
    heads: {
      neuron: "press to switch off",
      fires: "answers to",
      up: "pushes up",
      down: "pushes down",
      moves: "moves",
      activation: "activation",
    },
    percent: (number) => `${number} %`,
    glossed: (word, gloss) => (gloss ? `“${word}” (${gloss})` : `“${word}”`),
    next: (token) => `after “${token}”`,
    nextWithout: (token, block, number) => `after “${token}”, without neuron ${block}.${number}`,
    verdict: {
      press: "Press a neuron to switch it off.",
      same: (word, share, isNothing) =>
        `“${word}” still comes next, at ${share}: ` +
        (isNothing ? "the other neurons and the heads do without it." : "it had a say, but it does not decide."),
      other: (word, then, share) => `“${word}” is gone: ${then} comes next, at ${share}.`,
    },
  },
};
