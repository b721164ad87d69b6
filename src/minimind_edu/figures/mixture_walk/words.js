// What the walk through the mixture says.

const rowsOf = (count) => (count === 1 ? "1 row" : `${count} rows`);

export const mixtureWalkWords = {
  en: {
    title: "Where will each word go?",
    titles: {
      word: "One word: four scores, two answers, one sum",
      text: "Every row goes to its experts, and comes back to its place",
      weights: "One number divided by itself is 1",
      load: "Left alone, how will the router spread the words?",
    },
    caption: "",
    captions: {
      word: "A strip is a vector: slate above 0, brown below.",
      text: "Press a word to follow it. Gold in a word: its answers, each as wide as its weight.",
      weights: "Press a word to follow it. Each setting is a training of its own, of 400 steps.",
      load: "Bars: load in 40 new stories. Tick and dashed line: an even share.",
    },
    more: "More",
    view: "show",
    views: { word: "one word", text: "the whole text" },
    trained: "training steps",
    topK: "experts per word",
    renormalize: "renormalize",
    balanced: "auxiliary loss",
    play: "Play",
    pause: "Pause",
    step: "Step",
    back: "Back",
    vector: (word) => `the row of “${word}”: 48 numbers`,
    rowOf: (number, isShort) => (isShort ? `× row ${number}` : `× router row ${number}`),
    logit: (logit, isShort) => (isShort ? logit : `sum ${logit}`),
    weight: (weight) => `× ${weight}`,
    left: "left out",
    expert: (number) => `expert ${number}`,
    added: "added to the row in the stream",
    percent: (number) => `${number} %`,
    rows: rowsOf,
    moved: "training moved the router by",
    loss: "loss, nats per word",
    steps: {
      word: [
        ({ word }) => `“${word}” arrives as a row of 48 numbers.`,
        ({ best, logit }) =>
          `Times a router row, number by number, and added up: a logit. Expert ${best} gets the largest, ${logit}.`,
        ({ best, percent, guess }) => `The softmax makes probabilities: expert ${best} has ${percent} %. ${guess}`,
        ({ chosen, rule, isOne }) => `Only ${chosen} ${isOne ? "stays" : "stay"}. ${rule}`,
        ({ chosen }) => `The row goes to ${chosen}. The others compute nothing for it.`,
        ({ chosen, isOne }) =>
          `${chosen[0].toUpperCase()}${chosen.slice(1)} ${isOne ? "answers" : "answer"}: each is a network like ` +
          "chapter 8’s, 48 → 64 → 48, with parameters of its own.",
        ({ sum }) => `The answers, ${sum}, are added to the word’s row.`,
      ],
      text: [
        ({ tokens, k }) => `${tokens} words; the router gives each ${k === 1 ? "one expert" : "two experts"}.`,
        ({ most, mostRows, word, chosen }) =>
          `“${word}” is with ${chosen}. Expert ${most} has ${mostRows}, and works once on all of them.`,
        ({ word, sum, left }) => `All answers are back in their places. “${word}”: ${sum}${left}.`,
      ],
    },
    loads: (most, mostRows, load, word, chosen) =>
      `Expert ${most} has ${mostRows} of 14, and ${load} % of new stories’ words. “${word}” goes to ${chosen}.`,
    guess: (percents, isRenormalized) =>
      !isRenormalized
        ? "Which will be left?"
        : percents.length === 1
          ? `What is ${percents[0]} divided by itself?`
          : `Two will be left: what are ${percents.join(" and ")}, each divided by their sum?`,
    kept: (weights) => `Divided by their sum, they are the weights ${weights}.`,
    keptOne: "Divided by itself, its weight is 1, always.",
    asIs: (weights) => `The weights are their probabilities, ${weights}.`,
    asIsOne: (weight) => `Its weight is its probability, ${weight}.`,
    experts: (numbers) => (numbers.length === 1 ? `expert ${numbers[0]}` : `experts ${numbers.join(" and ")}`),
    sum: (pairs) => pairs.map(([expert, weight]) => `${weight} × expert ${expert}`).join(" + "),
    missing: (sum) => `, ${sum} in all`,
    picture: (sentence) => `A mixture of four experts. ${sentence}`,
    follow: (word) => `follow “${word}”`,
  },
};
