// What TwoTables says.

export const twoTablesWords = {
  en: {
    title: "Rows for scoring fall together. Rows for reading stay apart.",
    titleCompact: "Which table learns who is alike? Train, and see.",
    caption:
      "A line joins the rows of two words that are used alike; it is as long as their distance in all 32 channels. " +
      "Pairs are placed in the two directions in which their middles vary most.",
    more: "More: other seeds",
    steps: "training steps",
    tied: "one table (tied)",
    seed: "seed",
    tables: { reading: "reading rows", scoring: "scoring rows", both: "rows of the one table" },
    pair: ([a, b]) => `${a} and ${b}`,
    distance: {
      reading: "distance, reading",
      scoring: "distance, scoring",
      both: "distance, one table",
    },
    fromTo: (first, now) => `${first} → ${now}`,
    verdict: {
      begin: "Before training, no two rows are alike.",
      apart: "The scoring table has learned who is alike. The reading table has not.",
      tied: "One table for both: the reading gets the likeness for free.",
      moving: "The pairs are on their way.",
    },
    picture: (table, step, distance) => `${table} after ${step} steps: two words used alike are ${distance} apart.`,
  },
};
