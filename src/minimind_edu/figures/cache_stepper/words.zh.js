// The Chinese words of words.js as of c284375b.

export const cacheStepperWords = {
  zh: {
    title: "每次调用只算新来的几行，其余的从缓存里读。",
    caption: "要是没有缓存，每个圆圈都得重算一遍，而且每一层都是。",
    costOfPosition: (layers, heads, channels, bytes) =>
      `每个位置：${layers} 层 × 2（k、v）× ${heads} 个头 × ${channels} 个通道 × 4 字节 = ${bytes} 字节。`,
    firstOf: (shown, count) => `这里画出 ${count} 个 token 中的前 ${shown} 个。`,
    more: "更多：掩码、logits、其他大小",
    play: "播放",
    pause: "暂停",
    step: "下一步",
    back: "上一步",
    reset: "从头开始",
    layer: "层",
    prefill: "预填充",
    decode: "解码",
    call: (number, isPrefill) => `第 ${number} 次（${isPrefill ? "预填充" : "解码"}）`,
    noCall: "还没有调用",
    position: "位置",
    rotations: "旋转",
    later: "还没读",
    logits: "logits 相同？",
    computed: "这次调用算的",
    reused: "从缓存读的",
    computedSoFar: (count) => `算过：${count}`,
    reusedSoFar: (count) => `从缓存读过：${count}`,
    picture: (call, calls, held, size) =>
      `${calls} 次调用做了 ${call} 次，缓存里有 ${held} 行。最后一次算了 ${size} 行，从缓存读了 ${held - size} 行。`,
    bug: "错误",
    bugs: {
      none: "没有错误",
      offset: "错位",
      again: "重转",
      stale: "残留",
      square: "方形",
    },
    prompt: "prompt 的词数",
    chunk: "每段的词数",
    fresh: "新 token 数，用来数前向次数",
    start: "按“下一步”，做第一次调用。",
    same: "✓ 每次调用的 logits 都与没有缓存时相同。",
    differ: (call, by) => `≠ logits 从第 ${call} 次调用开始不同，相差 ${by}。`,
    noMask: "还没有调用，也就没有掩码。",
    mask: (call, size, held, missing) =>
      `第 ${call} 次调用的掩码，[S, T] = [${size}, ${held}]：${size} 个查询，${held} 个键` +
      `${missing ? `；✕ ${missing} 个键不该藏而藏了` : ""}。`,
    distances: "logits：与没有缓存时的距离",
    spread: "全部 logits 的离散程度（虚线）",
    identical: "相同",
    distanceOf: (call, distance) => `第 ${call} 次调用：${distance}`,
    holds: (rows) => `${rows} 行占的字节`,
    soFar: "算过的行",
    without: "没有缓存时",
    oneLayer: "一层占的字节",
    passes: (prompt, fresh) => `${prompt} + ${fresh} 个 token 的前向次数，没有缓存`,
    passesWith: "有缓存",
    note:
      "每次运行都是真的：一个两层的 MiniMind，用 float64，读的是同样的词；每种错误只改动一行。" +
      "所有距离都是算出来的，不是画出来的。",
  },
};
