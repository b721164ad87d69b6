// ParameterLedger: one bar for the whole model, and the shares of its parts at every depth. What does tying take away?

import { h, svg, textAt, setAttributes, setSize, setTraits, clamp, arrowStep, draggable, mount } from "./kit.js";
import { fmt, grouped, slider, toggle, choice, optionsFor, readout, announcement, handle, grip } from "./kit.js";
import { intermediateSize, parameterLedger, savedByTying } from "./parameter_ledger_math.js";
import { vocabularyAt, vocabularyStep } from "./parameter_ledger_math.js";

const TRAITS = ["hidden_size", "num_hidden_layers", "vocab_size", "num_key_value_heads", "generation", "tied"];
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
  "MiniMind2 small": { hidden_size: 512, num_hidden_layers: 8, num_key_value_heads: 2, generation: "minimind2" },
  MiniMind2: { hidden_size: 768, num_hidden_layers: 16, num_key_value_heads: 2, generation: "minimind2" },
  MiniMind3: { hidden_size: 768, num_hidden_layers: 8, num_key_value_heads: 4, generation: "minimind3" },
};
const PRESET_VOCABULARY = 6400;
const STACK = ["head", "embedding", "attention", "feedForward", "norms"]; // of the chart, from the top

const percent = (share) => `${fmt(100 * share, 2)} %`;
const partClass = (key, tied) => `le-part le-${key}${key === "head" && tied ? " le-saved" : ""}`;

function hatch() {
  const pattern = {
    id: "le-hatch",
    width: 7,
    height: 7,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  };
  const line = svg("line", { class: "le-hatching", x1: 0, y1: 0, x2: 0, y2: 7 });
  return svg("defs", {}, svg("pattern", pattern, line));
}

/** The whole untied model as one bar; tied, the head is only an outline of what is not there. */
function createBar() {
  const [top, height] = [22, 46];
  const rects = PARTS.map(() => svg("rect", { y: top, height }));
  const names = PARTS.map(() => svg("text", { class: "le-name", y: top + height / 2 + 4 }));
  const caption = svg("text", { class: "le-small", x: 0, y: 14 });
  const root = svg("svg", { height: top + height + 2, role: "img" }, hatch(), rects, names, caption);

  function draw(s, width) {
    setSize(root, width, top + height + 2);
    let x = 1;
    PARTS.forEach((part, i) => {
      const wide = ((width - 2) * s.untied[part.key]) / s.untied.total;
      const label = part.key === "head" && s.tied ? "saved" : part.label;
      setAttributes(rects[i], { class: partClass(part.key, s.tied), x, width: wide });
      setAttributes(names[i], { x: x + wide / 2 });
      names[i].textContent = wide > 9 * label.length + 8 ? label : "";
      x += wide;
    });
    caption.textContent = s.tied ? "the tied model, and what the untied one has more" : "the untied model";
    const shares = PARTS.map((part) => `${part.label} ${percent(s.untied[part.key] / s.untied.total)}`);
    setAttributes(root, { "aria-label": `${shares.join(", ")} of the untied model` });
  }
  return { root, draw };
}

