// Roofline: decode and prefill under a machine's two limits, and which of the two a call waits for.

import { draggable, handle, arrowStep } from "../../web/kit/drag.js";
import { NARROW, WIDE, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, grouped } from "../../web/kit/kit.js";
import { slider, choice, optionsFor, readout, row } from "../../web/kit/kit.js";
import { setTraits, setText } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, lineThrough, upright, levels, ticks } from "../../web/kit/chart.js";
import { decodeCost, prefillCost, underRoof, attainableAt, nearestIntensity } from "./math.js";
import { withPrefix, duration } from "./math.js";
import { costSizes, secondsPerToken } from "./story.js";
import { coverable, createSource } from "../../web/live/source.js";
import { rooflineWords } from "./words.js";

const SIZES = ["hidden_size", "num_hidden_layers", "num_key_value_heads", "batch", "context", "itemsize"];
const MEASURED = ["machine", "runs", "measured_at"];
const LONGEST = 15; // 2 ** 15 positions
const GAP = 28; // between the roof and the times
const LARGEST = 9; // a batch of 2 ** 9
const MODELS = {
  "512 × 8": { hidden_size: 512, num_hidden_layers: 8 },
  "768 × 16": { hidden_size: 768, num_hidden_layers: 16 },
  "2048 × 24": { hidden_size: 2048, num_hidden_layers: 24 },
};

const rate = (x) => (x >= 100 ? grouped(x) : fmt(x, x >= 10 ? 0 : 1));

const powersOfTwo = (last) => Array.from({ length: last + 1 }, (_, power) => 2 ** power);

function binaryBytes(bytes) {
  if (bytes < 2 ** 20) return `${fmt(bytes / 2 ** 10, bytes < 2 ** 14 ? 1 : 0)} KiB`;
  if (bytes >= 2 ** 30) return `${fmt(bytes / 2 ** 30, 1)} GiB`;
  return `${fmt(bytes / 2 ** 20, bytes < 2 ** 24 ? 1 : 0)} MiB`;
}

