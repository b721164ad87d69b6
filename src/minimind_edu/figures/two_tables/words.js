// What TwoTables says.

export const twoTablesWords = {
  en: {
    title: "Which table learns who is alike? Train, and see.",
    caption:
      "Each dot is the mean cosine of the rows of two words, one seed. Full: words used alike; hollow: others. " +
      "Bars are means of five seeds. Distance: of the rows of two words used alike, compared with before training.",
    more: "",
    steps: "training steps",
    kind: "model",
    kinds: { two: "two tables", small: "reading begins × 0.1", decay: "with weight decay", one: "one table" },
    tables: { reading: "rows that read", scoring: "rows that score", one: "rows of the one table" },
    couples: { pairs: "used alike", others: "others" },
    distance: { reading: "distance, reading", scoring: "distance, scoring", one: "distance, one table" },
    times: (number) => `× ${number}`,
    verdict: (table, pairs, others) => `${table}: used alike ${pairs}, others ${others}.`,
    picture: (verdict, step) => `Cosines of rows after ${step} steps. ${verdict}`,
  },
};
