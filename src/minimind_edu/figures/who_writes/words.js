// What WhoWrites says.

export const whoWritesWords = {
  en: {
    titleCompact: "Who wrote hall? Silence a head.",
    titles: {
      writers: "Silence one writer, and others write less",
      models: "Silence a head: does the lead lose only what it wrote?",
      words: "A value is more than its word",
    },
    title: "",
    captions: {
      writers: "A ribbon is as thick as what it adds, in logits; pale: takes away. Dashed box: with no head silenced.",
      models: "A ribbon is as thick as what it adds, in logits; pale: takes away. Dashed box: with no head silenced.",
      words:
        "Below a word: its weight. Ribbon: what the head adds there; pale: takes away. Dashed: before the exchange.",
    },
    caption: "",
    more: "More",
    story: "the story",
    silence: "silence a head",
    model: "model",
    models: { living: "the book’s", twin: "the twin" },
    reader: "head",
    chip: (head) => `silence head ${head}`,
    head: (head) => `head ${head}`,
    heads: (all) => `heads ${all.join(", ")}`,
    network: "network 4",
    others: (count) => `${count} other heads`,
    early: "the rest",
    lead: "lead",
    word: (word, place) => `${word}, word ${place}`,
    rest: (count) => `${count} other words`,
    picture: (rows, hall, kitchen) => `Ribbons: ${rows}. For hall: ${hall}, for kitchen: ${kitchen}.`,
    ribbon: (name, value) => `${name} ${value}`,
    all: (lead) => `Nobody silenced: hall leads kitchen by ${lead} logits.`,
    without: ({ head, written, lead, gone, isLess, word, share }) =>
      `Without ${head}, which wrote ${written}, the lead is ${lead}: ${gone} ${isLess ? "less" : "more"}. ` +
      `Next word: ${word}, ${share} %.`,
    reads: ({ head, lead, words }) => `Head ${head} adds ${lead} to the lead. It reads ${words}.`,
    exchange: (head) => `exchange what ${head} wrote at the two rooms (section 6)`,
    read: (word, weight) => `${word} with ${weight}`,
    and: (parts) => parts.join(" and "),
  },
};
