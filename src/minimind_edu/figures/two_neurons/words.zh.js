// The Chinese words of words.js as of fd9de300.

export const twoNeuronsWords = {
  zh: {
    head: "拨动 512 个神经元里的一个：下一个词是什么？",
    titles: {
      two: "交换两个激活值，后面就换了语言。",
      inside: "要看 gate 乘 up：边界是一条双曲线。",
    },
    captions: {
      one:
        "上排的点：100 个故事里，用英文讲到有人离开某处的地方，神经元自己的激活值。" +
        "下排的点：下一个词在哪里变；现在是“to the”的，画成实心。",
      two: "实心点：100 个故事里用英文离开的地方。圆圈：用中文离开的。阴影：这个故事里接“to the”。",
      inside: "实心点：用英文离开的地方。圆圈：用中文离开的。小点：别的地方。阴影：这个故事里接“to the”。",
    },
    more: "",
    picture: {
      one: "神经元的激活值，以及下一个词在哪里变",
      two: "两个激活值的平面，以及接“to the”的区域",
      inside: "gate 和 up 的平面，以及接“to the”的区域",
    },
    own: "它自己的",
    change: "词变了",
    active: (number) => `${number} 号的激活值`,
    gate: (number) => `${number} 号的 gate`,
    up: (number) => `${number} 号的 up`,
    story: "故事用",
    stories: { en: "英文", zh: "中文" },
    exchange: "交换",
    back: "换回来",
    point: "两个数",
    percent: (number) => `${number}%`,
    bar: (word, share) => `${word}：${share}`,
    verdict: {
      head: (active, word, share) => `${active}：${word}，${share}。`,
      one: (active, word, count, all) => `${active} 时，这里说${word}；${all} 个地方里，有 ${count} 个说“to the”。`,
      two: (first, second, word, share) => `${first} 和 ${second} 时，说${word}，${share}。`,
      inside: (gate, factor, up, active, word) => `SiLU(${gate}) = ${factor}，乘 ${up} 得 ${active}：${word}。`,
    },
    glossed: (word, gloss) => (gloss ? `“${word}”（${gloss}）` : `“${word}”`),
  },
};
