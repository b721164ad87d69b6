// How far away a stretched model sees a word, and which angles it gets to. No DOM in here.

/** Up to where distances are left as they are, and by what they are multiplied beyond. */
function wayOf({ context, near }, stretch, isFar) {
  const from = isFar ? near : 0;
  return [from, (context - from) / (stretch * context - from)];
}

/** How many words away the unfinished pairs see a word that is `distance` words away. */
export function seenAt(stored, distance, stretch, isFar) {
  const [from, scale] = wayOf(stored, stretch, isFar);
  return distance <= from ? distance : from + (distance - from) * scale;
}

/** How much of its circle each pair met in training, and meets where this word looks back: shares, up to 1. */
export function sharesOf(stored, stretch, isFar, word) {
  const farthest = seenAt(stored, word, stretch, isFar) / stored.context;
  return stored.rotations.map((count) =>
    count < 1 ? [count, Math.max(count, Math.min(1, count * farthest))] : [1, 1],
  );
}

/** For each quarter the stretch, from 1, at which these rows of losses are least. */
export function bestOf(rows) {
  return rows[0].map((_, quarter) => {
    const losses = rows.map((row) => row[quarter]);
    return 1 + losses.indexOf(Math.min(...losses));
  });
}
