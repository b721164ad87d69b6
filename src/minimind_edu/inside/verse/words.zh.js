// The Chinese words of words.js as of 4e7a5d1b.

import { grouped } from "../../web/kit/kit.js";
import { percent } from "../numbers.js";

const percentOf = (part) => percent(part, "%");
const headOf = (key) => {
  const [layer, head] = key.split(".").map(Number);
  return `第 ${layer + 1} 块 ${head + 1} 号头`;
};

export const verseWords = {
  zh: {
    title: "会写诗的页面",
    book: "从内部看 MiniMind",
    theme: { light: "颜色：浅色", dark: "颜色：深色" },
    explains: {
      verse: "这是什么，又做不到什么",
      rhyme: "它怎样学会押韵",
      heads: "头是什么",
      drawing: "温度起什么作用",
    },
    inChapter: (says, chapter) => `${says}：第 ${chapter} 章`,
    lead: (weights) => `起个头，或者定个韵，剩下的交给模型：它有 ${grouped(weights)} 个权重，学的是唐宋的近体诗。`,
    private: "模型就在这一页里运行，你写的内容不会离开这里。",
    opening: (part) => `正在打开模型…… ${percentOf(part)}`,
    failed: (message) => `模型无法继续：${message}`,
    begin: "开头",
    beginHint: "一个字、一句、几句都行，也可以空着",
    rhyme: "第二句韵脚",
    lines: "体裁",
    linesOf: { 4: "绝句", 8: "律诗" },
    width: "字数",
    widthOf: { 5: "五言", 7: "七言" },
    write: "写",
    again: "再来一首",
    copy: "复制链接",
    copied: "已复制：谁打开它，看到的都是这一首。",
    toCopy: "这首诗的链接：",
    drawing: (temperature) => `怎样选字：${temperature ? `温度 ${temperature}` : "总取最可能的"}`,
    temperature: "温度",
    greedy: "0，最可能的",
    /** Why what is typed is not written on: one sentence. */
    problems: {
      strange: ({ character }, count) =>
        `“${character}”不在这个模型认得的 ${grouped(count)} 个字（简体）里：请换一个字。`,
      length: ({ line, count, width }) => `这里每句 ${width} 个字，“${line}”有 ${count} 个：句与句之间请加逗号。`,
      long: ({ count }) => `一首诗最多 8 句，这里有 ${count} 句。`,
      rhymes: ({ count }) => `第二句的韵脚是一个字，这里有 ${count} 个。`,
      taken: ({ character }) => `按已经写的，第二句以“${character}”结尾：请把韵脚一栏空着。`,
    },
    poem: "这首诗：按一个字，看模型在那里还想过哪些字",
    character: (character, tone, rhyme) => [`“${character}”`, tone, rhyme].filter(Boolean).join("，"),
    tones: { 1: "平", "-1": "仄", 0: "平仄两读", null: "韵书里没有" },
    rhymed: { first: "韵脚", rhyme: "押韵", same: "与上一韵脚是同一个字", none: "不押韵" },
    legend: [
      "○ 平，● 仄，◐ 两读，· 韵书里没有。",
      "绿：按平水韵与上一个韵脚押韵。红：不合规则的地方。标出来的只是查韵书的结果，与诗好不好无关。",
    ],
    kept: "合了多少规则",
    rhymes: (groups) => `押韵${groups.length ? `（${groups.join("、")}）` : ""}`,
    opposed: "两句平仄相对",
    ends: "句尾平仄",
    marks: "模型自己也会断在这里的标点",
    share: ([right, all]) => `${all} 处中 ${right} 处`,
    nothing: "没有可判断的",
    expected: (character) => `在“${character}”这里，模型想过：`,
    signs: { "</s>": "结尾", "<s>": "开头" },
    put: (character, p) => `“${character}”，${percentOf(p)}：写在这里，从它接着写`,
    percent: percentOf,
    heads: "让一个头静音",
    headsHint: "按一个头，它就静音；同样的抽签，写出的是另一首。",
    headName: headOf,
    block: (layer) => `第 ${layer + 1} 块`,
    whole: "没有静音",
    without: (silenced) => `静音：${silenced.map(headOf).join("、")}`,
    count: (more) => `再写 ${more} 首，数一数`,
    counting: (done, all) => `正在数：${all} 首中第 ${done} 首`,
    tally: ["首", "押韵", "平仄", "断句"],
    tallied: (part) => (Number.isNaN(part) ? "–" : `${Math.round(100 * part)}%`),
    bringBack: "全部恢复",
    checking: "正在与 PyTorch 核对……",
    checked: ({ far, isSame, why }) =>
      (isSame
        ? `已核对：logit 与 PyTorch 相同${far < 1e-3 ? "" : `，相差不到 ${far.toPrecision(1)}`}。`
        : `这个页面与 PyTorch 不一致：有一个 logit 差 ${far.toPrecision(2)}。请以 PyTorch 为准。`) +
      (why ? `它用普通的 JavaScript 运行，会慢：这里没有 WebAssembly（${why}）。` : ""),
    how:
      "你没有给的字，都由模型来选，从合起来占 90% 的那些最可能的字里抽；逗号和句号由页面来放。" +
      "定了韵脚时：第一联打 24 份草稿，从中抽一份，越盼着这个字的草稿越容易抽中。",
  },
};
