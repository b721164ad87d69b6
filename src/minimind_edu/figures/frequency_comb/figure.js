// FrequencyComb: some pairs as dials, and one tooth a pair, at its period, before and after scaling; folded, by how
// much each was scaled.

import { draggable, handle, grip, arrowStep } from "../../web/kit/drag.js";
import { NARROW, WIDE, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, grouped } from "../../web/kit/kit.js";
import { slider, choice, optionsFor, namedOptions, readout, row } from "../../web/kit/kit.js";
import { setTraits } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, lineThrough, across, upright, levels, ticks } from "../../web/kit/chart.js";
import { ropePeriods, pairScaling, unfinishedPairs, meetsNewAngles, scoreChange } from "./math.js";
import { createDials } from "./dials.js";
import { frequencyCombWords } from "./words.js";

const TRAITS = ["rope_base", "head_dim", "context", "factor", "beta_fast", "beta_slow", "formula"];
const FORMULAS = ["none", "linear", "yarn", "minimind2"];
const HEAD_DIMS = [64, 96, 128];
const AXIS = { first: 0.6, last: 9.6, left: 36, right: 10 }; // powers of ten: room for base 1e7, slowed 64 times
const BASE = { low: 4, high: 7, step: 0.05 }; // powers of ten
const CONTEXT = { low: 9, high: 15 }; // powers of two
const PLOT = { top: 44, bottom: 150, height: 190 }; // y in the plot of scales
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const baseStep = (power) => clamp(Math.round(power / BASE.step) * BASE.step, BASE.low, BASE.high);
const baseFrom = (power) => Number((10 ** baseStep(power)).toPrecision(6));
const contextFrom = (power) => 2 ** clamp(Math.round(power), CONTEXT.low, CONTEXT.high);
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

/** Where the rows of the comb are: [from, to] of the teeth as trained and as slowed, y of handle and axis. */
function rowsOf(width) {
  const [tooth, gap] = width < WIDE ? [38, 36] : [60, 46];
  const upper = [46, 46 + tooth];
  const lower = [upper[1] + gap, upper[1] + gap + tooth];
  return { handle: 26, upper, lower, axis: lower[1] + 15, height: lower[1] + 54 };
}

/** Powers of ten on the axis of a drawing of this width. */
const powersOn = (width) => linear([AXIS.first, AXIS.last], [AXIS.left, width - AXIS.right]);

/** Where so many positions are on it. */
function axisOf(width) {
  const at = powersOn(width);
  return (positions) => at(Math.log10(positions));
}

/** Everything that the drawing and the key numbers need. */
function combState(model) {
  const [base, dim, context, factor, fast, slow, formula] = TRAITS.map((name) => model.get(name));
  const scalingBy = (name) => pairScaling(name, dim, base, context, factor, fast, slow);
  const periods = ropePeriods(dim, base);
  const scaling = scalingBy(formula);
  const news = meetsNewAngles(dim, base, context, factor, scaling);
  const kinds = periods.map((period, pair) => (news[pair] ? "new" : period > context ? "safe" : "known"));
  const others = FORMULAS.filter((name) => name !== formula && name !== "none");
  const settings = { base, dim, context, factor, fast, slow, formula, extended: context * factor };
  return { ...settings, periods, scaling, kinds, others: others.map(scalingBy) };
}

/** "0–8", "5" or the word for none: which pairs the condition holds for. They are neighbors: scales only fall. */
function pairsWhere(words, scaling, condition) {
  const pairs = scaling.map((_, pair) => pair).filter((pair) => condition(scaling[pair]));
  if (!pairs.length) return words.nobody;
  return pairs.length === 1 ? String(pairs[0]) : `${pairs[0]}–${pairs.at(-1)}`;
}