/** Powers of ten between two numbers. */
function decades(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

function sizesOfTraits(get) {
  return {
    hidden: get("hidden_size"),
    layers: get("num_hidden_layers"),
    heads: get("num_attention_heads"),
    kvHeads: get("num_key_value_heads"),
    vocabulary: get("vocab_size"),
  };
}

/** story: null, or the living model's reading with the `seconds` that a token took in this page. */
function roofState(model, story) {
  const get = (name) => model.get(name);
  const [context, batch, machine] = [get("context"), get("batch"), get("machine")];
  const sizes = { ...(story ? costSizes(story) : sizesOfTraits(get)), batch, itemsize: get("itemsize") };
  const at = (cost) => ({ cost, ...underRoof(cost, machine) });
  const decodeAt = (b) => at(decodeCost({ ...sizes, batch: b }, context));
  const prefillAt = (length) => at(prefillCost(sizes, length));
  const isAsMeasured = story
    ? batch === 1
    : Object.entries(get("measured_at")).every(([name, value]) => get(name) === value);
  const measured = story ? [{ name: "decode, page", seconds: story.seconds }] : get("runs");
  const [decode, prefill] = [decodeAt(batch), prefillAt(context)];
  return {
    sizes,
    context,
    batch,
    machine,
    decodeAt,
    prefillAt,
    decode,
    prefill,
    decodeRate: batch / decode.seconds, // tokens per second
    prefillRate: (batch * context) / prefill.seconds,
    runs: isAsMeasured ? measured : [],
    story,
  };
}

/**
 * Operations per second against operations per byte, both logarithmic. The disk is decode, dragged along the batches;
 * the square is the prefill, dragged along the contexts, but not when compact.
 */
function createRoof(words, isCompact, onBatch, onContext) {
  const [left, right, bottom] = [46, 12, 42];
  const [xLow, xHigh] = [0.1, 1e5];
  const under = svg("path", { class: "mm-soft" });
  const roof = svg("path", { class: "ro-roof" });
  const grid = svg("g");
  const [limits, labels] = [svg("g"), svg("g", { class: "ro-labels" })];
  const plumbs = { decode: svg("line", { class: "mm-faint" }), prefill: svg("line", { class: "mm-faint" }) };
  const disk = svg("circle", { class: "mm-ink ro-disk", r: 7 });
  const square = svg("rect", { class: "ro-square", x: -11, y: -11, width: 22, height: 22, rx: 3 }); // around the disk
  const handles = {
    decode: handle({ label: words.batchHandle, min: 1, max: 2 ** LARGEST, reach: 14, ring: 11, shape: disk }),
  };
  if (!isCompact) {
    const prompt = { label: words.promptHandle, min: 1, max: 2 ** LONGEST, reach: 20, ring: 17, shape: square };
    handles.prefill = handle(prompt);
  }
  const points = { decode: handles.decode, prefill: handles.prefill ?? svg("g", {}, square) };
  const layers = [under, grid, plumbs.decode, plumbs.prefill, roof, limits, points.prefill, points.decode, labels];
  const root = svg("svg", { role: "group", style: "touch-action: pan-y" }, layers);
  let now = null;

  /** Arrow keys double or halve; a drag takes the value whose intensity is nearest. */
  const follow = (element, last, current, intensityOf, change) => {
    const onMove = (px, _, event) => {
      const step = arrowStep(event);
      if (step) change(2 ** clamp(Math.round(Math.log2(current())) + step, 0, last));
      else change(nearestIntensity(powersOfTwo(last), intensityOf, now.intensityAt(px)));
    };
    return draggable(element, { onMove });
  };
  const decodeAt = (batch) => now.s.decodeAt(batch).intensity;
  const prefillAt = (context) => now.s.prefillAt(context).intensity;
  const releases = [
    follow(handles.decode, LARGEST, () => now.s.batch, decodeAt, onBatch),
    ...(isCompact ? [] : [follow(handles.prefill, LONGEST, () => now.s.context, prefillAt, onContext)]),
  ];

  function drawGrid({ x, y, yLow, yHigh, ridge, peak, floor, width }) {
    const isNumbered = (v) => v < xHigh && (width >= NARROW || (v !== 10 && v !== 1000));
    const numbered = decades(xLow, xHigh).filter(isNumbered);
    return [
      levels(decades(yLow, yHigh), y, left, width - right, withPrefix),
      ticks(numbered, x, floor + 17, (v) => (v < 1 ? v : grouped(v))),
      upright(x(ridge), y(peak), floor, "mm-faint"),
      textAt(0, 12, words.operationsPerSecond),
      textAt((left + width - right) / 2, floor + bottom - 8, words.operationsPerByte, { anchor: "middle" }),
    ];
  }

  /** What the two parts of the roof are; the words of the slope climb along it, unless they are longer. */
  function drawLimits({ x, y, ridge, peak, width }, { bandwidth, ...machine }) {
    const cls = "mm-small ro-limit";
    const start = [left, y(attainableAt(xLow, { bandwidth, ...machine }))];
    const [wide, tall] = [x(ridge) - start[0], y(peak) - start[1]];
    const memory = textAt(0, 0, words.memory(withPrefix(bandwidth)), { anchor: "end", cls, sym: "bytes" });
    const peakText = words.arithmetic(withPrefix(peak));
    fill(limits, memory, textAt(width - right, y(peak) - 16, peakText, { anchor: "end", cls, sym: "flops" }));
    const turn = (Math.atan2(tall, wide) * 180) / Math.PI;
    const doesFit = memory.getComputedTextLength() + 30 < Math.hypot(wide, tall);
    const along = { transform: `translate(${x(ridge)} ${y(peak)}) rotate(${turn}) translate(-18 -10)` };
    const above = { x: left, y: y(peak) - 33, "text-anchor": "start" };
    setAttributes(memory, doesFit ? along : above);
  }

  function draw(s, width) {
    const { machine } = s;
    const height = Math.round(clamp(0.76 * width, 190, isCompact ? 240 : 340));
    const [top, floor] = [width < NARROW ? 42 : 26, height - bottom];
    const ridge = machine.peak / machine.bandwidth;
    const [yLow, yHigh] = [attainableAt(xLow, machine) * 0.7, machine.peak * 2.2];
    const along = linear([xLow, xHigh].map(Math.log), [left, width - right]);
    const up = linear([yLow, yHigh].map(Math.log), [floor, top]);
    const x = (v) => along(Math.log(Math.min(v, xHigh))); // far right all is flat
    const y = (v) => up(Math.log(v));
    const axes = { x, y, yLow, yHigh, ridge, peak: machine.peak, floor, width };
    now = { s, intensityAt: (px) => Math.exp(along.invert(px)) };
    const line = lineThrough([xLow, ridge, xHigh].map((v) => [x(v), y(attainableAt(v, machine))]));
    setSize(root, width, height);
    setAttributes(roof, { d: line });
    setAttributes(under, { d: `${line}V${floor}H${left}Z` });
    fill(grid, drawGrid(axes));
    drawLimits(axes, machine);
    fill(labels);
    drawPoints(s, axes);
  }

  /** Both points, each with two lines of words that keep apart, inside, and off the line under the ridge. */
  function drawPoints(s, { x, y, ridge, floor, width }) {
    const lines = {
      decode: [words.decodeAt(grouped(s.batch)), words.atMost(rate(s.decodeRate))],
      prefill: [words.prefillAt(grouped(s.context)), words.atMost(rate(s.prefillRate))],
    };
    const places = Object.entries(lines).map(([name, texts]) => {
      const [px, py] = [x(s[name].intensity), y(s[name].attainable)];
      setAttributes(points[name], { transform: `translate(${px} ${py})` });
      setAttributes(plumbs[name], { x1: px, x2: px, y1: py, y2: floor });
      const drawn = texts.map((text, i) => textAt(0, 0, text, { cls: i ? "mm-small" : "mm-strong" }));
      labels.append(...drawn);
      const wide = Math.max(...drawn.map((text) => text.getComputedTextLength()));
      const isCrossed = px + 8 < x(ridge) && px + 18 + wide > x(ridge);
      const at = Math.min(isCrossed ? x(ridge) + 8 : px + 14, width - right - 4 - wide);
      return { name, drawn, left: at, wide, top: py + 24, px };
    });
    const [first, second] = places;
    const doMeet = first.left < second.left + second.wide && second.left < first.left + first.wide;
    if (doMeet && Math.abs(first.top - second.top) < 38) first.top = second.top + 38;
    const below = Math.max(0, first.top + 20 - floor, second.top + 20 - floor); // where the numbers of the axis are
    for (const { drawn, left: at, top } of places) {
      drawn.forEach((text, i) => setAttributes(text, { x: at, y: top - below + 16 * i }));
    }
    for (const { name, px } of places) {
      const crossed = places.filter(({ left: at, wide }) => at < px && px < at + wide); // it begins below their words
      if (crossed.length) setAttributes(plumbs[name], { y1: Math.max(...crossed.map(({ top }) => top)) - below + 22 });
    }
    setAttributes(root, { "aria-label": words.picture(lines.decode.join(" "), lines.prefill.join(" ")) });
    const values = {
      decode: [s.batch, words.atBatch(grouped(s.batch), fmt(s.decode.intensity, 1))],
      prefill: [s.context, words.atPrompt(grouped(s.context), fmt(s.prefill.intensity, 1))],
    };
    for (const [name, element] of Object.entries(handles)) {
      setAttributes(element, { "aria-valuenow": values[name][0], "aria-valuetext": values[name][1] });
    }
  }

  return { root, draw, release: () => releases.forEach((stop) => stop()) };
}

/** What a call waits for: moving above computing, the longer is the least time; below, times that were measured. */
function createBars(words, title) {
  const [top, thick, gap, label] = [24, 18, 7, 78];
  const root = svg("svg", { role: "img", class: "ro-bars" });
  const nameOf = ({ name }) => {
    const kind = name.split(", ")[1];
    return kind ? (words.runs[kind] ?? kind) : words.measured;
  };
  const y = (row) => top + row * (thick + gap) + (row > 1 ? 5 : 0);

  /** room: how many measured times there may be. where: lines for that room while there are none. */
  function draw(at, runs, room, where, width) {
    const measured = runs.map((run) => [nameOf(run), run.seconds]);
    const rows = [[words.moving, at.moving], [words.computing, at.computing], ...measured];
    const scale = (width - label - 76) / Math.max(...rows.map(([, seconds]) => seconds));
    const { weightBytes, cacheBytes } = at.cost;
    const weights = (at.moving * weightBytes) / (weightBytes + cacheBytes);
    const least = label + at.seconds * scale;
    const bar = (cls, from, seconds, row, symbol) => {
      const [x, width] = [label + from * scale, Math.max(seconds * scale, 1)];
      return svg("rect", { class: cls, x, y: y(row), width, height: thick, "data-sym": symbol });
    };
    const nameAndTime = ([text, seconds], i) => {
      const end = label + seconds * scale;
      const isCrossed = end < least && end + 60 > least; // by the line of the least time
      const cls = seconds === at.seconds ? "mm-small mm-strong" : "mm-small";
      return [textAt(0, y(i) + 13, text), textAt((isCrossed ? least : end) + 6, y(i) + 13, duration(seconds), { cls })];
    };
    const times = rows.map(([text, seconds]) => words.timeOf(text, duration(seconds)));
    setSize(root, width, y(2 + room), words.times(title, times.join(", ")));
    fill(
      root,
      textAt(0, 14, title, { cls: "mm-strong" }),
      bar("ro-weights", 0, weights, 0, "bytes"),
      bar("ro-cache", weights, at.moving - weights, 0, "cache"),
      bar("ro-ops", 0, at.computing, 1, "flops"),
      runs.map((run, i) => bar("ro-real", 0, run.seconds, i + 2)),
      upright(least, top - 4, y(rows.length) - gap + 4, "mm-guide"),
      !runs.length && where.slice(0, room).map((text, i) => textAt(0, y(2 + i) + 13, text)),
      rows.map(nameAndTime),
    );
  }
  return { root, draw };
}

function createLegend(words) {
  const box = { x: 1, y: 1, width: 12, height: 12 };
  const square = (key) => {
    return svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { class: `ro-${key}`, ...box }));
  };
  const parts = Object.entries(words.legend).map(([key, text]) => h("span", {}, square(key), text));
  const measured = parts.at(-1);
  const draw = (s) => (measured.style.visibility = s.runs.length ? "" : "hidden");
  return { root: h("p", { class: "mm-legend" }, parts), draw };
}

