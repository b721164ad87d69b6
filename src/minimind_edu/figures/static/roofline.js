// Roofline: decode and prefill under a machine's two limits, and which of the two a call waits for.

import { h, svg, textAt, setAttributes, setSize, setTraits, clamp, arrowStep, draggable, mount } from "./kit.js";
import { fmt, grouped, slider, choice, optionsFor, readout, announcement, handle } from "./kit.js";
import { decodeCost, prefillCost, underRoof, attainableAt, nearestIntensity } from "./roofline_math.js";
import { withPrefix, duration } from "./roofline_math.js";

const SIZES = ["hidden_size", "num_hidden_layers", "num_key_value_heads", "batch", "context", "itemsize"];
const MEASURED = ["machine", "runs", "measured_at"];
const LONGEST = 15; // 2 ** 15 positions
const LARGEST = 9; // a batch of 2 ** 9
const MODELS = {
  "512 × 8": { hidden_size: 512, num_hidden_layers: 8 },
  "768 × 16": { hidden_size: 768, num_hidden_layers: 16 },
  "2048 × 24": { hidden_size: 2048, num_hidden_layers: 24 },
};

const rate = (x) => (x >= 100 ? grouped(x) : fmt(x, x >= 10 ? 0 : 1));
const word = (x, y, text, cls, anchor = "middle") => textAt(x, y, text, cls, anchor);
const powersOfTwo = (last) => Array.from({ length: last + 1 }, (_, power) => 2 ** power);

function binaryBytes(bytes) {
  if (bytes >= 2 ** 30) return `${fmt(bytes / 2 ** 30, 1)} GiB`;
  return `${fmt(bytes / 2 ** 20, bytes < 2 ** 24 ? 1 : 0)} MiB`;
}

