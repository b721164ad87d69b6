// The words of the key circles, by language.

export const keyCirclesWords = {
  en: {
    title: "With eight values each: two channels for each thing that can be asked for.",
    titleCompact: "One head holds the keys for four questions. How narrow can it be?",
    titleOfQuery: "On a circle, every value is the furthest one in some direction.",
    caption:
      "Each field: the learned keys of a property's eight values, seen from where they spread most. " +
      "Below: names right; one in six, 17 %, is a guess.",
    captionOfQuery:
      "Arrow: the query for this value. A key is the fuller, the larger its share of the attention among the eight. " +
      "Where there is no circle, nothing can be chosen.",
    more: "",
    picture: (channels, fields) => `Keys of one head of ${channels} channels. ${fields.join(". ")}`,
    field: (property, share, isCircle) =>
      `“${property}”: ${isCircle ? "eight keys on a circle" : "eight keys in one place"}, ${share} right`,
    properties: ["who is in …?", "who has …?", "who wears …?", "who likes …?"],
    short: ["is in", "has", "wears", "likes"],
    channels: "channels of the head",
    seed: "random start",
    asked: "value that is asked for",
    percent: (number) => `${number} %`,
    verdict: {
      keys: (channels, count, all) =>
        `${channels} channels: ${count} of 4 questions answered, ${all} of all names right.`,
      query: (asked, shares) => `Asked for value ${asked}, the heads give its key ${shares}.`,
    },
    listed: (parts) => `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`,
  },
};
