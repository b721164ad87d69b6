// What the square and its row say.

const rowsOf = (count) => (count === 1 ? "1 row" : `${count} rows`);

export const squareToRowWords = {
  en: {
    titleCompact: "What is computed here a second time?",
    titles: {
      saved: "The same call without and with a cache: a square, and its one new row.",
      sound: "No bug: however the text is cut, the rows are those of the square.",
      broken: "One changed line, and the new rows are no longer those of the square.",
    },
    title: "",
    captions: {
      saved: "Attention weights of head 4.2. Orange: new rows. Gray: rows that an earlier call has computed.",
      broken: "Attention weights of head 4.2. ✕: off by 5 percentage points or more. Red keys are wrong.",
    },
    more: "",
    without: (isShort) => (isShort ? "no cache" : "without a cache"),
    withCache: (isShort) => (isShort ? "with cache" : "with a cache"),
    bugged: (bug, isShort) => (isShort ? `“${bug}”` : `with a cache and “${bug}”`),
    inAll: (now, all) => [`${rowsOf(now)} now`, `${all} in all`],
    comma: ", ",
    play: "Play",
    pause: "Pause",
    step: "Step",
    back: "Back",
    bug: "bug",
    bugs: { none: "no bug", offset: "offset", again: "again", stale: "stale", square: "square" },
    chunk: "words of the prompt in a call",
    start: "Nothing has been read yet. Press “Step”.",
    prefill: (count, isFirst) =>
      isFirst ? `The first call reads ${count} words: all rows are new.` : `A call reads ${count} more of the prompt.`,
    saved: (word, held, past) =>
      `“${word}” is read. Without a cache ${held} rows are computed, ${past} of them again; with one, 1.`,
    same: (word) => `✓ It says “${word}”, and the logits are the right ones.`,
    differ: (word, right, by) =>
      `≠ It ${word === right ? `still says “${word}”` : `says “${word}”, not “${right}”`}; ` +
      `logits are off by up to ${by}.`,
    first: (call) => `Wrong since call ${call}.`,
    picture: (held, past) =>
      `Two tables of attention weights. Without a cache ${rowsOf(held)}, with one ${rowsOf(past)}.`,
    numbers: { again: "×", offset: "pos." },
  },
};