/** Powers of ten between two numbers. */
function decades(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

function roofState(model) {
  const get = (name) => model.get(name);
  const [context, batch, machine] = [get("context"), get("batch"), get("machine")];
  const sizes = {
    hidden: get("hidden_size"),
    layers: get("num_hidden_layers"),
    heads: get("num_attention_heads"),
    kvHeads: get("num_key_value_heads"),
    vocabulary: get("vocab_size"),
    batch,
    itemsize: get("itemsize"),
  };
  const at = (cost) => ({ cost, ...underRoof(cost, machine) });
  const decodeAt = (b) => at(decodeCost({ ...sizes, batch: b }, context));
  const prefillAt = (length) => at(prefillCost(sizes, length));
  const isAsMeasured = Object.entries(get("measured_at")).every(([name, value]) => get(name) === value);
  const runs = isAsMeasured ? get("runs") : [];
  return {
    sizes,
    context,
    batch,
    machine,
    decodeAt,
    prefillAt,
    decode: decodeAt(batch),
    prefill: prefillAt(context),
    runs,
  };
}

/** Operations a second against operations a byte, both logarithmic; the two handles change batch and context. */
function createRoof(onBatch, onContext) {
  const [left, right, top, bottom] = [46, 12, 26, 46];
  const [xLow, xHigh] = [0.1, 1e5];
  const under = svg("path", { class: "ro-under" });
  const roof = svg("path", { class: "ro-roof" });
  const grid = svg("g");
  const words = svg("g");
  const plumbs = {
    decode: svg("line", { class: "ro-plumb ro-decode" }),
    prefill: svg("line", { class: "ro-plumb ro-prefill" }),
  };
  const disk = svg("circle", { class: "ro-dot", r: 8 });
  const square = svg("rect", { class: "ro-dot", x: -7, y: -7, width: 14, height: 14, rx: 2 });
  const prefill = { label: "prompt length, in the chart", min: 1, max: 2 ** LONGEST, ring: 13, shape: square };
  const handles = {
    decode: handle({ label: "batch, in the chart", min: 1, max: 2 ** LARGEST, ring: 13, shape: disk }),
    prefill: handle(prefill),
  };
  const layers = [under, grid, plumbs.decode, plumbs.prefill, roof, words, handles.prefill, handles.decode];
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
    follow(handles.prefill, LONGEST, () => now.s.context, prefillAt, onContext),
  ];

  function drawGrid({ x, y, yLow, yHigh, ridge, peak, floor, width }) {
    const isTight = width < 360;
    const isNumbered = (v) => v < xHigh && (!isTight || (v !== 10 && v !== 1000));
    const level = (v) => svg("line", { class: "ro-grid", x1: left, x2: width - right, y1: y(v), y2: y(v) });
    const text = (v) => (v < 1 ? String(v) : grouped(v));
    return [
      ...decades(yLow, yHigh).flatMap((v) => [level(v), word(left - 6, y(v) + 4, withPrefix(v), "ro-small", "end")]),
      ...decades(xLow, xHigh)
        .filter(isNumbered)
        .map((v) => word(x(v), floor + 17, text(v), "ro-small")),
      svg("line", { class: "ro-ridge", x1: x(ridge), x2: x(ridge), y1: y(peak), y2: floor }),
      word(0, 12, "operations a second", "ro-small", "start"),
      word((left + width - right) / 2, floor + bottom - 8, "operations for each byte moved", "ro-small"),
    ];
  }

  /** What the two parts of the roof are. Where the slope leaves no room on its left, its words go above it. */
  function drawLimits({ x, y, ridge, peak, width }, bandwidth) {
    const limit = (at, below, text, anchor) => word(at, y(peak) + below, text, "ro-limit", anchor);
    const speed = `${withPrefix(bandwidth)}B/s`;
    const arithmetic = limit(width - right, -9, `arithmetic: ${withPrefix(peak)} operations/s`, "end");
    const isRoomy = x(ridge) - left > 130;
    if (!isRoomy) return [limit(left, -27, `memory: ${speed}`, "start"), arithmetic];
    return [limit(left + 6, 4, "memory", "start"), limit(left + 6, 20, speed, "start"), arithmetic];
  }

  function draw(s, width) {
    const { machine } = s;
    const height = Math.round(clamp(0.72 * width, 280, 360));
    const floor = height - bottom;
    const ridge = machine.peak / machine.bandwidth;
    const [yLow, yHigh] = [attainableAt(xLow, machine) * 0.7, machine.peak * 2.2];
    const part = (v, low, high) => Math.log(v / low) / Math.log(high / low);
    const x = (v) => left + part(Math.min(v, xHigh), xLow, xHigh) * (width - left - right); // far right all is flat
    const y = (v) => floor - part(v, yLow, yHigh) * (floor - top);
    const axes = { x, y, yLow, yHigh, ridge, peak: machine.peak, floor, width };
    now = { s, intensityAt: (px) => xLow * (xHigh / xLow) ** ((px - left) / (width - left - right)) };
    const start = `M${x(xLow)} ${y(attainableAt(xLow, machine))}`;
    const line = `${start}L${x(ridge)} ${y(machine.peak)}L${x(xHigh)} ${y(machine.peak)}`;
    setSize(root, width, height);
    setAttributes(roof, { d: line });
    setAttributes(under, { d: `${line}V${floor}H${x(xLow)}Z` });
    grid.replaceChildren(...drawGrid(axes));
    words.replaceChildren(...drawLimits(axes, machine.bandwidth));
    drawPoints(s, axes);
  }

  /** Both handles, each with two lines of words that keep apart and inside. */
  function drawPoints(s, { x, y, floor, width }) {
    const lines = { decode: ["decode", `batch ${s.batch}`], prefill: ["prefill", `${grouped(s.context)} tokens`] };
    const places = Object.entries(lines).map(([name, texts]) => {
      const [px, py] = [x(s[name].intensity), y(s[name].attainable)];
      setAttributes(handles[name], { transform: `translate(${px} ${py})` });
      setAttributes(plumbs[name], { x1: px, x2: px, y1: py, y2: floor });
      const wide = 8.2 * Math.max(...texts.map((text) => text.length));
      const textLeft = px + 14 + wide > width ? px - 12 - wide : px + 12;
      return { name, texts, left: textLeft, wide, top: py + 22 };
    });
    const [one, other] = places;
    const doMeet = one.left < other.left + other.wide && other.left < one.left + one.wide;
    if (doMeet && Math.abs(one.top - other.top) < 34) one.top = other.top + 34;
    for (const { name, texts, left: at, top: line } of places) {
      words.append(...texts.map((text, i) => word(at, line + 16 * i, text, `ro-name ro-${name}`, "start")));
    }
    const told = { decode: `batch ${s.batch}`, prefill: `${grouped(s.context)} tokens` };
    const values = { decode: s.batch, prefill: s.context };
    for (const [name, element] of Object.entries(handles)) {
      const text = `${told[name]}: ${fmt(s[name].intensity, 1)} operations a byte`;
      setAttributes(element, { "aria-valuenow": values[name], "aria-valuetext": text });
    }
  }

  return { root, draw, release: () => releases.forEach((stop) => stop()) };
}

