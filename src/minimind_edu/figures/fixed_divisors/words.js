// What FixedDivisors says.

export const fixedDivisorsWords = {
  en: {
    titleCompact: "Which fixed number can take the place of the measured size?",
    titles: {
      number: "Too small a number, and the stream runs away. Too large, and little is added.",
      square: "Networks make sizes wrong, and attention hands them on.",
    },
    captions: {
      number:
        "Bars: the size of <s> at each norm, and the median size of the other words. Percentiles are those of all " +
        "sizes that a norm meets in the trained model. Distance: from the true probabilities, in nats a word.",
      square: "In proportion: twice the input, twice the answer. As trained: four times the answer.",
    },
    percentile: "norms divide by",
    stop: (percentile) => (percentile ? `the ${percentile}th percentile` : "the vector's size"),
    apart: "<s> has a number of its own",
    proportional: "networks answer in proportion",
    networks_only: "norms before attention measure",
    twin: "the twin",
    legend: { first: "<s>", others: "others", divisor: "divisor", own: "as trained" },
    block: (number) => `block ${number}`,
    head: "output",
    headNarrow: "end",
    axis: "RMS",
    sublayers: ["attention", "network"],
    sizeOf: (number) => {
      if (number >= 1e9) return `${number / 1e9} billion`;
      return number >= 1e6 ? `${number / 1e6} million` : number.toLocaleString("en");
    },
    ends: ["distance", "<s> ends at", "others end at"],
    nats: (nats) => `${nats} nats`,
    verdict: {
      own: () => "As trained: every norm divides every vector by its own size.",
      all: ({ first, others }) =>
        `<s> ends ${first} times as large as in the trained model, the others ${others} times.`,
      first: ({ first }) => `<s> ends ${first} times as large as in the trained model, the other words do not.`,
      others: ({ others }) => `<s> keeps its size. The other words end ${others} times as large.`,
      near: ({ nats }) => `No size is far from that of the trained model. The distance is ${nats} times as large.`,
      little: ({ percent }) => `The other words end at ${percent} % of their trained size: too little is added.`,
    },
    picture: (setting, nats, first, others) =>
      `Sizes at nine norms, on a logarithmic scale. Every norm divides by ${setting}. <s> ends at ${first}, ` +
      `the median of the others at ${others}, ${nats} nats from the true probabilities.`,
  },
};
