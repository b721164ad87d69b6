// The Chinese words of words.js as of b7ef7d65.

export const pipeAndMillWords = {
  zh: {
    titleCompact: "磨有多少时间在转？",
    titles: {
      texts: "一条文本，磨等着；许多文本，桶等着。",
      models: "核自己的高速缓存装得下，就从不等字节。",
    },
    captions: {
      texts:
        "在一个核上测的。灰：只读权重。实色：同样的一步，权重在手边。橙：一半的测量落在这里。转和停交替得多细，只是画出来的。",
      models:
        "在一个核上测的：宽 768 的 16 个块，宽 512 的 8 个块，和书里的小模型，核自己的高速缓存就装得下它。" +
        "实色：权重在手边时剩下的时间，包括调用。",
    },
    more: "",
    texts: "文本",
    textsValue: (count) => `${count} 条`,
    weights: "权重",
    places: { memory: "在内存里", hand: "在手边" },
    model: "模型的权重",
    play: "走一步",
    stop: "停",
    slower: (factor) => `放慢到 ${factor} 分之一`,
    memory: "内存",
    bytes: (count) => `${count} MB`,
    grindsFor: (texts) => `${texts} 条文本`,
    lanes: { pipe: "光是字节", mill: "光是算术", hand: "权重在手边的一步", step: "一步" },
    none: "没有来的",
    ms: (number) => `${number} 毫秒`,
    numbers: { step: "一步", turns: "磨在转", words: "词/秒" },
    percent: (number) => `${number}%`,
    verdict: {
      waits: (waits, factor) => `一步里，磨有 ${waits} 的时间在等；这一步是一条文本时的 ${factor} 倍。`,
      one: (waits) => `一步里，磨有 ${waits} 的时间在等。`,
      busy: "磨几乎一直在转。",
      fits: "这一步几乎不等字节。",
      hand: (step, memory) => `权重在手边，同样的一步只要 ${step}，而不是 ${memory}。`,
      none: "权重在手边，一步还是那么长：它从来没有在等权重。",
    },
    picture: (texts, step, turns) =>
      `一根管道从内存通到一座磨。文本 ${texts} 条。一步 ${step}，磨转的时间占 ${turns}。`,
  },
};
