// The Chinese words of words.js as of a9a81573.

const percent = (thousandths) => `${Math.round(thousandths / 10)}%`;

export const guessAheadWords = {
  zh: {
    title: "两个模型都说的，留下；草稿模型说得太少的，大模型补上。",
    caption:
      "p：大模型；q：草稿模型。飞镖随机落在所猜的词那根草稿条上：" +
      "落在实心部分，猜的词就留下；落在虚线部分就被拒绝，改从条纹部分（剩余）里抽一个词。",
    more: "更多：换一批抽取",
    step: "检查过的词",
    seed: "种子",
    legend: { both: "都有，min(p, q)", often: "草稿说太多", left: "剩余，p − q" },
    p: "p",
    q: "q",
    percent,
    kept: (word, p, q) =>
      p >= q
        ? `“${word}”必定留下：大模型给它 ${percent(p)}，草稿模型给 ${percent(q)}。`
        : `“${word}”靠运气留下：${percent(q)} 里只有 ${percent(p)} 算数。`,
    rejected: (word, said) => `“${word}”被拒绝，后面猜的也一起作废。从剩余里抽到“${said}”。`,
    free: (word) => `猜的四个词全留下，同一次前向还白送一个词：“${word}”。`,
    written: "写出的词",
    passes: "大模型前向次数",
    bar: (word, p, q) => `${word}：大模型 ${percent(p)}，草稿模型 ${percent(q)}`,
  },
};
