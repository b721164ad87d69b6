// What the words of a run have become, from the numbers that were measured. No DOM.

/** The mean of numbers. */
export function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The line of each word over the blocks: of angles [block][word], those of one word after another. */
export function threadsOf(angles) {
  return angles[0].map((_, word) => angles.map((ofBlock) => ofBlock[word]));
}
