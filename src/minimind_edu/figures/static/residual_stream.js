// ResidualStream: the stream as a river through the blocks, in layers by who added what; below, the gradient's way back.

import { h, svg, fmt, slider, toggle, choice, readout, draggable, mount } from "./kit.js";
import { streamSizes, streamShares, sizeSeen, roundAbove } from "./residual_stream_math.js";

const TRAITS = ["placement", "final_norm", "depth", "loudness", "block"];
const DEPTHS = [2, 4, 8, 16, 32];
const LOUDNESS = [0.25, 0.5, 1, 2, 4, 8];
const LOUDNESS_NAMES = ["× ¼", "× ½", "× 1", "× 2", "× 4", "× 8"];
const RIVER = { top: 40, height: 190 }; // the axis of blocks lies below
const BACK = { top: 296, height: 104 };
const HEIGHT = 424;
const SIDES = { left: 40, exit: 92 };
const TALLEST = 20; // beyond this RMS the river leaves the picture

const STREAM_CSS = `
.rs-stage { display: grid !important; gap: 12px !important; justify-content: stretch !important; }
.rs-choices { display: flex; flex-wrap: wrap; gap: 10px 28px; align-items: end; }
.rs-layer { stroke: var(--mm-bg); stroke-width: 0.75; }
.rs-embedding { fill: color-mix(in oklab, var(--mm-accent) 70%, var(--mm-panel)); }
.rs-grid { stroke: var(--mm-line); stroke-width: 1; }
.rs-one { stroke: var(--mm-ink); stroke-width: 1.5; stroke-dasharray: 5 4; }
.rs-sum { stroke: var(--mm-ink); stroke-width: 1.25; }
.rs-probe { stroke: var(--mm-ink); stroke-width: 1.5; }
.rs-grip { fill: var(--mm-bg); stroke: var(--mm-ink); stroke-width: 2.5; }
.rs-ring { fill: none; stroke: transparent; stroke-width: 2; }
.rs-handle { outline: none !important; }
.rs-handle:focus-visible .rs-ring { stroke: var(--mm-accent2); }
.rs-arrow { fill: none; stroke: var(--mm-muted); stroke-width: 1.5; }
.mm-fig text.rs-small { fill: var(--mm-muted); font-size: 12px; }
.mm-fig text.rs-strong { font-size: 13px; font-weight: 600; }
.mm-fig text.rs-bad { fill: var(--mm-bad); font-size: 13px; font-weight: 600; }
.mm-fig text.rs-halo { paint-order: stroke; stroke: var(--mm-bg); stroke-width: 4px; stroke-linejoin: round; }
.rs-legend { display: flex; flex-wrap: wrap; gap: 4px 20px; color: var(--mm-muted); font-size: 14px; line-height: 1.4; }
.rs-legend svg { display: inline-block !important; height: 13px; margin-right: 7px; vertical-align: -2px; }
.mm-fig .rs-verdict { font-size: 16px; font-weight: 600; line-height: 1.4; min-height: 2.8em; }
@container (max-width: 560px) { .mm-fig .rs-verdict { min-height: 5.6em; } }
`;

const put = (node, attrs) => Object.entries(attrs).forEach(([name, value]) => node.setAttribute(name, value));
const within = (x, low, high) => Math.min(high, Math.max(low, x));
const say = (x, y, text, cls = "rs-small", anchor = "start") => svg("text", { x, y, class: cls, "text-anchor": anchor }, text);
const shade = (block, depth) => `color-mix(in oklab, var(--mm-good) ${Math.round((100 * (block - 1)) / (depth - 1))}%, var(--mm-accent2))`;
const fillOf = (block, depth) => (block ? `fill: color-mix(in oklab, ${shade(block, depth)} 70%, var(--mm-panel))` : "");

const grouped = (x) => String(Math.round(x)).replace(/\B(?=(\d{3})+$)/g, ",");

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
    placement, finalNorm, depth, loudness, sizes, block: Math.min(block, depth), guess: model.get("guess"),
    added: run("added"), total: run("total"), cosine: run("cosine"), shares: streamShares(run("added"), sizes, depth),
    gradient: back("gradient"), spread: back("spread"), loss: back("loss"), reached: Math.floor((sizes.length - 1) / 2),
  };
}

