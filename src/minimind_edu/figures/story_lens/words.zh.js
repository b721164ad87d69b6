// The Chinese words of words.js as of 74313aab.

export const storyLensWords = {
  zh: {
    title: "一块接一块，每个词渐渐知道，后面可能是什么。",
    caption: "如果这一块就是最后一块，模型会说什么。颜色越绿，按这个世界的精确规则，它给对的词的概率越多。",
    depth: "经过的块",
    none: "无",
    story: "这个故事",
    columns: ["嵌入", "第 1 块", "第 2 块", "第 3 块", "第 4 块"],
    here: (word, place) => `位置 ${place} 的“${word}”`,
    said: (word, share) => `${word}，${share}`,
    world: "这个世界最可能的",
    percent: (share) => `${share}%`,
    cell: (token, column, word, share) => `${token}，${column}：${word}，对的占 ${share}`,
    verdict: (block, share) =>
      block ? `经过第 ${block} 块，模型会说的话里有 ${share} 是对的。` : `只有嵌入：会说的话里有 ${share} 是对的。`,
  },
};
