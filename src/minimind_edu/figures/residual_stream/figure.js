// ResidualStream: the stream through the blocks, in stripes by who added what, and below it the gradient.

import { draggable, handle, grip, arrowStep } from "../../web/kit/drag.js";
import { NARROW, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, grouped } from "../../web/kit/kit.js";
import { slider, toggle, choice, namedOptions, readout, controlsOf, row } from "../../web/kit/kit.js";
import { setTraits, wordsOf } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, across, levels, ticks } from "../../web/kit/chart.js";
import { coverable, createSource } from "../../web/live/source.js";
import { createWordLine } from "../../web/live/word_line.js";
import { streamSizes, streamShares, sharesByKind, sizeSeen, smoothPath } from "./math.js";
import { cosineOf, rootMeanSquare, traceSizes } from "./math.js";
import { residualStreamWords } from "./words.js";

const words = wordsOf(residualStreamWords);
const TRAITS = ["placement", "network", "final_norm", "depth", "loudness", "block"];
const DEPTHS = [2, 4, 8, 16, 32];
const LOUDNESS = [0.25, 0.5, 1, 2, 4, 8];
const KINDS = ["embed", "attn", "ffn"];
const TONES = ["stream", "v", "ffn"];
const SIDES = { left: 36, exit: 78 };
const BACK = { top: 28, height: 60, whole: 96 };
const TALLEST = 20; // beyond this RMS the stream leaves the picture
const LOUDEST = 14; // the end of the axis while only the scale of the sublayers changes
const TICKS = [0.1, 0.25, 0.5, 1, 2, 4, 9, 16];
const LEAST = 2; // pixels of the embedding, however small its share

/** Three digits at least, without any point from 1,000 on. */
function told(x) {
  if (x === null || x === undefined) return words.overflow;
  if (x === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(Number(x.toPrecision(3)))));
  return power > 2 ? grouped(x) : fmt(x, Math.min(3, 2 - power));
}

function percentOf(share) {
  const percent = 100 * share;
  if (percent > 99.95 && percent < 100) return words.nearly(fmt(99.9, 1));
  if (Math.abs(percent) < 0.1) return words.lessThan(fmt(0.1, 1));
  return words.percent(fmt(percent, percent < 9.95 ? 1 : 0));
}

// A compact figure holds one run, whatever an address asks for.
const heldName = (runs, name) => (name in runs ? name : Object.keys(runs)[0]);

function streamState(model) {
  const [wanted, ofNetwork, finalNorm, depth, loudness, block] = TRAITS.map((name) => model.get(name));
  const [loud, deep] = [LOUDNESS.indexOf(loudness), DEPTHS.indexOf(depth)];
  const runs = model.get("forward_runs");
  const network = heldName(runs, ofNetwork);
  const placement = heldName(runs[network], wanted);
  const run = (name) => runs[network][placement][name][loud];
  const ways = model.get("backward_runs")[network]; // none in a compact figure
  const back = (name) => ways?.[placement][name][Number(finalNorm)][loud][deep];
  const sizes = streamSizes(run("total"), placement, model.get("embedding"), depth);
  return {
    placement,
    network,
    finalNorm,
    depth,
    loudness,
    sizes,
    block: Math.min(block, depth),
    guess: model.get("guess"),
    added: run("added"),
    cosine: run("cosine"),
    shares: streamShares(run("added"), sizes, depth),
    gradient: back("gradient"),
    spread: back("spread"),
    loss: back("loss"),
    isWhole: sizes.length > 2 * depth, // no sublayer overflowed
    reached: Math.floor((sizes.length - 1) / 2),
  };
}

/** The stream of one word of the story in the living model, in the terms of the example. */
function storyState({ living, traces, tokens, at, ids }, block) {
  const { model, tensors, world, softmax } = living;
  const trace = traces[at];
  const run = traceSizes(trace);
  const depth = trace.blocks.length;
  const atBlocks = run.streams.filter((_, i) => i % 2 === 0);
  const said = atBlocks.map((stream) => {
    const likely = softmax(model.read(stream));
    const word = likely.indexOf(Math.max(...likely));
    return { word: world.words[word], share: likely[word] };
  });
  const end = trace.final.map((x, i) => (tensors["model.norm.weight"].data[i] * x) / run.sizes.at(-1));
  return {
    ...run,
    placement: "pre",
    finalNorm: true,
    depth,
    block: Math.min(block, depth),
    leaving: rootMeanSquare(end),
    adds: trace.blocks.map(({ input, output }) => rootMeanSquare(output.map((x, i) => x - input[i]))),
    cosine: atBlocks.map((stream) => cosineOf(stream, trace.embedding)),
    reads: [...trace.blocks.map(({ normed }) => rootMeanSquare(normed)), rootMeanSquare(end)],
    said,
    token: tokens[at],
    key: [...ids.slice(0, at + 1)].join(),
    isStory: true,
    isWhole: true,
    reached: depth,
  };
}

