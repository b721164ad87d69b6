// The Chinese words of words.js as of 59ae6e6f.

export const guessAheadWords = {
  zh: {
    title: "你来猜，大模型来查",
    titleCompact: "你往前猜，写出来的会是什么？",
    titles: {
      leftovers: "猜得再差也不要紧：写出来的，还是大模型会写的",
      all: "改从所有词里补：写出来的，就带上了猜的痕迹",
      draft: "两个模型都说的，留下；草稿模型说得太少的，大模型补上",
    },
    caption:
      "条：大模型给的概率。竖线：一个词实际出现的比例。第二、第三列只算前面猜的词全都留下的那些轮。" +
      "⇒ 要求用中文说上一句话。",
    captionDraft:
      "飞镖随机落在所猜的词那根草稿条上：落在实心部分，猜的词就留下；落在虚线部分就被拒绝，改从剩余里抽一个词。" +
      "竖线：一个词实际出现的比例。",
    more: "更多：换一批随机数",
    heads: ["第 1 个词", "第 2 个词", "第 3 个词"],
    others: "其他",
    rule: "词被拒绝以后，补上的词来自",
    rules: { leftovers: "剩余", all: "所有词" },
    play: { 1: "1 轮", 20: "20 轮", 1000: "1,000" },
    again: "从 0 开始",
    seed: "换一批",
    legend: { both: "都有，min(p, q)", often: "猜得太多", left: "剩余，p − q", came: "实际出现" },
    p: "p",
    q: "q",
    free: "+ 1",
    percent: (share) => `${share}%`,
    ask: "在每一列里按一个词，这就是你猜的。再按“20 轮”。",
    askDraft: "小模型猜三个词。按“1 轮”。",
    kept: "猜的三个词全留下，同一次前向还多给一个词。",
    rejected: (word, replacement) => `“${word}”被拒绝，后面的也一起作废。补上“${replacement}”。`,
    after: (word, came, rounds, share, words) =>
      `“${word}”：${rounds} 轮里 ${came} 次（模型：${share}）。每轮 ${words} 个词。`,
    numbers: { rounds: "轮数", words: "每轮写出的词", gap: "与大模型的差距" },
    nothing: "–",
    bar: (word, p, came) => `${word}：大模型 ${p}，实际出现 ${came}`,
    barDraft: (word, p, q, came) => `${word}：大模型 ${p}，草稿模型 ${q}，实际出现 ${came}`,
  },
};
