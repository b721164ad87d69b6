// The Chinese words of words.js as of 6b5dfaaf.

import { grouped } from "../../web/kit/kit.js";
import { percentOf } from "../words.js";

/** Two that are the same differ by nothing at all. */
const farOf = (moved) => (moved === 0 ? "0%" : percentOf(moved));

export const besideWords = {
  zh: {
    title: "两个模型，同一段文本",
    privateBoth: "两个模型都在这一页里运行。你写的东西，一个字也不会离开这里。",
    notes: {
      tokenizer: (taker, giver) => `${taker} 没有自带分词器，用的是 ${giver} 的。`,
      chat: (taker, giver) => `两者的聊天模板不同：${taker} 也按 ${giver} 的模板读对话。`,
    },
    write: "让两个都作答",
    seed: "种子",
    sameDraws: "两个模型用同一串随机数来抽取：概率一样，抽到的 token 就一样。",

    prompt: "两个模型都读的文本：用方向键移动",
    bothRead: "两个都读",
    answerOf: (side) => `${side} 的回答：用方向键移动`,
    shade: "颜色越深，这个 token 之后两者的预期差得越多；点一个看看差在哪里",
    movedAfter: (text, moved) => `“${text}”之后，两者相差 ${farOf(moved)}`,
    sameSoFar: "到目前为止一样。",
    sameAnswer: (count) => `两者写的完全一样，共 ${grouped(count)} 个 token。`,
    parting: (count, a, b) =>
      `从第 ${count} 个 token 起分开：A ${a === null ? "已经结束" : `写“${a}”`}，` +
      `B ${b === null ? "已经结束" : `写“${b}”`}。`,
    ended: {
      end: (count) => `写了 ${grouped(count)} 个 token，自己结束了。`,
      loop: () => "同样的话说个没完，所以停下了。",
      full: () => "这一页读不了更长的文本。",
      written: (count) => `${grouped(count)} 个 token，到这里停下。`,
    },

    movedNext: (moved) => `到了 B，有 ${farOf(moved)} 的概率换了地方。`,
    bothExpect: (text, a, b) => `“${text}”：A ${a}，B ${b}`,

    far: farOf,
    embeddingName: "嵌入",
    beyond: "超过多少算分开",
    apartNote: "条：在这个 token 处，两条残差流之差有 A 那条的百分之几长。竖线：从这里起算分开。",
    parted: (block, far, bound) =>
      `两者在${block ? `第 ${block} 块` : "嵌入"}分开，相差 ${far}：这是第一处超过 ${bound} 的地方。`,
    together: (bound, most) => `处处都没有超过 ${bound}，相差最多的地方是 ${most}。`,
    unrelated:
      "两条毫不相干的残差流相差 141%，也就是根号 2。" +
      "这两条从第一个 token 起就写在不同的方向上，就像训练是从别的初始值开始的：这时同一个位置上，A 的头与 B 的头未必做同一件事。",
    otherWidths: (a, b) =>
      `A 的残差流有 ${grouped(a)} 个通道，B 的有 ${grouped(b)} 个，所以没法说在哪里分开；可以比的是回答，以及接下来的预期。`,
    otherDepths: (a, b) => `A 有 ${a} 块，B 有 ${b} 块：只比两者都有的块。`,
    otherHeads: (a, b) => `A 每块有 ${a} 个头，B 有 ${b} 个：A 的头与 B 的头对不上号。`,
    headsNote: "方块里的数：到了 B，这个头的注意力有百分之几换了地方，取到这个 token 为止的平均。点一个看看。",
    headMoved: (layer, head, moved) => `第 ${layer} 块 ${head} 号头：${farOf(moved)} 的注意力换了地方`,
    movedHead: (moved) => `到了 B，它的注意力有 ${farOf(moved)} 去了别的 token，取到所选 token 为止的平均。`,
    most: "相差最多的头：",
    inBrackets: (moved) => `（${farOf(moved)}）`,
    between: "、",
    mostEnd: "。",
    noneMoved: "到这个 token 为止，所有的头读的都一样。",
  },
};
