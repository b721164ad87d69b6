// The Chinese words of words.js as of cf8d6b15.

export const longerTextWords = {
  zh: {
    title: "",
    titles: {
      head: "训练时 96 个词，现在读 384 个：该拉伸多少？",
      stretch: "红色的，训练时从没见过。",
      far: "又是拉伸 8：近处的词原地不动，会怎样？",
    },
    caption:
      "柱子：损失比可能的最小值高出多少，是十组故事的平均，每组 12 个；细线是十组之间的波动，虚线是不拉伸时的高度。" +
      "表盘：16 对通道；灰色的角度训练时见过，红色的是新的。",
    more: "",
    stretch: "拉伸 s",
    times: (stretch) => `${stretch}`,
    far: "只放慢远处的词",
    model: "模型",
    models: { living: "本书的", twin: "孪生的" },
    loss: "比最小损失高出多少 nat",
    words: (first, last, isShort) => (isShort ? `${first}–${last}` : `第 ${first}–${last} 词`),
    word: "从哪个词往回看",
    away: (word) => `第 ${word} 个词往回看`,
    back: (distance) => `往前 ${distance}`,
    met: "见过",
    unmet: (isShort) => (isShort ? "没见过" : "训练时从没见过"),
    dial: (pair, met, isNew) => `第 ${pair} 对：训练时见过 ${met} 度${isNew ? "，现在有新的角度" : ""}`,
    picture: (stretch, losses) => `拉伸 ${stretch}：文本的四段各高出 ${losses.join("、")} nat`,
    verdict: {
      best: (stretch, first, last, loss) => `第 ${first} 到 ${last} 个词，八种拉伸里 ${stretch} 最好：${loss}。`,
      more: (stretch) => `拉伸 ${stretch} 超过了这段文本的需要：没有哪一段在这里损失最小。`,
      far: (stretch, loss, all) => `拉伸 ${stretch}，最后一段：${loss}。近处的词也放慢：${all}。`,
    },
  },
};