/** The river, its exit through the final norm, and the axis of blocks. x(p) is the place of sublayer p of 2L. */
function drawRiver(s, x, width) {
  const { top, height } = RIVER;
  const floor = top + height;
  const peak = Math.max(...s.sizes, ...(s.placement === "post" ? s.total.slice(0, 2 * s.depth) : []));
  const end = roundAbove(within(peak, 1.3, TALLEST));
  const y = (size) => floor - (Math.min(size, end * 1.05) / end) * height;
  const last = s.sizes.length - 1;
  const whole = last === 2 * s.depth;
  const out = x(2 * s.depth);
  const points = s.sizes.map((size, at) => ({ at: x(at), size, shares: s.shares[at] }));
  if (whole) {
    const leaving = s.finalNorm ? 1 : s.sizes[last];
    points.push({ at: out + 16, size: s.sizes[last], shares: s.shares[last] }, { at: out + 44, size: leaving, shares: s.shares[last] }, { at: width - 2, size: leaving, shares: s.shares[last] });
  }
  const edges = points.map(({ size, shares }) => shares.reduce((ends, share) => [...ends, ends.at(-1) + share * size], [0]));
  const layers = Array.from({ length: s.depth + 1 }, (_, block) => {
    const first = block ? Math.min(2 * block - 2, points.length - 1) : 0;
    const along = (edge) => points.slice(first).map(({ at }, i) => `${at.toFixed(1)} ${y(edges[first + i][edge]).toFixed(1)}`);
    return svg("path", { class: block ? "rs-layer" : "rs-layer rs-embedding", style: fillOf(block, s.depth), d: `M${along(block).join("L")}L${along(block + 1).reverse().join("L")}Z` });
  });
  const ticks = [0, end / 2, end].map((size) => [svg("line", { class: "rs-grid", x1: SIDES.left, x2: width, y1: y(size), y2: y(size) }), say(SIDES.left - 6, y(size) + 4, String(size), "rs-small", "end")]);
  const sums = s.placement !== "post" ? [] : s.total.slice(0, 2 * s.depth).map((size, i) => size > 1.02 && svg("line", { class: "rs-sum", x1: x(i + 1), x2: x(i + 1), y1: y(1), y2: y(size) }));
  const one = s.placement === "pre" && svg("line", { class: "rs-one", x1: SIDES.left, x2: out, y1: y(1), y2: y(1) });
  const lost = !whole && say(x(last) + 8, top + 24, "overflow", "rs-bad");
  const exit = whole && [say((out + width) / 2 + 6, floor + 18, s.finalNorm ? "final norm" : "no norm", "rs-small", "middle"), say((out + width) / 2 + 6, floor + 34, "→ head", "rs-small", "middle")];
  return { nodes: [ticks, layers, sums, one, lost, exit], floor };
}

function drawBlockAxis(s, x, floor, room) {
  const every = [1, 2, 4, 8].find((step) => s.depth <= 4 * step || (room * step) / s.depth > 26);
  const numbers = Array.from({ length: s.depth }, (_, i) => i + 1).filter((block) => block % every === 0 || block === 1 && every < 4);
  return [numbers.map((block) => say(x(2 * block - 1), floor + 18, block, "rs-small", "middle")), say(x(0), floor + 34, "block", "rs-small")];
}