/** The axis of sizes, whose steps are square roots, so that 0.02 and 13 fit on it. */
function riverScale(s, { top, height, isCompact }) {
  const end = isCompact ? LOUDEST : clamp(Math.max(...s.sizes), 1.3, TALLEST);
  const floor = top + height;
  return { end, floor, y: (size) => floor - Math.sqrt(Math.min(size / end, 1.05)) * height };
}

/** The stream at every sublayer and, if it gets that far, through the final norm to the head: place, size, shares. */
function riverPoints(s, x, width) {
  const points = s.sizes.map((size, at) => ({ at: x(at), size, shares: s.shares[at] }));
  if (!s.isWhole) return points;
  const [end, out] = [points.at(-1), x(2 * s.depth)];
  const leaving = { ...end, size: s.leaving ?? (s.finalNorm ? 1 : end.size) };
  return [...points, { ...end, at: out + 14 }, { ...leaving, at: out + 40 }, { ...leaving, at: width - 1 }];
}

/** A stripe for the embedding and for every sublayer, each from the floor up, so that the next one covers its rest. */
function drawStripes(s, points, { y, floor }) {
  const ends = points.map(({ size, shares }) => {
    let sum = 0;
    const shown = shares.reduce((all, share) => all + Math.max(0, share), 0);
    const height = (share) => (Math.max(0, share) / shown) * (floor - y(size));
    return shares.map((share) => floor - Math.max(LEAST, (sum += height(share))));
  });
  const stripe = (_, part) => {
    const first = Math.min(Math.max(part - 1, 0), points.length - 2);
    const edge = points.slice(first).map(({ at }, i) => [at, ends[first + i][part]]);
    const d = `M${smoothPath(edge)}V${floor}H${edge[0][0].toFixed(1)}Z`;
    const kind = part ? 2 - (part % 2) : 0;
    const early = part ? Math.round(88 - (46 * part) / (2 * s.depth)) : 100;
    const attrs = {
      class: "rs-stripe",
      "data-tone": TONES[kind],
      "data-sym": KINDS[kind],
      style: `--rs-mix: ${early}%`,
    };
    return svg("path", { ...attrs, d });
  };
  return Array.from({ length: 2 * s.depth + 1 }, stripe).reverse();
}

/** The stream, its exit through the final norm, and the axis of sizes. x(p) is the place of sublayer p of 2L. */
function drawRiver(s, x, width, scale, isCompact) {
  const { end, floor, y } = scale;
  const out = x(2 * s.depth);
  const isTick = (size, i) => size <= end && y(size) < floor - 14 && (!TICKS[i + 1] || y(size) - y(TICKS[i + 1]) > 14);
  const read = !s.isStory &&
    s.placement === "pre" && [
      across(y(1), SIDES.left, out, "mm-guide"),
      svg(
        "g",
        { "data-sym": "norm" },
        textAt(out - 12, y(1) - 6, words.reads, { anchor: "end", cls: "mm-small rs-read" }),
      ),
    ];
  const below = s.finalNorm ? words.finalNorm : words.noNorm;
  return [
    levels([0, ...TICKS.filter(isTick)], y, SIDES.left, width),
    drawStripes(s, riverPoints(s, x, width), scale),
    read,
    !s.isWhole && textAt(x(s.sizes.length - 1) + 8, y(end) + 24, words.overflow, { cls: "mm-strong", tone: "bad" }),
    s.isWhole && svg("g", { "data-sym": "norm" }, textAt(width, floor + 18, below, { anchor: "end" })),
    s.isWhole && textAt(out + 14, y(s.sizes.at(-1)) - 6, told(s.sizes.at(-1)), { cls: "mm-strong" }),
  ];
}

function drawBlockAxis(s, x, floor, room) {
  const every = [1, 2, 4, 8].find((step) => (room * step) / s.depth > 26);
  const isNumbered = (block) => block % every === 0 || (block === 1 && every < 4);
  const blocks = Array.from({ length: s.depth }, (_, i) => i + 1).filter(isNumbered);
  return ticks(blocks, (block) => x(2 * block - 1), floor + 18);
}

/** What the model would say after each block, where there is room. */
function drawSaid(s, x, floor, width) {
  if (!s.isStory || width < NARROW) return [];
  return s.said.map(({ word, share }, block) => {
    const cls = block === s.block ? "mm-strong" : "mm-small";
    return textAt(x(2 * block), floor + 36, words.asText(word, percentOf(share)), { anchor: "middle", cls });
  });
}

