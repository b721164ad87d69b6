// The Chinese words of words.js as of d279e6d7.

export const sinkingWordsWords = {
  zh: {
    title: "这 16 个词会变成什么样？",
    titles: {
      words: "这 16 个词会变成什么样？",
      causes: "只放大注意力，词就淹没了；只放大前馈网络，不会。",
    },
    caption:
      "一个没训练过的新模型。一条色带是一个子层加进来的东西，越靠后的块颜色越淡：高度是 RMS，各条色带按平方分这个高度。" +
      "下面一条线是一个词。",
    captionOfCauses: "同一个新模型，一条线是一个词。倍数只放大选中的子层加进来的；别的照旧。",
    more: "",
    size: "大小（RMS）",
    angles: "每个词与第一个词的夹角",
    degrees: (number) => `${number}°`,
    first: "第 1 个词",
    sixth: "第 6 个词",
    replaced: (share) => `换掉第 6 个词：输出变动 ${share}`,
    loud: "加进来的放大几倍",
    factor: "放大谁",
    louder: { both: "两者", attention: "注意力", networks: "前馈网络" },
    mean: "与第 1 个词的平均夹角",
    firstReplaced: "换掉第 1 个词，输出变动",
    sixthReplaced: "换掉第 6 个词，输出变动",
    apart: (degrees) => `到末尾，各个词与第一个词平均相差 ${degrees}°。`,
    ends: (degrees, rms) => `到末尾，各个词与第一个词平均相差 ${degrees}°，RMS 是 ${rms}。`,
    alike: (degrees) => `每个词都变成了第一个词：只差 ${degrees}°。`,
  },
};
