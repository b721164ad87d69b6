// ResidualStream: the stream through the blocks, in stripes by who added what, and below it the gradient.

import { draggable, handle, grip, arrowStep } from "../../web/kit/drag.js";
import { NARROW, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, grouped } from "../../web/kit/kit.js";
import { slider, toggle, choice, namedOptions, readout, controlsOf, row } from "../../web/kit/kit.js";
import { setTraits, wordsOf } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, across, levels, ticks } from "../../web/kit/chart.js";
import { coverable, createSource } from "../../web/live/source.js";
import { createWordLine } from "../../web/live/word_line.js";
import { streamSizes, streamShares, sharesByKind, sizeSeen } from "./math.js";
import { cosineOf, rootMeanSquare, traceSizes } from "./math.js";
import { KINDS, SIDES, TONES, drawBlockAxis, drawRiver, percentOf, riverScale, threeDigits } from "./stripes.js";
import { residualStreamWords } from "./words.js";

const words = wordsOf(residualStreamWords);
const TRAITS = ["placement", "network", "final_norm", "depth", "loudness", "block"];
const DEPTHS = [2, 4, 8, 16, 32];
const LOUDNESS = [0.25, 0.5, 1, 2, 4, 8];
const BACK = { top: 28, height: 60, whole: 96 };

function streamState(model) {
  const [placement, network, finalNorm, depth, loudness, block] = TRAITS.map((name) => model.get(name));
  const [loud, deep] = [LOUDNESS.indexOf(loudness), DEPTHS.indexOf(depth)];
  const run = (name) => model.get("forward_runs")[network][placement][name][loud];
  const back = (name) => model.get("backward_runs")[network][placement][name][Number(finalNorm)][loud][deep];
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
  const lens = atBlocks.map((stream) => {
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
    lens,
    token: tokens[at],
    key: [...ids.slice(0, at + 1)].join(),
    isStory: true,
    isWhole: true,
    reached: depth,
  };
}

/** What the model would say after each block, where there is room. */
function drawSaid(s, x, floor, width) {
  if (!s.isStory || width < NARROW) return [];
  return s.lens.map(({ word, share }, block) => {
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
  if (s.isStory) return words.wouldSay(s.block, s.lens[s.block].word, percentOf(s.lens[s.block].share));
  const { pre, post, none, overflow } = words.verdict;
  if (!s.isWhole) return overflow(s.reached + 1);
  if (s.placement === "post") return post(s.depth, percentOf(s.shares.at(-1)[0]));
  return (s.placement === "pre" ? pre : none)(s.depth, threeDigits(s.sizes.at(-1)));
}

const backVerdict = ({ gradient }) => {
  return gradient[0] === null ? words.noGradient : words.gradients(threeDigits(gradient[0]));
};

/** What the embedding, attention and the feed-forward network have in the stream, each in its color. */
function createShares(names) {
  const numbers = readout([]);
  const root = h("div", { class: "rs-shares" }, numbers);
  function draw(shares) {
    const texts = shares ? sharesByKind(shares).map(percentOf) : KINDS.map(() => words.nothing);
    numbers.set(texts.map((text, i) => [names[i], text, TONES[i]]));
  }
  return { root, draw };
}

function streamNumbers(s) {
  const { block } = s;
  if (s.isStory) return storyNumbers(s, block);
  const size = s.sizes[2 * block]; // undefined where it overflowed
  const added = size && Math.hypot(s.added[2 * block - 2], s.added[2 * block - 1]);
  const isLost = s.loss === null || s.loss > 1.5 * s.guess;
  return [
    [words.streamAfter(block), threeDigits(size), size ? undefined : "bad"],
    [words.nextReads, threeDigits(size && sizeSeen(size, s.placement))],
    block ? [words.adds(block), threeDigits(added)] : [words.addedBefore, words.none],
    [words.cosine, size ? fmt(s.cosine[block], 2) : words.nothing],
    [words.gradient, block ? threeDigits(s.gradient[block - 1]) : words.nothing],
    [words.loss(fmt(s.guess, 2)), threeDigits(s.loss), isLost ? "bad" : undefined],
    [words.spread, threeDigits(s.spread)],
  ];
}

function storyNumbers(s, block) {
  return [
    [words.streamAfter(block), threeDigits(s.sizes[2 * block])],
    [words.nextReads, threeDigits(s.reads[block])],
    block ? [words.adds(block), threeDigits(s.adds[block - 1])] : [words.addedBefore, words.none],
    [words.cosine, fmt(s.cosine[block], 2)],
  ];
}

/** The drawing with its movable line. */
function createStream(onBlock) {
  const drawing = svg("g");
  const line = svg("path", { class: "rs-probe" });
  const probe = handle({ label: words.probe, min: 0, ring: 12, shape: grip(7) });
  const root = svg("svg", { role: "group", style: "touch-action: pan-y" }, drawing, line, probe);
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
    const height = width < NARROW ? 116 : 180;
    const scale = riverScale(s, 44, height);
    const room = x(2 * s.depth) - x(0);
    now = { x, block: s.block, depth: s.depth };
    const key = [width, s.placement, s.network, s.finalNorm, s.depth, s.loudness, s.isStory && [s.key, s.block]].join();
    if (key !== drawn) {
      const river = drawRiver(s, x, width, scale);
      const axes = [textAt(0, 14, words.axis), drawBlockAxis(s, x, scale.floor, room)];
      const name = !s.isStory && textAt(x(0), scale.floor + 34, words.block);
      setSize(root, width, scale.floor + 40, streamVerdict(s));
      fill(drawing, axes, name, river, drawSaid(s, x, scale.floor, width));
      drawn = key;
    }
    drawProbe(s, x(2 * s.block), scale.floor - height, scale.floor);
  }
  return { root, draw, release };
}

/** All controls, each writing one trait; another depth takes the line along if it was at the end. */
function createControls(model) {
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
    primary: row(placement, network, loudness),
    others: row(depth, finalNorm),
    follow,
  };
}

export default figure({
  words: residualStreamWords,
  traits: TRAITS,
  verdict: "rs-verdict",
  modelOf: coverable,
  create({ model, verdict, numbers, redraw }) {
    const stream = createStream((block) => setTraits(model, { block }));
    const controls = createControls(model);
    const source = createSource(model, changeSource);
    const line = createWordLine((at) => source.choose({ at }));
    const caption = h("p", { class: "mm-note", hidden: true });
    const story = h("div", { hidden: true }, line);
    const shares = createShares(words.shares);
    const back = svg("svg", { role: "img" });
    const gradients = h("div", {}, back);
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
      const reading = source.reading();
      const s = reading ? storyState(reading, model.get("block")) : streamState(model);
      drawStory(s, reading);
      const x = linear([0, 2 * s.depth], [SIDES.left, width - SIDES.exit]);
      stream.draw(s, width, x);
      shares.draw(s.shares[2 * s.block]);
      if (!s.isStory) controls.follow();
      if (!s.isStory) {
        setSize(back, width, BACK.whole, backVerdict(s));
        fill(back, drawBack(s, x));
      }
      return { verdict: streamVerdict(s), isStory: Boolean(s.isStory), numbers: streamNumbers(s) };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column" }, story, shares, stream, caption, gradients),
      control: controls.primary,
      numbers: verdict,
      more: [source, example, numbers],
      parts: [stream, source],
      draw,
    };
  },
});
