// ResidualStream: the stream as a river through the blocks, in layers by who added what; below it, the gradient.

import { h, svg, textAt, setAttributes, setSize, setTraits, clamp, arrowStep, draggable, mount } from "./kit.js";
import { fmt, grouped, slider, toggle, choice, optionsFor, readout, announcement, handle, grip } from "./kit.js";
import { streamSizes, streamShares, sizeSeen, roundAbove } from "./residual_stream_math.js";

const TRAITS = ["placement", "final_norm", "depth", "loudness", "block"];
const DEPTHS = [2, 4, 8, 16, 32];
const LOUDNESS = [0.25, 0.5, 1, 2, 4, 8];
const PLACEMENT_NAMES = { pre: "pre-norm", post: "post-norm", none: "none" };
const LOUDNESS_NAMES = ["× ¼", "× ½", "× 1", "× 2", "× 4", "× 8"];
const RIVER = { top: 40, height: 190 }; // the axis of blocks lies below
const BACK = { top: 296, height: 104 };
const HEIGHT = 424;
const SIDES = { left: 40, exit: 92 };
const TALLEST = 20; // beyond this RMS the river leaves the picture

const say = (x, y, text, cls = "rs-small", anchor = "start") => textAt(x, y, text, cls, anchor);
const pointsOf = (points) => points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);

/** The color of a block, from blue for the first to green for the last. */
function shade(block, depth) {
  const part = Math.round((100 * (block - 1)) / (depth - 1));
  return `color-mix(in oklab, var(--mm-good) ${part}%, var(--mm-accent2))`;
}

const layerFill = (block, depth) => `fill: color-mix(in oklab, ${shade(block, depth)} 70%, var(--mm-panel))`;

/** Three digits at least, without any point from 1,000 on. */
function told(x) {
  if (x === null || x === undefined) return "overflow";
  if (x === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(Number(x.toPrecision(3)))));
  return power > 2 ? grouped(x) : fmt(x, Math.min(3, 2 - power));
}

function streamState(model) {
  const [placement, finalNorm, depth, loudness, block] = TRAITS.map((name) => model.get(name));
  const [loud, deep] = [LOUDNESS.indexOf(loudness), DEPTHS.indexOf(depth)];
  const run = (name) => model.get("forward_runs")[placement][name][loud];
  const back = (name) => model.get("backward_runs")[placement][name][Number(finalNorm)][loud][deep];
  const sizes = streamSizes(run("total"), placement, model.get("embedding"), depth);
  return {
    placement,
    finalNorm,
    depth,
    loudness,
    sizes,
    block: Math.min(block, depth),
    guess: model.get("guess"),
    added: run("added"),
    total: run("total").slice(0, 2 * depth),
    cosine: run("cosine"),
    shares: streamShares(run("added"), sizes, depth),
    gradient: back("gradient"),
    spread: back("spread"),
    loss: back("loss"),
    isWhole: sizes.length > 2 * depth, // no sublayer overflowed
    reached: Math.floor((sizes.length - 1) / 2),
  };
}

/** The axis of sizes: its end, and where a size stands on the page. */
function riverScale(s) {
  const floor = RIVER.top + RIVER.height;
  const peak = Math.max(...s.sizes, ...(s.placement === "post" ? s.total : []));
  const end = roundAbove(clamp(peak, 1.3, TALLEST));
  return { end, floor, y: (size) => floor - (Math.min(size, end * 1.05) / end) * RIVER.height };
}

/** The stream at every sublayer and, if it gets that far, through the final norm to the head: place, size, shares. */
function riverPoints(s, x, width) {
  const points = s.sizes.map((size, at) => ({ at: x(at), size, shares: s.shares[at] }));
  if (!s.isWhole) return points;
  const [end, out] = [points.at(-1), x(2 * s.depth)];
  const leaving = { ...end, size: s.finalNorm ? 1 : end.size };
  return [...points, { ...end, at: out + 16 }, { ...leaving, at: out + 44 }, { ...leaving, at: width - 2 }];
}