/** What a call waits for: moving above computing, the longer is the least time; below, times that were measured. */
function createBars(name, title) {
  const [top, thick, gap, label] = [24, 18, 7, 78];
  const root = svg("svg", { role: "img", class: "ro-bars" });
  const y = (row) => top + row * (thick + gap) + (row > 1 ? 5 : 0);

  /** room: how many measured times there may be. where: lines for that room while there are none. */
  function draw(at, runs, room, where, width) {
    const measured = runs.map((run) => [run.name.split(", ")[1] || "measured", run.seconds]);
    const rows = [["moving", at.moving], ["computing", at.computing], ...measured];
    const scale = (width - label - 66) / Math.max(...rows.map(([, seconds]) => seconds));
    const { weightBytes, cacheBytes } = at.cost;
    const weights = (at.moving * weightBytes) / (weightBytes + cacheBytes);
    const least = label + at.seconds * scale;
    const bar = (cls, from, seconds, row) => {
      const [x, width] = [label + from * scale, Math.max(seconds * scale, 1)];
      return svg("rect", { class: cls, x, y: y(row), width, height: thick });
    };
    const nameAndTime = ([text, seconds], row) => {
      const end = label + seconds * scale;
      const isCrossed = end < least && end + 60 > least; // by the line of the least time
      const cls = seconds === at.seconds ? "ro-name" : "ro-small";
      return [
        word(0, y(row) + 13, text, "ro-small", "start"),
        word((isCrossed ? least : end) + 6, y(row) + 13, duration(seconds), cls, "start"),
      ];
    };
    setSize(root, width, y(2 + room));
    const times = rows.map(([text, seconds]) => `${text} ${duration(seconds)}`);
    setAttributes(root, { "aria-label": `${title}: ${times.join(", ")}` });
    root.replaceChildren(
      svg("text", { class: `ro-name ro-${name}`, x: 0, y: 14 }, title),
      bar("ro-weights", 0, weights, 0),
      bar("ro-cache", weights, at.moving - weights, 0),
      bar("ro-ops", 0, at.computing, 1),
      ...runs.map((run, i) => bar("ro-real", 0, run.seconds, i + 2)),
      svg("line", { class: "ro-least", x1: least, x2: least, y1: top - 4, y2: y(rows.length) - gap + 4 }),
      ...(runs.length ? [] : where.slice(0, room).map((text, i) => word(0, y(2 + i) + 13, text, "ro-small", "start"))),
      ...rows.flatMap(nameAndTime),
    );
  }
  return { root, draw };
}

function createLegend() {
  const box = { x: 1, y: 1, width: 12, height: 12 };
  const square = (cls) => {
    return svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { class: cls, ...box }));
  };
  const keys = { "ro-weights": "weights", "ro-cache": "cache", "ro-ops": "operations", "ro-real": "measured" };
  const parts = Object.entries(keys).map(([cls, text]) => h("span", {}, square(cls), text));
  const measured = parts.at(-1);
  const draw = (s) => (measured.style.visibility = s.runs.length ? "" : "hidden");
  return { root: h("p", { class: "ro-legend" }, parts), draw };
}

/** Two short lines: the only setting at which a model was really run. */
function measuredWhere(at) {
  return [
    `measured only at ${at.hidden_size} × ${at.num_hidden_layers}, batch ${at.batch},`,
    `context ${at.context}, ${at.num_key_value_heads} heads, ${at.itemsize} bytes`,
  ];
}

function roofVerdict(s) {
  const waits = (at) => (at.limit === "memory" ? "waits for memory" : "is busy computing");
  const unused = 1 - s.decode.computing / s.decode.seconds;
  const idle = s.decode.limit === "memory" ? `, ${fmt(100 * unused, 0)} % of its arithmetic unused` : "";
  const decode = rate(s.batch / s.decode.seconds);
  const prefill = rate((s.batch * s.context) / s.prefill.seconds);
  const first = `Decode ${waits(s.decode)}${idle}: at most ${decode} tokens a second.`;
  return `${first} Prefill ${waits(s.prefill)}: at most ${prefill}.`;
}

