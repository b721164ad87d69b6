// Roofline: decode and prefill under a machine's two limits, and which of the two a call waits for.

import { h, svg, fmt, slider, choice, readout, draggable, mount } from "./kit.js";
import { decodeCost, prefillCost, underRoof, attainableAt, nearestIntensity, withPrefix, duration } from "./roofline_math.js";

const LONGEST = 15; // 2 ** 15 positions
const LARGEST = 9; // a batch of 2 ** 9
const MODELS = {
  small: { label: "512 × 8", hidden_size: 512, num_hidden_layers: 8 },
  base: { label: "768 × 16", hidden_size: 768, num_hidden_layers: 16 },
  large: { label: "2048 × 24", hidden_size: 2048, num_hidden_layers: 24 },
};

const ROOF_CSS = `
.mm-fig .ro-stage { display: grid; grid-template-columns: minmax(0, 1fr); gap: 16px 28px; align-items: start; justify-content: stretch; }
@container (width >= 640px) { .mm-fig .ro-stage { grid-template-columns: minmax(0, 1.5fr) minmax(0, 1fr); } .ro-top { grid-column: 1 / -1; } }
.ro-top { display: grid; gap: 10px; }
.mm-fig .ro-verdict { font-size: 16px; font-weight: 600; line-height: 1.4; }
.mm-fig .ro-verdict { min-height: 2.8em; }
@container (width < 640px) { .mm-fig .ro-verdict { min-height: 4.2em; } }
@container (width < 420px) { .mm-fig .ro-verdict { min-height: 5.6em; } }
.mm-fig text.ro-small { fill: var(--mm-muted); font-size: 12px; paint-order: stroke; stroke: var(--mm-bg); stroke-width: 3px; stroke-linejoin: round; }
.mm-fig text.ro-limit { fill: var(--mm-muted); font-size: 12px; font-weight: 600; }
.mm-fig text.ro-name { font-size: 13px; font-weight: 600; paint-order: stroke; stroke: var(--mm-bg); stroke-width: 4px; stroke-linejoin: round; }
.mm-fig text.ro-decode { fill: var(--mm-accent); }
.mm-fig text.ro-prefill { fill: var(--mm-accent2); }
.ro-grid { stroke: var(--mm-line); stroke-width: 1; }
.ro-roof { fill: none; stroke: var(--mm-ink); stroke-width: 2.5; stroke-linejoin: round; }
.ro-under { fill: var(--mm-soft); }
.ro-ridge { stroke: var(--mm-muted); stroke-width: 1.25; stroke-dasharray: 3 4; }
.ro-plumb { stroke-width: 1.5; stroke-dasharray: 2 3; }
.ro-plumb.ro-decode { stroke: var(--mm-accent); }
.ro-plumb.ro-prefill { stroke: var(--mm-accent2); }
circle.ro-dot { fill: var(--mm-accent); stroke: var(--mm-bg); stroke-width: 2; }
rect.ro-dot { fill: var(--mm-accent2); stroke: var(--mm-bg); stroke-width: 2; }
.ro-handle { outline: none !important; }
.ro-halo { fill: none; stroke: transparent; stroke-width: 2; }
.ro-handle:focus-visible .ro-halo { stroke: var(--mm-accent2); }
.ro-real { fill: none; stroke: var(--mm-muted); stroke-width: 1.5; }
.ro-least { stroke: var(--mm-ink); stroke-width: 1.5; stroke-dasharray: 3 3; }
.ro-weights { fill: var(--mm-accent); }
.ro-cache { fill: color-mix(in oklab, var(--mm-accent) 35%, var(--mm-panel)); stroke: var(--mm-accent); }
.ro-ops { fill: var(--mm-accent2); }
.mm-fig .ro-legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin-top: 8px; color: var(--mm-muted); font-size: 14px; }
.ro-legend span { display: inline-flex; gap: 6px; align-items: center; }
.mm-fig .ro-legend svg { flex: none; }
`;