/** One bar a block on a logarithmic axis: its gradient relative to that of the last block. */
function drawBack(s, x) {
  const { top, height } = BACK;
  if (s.gradient.includes(null)) return textAt(0, 14, words.noGradient, { cls: "mm-strong", tone: "bad" });
  const powers = s.gradient.map((ratio) => Math.log10(Math.max(ratio, 1e-3)));
  const high = Math.max(1, Math.ceil(Math.max(...powers) - 0.02));
  const low = Math.min(0, Math.floor(Math.min(...powers) + 0.02));
  const y = linear([low, high], [top + height, top]);
  const wide = Math.max(2, (x(2) - x(0)) * 0.66);
  const bars = powers.map((power, i) => {
    const [from, to] = [y(0), y(power)].sort((a, b) => a - b);
    const box = { x: x(2 * i + 1) - wide / 2, y: from - 1, width: wide, height: to - from + 2 };
    return svg("rect", { class: i + 1 === s.block ? "rs-bar rs-here" : "rs-bar", ...box });
  });
  const right = x(2 * s.depth);
  return [textAt(0, 14, backVerdict(s)), drawPowers(low, high, y, right), bars];
}

/** Lines at powers of ten, five at most. */
function drawPowers(low, high, y, right) {
  const step = Math.max(1, Math.ceil((high - low) / 4));
  const powers = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step);
  return powers.map((power) => {
    const text = power < 0 ? fmt(10 ** power, -power) : grouped(10 ** power);
    return [across(y(power), SIDES.left, right, "mm-level"), textAt(right + 8, y(power) + 4, text)];
  });
}

/** What the picture says in one sentence. */
function streamVerdict(s) {
  if (s.isStory) return words.wouldSay(s.block, s.said[s.block].word, percentOf(s.said[s.block].share));
  const { pre, post, none, overflow } = words.verdict;
  if (!s.isWhole) return overflow(s.reached + 1);
  if (s.placement === "post") return post(s.depth, percentOf(s.shares.at(-1)[0]));
  return (s.placement === "pre" ? pre : none)(s.depth, told(s.sizes.at(-1)));
}

const backVerdict = ({ gradient }) => {
  return gradient[0] === null ? words.noGradient : words.gradients(told(gradient[0]));
};

/** What the embedding, attention and the feed-forward network have in the stream after this block. */
function shareRows(s, block) {
  const shares = s.shares[2 * block];
  const texts = shares ? sharesByKind(shares).map(percentOf) : KINDS.map(() => words.nothing);
  return texts.map((text, i) => [words.shares[i], text, TONES[i]]);
}

function streamNumbers(s) {
  const { block } = s;
  if (s.isStory) return storyNumbers(s, block);
  const size = s.sizes[2 * block]; // undefined where it overflowed
  const added = size && Math.hypot(s.added[2 * block - 2], s.added[2 * block - 1]);
  const isLost = s.loss === null || s.loss > 1.5 * s.guess;
  return [
    [words.streamAfter(block), told(size), size ? undefined : "bad"],
    [words.nextReads, told(size && sizeSeen(size, s.placement))],
    block ? [words.adds(block), told(added)] : [words.addedBefore, words.none],
    [words.cosine, size ? fmt(s.cosine[block], 2) : words.nothing],
    [words.gradient, block ? told(s.gradient[block - 1]) : words.nothing],
    [words.loss(fmt(s.guess, 2)), told(s.loss), isLost ? "bad" : undefined],
    [words.spread, told(s.spread)],
  ];
}

function storyNumbers(s, block) {
  return [
    [words.streamAfter(block), told(s.sizes[2 * block])],
    [words.nextReads, told(s.reads[block])],
    block ? [words.adds(block), told(s.adds[block - 1])] : [words.addedBefore, words.none],
    [words.cosine, fmt(s.cosine[block], 2)],
  ];
}

