// What the living model says at the end of a story while some of its heads are silenced. No DOM.

/** The heads, from 0, of a sum of 1, 2, 4, …: those that are silenced. */
export function headsIn(sum, count) {
  return Array.from({ length: count }, (_, i) => i).filter((i) => (sum >> i) & 1);
}

/** The sum with one head more or less. */
export function toggled(sum, head) {
  return sum ^ (1 << head);
}

/** How a head is called in the model, "2.3", of one that is called 3.4 on the page. */
const keyOf = (name) => name.split(".").map((part) => part - 1);

const largest = (values) => values.reduce((best, value, at) => (value > values[best] ? at : best), 0);

/**
 * What is drawn of a story, { ids, spots, places }, with these heads silenced, by their names: the shares of its three
 * places, the likeliest other word with its share, and for each spot and the end the position that head `whose` reads
 * most, with its weight, and the weights that head `fetches` gives the spots at the end.
 */
export function readingOf({ model, softmax, world }, { ids, spots, places }, { whose, fetches }, silent) {
  const silenced = new Set(silent.map((name) => keyOf(name).join(".")));
  const { traces } = model.run(ids, { silenced });
  const chances = [...softmax(traces.at(-1).logits)];
  const others = chances.map((chance, id) => (places.includes(id) ? 0 : chance));
  const other = largest(others);
  const weightsAt = (name, position) => {
    const [layer, head] = keyOf(name);
    return [...traces[position].blocks[layer].weights[head]];
  };
  const end = ids.length - 1;
  const last = weightsAt(fetches, end);
  return {
    shares: places.map((id) => chances[id]),
    other: [world.words[other], chances[other]],
    whose: [...spots, end].map((position) => {
      const weights = weightsAt(whose, position);
      const most = largest(weights);
      return [most, weights[most]];
    }),
    fetched: spots.map((spot) => last[spot]),
  };
}

/** The likeliest word of a reading, its share, and which of the three places it is, or -1. */
export function saidIn({ shares, other }, words) {
  const place = largest(shares);
  return shares[place] >= other[1] ? [words[place], shares[place], place] : [...other, -1];
}
