// The Chinese words of words.js as of 7835c829.

export const neuronWordsWords = {
  zh: {
    title: "少数神经元决定下一个词，多数可去掉。",
    caption: (stories) =>
      "每一块里，关掉之后下一个词变化最大的几个神经元：“挪走”是那时转到别的词上的概率。" +
      `“响应”是在 ${stories} 个故事上测的。`,
    more: "更多：激活值、logits、压低的词",
    note:
      "神经元响应的，是 |激活值| 的平均在哪些词上最大。推高和压低，是输出层从它的输出里读到的，" +
      "以这个词处的 logits 计；在靠前的块里读到的，后面的块还可能改掉。" +
      "激活值为负，推高和压低的词就对调。把它看作记忆的键和值：Geva 等（2021）。",
    neuron: (block, number) => `第 ${block} 块 ${number} 号`,
    heads: {
      neuron: "按一下关掉",
      fires: "响应",
      up: "推高",
      down: "压低",
      moves: "挪走",
      activation: "激活值",
    },
    percent: (number) => `${number}%`,
    glossed: (word, gloss) => (gloss ? `“${word}”（${gloss}）` : `“${word}”`),
    next: (token) => `“${token}”之后`,
    nextWithout: (token, block, number) => `“${token}”之后，关掉第 ${block} 块 ${number} 号`,
    verdict: {
      press: "按一个神经元，把它关掉。",
      same: (word, share, isNothing) =>
        `接下来仍是“${word}”，${share}：` +
        (isNothing ? "没有它，其他神经元和头也够了。" : "它说得上话，但不由它决定。"),
      other: (word, then, share) => `“${word}”没有了，接下来是${then}，${share}。`,
    },
  },
};