/** Shares of the untied model for 1 to 32 layers; the two tables lie at the top, the head uppermost. */
function createDepthChart(onLayers) {
  const [height, left, right, top, bottom] = [236, 46, 14, 24, 40];
  const floor = height - bottom;
  const grid = svg("g");
  const areas = STACK.map(() => svg("path"));
  const words = svg("g");
  const plumb = svg("line", { class: "le-plumb", y1: top, y2: floor });
  const here = handle({ label: "layers, in the chart", min: 1, max: DEPTHS, ring: 12, shape: grip(7) });
  const root = svg("svg", { height, role: "group", style: "touch-action: pan-y" }, areas, grid, words, plumb, here);
  let now = { layers: 8, scale: 1 };
  const release = draggable(here, {
    onMove: (px, _, event) => {
      const step = arrowStep(event);
      const next = step ? now.layers + step : 1 + Math.round((px - left) / now.scale);
      onLayers(clamp(next, 1, DEPTHS));
    },
  });

  /** Where the parts of the stack end, 0 first and 1 last, at every depth. */
  function edgesOf(s) {
    const end = (ends, key, at) => [...ends, ends.at(-1) + at[key] / at.total];
    return s.depths.map((at) => STACK.reduce((ends, key) => end(ends, key, at), [0]));
  }

  function drawAreas(s, edges, x, y) {
    const along = (edge) => edges.map((ends, depth) => `${x(depth + 1).toFixed(1)} ${y(ends[edge]).toFixed(1)}`);
    STACK.forEach((key, i) => {
      const outline = [...along(i), ...along(i + 1).reverse()];
      setAttributes(areas[i], { class: partClass(key, s.tied), d: `M${outline.join("L")}Z` });
    });
  }

  function drawGrid(x, y, width) {
    const share = (part) => textAt(left - 6, y(part) + 4, `${fmt(100 * (1 - part), 0)} %`, "le-small", "end");
    return [
      ...[0, 0.5, 1].map(share),
      ...[1, 8, 16, 24, 32].map((layers) => textAt(x(layers), floor + 17, layers, "le-small", "middle")),
      textAt((left + width - right) / 2, height - 5, "layers", "le-small", "middle"),
      textAt(0, 12, "shares of the untied model, by depth", "le-small"),
    ];
  }

  /** Names inside the areas where these are high enough, at a depth that keeps clear of the handle. */
  function drawNames(s, edges, x, y) {
    const depth = s.sizes.layers > 16 ? 8 : 22;
    const labels = Object.fromEntries(PARTS.map(({ key, label }) => [key, label]));
    if (s.tied) labels.head = "head (saved)";
    return STACK.slice(0, 4).map((key, i) => {
      const [from, to] = [y(edges[depth - 1][i]), y(edges[depth - 1][i + 1])];
      return to - from >= 15 && textAt(x(depth), (from + to) / 2 + 4, labels[key], "le-inside", "middle");
    });
  }

  function draw(s, width) {
    now = { layers: s.sizes.layers, scale: (width - left - right) / (DEPTHS - 1) };
    const x = (layers) => left + (layers - 1) * now.scale;
    const y = (share) => top + share * (floor - top);
    const edges = edgesOf(s);
    setSize(root, width, height);
    drawAreas(s, edges, x, y);
    grid.replaceChildren(...drawGrid(x, y, width));
    words.replaceChildren(...drawNames(s, edges, x, y).filter(Boolean));
    const headAt = (layers) => edges[layers - 1][1];
    const saved = headAt(now.layers);
    const text = `${now.layers} layers, the head is ${percent(saved)}`;
    setAttributes(plumb, { x1: x(now.layers), x2: x(now.layers) });
    setAttributes(here, { transform: `translate(${x(now.layers)} ${y(saved)})` });
    setAttributes(here, { "aria-valuenow": now.layers, "aria-valuetext": text });
    const shares = [1, 8, 16, 32].map((layers) => `${percent(headAt(layers))} at ${layers}`);
    setAttributes(root, { "aria-label": `share of the head by depth: ${shares.join(", ")}` });
  }
  return { root, draw, release };
}

/** Every part's parameters, and their share of the model as it is now. */
function createTable() {
  const rows = PARTS.map((part) => {
    const cells = [h("td"), h("td")];
    const color = svg("rect", { width: 13, height: 13 });
    const key = svg("svg", { class: "le-key", viewBox: "0 0 13 13", "aria-hidden": "true" }, color);
    return { cells, color, root: h("tr", {}, h("th", { scope: "row" }, key, part.label), cells) };
  });
  const titles = ["part", "parameters", "share"].map((title) => h("th", { scope: "col" }, title));
  const body = h(
    "tbody",
    {},
    rows.map((row) => row.root),
  );
  const root = h("table", { class: "le-table" }, h("thead", {}, h("tr", {}, titles)), body);

  function draw(s) {
    rows.forEach(({ cells: [count, share], color }, i) => {
      const { key } = PARTS[i];
      setAttributes(color, { class: partClass(key, s.tied) });
      count.textContent = key === "head" && s.tied ? "0 (tied)" : grouped(s.current[key]);
      share.textContent = percent(s.current[key] / s.current.total);
    });
  }
  return { root, draw };
}

function ledgerState(model) {
  const get = (name) => model.get(name);
  const tied = get("tied");
  const sizes = {
    hidden: get("hidden_size"),
    layers: get("num_hidden_layers"),
    vocabulary: get("vocab_size"),
    heads: HEADS,
    kvHeads: get("num_key_value_heads"),
    generation: get("generation"),
  };
  const depths = Array.from({ length: DEPTHS }, (_, i) => parameterLedger({ ...sizes, layers: i + 1, tied: false }));
  const current = parameterLedger({ ...sizes, tied });
  return { sizes, tied, depths, untied: depths[sizes.layers - 1], current, saved: savedByTying(sizes) };
}

