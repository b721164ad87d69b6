// The words of the neurons, by language.

export const neuronWordsWords = {
  en: {
    title: "A neuron answers to some words and adds others.",
    caption: (stories) =>
      `Bars: part of the block's strength. Answers to: largest mean |activation| in ${stories} stories. ` +
      "Pushes up: its output as the head reads it, in logits.",
    more: "More: all neurons, words pushed down",
    note:
      "What the head reads, later blocks may still change. Strength is |activation| times the norm of the neuron's " +
      "column of down_proj. A negative activation swaps the words pushed up and down. " +
      "Keys and values of a memory: Geva et al. (2021).",
    block: (number) => `block ${number}`,
    neuron: (index) => `neuron ${index}`,
    strength: "activation",
    fires: "answers to",
    up: "pushes up",
    down: "pushes down",
    ofBlock: (share) => `${share} of the strength of its block`,
    percent: (number) => `${number} %`,
    next: "the next word",
    nextWord: (word, share) => `${word}, ${share}`,
    half: "half the strength is in",
    halfOf: (counts, inner) => `${counts.join(", ")} of ${inner}`,
    verdict: {
      pushed: (next, blocks) => {
        const [first, last] = [blocks.slice(0, -1).join(", "), blocks.at(-1)];
        const where = first ? `blocks ${first} and ${last}` : `block ${last}`;
        return `“${next}” comes next; neurons here in ${where} push it up.`;
      },
      spread: (next) => `“${next}” comes next, though none of these neurons lists it: no single one decides.`,
    },
  },
};
