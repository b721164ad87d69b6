// The words of the neurons, by language.

export const neuronWordsWords = {
  en: {
    title: "A neuron is a small memory: it answers to some words and adds others.",
    caption: (stories) =>
      `Answers to: the largest mean of |activation| over ${stories} stories. Pushes up: what the head would read in ` +
      "the neuron's output, in logits, if no later block changed it.",
    more: "More: all three neurons of each block, words pushed down",
    note:
      "Strength is |activation| times the norm of the neuron's column of down_proj. A negative activation swaps the " +
      "words pushed up and down. Keys and values of a memory: Geva et al. (2021).",
    block: (number) => `block ${number}`,
    neuron: (index) => `neuron ${index}`,
    strength: "activation, part of the block",
    fires: "answers to",
    up: "pushes up here",
    down: "pushes down here",
    ofBlock: (share) => `${share} of the strength of its block`,
    percent: (number) => `${number} %`,
    next: "the model goes on with",
    nextWord: (word, share) => `${word} (${share})`,
    half: "half of each block's strength",
    halfOf: (counts, inner) => `${counts.join(", ")} of ${inner} neurons`,
    verdict: {
      pushed: (at, next, blocks) => {
        const where = `${blocks.length > 1 ? "blocks" : "block"} ${blocks.join(", ")}`;
        return `At “${at}”, “${next}” comes next: in ${where} one of these neurons pushes it up.`;
      },
      spread: (at, next) => `At “${at}”, “${next}” comes next, and none of these does it: weaker neurons add up.`,
    },
  },
};
