// The Chinese words of words.js as of 715b4835.

const percent = (share) => {
  const value = 100 * share;
  return `${value.toFixed((value >= 0.05 && value < 9.95) || (value > 99 && value < 99.95) ? 1 : 0)}%`;
};

export const samplerWords = {
  zh: {
    title: "分布改成什么样，抽出来的词就跟着变成什么样。",
    titleCompact: "温度低，偏向可能的词；温度高，机会更平均。",
    caption: "按一根条，就把那个词接到文本后面。",
    more: "更多：预设、重复惩罚、你的故事",
    start: "后面能接几个词？",
    starts: { broad: "很多", medium: "几个", sharp: "一个" },
    percent,
    others: (count) => `其余 ${count} 个`,
    cut: "截掉",
    bar: (word, before, after, share) =>
      `${word}：${percent(before)}，${after === null ? "截掉" : `经过旋钮后 ${percent(after)}`}` +
      (share === null ? "" : `，占抽取的 ${percent(share)}`),
    legend: { before: "模型", after: "经过旋钮", drawn: "抽到的" },
    presets: "预设",
    presetNames: { plain: "无", greedy: "贪心", careful: "谨慎", free: "自由" },
    knobs: {
      repetition_penalty: "重复惩罚",
      temperature: "温度",
      top_k: "top-k",
      top_p: "top-p",
      min_p: "min-p",
    },
    all: "全部",
    none: "无",
    left: (value, count) => `${value} · 剩 ${count} 个`,
    order:
      "次序是固定的：重复惩罚、温度、top-k、top-p、min-p。有惩罚时，虚线标出文本里已经有的词。" +
      "“差距”是要让圆点正好落在条的末端，得挪动多大一部分抽取。",
    recipe: (active) => active.join(" → "),
    verdict: {
      plain: "什么也没改：这就是模型自己的概率。",
      one: (word, share) => `每次抽到的都是“${word}”；模型本来给它 ${percent(share)}。`,
      cut: (left, all, share) => `${all} 个词剩下 ${left} 个；其余的本来有 ${percent(share)}。`,
      penalized: "没有词被截掉；文本里已经有的词，可能性变小了。",
      sharper: "没有词被截掉；可能的词更可能了。",
      flatter: "没有词被截掉；不太可能的词机会变大了。",
    },
    drawOne: "抽 1 次",
    drawMany: (count) => `抽 ${count} 次`,
    take: (word) => (word ? `接上“${word}”` : "接上它"),
    back: "撤销",
    newSeed: (seed) => `换一批：种子 ${seed}`,
    before: "模型的熵",
    after: "经过旋钮后的熵",
    nats: (value) => `${value} nat`,
    gap: (count) => (count ? `抽 ${count} 次：频率与概率的差距` : "抽到的频率与概率的差距"),
    noGap: "–",
    status: {
      ready: "",
      loading: "训练好的模型正在路上……",
      unavailable: "取不到训练好的模型，所以文本在这里没法变长。",
      full: "文本在这里最长就这么长了。撤销几个词，或者换一个开头。",
    },
  },
};
