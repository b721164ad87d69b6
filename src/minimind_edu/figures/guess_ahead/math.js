// What GuessAhead draws, from the stored looks.

// A word's bar in parts, in thousandths: what both models say, what the draft says too often, and what it leaves over.
export function partsOf([word, p, q]) {
  return { word, p, q, both: Math.min(p, q), tooOften: Math.max(0, q - p), leftover: Math.max(0, p - q) };
}

// The text after so many looks: [word, kind] of every word, the kind null for those that were given; rejected words
// and the guesses that went with them only in the last look.
export function textAfter(start, looks, step) {
  const { kind, word, said, waiting } = looks[step - 1];
  const written = looks.slice(0, step - 1).map((look) => [look.said, look.kind]);
  const now = kind === "rejected" ? [[word, "thrown"]] : [];
  const after = waiting.map((guess) => [guess, kind === "rejected" ? "thrown" : "waiting"]);
  const ends = kind === "rejected" ? [...now, ...after, [said, kind]] : [[said, kind], ...after];
  return [...start.map((id) => [id, null]), ...written, ...ends];
}

// How many words the large model's passes have given.
export function countsAt(looks, step) {
  return { words: step, passes: looks[step - 1].pass };
}
