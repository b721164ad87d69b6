// The words of the story under the lens, by language.

export const storyLensWords = {
  en: {
    title: "Block by block, every word of the story finds what may come next.",
    caption:
      "What the model would say next, if that block were its last. " +
      "Greener: more of its probability is right, by the exact rules of this world.",
    depth: "blocks so far",
    none: "none",
    story: "the story",
    columns: ["embedding", "block 1", "block 2", "block 3", "block 4"],
    here: (word, place) => `at “${word}”, position ${place}`,
    said: (word, share) => `${word}, ${share}`,
    world: "the world allows most",
    percent: (share) => `${share} %`,
    cell: (token, column, word, share) => `${token}, ${column}: ${word}, ${share} right`,
    verdict: (block, share) =>
      block
        ? `After block ${block}, ${share} of what the model would say is right.`
        : `The embedding alone: ${share} of what it would say is right.`,
  },
};
