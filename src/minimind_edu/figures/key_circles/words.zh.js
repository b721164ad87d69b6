// The Chinese words of words.js as of 759db70a.

export const keyCirclesWords = {
  zh: {
    title: "每种属性八个值：能问的东西每多一样，就要多两个通道。",
    titleCompact: "一个头装着四个问题的键。它可以有多窄？",
    titleOfQuery: "在圆上，每个值都有一个方向，朝那边它最远。",
    caption: "每一格：一种属性的八个值学来的键，从散得最开的一面看。下面：答对的名字；六个里猜一个，是 17%。",
    captionOfQuery: "箭头：问这个值的查询。八个键里，分到的注意力越多，点就越实。没有圆的地方，什么也选不了。",
    more: "",
    picture: (channels, fields) => `一个头的键，头有 ${channels} 个通道。${fields.join("。")}`,
    field: (property, share, isCircle) =>
      `“${property}”：${isCircle ? "八个键在一个圆上" : "八个键在一处"}，答对 ${share}`,
    properties: ["谁在……？", "谁拿着……？", "谁戴着……？", "谁爱喝……？"],
    short: ["在", "拿着", "戴着", "爱喝"],
    channels: "头的通道数",
    seed: "随机的起点",
    asked: "问第几个值",
    percent: (number) => `${number}%`,
    verdict: {
      keys: (channels, count, all) => `${channels} 个通道：4 个问题答得出 ${count} 个，名字一共答对 ${all}。`,
      query: (asked, shares) => `问第 ${asked} 个值，四种属性里，它的键分到 ${shares}。`,
    },
    listed: (parts) => `${parts.slice(0, -1).join("、")} 和 ${parts.at(-1)}`,
  },
};