function roofVerdict(s, words) {
  if (s.decode.limit === "arithmetic") return words.computes;
  const unused = fmt(100 * (1 - s.decode.computing / s.decode.seconds), 0);
  if (s.story) return words.smallWaits(grouped(s.decode.cost.weightBytes / s.sizes.itemsize), unused);
  return words.waits(unused);
}

function roofNumbers(s, words) {
  return [
    [words.decodeIntensity, fmt(s.decode.intensity, s.decode.intensity < 100 ? 2 : 0)],
    [words.share, rate(1 / s.decode.seconds)],
    ...(s.story ? [[words.readHere, rate(1 / s.story.seconds)]] : []),
  ];
}

function foldedNumbers(s, words) {
  return [
    [words.ridge, fmt(s.machine.peak / s.machine.bandwidth, 1)],
    [words.prefillIntensity, rate(s.prefill.intensity)],
    [words.prefillRate, rate(s.prefillRate)],
    [words.weights, binaryBytes(s.decode.cost.weightBytes)],
    [words.cache, binaryBytes(s.decode.cost.cacheBytes)],
  ];
}

/** All controls, each writing one trait, but for the presets, which write two. */
function createControls(model, bound, words) {
  const preset = choice({
    label: words.preset,
    options: optionsFor(Object.keys(MODELS)),
    onChange: (name) => setTraits(model, MODELS[name]),
  });
  const format = grouped;
  const batch = bound(slider, "batch", { label: words.batch, stops: powersOfTwo(LARGEST), format });
  const context = bound(slider, "context", { label: words.context, stops: powersOfTwo(LONGEST), format });
  const kvHeads = bound(choice, "num_key_value_heads", { label: words.kvHeads, options: optionsFor([8, 4, 2, 1]) });
  const bytes = bound(choice, "itemsize", { label: words.bytes, options: optionsFor([4, 2, 1]) });
  const hidden = bound(slider, "hidden_size", { label: words.hidden, min: 128, max: 4096, step: 128, format });
  const layers = bound(slider, "num_hidden_layers", { label: words.layers, min: 1, max: 48, step: 1 });
  const others = row(context, kvHeads, bytes, hidden, layers, preset);

  function draw({ sizes, story }) {
    const isShown = (size) => size.hidden_size === sizes.hidden && size.num_hidden_layers === sizes.layers;
    preset.set(Object.keys(MODELS).find((name) => isShown(MODELS[name])));
    others.hidden = Boolean(story); // the living model and its story have settled these
  }
  return { batch: row(batch), others, draw };
}