/** One layer of the river for the embedding and for every block that adds to it. */
function drawLayers(s, points, y) {
  const ends = points.map(({ size, shares }) =>
    shares.reduce((sums, share) => [...sums, sums.at(-1) + share * size], [0]),
  );
  return Array.from({ length: s.depth + 1 }, (_, block) => {
    const first = block ? Math.min(2 * block - 2, points.length - 1) : 0;
    const along = (edge) => pointsOf(points.slice(first).map(({ at }, i) => [at, y(ends[first + i][edge])]));
    const d = `M${[...along(block), ...along(block + 1).reverse()].join("L")}Z`;
    if (!block) return svg("path", { class: "rs-layer rs-embedding", d });
    return svg("path", { class: "rs-layer", style: layerFill(block, s.depth), d });
  });
}

/** The river, its exit through the final norm, and the axis of sizes. x(p) is the place of sublayer p of 2L. */
function drawRiver(s, x, width) {
  const { end, floor, y } = riverScale(s);
  const out = x(2 * s.depth);
  const upright = (at, size) => svg("line", { class: "rs-sum", x1: at, x2: at, y1: y(1), y2: y(size) });
  const ticks = [0, end / 2, end].map((size) => [
    svg("line", { class: "rs-grid", x1: SIDES.left, x2: width, y1: y(size), y2: y(size) }),
    say(SIDES.left - 6, y(size) + 4, String(size), "rs-small", "end"),
  ]);
  const sums = s.placement === "post" && s.total.map((size, i) => size > 1.02 && upright(x(i + 1), size));
  const one = svg("line", { class: "rs-one", x1: SIDES.left, x2: out, y1: y(1), y2: y(1) });
  const exit = (out + width) / 2 + 6;
  return [
    ticks,
    drawLayers(s, riverPoints(s, x, width), y),
    sums,
    s.placement === "pre" && one,
    !s.isWhole && say(x(s.sizes.length - 1) + 8, RIVER.top + 24, "overflow", "rs-bad"),
    s.isWhole && say(exit, floor + 18, s.finalNorm ? "final norm" : "no norm", "rs-small", "middle"),
    s.isWhole && say(exit, floor + 34, "→ head", "rs-small", "middle"),
  ];
}

function drawBlockAxis(s, x, floor, room) {
  const every = [1, 2, 4, 8].find((step) => s.depth <= 4 * step || (room * step) / s.depth > 26);
  const isNumbered = (block) => block % every === 0 || (block === 1 && every < 4);
  const blocks = Array.from({ length: s.depth }, (_, i) => i + 1).filter(isNumbered);
  const numbers = blocks.map((block) => say(x(2 * block - 1), floor + 18, block, "rs-small", "middle"));
  return [numbers, say(x(0), floor + 34, "block")];
}

/** One bar a block on a logarithmic axis: its gradient beside that of the last block. */
function drawBack(s, x, width) {
  const { top, height } = BACK;
  const caption = say(0, top - 12, "gradient at each block, beside the last block's");
  if (s.gradient.includes(null)) {
    return [caption, say(SIDES.left + 8, top + height / 2, "no gradient: the numbers overflowed", "rs-bad")];
  }
  const powers = s.gradient.map((ratio) => Math.log10(Math.max(ratio, 1e-3)));
  const high = Math.max(1, Math.ceil(Math.max(...powers) - 0.02));
  const low = Math.min(0, Math.floor(Math.min(...powers) + 0.02));
  const y = (power) => top + (height * (high - power)) / (high - low);
  const wide = Math.max(2, (x(2) - x(0)) * 0.66);
  const bars = powers.map((power, i) => {
    const [from, to] = [y(0), y(power)].sort((a, b) => a - b);
    const box = { x: x(2 * i + 1) - wide / 2, y: from - 1, width: wide, height: to - from + 2 };
    return svg("rect", { style: `fill: ${shade(i + 1, s.depth)}`, ...box });
  });
  const right = x(2 * s.depth);
  const tip = right + 8;
  const arrow = svg("path", { class: "rs-arrow", d: `M${width - 4} ${y(0)}H${tip}m6 -5l-6 5l6 5` });
  const words = say((tip + width) / 2 + 4, y(0) - 10, "way back", "rs-small", "middle");
  return [caption, drawPowers(low, high, y, right), bars, arrow, words];
}

