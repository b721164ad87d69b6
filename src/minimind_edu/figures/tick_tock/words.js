// What TickTock says.

export const tickTockWords = {
  en: {
    title: {
      one: "Bring each tip into its area: can both predictions be right?",
      two: "With two tables it is easy: drag the dashed tips.",
      block: "With one table and a block it is easy, too.",
    },
    caption:
      "Solid: the rows that score. Dashed: what meets them after a word is read; with one table the row itself. " +
      "A lead is the logit of the right word minus that of the other. Bars: its probability.",
    more: "",
    words: ["tick", "tock"],
    labels: { score: (word) => word, read: (word) => `${word}, read`, block: (word) => `${word}, rotated` },
    handle: (word) => `row of ${word}`,
    handleRead: (word) => `row with which ${word} is read`,
    place: (word) => `${word} here`,
    model: "model",
    models: { one: "one table", two: "two tables", block: "one block" },
    angle: "the block rotates by",
    degrees: (number) => `${number}°`,
    results: "What follows",
    after: (read, right) => `${read} → ${right}`,
    lead: (lead, isRight) => `${lead} ${isRight ? "✓" : "✗"}`,
    bar: (read, right, lead, isRight) => `after ${read}, ${right} leads by ${lead}: ${isRight ? "right" : "not right"}`,
    heads: ["prediction", "its probability", "its lead"],
    sum: "both together",
    verdict: {
      two: "Both are right.",
      one: (read) => `Right after ${read}, and wrong after the other.`,
      none: "Neither is right.",
    },
    picture: (tick, tock) => `The row of tick is ${tick}, that of tock ${tock}.`,
    point: (x, y) => `(${x}, ${y})`,
  },
};
