// What the switch between a figure's example and the reader's story says.

export const liveSourceWords = {
  en: {
    label: "what the figure shows",
    sources: { example: "Example", story: "This story" },
    loading: "The trained model is on its way…",
    unavailable: "The trained model is not within reach: there is no kernel and no script of this page that brings it.",
    reads: (count, last) => `The book's trained model reads this story: ${count} tokens, the last is “${last}”.`,
    change: "change the story",
    words: "the words of the story",
    layer: "layer",
    head: "head",
    telling: {
      recall: (layer, head, lost) =>
        `Head ${head} of layer ${layer} looks for the place; without it, ${lost} of such answers are lost.`,
    },
    percent: (number) => `${number} %`,
  },
};
