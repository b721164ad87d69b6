// The Chinese words of words.js as of 995a131d.

export const mixtureWalkWords = {
  zh: {
    title: "每个词会去哪里？",
    titles: {
      word: "一个词：四个得分，两个回答，一个和",
      text: "每一行都去找自己的专家，再回到原位",
      weights: "一个数除以它自己，总是 1",
      load: "放着不管，路由器会怎样分这些词？",
    },
    caption: "",
    captions: {
      word: "一条就是一个向量：青灰大于 0，褐色小于 0。",
      text: "按一个词，就跟着它走。词里的金色是它得到的回答，权重越大越宽。",
      weights: "按一个词，就跟着它走。每种设置都是单独训练的，各 400 步。",
      load: "横条：40 个新故事里的负载。短线和虚线：均分。",
    },
    more: "更多",
    view: "显示",
    views: { word: "一个词", text: "整段文字" },
    trained: "训练步数",
    topK: "每个词的专家数",
    renormalize: "重新归一化",
    balanced: "辅助损失",
    play: "播放",
    pause: "暂停",
    step: "下一步",
    back: "上一步",
    vector: (word) => `“${word}”的那一行：48 个数`,
    rowOf: (number, isShort) => (isShort ? `× 第 ${number} 行` : `× 路由器第 ${number} 行`),
    logit: (logit, isShort) => (isShort ? logit : `合计 ${logit}`),
    weight: (weight) => `× ${weight}`,
    left: "落选",
    expert: (number) => `${number} 号专家`,
    added: "加到残差流里的这一行上",
    percent: (number) => `${number}%`,
    rows: (count) => `${count} 行`,
    moved: "训练让路由器移动了",
    loss: "损失（每词多少 nat）",
    steps: {
      word: [
        ({ word }) => `“${word}”来了，是一行 48 个数。`,
        ({ best, logit }) => `与路由器的一行逐个相乘，再加起来，就是一个 logit。${best} 号专家的最大：${logit}。`,
        ({ best, percent, guess }) => `softmax 把它们变成概率：${best} 号专家占 ${percent}%。${guess}`,
        ({ chosen, rule }) => `只留下 ${chosen}。${rule}`,
        ({ chosen }) => `这一行去 ${chosen}那里。其他专家不为它做任何计算。`,
        ({ chosen }) => `${chosen}作答。每个专家都是第 8 章那样的网络，48 → 64 → 48，参数各是各的。`,
        ({ sum }) => `回答乘上权重：${sum}，加到这个词的那一行上。`,
      ],
      text: [
        ({ tokens, k }) => `${tokens} 个词；路由器给每个词选${k === 1 ? "一" : "两"}个专家。`,
        ({ most, mostRows, word, chosen }) =>
          `“${word}”去了 ${chosen}那里。${most} 号专家有 ${mostRows}，一次全部算完。`,
        ({ word, sum, left }) => `回答都回到了原位。“${word}”：${sum}${left}。`,
      ],
    },
    loads: (most, mostRows, load, word, chosen) =>
      `14 行里，${most} 号专家得到 ${mostRows}；新故事的词，它得到 ${load}%。“${word}”去 ${chosen}那里。`,
    guess: (percents, isRenormalized) =>
      !isRenormalized
        ? "留下的会是谁？"
        : percents.length === 1
          ? `${percents[0]} 除以它自己，是多少？`
          : `会留下两个：${percents.join(" 和 ")} 各除以它们的和，是多少？`,
    kept: (weights) => `各除以它们的和，就是权重：${weights}。`,
    keptOne: "除以它自己，权重总是 1。",
    asIs: (weights) => `概率就是权重：${weights}。`,
    asIsOne: (weight) => `概率就是权重：${weight}。`,
    experts: (numbers) => `${numbers.join("、")} 号专家`,
    sum: (pairs) => pairs.map(([expert, weight]) => `${weight} × ${expert} 号`).join(" + "),
    missing: (sum) => `，一共 ${sum}`,
    picture: (sentence) => `四个专家的混合。${sentence}`,
    follow: (word) => `跟着“${word}”`,
  },
};
