// Which head of the living model to look at, found from the card: its numbers change with every training.

/** The head that looks at the answers of such questions and is missed there: the largest product of both. */
export function tellingHead({ lost_without: lost, reading }, kind) {
  const score = (layer, head) => lost[kind][layer][head] * reading[kind][layer][head];
  const heads = lost[kind].flatMap((row, layer) => row.map((_, head) => ({ layer, head, score: score(layer, head) })));
  return heads.reduce((best, one) => (one.score > best.score ? one : best));
}
