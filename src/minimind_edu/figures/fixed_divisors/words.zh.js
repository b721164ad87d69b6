// The Chinese words of words.js as of 087560ec.

export const fixedDivisorsWords = {
  zh: {
    titleCompact: "量出来的大小，哪个固定的数能代替？",
    titles: {
      number: "数太小，残差流失控；数太大，加不进多少东西。",
      square: "大小是前馈网络弄错的，错是注意力传出去的。",
    },
    captions: {
      number:
        "柱子：每个归一化处 <s> 的大小，和其他词大小的中位数。百分位数：这个归一化在训练好的模型里遇到的所有大小的。" +
        "距离：离真实概率每词多少 nat。",
      square: "按比例：读到两倍，回应两倍。训练出来的样子：回应四倍。",
    },
    percentile: "归一化除以",
    stop: (percentile) => (percentile ? `第 ${percentile} 百分位数` : "向量自己的大小"),
    apart: "<s> 有自己的数",
    proportional: "网络按比例回应",
    networks_only: "注意力前面的归一化现量",
    twin: "孪生模型",
    legend: { first: "<s>", others: "其他词", divisor: "除数", own: "原来的大小" },
    block: (number) => `第 ${number} 块`,
    head: "输出",
    headNarrow: "输出",
    axis: "RMS",
    sublayers: ["注意力", "前馈网络"],
    sizeOf: (number) => {
      if (number >= 1e8) return `${Number((number / 1e8).toPrecision(3))} 亿`;
      return number >= 1e6 ? `${Number((number / 1e4).toPrecision(3))} 万` : number.toLocaleString("en");
    },
    ends: ["距离", "<s> 最后是", "其他词最后是"],
    nats: (nats) => `${nats} nat`,
    verdict: {
      own: () => "训练出来的样子：每个归一化都让每个向量除以自己的大小。",
      all: ({ first, others }) => `<s> 最后的大小是训练好的模型里的 ${first} 倍，其他词是 ${others} 倍。`,
      first: ({ first }) => `<s> 最后的大小是训练好的模型里的 ${first} 倍，其他词没有失控。`,
      others: ({ others }) => `<s> 大小不变。其他词最后大到 ${others} 倍。`,
      near: ({ nats }) => `没有哪个大小离训练好的模型很远。距离却是它的 ${nats} 倍。`,
      little: ({ percent }) => `其他词最后只有原来的 ${percent}%：加进来的太少。`,
    },
    picture: (setting, nats, first, others) =>
      `九个归一化处的大小，对数刻度。每个归一化除以${setting}。<s> 最后是 ${first}，` +
      `其他词的中位数最后是 ${others}，离真实概率 ${nats} nat。`,
  },
};
