// The words of the page of a reader's own model, by language.

import { grouped } from "../web/kit/kit.js";
import { bytesOf, cacheBytes, percent } from "./numbers.js";

export const percentOf = (part) => percent(part, "\u00a0%");
/** isLess: it is only known to be less. */
const shareOf = (part, isLess) => (isLess && part >= 0.00005 ? `< ${percentOf(part)}` : percentOf(part));
const fieldsOf = (all) =>
  Object.entries(all)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
const counted = (count, singular, plural = `${singular}s`) => `${grouped(count)} ${count === 1 ? singular : plural}`;

export const insideWords = {
  en: {
    percent: percentOf,
    opening: (part) => `Opening the model… ${percentOf(part)}`,
    failed: (message) => `The model could not go on: ${message}`,
    title: "Inside ",
    book: "MiniMind from the inside",
    madeWith: "This page was made with the book MiniMind from the inside, which takes such a model apart.",
    theme: { light: "Color mode: light", dark: "Color mode: dark" },
    /** What the page of the book says about which a link stands at a view. */
    explains: {
      inside: "How to read this page",
      tokens: "What a token is",
      drawing: "What temperature, top-k and top-p do",
      after: "What these chances are",
      who: "Why it is a sum",
      heads: "What a head is",
      feed: "What a neuron is",
      experts: "What an expert is",
      block: "What runs through a block",
      cache: "What it keeps, and why",
      rounding: "What rounding costs",
    },
    inChapter: (says, chapter) => `${says}: chapter ${chapter}`,
    facts: ({ parameters, config, tokenizer, bits }) => {
      const { num_attention_heads: heads, num_key_value_heads: shared, num_experts: experts } = config;
      const { num_experts_per_tok: chosen, num_shared_experts: whole, rope_scaling: scaling } = config;
      return [
        `${grouped(parameters)} weights`,
        counted(config.num_hidden_layers, "block"),
        `${counted(heads, "head")} each${shared < heads ? `, ${shared} for keys and values` : ""}`,
        counted(config.vocab_size, "token"),
        config.use_moe && `${chosen} of ${experts} experts${whole ? ` and ${whole} shared` : ""}`,
        config.use_qk_norm && "QK-norm",
        scaling && `RoPE scaled ${scaling.factor} times`,
        !config.tie_word_embeddings && "two matrices for tokens",
        bits < 32 && `${bits} bits per weight`,
        !tokenizer && "no tokenizer",
      ].filter(Boolean);
    },
    address: "The address of this page holds your text and what is open: keep it, or send it to who has this page.",
    addressServed:
      "The address of this page holds your text and what is open, while the command runs; " +
      "with -o page.html you get a file whose address stays.",
    /** all: fields of a config -> what they were taken for. */
    assumed: (all) =>
      `Without a config.json, what the weights do not show was assumed: ${fieldsOf(all)}. ` +
      "If it was trained with other values, this page and its check against PyTorch are both of another model.",
    private: "The model runs in this page. Nothing that you write leaves it.",
    privateKernel: "The model runs in the kernel of this notebook.",
    checking: "Comparing the page with PyTorch…",
    unchecked: "This page was not compared with PyTorch.",
    /** far: the largest difference of a logit; wrong: the texts whose tokens differ; why: it has no WebAssembly. */
    checked: ({ far, isSame, wrong, texts, why }) => {
      const tokens = texts
        ? wrong
          ? `, but ${wrong} of ${texts} texts have other tokens`
          : isSame
            ? " and the same tokens"
            : ", though the tokens are the same"
        : "";
      const slow = why
        ? ` It runs in plain JavaScript, which is slow: WebAssembly is not to be had here (${why}).`
        : "";
      const most = far < 1e-3 ? "" : ` to within ${far.toPrecision(1)}`;
      if (isSame && !wrong) return `Checked: the same logits as PyTorch${most}${tokens}.${slow}`;
      return `This page differs from PyTorch: by ${far.toPrecision(2)} in a logit${tokens}. Trust PyTorch.${slow}`;
    },
    rounding: (bits, { same, ids, change }) =>
      `Weights are rounded to ${bits} bits here. On the first ${ids.length} tokens the likeliest next token stayed ` +
      `the same at ${same}, and no probability changed by ${change < 1e-4 ? "as much as" : "more than"} ` +
      `${percentOf(Math.max(change, 1e-4))}.`,
    steps: (hasText) => [
      hasText ? "Write a text." : "Write token ids.",
      "Press a token: everything below is about it.",
      "Press a square: that head opens.",
    ],

    field: "Your text",
    fieldHint: "Write something, in any language",
    fieldIds: "Token ids, such as 1 57 903",
    noWord: (word, all) => `“${word}” is no word of this model. It knows ${all.length}: ${all.join(" ")}`,
    noId: (word, size) =>
      `This page reads token ids: write ids from 0 to ${size - 1} with spaces between. “${word}” is none.`,
    noTokenizer: (message) => `Its tokenizer could not be used (${message}), so this page takes token ids.`,
    complaints: {
      empty: () => "Write at least one token.",
      long: ({ count }, most) => `${counted(count, "token")}; this page reads the first ${most - 1}.`,
    },
    chat: "as a chat",
    next: "Next token",
    play: "Play",
    stop: "Stop",
    undo: "Undo",
    drawing: (temperature) =>
      `How a token is drawn: ${temperature ? `at temperature ${temperature}` : "always the likeliest"}`,
    played: (count) => `Play has written ${counted(count, "token")} and rests. Press it to go on.`,
    loops: (text, temperature) =>
      `It says “${text}” over and over, so Play has stopped. ` +
      `Other words lead out of it, or a temperature above ${temperature}.`,
    temperature: "temperature",
    greedy: "0, the likeliest",
    topK: "top-k",
    topP: "top-p",
    all: "all",
    reading: (read, all) => `Reading: ${read} of ${counted(all, "token")}`,
    read: (all) => counted(all, "token"),
    ended: "The model ends its text here.",
    full: (most) => `This page reads ${counted(most, "token")}, and no more.`,
    answer: "Answer: ",
    tokens: "The tokens: arrow keys move along them",
    shade: "the stronger its color, the less the model expected a token",
    tint: (layer, head) => `what head ${head} of block ${layer} reads here`,
    token: (text, id, at) => `“${text}”, token ${id} at position ${at + 1}`,
    expected: ({ probability, rank }) => `, expected with ${percentOf(probability)}, as number ${grouped(rank)}`,
    written: ", written by the model",

    pieces: {
      part: "Slanted, with a number: tokens that share a character, as 归₁ and 归₂ do.",
      bytes: "‹e6›: a byte that is no whole character.",
    },
    after: ["What comes after ", "?"],
    pressBars: "Press a word to write it, its bar to see who wrote it.",
    put: (text) => `write “${text}” after it`,
    ask: (text, p) => `“${text}”, ${percentOf(p)}: who wrote it?`,
    share: shareOf,
    was: ({ p, isLess }) => `was ${shareOf(p, isLess)}`,
    rest: (count, share, choices) =>
      `${grouped(count)} other tokens share ${percentOf(share)}. The model is as undecided as between ` +
      `${choices < 10 ? choices.toFixed(1) : grouped(choices)} equally likely tokens.`,
    legend: (count) => `the mark: before ${count === 1 ? "the part was" : `${count} parts were`} silent`,
    pin: "Pin, to compare",
    unpin: "Unpin",
    pinned: (text) => `the mark: after “…${text}”, which is pinned`,

    who: ["Who wrote ", " rather than ", "?"],
    head: (layer, head) => `head ${head} of block ${layer}`,
    feed: (layer, isMixture) => `${isMixture ? "experts" : "feed-forward"} of block ${layer}`,
    embedding: "the token itself",
    others: (count) => `${counted(count, "other part")} together`,
    aboveMean: (sum) => `Together ${sum}: its logit above the mean of all tokens. `,
    aboveOther: (sum, times) =>
      `Together ${sum}: that makes it ${times.startsWith("1/") ? times : `${times} times`} as likely as the other. `,
    exact: "The sum is exact. But a push is not a need: another part may take over. Silence a head to see.",
    compare: "Compare with the runner-up",
    compareMean: "Compare with all tokens",

    inside: "Inside, at ",
    maps:
      "Each square is a head: a row for each token that reads, a column for each that is read. " +
      "The bar below it shows how far it pushes ",
    mapsEnd:
      " up or down, by one scale for all heads, and another for the parts at the right. " +
      "Press a square to see what that head reads.",
    tryAll: "Try without each head",
    stopTrying: "Stop trying",
    trying: (done, all, isGoing) =>
      `${done} of ${all} heads tried${isGoing ? "…" : "; of the others the second bar is empty."}`,
    tried: ["Needed most here: ", ", ", ". "],
    triedNone: "No single head is needed here. ",
    without: (before, after) => ` (${percentOf(before)} → ${percentOf(after)})`,
    needBars: "The second bar: how much likelier the token is with the head than without it.",
    block: (layer) => `block ${layer}`,
    headButton: (layer, head) => `block ${layer}, head ${head}`,
    feedName: "feed-forward",
    expertsName: "experts",
    says: "would say",
    silent: (names, more) => `Silent: ${names.join(", ")}${more ? ` and ${more} more` : ""}. `,
    bringBack: "Bring back",

    close: "Close",
    headTitle: (layer, head) => `Block ${layer}, head ${head}`,
    silence: "silence this head",
    silenceFeed: "silence this feed-forward part",
    silenceExperts: "silence these experts",
    silenceBlock: "silence this whole block",
    blockTitle: (layer) => `Block ${layer}`,
    stream: (channels) => [
      `The stream of ${grouped(channels)} channels through it at `,
      ", and at the right the RMS of each line",
    ],
    strips: (isMixture) => [
      "comes in",
      "attention adds",
      `${isMixture ? "experts add" : "feed-forward adds"}`,
      "goes on",
    ],
    channel: (channel, value) => `channel ${grouped(channel)}: ${value}`,
    largest(all) {
      const named = all.map(([channel, share]) => `channel ${grouped(channel)} (${percentOf(share)})`);
      return `The largest channels of what goes on, by their share of its square: ${named.join(", ")}.`;
    },
    norms: (first, second, isMixture) =>
      `The norm before attention divides the stream by ${first}, the one before the ` +
      `${isMixture ? "experts" : "feed-forward part"} by ${second}: these parts see its direction, not its size.`,
    sizes: (first, last, count) =>
      `Its size, the root of its mean square, before the first block and after each of ${count}: ${first} to ${last}.`,
    grid: "The experts of each token of the text, from left to right; the darker, the surer the router.",
    sent: (text, chosen) => `${text}: ${chosen.map(([e, p]) => `expert ${e + 1} (${percentOf(p)})`).join(", ")}`,
    bigMap: "Who reads whom in this head. Rows read, columns are read; the list beside it says it for one token.",
    reads: " reads",
    itself: "itself",
    back: (count) => `${count} back`,
    point: "Point at the map, or press a row to choose its token.",
    pointed: (reader, read, weight) => `${reader} reads ${read}: ${percentOf(weight)}`,
    later: (reader, read) => `${read} comes after ${reader}, which cannot read it`,
    shares: (kv, all, others) =>
      `Keys and values: head ${kv} of ${all}, shared with ${counted(others, "other head")} of this block.`,
    feedTitle: (layer, isMixture) => `${isMixture ? "Experts" : "Feed-forward"} of block ${layer}`,
    routed: (experts) => `The router sends this token to ${experts.map((e) => `expert ${e + 1}`).join(" and ")}.`,
    expert: (e) => `expert ${e + 1}`,
    visits: (count, all) => `${count} of ${counted(all, "token")}`,
    looking: "Looking…",
    neurons: (count, expert) =>
      `The neurons that write most here, of ${grouped(count)}${expert === null ? "" : ` in expert ${expert + 1}`}, ` +
      "each with the tokens that it makes likelier and, at the right, its activation:",
    neuron: (i) => `neuron ${i + 1}`,
    cache(config, count) {
      const { num_hidden_layers: L, num_key_value_heads: K, num_attention_heads: H, head_dim: D } = config;
      const { now, full, alone } = cacheBytes(config, count);
      const more = alone === null ? "" : `, and with ${H} heads for keys and values ${bytesOf(alone, "bytes")}`;
      return (
        `KV cache: ${counted(count, "token")} × ${L} blocks × 2 × ${counted(K, "head")} × ${D} numbers × 4 bytes = ` +
        `${bytesOf(now, "bytes")}. In 16 bits, for all ${grouped(config.max_position_embeddings)} positions: ` +
        `${bytesOf(full, "bytes")}${more}.`
      );
    },
  },
};
