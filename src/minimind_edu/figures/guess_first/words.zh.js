// The Chinese words of words.js as of 30b826f3.

const percent = (part) => {
  const value = 100 * part;
  const isRound = (value >= 10 && value <= 90) || value >= 99.95 || value < 0.05;
  return `${value.toFixed(isRound ? 0 : 1)}%`;
};
const nameOf = ([layer, head]) => `第 ${layer} 块的第 ${head} 个头`;
const listed = (heads) => (heads.length === 1 ? nameOf(heads[0]) : `${heads.length} 个头`);

export const guessFirstWords = {
  zh: {
    tongue: 1, // the language of the story
    title: "你先猜，模型后猜。",
    percent,
    named: (word, gloss) => (gloss ? `${word}（${gloss}）` : word),
    guess: (place) => `猜：${place}`,
    yours: ["", "你猜的"],
    bar: (word, share, before, isYours) =>
      `${word}：${percent(share)}${before === null ? "" : `，之前 ${percent(before)}`}${isYours ? "，你猜的" : ""}`,
    rows: "鼓在哪里？",
    road: "四个块，每块四个头：走到这里，各块会说什么",
    // for a phone, and what else there is room for
    hintBefore: ["从问题到答案：四个块，每块四个头。", ""],
    hint: ["紫色的头在读紫色的词。", "每块下面是走到这里的答案。按哪个头，哪个头就静音。"],
    hintSilent: ["带斜线的头已静音。", "每块下面是走到这里的答案。按哪个头，哪个头就静音。"],
    roadHead: (layer, head, isSilent) => `第 ${layer} 块第 ${head} 个头${isSilent ? "，已静音" : ""}`,
    block: (layer) => `第 ${layer} 块`,
    loading: "权重正在路上……",
    unavailable: "权重没有送到。请重新打开页面再试。",
    invite: (parameters) => `你一猜，${parameters} 个权重就在你的浏览器里作答。`,

    silence: "让紫色的头静音",
    ask: ["用英语问", "再用中文问"],
    back: "把头还给它",
    open: "接着来：给它讲你自己的故事",
    again: "重新开始",

    first: (answer, share, isYours) =>
      `模型${isYours ? "也这么说：" : "说"}${answer}，${percent(share)}。米娅放在哪里，鼓就在哪里。`,
    wrong: (heads, answer, share, isOwner, isThatHead) =>
      `少了${isThatHead ? "这一个头（共十六个）" : listed(heads)}，它说${answer}，${percent(share)}` +
      (isOwner ? "，好像鼓跟着米娅走了。" : "。"),
    still: (heads, answer, share) => `少了${listed(heads)}，它还是说${answer}，${percent(share)}。`,
    wrongToo: (answer, share) => `用英语问，错得一样：${answer}，${percent(share)}。两种语言用的是同一个头。`,
    whole: (answer, share) => `头回来了：${answer}，${percent(share)}。还少不了哪些头？按一按。`,
  },
};
