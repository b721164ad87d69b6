// The words of the two neurons, by language.

export const twoNeuronsWords = {
  en: {
    head: "One of 512 neurons on a slider: which word comes next?",
    titles: {
      two: "Exchange two activations, and the other language follows.",
      inside: "Gate times up counts: the border is a hyperbola.",
    },
    captions: {
      one:
        "Upper dots: the neuron's own activation at places left in English, in 100 stories. " +
        "Lower dots: where the next word changes there; filled where it is “to the” now.",
      two:
        "Filled dots: places left in English, in 100 stories. Rings: in Chinese. " +
        "Shaded: “to the” follows in this story.",
      inside:
        "Filled dots: places left in English. Rings: in Chinese. Small dots: other places. " +
        "Shaded: “to the” follows in this story.",
    },
    more: "",
    picture: {
      one: "Activations of the neuron, and where the next word changes",
      two: "Plane of both activations, with the region where “to the” follows",
      inside: "Plane of gate and up, with the region where “to the” follows",
    },
    own: "its own",
    change: "the word changes",
    active: (number) => `activation of neuron ${number}`,
    gate: (number) => `gate of neuron ${number}`,
    up: (number) => `up of neuron ${number}`,
    story: "the story in",
    stories: { en: "English", zh: "Chinese" },
    exchange: "exchange",
    back: "back",
    point: "both numbers",
    percent: (number) => `${number} %`,
    bar: (word, share) => `${word}: ${share}`,
    verdict: {
      head: (active, word, share) => `At ${active}: ${word}, ${share}.`,
      one: (active, word, count, all) =>
        `At ${active} it says ${word} here, and “to the” at ${count} of ${all} places.`,
      two: (first, second, word, share) => `At ${first} and ${second} it says ${word}, with ${share}.`,
      inside: (gate, factor, up, active, word) => `SiLU(${gate}) = ${factor}, times ${up} is ${active}: ${word}.`,
    },
    glossed: (word, gloss) => (gloss ? `“${word}” (${gloss})` : `“${word}”`),
  },
};
