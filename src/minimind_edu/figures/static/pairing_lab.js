// PairingLab: the table hands out angles by one layout, the rotation joins partners by another. Do they agree?

import { h, svg, fmt, slider, choice, button, readout, draggable, mount } from "./kit.js";
import { ropeFrequencies, pairChannels, tableColumns, ropeScore, halfSplitPermutation } from "./rope_math.js";

const LAYOUTS = ["half-split", "interleaved"];
const SHIFTS = [0, 10, 100, 1000];
const LAST_SHIFT = 1000;
const SUBSCRIPTS = "₀₁₂₃₄₅₆₇";

const LAB_CSS = `
.pl-stage { display: grid !important; gap: 12px !important; justify-content: stretch !important; }
.pl-settings { display: flex; flex-wrap: wrap; gap: 10px 24px; align-items: end; }
.pl-fig { --pl-c0: var(--mm-good); --pl-c1: color-mix(in oklab, var(--mm-accent2), var(--mm-bad)); --pl-c2: color-mix(in oklab, var(--mm-accent), var(--mm-good)); --pl-c3: var(--mm-muted); }
.pl-cell { fill: color-mix(in oklab, var(--pl-color) 20%, var(--mm-panel)); stroke: var(--pl-color); stroke-width: 2; }
.pl-face { fill: var(--mm-panel); stroke: var(--pl-color); stroke-width: 1.25; }
.pl-hand { stroke: var(--mm-ink); stroke-width: 2.25; stroke-linecap: round; }
.pl-fall { stroke: var(--mm-line); stroke-width: 1.5; }
.mm-fig text.pl-name { font-size: 15px; font-weight: 700; text-anchor: middle; }
.mm-fig text.pl-small { fill: var(--mm-muted); font-size: 12px; }
.mm-fig text.pl-halo { paint-order: stroke; stroke: var(--mm-bg); stroke-width: 4px; stroke-linejoin: round; }
.mm-fig text.pl-point { font-size: 13px; font-weight: 600; paint-order: stroke; stroke: var(--mm-bg); stroke-width: 4px; stroke-linejoin: round; }
.pl-arc { fill: none; stroke: var(--pl-color); stroke-width: 2.5; }
.pl-arc.pl-broken { stroke: var(--mm-bad); stroke-dasharray: 4 4; }
.pl-badge { fill: var(--mm-panel); stroke: var(--pl-color); stroke-width: 1.75; }
.pl-badge.pl-broken { stroke: var(--mm-bad); }
.mm-fig text.pl-sign { font-size: 13px; font-weight: 700; text-anchor: middle; dominant-baseline: central; }
.mm-fig text.pl-sign.pl-broken { fill: var(--mm-bad); }
.mm-fig .pl-verdict { font-size: 16px; font-weight: 600; }
@container (max-width: 560px) { .mm-fig .pl-verdict { min-height: 3em; } }
.pl-grid { stroke: var(--mm-line); stroke-width: 1; }
.pl-matched { stroke: var(--mm-muted); stroke-width: 1.25; stroke-dasharray: 3 4; }
.pl-line { fill: none; stroke: var(--mm-good); stroke-width: 3; stroke-linejoin: round; }
.pl-line.pl-broken { stroke: var(--mm-bad); stroke-width: 1.25; }
.pl-dot { fill: var(--mm-good); stroke: var(--mm-bg); stroke-width: 2; }
.pl-dot.pl-broken { fill: var(--mm-bad); }
.pl-here { fill: var(--mm-bg); stroke: var(--mm-ink); stroke-width: 2.5; }
.pl-handle { outline: none !important; }
.pl-ring { fill: none; stroke: transparent; stroke-width: 2; }
.pl-handle:focus-visible .pl-ring { stroke: var(--mm-ink); }
.pl-plumb { stroke: var(--mm-muted); stroke-width: 1.5; stroke-dasharray: 2 3; }
@media (prefers-reduced-motion: no-preference) { .pl-moving { transition: transform 0.55s ease-in-out; } }
`;

const mark = (node, attrs) => Object.entries(attrs).forEach(([name, value]) => node.setAttribute(name, value));
const pairColor = (pair) => `--pl-color: var(--pl-c${pair % 4})`;

