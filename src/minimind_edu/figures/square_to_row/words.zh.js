// The Chinese words of words.js as of e23e8bf0.

export const squareToRowWords = {
  zh: {
    titleCompact: "这里有哪些是算第二遍的？",
    titles: {
      saved: "同一次调用，没有缓存和有缓存：一个方阵，和其中新的一行。",
      sound: "没有错误：文本怎么切，算出的行都和方阵里的一样。",
      broken: "只改动一行代码，新算的行就不再是方阵里的行。",
    },
    title: "",
    captions: {
      saved: "4.2 号头的注意力权重。橙色：新的行。灰色：前面的调用已经算过的行。",
      broken: "4.2 号头的注意力权重。✕：相差 5 个百分点以上。红色的键是错的。",
    },
    more: "",
    without: () => "没有缓存",
    withCache: () => "有缓存",
    bugged: (bug, isShort) => (isShort ? `“${bug}”` : `有缓存，“${bug}”`),
    inAll: (now, all) => [`这次 ${now} 行`, `一共 ${all} 行`],
    comma: "，",
    play: "播放",
    pause: "暂停",
    step: "下一步",
    back: "上一步",
    bug: "错误",
    bugs: { none: "没有错误", offset: "错位", again: "重转", stale: "残留", square: "方形" },
    chunk: "每次调用读 prompt 的几个词",
    start: "还什么都没读。按“下一步”。",
    prefill: (count, isFirst) =>
      isFirst ? `第一次调用读 ${count} 个词：每一行都是新的。` : `这次调用又读了 prompt 的 ${count} 个词。`,
    saved: (word, held, past) => `读“${word}”。没有缓存要算 ${held} 行，其中 ${past} 行是重算；有缓存只算 1 行。`,
    same: (word) => `✓ 它说“${word}”，logits 也都对。`,
    differ: (word, right, by) =>
      `≠ 它${word === right ? `还是说“${word}”` : `说“${word}”，不是“${right}”`}；logits 最多差了 ${by}。`,
    first: (call) => `第 ${call} 次调用起就错了。`,
    picture: (held, past) => `两张注意力权重表。没有缓存 ${held} 行，有缓存 ${past} 行。`,
    numbers: { again: "×", offset: "位置" },
  },
};
