// The Chinese words of words.js as of dc665b5c.

export const fiveSwitchesWords = {
  zh: {
    titleCompact: "让一个部件变小：小了哪一个，模型就学不会？",
    titles: {
      curve: "查询和键小，毫无影响；归一化小，谁也学不会。",
      all: "32 个通道：归一化一小，48 次训练没有一次学会。",
    },
    captions: {
      curve:
        "模型学着翻译一句话。三个种子，各一条线；细线：上一种设置。大：标准差 0.15，增益从 1 开始。" +
        "小：小到 7.5 分之一。比下限至多高 0.1，就算学会。",
      all: "每一行是开关的一种设置；每个点是一个种子最后停在哪里，单位是比下限高出的 nat。带框的：上面选的设置。",
    },
    more: "",
    board: "模型的五个部件",
    parts: { table: "嵌入表", q_k: "q、k", v_o: "v、o", feed_forward: "前馈", norm: "归一化" },
    sizes: { large: "大", small: "小" },
    part: (name, size) => `${name}：${size}`,
    axis: "每词比下限高出多少 nat",
    guessed: "名字全靠猜",
    steps: (count) => `${count} 步`,
    columns: ["归一化大", "归一化小"],
    picture: (ends) => `三次训练，最后比下限高出 ${ends.join("、")} nat。`,
    rows: "32 种设置各三次训练，最后比下限高出多少 nat",
    verdict: (count, ends) => {
      const losses = `比下限高 ${ends.join("、")} nat`;
      if (count === 3) return `三个种子都学会了：${losses}。`;
      return count ? `三个种子里学会了 ${count} 个：${losses}。` : `一个种子也没学会：${losses}。`;
    },
  },
};