const put = (node, attrs) => Object.entries(attrs).forEach(([name, value]) => node.setAttribute(name, value));
const grouped = (x) => String(Math.round(x)).replace(/\B(?=(\d{3})+$)/g, ",");
const rate = (x) => (x >= 100 ? grouped(x) : fmt(x, x >= 10 ? 0 : 1));
const word = (x, y, text, cls, anchor = "middle") => svg("text", { x, y, class: cls, "text-anchor": anchor }, text);
const mebibytes = (bytes) => (bytes >= 2 ** 30 ? `${fmt(bytes / 2 ** 30, 1)} GiB` : `${fmt(bytes / 2 ** 20, bytes < 2 ** 24 ? 1 : 0)} MiB`);

function roofState(model) {
  const get = (name) => model.get(name);
  const [context, batch, machine] = [get("context"), get("batch"), get("machine")];
  const sizes = { hidden: get("hidden_size"), layers: get("num_hidden_layers"), heads: get("num_attention_heads"), kvHeads: get("num_key_value_heads"), vocabulary: get("vocab_size"), batch, itemsize: get("itemsize") };
  const at = (cost) => ({ cost, ...underRoof(cost, machine) });
  const decodeAt = (b) => at(decodeCost({ ...sizes, batch: b }, context));
  const prefillAt = (length) => at(prefillCost(sizes, length));
  const asMeasured = Object.entries(get("measured_at")).every(([name, value]) => get(name) === value);
  const runs = asMeasured ? get("runs") : [];
  return { sizes, context, batch, machine, decodeAt, prefillAt, decode: decodeAt(batch), prefill: prefillAt(context), runs };
}

/** Powers of ten between two numbers. */
function decades(low, high) {
  return Array.from({ length: Math.floor(Math.log10(high) + 1e-9) - Math.ceil(Math.log10(low) - 1e-9) + 1 }, (_, i) => 10 ** (Math.ceil(Math.log10(low) - 1e-9) + i));
}

