// The Chinese words of words.js as of ba92be2c.

export const tickTockWords = {
  zh: {
    title: {
      one: "把两个尖端都拖进各自的区域：两个预测能不能都对？",
      two: "有两张表就容易了：拖动虚线的尖端。",
      block: "一张表，加一个块，也容易。",
    },
    caption:
      "实线：打分的行。虚线：读了一个词之后，与它们相乘的东西；只有一张表时，就是这一行本身。" +
      "领先值：正确的词的 logit 减去另一个词的。横条：正确的词的概率。",
    more: "",
    words: ["tick", "tock"],
    labels: { score: (word) => word, read: (word) => `读 ${word}`, block: (word) => `转过的 ${word}` },
    handle: (word) => `${word} 的行`,
    handleRead: (word) => `读 ${word} 时用的行`,
    place: (word) => `${word} 到这里`,
    model: "模型",
    models: { one: "一张表", two: "两张表", block: "一个块" },
    angle: "块转过的角度",
    degrees: (number) => `${number}°`,
    results: "接下来是什么",
    after: (read, right) => `${read} → ${right}`,
    lead: (lead, isRight) => `${lead} ${isRight ? "✓" : "✗"}`,
    bar: (read, right, lead, isRight) => `${read} 之后，${right} 领先 ${lead}：${isRight ? "对" : "不对"}`,
    heads: ["预测", "它的概率", "领先多少"],
    sum: "两个相加",
    verdict: {
      two: "两个都对。",
      one: (read) => `${read} 之后对了，另一个不对。`,
      none: "一个也不对。",
    },
    picture: (tick, tock) => `tick 的行是 ${tick}，tock 的行是 ${tock}。`,
    point: (x, y) => `(${x}, ${y})`,
  },
};
