// The words of the sixteen heads, by language.

export const sixteenHeadsWords = {
  en: {
    titles: {
      head: "Switch heads off, one by one: does the model still know?",
      heads: "Switch heads off, one by one: does the model still know?",
      chain: "Five heads answer, each in its own way; the other eleven can go.",
    },
    captions: {
      heads: "The model reads the story again after every press, in your browser.",
      chain:
        "Below each place and the last word: whom head 3.4 reads there, and with what weight. " +
        "Shaded: what head 4.2 reads at the end.",
    },
    more: "",
    block: (number) => `block ${number}`,
    blocks: "The heads of the four blocks",
    head: (name, isSilent) => `head ${name}, ${isSilent ? "silenced" : "on"}`,
    jobs: { 1.2: "prepares", 1.3: "language", 1.4: "prepares", 3.4: "whose?", 4.2: "fetches" },
    others: "the others:",
    all: "all on",
    eleven: "silence the other eleven",
    story: "the story in",
    stories: { en: "English", zh: "Chinese" },
    picture: "Heads 1.2 and 1.4 prepare what 3.4 reads, 4.2 fetches the place, 1.3 gives the language",
    percent: (number) => `${number} %`,
    bar: (word, share) => `${word}: ${share}`,
    loading: "The model is on its way.",
    unavailable: "The model could not be loaded.",
    glossed: (word, gloss) => (gloss ? `“${word}” (${gloss})` : `“${word}”`),
    whole: (word, share) => `With all sixteen heads: ${word}, ${share}.`,
    without: (names, word, share) => `Without ${names.join(", ")}: ${word}, ${share}.`,
    withoutMany: (count, word, share) => `With ${count} of 16 silenced: ${word}, ${share}.`,
  },
};