/** Lines at powers of ten, five at most. */
function drawPowers(low, high, y, right) {
  const step = Math.max(1, Math.ceil((high - low) / 4));
  const powers = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step);
  return powers.map((power) => {
    const text = power < 0 ? fmt(10 ** power, -power) : grouped(10 ** power);
    const line = svg("line", { class: "rs-grid", x1: SIDES.left, x2: right, y1: y(power), y2: y(power) });
    return [line, say(SIDES.left - 6, y(power) + 4, text, "rs-small", "end")];
  });
}

/** What the picture says in one sentence. */
function streamVerdict(s) {
  if (!s.isWhole) {
    const where = `in block ${s.reached + 1} the stream passes 65,504, where float16 ends`;
    return `Without norms every block multiplies what the one before made: ${where}.`;
  }
  const first = s.gradient[0];
  const ratio = first === null ? "" : `block 1 gets ${told(first)} times the last block's gradient`;
  if (s.placement === "pre") {
    const always = s.finalNorm ? ", however loud the sublayers are" : "";
    return `Everything ever added stays as it was, and the stream grows; ${ratio}${always}.`;
  }
  if (s.placement === "post") {
    const left = s.shares.at(-1)[0];
    const kept = left > 0.0005 ? `${fmt(100 * left, left < 0.1 ? 1 : 0)} %` : "nothing";
    const older = `the embedding is ${kept} of the stream after ${s.depth} blocks`;
    return `Each norm scales down all that is older: ${older}; ${ratio}.`;
  }
  return `Without norms the sublayers see the stream as it is, and a small one makes them whisper; ${ratio}.`;
}

function streamNumbers(s) {
  const { block } = s;
  const size = s.sizes[2 * block];
  const isThere = size !== undefined;
  const ifThere = (text) => (isThere ? text() : "overflow");
  const added = () => told(Math.hypot(s.added[2 * block - 2], s.added[2 * block - 1]));
  const isLost = s.loss === null || s.loss > 1.5 * s.guess;
  const stream = block ? `stream after block ${block}, RMS` : "the embedding, RMS";
  return [
    [stream, ifThere(() => told(size)), isThere ? undefined : "bad"],
    ["the next sublayer reads, RMS", ifThere(() => told(sizeSeen(size, s.placement)))],
    block ? [`block ${block} adds, RMS`, ifThere(added), "good"] : ["added so far", "nothing"],
    ["cosine with the embedding", isThere ? fmt(s.cosine[block], 2) : "–", "accent"],
    ["gradient here (last block: 1)", block ? told(s.gradient[block - 1]) : "–"],
    [`loss (a blind guess: ${fmt(s.guess, 2)})`, told(s.loss), isLost ? "bad" : undefined],
    ["spread of the logits", told(s.spread)],
  ];
}

function legendOf(s) {
  const key = (shapes, text, wide = 13) => {
    const picture = svg("svg", { width: wide, viewBox: `0 0 ${wide} 13`, "aria-hidden": "true" }, shapes);
    return h("span", {}, picture, text);
  };
  const block = (_, i) => svg("rect", { x: 8 * i, width: 8, height: 13, style: layerFill(1 + i, 6) });
  const one = svg("line", { class: "rs-one", x1: 0, x2: 24, y1: 7, y2: 7 });
  const sum = svg("line", { class: "rs-sum", x1: 6, x2: 6, y1: 0, y2: 13 });
  return [
    key(svg("rect", { class: "rs-embedding", width: 13, height: 13 }), "from the embedding"),
    key(Array.from({ length: 6 }, block), `added by block 1 to ${s.depth}`, 48),
    s.placement === "pre" && key(one, "what a sublayer reads", 24),
    s.placement === "post" && key(sum, "the sum before its norm"),
  ].filter(Boolean);
}