/** Angles handed out by the table (upper cells) to the channels that the rotation joins (lower cells and arcs). */
function createWiring(dim) {
  const [tableTop, faceSize, gap] = [20, 66, 44];
  let drawnWidth = 0; // cells glide when the channels are permuted, not when the page is resized
  const [channelTop, channelHeight] = [tableTop + faceSize + gap, 36];
  const arcTop = channelTop + channelHeight;
  const height = arcTop + 76;
  const angleCells = Array.from({ length: dim }, () => {
    const parts = { cell: svg("rect", { class: "pl-cell", y: 0, height: faceSize, rx: 7 }), face: svg("circle", { class: "pl-face", cy: 24, r: 15 }), hand: svg("line", { class: "pl-hand", x1: 0, y1: 24 }), name: svg("text", { class: "pl-name", y: 57 }) };
    return { ...parts, root: svg("g", {}, Object.values(parts)) };
  });
  const channelCells = Array.from({ length: dim }, (_, channel) => {
    const cell = svg("rect", { class: "pl-cell", y: channelTop, height: channelHeight, rx: 7 });
    return { cell, root: svg("g", {}, cell, svg("text", { class: "pl-name", y: channelTop + 23 }, String(channel))) };
  });
  const falls = Array.from({ length: dim }, () => svg("line", { class: "pl-fall", y1: tableTop + faceSize, y2: channelTop }));
  const arcs = svg("g");
  const titles = [
    svg("text", { class: "pl-small", x: 0, y: 12 }, "the table gives every channel an angle"),
    svg("text", { class: "pl-small pl-halo", x: 0, y: channelTop - 10 }, "the rotation joins channels as partners"),
  ];
  const root = svg("svg", { height, role: "img" }, falls, angleCells.map((c) => c.root), arcs, channelCells.map((c) => c.root), titles);

  function drawArc(x, [first, second], pair, agree) {
    const depth = second - first === 1 ? 46 : 48 + (30 * pair) / (dim / 2 - 1); // long arcs cross, so each has its own depth
    const [from, to] = [x(first), x(second)];
    const [cx, cy] = [(from + to) / 2, arcTop + 0.75 * depth];
    const broken = agree ? "" : " pl-broken";
    const path = svg("path", { class: `pl-arc${broken}`, style: pairColor(pair), d: `M${from} ${arcTop}C${from} ${arcTop + depth} ${to} ${arcTop + depth} ${to} ${arcTop}` });
    const badge = svg("g", { style: pairColor(pair) },
      svg("circle", { class: `pl-badge${broken}`, cx, cy, r: 11 }),
      svg("text", { class: `pl-sign${broken}`, x: cx, y: cy }, agree ? "✓" : "≠"));
    return [path, badge];
  }

  function draw(s, width) {
    channelCells.forEach((cell) => cell.root.classList.toggle("pl-moving", width === drawnWidth));
    drawnWidth = width;
    const column = width / dim;
    const x = (slot) => (slot + 0.5) * column;
    const cellWidth = Math.min(column - 5, 72);
    mark(root, { width, viewBox: `0 0 ${width} ${height}` });
    const columns = tableColumns(dim, s.table);
    const pairs = pairChannels(dim, s.rotation);
    angleCells.forEach((cell, slot) => {
      const angle = s.position * s.frequencies[columns[slot]];
      mark(cell.root, { transform: `translate(${x(slot)} ${tableTop})`, style: pairColor(columns[slot]) });
      mark(cell.cell, { x: -cellWidth / 2, width: cellWidth });
      mark(cell.hand, { x2: 13 * Math.cos(angle), y2: 24 - 13 * Math.sin(angle) });
      cell.name.textContent = `θ${SUBSCRIPTS[columns[slot]]}`;
      mark(falls[slot], { x1: x(slot), x2: x(slot) });
    });
    s.order.forEach((channel, slot) => {
      const pair = pairs.findIndex((partners) => partners.includes(slot));
      channelCells[channel].root.style.transform = `translateX(${x(slot)}px)`;
      channelCells[channel].root.style.setProperty("--pl-color", `var(--pl-c${pair % 4})`);
      mark(channelCells[channel].cell, { x: -cellWidth / 2, width: cellWidth });
    });
    const drawn = pairs.map((partners, pair) => drawArc(x, partners, pair, columns[partners[0]] === columns[partners[1]]));
    arcs.replaceChildren(...drawn.map(([path]) => path), ...drawn.map(([, badge]) => badge));
    const joined = pairs.map((partners) => partners.map((slot) => `channel ${s.order[slot]} with angle ${columns[slot]}`).join(" and "));
    mark(root, { "aria-label": `Partners: ${joined.join("; ")}` });
  }
  return { root, draw };
}