/** The three numbers that tell most, and the rest: each as rows of a read-out. */
function combNumbers(words, s) {
  const pairs = s.periods.length;
  const isKept = (scale) => scale > 1 - 1e-9;
  const isSlowed = (scale) => scale < 1 / s.factor + 1e-9; // by the whole factor
  const count = s.kinds.filter((kind) => kind === "new").length;
  const unfinished = (length) => [
    words.unfinished(grouped(length)),
    words.ofPairs(unfinishedPairs(s.dim, s.base, length), pairs),
  ];
  const first = [
    unfinished(s.context),
    [words.meetNew(grouped(s.extended)), words.ofPairs(count, pairs), count ? "bad" : "good"],
    [words.change, fmt(scoreChange(s.dim, s.base, s.scaling, 1), 4)],
  ];
  const rest = [unfinished(s.extended)];
  if (s.formula === "none" || s.factor === 1) return { first, rest };
  rest.push(
    [words.leftAlone, pairsWhere(words, s.scaling, isKept)],
    [words.slowedALittle, pairsWhere(words, s.scaling, (scale) => !isKept(scale) && !isSlowed(scale))],
    [words.slowedTimes(fmt(s.factor, 0)), pairsWhere(words, s.scaling, isSlowed)],
  );
  if (s.formula === "yarn") rest.push([words.attention, fmt(0.1 * Math.log(s.factor) + 1, 4)]);
  return { first, rest };
}

/** A handle on the axis of positions: arrow keys step, a drag leads to a place. */
function createHandle(label, min, max, { step, to }) {
  const root = handle({ label, min, max, reach: 16, ring: 10, shape: grip(5.5) });
  const onMove = (px, _, event) => {
    const keys = arrowStep(event);
    if (keys) step(Number.isFinite(keys) ? Math.sign(keys) : keys);
    else to(px);
  };
  return { root, release: draggable(root, { onMove }) };
}

/** A mark of each kind: filled circle, hollow circle, square. */
function pointOf(kind, cx, cy) {
  if (kind === "new") return svg("rect", { class: "fc-point", x: cx - 2.5, y: cy - 2.5, width: 5, height: 5 });
  return svg("circle", { class: "fc-point", cx, cy, r: 2.6 });
}

function drawAxis(words, x, width, y) {
  const powers = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  const middle = (AXIS.left + width - AXIS.right) / 2;
  return [
    across(y, AXIS.left, width - AXIS.right, "mm-axis"),
    powers.map((power) => upright(x(10 ** power), y, y + 4, "mm-axis")),
    ticks(
      powers,
      (power) => x(10 ** power),
      y + 18,
      (power) => `10${SUPERSCRIPTS[power]}`,
    ),
    textAt(middle, y + 34, words.axis, { anchor: "middle" }),
  ];
}

/** Every pair as a tooth, as trained above and slowed below, joined by a line. */
function drawTeeth(s, x, rows) {
  const [[a, b], [c, d]] = [rows.upper, rows.lower];
  const before = (pair) => x(s.periods[pair]).toFixed(1);
  const after = (pair) => x(s.periods[pair] / s.scaling[pair]).toFixed(1);
  return ["known", "safe", "new"].map((kind) => {
    const pairs = s.periods.map((_, pair) => pair).filter((pair) => s.kinds[pair] === kind);
    const foot = kind === "new" ? d + 7 : d; // longer, so that color is not alone
    const links = pairs.map((pair) => `M${before(pair)} ${b}L${after(pair)} ${c}`);
    const teeth = pairs.map((pair) => `M${before(pair)} ${a}V${b}M${after(pair)} ${c}V${foot}`);
    const linkPath = svg("path", { class: "fc-links", d: links.join("") });
    return svg("g", { class: `fc-${kind}` }, linkPath, svg("path", { class: "fc-teeth", d: teeth.join("") }));
  });
}

/** Moves a text that was just drawn so far that no end of it is cut off. */
function keepInside(text, width) {
  const { x, width: length } = text.getBBox();
  const shift = Math.max(0, -x) + Math.min(0, width - x - length);
  setAttributes(text, { x: Number(text.getAttribute("x")) + shift });
}

