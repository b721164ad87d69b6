// The Chinese words of words.js as of 42404194.

export const sixteenHeadsWords = {
  zh: {
    titles: {
      head: "一个一个地把头关掉：模型还答得出来吗？",
      heads: "一个一个地把头关掉：模型还答得出来吗？",
      chain: "五个头各干各的活，答出问题；其余十一个可以不要。",
    },
    captions: {
      heads: "每按一下，模型就在你的浏览器里把故事重读一遍。",
      chain: "每个地点和最后一个词的下面：3.4 号头在那里读谁，权重多大。底色：4.2 号头在末尾读什么。",
    },
    more: "",
    block: (number) => `第 ${number} 块`,
    blocks: "四个块的头",
    head: (name, isSilent) => `${name} 号头，${isSilent ? "已静音" : "开着"}`,
    jobs: { 1.2: "准备", 1.3: "语言", 1.4: "准备", 3.4: "谁的？", 4.2: "取来" },
    others: "其余的：",
    all: "全部打开",
    eleven: "让其余十一个静音",
    story: "故事用",
    stories: { en: "英文", zh: "中文" },
    picture: "1.2 和 1.4 号头为 3.4 做准备，4.2 取来地点，1.3 给出语言",
    percent: (number) => `${number}%`,
    bar: (word, share) => `${word}：${share}`,
    loading: "模型正在路上。",
    unavailable: "模型没能载入。",
    glossed: (word, gloss) => (gloss ? `“${word}”（${gloss}）` : `“${word}”`),
    whole: (word, share) => `十六个头都开着：${word}，${share}。`,
    without: (names, word, share) => `去掉 ${names.join("、")}：${word}，${share}。`,
    withoutMany: (count, word, share) => `十六个里静音了 ${count} 个：${word}，${share}。`,
  },
};