export default figure({
  words: rooflineWords,
  traits: [...SIZES, ...MEASURED],
  modelOf: coverable,
  create({ model, words, isCompact, bound, verdict, numbers, redraw }) {
    const change = (name) => (value) => setTraits(model, { [name]: value });
    const roof = createRoof(words, isCompact, change("batch"), change("context"));
    const bars = { decode: createBars(words, words.decodeTime), prefill: createBars(words, words.prefillTime) };
    const [legend, rest] = [createLegend(words), readout([])];
    const controls = createControls(model, bound, words);
    const source = isCompact ? null : createSource(model, changeSource);
    const barBox = h("div", { class: "ro-times" }, bars.decode, bars.prefill, legend);
    const folded = h("div", {});
    const stage = h("div", { class: "mm-stage ro-stage" }, isCompact ? null : verdict, roof);
    const note = h("p", { class: "mm-note" });
    let story = null;

    /** The story covers the context; its words are timed once. */
    function changeSource() {
      const reading = source.reading();
      story = reading && { ...reading, seconds: secondsPerToken(reading) };
      model.cover(reading && { context: reading.ids.length, itemsize: 4 });
      redraw();
    }

    function drawBars(s, barWidth) {
      const runsOf = (runs, name) => runs.filter((run) => run.name.startsWith(name));
      const where = { decode: s.story ? words.timedOnly : words.measuredOnly(model.get("measured_at")), prefill: [] };
      for (const [name, bar] of Object.entries(bars)) {
        const room = runsOf(model.get("runs"), name).length; // it stays when there are none to show
        bar.draw(s[name], runsOf(s.runs, name), room, where[name], barWidth);
      }
    }

    /** Everything but the roof and the batch. */
    function drawRest(s, width, timeWidth) {
      const home = width < WIDE ? folded : stage;
      if (barBox.parentNode !== home) home.append(barBox);
      barBox.style.width = `${timeWidth}px`;
      drawBars(s, timeWidth);
      legend.draw(s);
      rest.set(foldedNumbers(s, words));
      setText(note, words.note(s.machine.name, s.machine.dtype, s.machine.date) + (s.story ? words.timed : ""));
    }

    function draw(width) {
      const s = roofState(model, story);
      const hasTwo = !isCompact && width >= WIDE;
      const timeWidth = hasTwo ? Math.round((width - GAP) * 0.4) : width;
      roof.draw(s, hasTwo ? width - GAP - timeWidth : width);
      controls.draw(s);
      if (!isCompact) drawRest(s, width, timeWidth);
      return { verdict: roofVerdict(s, words), numbers: roofNumbers(s, words), isStory: Boolean(story) };
    }
    return {
      stage,
      control: controls.batch,
      numbers,
      more: [source, controls.others, folded, rest, note],
      parts: [roof, source],
      draw,
    };
  },
});