/** One bar a block on a logarithmic axis: its gradient beside that of the last block. */
function drawBack(s, x, width) {
  const { top, height } = BACK;
  const caption = say(0, top - 12, "gradient at each block, beside the last block's", "rs-small");
  const right = x(2 * s.depth);
  if (s.gradient.includes(null)) return [caption, say(SIDES.left + 8, top + height / 2, "no gradient: the numbers overflowed", "rs-bad")];
  const powers = s.gradient.map((ratio) => Math.log10(Math.max(ratio, 1e-3)));
  const high = Math.max(1, Math.ceil(Math.max(...powers) - 0.02));
  const low = Math.min(0, Math.floor(Math.min(...powers) + 0.02));
  const y = (power) => top + (height * (high - power)) / (high - low);
  const step = Math.max(1, Math.ceil((high - low) / 4));
  const grid = [];
  for (let power = low; power <= high; power += step) {
    const text = power < 0 ? fmt(10 ** power, -power) : grouped(10 ** power);
    grid.push(svg("line", { class: "rs-grid", x1: SIDES.left, x2: right, y1: y(power), y2: y(power) }), say(SIDES.left - 6, y(power) + 4, text, "rs-small", "end"));
  }
  const wide = Math.max(2, (x(2) - x(0)) * 0.66);
  const bars = powers.map((power, i) => {
    const [from, to] = [Math.min(y(0), y(power)), Math.max(y(0), y(power))];
    return svg("rect", { style: `fill: ${shade(i + 1, s.depth)}`, x: x(2 * i + 1) - wide / 2, y: from - 1, width: wide, height: to - from + 2 });
  });
  const tip = right + 8;
  const arrow = svg("path", { class: "rs-arrow", d: `M${width - 4} ${y(0)}H${tip}m6 -5l-6 5l6 5` });
  return [caption, grid, bars, arrow, say((tip + width) / 2 + 4, y(0) - 10, "way back", "rs-small", "middle")];
}

/** What the picture says in one sentence. */
function verdict(s) {
  const first = s.gradient[0];
  const ratio = first === null ? "" : `block 1 gets ${told(first)} times the last block's gradient`;
  const always = s.finalNorm ? ", however loud the sublayers are" : "";
  if (s.sizes.length <= 2 * s.depth) return `Without norms every block multiplies what the one before made: in block ${s.reached + 1} the stream passes 65,504, where float16 ends.`;
  const left = s.shares.at(-1)[0];
  const kept = left > 0.0005 ? `${fmt(100 * left, left < 0.1 ? 1 : 0)} %` : "nothing";
  if (s.placement === "pre") return `Everything ever added stays as it was, and the stream grows; ${ratio}${always}.`;
  if (s.placement === "post") return `Each norm scales down all that is older: the embedding is ${kept} of the stream after ${s.depth} blocks; ${ratio}.`;
  return `Without norms the sublayers see the stream as it is, and a small one makes them whisper; ${ratio}.`;
}

function streamNumbers(s) {
  const { block } = s;
  const at = 2 * block;
  const size = s.sizes[at];
  const there = size !== undefined;
  const says = Math.hypot(s.added[at - 2], s.added[at - 1]);
  const learned = block ? s.gradient[block - 1] : undefined;
  return [
    [block ? `stream after block ${block}, RMS` : "the embedding, RMS", there ? told(size) : "overflow", there ? undefined : "bad"],
    ["the next sublayer reads, RMS", there ? told(sizeSeen(size, s.placement)) : "overflow"],
    [block ? `block ${block} adds, RMS` : "added so far", block ? (there ? told(says) : "overflow") : "nothing", block ? "good" : undefined],
    ["cosine with the embedding", there ? fmt(s.cosine[block], 2) : "–", "accent"],
    ["gradient here (last block: 1)", block ? told(learned) : "–"],
    ["loss (a blind guess: " + fmt(s.guess, 2) + ")", told(s.loss), s.loss === null || s.loss > 1.5 * s.guess ? "bad" : undefined],
    ["spread of the logits", told(s.spread)],
  ];
}

function legendOf(s) {
  const key = (attrs, text, wide = 13) => h("span", {}, svg("svg", { width: wide, viewBox: `0 0 ${wide} 13`, "aria-hidden": "true" }, attrs), text);
  const blocks = Array.from({ length: 6 }, (_, i) => svg("rect", { x: 8 * i, width: 8, height: 13, style: fillOf(1 + i, 6) }));
  return [
    key(svg("rect", { class: "rs-embedding", width: 13, height: 13 }), "from the embedding"),
    key(blocks, `added by block 1 to ${s.depth}`, 48),
    s.placement === "pre" && key(svg("line", { class: "rs-one", x1: 0, x2: 24, y1: 7, y2: 7 }), "what a sublayer reads", 24),
    s.placement === "post" && key(svg("line", { class: "rs-sum", x1: 6, x2: 6, y1: 0, y2: 13 }), "the sum before its norm"),
  ].filter(Boolean);
}

