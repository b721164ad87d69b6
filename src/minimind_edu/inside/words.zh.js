// The Chinese words of words.js as of 71c77f0b.

import { grouped } from "../web/kit/kit.js";
import { bytesOf, cacheBytes, percent } from "./numbers.js";

export const percentOf = (part) => percent(part, "%");
/** isLess: it is only known to be less. */
const shareOf = (part, isLess) => (isLess && part >= 0.00005 ? `< ${percentOf(part)}` : percentOf(part));

const fieldsOf = (all) =>
  Object.entries(all)
    .map(([name, value]) => `${name}=${value}`)
    .join("、");

export const insideWords = {
  zh: {
    percent: percentOf,
    opening: (part) => `正在打开模型…… ${percentOf(part)}`,
    failed: (message) => `模型没能继续：${message}`,
    title: "内部：",
    book: "从内部看 MiniMind",
    madeWith: "这一页出自《从内部看 MiniMind》，那本书把这样的模型一个部件一个部件地拆开讲。",
    theme: { light: "颜色模式：浅色", dark: "颜色模式：深色" },
    explains: {
      inside: "这一页怎么看",
      tokens: "token 是什么",
      drawing: "温度、top-k 和 top-p 管什么",
      after: "这些概率从哪里来",
      who: "为什么是一个和",
      heads: "头是什么",
      feed: "神经元是什么",
      experts: "专家是什么",
      block: "一个块里流过什么",
      cache: "它存的是什么，为什么存",
      rounding: "舍入的代价",
    },
    inChapter: (says, chapter) => `${says}：第 ${chapter} 章`,
    facts: ({ parameters, config, tokenizer, bits }) => {
      const { num_attention_heads: heads, num_key_value_heads: shared, num_experts: experts } = config;
      const { num_experts_per_tok: chosen, num_shared_experts: whole, rope_scaling: scaling } = config;
      return [
        `${grouped(parameters)} 个权重`,
        `${config.num_hidden_layers} 个块`,
        `每块 ${heads} 个头${shared < heads ? `，键和值 ${shared} 个` : ""}`,
        `词表 ${grouped(config.vocab_size)} 个 token`,
        config.use_moe && `${experts} 个专家选 ${chosen} 个${whole ? `，另有 ${whole} 个共享` : ""}`,
        config.use_qk_norm && "QK-norm",
        scaling && `RoPE 缩放 ${scaling.factor} 倍`,
        !config.tie_word_embeddings && "输入输出各用一张表",
        bits < 32 && `每个权重 ${bits} 位`,
        !tokenizer && "没有分词器",
      ].filter(Boolean);
    },
    address: "你的文本和打开的部件都记在本页的地址里：留着它，或者发给手里有这一页的人。",
    addressServed:
      "你的文本和打开的部件都记在本页的地址里，但只在命令运行期间有效；" + "加上 -o page.html，得到的文件地址不会变。",
    assumed: (all) =>
      `没有 config.json，权重里看不出来的，只好假定：${fieldsOf(all)}。` +
      "如果训练时用的是别的值，这一页和用来比对的 PyTorch 算的就都是另一个模型。",
    private: "模型就在这一页里运行。你写的东西，一个字也不会离开这里。",
    privateKernel: "模型在这个笔记本的内核里运行。",
    checking: "正在把这一页与 PyTorch 比对……",
    unchecked: "这一页没有与 PyTorch 比对。",
    checked: ({ far, isSame, wrong, texts, why }) => {
      const slow = why ? `现在跑的是纯 JavaScript，比较慢：这里用不了 WebAssembly（${why}）。` : "";
      if (isSame && !wrong) {
        const most = far < 1e-3 ? "相同" : `相差不超过 ${far.toPrecision(1)}`;
        return `已核对：logits 与 PyTorch ${most}${texts ? "，token 也一样" : ""}。${slow}`;
      }
      const tokens = wrong ? `，${texts} 条文本里有 ${wrong} 条切出了别的 token` : texts ? "，不过 token 一样" : "";
      return `这一页与 PyTorch 不一致：有一个 logit 差了 ${far.toPrecision(2)}${tokens}。请以 PyTorch 为准。${slow}`;
    },
    rounding: (bits, { same, ids, change }) =>
      `这里的权重舍入到了 ${bits} 位。开头的 ${ids.length} 个 token 里，有 ${same} 个位置，最可能的下一个 token 没有变；` +
      `概率的改变都${change < 1e-4 ? "不到" : "不超过"} ${percentOf(Math.max(change, 1e-4))}。`,
    steps: (hasText) => [
      hasText ? "写一段文本。" : "写几个 token 的编号。",
      "点一个 token：下面的一切都说的是它。",
      "点一个方块：那个头就打开了。",
    ],

    field: "你的文本",
    fieldHint: "写点什么，哪种语言都行",
    fieldIds: "token 的编号，例如 1 57 903",
    noWord: (word, all) => `“${word}”不是这个模型的词。它认得 ${all.length} 个：${all.join(" ")}`,
    noId: (word, size) => `这一页读入的是词元编号：请写 0 到 ${size - 1} 之间的编号，用空格隔开。“${word}”不是编号。`,
    noTokenizer: (message) => `它的分词器用不了（${message}），所以这一页改收 token 的编号。`,
    complaints: {
      empty: () => "请至少写一个 token。",
      long: ({ count }, most) => `有 ${grouped(count)} 个 token，这一页只读前 ${most - 1} 个。`,
    },
    chat: "当作聊天",
    next: "下一个 token",
    play: "播放",
    stop: "停止",
    undo: "撤销",
    drawing: (temperature) => `怎样抽取 token：${temperature ? `温度 ${temperature}` : "总取最可能的"}`,
    played: (count) => `“播放”写了 ${grouped(count)} 个 token，歇一歇。再点一次就接着写。`,
    loops: (text, temperature) =>
      `它一遍遍地写“${text}”，所以“播放”停下了。换几个词，或者把温度调到 ${temperature} 以上，就能走出来。`,
    temperature: "温度",
    greedy: "0，取最可能的",
    topK: "top-k",
    topP: "top-p",
    all: "全部",
    reading: (read, all) => `正在读：第 ${read} 个 token，共 ${grouped(all)} 个`,
    read: (all) => `${grouped(all)} 个 token`,
    ended: "模型在这里结束了它的文本。",
    full: (most) => `这一页只读 ${grouped(most)} 个 token，不能再多了。`,
    answer: "回答：",
    tokens: "各个 token：用方向键移动",
    shade: "颜色越深，模型越没料到这个 token",
    tint: (layer, head) => `第 ${layer} 块的 ${head} 号头在这里读什么`,
    token: (text, id, at) => `“${text}”，编号 ${id}，位置 ${at + 1}`,
    expected: ({ probability, rank }) => `，事先给它 ${percentOf(probability)}，排第 ${grouped(rank)}`,
    written: "，由模型写出",

    pieces: {
      part: "斜体带编号：几个 token 合成一个字，例如 归₁ 和 归₂。",
      bytes: "‹e6›：一个字节，还不是一个完整的字。",
    },
    after: ["", " 后面会是什么？"],
    pressBars: "点词，就写上它；点它的条，看它是谁写出来的。",
    put: (text) => `把“${text}”写在后面`,
    ask: (text, p) => `“${text}”，${percentOf(p)}：是谁写出来的？`,
    share: shareOf,
    was: ({ p, isLess }) => `原来 ${shareOf(p, isLess)}`,
    rest: (count, share, choices) =>
      `其余 ${grouped(count)} 个 token 分剩下的 ${percentOf(share)}。模型拿不定主意的程度，相当于在 ` +
      `${choices < 10 ? choices.toFixed(1) : grouped(choices)} 个同样可能的 token 里挑。`,
    legend: (count) => `刻度：${count === 1 ? "这个部件" : `这 ${count} 个部件`}静音之前是多少`,
    pin: "钉住，用来对比",
    unpin: "取下",
    pinned: (text) => `刻度：在钉住的“……${text}”后面是多少`,

    who: ["是谁写出了 ", "，而不是 ", "？"],
    head: (layer, head) => `第 ${layer} 块的 ${head} 号头`,
    feed: (layer, isMixture) => `第 ${layer} 块的${isMixture ? "专家" : "前馈网络"}`,
    embedding: "这个 token 自己",
    others: (count) => `其余 ${grouped(count)} 个部件合计`,
    aboveMean: (sum) => `合计 ${sum}：它的 logit 比全部 token 的均值高这么多。`,
    aboveOther: (sum, times) =>
      `合计 ${sum}：所以它的可能性是另一个的 ${times.startsWith("1/") ? times : `${times} 倍`}。`,
    exact: "这个和是准确的。但是，推了一把不等于离不开：别的部件也许会顶上。把一个头静音就知道了。",
    compare: "与第二名相比",
    compareMean: "与全部 token 相比",

    inside: "内部，就看 ",
    maps: "每个方块是一个头：每行是一个在读的 token，每列是一个被读的。下面的条表示，它把 ",
    mapsEnd: " 推高或压低了多少；头共用一把尺子，右边的部件另用一把。点一个方块，看那个头在读什么。",
    tryAll: "把每个头轮流去掉试试",
    stopTrying: "停下",
    trying: (done, all, isGoing) => `${all} 个头，已试 ${done} 个${isGoing ? "……" : "，其余头的第二根条是空的。"}`,
    tried: ["这里最离不开的：", "、", "。"],
    triedNone: "这里没有哪个头是非有不可的。",
    without: (before, after) => `（${percentOf(before)} → ${percentOf(after)}）`,
    needBars: "第二根条：有这个头时，这个 token 的可能性比没有时高多少。",
    block: (layer) => `第 ${layer} 块`,
    headButton: (layer, head) => `第 ${layer} 块，${head} 号头`,
    feedName: "前馈",
    expertsName: "专家",
    says: "会说",
    silent: (names, more) => `已静音：${names.join("、")}${more ? `，还有 ${more} 个` : ""}。`,
    bringBack: "恢复",

    close: "关闭",
    headTitle: (layer, head) => `第 ${layer} 块，${head} 号头`,
    silence: "让这个头静音",
    silenceFeed: "让这个前馈网络静音",
    silenceExperts: "让这些专家静音",
    silenceBlock: "让整个块静音",
    blockTitle: (layer) => `第 ${layer} 块`,
    stream: (channels) => [`穿过它的残差流，${grouped(channels)} 个通道，就看 `, "；右边是每一行的均方根"],
    strips: (isMixture) => ["进来的", "注意力加上的", `${isMixture ? "专家" : "前馈网络"}加上的`, "传下去的"],
    channel: (channel, value) => `通道 ${grouped(channel)}：${value}`,
    largest(all) {
      const named = all.map(([channel, share]) => `通道 ${grouped(channel)}（${percentOf(share)}）`);
      return `传下去的里面最大的通道，按它在平方和里占的份额：${named.join("、")}。`;
    },
    norms: (first, second, isMixture) =>
      `注意力之前的归一化把残差流除以 ${first}，${isMixture ? "专家" : "前馈网络"}之前的除以 ${second}：` +
      "这两个部件只看得见它的方向，看不见它的大小。",
    sizes: (first, last, count) =>
      `它的大小，即均方根，从第一块之前，到 ${count} 个块各自之后：由 ${first} 到 ${last}。`,
    grid: "文本里每个 token 用了哪些专家，从左到右；颜色越深，路由器越有把握。",
    sent: (text, chosen) => `${text}：${chosen.map(([e, p]) => `专家 ${e + 1}（${percentOf(p)}）`).join("、")}`,
    bigMap: "这个头里谁读谁。行是在读的，列是被读的；旁边的列表只讲一个 token。",
    reads: " 读的是",
    itself: "自己",
    back: (count) => `往前 ${count} 个`,
    point: "指向图中任意一点，或者点一行来选它的 token。",
    pointed: (reader, read, weight) => `${reader} 读 ${read}：${percentOf(weight)}`,
    later: (reader, read) => `${read} 在 ${reader} 后面，读不到`,
    shares: (kv, all, others) => `键和值：${all} 个头里的 ${kv} 号，与本块另外 ${others} 个头共用。`,
    feedTitle: (layer, isMixture) => `第 ${layer} 块的${isMixture ? "专家" : "前馈网络"}`,
    routed: (experts) => `路由器把这个 token 送给${experts.map((e) => `专家 ${e + 1}`).join("和")}。`,
    expert: (e) => `专家 ${e + 1}`,
    visits: (count, all) => `${grouped(all)} 个 token 里的 ${count} 个`,
    looking: "正在看……",
    neurons: (count, expert) =>
      `${expert === null ? "" : `专家 ${expert + 1} 的 `}${grouped(count)} 个神经元里，在这里写得最多的，` +
      "它们各自让哪些 token 更可能，右边是激活值：",
    neuron: (i) => `神经元 ${i + 1}`,
    cache(config, count) {
      const { num_hidden_layers: L, num_key_value_heads: K, num_attention_heads: H, head_dim: D } = config;
      const { now, full, alone } = cacheBytes(config, count);
      const more = alone === null ? "" : `，若键和值也有 ${H} 个头，则为 ${bytesOf(alone, "字节")}`;
      return (
        `KV 缓存：${grouped(count)} 个 token × ${L} 块 × 2 × ${K} 个头 × ${D} 个数 × 4 字节 = ` +
        `${bytesOf(now, "字节")}。换成 16 位，装满全部 ${grouped(config.max_position_embeddings)} 个位置：` +
        `${bytesOf(full, "字节")}${more}。`
      );
    },
  },
};
