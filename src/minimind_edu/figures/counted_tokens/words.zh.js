// The Chinese words of words.js as of a0e86942.

export const countedTokensWords = {
  zh: {
    titleCompact: "哪些 token 必须算数，它才会回答，也会停下？",
    titles: {
      masks: "算数的才学得会：把掩码挪动一个 token，再训练。",
      shift: "每个位置都要说出后面那一个：把移位弄错，再训练。",
      row: "一行 token，三个掩码。",
    },
    title: "",
    captions: {
      masks:
        "粗体：算数的。条：每个位置上的损失，最长画到 6 个 nat。百分比：200 段新对话里，说对房间的，" +
        "还有给出正确的房间之后接着停下的。",
      row: "灰色：模板。粗体：算数的。圆点：读的那个 token 可以看的。",
    },
    more: "",
    reads: "读到",
    says: "要说出",
    ids: "编号",
    looks: "可以看",
    none: "–",
    mask: "什么算数",
    masks: { answer: "答案", early: "早一个", late: "晚一个", everything: "全部", padding: "连填充" },
    ahead: "标签是",
    aheads: { 1: "下一个", 0: "同一个", 2: "再下一个" },
    trained: "微调",
    steps: (count) => `${count} 步`,
    reader: "谁在读",
    answers: "它回答",
    numbers: ["房间说对", "随后停下"],
    percent: (share) => `${share} %`,
    play: "播放",
    pause: "暂停",
    step: "前进",
    back: "后退",
    stages: [
      "一段对话：一个故事、一个问题，还有答案。",
      "模板写明谁在说话，每条消息到哪里为止。",
      "每个 token 是一个数。别的模型都看不见。",
      "标签：同一行往左挪一格。每个位置都要说出后面那一个。",
      "损失掩码：答案和结束符算数。",
      "填充让各行一样长。它不算数，谁也不读它。",
      "因果掩码：一个 token 只读自己和前面的。",
    ],
    picture: (stage, count) => `一段对话排成一行 token。${stage}其中 ${count} 个算数。`,
  },
};
