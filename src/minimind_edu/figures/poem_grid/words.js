// What PoemGrid says.

export const poemGridWords = {
  en: {
    titles: {
      exchange: "Exchange the end of line 2: does the model notice?",
      heads: "Without head 3.1 over half of the rhyme goes, and the tones stay",
    },
    title: "",
    captions: {
      exchange:
        "Up to line 4 the poem is Wang Wei’s, then the model goes on. ○ level, ● oblique, ◐ read both ways, · in no " +
        "list; ✓ and green: rhymes. Numbers: of 256 poems that it writes from nothing.",
      heads:
        "A way leads from the place before the rhyme to what a head reads there, as thick as its weight. " +
        "Numbers: of 256 poems written so, from nothing.",
    },
    caption: "",
    more: "More",
    model: "the model has read",
    models: { untrained: "nothing", before: "poems", verse: "their line ends, too" },
    silence: "silence a head",
    heads: { none: "none", 3.1: "3.1", 2.1: "2.1", 3.2: "3.2" },
    first: "line 2 ends with",
    line: "look at line",
    reads: [
      ["v", "3.1 reads rhyme words"],
      ["k", "2.1 full stops"],
      ["q", "2.4 commas"],
    ],
    percent: (number) => `${number} %`,
    due: (line) => `next at the end of line ${line}`,
    bar: (character, share, isRhyme) => `${character}, ${share}${isRhyme ? ", rhymes" : ""}`,
    picture: (text, line) => `A poem as a grid, up to the end of line ${line}, where a character is due: ${text}`,
    verdict: ({ line, first, share, poets }) =>
      `End of line ${line}: ${share} for what rhymes with ${first}${poets ? `, ${poets} with 秋` : ""}.`,
    form: "poems of a right form",
    tones: "opposite tones",
    rhyme: (chance) => `rhymes (by chance ${chance})`,
  },
};
