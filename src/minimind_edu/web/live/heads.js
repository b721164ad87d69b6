// Which heads of the living model to look at, found from the card: their numbers change with every training.

/**
 * Scores [L][H] by kinds of questions.
 * @typedef {{ lost_without: Record<string, number[][]>, reading: Record<string, number[][]> }} Heads
 * @typedef {{ layer: number, head: number }} Head
 */

/** The head, { layer, head } from 0, with the largest score(layer, head) of all in a table [L][H]. */
/** @type {(table: number[][], score: (layer: number, head: number) => number) => Head} */
function bestHead(table, score) {
  const heads = table.flatMap((row, layer) => row.map((_, head) => ({ layer, head, value: score(layer, head) })));
  const { layer, head } = heads.reduce((best, other) => (other.value > best.value ? other : best));
  return { layer, head };
}

/** The head that looks at the answers of such questions and is missed there: the largest product of both. */
/** @type {(heads: Heads, kind: string) => Head} */
export function tellingHead({ lost_without: lost, reading }, kind) {
  return bestHead(lost[kind], (layer, head) => lost[kind][layer][head] * reading[kind][layer][head]);
}

/** The head without which the model forgets where people are, and still translates. @type {(heads: Heads) => Head} */
export function missedHead({ lost_without: lost }) {
  return bestHead(lost.recall, (layer, head) => lost.recall[layer][head] * (1 - lost.translation[layer][head]));
}