/** The drawing with its movable line. */
function createStream(onBlock) {
  const drawing = svg("g");
  const line = svg("path", { class: "rs-probe" });
  const probe = handle({ label: "block to look at", min: 0, ring: 12, shape: grip(7) });
  const title = say(0, 14, "size of the stream (RMS), by who added it");
  const root = svg("svg", { height: HEIGHT, role: "group", style: "touch-action: pan-y" }, drawing, line, probe);
  let now = { step: 1, block: 0, depth: 1 };
  const release = draggable(probe, {
    onMove: (px, _, event) => {
      const step = arrowStep(event);
      const next = step ? now.block + step : Math.round((px - SIDES.left) / now.step);
      onBlock(clamp(next, 0, now.depth));
    },
  });

  function drawProbe(s, at, floor) {
    const back = s.gradient.includes(null) ? "" : `M${at} ${BACK.top}v${BACK.height}`;
    const text = s.block ? `after block ${s.block}` : "the embedding";
    setAttributes(line, { d: `M${at} 18V${floor}${back}` });
    setAttributes(probe, { transform: `translate(${at} ${RIVER.top - 12})` });
    setAttributes(probe, { "aria-valuemax": s.depth, "aria-valuenow": s.block, "aria-valuetext": text });
  }

  function draw(s, width) {
    const room = width - SIDES.left - SIDES.exit;
    const x = (p) => SIDES.left + (p * room) / (2 * s.depth);
    const floor = RIVER.top + RIVER.height;
    now = { step: room / s.depth, block: s.block, depth: s.depth };
    setSize(root, width, HEIGHT);
    setAttributes(root, { "aria-label": streamVerdict(s) });
    const parts = [title, drawRiver(s, x, width), drawBlockAxis(s, x, floor, room), drawBack(s, x, width)];
    drawing.replaceChildren(...parts.flat(Infinity).filter(Boolean));
    drawProbe(s, x(2 * s.block), floor);
  }
  return { root, draw, release };
}

/** All controls, each writing one trait; another depth takes the line along if it stood at the end. */
function createControls(model) {
  const placement = choice({
    label: "norms in the blocks",
    options: optionsFor(Object.keys(PLACEMENT_NAMES), (name) => PLACEMENT_NAMES[name]),
    value: model.get("placement"),
    onChange: (value) => setTraits(model, { placement: value }),
  });
  const finalNorm = toggle({
    label: "final norm",
    checked: model.get("final_norm"),
    onChange: (value) => setTraits(model, { final_norm: value }),
  });
  const depth = slider({
    label: "blocks",
    min: 0,
    max: DEPTHS.length - 1,
    step: 1,
    value: 0,
    format: (i) => String(DEPTHS[i]),
    onInput: (i) => {
      const isAtEnd = model.get("block") >= model.get("depth");
      const block = isAtEnd ? DEPTHS[i] : Math.min(model.get("block"), DEPTHS[i]);
      setTraits(model, { block, depth: DEPTHS[i] });
    },
  });
  const loudness = slider({
    label: "what the sublayers add",
    min: 0,
    max: LOUDNESS.length - 1,
    step: 1,
    value: 0,
    format: (i) => LOUDNESS_NAMES[i],
    tone: "good",
    onInput: (i) => setTraits(model, { loudness: LOUDNESS[i] }),
  });

  function set(s) {
    placement.set(s.placement);
    finalNorm.set(s.finalNorm);
    depth.set(DEPTHS.indexOf(s.depth));
    loudness.set(LOUDNESS.indexOf(s.loudness));
  }
  return {
    choices: h("div", { class: "rs-choices" }, placement.root, finalNorm.root),
    sliders: h("div", { class: "mm-controls" }, depth.root, loudness.root),
    set,
  };
}

function renderStream({ model, el }) {
  const stream = createStream((block) => setTraits(model, { block }));
  const controls = createControls(model);
  const verdict = announcement("rs-verdict");
  const legend = h("div", { class: "rs-legend" });
  const numbers = readout([]);
  const box = h("div", {}, stream.root);
  const stage = h("div", { class: "mm-stage rs-stage" }, controls.choices, verdict.root, legend, box);
  const root = h("div", { class: "mm-fig rs-fig" }, stage, controls.sliders, numbers.root);

  function draw(width) {
    const s = streamState(model);
    stream.draw(s, width);
    controls.set(s);
    legend.replaceChildren(...legendOf(s));
    verdict.set(streamVerdict(s));
    numbers.set(streamNumbers(s));
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw, parts: [stream] });
}

export default { render: renderStream };
