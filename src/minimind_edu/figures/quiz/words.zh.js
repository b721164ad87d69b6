// The Chinese words of words.js as of d228f8ed.

export const quizWords = {
  zh: {
    question: (number) => `第 ${number} 题　`,
    chooseFirst: "请先选一个答案。",
    typeFirst: "请输入一个数，例如 0.25。",
    yourNumber: "你的答案（一个数）",
    tooSmall: (number) => `${number} 太小了。`,
    tooLarge: (number) => `${number} 太大了。`,
    answerIs: (number) => `答案是 ${number}。`,
    showAnswer: "显示答案",
    check: "检查",
    right: "答对了。",
    notYet: "还不对。",
    again: "重新开始",
    scoreRight: "答对",
    scoreFirst: "一次答对",
    ofAll: (count, all) => `${count} / ${all}`,
  },
};