/** The drawing with its movable line. */
function createStream(onBlock, isCompact) {
  const drawing = svg("g");
  const line = svg("path", { class: "rs-probe" });
  const probe = handle({ label: words.probe, min: 0, ring: 12, shape: grip(7) });
  const attrs = isCompact ? { role: "img" } : { role: "group", style: "touch-action: pan-y" };
  const root = svg("svg", attrs, drawing, isCompact ? [] : [line, probe]);
  let now = { x: null, block: 0, depth: 1 };
  let drawn = ""; // what the stripes show: the line moves without them
  const release = draggable(probe, {
    onMove: (px, _, event) => {
      const step = arrowStep(event);
      const next = step ? now.block + step : Math.round(now.x.invert(px) / 2);
      onBlock(clamp(next, 0, now.depth));
    },
  });

  function drawProbe(s, at, top, floor) {
    setAttributes(line, { d: `M${at} ${top - 12}V${floor}` });
    setAttributes(probe, {
      transform: `translate(${at} ${top - 12})`,
      "aria-valuemax": s.depth,
      "aria-valuenow": s.block,
      "aria-valuetext": words.afterBlock(s.block),
    });
  }

  function draw(s, width, x) {
    const height = isCompact ? 140 : width < NARROW ? 116 : 180;
    const scale = riverScale(s, { top: isCompact ? 24 : 44, height, isCompact });
    const room = x(2 * s.depth) - x(0);
    now = { x, block: s.block, depth: s.depth };
    const key = [width, s.placement, s.network, s.finalNorm, s.depth, s.loudness, s.isStory && [s.key, s.block]].join();
    if (key !== drawn) {
      const river = drawRiver(s, x, width, scale, isCompact);
      const axes = [textAt(0, 14, words.axis), drawBlockAxis(s, x, scale.floor, room)];
      const name = !isCompact && !s.isStory && textAt(x(0), scale.floor + 34, words.block);
      setSize(root, width, scale.floor + (isCompact ? 24 : 40), streamVerdict(s));
      fill(drawing, axes, name, river, drawSaid(s, x, scale.floor, width));
      drawn = key;
    }
    drawProbe(s, x(2 * s.block), scale.floor - height, scale.floor);
  }
  return { root, draw, release };
}

/** All controls, each writing one trait; another depth takes the line along if it was at the end. */
function createControls(model, isCompact) {
  const { bound, follow } = controlsOf(model, ({ depth, ...others }) => {
    const [block, isAtEnd] = [model.get("block"), model.get("block") >= model.get("depth")];
    setTraits(model, depth ? { block: isAtEnd ? depth : Math.min(block, depth), depth } : others);
  });
  const placement = bound(choice, "placement", { label: words.placement, options: namedOptions(words.placements) });
  const network = bound(choice, "network", { label: words.network, options: namedOptions(words.networks) });
  const finalNorm = bound(toggle, "final_norm", { label: words.finalNorm });
  const depth = bound(slider, "depth", { label: words.depth, stops: DEPTHS });
  const scaleName = (loudness) => words.scales[LOUDNESS.indexOf(loudness)];
  const loudness = bound(slider, "loudness", { label: words.loudness, stops: LOUDNESS, format: scaleName });
  return {
    primary: isCompact ? row(loudness) : row(placement, network, loudness),
    others: row(depth, finalNorm),
    follow,
  };
}

export default figure({
  words: residualStreamWords,
  traits: TRAITS,
  verdict: "rs-verdict",
  modelOf: coverable,
  create({ model, isCompact, verdict, numbers, redraw }) {
    const stream = createStream((block) => setTraits(model, { block }), isCompact);
    const controls = createControls(model, isCompact);
    const source = isCompact ? null : createSource(model, changeSource);
    const line = createWordLine((at) => source.choose({ at }));
    const caption = h("p", { class: "mm-note", hidden: true });
    const story = h("div", { hidden: true }, line);
    const shares = readout([]);
    const back = svg("svg", { role: "img" });
    const gradients = h("div", {}, back);
    const whole = isCompact ? [] : [story, gradients];
    const example = h("div", {}, controls.others);
    let lastBlock = null; // that was looked at in a story

    /** The story has a depth of its own, and a line that moves in it. */
    function changeSource() {
      const depth = source.reading()?.living.model.config.num_hidden_layers;
      model.cover(depth ? { depth, block: lastBlock ?? depth } : null);
      redraw();
    }

    function drawStory(s, reading) {
      for (const part of [story, caption]) part.hidden = !s.isStory;
      for (const part of [controls.primary, example, gradients]) part.hidden = Boolean(s.isStory);
      if (!s.isStory) return;
      lastBlock = s.block;
      caption.textContent = words.captionOfStory(s.token);
      line.draw(reading.tokens, reading.at, (place) => ({ tone: place === reading.at ? "ink" : "" }));
    }

    function draw(width) {
      const reading = source?.reading();
      const s = reading ? storyState(reading, model.get("block")) : streamState(model);
      drawStory(s, reading);
      const x = linear([0, 2 * s.depth], [SIDES.left, width - SIDES.exit]);
      stream.draw(s, width, x);
      shares.set(shareRows(s, isCompact ? s.depth : s.block));
      if (!s.isStory) controls.follow();
      const says = { verdict: streamVerdict(s), isStory: Boolean(s.isStory) };
      if (isCompact) return says; // it holds no gradients
      if (!s.isStory) {
        setSize(back, width, BACK.whole, backVerdict(s));
        fill(back, drawBack(s, x));
      }
      return { ...says, numbers: streamNumbers(s) };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column rs-stage" }, whole[0], shares, stream, caption, whole[1]),
      control: controls.primary,
      numbers: verdict,
      more: [source, example, numbers],
      parts: [stream, source],
      draw,
    };
  },
});
