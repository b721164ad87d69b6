// What GuessFirst says.

const percent = (part) => {
  const value = 100 * part;
  const isRound = (value >= 10 && value <= 90) || value >= 99.95 || value < 0.05;
  return `${value.toFixed(isRound ? 0 : 1)}\u00a0%`;
};
const nameOf = ([layer, head]) => `head ${head} of block ${layer}`;
const listed = (heads) => (heads.length === 1 ? nameOf(heads[0]) : `${heads.length} heads`);

export const guessFirstWords = {
  en: {
    tongue: 0, // the language of the story
    title: "Your guess first, then the model’s.",
    percent,
    named: (word, gloss) => (gloss ? `${word} (${gloss})` : word),
    guess: (place) => `Guess: ${place}`,
    yours: ["your ", "guess"],
    bar: (word, share, before, isYours) =>
      `${word}: ${percent(share)}${before === null ? "" : `, before ${percent(before)}`}` +
      (isYours ? ", your guess" : ""),
    rows: "Where is the drum?",
    road: "Four blocks of four heads: what each would say here",
    // for a phone, and what else there is room for
    hintBefore: ["From question to answer: four blocks of four heads.", ""],
    hint: [
      "The purple head reads the purple words.",
      " Under each block: its answer so far. Press any head to silence it.",
    ],
    hintSilent: ["The striped head is silent.", " Under each block: its answer so far. Press any head to silence it."],
    roadHead: (layer, head, isSilent) => `Head ${head} of block ${layer}${isSilent ? ", silent" : ""}`,
    block: (layer) => `block ${layer}`,
    loading: "The weights are on their way…",
    unavailable: "The weights did not arrive. Reload the page to try again.",
    invite: (parameters) => `Then ${parameters} weights will answer, here in your browser.`,

    silence: "Silence the purple head",
    ask: ["Ask again in English", "Ask it in Chinese"],
    back: "Give it back",
    open: "Go on: tell it your own story",
    again: "Start again",

    first: (answer, share, isYours) =>
      `The model says ${isYours ? "so, too" : answer}: ${isYours ? `${answer}, ` : ""}${percent(share)}. ` +
      "It is where Mia put it down.",
    wrong: (heads, answer, share, isOwner, isThatHead) =>
      `Without ${isThatHead ? "this one head of sixteen" : listed(heads)} it says ${answer}, ${percent(share)}` +
      (isOwner ? ", as if the drum had followed Mia." : "."),
    still: (heads, answer, share) => `Without ${listed(heads)} it still says ${answer}, ${percent(share)}.`,
    wrongToo: (answer, share) =>
      `The same mistake in Chinese: ${answer}, ${percent(share)}. One head serves both languages.`,
    whole: (answer, share) => `It is back: ${answer}, ${percent(share)}. Which others are needed? Press them.`,
  },
};
