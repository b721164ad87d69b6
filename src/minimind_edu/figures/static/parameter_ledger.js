// ParameterLedger: one bar for the whole model, and the shares of its parts at every depth. What does tying take away?

import { h, svg, fmt, slider, toggle, choice, readout, draggable, mount } from "./kit.js";
import { intermediateSize, parameterLedger, savedByTying, vocabularyAt, vocabularyStep } from "./parameter_ledger_math.js";

const HEADS = 8;
const DEPTHS = 32;
const PARTS = [
  { key: "embedding", label: "embedding" },
  { key: "head", label: "head" },
  { key: "attention", label: "attention" },
  { key: "feedForward", label: "feed-forward" },
  { key: "norms", label: "norms" },
];
const PRESETS = {
  small: { label: "MiniMind2 small", hidden_size: 512, num_hidden_layers: 8, num_key_value_heads: 2, generation: "minimind2" },
  two: { label: "MiniMind2", hidden_size: 768, num_hidden_layers: 16, num_key_value_heads: 2, generation: "minimind2" },
  three: { label: "MiniMind3", hidden_size: 768, num_hidden_layers: 8, num_key_value_heads: 4, generation: "minimind3" },
};
const PRESET_VOCABULARY = 6400;

const LEDGER_CSS = `
.le-stage { display: grid !important; gap: 10px !important; justify-content: stretch !important; }
.le-part { stroke: var(--mm-bg); stroke-width: 1.5; }
.le-embedding { fill: color-mix(in oklab, var(--mm-accent) 45%, var(--mm-panel)); }
.le-head { fill: color-mix(in oklab, var(--mm-accent) 45%, var(--mm-panel)); }
.le-head.le-saved { fill: url(#le-hatch); stroke: var(--mm-accent); stroke-dasharray: 4 3; }
.le-attention { fill: color-mix(in oklab, var(--mm-accent2) 40%, var(--mm-panel)); }
.le-feedForward { fill: color-mix(in oklab, var(--mm-good) 38%, var(--mm-panel)); }
.le-norms { fill: var(--mm-muted); }
.le-hatching { stroke: var(--mm-accent); stroke-width: 1.25; }
.mm-fig text.le-name { font-size: 13px; font-weight: 600; text-anchor: middle; }
.mm-fig text.le-small { fill: var(--mm-muted); font-size: 12px; }
.mm-fig text.le-inside { font-size: 13px; font-weight: 600; paint-order: stroke; stroke: var(--mm-bg); stroke-width: 3px; stroke-linejoin: round; }
.le-grid { stroke: var(--mm-line); stroke-width: 1; }
.le-plumb { stroke: var(--mm-ink); stroke-width: 1.5; stroke-dasharray: 3 3; }
.le-here { fill: var(--mm-bg); stroke: var(--mm-ink); stroke-width: 2.5; }
.le-handle { outline: none !important; }
.le-ring { fill: none; stroke: transparent; stroke-width: 2; }
.le-handle:focus-visible .le-ring { stroke: var(--mm-accent2); }
.mm-fig .le-verdict { font-size: 16px; font-weight: 600; }
@container (max-width: 560px) { .mm-fig .le-verdict { min-height: 4.5em; } }
.mm-fig table.le-table { width: 100%; margin: 0; border-collapse: collapse; font-size: 14px; }
.mm-fig .le-table :is(th, td) { padding: 3px 0 3px 10px; border: 0; border-bottom: 1px solid var(--mm-line); background: none; text-align: right; color: var(--mm-ink); font-weight: 400; white-space: nowrap; }
.mm-fig .le-table th:first-child { padding-left: 0; text-align: left; }
.mm-fig .le-table thead th { color: var(--mm-muted); font-size: 13px; }
.le-stage svg.le-key { display: inline-block !important; width: 13px; height: 13px; margin-right: 7px; vertical-align: -2px; }
`;