function presetName(model) {
  if (model.get("vocab_size") !== PRESET_VOCABULARY) return undefined;
  const isAt = (preset) => Object.entries(preset).every(([name, value]) => model.get(name) === value);
  return Object.keys(PRESETS).find((name) => isAt(PRESETS[name]));
}

function ledgerWords(s) {
  const count = `${grouped(s.saved.parameters)} parameters`;
  return `Tying ${s.tied ? "saves" : "would save"} ${count}, ${percent(s.saved.share)} of the untied model.`;
}

function ledgerNumbers(s) {
  const other = s.tied ? s.untied.total : s.untied.total - s.saved.parameters;
  return [
    ["parameters now", grouped(s.current.total)],
    [s.tied ? "untied" : "tied", grouped(other)],
    ["tying saves", percent(s.saved.share), "accent"],
    ["both tables, untied", percent(2 * s.saved.share)],
  ];
}

function ledgerNote({ hidden, generation }) {
  const wide = `${grouped(intermediateSize(hidden, generation))} feed-forward channels`;
  if (generation === "minimind2") return `MiniMind2's rules: ${wide}.`;
  return `MiniMind3's rules: ${wide}, norms on queries and keys.`;
}

/** All controls, each writing one trait, but for the presets, which write several. */
function createControls(model) {
  const whole = (x) => fmt(x, 0);
  const change = (name) => (value) => setTraits(model, { [name]: value });
  const preset = choice({
    label: "start from",
    options: optionsFor(Object.keys(PRESETS)),
    value: presetName(model),
    onChange: (name) => setTraits(model, { ...PRESETS[name], vocab_size: PRESET_VOCABULARY }),
  });
  const tied = toggle({
    label: "tie the head to the embedding",
    checked: model.get("tied"),
    onChange: change("tied"),
  });
  const hidden = slider({
    label: "hidden size",
    min: 128,
    max: 2048,
    step: 64,
    value: model.get("hidden_size"),
    format: whole,
    onInput: change("hidden_size"),
  });
  const layers = slider({
    label: "layers",
    min: 1,
    max: DEPTHS,
    step: 1,
    value: model.get("num_hidden_layers"),
    format: whole,
    onInput: change("num_hidden_layers"),
  });
  const vocabulary = slider({
    label: "vocabulary (logarithmic)",
    min: 12,
    max: 44,
    step: 1,
    value: vocabularyStep(model.get("vocab_size")),
    format: (step) => {
      const own = model.get("vocab_size"); // which may lie between two steps
      return grouped(step === vocabularyStep(own) ? own : vocabularyAt(step));
    },
    tone: "accent",
    onInput: (step) => setTraits(model, { vocab_size: vocabularyAt(step) }),
  });
  const kvHeads = slider({
    label: "key/value heads (of 8)",
    min: 0,
    max: 3,
    step: 1,
    value: Math.log2(model.get("num_key_value_heads")),
    format: (power) => whole(2 ** power),
    tone: "accent2",
    onInput: (power) => setTraits(model, { num_key_value_heads: 2 ** power }),
  });

  function set({ sizes, tied: isTied }) {
    preset.set(presetName(model));
    tied.set(isTied);
    hidden.set(sizes.hidden);
    layers.set(sizes.layers);
    vocabulary.set(vocabularyStep(sizes.vocabulary));
    kvHeads.set(Math.log2(sizes.kvHeads));
  }
  const sliders = [vocabulary, layers, hidden, kvHeads].map((control) => control.root);
  return { above: [preset.root, tied.root], below: h("div", { class: "mm-controls" }, sliders), set };
}

function renderLedger({ model, el }) {
  const bar = createBar();
  const chart = createDepthChart((layers) => setTraits(model, { num_hidden_layers: layers }));
  const table = createTable();
  const controls = createControls(model);
  const verdict = announcement("le-verdict");
  const numbers = readout([]);
  const [barBox, chartBox] = [h("div", {}, bar.root), h("div", {}, chart.root)];
  const note = h("p", { class: "mm-note" });
  const parts = [controls.above, barBox, verdict.root, chartBox, table.root];
  const stage = h("div", { class: "mm-stage le-stage" }, parts);
  const root = h("div", { class: "mm-fig le-fig" }, stage, controls.below, numbers.root, note);

  function draw(width) {
    const s = ledgerState(model);
    bar.draw(s, width);
    chart.draw(s, width);
    table.draw(s);
    controls.set(s);
    verdict.set(ledgerWords(s));
    numbers.set(ledgerNumbers(s));
    const rules = ledgerNote(s.sizes);
    if (note.textContent !== rules) note.textContent = rules;
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw, parts: [chart] });
}

export default { render: renderLedger };