/** The drawing with its movable line. */
function createStream(onBlock) {
  const drawing = svg("g");
  const line = svg("path", { class: "rs-probe" });
  const grip = svg("g", { class: "rs-handle", tabindex: 0, role: "slider", "aria-label": "block to look at", "aria-valuemin": 0 },
    svg("circle", { r: 18, fill: "transparent" }), svg("circle", { class: "rs-ring", r: 12 }), svg("circle", { class: "rs-grip", r: 7 }));
  const title = say(0, 14, "size of the stream (RMS), by who added it");
  const root = svg("svg", { height: HEIGHT, role: "group", style: "touch-action: pan-y" }, drawing, line, grip);
  let now = { step: 1, block: 0, depth: 1 };
  const release = draggable(grip, {
    onMove: (px, _, event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      const next = step ? now.block + step * (event.shiftKey ? 5 : 1) : Math.round((px - SIDES.left) / now.step);
      onBlock(within(next, 0, now.depth));
    },
  });

  function draw(s, width) {
    const room = width - SIDES.left - SIDES.exit;
    const x = (p) => SIDES.left + (p * room) / (2 * s.depth);
    now = { step: room / s.depth, block: s.block, depth: s.depth };
    put(root, { width, viewBox: `0 0 ${width} ${HEIGHT}`, "aria-label": verdict(s) });
    const river = drawRiver(s, x, width);
    drawing.replaceChildren(...[title, river.nodes, drawBlockAxis(s, x, river.floor, room), drawBack(s, x, width)].flat(4).filter(Boolean));
    put(line, { d: `M${x(2 * s.block)} 18V${river.floor}${s.gradient.includes(null) ? "" : `M${x(2 * s.block)} ${BACK.top}v${BACK.height}`}` });
    put(grip, { transform: `translate(${x(2 * s.block)} ${RIVER.top - 12})`, "aria-valuemax": s.depth, "aria-valuenow": s.block, "aria-valuetext": s.block ? `after block ${s.block}` : "the embedding" });
  }
  return { root, draw, release };
}

function renderStream({ model, el }) {
  const change = (name, value) => {
    const [block, atEnd] = [model.get("block"), model.get("block") >= model.get("depth")];
    if (name === "depth") model.set("block", atEnd ? value : Math.min(block, value)); // the line at the end stays there
    model.set(name, value);
    model.save_changes();
  };
  const stream = createStream((block) => change("block", block));
  const placement = choice({ label: "norms in the blocks", options: [["pre", "pre-norm"], ["post", "post-norm"], ["none", "none"]].map(([value, label]) => ({ value, label })), value: model.get("placement"), onChange: (value) => change("placement", value) });
  const finalNorm = toggle({ label: "final norm", checked: model.get("final_norm"), onChange: (value) => change("final_norm", value) });
  const depth = slider({ label: "blocks", min: 0, max: 4, step: 1, value: 0, format: (i) => String(DEPTHS[i]), onInput: (i) => change("depth", DEPTHS[i]) });
  const loudness = slider({ label: "what the sublayers add", min: 0, max: 5, step: 1, value: 0, format: (i) => LOUDNESS_NAMES[i], tone: "good", onInput: (i) => change("loudness", LOUDNESS[i]) });
  const words = h("p", { class: "rs-verdict", "aria-live": "polite" });
  const legend = h("div", { class: "rs-legend" });
  const numbers = readout([]);
  const box = h("div", {}, stream.root);
  const stage = h("div", { class: "mm-stage rs-stage" }, h("div", { class: "rs-choices" }, placement.root, finalNorm.root), words, legend, box);
  const root = h("div", { class: "mm-fig rs-fig" }, h("style", {}, STREAM_CSS), stage, h("div", { class: "mm-controls" }, depth.root, loudness.root), numbers.root);
  function draw(width) {
    const now = streamState(model);
    stream.draw(now, width);
    placement.set(now.placement);
    finalNorm.set(now.finalNorm);
    depth.set(DEPTHS.indexOf(now.depth));
    loudness.set(LOUDNESS.indexOf(now.loudness));
    legend.replaceChildren(...legendOf(now));
    numbers.set(streamNumbers(now));
    const text = verdict(now);
    if (words.textContent !== text) words.textContent = text;
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw, parts: [stream] });
}

export default { render: renderStream };
