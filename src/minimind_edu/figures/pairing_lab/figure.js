// PairingLab: the table hands out angles by one layout, the rotation joins partners by another. Do they agree?

import { draggable, handle, grip, arrowStep } from "../../web/kit/drag.js";
import { NARROW, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, slider, choice } from "../../web/kit/kit.js";
import { optionsFor, button, row, setTraits } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, lineThrough, across, levels, ticks } from "../../web/kit/chart.js";
import { ropeFrequencies, pairChannels, tableColumns, ropeScore, halfSplitPermutation } from "../../web/kit/rope.js";
import { pairingLabWords } from "./words.js";

const VECTORS = ["query", "key", "query_position", "key_position", "rope_base"];
const SETTINGS = ["table", "rotation", "permuted", "shift"];
const LAYOUTS = ["half-split", "interleaved"];
const SHIFTS = [0, 10, 100, 1000];
const LAST_SHIFT = 1000;
const SUBSCRIPTS = "₀₁₂₃₄₅₆₇";
const pairShade = (pair) => `--pl-shade: var(--pl-shade-${pair % 4})`;

/** Angles handed out by the table (upper cells) to the channels that the rotation joins (lower cells and arcs). */
function createWiring(words, dim) {
  const [tableTop, faceSize, gap] = [20, 58, 34];
  const [channelTop, channelHeight] = [tableTop + faceSize + gap, 28];
  const arcTop = channelTop + channelHeight;
  const height = arcTop + 58;
  let drawnWidth = 0; // cells glide when the channels are permuted, not when the page is resized

  const createAngleCell = () => {
    const parts = {
      cell: svg("rect", { class: "pl-cell", y: 0, height: faceSize, rx: 7 }),
      face: svg("circle", { class: "pl-face", cy: 21, r: 14 }),
      hand: svg("line", { class: "pl-hand", x1: 0, y1: 21 }),
      name: svg("text", { class: "pl-name", y: 51, "data-sym": "theta" }),
    };
    return { ...parts, root: svg("g", {}, Object.values(parts)) };
  };
  const createChannelCell = (channel) => {
    const cell = svg("rect", { class: "pl-cell", y: channelTop, height: channelHeight, rx: 7 });
    const name = svg("text", { class: "pl-name", y: channelTop + 20 }, String(channel));
    return { cell, root: svg("g", {}, cell, name) };
  };
  const createFall = () => svg("line", { class: "pl-fall", y1: tableTop + faceSize, y2: channelTop });

  const angleCells = Array.from({ length: dim }, createAngleCell);
  const channelCells = Array.from({ length: dim }, (_, channel) => createChannelCell(channel));
  const falls = Array.from({ length: dim }, createFall);
  const arcs = svg("g");
  const names = [textAt(0, 12, words.tableRow), textAt(0, channelTop - 9, words.rotationRow)];
  const root = svg("svg", { height, role: "img" }, falls, angleCells, arcs, channelCells, names);

  function drawArc(x, [first, second], pair, agree) {
    const isLong = second - first > 1; // long arcs cross, so each has its own depth
    const depth = isLong ? 36 + (24 * pair) / (dim / 2 - 1) : 38;
    const [from, to, low] = [x(first), x(second), arcTop + depth];
    const [cx, cy] = [(from + to) / 2, arcTop + 0.75 * depth];
    const broken = agree ? "" : " pl-broken";
    const d = `M${from} ${arcTop}C${from} ${low} ${to} ${low} ${to} ${arcTop}`;
    const disk = svg("circle", { class: `pl-badge${broken}`, cx, cy, r: 11 });
    const sign = svg(
      "text",
      { class: "pl-sign", "data-tone": agree ? "good" : "bad", x: cx, y: cy },
      agree ? "✓" : "≠",
    );
    return [svg("path", { class: `pl-arc${broken}`, d }), svg("g", {}, disk, sign)];
  }

  function drawAngles(s, x, cellWidth, columns) {
    angleCells.forEach((cell, slot) => {
      const angle = s.position * s.frequencies[columns[slot]];
      setAttributes(cell.root, { transform: `translate(${x(slot)} ${tableTop})`, style: pairShade(columns[slot]) });
      setAttributes(cell.cell, { x: -cellWidth / 2, width: cellWidth });
      setAttributes(cell.hand, { x2: 12 * Math.cos(angle), y2: 21 - 12 * Math.sin(angle) });
      cell.name.textContent = `θ${SUBSCRIPTS[columns[slot]]}`;
      setAttributes(falls[slot], { x1: x(slot), x2: x(slot) });
    });
  }

  function drawChannels(s, x, cellWidth, pairs) {
    s.order.forEach((channel, slot) => {
      const { cell, root: group } = channelCells[channel];
      const pair = pairs.findIndex((partners) => partners.includes(slot));
      group.style.transform = `translateX(${x(slot)}px)`;
      group.style.setProperty("--pl-shade", `var(--pl-shade-${pair % 4})`);
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
    const named = (slot) => [s.order[slot], columns[slot]];
    setSize(root, width, height, words.partners(pairs.map((partners) => partners.map(named))));
    drawAngles(s, x, cellWidth, columns);
    drawChannels(s, x, cellWidth, pairs);
    const drawn = pairs.map((partners, pair) => {
      const [first, second] = partners.map((slot) => columns[slot]);
      return drawArc(x, partners, pair, first === second);
    });
    fill(
      arcs,
      [0, 1].map((part) => drawn.map((arc) => arc[part])),
    ); // the badges over all paths
  }
  return { root, draw };
}

/** The score at every common shift, on an axis that gives 0, 10, 100 and 1000 room. */
function createShiftChart(words, onShift) {
  const [left, right, top, bottom] = [34, 16, 4, 38];
  let [height, floor] = [0, 0]; // of what a narrow page leaves
  const grid = svg("g");
  const line = svg("path");
  const marks = svg("g");
  const plumb = svg("line", { class: "mm-faint", y1: top });
  const here = handle({ label: words.shiftHandle, min: 0, max: LAST_SHIFT, ring: 11, shape: grip(6) });
  const root = svg("svg", { role: "group", style: "touch-action: pan-y" }, grid, plumb, line, marks, here);
  let now = { shift: 0, at: null };
  const release = draggable(here, {
    onMove: (px, _, event) => {
      const step = arrowStep(event);
      const next = step ? now.shift + step : Math.round(Math.expm1(now.at.invert(px)));
      onShift(clamp(next, 0, LAST_SHIFT));
    },
  });

  function drawGrid(s, width, x, y) {
    const [low, high] = s.range;
    const scores = Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, i) => Math.ceil(low) + i);
    return [
      levels(scores, y, left, width - right, (score) => fmt(score, 0)),
      ticks(SHIFTS, x, floor + 17),
      textAt((left + width - right) / 2, height - 4, words.shiftAxis, { anchor: "middle" }),
      s.matched.map((score) => across(y(score), left, width - right, "mm-faint")),
    ];
  }

  function drawMarks(s, x, y) {
    const onFirst = s.flat && Math.abs(s.curve[0] - s.matched[0]) < 1e-6; // its values stand above the line
    const nameOf = (layout, i) => {
      const offset = i === 0 && !onFirst ? -7 : 15;
      return textAt(x(3), y(s.matched[i]) + offset, words.matchedLine(words[layout]), { anchor: "middle" });
    };
    const cls = s.flat ? "pl-dot" : "pl-dot pl-broken";
    const dot = (shift) => svg("circle", { class: cls, cx: x(shift), cy: y(s.curve[shift]), r: 6 });
    const value = (shift, i) => {
      const anchor = ["start", "middle", "middle", "end"][i];
      const beside = [4, 0, 0, 8][i];
      return textAt(x(shift) + beside, y(s.curve[shift]) - 11, fmt(s.curve[shift], 3), { anchor, cls: "mm-strong" });
    };
    return [...LAYOUTS.map(nameOf), ...SHIFTS.map(dot), ...SHIFTS.map(value)];
  }

  function draw(s, width) {
    height = width < NARROW ? 138 : 190;
    floor = height - bottom;
    const at = linear([0, Math.log1p(LAST_SHIFT)], [left, width - right]);
    now = { shift: s.shift, at };
    const x = (shift) => at(Math.log1p(shift));
    const y = linear(s.range, [floor, top]);
    const d = lineThrough(s.curve.map((score, shift) => [x(shift), y(score)]));
    setSize(root, width, height, words.chart(SHIFTS.map((shift) => [shift, fmt(s.curve[shift], 3)])));
    fill(grid, drawGrid(s, width, x, y));
    setAttributes(line, { class: s.flat ? "pl-line" : "pl-line pl-broken", d });
    fill(marks, drawMarks(s, x, y));
    setAttributes(plumb, { x1: x(s.shift), x2: x(s.shift), y2: floor });
    const text = words.shiftValue(s.shift, fmt(s.curve[s.shift], 4));
    setAttributes(here, { transform: `translate(${x(s.shift)} ${y(s.curve[s.shift])})` });
    setAttributes(here, { "aria-valuenow": s.shift, "aria-valuetext": text });
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

function labVerdict(words, s) {
  if (!s.flat) return [words.mixed, "bad"];
  return [s.permuted && s.rotation === "half-split" ? words.converted : words.matched, "good"];
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

export default figure({
  words: pairingLabWords,
  traits: [...VECTORS, ...SETTINGS],
  create({ model, words, isCompact, bound, verdict, numbers }) {
    const scores = createScores();
    const wiring = createWiring(words, model.get("query").length);
    const chart = createShiftChart(words, (shift) => setTraits(model, { shift }));
    const layouts = optionsFor(LAYOUTS, (layout) => words[layout]);
    const [table, rotation] = ["table", "rotation"].map((name) =>
      bound(choice, name, { label: words[name], options: layouts }),
    );
    const onClick = () => setTraits(model, { permuted: !model.get("permuted") });
    const permute = button({ label: words.permute, onClick });
    const shift = bound(slider, "shift", { label: words.shift, min: 0, max: LAST_SHIFT, step: 1 });
    const chartBox = isCompact ? null : h("div", { "data-sym": "score" }, chart);

    function draw(width) {
      const s = labState(model, scores);
      wiring.draw(s, width);
      chart.draw(s, width);
      permute.set(s.permuted ? words.undo : words.permute);
      permute.root.setAttribute("aria-pressed", s.permuted);
      const [text, tone] = labVerdict(words, s);
      const rows = SHIFTS.map((at) => [words.scoreAt(at), fmt(s.curve[at], 6), tone]);
      return { verdict: text, tone, numbers: [...rows, [words.scoreNow(s.shift), fmt(s.curve[s.shift], 6)]] };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column pl-stage" }, h("div", {}, wiring), verdict, chartBox),
      control: h("div", { class: "mm-controls pl-control" }, rotation),
      numbers: null,
      more: [row(table, permute, shift), numbers],
      parts: [chart],
      draw,
    };
  },
});
