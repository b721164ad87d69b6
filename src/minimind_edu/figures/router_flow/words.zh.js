// The Chinese words of words.js as of 85762053.

// How many experts of four get next to nothing.
const idleExperts = ["", "；另有一个几乎空着", "；另有两个几乎空着", "；其余的几乎空着"];

export const routerFlowWords = {
  zh: {
    title: "放着不管，路由器就偏心；加上辅助损失，活就摊开了。",
    caption: "线是路由器的选择，权重越大越粗。条是 40 个新故事里的负载，短线标出均分。",
    more: "更多：选两个专家、另一个块、别的种子",
    steps: "训练步数",
    balanced: "辅助损失",
    topK: "每个 token 的专家数",
    block: "块",
    seed: "种子",
    tokens: "词",
    loads: "新故事里的负载",
    expert: (number) => `${number} 号专家`,
    even: "均分",
    percent: (number) => `${number}%`,
    balance: "N Σ f P（均分：1）",
    loss: "损失，nat 每词",
    favorite: (number, load, idle, topK) =>
      `${number} 号专家得到 ${load}% 的${topK === 1 ? " token" : "选择"}${idleExperts[idle]}。`,
    level: (load) => `人人有活干：最忙的专家得到 ${load}%。`,
    picture: (words, loads, step, balanced) =>
      `训练 ${step} 步之后，${balanced ? "有" : "没有"}辅助损失，${words} 个词分给四个专家。` +
      `负载：${loads.map((load) => `${load}%`).join("、")}。`,
    along: "到此为止，最忙的专家的负载，三个种子",
    without: "没有辅助损失",
    with: "有辅助损失",
    course: (step, without, balanced) =>
      `到第 ${step} 步为止，最忙的专家的负载；在这一步：` +
      `没有辅助损失：${without.map((load) => `${load}%`).join("、")}。` +
      `有辅助损失：${balanced.map((load) => `${load}%`).join("、")}。`,
  },
};
