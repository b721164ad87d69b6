// The words of the residual stream, by language.

export const residualStreamWords = {
  en: {
    title: "Pre-norm keeps all that was ever added; post-norm lets the old fade.",
    caption:
      "A stripe is what one sublayer added, fainter for later blocks. " +
      "The height is the RMS; stripes share it by their squares.",
    more: "More: depth, final norm, loss",
    captionOfStory: (word) =>
      `The stream of “${word}”. A stripe is what one sublayer has in it, measured along the stream: ` +
      "what points against it has no stripe.",
    axis: "size of the stream (RMS)",
    reads: "what a sublayer reads: RMS 1",
    block: "block",
    finalNorm: "final norm",
    noNorm: "no norm",
    overflow: "overflow",
    probe: "block to look at",
    afterBlock: (block) => (block ? `after block ${block}` : "the embedding"),
    shares: ["embedding", "attention", "feed-forward"],
    percent: (number) => `${number} %`,
    lessThan: (number) => `< ${number} %`,
    nothing: "–",
    placement: "norms in the blocks",
    placements: { pre: "pre-norm", post: "post-norm", none: "none" },
    network: "feed-forward network",
    networks: { swiglu: "SwiGLU", relu: "ReLU", linear: "linear" },
    loudness: "what the sublayers add",
    scales: ["× ¼", "× ½", "× 1", "× 2", "× 4", "× 8"],
    depth: "blocks",
    verdict: {
      pre: (depth, size) => `Nothing added is scaled down: the RMS grows to ${size} in ${depth} blocks.`,
      post: (depth, kept) => `Norms bring every sum back to RMS 1: after ${depth} blocks ${kept} is embedding.`,
      none: (depth, size) => `Without norms, sublayers read the stream as it is: RMS ${size} after ${depth} blocks.`,
      overflow: (block) => `Without norms, every block amplifies: block ${block} passes 65,504, where float16 ends.`,
    },
    wouldSay: (block, word, share) =>
      `${block ? `After block ${block}` : "From the embedding alone"} the model would go on with “${word}” (${share}).`,
    asText: (word, share) => `${word} ${share}`,
    nearly: (number) => `> ${number} %`,
    gradients: (ratio) => `gradient: block 1 gets ${ratio} times the last block's`,
    noGradient: "no gradient: the numbers overflowed",
    streamAfter: (block) => (block ? `stream after block ${block}, RMS` : "the embedding, RMS"),
    nextReads: "the next sublayer reads, RMS",
    adds: (block) => `block ${block} adds, RMS`,
    addedBefore: "added so far",
    none: "nothing",
    cosine: "cosine with the embedding",
    gradient: "gradient here (last block: 1)",
    loss: (guess) => `loss (a blind guess: ${guess})`,
    spread: "spread of the logits",
  },
};
