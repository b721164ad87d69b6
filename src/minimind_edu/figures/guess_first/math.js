// What GuessFirst asks the model, and what is said of an answer. No DOM.

/** The text of a story told in one language and asked about in another: ids with <s>, and where its sentences end. */
export function textOf({ story, question }, tongue, language) {
  const parts = [...story[tongue], question[language]];
  return [0, ...parts.flatMap(({ ids }) => ids)];
}

const largest = (values) => values.reduce((best, value, at) => (value > values[best] ? at : best), 0);

/**
 * What the model answers: { shares of the places, top: the likeliest word and its share, place: which of the places
 * that is or -1, lens: the same after each block, weights(layer, head) of the last word }.
 */
export function answerOf({ model, softmax }, ids, places, silenced) {
  const { traces } = model.run(ids, { silenced, lens: true });
  const { logits, blocks } = traces.at(-1);
  const topOf = (vector) => {
    const probabilities = softmax(vector);
    const id = largest(probabilities);
    return { id, share: probabilities[id], place: places.indexOf(id) };
  };
  const probabilities = softmax(logits);
  return {
    shares: places.map((id) => probabilities[id]),
    top: topOf(logits),
    lens: blocks.map(({ lens }) => topOf(lens)),
    weights: ({ layer, head }) => blocks[layer].weights[head],
  };
}