const mark = (node, attrs) => Object.entries(attrs).forEach(([name, value]) => node.setAttribute(name, value));
const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ",");
const percent = (share) => `${fmt(100 * share, 2)} %`;
const partClass = (key, tied) => `le-part le-${key}${key === "head" && tied ? " le-saved" : ""}`;

function hatch() {
  return svg("defs", {}, svg("pattern", { id: "le-hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("line", { class: "le-hatching", x1: 0, y1: 0, x2: 0, y2: 7 })));
}

/** The whole untied model as one bar; tied, the head is only an outline of what is not there. */
function createBar() {
  const [top, height] = [22, 46];
  const rects = PARTS.map(() => svg("rect", { y: top, height }));
  const names = PARTS.map(() => svg("text", { class: "le-name", y: top + height / 2 + 4 }));
  const caption = svg("text", { class: "le-small", x: 0, y: 14 });
  const root = svg("svg", { height: top + height + 2, role: "img" }, hatch(), rects, names, caption);

  function draw(s, width) {
    mark(root, { width, viewBox: `0 0 ${width} ${top + height + 2}` });
    let x = 1;
    PARTS.forEach((part, i) => {
      const wide = ((width - 2) * s.untied[part.key]) / s.untied.total;
      mark(rects[i], { class: partClass(part.key, s.tied), x, width: wide });
      const label = part.key === "head" && s.tied ? "saved" : part.label;
      mark(names[i], { x: x + wide / 2 });
      names[i].textContent = wide > 9 * label.length + 8 ? label : "";
      x += wide;
    });
    caption.textContent = s.tied ? "the tied model, and what the untied one has more" : "the untied model";
    mark(root, { "aria-label": `${PARTS.map((part) => `${part.label} ${percent(s.untied[part.key] / s.untied.total)}`).join(", ")} of the untied model` });
  }
  return { root, draw };
}

/** Shares of the untied model for 1 to 32 layers; the two tables lie at the top, the head uppermost. */
function createDepthChart(onLayers) {
  const [height, left, right, top, bottom] = [236, 46, 14, 24, 40];
  const stack = ["head", "embedding", "attention", "feedForward", "norms"];
  const grid = svg("g");
  const areas = stack.map(() => svg("path"));
  const words = svg("g");
  const plumb = svg("line", { class: "le-plumb", y1: top, y2: height - bottom });
  const here = svg("g", { class: "le-handle", tabindex: 0, role: "slider", "aria-label": "layers, in the chart", "aria-valuemin": 1, "aria-valuemax": DEPTHS },
    svg("circle", { r: 18, fill: "transparent" }), svg("circle", { class: "le-ring", r: 12 }), svg("circle", { class: "le-here", r: 7 }));
  const root = svg("svg", { height, role: "group", style: "touch-action: pan-y" }, areas, grid, words, plumb, here);
  let now = { layers: 8, scale: 1 };
  const release = draggable(here, {
    onMove: (px, _, event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      const next = step ? now.layers + step * (event.shiftKey ? 5 : 1) : 1 + Math.round((px - left) / now.scale);
      onLayers(Math.min(DEPTHS, Math.max(1, next)));
    },
  });

  function draw(s, width) {
    now = { layers: s.sizes.layers, scale: (width - left - right) / (DEPTHS - 1) };
    const x = (layers) => left + (layers - 1) * now.scale;
    const y = (share) => top + share * (height - top - bottom);
    const edges = s.depths.map((at) => stack.reduce((ends, key) => [...ends, ends[ends.length - 1] + at[key] / at.total], [0]));
    mark(root, { width, viewBox: `0 0 ${width} ${height}` });
    stack.forEach((key, i) => {
      const line = (edge, reversed) => {
        const points = edges.map((ends, depth) => `${x(depth + 1).toFixed(1)} ${y(ends[edge]).toFixed(1)}`);
        return (reversed ? points.reverse() : points).join("L");
      };
      mark(areas[i], { class: partClass(key, s.tied), d: `M${line(i)}L${line(i + 1, true)}Z` });
    });
    grid.replaceChildren(
      ...[0, 0.5, 1].map((share) => svg("text", { class: "le-small", x: left - 6, y: y(share) + 4, "text-anchor": "end" }, `${fmt(100 * (1 - share), 0)} %`)),
      ...[1, 8, 16, 24, 32].map((layers) => svg("text", { class: "le-small", x: x(layers), y: height - bottom + 17, "text-anchor": "middle" }, layers)),
      svg("text", { class: "le-small", x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, "layers"),
      svg("text", { class: "le-small", x: 0, y: 12 }, "shares of the untied model, by depth"),
    );
    const named = { head: s.tied ? "head (saved)" : "head", embedding: "embedding", attention: "attention", feedForward: "feed-forward" };
    const at = Math.min(DEPTHS - 1, s.sizes.layers > 16 ? 7 : 21); // names keep clear of the handle
    words.replaceChildren(...stack.slice(0, 4).flatMap((key, i) => {
      const [from, to] = [y(edges[at][i]), y(edges[at][i + 1])];
      return to - from < 15 ? [] : [svg("text", { class: "le-inside", x: x(at + 1), y: (from + to) / 2 + 4, "text-anchor": "middle" }, named[key])];
    }));
    const saved = edges[now.layers - 1][1];
    mark(plumb, { x1: x(now.layers), x2: x(now.layers) });
    mark(here, { transform: `translate(${x(now.layers)} ${y(saved)})`, "aria-valuenow": now.layers, "aria-valuetext": `${now.layers} layers, the head is ${percent(saved)}` });
    mark(root, { "aria-label": `share of the head by depth: ${[1, 8, 16, 32].map((layers) => `${percent(edges[layers - 1][1])} at ${layers}`).join(", ")}` });
  }
  return { root, draw, release };
}

/** Every part's parameters, and their share of the model as it is now. */
function createTable() {
  const rows = PARTS.map((part) => {
    const cells = [h("td"), h("td")];
    const key = svg("svg", { class: "le-key", viewBox: "0 0 13 13", "aria-hidden": "true" }, svg("rect", { width: 13, height: 13, class: partClass(part.key, false) }));
    return { cells, key, root: h("tr", {}, h("th", { scope: "row" }, key, part.label), cells) };
  });
  const head = h("thead", {}, h("tr", {}, ["part", "parameters", "share"].map((name) => h("th", { scope: "col" }, name))));
  const root = h("table", { class: "le-table" }, head, h("tbody", {}, rows.map((row) => row.root)));
  const draw = (s) => rows.forEach((row, i) => {
    const { key } = PARTS[i];
    mark(row.key.firstChild, { class: partClass(key, s.tied) });
    row.cells[0].textContent = key === "head" && s.tied ? "0 (tied)" : grouped(s.current[key]);
    row.cells[1].textContent = percent(s.current[key] / s.current.total);
  });
  return { root, draw };
}

function ledgerState(model) {
  const get = (name) => model.get(name);
  const sizes = { hidden: get("hidden_size"), layers: get("num_hidden_layers"), vocabulary: get("vocab_size"), heads: HEADS, kvHeads: get("num_key_value_heads"), generation: get("generation") };
  const tied = get("tied");
  const depths = Array.from({ length: DEPTHS }, (_, i) => parameterLedger({ ...sizes, layers: i + 1, tied: false }));
  return { sizes, tied, depths, untied: depths[sizes.layers - 1], current: parameterLedger({ ...sizes, tied }), saved: savedByTying(sizes) };
}

function presetName(model) {
  const isAt = (preset) => Object.entries(preset).every(([name, value]) => name === "label" || model.get(name) === value);
  const found = Object.keys(PRESETS).find((name) => isAt(PRESETS[name]));
  return model.get("vocab_size") === PRESET_VOCABULARY ? found : undefined;
}

function renderLedger({ model, el }) {
  const change = (values) => {
    Object.entries(values).forEach(([name, value]) => model.set(name, value));
    model.save_changes();
  };
  const bar = createBar();
  const chart = createDepthChart((layers) => change({ num_hidden_layers: layers }));
  const table = createTable();
  const whole = (x) => fmt(x, 0);
  const vocabularyText = (step) => grouped(step === vocabularyStep(model.get("vocab_size")) ? model.get("vocab_size") : vocabularyAt(step));
  const preset = choice({ label: "start from", options: Object.entries(PRESETS).map(([value, { label }]) => ({ value, label })), value: presetName(model), onChange: (name) => {
    const { label, ...values } = PRESETS[name];
    change({ ...values, vocab_size: PRESET_VOCABULARY });
  } });
  const tied = toggle({ label: "tie the head to the embedding", checked: model.get("tied"), onChange: (value) => change({ tied: value }) });
  const hidden = slider({ label: "hidden size", min: 128, max: 2048, step: 64, value: model.get("hidden_size"), format: whole, onInput: (value) => change({ hidden_size: value }) });
  const layers = slider({ label: "layers", min: 1, max: DEPTHS, step: 1, value: model.get("num_hidden_layers"), format: whole, onInput: (value) => change({ num_hidden_layers: value }) });
  const vocabulary = slider({ label: "vocabulary (logarithmic)", min: 12, max: 44, step: 1, value: vocabularyStep(model.get("vocab_size")), format: vocabularyText, tone: "accent", onInput: (step) => change({ vocab_size: vocabularyAt(step) }) });
  const kvHeads = slider({ label: "key/value heads (of 8)", min: 0, max: 3, step: 1, value: Math.log2(model.get("num_key_value_heads")), format: (x) => whole(2 ** x), tone: "accent2", onInput: (x) => change({ num_key_value_heads: 2 ** x }) });
  const words = h("p", { class: "le-verdict", "aria-live": "polite" });
  const numbers = readout([]);
  const [barBox, chartBox] = [h("div", {}, bar.root), h("div", {}, chart.root)];
  const stage = h("div", { class: "mm-stage le-stage" }, preset.root, tied.root, barBox, words, chartBox, table.root);
  const controls = h("div", { class: "mm-controls" }, vocabulary.root, layers.root, hidden.root, kvHeads.root);
  const note = h("p", { class: "mm-note" });
  const root = h("div", { class: "mm-fig le-fig" }, h("style", {}, LEDGER_CSS), stage, controls, numbers.root, note);
  function draw(width) {
    const s = ledgerState(model);
    bar.draw(s, width);
    chart.draw(s, width);
    table.draw(s);
    preset.set(presetName(model));
    tied.set(s.tied);
    hidden.set(s.sizes.hidden);
    layers.set(s.sizes.layers);
    vocabulary.set(vocabularyStep(s.sizes.vocabulary));
    kvHeads.set(Math.log2(s.sizes.kvHeads));
    const text = `Tying ${s.tied ? "saves" : "would save"} ${grouped(s.saved.parameters)} parameters, ${percent(s.saved.share)} of the untied model.`;
    if (words.textContent !== text) words.textContent = text;
    numbers.set([
      ["parameters now", grouped(s.current.total)],
      [s.tied ? "untied" : "tied", grouped(s.tied ? s.untied.total : s.untied.total - s.saved.parameters)],
      ["tying saves", percent(s.saved.share), "accent"],
      ["both tables, untied", percent(2 * s.saved.share)],
    ]);
    const wide = grouped(intermediateSize(s.sizes.hidden, s.sizes.generation));
    const rules = s.sizes.generation === "minimind3" ? `MiniMind3's rules: ${wide} feed-forward channels, norms on queries and keys.` : `MiniMind2's rules: ${wide} feed-forward channels.`;
    if (note.textContent !== rules) note.textContent = rules;
  }

  return mount(el, root, { model, traits: ["hidden_size", "num_hidden_layers", "vocab_size", "num_key_value_heads", "generation", "tied"], boxes: [stage], draw, parts: [chart] });
}

export default { render: renderLedger };
