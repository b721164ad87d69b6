// The words of the five switches, by language.

export const fiveSwitchesWords = {
  en: {
    titleCompact: "Make one part small. Which one keeps it from learning?",
    titles: {
      curve: "Small queries and keys change nothing. With small norms nobody learns.",
      all: "At 32 channels, not one of 48 trainings with small norms learns.",
    },
    captions: {
      curve:
        "A model learns to translate one sentence. Three seeds, each a line; thin: the setting before. Large: drawn " +
        "with a standard deviation of 0.15, gains at 1. Small: 7.5 times smaller. Learned: " +
        "at most 0.1 above the floor.",
      all:
        "Each row is one setting of the switches; a dot is where one of three seeds ends, in nats above the floor. " +
        "Framed: the setting chosen above.",
    },
    more: "",
    board: "The five parts of the model",
    parts: { table: "table", q_k: "q, k", v_o: "v, o", feed_forward: "feed-forward", norm: "norms" },
    sizes: { large: "large", small: "small" },
    part: (name, size) => `${name}: ${size}`,
    axis: "nats per word above the floor",
    guessed: "names guessed",
    steps: (count) => `${count} steps`,
    columns: ["norms large", "norms small"],
    picture: (ends) => `Three trainings; they end ${ends.join(", ")} nats above the floor.`,
    rows: "Where three trainings of each of 32 settings end, in nats above the floor",
    verdict: (count, ends) => {
      const losses = `${ends.join(", ")} nats above the floor`;
      if (count === 3) return `All three seeds learn: ${losses}.`;
      return count
        ? `${count} of three seeds learn${count === 1 ? "s" : ""}: ${losses}.`
        : `No seed learns: ${losses}.`;
    },
  },
};