function roofNumbers(s) {
  return [
    ["decode, operations a byte", fmt(s.decode.intensity, 2), "accent"],
    ["prefill", rate(s.prefill.intensity), "accent2"],
    ["ridge of this machine", fmt(s.machine.peak / s.machine.bandwidth, 1)],
    ["a sequence gets, tokens a second", rate(1 / s.decode.seconds)],
    ["weights", binaryBytes(s.decode.cost.weightBytes)],
    ["cache", binaryBytes(s.decode.cost.cacheBytes)],
  ];
}

/** All controls, each writing one trait, but for the presets, which write two. */
function createControls(model) {
  const change = (name) => (value) => setTraits(model, { [name]: value });
  const whole = (name, label, min, max, step) => {
    return slider({ label, min, max, step, value: model.get(name), format: grouped, onInput: change(name) });
  };
  const power = (name, label, max, tone) => {
    const [value, format] = [Math.log2(model.get(name)), (x) => grouped(2 ** x)];
    return slider({ label, min: 0, max, step: 1, value, format, tone, onInput: (x) => change(name)(2 ** x) });
  };
  const choiceOf = (name, label, values) => {
    return choice({ label, options: optionsFor(values), value: model.get(name), onChange: change(name) });
  };
  const preset = choice({
    label: "hidden size × layers",
    options: optionsFor(Object.keys(MODELS)),
    onChange: (name) => setTraits(model, MODELS[name]),
  });
  const batch = power("batch", "batch", LARGEST, "accent");
  const context = power("context", "context: tokens read or attended to", LONGEST, "accent2");
  const kvHeads = choiceOf("num_key_value_heads", "key/value heads (of 8)", [8, 4, 2, 1]);
  const bytes = choiceOf("itemsize", "bytes of a number", [4, 2, 1]);
  const hidden = whole("hidden_size", "hidden size", 128, 4096, 128);
  const layers = whole("num_hidden_layers", "layers", 1, 48, 1);

  function set({ sizes, context: length }) {
    const isShown = (size) => size.hidden_size === sizes.hidden && size.num_hidden_layers === sizes.layers;
    batch.set(Math.log2(sizes.batch));
    context.set(Math.log2(length));
    kvHeads.set(sizes.kvHeads);
    bytes.set(sizes.itemsize);
    hidden.set(sizes.hidden);
    layers.set(sizes.layers);
    preset.set(Object.keys(MODELS).find((name) => isShown(MODELS[name])));
  }
  const all = [batch, context, kvHeads, bytes, hidden, layers, preset];
  return {
    root: h(
      "div",
      { class: "mm-controls" },
      all.map((control) => control.root),
    ),
    set,
  };
}

function renderRoofline({ model, el }) {
  const change = (name) => (value) => setTraits(model, { [name]: value });
  const roof = createRoof(change("batch"), change("context"));
  const bars = { decode: createBars("decode", "one decode step"), prefill: createBars("prefill", "the prefill") };
  const [verdict, numbers, legend] = [announcement("ro-verdict"), readout([]), createLegend()];
  const controls = createControls(model);
  const roofBox = h("div", {}, roof.root);
  const barBox = h("div", {}, bars.decode.root, bars.prefill.root, legend.root);
  const stage = h("div", { class: "mm-stage ro-stage" }, h("div", { class: "ro-top" }, verdict.root), roofBox, barBox);
  const note = h("p", { class: "mm-note" });
  const root = h("div", { class: "mm-fig ro-fig" }, stage, controls.root, numbers.root, note);

  function drawBars(s, width) {
    const runsOf = (runs, name) => runs.filter((run) => run.name.startsWith(name));
    const where = { decode: measuredWhere(model.get("measured_at")), prefill: [] };
    for (const [name, bar] of Object.entries(bars)) {
      const room = runsOf(model.get("runs"), name).length; // it stays when there are none to show
      bar.draw(s[name], runsOf(s.runs, name), room, where[name], width);
    }
  }

  function draw(roofWidth, barWidth) {
    const s = roofState(model);
    roof.draw(s, roofWidth);
    drawBars(s, barWidth);
    legend.draw(s);
    controls.set(s);
    verdict.set(roofVerdict(s));
    numbers.set(roofNumbers(s));
    const limits = `Limits measured on ${s.machine.name}, ${s.machine.dtype}, ${s.machine.date}.`;
    if (note.textContent !== limits) note.textContent = limits;
  }

  return mount(el, root, { model, traits: [...SIZES, ...MEASURED], boxes: [roofBox, barBox], draw, parts: [roof] });
}

export default { render: renderRoofline };
