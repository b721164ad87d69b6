// The Chinese words of words.js as of 460d692d.

export const twoTablesWords = {
  zh: {
    title: "用来打分的行，成对地靠到一起。用来读的行，还是离得远远的。",
    titleCompact: "两个词相像，是哪张表学会的？训练一下，看看。",
    caption:
      "两个用法相同的词，它们的行用一条线连着；线的长短就是两行在全部 32 个通道里的距离。" +
      "各对的中点在哪两个方向上差别最大，就按那两个方向摆放。",
    more: "更多：其他种子",
    steps: "训练步数",
    tied: "一张表（共享）",
    seed: "种子",
    tables: { reading: "用来读的行", scoring: "用来打分的行", both: "共用那张表的行" },
    pair: ([a, b]) => `${a} 和 ${b}`,
    distance: {
      reading: "距离，用来读的",
      scoring: "距离，用来打分的",
      both: "距离，共用一张表",
    },
    fromTo: (first, now) => `${first} → ${now}`,
    verdict: {
      begin: "训练之前，没有哪两行相像。",
      apart: "打分的表学会了谁和谁相像。读的表没有。",
      tied: "两件事用一张表：读的一方白得了这份相像。",
      moving: "各对正在路上。",
    },
    picture: (table, step, distance) => `训练 ${step} 步后，${table}：用法相同的两个词相距 ${distance}。`,
  },
};
