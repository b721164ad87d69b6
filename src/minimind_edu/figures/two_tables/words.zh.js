// The Chinese words of words.js as of a8c7060b.

export const twoTablesWords = {
  zh: {
    title: "两个词相像，是哪张表学会的？训练一下，看看。",
    caption:
      "每个点是一个种子：两个词的行的余弦，取平均。实心：用法相同的词；空心：其他的词。" +
      "竖条是五个种子的平均。距离：用法相同的两个词，与训练前相比。",
    more: "",
    steps: "训练步数",
    kind: "模型",
    kinds: { two: "两张表", small: "读的行从 × 0.1 开始", decay: "加权重衰减", one: "一张表" },
    tables: { reading: "读的行", scoring: "打分的行", one: "共用那张表的行" },
    couples: { pairs: "用法相同", others: "其他" },
    distance: { reading: "距离，读", scoring: "距离，打分", one: "距离，一张表" },
    times: (number) => `× ${number}`,
    verdict: (table, pairs, others) => `${table}：用法相同 ${pairs}，其他 ${others}。`,
    picture: (verdict, step) => `训练 ${step} 步后各行的余弦。${verdict}`,
  },
};
