// What MovedQuery says.

const wordsBack = (count) => (count === 1 ? "1 word" : `${count} words`);

export const movedQueryWords = {
  en: {
    titles: {
      head: "Who goes, and from where? Move one query back.",
      key: "A pair is an arrow, a position is an angle, and a score sees only the distance.",
      keys: "Move the query back: fast pairs choose another, slow pairs hardly move.",
    },
    title: "",
    captions: {
      key: "Orange: the query, q. Blue: the key of the Mia before it, M. Below: what a pair adds to their score.",
      keys: "Orange: the query. Blue: keys. Below a word: its weight in head 3.4. Press a word for its key.",
    },
    caption: "",
    more: "More",
    back: "query moved back by",
    backValue: wordsBack,
    start: "all words moved on by",
    pair: (index) => `pair ${index}`,
    speed: (degrees) => `${degrees}°`,
    unit: " a word",
    slower: "12 slower pairs",
    score: "score",
    following: (lead) => `next word, kitchen − garden: ${lead} logits`,
    story: "the story, with the weights of head 3.4",
    chipLabel: (word, weight) => `${word}, weight ${weight}`,
    dial: (index, angle) => `pair ${index}: the query's arrow at ${angle} degrees`,
    told: ({ back, word, weight, next }) =>
      `${back ? `${wordsBack(back)} back` : "In its place"}, it reads “${word}” with ${weight}. Next word: ${next}.`,
    rotated: ({ m, n, speed, query, key, score }) =>
      `Pair 1: q is rotated by ${m} × ${speed}° = ${query}°, M by ${n} × ${speed}° = ${key}°. Score: ${score}.`,
    percent: (number) => `${number} %`,
    bar: (word, share) => `${word}: ${share}`,
  },
};
