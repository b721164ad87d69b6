// How a measured step divides into grinding and waiting, and where it is while it plays. No DOM.

/** The measured times of a state, in milliseconds: of the step and its quartiles, of its bytes and its arithmetic. */
export function timesOf(stored, { model, texts, weights }) {
  const { pipe, memory, hand } = stored.models[model];
  const i = stored.texts.indexOf(texts);
  const [low, step, high] = (weights === "memory" ? memory : hand)[i];
  const mill = Math.min(hand[i][1], step); // of a model that fits the cache they differ by noise
  return { step, low, high, mill, pipe: weights === "memory" ? pipe : 0, one: memory[0][1] };
}

/** The share of the step in which the mill turns. */
export function shareOf({ mill, step }) {
  return mill / step;
}

/** How many milliseconds the lanes have room for: three steps of one text, and more where a step is longer. */
export function roomFor({ one: ofOneText, high, pipe }) {
  return Math.max(3 * ofOneText, 1.06 * Math.max(high, pipe));
}

/** After this share of a step, how much of all its turning the mill has done, if it takes so many bites. */
export function turned(place, share, bites) {
  const bite = place * bites;
  const whole = Math.min(Math.floor(bite), bites);
  return Math.min(1, (whole + Math.min((bite - whole) / share, 1)) / bites);
}
