// PairingLab: the table hands out angles by one layout, the rotation joins partners by another. Do they agree?

import { h, svg, textAt, setAttributes, setSize, setTraits, clamp, arrowStep, draggable, mount } from "./kit.js";
import { fmt, slider, choice, optionsFor, button, readout, announcement, handle, grip } from "./kit.js";
import { ropeFrequencies, pairChannels, tableColumns, ropeScore, halfSplitPermutation } from "./rope_math.js";

const VECTORS = ["query", "key", "query_position", "key_position", "rope_base"];
const SETTINGS = ["table", "rotation", "permuted", "shift"];
const LAYOUTS = ["half-split", "interleaved"];
const SHIFTS = [0, 10, 100, 1000];
const LAST_SHIFT = 1000;
const SUBSCRIPTS = "₀₁₂₃₄₅₆₇";
const NOTE =
  "Both partners of a pair must get the same angle; only then is the distance all that counts. Permuting the " +
  "channels of query and key turns one convention into the other.";

const pairColor = (pair) => `--pl-color: var(--pl-c${pair % 4})`;

/** Angles handed out by the table (upper cells) to the channels that the rotation joins (lower cells and arcs). */
function createWiring(dim) {
  const [tableTop, faceSize, gap] = [20, 66, 44];
  const [channelTop, channelHeight] = [tableTop + faceSize + gap, 36];
  const arcTop = channelTop + channelHeight;
  const height = arcTop + 76;
  let drawnWidth = 0; // cells glide when the channels are permuted, not when the page is resized

  const createAngleCell = () => {
    const parts = {
      cell: svg("rect", { class: "pl-cell", y: 0, height: faceSize, rx: 7 }),
      face: svg("circle", { class: "pl-face", cy: 24, r: 15 }),
      hand: svg("line", { class: "pl-hand", x1: 0, y1: 24 }),
      name: svg("text", { class: "pl-name", y: 57 }),
    };
    return { ...parts, root: svg("g", {}, Object.values(parts)) };
  };
  const createChannelCell = (channel) => {
    const cell = svg("rect", { class: "pl-cell", y: channelTop, height: channelHeight, rx: 7 });
    const name = svg("text", { class: "pl-name", y: channelTop + 23 }, String(channel));
    return { cell, root: svg("g", {}, cell, name) };
  };
  const createFall = () => svg("line", { class: "pl-fall", y1: tableTop + faceSize, y2: channelTop });

  const angleCells = Array.from({ length: dim }, createAngleCell);
  const channelCells = Array.from({ length: dim }, (_, channel) => createChannelCell(channel));
  const falls = Array.from({ length: dim }, createFall);
  const arcs = svg("g");
  const root = svg(
    "svg",
    { height, role: "img" },
    falls,
    angleCells.map((one) => one.root),
    arcs,
    channelCells.map((one) => one.root),
    textAt(0, 12, "the table gives every channel an angle", "pl-small"),
    textAt(0, channelTop - 10, "the rotation joins channels as partners", "pl-small pl-halo"),
  );

  function drawArc(x, [first, second], pair, agree) {
    const isLong = second - first > 1; // long arcs cross, so each has its own depth
    const depth = isLong ? 48 + (30 * pair) / (dim / 2 - 1) : 46;
    const [from, to, low] = [x(first), x(second), arcTop + depth];
    const [cx, cy] = [(from + to) / 2, arcTop + 0.75 * depth];
    const [style, broken] = [pairColor(pair), agree ? "" : " pl-broken"];
    const d = `M${from} ${arcTop}C${from} ${low} ${to} ${low} ${to} ${arcTop}`;
    const disk = svg("circle", { class: `pl-badge${broken}`, cx, cy, r: 11 });
    const sign = svg("text", { class: `pl-sign${broken}`, x: cx, y: cy }, agree ? "✓" : "≠");
    return [svg("path", { class: `pl-arc${broken}`, style, d }), svg("g", { style }, disk, sign)];
  }

  function drawAngles(s, x, cellWidth, columns) {
    angleCells.forEach((cell, slot) => {
      const angle = s.position * s.frequencies[columns[slot]];
      setAttributes(cell.root, { transform: `translate(${x(slot)} ${tableTop})`, style: pairColor(columns[slot]) });
      setAttributes(cell.cell, { x: -cellWidth / 2, width: cellWidth });
      setAttributes(cell.hand, { x2: 13 * Math.cos(angle), y2: 24 - 13 * Math.sin(angle) });
      cell.name.textContent = `θ${SUBSCRIPTS[columns[slot]]}`;
      setAttributes(falls[slot], { x1: x(slot), x2: x(slot) });
    });
  }

  function drawChannels(s, x, cellWidth, pairs) {
    s.order.forEach((channel, slot) => {
      const { cell, root: group } = channelCells[channel];
      const pair = pairs.findIndex((partners) => partners.includes(slot));
      group.style.transform = `translateX(${x(slot)}px)`;
      group.style.setProperty("--pl-color", `var(--pl-c${pair % 4})`);
      setAttributes(cell, { x: -cellWidth / 2, width: cellWidth });
    });
  }

  function draw(s, width) {
    channelCells.forEach((cell) => cell.root.classList.toggle("pl-moving", width === drawnWidth));
    drawnWidth = width;
    const column = width / dim;
    const x = (slot) => (slot + 0.5) * column;
    const cellWidth = Math.min(column - 5, 72);
    const columns = tableColumns(dim, s.table);
    const pairs = pairChannels(dim, s.rotation);
    setSize(root, width, height);
    drawAngles(s, x, cellWidth, columns);
    drawChannels(s, x, cellWidth, pairs);
    const drawn = pairs.map((partners, pair) => {
      const [first, second] = partners.map((slot) => columns[slot]);
      return drawArc(x, partners, pair, first === second);
    });
    arcs.replaceChildren(...drawn.map(([path]) => path), ...drawn.map(([, badge]) => badge));
    const named = (slot) => `channel ${s.order[slot]} with angle ${columns[slot]}`;
    const joined = pairs.map((partners) => partners.map(named).join(" and "));
    setAttributes(root, { "aria-label": `Partners: ${joined.join("; ")}` });
  }
  return { root, draw };
}