/** Operations a second against operations a byte, both logarithmic; the two handles change batch and context. */
function createRoof(onBatch, onContext) {
  const [left, right, top, bottom] = [46, 12, 26, 46];
  const under = svg("path", { class: "ro-under" });
  const roof = svg("path", { class: "ro-roof" });
  const grid = svg("g");
  const words = svg("g");
  const plumbs = { decode: svg("line", { class: "ro-plumb ro-decode" }), prefill: svg("line", { class: "ro-plumb ro-prefill" }) };
  const handle = (name, shape) => svg("g", { class: "ro-handle", tabindex: 0, role: "slider", "aria-label": name, "aria-valuemin": 1 },
    svg("circle", { r: 18, fill: "transparent" }), svg("circle", { class: "ro-halo", r: 13 }), shape);
  const handles = {
    prefill: handle("prompt length, in the chart", svg("rect", { class: "ro-dot", x: -7, y: -7, width: 14, height: 14, rx: 2 })),
    decode: handle("batch, in the chart", svg("circle", { class: "ro-dot", r: 8 })),
  };
  put(handles.decode, { "aria-valuemax": 2 ** LARGEST });
  put(handles.prefill, { "aria-valuemax": 2 ** LONGEST });
  const root = svg("svg", { role: "group", style: "touch-action: pan-y" }, under, grid, plumbs.decode, plumbs.prefill, roof, words, handles.prefill, handles.decode);
  let now = null;
  const follow = (name, exponents, current, place, change) => draggable(handles[name], {
    onMove: (px, _, event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      const options = Array.from({ length: exponents + 1 }, (_, i) => 2 ** i);
      if (step) change(2 ** Math.min(exponents, Math.max(0, Math.round(Math.log2(current())) + step * (event.shiftKey ? 5 : 1))));
      else change(nearestIntensity(options, place, now.intensityAt(px)));
    },
  });
  const release = [
    follow("decode", LARGEST, () => now.s.batch, (batch) => now.s.decodeAt(batch).intensity, onBatch),
    follow("prefill", LONGEST, () => now.s.context, (context) => now.s.prefillAt(context).intensity, onContext),
  ];

  function draw(s, width) {
    const { machine } = s;
    const height = Math.round(Math.min(360, Math.max(280, 0.72 * width)));
    const ridge = machine.peak / machine.bandwidth;
    const [xLow, xHigh] = [0.1, 1e5];
    const [yLow, yHigh] = [attainableAt(xLow, machine) * 0.7, machine.peak * 2.2];
    const x = (v) => left + (Math.log(Math.min(v, xHigh) / xLow) / Math.log(xHigh / xLow)) * (width - left - right); // far right all is flat
    const y = (v) => height - bottom - (Math.log(v / yLow) / Math.log(yHigh / yLow)) * (height - top - bottom);
    now = { s, intensityAt: (px) => xLow * (xHigh / xLow) ** ((px - left) / (width - left - right)) };
    put(root, { width, height, viewBox: `0 0 ${width} ${height}` });
    const line = `M${x(xLow)} ${y(attainableAt(xLow, machine))}L${x(ridge)} ${y(machine.peak)}L${x(xHigh)} ${y(machine.peak)}`;
    put(roof, { d: line });
    put(under, { d: `${line}V${height - bottom}H${x(xLow)}Z` });
    const tight = width < 360;
    grid.replaceChildren(
      ...decades(yLow, yHigh).flatMap((v) => [svg("line", { class: "ro-grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }), word(left - 6, y(v) + 4, withPrefix(v), "ro-small", "end")]),
      ...decades(xLow, xHigh).filter((v) => v < xHigh && (!tight || (v !== 10 && v !== 1000))).map((v) => word(x(v), height - bottom + 17, v < 1 ? String(v) : grouped(v), "ro-small")),
      svg("line", { class: "ro-ridge", x1: x(ridge), x2: x(ridge), y1: y(machine.peak), y2: height - bottom }),
      word(0, 12, "operations a second", "ro-small", "start"),
      word((left + width - right) / 2, height - 8, "operations for each byte moved", "ro-small"),
    );
    const beside = x(ridge) - left > 130; // else the slope leaves no room on its left, and the words go above it
    const rate = `${withPrefix(machine.bandwidth)}B/s`;
    words.replaceChildren(
      ...(beside ? [word(left + 6, y(machine.peak) + 4, "memory", "ro-limit", "start"), word(left + 6, y(machine.peak) + 20, rate, "ro-limit", "start")]
        : [word(left, y(machine.peak) - 27, `memory: ${rate}`, "ro-limit", "start")]),
      word(width - right, y(machine.peak) - 9, `arithmetic: ${withPrefix(machine.peak)} operations/s`, "ro-limit", "end"),
    );
    drawPoints(s, x, y, height, width);
  }

  function drawPoints(s, x, y, height, width) {
    const lines = { decode: ["decode", `batch ${s.batch}`], prefill: ["prefill", `${grouped(s.context)} tokens`] };
    const places = Object.entries(lines).map(([name, texts]) => {
      const [px, py] = [x(s[name].intensity), y(s[name].attainable)];
      put(handles[name], { transform: `translate(${px} ${py})` });
      put(plumbs[name], { x1: px, x2: px, y1: py, y2: height - bottom });
      const wide = 8.2 * Math.max(...texts.map((text) => text.length));
      const left = px + 14 + wide > width ? px - 12 - wide : px + 12;
      return { name, texts, left, wide, top: py + 22 };
    });
    const [decode, prefill] = places;
    const meet = decode.left < prefill.left + prefill.wide && prefill.left < decode.left + decode.wide;
    if (meet && Math.abs(decode.top - prefill.top) < 34) decode.top = prefill.top + 34;
    places.forEach(({ name, texts, left, top }) => texts.forEach((text, i) => words.append(word(left, top + 16 * i, text, `ro-name ro-${name}`, "start"))));
    put(handles.decode, { "aria-valuenow": s.batch, "aria-valuetext": `batch ${s.batch}: ${fmt(s.decode.intensity, 1)} operations a byte` });
    put(handles.prefill, { "aria-valuenow": s.context, "aria-valuetext": `${grouped(s.context)} tokens: ${fmt(s.prefill.intensity, 1)} operations a byte` });
  }

  return { root, draw, release: () => release.forEach((stop) => stop()) };
}

/** What a call waits for: moving above computing, the longer one is the least time; below it, times that were measured. */
function createBars(name, title) {
  const [top, thick, gap] = [24, 18, 7];
  const root = svg("svg", { role: "img", style: "margin-bottom: 12px" });
  function draw(at, runs, room, where, width) {
    const rows = [["moving", at.moving], ["computing", at.computing], ...runs.map((run) => [run.name.split(", ")[1] || "measured", run.seconds])];
    const label = 78;
    const scale = (width - label - 66) / Math.max(...rows.map(([, seconds]) => seconds));
    const weights = (at.moving * at.cost.weightBytes) / (at.cost.weightBytes + at.cost.cacheBytes);
    const y = (row) => top + row * (thick + gap) + (row > 1 ? 5 : 0);
    const bar = (cls, from, seconds, row) => svg("rect", { class: cls, x: label + from * scale, y: y(row), width: Math.max(seconds * scale, 1), height: thick });
    const height = y(2 + room);
    const least = label + at.seconds * scale;
    put(root, { width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": `${title}: ${rows.map(([text, seconds]) => `${text} ${duration(seconds)}`).join(", ")}` });
    root.replaceChildren(
      svg("text", { class: `ro-name ro-${name}`, x: 0, y: 14 }, title),
      bar("ro-weights", 0, weights, 0), bar("ro-cache", weights, at.moving - weights, 0), bar("ro-ops", 0, at.computing, 1),
      ...runs.map((run, i) => bar("ro-real", 0, run.seconds, i + 2)),
      svg("line", { class: "ro-least", x1: least, x2: least, y1: top - 4, y2: y(rows.length) - gap + 4 }),
      ...(runs.length ? [] : where.slice(0, room).map((text, i) => word(0, y(2 + i) + 13, text, "ro-small", "start"))),
      ...rows.flatMap(([text, seconds], row) => {
        const end = label + seconds * scale;
        const crossed = end < least && end + 60 > least; // by the line of the least time
        return [
          word(0, y(row) + 13, text, "ro-small", "start"),
          word((crossed ? least : end) + 6, y(row) + 13, duration(seconds), seconds === at.seconds ? "ro-name" : "ro-small", "start")];
      }),
    );
  }
  return { root, draw };
}

function roofLegend() {
  const square = (cls) => svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, svg("rect", { class: cls, x: 1, y: 1, width: 12, height: 12 }));
  const keys = [["ro-weights", "weights"], ["ro-cache", "cache"], ["ro-ops", "operations"], ["ro-real", "measured"]];
  const parts = keys.map(([cls, text]) => h("span", {}, square(cls), text));
  return { root: h("p", { class: "ro-legend" }, parts), draw: (s) => (parts[3].style.visibility = s.runs.length ? "" : "hidden") };
}

/** Two short lines: the only setting at which a model was really run. */
function measuredWhere(model) {
  const at = model.get("measured_at");
  return [`measured only at ${at.hidden_size} × ${at.num_hidden_layers}, batch ${at.batch},`, `context ${at.context}, ${at.num_key_value_heads} heads, ${at.itemsize} bytes`];
}

function roofVerdict(s) {
  const waits = (at) => (at.limit === "memory" ? "waits for memory" : "is busy computing");
  const idle = 1 - s.decode.computing / s.decode.seconds;
  const [decode, prefill] = [s.batch / s.decode.seconds, (s.batch * s.context) / s.prefill.seconds];
  const most = `at most ${rate(decode)} tokens a second`;
  const first = s.decode.limit === "memory" ? `Decode ${waits(s.decode)}, ${fmt(100 * idle, 0)} % of its arithmetic unused: ${most}.` : `Decode ${waits(s.decode)}: ${most}.`;
  return `${first} Prefill ${waits(s.prefill)}: at most ${rate(prefill)}.`;
}

function renderRoofline({ model, el }) {
  const change = (values) => {
    Object.entries(values).forEach(([name, value]) => model.set(name, value));
    model.save_changes();
  };
  const power = (label, most, name, tone) => slider({ label, min: 0, max: most, step: 1, value: Math.log2(model.get(name)), format: (x) => grouped(2 ** x), tone, onInput: (x) => change({ [name]: 2 ** x }) });
  const whole = (label, min, max, step, name) => slider({ label, min, max, step, value: model.get(name), format: grouped, onInput: (value) => change({ [name]: value }) });
  const preset = choice({ label: "hidden size × layers", options: Object.entries(MODELS).map(([value, { label }]) => ({ value, label })), value: undefined, onChange: (name) => {
    const { label, ...values } = MODELS[name];
    change(values);
  } });
  const bytes = choice({ label: "bytes of a number", options: [4, 2, 1].map((value) => ({ value, label: String(value) })), value: model.get("itemsize"), onChange: (itemsize) => change({ itemsize }) });
  const kvHeads = choice({ label: "key/value heads (of 8)", options: [8, 4, 2, 1].map((value) => ({ value, label: String(value) })), value: model.get("num_key_value_heads"), onChange: (heads) => change({ num_key_value_heads: heads }) });
  const hidden = whole("hidden size", 128, 4096, 128, "hidden_size");
  const layers = whole("layers", 1, 48, 1, "num_hidden_layers");
  const batch = power("batch", LARGEST, "batch", "accent");
  const context = power("context: tokens read or attended to", LONGEST, "context", "accent2");
  const roof = createRoof((value) => change({ batch: value }), (value) => change({ context: value }));
  const bars = { decode: createBars("decode", "one decode step"), prefill: createBars("prefill", "the prefill") };
  const [verdict, numbers, legend] = [h("p", { class: "ro-verdict", "aria-live": "polite" }), readout([]), roofLegend()];
  const [roofBox, barBox] = [h("div", {}, roof.root), h("div", {}, bars.decode.root, bars.prefill.root, legend.root)];
  const stage = h("div", { class: "mm-stage ro-stage" }, h("div", { class: "ro-top" }, verdict), roofBox, barBox);
  const controls = h("div", { class: "mm-controls" }, batch.root, context.root, kvHeads.root, bytes.root, hidden.root, layers.root, preset.root);
  const note = h("p", { class: "mm-note" });
  const root = h("div", { class: "mm-fig" }, h("style", {}, ROOF_CSS), stage, controls, numbers.root, note);

  function setControls(s) {
    [[hidden, s.sizes.hidden], [layers, s.sizes.layers], [kvHeads, s.sizes.kvHeads], [bytes, s.sizes.itemsize], [batch, Math.log2(s.batch)], [context, Math.log2(s.context)]].forEach(([control, value]) => control.set(value));
    preset.set(Object.keys(MODELS).find((name) => MODELS[name].hidden_size === s.sizes.hidden && MODELS[name].num_hidden_layers === s.sizes.layers));
  }

  function draw(roofWidth, barWidth) {
    const s = roofState(model);
    roof.draw(s, roofWidth);
    Object.entries(bars).forEach(([name, bar]) => {
      const own = (runs) => runs.filter((run) => run.name.startsWith(name));
      bar.draw(s[name], own(s.runs), own(model.get("runs")).length, name === "decode" ? measuredWhere(model) : [], barWidth); // the room stays
    });
    legend.draw(s);
    setControls(s);
    const text = roofVerdict(s);
    if (verdict.textContent !== text) verdict.textContent = text;
    numbers.set([
      ["decode, operations a byte", fmt(s.decode.intensity, 2), "accent"],
      ["prefill", rate(s.prefill.intensity), "accent2"],
      ["ridge of this machine", fmt(s.machine.peak / s.machine.bandwidth, 1)],
      ["a sequence gets, tokens a second", rate(1 / s.decode.seconds)],
      ["weights", mebibytes(s.decode.cost.weightBytes)],
      ["cache", mebibytes(s.decode.cost.cacheBytes)],
    ]);
    const told = `Limits measured on ${s.machine.name}, ${s.machine.dtype}, ${s.machine.date}.`;
    if (note.textContent !== told) note.textContent = told;
  }

  return mount(el, root, { model, traits: ["hidden_size", "num_hidden_layers", "num_key_value_heads", "batch", "context", "itemsize", "machine", "runs", "measured_at"], boxes: [roofBox, barBox], draw, parts: [roof] });
}

export default { render: renderRoofline };
