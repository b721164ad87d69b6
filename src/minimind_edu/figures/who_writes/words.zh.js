// The Chinese words of words.js as of 889d897b.

export const whoWritesWords = {
  zh: {
    titleCompact: "hall 是谁写的？静音一个头看看。",
    titles: {
      writers: "静音一个头，别的部件也写得少了",
      models: "静音一个头，领先少掉的就只是它写的那一份吗？",
      words: "值里装的，不只是那个词",
    },
    title: "",
    captions: {
      writers: "带子的粗细就是它加了多少，单位是 logit；颜色浅的是扣掉的。虚线框：谁都不静音时。",
      models: "带子的粗细就是它加了多少，单位是 logit；颜色浅的是扣掉的。虚线框：谁都不静音时。",
      words: "词下面的数：注意力权重。带子：这个头凭这个词加了多少，单位是 logit；颜色浅的是扣掉的。虚线框：互换之前。",
    },
    caption: "",
    more: "更多",
    story: "这个故事",
    silence: "静音一个头",
    model: "模型",
    models: { living: "本书的", twin: "孪生模型" },
    reader: "头",
    chip: (head) => `静音 ${head} 号头`,
    head: (head) => `${head} 号头`,
    heads: (all) => `${all.join("、")} 号头`,
    network: "第 4 个网络",
    others: (count) => `另外 ${count} 个头`,
    early: "其余",
    lead: "领先",
    word: (word, place) => `${word}，第 ${place} 词`,
    rest: (count) => `另外 ${count} 个词`,
    picture: (rows, hall, kitchen) => `带子：${rows}。给 hall：${hall}，给 kitchen：${kitchen}。`,
    ribbon: (name, value) => `${name} ${value}`,
    all: (lead) => `谁都没有静音：hall 领先 kitchen ${lead} 个 logit。`,
    without: ({ head, written, lead, gone, isLess, word, share }) =>
      `${head} 号头写了 ${written}；静音它，领先是 ${lead}，${isLess ? "少" : "多"}了 ${gone}。下一个词：${word}，${share}%。`,
    reads: ({ head, lead, words }) => `${head} 号头给领先加了 ${lead}。它读 ${words}。`,
    exchange: (head) => `互换 ${head} 号头在两个房间写的（第 6 节）`,
    read: (word, weight) => `${word}（${weight}）`,
    and: (parts) => parts.join("和 "),
  },
};