function createComb(words, change) {
  let now = { s: null, powerAt: null };
  const context = createHandle(words.context, 2 ** CONTEXT.low, 2 ** CONTEXT.high, {
    step: (step) => change("context", contextFrom(Math.log2(now.s.context) + step)),
    to: (px) => change("context", contextFrom(now.powerAt(px) / Math.log10(2))),
  });
  const base = createHandle(words.baseHandle, 10 ** BASE.low, 10 ** BASE.high, {
    step: (step) => change("rope_base", baseFrom(Math.log10(now.s.base) + 2 * step * BASE.step)),
    to: (px) => change("rope_base", baseFrom((now.powerAt(px) - Math.log10(2 * Math.PI)) / (1 - 2 / now.s.dim))),
  });
  const [axis, teeth, names] = [svg("g"), svg("g", { "data-sym": "theta" }), svg("g")];
  const zone = svg("rect", { class: "mm-soft" });
  const [trained, extended] = ["fc-trained", "fc-extended"].map((cls) => svg("line", { class: cls }));
  const drawing = { role: "group", style: "touch-action: pan-y" };
  const root = svg("svg", drawing, zone, axis, extended, trained, teeth, names, base.root, context.root);

  function drawNames(s, x, width, rows) {
    const ends = [
      textAt(x(s.context) - 6, 13, words.trained(grouped(s.context)), { anchor: "end", cls: "mm-small mm-strong" }),
      textAt(x(s.extended) + 5, 13, words.extended(grouped(s.extended)), { cls: "mm-small mm-strong" }),
    ];
    fill(
      names,
      ends,
      textAt(0, rows.upper[0] - 8, words.asTrained),
      textAt(0, rows.lower[0] - 8, s.formula === "none" ? words.notSlowed : words.slowed),
    );
    ends.forEach((text) => keepInside(text, width));
  }

  function describe(s) {
    const [first, last] = [fmt(s.periods[0], 1), grouped(s.periods.at(-1))];
    const news = s.kinds.filter((kind) => kind === "new").length;
    const contextText = words.contextValue(grouped(s.context));
    setAttributes(context.root, { "aria-valuenow": s.context, "aria-valuetext": contextText });
    setAttributes(base.root, { "aria-valuenow": s.base, "aria-valuetext": words.baseValue(grouped(s.base), last) });
    setAttributes(root, { "aria-label": words.comb(s.periods.length, first, last, news) });
  }

  function draw(s, width) {
    const [x, rows] = [axisOf(width), rowsOf(width)];
    now = { s, powerAt: powersOn(width).invert };
    setSize(root, width, rows.height);
    fill(axis, drawAxis(words, x, width, rows.axis));
    fill(teeth, drawTeeth(s, x, rows));
    drawNames(s, x, width, rows);
    const [from, to] = [x(s.context), x(s.extended)];
    const unfinished = { x: from, width: Math.max(0, width - AXIS.right - from) };
    setAttributes(zone, { ...unfinished, y: rows.handle, height: rows.axis - rows.handle });
    setAttributes(trained, { x1: from, x2: from, y1: rows.handle, y2: rows.axis });
    setAttributes(extended, { x1: to, x2: to, y1: 18, y2: rows.axis });
    setAttributes(context.root, { transform: `translate(${from} ${rows.handle})` });
    setAttributes(base.root, { transform: `translate(${x(s.periods.at(-1))} ${mean(rows.upper)})` });
    describe(s);
  }
  return { root, draw, release: () => [context, base].forEach((part) => part.release()) };
}

/** The two ends of YaRN's ramp: a pair rotates beta times in the trained context. */
function drawRampEnds(words, s, x) {
  const rotations = (beta) => words.rotations(beta, fmt(beta, Number.isInteger(beta) ? 0 : 1));
  const [fast, slow] = [s.fast, s.slow].map((beta) => x(s.context / beta));
  const guide = (at) => upright(at, PLOT.top - 6, PLOT.bottom, "mm-guide");
  const name = (at, beta, anchor) => textAt(at, PLOT.top - 9, rotations(beta), { anchor, cls: "mm-small mm-strong" });
  return [guide(fast), guide(slow), name(Math.max(fast - 3, 60), s.fast, "end"), name(slow + 3, s.slow)];
}

