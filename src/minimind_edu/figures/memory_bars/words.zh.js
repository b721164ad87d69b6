// The Chinese words of words.js as of d6dc8cb3.

export const memoryBarsWords = {
  zh: {
    title: "显存花在哪里？",
    caption:
      "整条的宽度是一张卡的显存；显存不够时，竖线标出它到哪里为止。上一项在哪里结束，下一项就从哪里开始；" +
      "激活值一边释放，梯度一边进来。",
    more: "更多：其他模型",
    most: (part, share) => `占得最多的是${part}：${share}`,
    all: "最多",
    parts: {
      weights: "权重",
      reference: "参考模型",
      adam: "Adam",
      copies: "16 位副本",
      cache: "KV 缓存",
      activations: "激活值",
      logits: "logits",
      gradients: "梯度",
    },
    moments: {
      backward: "在反向传播开始时",
      step: "在 Adam 更新时",
      serve: "在写的时候",
    },
    fits: (card, bytes, when) => `${card} GB 显存放得下：${when}最多，${bytes}。`,
    doesNotFit: (card, bytes, when) => `${card} GB 显存不够（out of memory）：${when}要 ${bytes}。`,
    cardLabel: (card, share) => `占 ${card} GB 显存的 ${share}`,
    cardOf: (card) => `${card} GB`,
    percent: (number) => `${number}%`,
    kind: "做什么",
    kinds: { train: "预训练、SFT", lora: "LoRA", dpo: "DPO", serve: "部署" },
    batch: "一批几条文本",
    length: "每条几个 token",
    card: "显存",
    half: "矩阵乘法用 bfloat16（autocast）",
    model: "模型",
    models: { small: "MiniMind2 small", base: "MiniMind2", minimind3: "MiniMind3" },
    tokens: "一批的 token 数",
    perToken: "每个 token 留下",
    measured: "H200 上实测",
  },
};
