// The Chinese words of words.js as of aa93c7b8.

export const poemGridWords = {
  zh: {
    titles: {
      exchange: "换掉第二句的韵脚，模型察觉得到吗？",
      heads: "少了 3.1 号头，韵丢了一半多，平仄还在",
    },
    title: "",
    captions: {
      exchange:
        "第四句末字之前是王维的，往后由模型接着写。○ 平，● 仄，◐ 平仄两读，· 韵书不载；绿色和 ✓：押韵。三个数：出自它从头写的 256 首诗。",
      heads: "线从韵脚前一个字出发，通到这个头读的地方，粗细就是权重。三个数：出自这样从头写的 256 首诗。",
    },
    caption: "",
    more: "更多",
    model: "模型读过",
    models: { untrained: "什么也没读", before: "整首诗", verse: "还有句尾" },
    silence: "静音一个头",
    heads: { none: "都不静音", 3.1: "3.1", 2.1: "2.1", 3.2: "3.2" },
    first: "第二句的韵脚",
    line: "看第几句",
    reads: [
      ["v", "3.1 读韵脚"],
      ["k", "2.1 读句号"],
      ["q", "2.4 读逗号"],
    ],
    percent: (number) => `${number}%`,
    due: (line) => `第 ${line} 句末字最可能是`,
    bar: (character, share, isRhyme) => `${character}，${share}${isRhyme ? "，押韵" : ""}`,
    picture: (text, line) => `排成格子的一首诗，到第 ${line} 句末字之前，该填一个字：${text}`,
    verdict: ({ line, first, share, poets }) =>
      `第 ${line} 句末：与“${first}”同韵的字占 ${share}${poets ? `，与“秋”同韵的占 ${poets}` : ""}。`,
    form: "合格式的诗",
    tones: "平仄相对",
    rhyme: (chance) => `押韵（碰巧 ${chance}）`,
  },
};