/** The score at every common shift, on an axis that gives 0, 10, 100 and 1000 room. */
function createShiftChart(onShift) {
  const [height, left, right, top, bottom] = [216, 34, 16, 14, 40];
  const grid = svg("g");
  const line = svg("path");
  const marks = svg("g");
  const plumb = svg("line", { class: "pl-plumb", y1: top, y2: height - bottom });
  const here = svg("g", { class: "pl-handle", tabindex: 0, role: "slider", "aria-label": "common shift", "aria-valuemin": 0, "aria-valuemax": LAST_SHIFT },
    svg("circle", { r: 18, fill: "transparent" }), svg("circle", { class: "pl-ring", r: 11 }), svg("circle", { class: "pl-here", r: 6 }));
  const root = svg("svg", { height, role: "group", style: "touch-action: pan-y" }, grid, plumb, line, marks, here);
  let now = { shift: 0, scale: 1 };
  const release = draggable(here, {
    onMove: (px, _, event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      const next = step ? now.shift + step * (event.shiftKey ? 5 : 1) : Math.round(Math.expm1((px - left) / now.scale));
      onShift(Math.min(LAST_SHIFT, Math.max(0, next)));
    },
  });

  function draw(s, width) {
    now = { shift: s.shift, scale: (width - left - right) / Math.log1p(LAST_SHIFT) };
    const x = (shift) => left + Math.log1p(shift) * now.scale;
    const y = (score) => top + ((s.range[1] - score) / (s.range[1] - s.range[0])) * (height - top - bottom);
    const state = s.flat ? "" : " pl-broken";
    const onFirst = s.flat && Math.abs(s.curve[0] - s.matched[0]) < 1e-6; // its values stand above the line
    const levels = [];
    for (let level = Math.ceil(s.range[0]); level <= s.range[1]; level++) levels.push(level);
    mark(root, { width, viewBox: `0 0 ${width} ${height}` });
    grid.replaceChildren(
      ...levels.map((v) => svg("line", { class: "pl-grid", x1: left, x2: width - right, y1: y(v), y2: y(v) })),
      ...levels.map((v) => svg("text", { class: "pl-small", x: left - 7, y: y(v) + 4, "text-anchor": "end" }, fmt(v, 0))),
      ...SHIFTS.map((shift) => svg("text", { class: "pl-small", x: x(shift), y: height - bottom + 17, "text-anchor": "middle" }, fmt(shift, 0))),
      svg("text", { class: "pl-small", x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, "common shift of both positions (logarithmic)"),
      ...LAYOUTS.map((layout, i) => svg("line", { class: "pl-matched", x1: left, x2: width - right, y1: y(s.matched[i]), y2: y(s.matched[i]) })),
    );
    mark(line, { class: `pl-line${state}`, d: `M${s.curve.map((v, shift) => `${x(shift).toFixed(1)} ${y(v).toFixed(1)}`).join("L")}` });
    marks.replaceChildren(
      ...LAYOUTS.map((layout, i) => svg("text", { class: "pl-small pl-halo", x: x(3), y: y(s.matched[i]) + (i === 0 && !onFirst ? -7 : 15), "text-anchor": "middle" }, `${layout} ✓`)),
      ...SHIFTS.map((shift) => svg("circle", { class: `pl-dot${state}`, cx: x(shift), cy: y(s.curve[shift]), r: 6 })),
      ...SHIFTS.map((shift, i) => svg("text", { class: "pl-point", x: x(shift) + [4, 0, 0, 8][i], y: y(s.curve[shift]) - 11, "text-anchor": ["start", "middle", "middle", "end"][i] }, fmt(s.curve[shift], 3))),
    );
    mark(plumb, { x1: x(s.shift), x2: x(s.shift) });
    const text = `${s.shift}, score ${fmt(s.curve[s.shift], 4)}`;
    mark(here, { transform: `translate(${x(s.shift)} ${y(s.curve[s.shift])})`, "aria-valuenow": s.shift, "aria-valuetext": text });
    mark(root, { "aria-label": `score against shift: ${SHIFTS.map((shift) => `${fmt(s.curve[shift], 3)} at ${shift}`).join(", ")}` });
  }
  return { root, draw, release };
}

/** Scores for shifts 0 to 1000, remembered: they change only with the vectors and the settings. */
function createScores() {
  const known = new Map();
  return function scores(p, table, rotation, permuted) {
    const name = JSON.stringify([p, table, rotation, permuted]);
    if (!known.has(name)) {
      const order = halfSplitPermutation(p.query.length);
      const [query, key] = [p.query, p.key].map((v) => (permuted ? order.map((channel) => v[channel]) : v));
      const at = (_, shift) => ropeScore(query, key, p.m + shift, p.n + shift, p.base, table, rotation);
      known.set(name, Array.from({ length: LAST_SHIFT + 1 }, at));
    }
    return known.get(name);
  };
}

function verdict(s) {
  if (!s.flat) return ["≠ Mixed: no error is raised, but the score moves with the shift.", "bad"];
  const converted = s.permuted && s.rotation === "half-split";
  return [converted ? "✓ Matched and permuted: the interleaved score." : "✓ Matched: one score at every shift.", "good"];
}

function labState(model, scores) {
  const get = (name) => model.get(name);
  const p = { query: get("query"), key: get("key"), m: get("query_position"), n: get("key_position"), base: get("rope_base") };
  const dim = p.query.length;
  const [table, rotation, permuted, shift] = ["table", "rotation", "permuted", "shift"].map(get);
  const all = LAYOUTS.flatMap((t) => LAYOUTS.flatMap((r) => scores(p, t, r, false)));
  const curve = scores(p, table, rotation, permuted);
  // one scale for all four settings, so that switching between them moves the line and not the axis
  const range = [Math.min(...all, ...curve) - 0.25, Math.max(...all, ...curve) + 0.45];
  const order = permuted ? halfSplitPermutation(dim) : Array.from({ length: dim }, (_, channel) => channel);
  const frequencies = ropeFrequencies(dim, p.base);
  const matched = LAYOUTS.map((layout) => scores(p, layout, layout, false)[0]);
  return { dim, table, rotation, permuted, shift, curve, range, order, frequencies, matched, position: p.m + shift, flat: table === rotation };
}

function renderLab({ model, el }) {
  const change = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const scores = createScores();
  const wiring = createWiring(model.get("query").length);
  const chart = createShiftChart((value) => change("shift", value));
  const options = LAYOUTS.map((layout) => ({ value: layout, label: layout }));
  const table = choice({ label: "table layout", options, value: model.get("table"), onChange: (value) => change("table", value) });
  const rotation = choice({ label: "rotation", options, value: model.get("rotation"), onChange: (value) => change("rotation", value) });
  const permute = button({ label: "Permute channels", onClick: () => change("permuted", !model.get("permuted")) });
  const shift = slider({ label: "slide both positions by", min: 0, max: LAST_SHIFT, step: 1, value: model.get("shift"), format: (x) => fmt(x, 0), onInput: (value) => change("shift", value) });
  const words = h("p", { class: "pl-verdict", "aria-live": "polite" });
  const numbers = readout([]);
  const [wiringBox, chartBox] = [h("div", {}, wiring.root), h("div", {}, chart.root)];
  const stage = h("div", { class: "mm-stage pl-stage" },
    h("div", { class: "pl-settings" }, table.root, rotation.root, permute.root), shift.root, wiringBox, words, chartBox);
  const note = "Both partners of a pair must get the same angle; only then is the distance all that counts. Permuting the channels of query and key turns one convention into the other.";
  const root = h("div", { class: "mm-fig pl-fig" }, h("style", {}, LAB_CSS), stage,
    numbers.root, h("p", { class: "mm-note" }, note));
  function draw(width) {
    const s = labState(model, scores);
    wiring.draw(s, width);
    chart.draw(s, width);
    table.set(s.table);
    rotation.set(s.rotation);
    shift.set(s.shift);
    permute.set(s.permuted ? "Undo the permutation" : "Permute channels");
    permute.root.setAttribute("aria-pressed", s.permuted);
    const [text, tone] = verdict(s);
    if (words.textContent !== text) words.textContent = text;
    words.dataset.tone = tone;
    numbers.set([
      ...SHIFTS.map((at) => [`score at shift ${at}`, fmt(s.curve[at], 6), tone]),
      [`now, at ${s.shift}`, fmt(s.curve[s.shift], 6)],
    ]);
  }

  return mount(el, root, { model, traits: ["query", "key", "query_position", "key_position", "rope_base", "table", "rotation", "shift", "permuted"], boxes: [stage], draw, parts: [chart] });
}

export default { render: renderLab };