/** The score at every common shift, on an axis that gives 0, 10, 100 and 1000 room. */
function createShiftChart(onShift) {
  const [height, left, right, top, bottom] = [216, 34, 16, 14, 40];
  const floor = height - bottom;
  const grid = svg("g");
  const line = svg("path");
  const marks = svg("g");
  const plumb = svg("line", { class: "pl-plumb", y1: top, y2: floor });
  const here = handle({ label: "common shift", min: 0, max: LAST_SHIFT, ring: 11, shape: grip(6) });
  const root = svg("svg", { height, role: "group", style: "touch-action: pan-y" }, grid, plumb, line, marks, here);
  let now = { shift: 0, scale: 1 };
  const release = draggable(here, {
    onMove: (px, _, event) => {
      const step = arrowStep(event);
      const next = step ? now.shift + step : Math.round(Math.expm1((px - left) / now.scale));
      onShift(clamp(next, 0, LAST_SHIFT));
    },
  });

  function drawGrid(s, width, x, y) {
    const level = (cls, score) => svg("line", { class: cls, x1: left, x2: width - right, y1: y(score), y2: y(score) });
    const [low, high] = s.range;
    const levels = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, i) => Math.ceil(low) + i);
    const title = "common shift of both positions (logarithmic)";
    return [
      ...levels.map((score) => level("pl-grid", score)),
      ...levels.map((score) => textAt(left - 7, y(score) + 4, fmt(score, 0), "pl-small", "end")),
      ...SHIFTS.map((shift) => textAt(x(shift), floor + 17, fmt(shift, 0), "pl-small", "middle")),
      textAt((left + width - right) / 2, height - 5, title, "pl-small", "middle"),
      ...s.matched.map((score) => level("pl-matched", score)),
    ];
  }

  function drawMarks(s, x, y) {
    const onFirst = s.flat && Math.abs(s.curve[0] - s.matched[0]) < 1e-6; // its values stand above the line
    const nameOf = (layout, i) => {
      const offset = i === 0 && !onFirst ? -7 : 15;
      return textAt(x(3), y(s.matched[i]) + offset, `${layout} ✓`, "pl-small pl-halo", "middle");
    };
    const dot = (shift) => {
      return svg("circle", {
        class: s.flat ? "pl-dot" : "pl-dot pl-broken",
        cx: x(shift),
        cy: y(s.curve[shift]),
        r: 6,
      });
    };
    const value = (shift, i) => {
      const anchor = ["start", "middle", "middle", "end"][i];
      const beside = [4, 0, 0, 8][i];
      return textAt(x(shift) + beside, y(s.curve[shift]) - 11, fmt(s.curve[shift], 3), "pl-point", anchor);
    };
    return [...LAYOUTS.map(nameOf), ...SHIFTS.map(dot), ...SHIFTS.map(value)];
  }

  function draw(s, width) {
    now = { shift: s.shift, scale: (width - left - right) / Math.log1p(LAST_SHIFT) };
    const [low, high] = s.range;
    const x = (shift) => left + Math.log1p(shift) * now.scale;
    const y = (score) => top + ((high - score) / (high - low)) * (floor - top);
    const points = s.curve.map((score, shift) => `${x(shift).toFixed(1)} ${y(score).toFixed(1)}`);
    setSize(root, width, height);
    grid.replaceChildren(...drawGrid(s, width, x, y));
    setAttributes(line, { class: s.flat ? "pl-line" : "pl-line pl-broken", d: `M${points.join("L")}` });
    marks.replaceChildren(...drawMarks(s, x, y));
    setAttributes(plumb, { x1: x(s.shift), x2: x(s.shift) });
    const text = `${s.shift}, score ${fmt(s.curve[s.shift], 4)}`;
    setAttributes(here, { transform: `translate(${x(s.shift)} ${y(s.curve[s.shift])})` });
    setAttributes(here, { "aria-valuenow": s.shift, "aria-valuetext": text });
    const scores = SHIFTS.map((shift) => `${fmt(s.curve[shift], 3)} at ${shift}`);
    setAttributes(root, { "aria-label": `score against shift: ${scores.join(", ")}` });
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

function labVerdict(s) {
  if (!s.flat) return ["≠ Mixed: no error is raised, but the score moves with the shift.", "bad"];
  const isConverted = s.permuted && s.rotation === "half-split";
  return [
    isConverted ? "✓ Matched and permuted: the interleaved score." : "✓ Matched: one score at every shift.",
    "good",
  ];
}

function labState(model, scores) {
  const get = (name) => model.get(name);
  const [query, key, m, n, base] = VECTORS.map(get);
  const [table, rotation, permuted, shift] = SETTINGS.map(get);
  const p = { query, key, m, n, base };
  const dim = query.length;
  const all = LAYOUTS.flatMap((t) => LAYOUTS.flatMap((r) => scores(p, t, r, false)));
  const curve = scores(p, table, rotation, permuted);
  const chosen = { table, rotation, permuted, shift };
  return {
    ...chosen,
    curve,
    // one scale for all four settings, so that switching between them moves the line and not the axis
    range: [Math.min(...all, ...curve) - 0.25, Math.max(...all, ...curve) + 0.45],
    order: permuted ? halfSplitPermutation(dim) : Array.from({ length: dim }, (_, channel) => channel),
    frequencies: ropeFrequencies(dim, base),
    matched: LAYOUTS.map((layout) => scores(p, layout, layout, false)[0]),
    position: m + shift,
    flat: table === rotation,
  };
}

function renderLab({ model, el }) {
  const change = (name) => (value) => setTraits(model, { [name]: value });
  const scores = createScores();
  const wiring = createWiring(model.get("query").length);
  const chart = createShiftChart(change("shift"));
  const layoutOf = (name, label) => {
    return choice({ label, options: optionsFor(LAYOUTS), value: model.get(name), onChange: change(name) });
  };
  const [table, rotation] = [layoutOf("table", "table layout"), layoutOf("rotation", "rotation")];
  const permute = button({
    label: "Permute channels",
    onClick: () => setTraits(model, { permuted: !model.get("permuted") }),
  });
  const shift = slider({
    label: "slide both positions by",
    min: 0,
    max: LAST_SHIFT,
    step: 1,
    value: model.get("shift"),
    format: (x) => fmt(x, 0),
    onInput: change("shift"),
  });
  const verdict = announcement("pl-verdict");
  const numbers = readout([]);
  const settings = h("div", { class: "pl-settings" }, table.root, rotation.root, permute.root);
  const [wiringBox, chartBox] = [h("div", {}, wiring.root), h("div", {}, chart.root)];
  const stage = h("div", { class: "mm-stage pl-stage" }, settings, shift.root, wiringBox, verdict.root, chartBox);
  const root = h("div", { class: "mm-fig pl-fig" }, stage, numbers.root, h("p", { class: "mm-note" }, NOTE));

  function draw(width) {
    const s = labState(model, scores);
    wiring.draw(s, width);
    chart.draw(s, width);
    table.set(s.table);
    rotation.set(s.rotation);
    shift.set(s.shift);
    permute.set(s.permuted ? "Undo the permutation" : "Permute channels");
    permute.root.setAttribute("aria-pressed", s.permuted);
    const [text, tone] = labVerdict(s);
    verdict.set(text, tone);
    numbers.set([
      ...SHIFTS.map((at) => [`score at shift ${at}`, fmt(s.curve[at], 6), tone]),
      [`now, at ${s.shift}`, fmt(s.curve[s.shift], 6)],
    ]);
  }

  return mount(el, root, { model, traits: [...VECTORS, ...SETTINGS], boxes: [stage], draw, parts: [chart] });
}

export default { render: renderLab };
