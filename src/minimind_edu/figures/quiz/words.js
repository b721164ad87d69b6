// What a quiz says besides its questions and reasons.

export const quizWords = {
  en: {
    question: (number) => `Question ${number}. `,
    chooseFirst: "Choose an answer first.",
    typeFirst: "Type a number, for example 0.25.",
    yourNumber: "Your answer, a number",
    tooSmall: (number) => `${number} is too small.`,
    tooLarge: (number) => `${number} is too large.`,
    answerIs: (number) => `The answer is ${number}. `,
    showAnswer: "Show the answer",
    check: "Check",
    right: "Right. ",
    notYet: "Not yet. ",
    again: "Start again",
    scoreRight: "Right",
    scoreFirst: "Right at the first try",
    ofAll: (count, all) => `${count} of ${all}`,
  },
};
