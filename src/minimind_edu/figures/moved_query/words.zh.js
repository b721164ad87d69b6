// The Chinese words of words.js as of 76bcaea0.

export const movedQueryWords = {
  zh: {
    titles: {
      head: "走的是谁，从哪里走？把一个查询往回移。",
      key: "一对通道是一支箭头，位置是一个角度，分数只看得到距离。",
      keys: "把查询往回移：快的几对改认另一个人，慢的几对几乎不动。",
    },
    title: "",
    captions: {
      key: "橙色：查询 q。蓝色：它前面那个 Mia 的键，记作 M。下面：一对通道给两者的分数贡献多少。",
      keys: "橙色：查询。蓝色：键。词下面的数：3.4 号头读它的权重。按一个词，看它的键。",
    },
    caption: "",
    more: "更多",
    back: "查询往回移",
    backValue: (count) => `${count} 个词`,
    start: "所有词往后移",
    pair: (index) => `第 ${index} 对`,
    speed: (degrees) => `${degrees}°`,
    unit: "/词",
    slower: "较慢的 12 对",
    score: "分数",
    following: (lead) => `下一个词，kitchen − garden：logit 差 ${lead}`,
    story: "这个故事，以及 3.4 号头的权重",
    chipLabel: (word, weight) => `${word}，权重 ${weight}`,
    dial: (index, angle) => `第 ${index} 对：查询的箭头指向 ${angle} 度`,
    told: ({ back, word, weight, next }) =>
      `${back ? `往回移 ${back} 个词` : "在原处"}，它读“${word}”，权重 ${weight}。下一个词：${next}。`,
    rotated: ({ m, n, speed, query, key, score }) =>
      `第 1 对：q 转了 ${m} × ${speed}° = ${query}°，M 转了 ${n} × ${speed}° = ${key}°。分数：${score}。`,
    percent: (number) => `${number}%`,
    bar: (word, share) => `${word}：${share}`,
  },
};