/** By what each pair's frequency is multiplied, over its period; the other formulas as dashed lines. */
function createScales(words) {
  const root = svg("svg", { role: "img" });

  function draw(s, width) {
    const { top, bottom } = PLOT;
    const x = axisOf(width);
    const [first, last] = [s.periods[0], s.periods.at(-1)];
    const y = linear([0, 1], [bottom, top]);
    const line = (scales) => lineThrough(scales.map((scale, pair) => [x(s.periods[pair]), y(scale)]));
    const nameOf = (level) => (level === 0.5 ? "½" : level);
    const stride = s.dim === 128 ? 16 : 8;
    const end = s.periods.length - 1;
    const isNamed = (pair) => pair === end || (pair % stride === 0 && pair + stride / 2 <= end);
    const named = s.periods.map((_, pair) => pair).filter(isNamed);
    const point = (scale, pair) => pointOf(s.kinds[pair], x(s.periods[pair]), y(scale));
    const [largest, smallest] = [s.scaling[0], s.scaling.at(-1)].map((scale) => fmt(scale, 3));
    setSize(root, width, PLOT.height, words.scalesLabel(largest, smallest));
    fill(
      root,
      levels([1, 0.5, 0], y, AXIS.left, width - AXIS.right, nameOf),
      s.others.map((scales) => svg("path", { class: "mm-faint", d: line(scales) })),
      s.scaling.map((scale, pair) => svg("g", { class: `fc-${s.kinds[pair]}` }, point(scale, pair))),
      ticks(named, (pair) => x(s.periods[pair]), bottom + 17),
      textAt((x(first) + x(last)) / 2, bottom + 32, words.pair, { anchor: "middle" }),
      textAt(0, 12, words.scales),
      s.formula === "yarn" && drawRampEnds(words, s, x),
    );
  }
  return { root, draw };
}

function legendOf(...entries) {
  const key = (cls, shape) => svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true", class: cls }, shape);
  const entry = ([cls, shape, text]) => h("span", {}, key(cls, shape), text);
  return h("div", { class: "mm-legend fc-legend" }, entries.map(entry));
}

/** All controls, each writing one trait. */
function createControls(model, bound, words) {
  const power = (name, label, { low, high, step = 1 }, shown, written) =>
    bound(slider, name, { label, min: low, max: high, step, shown, written, format: () => grouped(model.get(name)) });
  const base = power("rope_base", words.base, BASE, Math.log10, baseFrom);
  const context = power("context", words.context, CONTEXT, Math.log2, contextFrom);
  const factor = power("factor", words.factor, { low: 0, high: 6 }, Math.log2, (x) => 2 ** x);
  const fast = bound(slider, "beta_fast", { label: words.betaFast, min: 4, max: 64, step: 1 });
  const oneDigit = (x) => fmt(x, 1);
  const slow = bound(slider, "beta_slow", { label: words.betaSlow, min: 0.5, max: 3.5, step: 0.5, format: oneDigit });
  const dim = bound(choice, "head_dim", { label: words.dim, options: optionsFor(HEAD_DIMS) });
  const formula = bound(choice, "formula", { label: words.formula, options: namedOptions(words.formulas) });

  function draw(s) {
    for (const control of [fast, slow]) control.root.hidden = s.formula !== "yarn" && s.formula !== "minimind2";
  }
  return { formula, others: row(base, context, factor, fast, slow, dim), draw };
}

function createWhole({ model, words, bound, numbers }) {
  const change = (name, value) => {
    if (model.get(name) !== value) setTraits(model, { [name]: value });
  };
  const [comb, scales, dials] = [createComb(words, change), createScales(words), createDials(words)];
  const controls = createControls(model, bound, words);
  const rest = readout([]);
  const tooth = (name) => svg("path", { class: "fc-teeth", d: name === "new" ? "M5 0V10" : "M5 1V8" });
  const kind = (name, text) => [`fc-${name}`, tooth(name), text];
  const legend = legendOf(kind("known", words.known), kind("safe", words.safe), kind("new", words.news));
  const others = legendOf([null, svg("path", { class: "mm-faint", d: "M0 5H10" }), words.others]);
  const whole = h("div", {}, comb, legend);
  const stage = h("div", { class: "mm-stage mm-column" }, dials, whole);
  const folded = h("div", {});

  function draw(width) {
    const s = combState(model);
    const home = width < NARROW ? folded : stage; // a phone has room for the dials alone
    if (whole.parentNode !== home) home.append(whole);
    for (const part of [comb, dials, scales]) part.draw(s, Math.round(width));
    controls.draw(s);
    const { first, rest: others } = combNumbers(words, s);
    rest.set(others);
    return { title: s.kinds.includes("new") ? words.title : words.titleWithoutNews, numbers: first };
  }
  return {
    stage,
    control: row(controls.formula),
    numbers,
    more: [folded, controls.others, h("div", {}, scales, others), rest],
    parts: [comb],
    draw,
  };
}

export default figure({
  words: frequencyCombWords,
  traits: TRAITS,
  create: createWhole,
});
