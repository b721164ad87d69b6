// The picture of one row: its weights as dots, the levels of each grid as lines, and the way of each dot to its level.

import { draggable, handle, grip } from "../../web/kit/drag.js";
import { NARROW, svg, fill, setAttributes, textAt, setSize, clamp, fmt } from "../../web/kit/kit.js";

export const MOST_PULL = 1.7; // times its own size
const STEP_OF_PULL = 0.02;
const SNAP = 0.04; // a pull this near to 1 is none
const FEW = 3; // the largest value of 3 bits: finer grids have the same axis, and coarser ones need more of it
const LEVELS_APART = 2.5; // pixels; what is closer is a ground instead of lines
const MARGIN = { left: 2, top: 24, bottom: 6 };
const HEIGHT = { narrow: 156, wide: 228 };
const COMPACT = { top: 12, narrow: 68, wide: 96 }; // without words above it
const RIGHT = { narrow: 48, wide: 80 }; // pixels for the step
const TONES = { q_proj: "q", k_proj: "k", v_proj: "v", o_proj: "stream" };

/** onPull(times) hears how many times its own size the largest weight is drawn. */
export function createRowPlot(words, onPull) {
  const root = svg("svg", { role: "group", class: "qg-row" });
  const [place, error, hint] = [
    textAt(0, 13, "", { cls: "mm-strong" }),
    textAt(0, 13, "", { cls: null }),
    textAt(0, 0, "", { cls: "mm-small qg-hint" }),
  ];
  const grids = svg("g");
  const paths = Object.fromEntries(["ways", "dots", "levels", "worst"].map((name) => [name, svg("path")]));
  for (const [name, path] of Object.entries(paths)) setAttributes(path, { class: `qg-${name}` });
  const zero = svg("path", { class: "mm-axis" });
  const bracket = svg("path", { class: "qg-bracket" });
  const step = textAt(0, 0, "", { cls: "qg-step" });
  const point = handle({ label: words.handle, min: 0, max: MOST_PULL, reach: 20, ring: 11, shape: grip(6) });
  const drawing = svg("g", {}, grids, zero, paths.ways, paths.levels, paths.dots, paths.worst);
  fill(root, drawing, bracket, step, place, error, hint, point);
  let [scale, now] = [null, null];

  /** From weights to pixels; the axis has room for the largest weight at its longest, and stays while it is pulled. */
  function scaleFor({ own: weights, largestAt, others, largest }, width, isCompact) {
    const [sign, longest] = [Math.sign(weights[largestAt]) || 1, MOST_PULL * Math.abs(weights[largestAt])];
    const halfStep = Math.max(longest, others) / Math.min(largest, FEW) / 2;
    const beyond = Math.max(0, ...weights.map((weight) => -sign * weight)) + halfStep;
    const pulled = Math.max(longest, Math.min(others, longest + halfStep)) || 1;
    const reach = (way) => 1.03 * (way === sign ? pulled : beyond);
    const isNarrow = width < NARROW;
    const size = isNarrow ? "narrow" : "wide";
    const height = (isCompact ? COMPACT : HEIGHT)[size];
    const top = isCompact ? COMPACT.top : MARGIN.top + (isNarrow ? 16 : 0);
    const right = RIGHT[size];
    const perUnit = (height - top - MARGIN.bottom) / (reach(1) + reach(-1));
    const zero = top + reach(1) * perUnit;
    const pitch = (width - MARGIN.left - right) / weights.length;
    const x = (i) => MARGIN.left + (i + 0.5) * pitch;
    const y = (weight) => zero - weight * perUnit;
    return { width, height, top, isNarrow, x, y, pitch, perUnit, range: [-reach(-1), reach(1)] };
  }

  /** The levels that weights from `from` to `to` can have: lines, or a ground where these would touch. */
  function drawGrid({ from, to, scale: apart }, largest) {
    const { x, y, pitch, perUnit, range } = scale;
    const [left, right] = [x(from) - pitch / 2 + 1, x(to - 1) + pitch / 2 - 1];
    const [low, high] = range.map((end) => clamp(end / apart, -largest, largest));
    if (apart * perUnit < LEVELS_APART) {
      const box = { x: left, width: right - left, y: y(high * apart), height: (high - low) * apart * perUnit };
      return svg("rect", { class: "qg-ground", ...box });
    }
    const lines = [];
    for (let level = Math.ceil(low - 1e-6); level <= high + 1e-6; level++)
      if (level) lines.push(`M${left.toFixed(1)} ${y(level * apart).toFixed(1)}H${right.toFixed(1)}`);
    return svg("path", { class: "qg-grid", d: lines.join("") });
  }

  function drawWeights({ values, rounded, worst }) {
    const { x, y, pitch } = scale;
    const half = clamp(0.36 * pitch, 0.8, 4.5);
    const at = (i, weight) => `${x(i).toFixed(1)} ${y(weight).toFixed(1)}`;
    const way = (weight, i) => `M${at(i, weight)}V${y(rounded[i]).toFixed(1)}`;
    const level = (weight, i) => `M${(x(i) - half).toFixed(1)} ${y(weight).toFixed(1)}H${(x(i) + half).toFixed(1)}`;
    setAttributes(paths.ways, { d: values.map(way).join("") });
    setAttributes(paths.dots, { d: values.map((weight, i) => `M${at(i, weight)}H${x(i).toFixed(1)}`).join("") });
    setAttributes(paths.levels, { d: rounded.map(level).join("") });
    setAttributes(paths.worst, { d: way(values[worst], worst) });
    setAttributes(root, { style: `--qg-dot: ${clamp(0.6 * pitch, 2.2, 5).toFixed(1)}px` });
  }

  function drawStep({ spans }) {
    const { x, y, pitch, isNarrow } = scale;
    const { to, scale: apart } = spans.at(-1);
    const [left, top, floor] = [x(to - 1) + pitch / 2 + 4, y(apart), y(0)];
    setAttributes(bracket, { d: `M${left} ${top}H${left + 5}V${floor}H${left}` });
    setAttributes(step, { x: left + 9, y: clamp((top + floor) / 2 + 4, scale.top + 8, floor + 4) });
    step.textContent = isNarrow ? fmt(apart, 3) : words.step(fmt(apart, 3));
  }

  function drawWords(s, isCompact) {
    const { isNarrow, width, x, y } = scale;
    const { layer, matrix, row } = s.place;
    place.textContent = isCompact ? "" : words.place(layer, matrix, row + 1, s.values.length);
    error.textContent = isCompact ? "" : words.error(fmt(s.error, 3), fmt(s.half, 3));
    setAttributes(
      error,
      isNarrow ? { x: 0, y: 29, "text-anchor": "start" } : { x: width, y: 13, "text-anchor": "end" },
    );
    const isRight = s.largestAt > 0.7 * s.values.length;
    const left = x(s.largestAt) + (isRight ? -16 : 16);
    const clear = Math.max(1, s.pull) * s.own[s.largestAt]; // no other weight is as far out
    setAttributes(hint, { x: left, y: y(clear) + 4, "text-anchor": isRight ? "end" : "start" });
    hint.textContent = s.pull === 1 ? words.drag : words.zeros(s.zeros, s.values.length);
  }

  /** s: { place, own, others, values: own with one pulled, largestAt, pull, bits, largest, ...roundedRow }. */
  function draw(s, width, isCompact) {
    scale = scaleFor(s, width, isCompact);
    now = s;
    setSize(root, width, scale.height, words.row(s.bits, s.zeros, s.values.length));
    fill(
      grids,
      s.spans.map((span) => drawGrid(span, s.largest)),
    );
    setAttributes(zero, { d: `M${MARGIN.left} ${scale.y(0).toFixed(1)}H${scale.x(s.own.length - 0.5).toFixed(1)}` });
    drawWeights(s);
    drawStep(s);
    drawWords(s, isCompact);
    const tone = TONES[s.place.matrix] ?? "ffn";
    setAttributes(drawing, { "data-tone": tone, "data-sym": tone });
    const value = s.values[s.largestAt];
    setAttributes(point, {
      transform: `translate(${scale.x(s.largestAt).toFixed(1)} ${scale.y(value).toFixed(1)})`,
      "aria-valuenow": s.pull,
      "aria-valuetext": words.handleAt(fmt(value, 3), fmt(s.pull)),
    });
  }

  function moveTo(left, top) {
    const times = (scale.y(0) - top) / scale.perUnit / now.own[now.largestAt];
    const pull = clamp(Math.round(times / STEP_OF_PULL) * STEP_OF_PULL, 0, MOST_PULL);
    onPull(Math.abs(pull - 1) < SNAP ? 1 : Number(pull.toFixed(2)));
  }
  const position = () => [scale.x(now.largestAt), scale.y(now.values[now.largestAt])];
  const release = draggable(point, { onMove: moveTo, position, keyStep: 6 });
  return { root, draw, release };
}
