// The rounds that GuessAhead draws. No DOM.

import { seededRandom } from "../../web/live/sampling.js";

export const OTHERS = -1; // stands for all words that are too seldom to be listed
const AHEAD = 3; // guesses of a round
const DARTS = 3 * AHEAD; // of a round, thrown or not: another guess meets the same chance

/** A row's bar in parts: what both say, what the guesser says too often, and what it leaves over. */
export function partsOf([word, p, q]) {
  return { word, p, q, both: Math.min(p, q), tooOften: Math.max(0, q - p), leftover: Math.max(0, p - q) };
}

/** The rows [word, p, q] after these words of a round, q of whoever guesses; null where the tree ends. */
export function rowsAfter(tree, path, guess = null) {
  const rows = tree[path.join(" ")] ?? null;
  if (!rows || !guess) return rows;
  const whole = rows.reduce((sum, [, p]) => sum + p, 0);
  const sure = guess[path.length];
  const listed = rows.some(([word]) => word === sure) ? rows : [...rows, [sure, 0, 0]];
  return listed.map(([word, p]) => [word, p, word === sure ? whole : 0]);
}

/** The word that a dart from 0 up to 1 hits, the words laid end to end with their weights. */
function drawn(words, weights, dart) {
  let rest = dart * weights.reduce((sum, weight) => sum + weight, 0);
  return words[
    Math.max(
      weights.findIndex((weight) => (rest -= weight) < 0),
      0,
    )
  ];
}

/**
 * One round: { guessed, kept, said, dart }. kept: how many guesses stay; said: the word in place of the first that does
 * not, or null, where all are kept and the large model adds one; dart: where on the first guess's bar it fell. guess:
 * the reader's words, or null: the draft draws them. darts: DARTS numbers from 0 up to 1.
 */
export function roundOf(tree, guess, rule, darts) {
  const [guessed, nodes] = [[], []];
  for (let rows = rowsAfter(tree, [], guess); rows && guessed.length < AHEAD;) {
    const place = guessed.length;
    const words = rows.map(([word]) => word);
    guessed.push(
      guess
        ? guess[place]
        : drawn(
            words,
            rows.map(([, , q]) => q),
            darts[place],
          ),
    );
    nodes.push(rows);
    rows = rowsAfter(tree, guessed, guess);
  }
  let first = null;
  for (const [i, rows] of nodes.entries()) {
    const [, p, q] = rows.find(([word]) => word === guessed[i]);
    const dart = darts[AHEAD + i] * q;
    first ??= dart;
    if (dart < p) continue;
    const left = rows.map((row) => (rule === "all" ? row[1] : partsOf(row).leftover));
    const words = rows.map(([word]) => word);
    return { guessed, kept: i, said: drawn(words, left, darts[2 * AHEAD + i]), dart: first };
  }
  return { guessed, kept: guessed.length, said: null, dart: first };
}

/**
 * So many rounds from a seed: { last, written, came }. last: the round drawn last, or null; written: words of all
 * rounds; came: for each place, how often each word came there where all before it were kept, { word: count }.
 */
export function roundsOf(tree, { guess, rule, rounds, seed }) {
  const random = seededRandom(Math.imul(seed + 1, 0x9e3779b1));
  const came = Array.from({ length: AHEAD }, () => ({}));
  let [last, written] = [null, 0];
  for (let i = 0; i < rounds; i++) {
    last = roundOf(tree, guess, rule, Array.from({ length: DARTS }, random));
    written += last.kept + 1;
    const words = [...last.guessed.slice(0, last.kept), ...(last.said === null ? [] : [last.said])];
    words.forEach((word, place) => (came[place][word] = (came[place][word] ?? 0) + 1));
  }
  return { last, written, came };
}

/** Half the sum of |share that came - p|: how far the counted words are from the large model's; null without any. */
export function gapOf(rows, counts) {
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const whole = rows.reduce((sum, [, p]) => sum + p, 0);
  if (!total) return null;
  return rows.reduce((sum, [word, p]) => sum + Math.abs((counts[word] ?? 0) / total - p / whole), 0) / 2;
}

/** The rows of a list: those of the named words, in the order of p, and one for all others. */
export function listedRows(rows, named) {
  const listed = rows.filter(([word]) => named.includes(word));
  const absent = named.filter((word) => !listed.some(([other]) => other === word)).map((word) => [word, 0, 0]);
  const others = rows.filter(([word]) => !named.includes(word));
  const sum = (i) => others.reduce((total, row) => total + row[i], 0);
  return [...listed, ...absent, [OTHERS, sum(1), sum(2)]];
}
