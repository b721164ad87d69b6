// The Chinese words of words.js as of 77f16f1d.

const percentOf = (part) => {
  const value = 100 * part;
  const isRound = (value >= 10 && value <= 90) || value >= 99.95 || value < 0.05;
  return `${value.toFixed(isRound ? 0 : 1)}%`;
};

export const minimindLiveWords = {
  zh: {
    tongue: 1,
    title: "给 MiniMind 讲个故事，问它问题，趁它回答时看看里面。",
    titleCompact: "这个模型就在你的浏览器里运行。它读完故事，回答问题。",
    caption: (words, parameters, trained) =>
      `${words} 个词和一栋房子里的规则：这个有 ${parameters} 个权重的模型只见过这些。超过 ${trained} 个词，` +
      `它就会变差。这不是语言理解。`,
    more: "更多",
    openPage: "按七下走一遍：打开完整页面",
    percent: percentOf,
    quoted: (word) => `“${word}”`,
    glossed: (word) => word,
    loading: "权重正在路上……",
    unavailable: "权重没有送到，所以这个页面只显示初始状态。请刷新重试。",

    story: "到目前为止的故事：用方向键移动",
    examples: ["谁拿着球？", "钥匙去了哪里？", "大家都在哪里？"],
    exampleLabel: "其他故事：",
    begin: "从头写起",
    undo: "撤销",
    chipWritten: "模型写的",
    chipBroken: "违反这个世界的规则",
    chipAfter: "在规则被打破之后",
    road: "四个块，每块四个头：走到这里，各块会说什么",
    roadHead: (layer, head) => `让第 ${layer} 块的 ${head} 号头静音`,
    instead: (word) => `换掉“${word}”`,
    openBelow: "在模型里打开它",
    noInstead: "按故事里的任何一个词，就可以换掉它。",
    beginning: "每个故事都从这里开始。",
    unjudged: "在这个词之前，规则已经被打破。",
    full: (most) => `故事写满了：本页最多读 ${most} 个词。`,
    broken: (word) => `按这个世界的规则，“${word}”不能出现在这里。模型还是照样读它。`,

    after: (word) => `“${word}”后面是什么？`,
    bar: (word, model, exact, before) =>
      `${word}：${model === null ? "还不知道" : percentOf(model)}` +
      (before === null ? "" : `，原来 ${percentOf(before)}`) +
      (exact === null ? "" : `，精确值 ${percentOf(exact)}`),
    guessTitle: "鼓在哪里？你先猜。",
    guess: (word) => `猜${word}`,
    guessHint: "还没有答案。按一个地方，或者让模型先说。",
    legend: "在这个世界里的精确概率",
    noLegend: "故事已经脱离规则：没有精确的答案可以比较。",
    next: "下一个词",
    play: "播放",
    stop: "停止",
    sampling: "怎样抽取一个词",
    temperature: "温度",
    greedy: "0，取最可能的",
    topK: "top-k",
    topP: "top-p",
    all: "全部",

    palette: "自己写下一个词",
    languages: ["English", "中文"],
    language: "词的语言",
    groups: {
      people: "人物",
      objects: "物品",
      places: "地点",
      verbs: "动词",
      questions: "问句",
      marks: "标点",
    },
    anything: "规则不允许的词也列出来",

    inside: "读到这个词时的内部",
    insideNote: "每个方格是一个头：行在读，列被读。",
    gap: "",
    insidePress: "按任何部件可以打开它；指向一个头，可以看它在读什么。",
    embedding: "嵌入",
    block: (layer) => `第 ${layer} 块`,
    norm: "归一化",
    ffn: "前馈网络",
    stream: "残差流",
    finalNorm: "最后的归一化",
    headTitle: (layer, head) => `第 ${layer} 块，${head} 号头`,
    silent: (name) => `${name}，已静音`,
    silence: "让这个头静音",
    bigMap: "这个头里谁读谁。行是在读的，列是被读的；旁边的列表只讲一个词。",
    point: "指向图中任意一点，或者点一行来选它的词。",
    pointed: (reader, read, weight) => `“${reader}”读“${read}”：${percentOf(weight)}`,
    channel: (channel, value) => `通道 ${channel}：${value}`,
    later: (reader, read) => `“${read}”在“${reader}”后面，读不到`,
    open: (part, layer) => (layer ? `第 ${layer} 块的${part}` : part),
    chapter: (label) => `读 ${label}`,
    close: "关闭",

    zoom: {
      embedding: (word, width) => `“${word}”是 ${width} 个数，即嵌入表的一行`,
      nearest: "方向相近的行（余弦）",
      norm: (layer) => `第 ${layer} 块的注意力之前的归一化`,
      norm2: "以及前馈网络之前的那一个",
      finalNorm: "logits 之前的归一化",
      before: "之前",
      afterwards: "之后",
      rms: (value) => `均方根 ${value}`,
      gains: (low, high) => `除以均方根，再乘以学到的增益，从 ${low} 到 ${high}`,
      reads: (word, position) => `位置 ${position} 的“${word}”在读`,
      query: (word) => `“${word}”的查询`,
      key: (word) => `“${word}”的键`,
      products: "逐维的乘积",
      sum: (value) => `和 ${value}`,
      score: (value) => `都在 RoPE 之后。分数是这个和除以 √D：${value}，在这里最大，所以它读得最多。`,
      ffn: (layer, count) => `第 ${layer} 块的 ${count} 个神经元中最强的几个`,
      columns: ["神经元", "门", "SiLU(门)", "up", "乘积"],
      stream: (layer) => `第 ${layer} 块往残差流里加了什么`,
      parts: ["进来的", "注意力加的", "前馈网络加的", "出去的"],
      lens: "用最后的归一化和嵌入表来读，残差流在这里会说",
    },

    cache: (kib) => `KV 缓存：${kib}`,
    cacheNote: (positions, layers, kvHeads, dim, kib, heads, all) =>
      `${positions} 个位置 × ${layers} 个块 × 2（键和值）× ${kvHeads} 个头 × ${dim} 个数 × 4 字节 = ${kib}。` +
      `如果 ${heads} 个查询头各有自己的键值头：${all}。`,
    cacheLabel: (positions) => `每个块里 ${positions} 个位置的键和值`,
    kib: (bytes) => `${(bytes / 1024).toFixed(1)} KiB`,

    train: {
      task:
        "一个更小的模型，21,440 个权重，起初全是随机的。它学着把英文译成中文，所做的只是预测语法写出的句子里的下一个词。" +
        "虚线是这些句子的熵，也就是任何模型所能达到的最低损失。",
      start: "训练",
      stop: "停止",
      changes: { positions: "去掉位置", residual: "去掉残差", initialization: "初始化 0.02" },
      unchanged: "什么都没改",
      lossAxis: "损失，nat/词",
      steps: (count) => `${count} 步`,
      entropy: (entropy) => `熵 ${entropy}`,
      chart: (steps, loss, entropy) => `${steps} 步之后的损失：每词 ${loss} nat；熵：${entropy}。`,
      chartEmpty: "每一步的损失会显示在这里。",
      compared: (run, before) => `实线：${run}。淡线：上一次，${before}。两次看的句子相同。`,
      writtenAt: (step) => `第 ${step} 步之后它写的：`,
      insteadOf: (word) => `正确的是${word}`,
      reached: (steps, averaged, excess) =>
        `${steps} 步之后，它最近 ${averaged} 步的平均损失比任何模型所能达到的最低值高 ${excess} nat。`,
      wrote: (step, right, all, unseen) =>
        `第 ${step} 步时，${all} 个句子它译对了 ${right} 个` +
        (unseen ? `，其中 ${unseen} 个里的人和物它从没一起见过。` : "。"),
      failed: (message) => `训练停止了：${message}。`,
    },

    tabs: { label: "拿它做什么", write: "写", break: "弄坏", train: "训练" },
    noHead: "指着上面块里的一个头，它读的词就染上颜色；按一下，它就静音，它读什么写在这里。这个答案少不了哪些头？",
    breaks: {
      long: (words) => `写到 ${words} 个词以外`,
      unknown: "问一个不在场的人",
    },
    guideLabel: "按七下",
    guideStart: (parameters) => `${parameters} 个权重，就在你的浏览器里运行。按七下，看看它们在做什么。`,
    guideStep: (number, text) => `${number} · ${text}`,
    guideAgain: "重新开始",
    guide: {
      ask: "让模型回答",
      other: "用英语再问一遍",
      owner: "改问米娅在哪里",
      look: "打开这里最要紧的头",
      silence: "让这个头静音",
      translate: "改成要它翻译",
      write: "让它自己往下写",
    },
    saw: {
      right: "答对了。",
      wrong: (word) => `正确的是${word}。`,
      ask: (guess, answer, part, verdict) =>
        (guess === null ? "" : guess === answer ? "你们想的一样。" : `你猜的是${guess}。`) +
        `它说${answer}，概率 ${percentOf(part)}。${verdict}`,
      other: (answer, part, verdict) =>
        `故事是中文的，问题现在是英文的。它说${answer}，概率 ${percentOf(part)}。${verdict}`,
      owner: (answer, part, verdict) => `同一个故事，改问米娅。它说${answer}，概率 ${percentOf(part)}。${verdict}`,
      look: (layer, head, word, part, isAnswer) =>
        `第 ${layer} 块的 ${head} 号头把 ${percentOf(part)} 的权重给了“${word}”` +
        `${isAnswer ? "，正是它需要的那个词" : ""}。染了色的，就是它在读的词。`,
      silence: (answer, before, after, newAnswer, newPart, isRight, isOwner) =>
        `没有这一个头，${answer}从 ${percentOf(before)} ${after < before ? "降到" : "变为"} ${percentOf(after)}` +
        (isRight ? "；它还是说这个词。" : `，它改说${newAnswer}（${percentOf(newPart)}）`) +
        (isRight ? "" : isOwner ? "，好像鼓跟着米娅走了。" : "。"),
      translate: (answer, part, isRight) =>
        `那个头仍然静音。${isRight ? "翻译用不着它" : "翻译也跟着变差"}：它说${answer}，概率 ${percentOf(part)}。`,
      write: (count, brokenWord) =>
        `所有的头都恢复了，它写了 ${count} 个词。` +
        (brokenWord ? `其中一个违反这个世界的规则：“${brokenWord}”。` : "每一个词都符合规则。"),
      long: (trained, nearRight, near, farRight, far) =>
        `在规则只留下唯一选择的词里，到第 ${trained} 个词（它训练的终点）为止，${near} 个里它知道 ${nearRight} 个；` +
        `再往后，${far} 个里知道 ${farRight} 个。`,
      unknown: (answer, part) =>
        `故事从没提到佐伊，而这个世界里没有一个词可以说“我不知道”。它说${answer}，概率 ${percentOf(part)}。`,
    },
  },
};
