// The Chinese words of source_words.js as of 5610a9b8.

export const liveSourceWords = {
  zh: {
    label: "图中显示什么",
    sources: { example: "示例", story: "这个故事" },
    loading: "训练好的模型正在路上……",
    unavailable: "取不到训练好的模型：这里没有内核，页面上也没有带来它的脚本。",
    reads: (count, last) => `本书训练的模型读这个故事：${count} 个 token，最后一个是“${last}”。`,
    change: "改写故事",
    words: "故事里的词",
    layer: "层",
    head: "头",
    telling: {
      recall: (layer, head, lost) => `第 ${layer} 层的 ${head} 号头负责找地点；没有它，这类答案会丢掉 ${lost}。`,
    },
    percent: (number) => `${number}%`,
  },
};
