// What CountedTokens says.

export const countedTokensWords = {
  en: {
    titleCompact: "Which tokens must count, so that it answers and stops?",
    titles: {
      masks: "Only what counts is learned: move the mask by one, and train.",
      shift: "Each position must say the next token: shift wrongly, and train.",
      row: "One row of tokens, and three masks on it.",
    },
    title: "",
    captions: {
      masks:
        "Strong: what counts. Percent: of 200 new chats, those with the right place, and those that, given it, " +
        "end next.",
      row: "Gray: the template. Strong: what counts. Dots: what the reader may look at.",
    },
    more: "",
    reads: "it reads",
    says: "it must say",
    ids: "ids",
    looks: "may look at",
    loss: "loss at each position, up to 6 nats",
    none: "–",
    mask: "what counts",
    masks: { answer: "answer", early: "early", late: "late", all: "all", padding: "padding" },
    ahead: "the label is",
    aheads: { 1: "next token", 0: "same", 2: "after next" },
    trained: "fine-tuning",
    steps: (count) => `${count} steps`,
    reader: "reader",
    answers: "it answers",
    numbers: ["right place", "end after it"],
    percent: (share) => `${share} %`,
    play: "Play",
    pause: "Pause",
    step: "Step",
    back: "Back",
    stages: [
      "A chat: a story with a question, and the answer.",
      "The template writes down who speaks, and where each message ends.",
      "Every token is a number. The model sees nothing else.",
      "Labels: the same row, one to the left. Each position must say what follows.",
      "The loss mask: the answer and its end count.",
      "Padding makes rows equally long. It does not count, and no token reads it.",
      "The future mask: a token reads itself and what comes before it.",
    ],
    picture: (stage, count) => `A chat as a row of tokens. ${stage} ${count} of them count.`,
  },
};
