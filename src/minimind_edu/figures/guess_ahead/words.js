// What GuessAhead says.

export const guessAheadWords = {
  en: {
    title: "You guess, the large model checks",
    titleCompact: "You guess ahead. What comes out?",
    titles: {
      leftovers: "Guess as badly as you like: what comes out is the large model's",
      all: "Replaced from all words: the guess leaves its trace",
      draft: "What both say stays, and the large model fills in what the draft leaves over",
    },
    caption:
      "Bars: the large model's probabilities. Lines: how often a word came out. In the second and third list only " +
      "rounds count that kept all guesses before. ⇒ asks for the last sentence in Chinese.",
    captionDraft:
      "The dart falls at random along the draft's bar of the guessed word. In the solid part the guess is kept, in " +
      "the dashed part rejected; then the leftovers give a word. Lines: how often a word came out.",
    more: "More: other draws",
    heads: ["1st guess", "2nd guess", "3rd guess"],
    others: "others",
    rule: "instead of a rejected word comes one from",
    rules: { leftovers: "the leftovers", all: "all words" },
    play: { 1: "1 round", 20: "20 rounds", 1000: "1,000" },
    again: "From 0",
    seed: "Other draws",
    legend: { both: "both, min(p, q)", often: "guesser too often", left: "leftover, p − q", came: "came out" },
    p: "p",
    q: "q",
    free: "+ 1",
    percent: (share) => `${share} %`,
    ask: "Press a word in each list: your guesses. Then “20 rounds”.",
    askDraft: "The small model guesses three words. Press “1 round”.",
    kept: "All three guesses are kept, and the same pass adds a word.",
    rejected: (word, replacement) => `“${word}” is rejected, with what follows it. Instead comes “${replacement}”.`,
    after: (word, came, rounds, share, words) =>
      `“${word}”: ${came} of ${rounds} (model: ${share}). ${words} words per round.`,
    numbers: { rounds: "rounds", words: "words per round", gap: "gap to the large model" },
    nothing: "–",
    bar: (word, p, came) => `${word}: large model ${p}, came out ${came}`,
    barDraft: (word, p, q, came) => `${word}: large model ${p}, draft ${q}, came out ${came}`,
  },
};
