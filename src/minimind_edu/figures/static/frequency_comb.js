// FrequencyComb: one tooth a pair, at its wavelength, before and after scaling; below it, by how much it was scaled.

import { h, svg, textAt, setAttributes, setSize, setTraits, clamp, arrowStep, draggable, mount } from "./kit.js";
import { fmt, grouped, slider, choice, optionsFor, readout, handle, grip } from "./kit.js";
import { ropePeriods, pairScaling, unfinishedPairs, meetsNewAngles, scoreChange } from "./frequency_comb_math.js";

const TRAITS = ["rope_base", "head_dim", "context", "factor", "beta_fast", "beta_slow", "formula"];
const FORMULAS = { none: "none", linear: "linear", yarn: "YaRN", minimind2: "MiniMind2" };
const HEAD_DIMS = [64, 96, 128];
const AXIS = { first: 0.6, last: 9.6, left: 36, right: 10 }; // powers of ten: room for base 1e7, slowed 64 times
const BASE = { low: 4, high: 7, step: 0.05 }; // powers of ten
const CONTEXT = { low: 9, high: 15 }; // powers of two
const ROWS = { handle: 26, upper: [38, 70], lower: [108, 140], axis: 152, plot: [234, 346] }; // y
const HEIGHT = 380;
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const NOTE =
  "A pair that completed no turn in training has angles it never met, and a longer text leads it there unless it is " +
  "slowed. Slowing a fast pair is not free either: near distances then score differently.";

const baseStep = (power) => clamp(Math.round(power / BASE.step) * BASE.step, BASE.low, BASE.high);
const baseFrom = (power) => Number((10 ** baseStep(power)).toPrecision(6));
const contextFrom = (power) => 2 ** clamp(Math.round(power), CONTEXT.low, CONTEXT.high);
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
const pathOf = (points) => `M${points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}`;

/** Everything that the drawing and the key numbers need. */
function combState(model) {
  const [base, dim, context, factor, fast, slow, formula] = TRAITS.map((name) => model.get(name));
  const scalingBy = (name) => pairScaling(name, dim, base, context, factor, fast, slow);
  const periods = ropePeriods(dim, base);
  const scaling = scalingBy(formula);
  const news = meetsNewAngles(dim, base, context, factor, scaling);
  const kinds = periods.map((period, pair) => (news[pair] ? "new" : period > context ? "safe" : "known"));
  const others = Object.keys(FORMULAS).filter((name) => name !== formula && name !== "none");
  const settings = { base, dim, context, factor, fast, slow, formula, extended: context * factor };
  return { ...settings, periods, scaling, kinds, others: others.map(scalingBy) };
}

/** "0–8", "5" or "none": which pairs the condition holds for. They are neighbors, because scales only fall. */
function pairsWhere(scaling, condition) {
  const pairs = scaling.map((_, pair) => pair).filter((pair) => condition(scaling[pair]));
  if (!pairs.length) return "none";
  return pairs.length === 1 ? String(pairs[0]) : `${pairs[0]}–${pairs.at(-1)}`;
}

function combNumbers(s) {
  const pairs = s.periods.length;
  const isKept = (scale) => scale > 1 - 1e-9;
  const isSlowed = (scale) => scale < 1 / s.factor + 1e-9; // by the whole factor
  const count = s.kinds.filter((kind) => kind === "new").length;
  const rows = [
    [`without a turn in ${grouped(s.context)}`, `${unfinishedPairs(s.dim, s.base, s.context)} of ${pairs} pairs`],
    [`without a turn in ${grouped(s.extended)}`, `${unfinishedPairs(s.dim, s.base, s.extended)} of ${pairs} pairs`],
    [`meet new angles in ${grouped(s.extended)}`, `${count} of ${pairs} pairs`, count ? "bad" : "good"],
  ];
  if (s.formula === "none" || s.factor === 1) return rows;
  rows.push(
    ["pairs left alone", pairsWhere(s.scaling, isKept)],
    ["slowed a little", pairsWhere(s.scaling, (scale) => !isKept(scale) && !isSlowed(scale))],
    [`slowed ${fmt(s.factor, 0)} times`, pairsWhere(s.scaling, isSlowed)],
    ["change of scores at distance 1", fmt(scoreChange(s.dim, s.base, s.scaling, 1), 4)],
  );
  if (s.formula === "yarn") rows.push(["attention factor (paper)", fmt(0.1 * Math.log(s.factor) + 1, 4)]);
  return rows;
}

/** A handle on the axis of positions: arrow keys step, a drag leads to a place. */
function createHandle(label, min, max, { step, to }) {
  const root = handle({ label, min, max, reach: 16, ring: 10, shape: grip(5.5) });
  const onMove = (px, _, event) => {
    const direction = Math.sign(arrowStep(event));
    if (direction) step(direction);
    else to(px);
  };
  return { root, release: draggable(root, { onMove }) };
}

/** A mark of each kind: filled circle, hollow circle, square. */
function pointOf(kind, cx, cy) {
  if (kind === "new") return svg("rect", { class: "fc-point", x: cx - 2.5, y: cy - 2.5, width: 5, height: 5 });
  return svg("circle", { class: "fc-point", cx, cy, r: 2.6 });
}

function drawAxis(x, width) {
  const powers = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  const [y, middle] = [ROWS.axis, (AXIS.left + width - AXIS.right) / 2];
  const tick = (power) => svg("line", { class: "fc-axis", x1: x(10 ** power), x2: x(10 ** power), y1: y, y2: y + 4 });
  return [
    svg("line", { class: "fc-axis", x1: AXIS.left, x2: width - AXIS.right, y1: y, y2: y }),
    ...powers.map(tick),
    ...powers.map((power) => textAt(x(10 ** power), y + 18, `10${SUPERSCRIPTS[power]}`, "fc-small", "middle")),
    textAt(middle, y + 34, "positions for one full turn (logarithmic)", "fc-small", "middle"),
  ];
}

/** Every pair as a tooth, as trained above and slowed below, joined by a line. */
function drawTeeth(s, x) {
  const [[a, b], [c, d]] = [ROWS.upper, ROWS.lower];
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

/** By what each pair's frequency is multiplied, over its wavelength; the other formulas as dashed lines. */
function drawScales(s, x, width) {
  const [top, bottom] = ROWS.plot;
  const [first, last] = [s.periods[0], s.periods.at(-1)];
  const y = (scale) => bottom - scale * (bottom - top);
  const line = (scales) => pathOf(scales.map((scale, pair) => [x(s.periods[pair]), y(scale)]));
  const rule = (level) =>
    svg("line", { class: "fc-grid", x1: AXIS.left, x2: width - AXIS.right, y1: y(level), y2: y(level) });
  const levels = { 1: "1", 0.5: "½", 0: "0" };
  const stride = s.dim === 128 ? 16 : 8;
  const end = s.periods.length - 1;
  const isNamed = (pair) => pair === end || (pair % stride === 0 && pair + stride / 2 <= end);
  const named = s.periods.map((_, pair) => pair).filter(isNamed);
  const point = (scale, pair) => pointOf(s.kinds[pair], x(s.periods[pair]), y(scale));
  return [
    ...[1, 0.5, 0].map(rule),
    ...[1, 0.5, 0].map((level) => textAt(AXIS.left - 7, y(level) + 4, levels[level], "fc-small", "end")),
    ...s.others.map((scales) => svg("path", { class: "fc-ghost", d: line(scales) })),
    ...s.scaling.map((scale, pair) => svg("g", { class: `fc-${s.kinds[pair]}` }, point(scale, pair))),
    ...named.map((pair) => textAt(x(s.periods[pair]), bottom + 17, String(pair), "fc-small", "middle")),
    textAt((x(first) + x(last)) / 2, bottom + 32, "pair", "fc-small", "middle"),
  ];
}

/** The two ends of YaRN's ramp: a pair turns beta times in the trained context. */
function drawRampEnds(s, x) {
  const [top, bottom] = ROWS.plot;
  const turns = (beta) => `${fmt(beta, Number.isInteger(beta) ? 0 : 1)} ${beta === 1 ? "turn" : "turns"}`;
  const guide = (at) => svg("line", { class: "fc-guide", x1: at, x2: at, y1: top - 6, y2: bottom });
  const [fast, slow] = [s.fast, s.slow].map((beta) => x(s.context / beta));
  return [
    guide(fast),
    guide(slow),
    textAt(Math.max(fast - 3, 52), top - 9, turns(s.fast), "fc-turns fc-halo", "end"),
    textAt(Math.max(slow + 3, 0), top - 9, turns(s.slow), "fc-turns fc-halo"),
  ];
}

function drawWords(s, x, width) {
  const [trained, extended] = [`trained ${grouped(s.context)}`, `extended ${grouped(s.extended)}`];
  const room = 7.4 * extended.length; // what the words at the right need
  return [
    textAt(Math.max(x(s.context) - 6, 86), 13, trained, "fc-strong fc-halo", "end"),
    textAt(Math.min(x(s.extended) + 5, width - room), 13, extended, "fc-strong fc-halo"),
    textAt(0, ROWS.upper[0] - 8, "as trained", "fc-small fc-halo"),
    textAt(0, ROWS.lower[0] - 8, s.formula === "none" ? "not slowed" : "slowed", "fc-small fc-halo"),
    textAt(0, ROWS.plot[0] - 26, "each pair's frequency is multiplied by", "fc-small fc-halo"),
    ...(s.formula === "yarn" ? drawRampEnds(s, x) : []),
  ];
}

function createComb(change) {
  let now = { s: null, perPower: 1 };
  const powerAt = (px) => AXIS.first + (px - AXIS.left) / now.perPower;
  const context = createHandle("trained length", 2 ** CONTEXT.low, 2 ** CONTEXT.high, {
    step: (step) => change("context", contextFrom(Math.log2(now.s.context) + step)),
    to: (px) => change("context", contextFrom(powerAt(px) / Math.log10(2))),
  });
  const base = createHandle("rope_base, at the wavelength of the slowest pair", 10 ** BASE.low, 10 ** BASE.high, {
    step: (step) => change("rope_base", baseFrom(Math.log10(now.s.base) + 2 * step * BASE.step)),
    to: (px) => change("rope_base", baseFrom((powerAt(px) - Math.log10(2 * Math.PI)) / (1 - 2 / now.s.dim))),
  });
  const [axis, teeth, plot, words] = [svg("g"), svg("g"), svg("g"), svg("g")];
  const trained = svg("line", { class: "fc-trained", y1: ROWS.handle, y2: ROWS.axis });
  const extended = svg("line", { class: "fc-extended", y1: 18, y2: ROWS.axis });
  const drawing = { role: "group", style: "touch-action: pan-y" };
  const root = svg("svg", drawing, axis, extended, trained, teeth, plot, words, base.root, context.root);

  function describe(s) {
    const [first, last] = [fmt(s.periods[0], 1), grouped(s.periods.at(-1))];
    const [largest, smallest] = [s.scaling[0], s.scaling.at(-1)].map((scale) => fmt(scale, 3));
    const multiplied = `what each frequency is multiplied by, from ${largest} to ${smallest}`;
    const wavelengths = `${s.periods.length} wavelengths from ${first} to ${last} positions, and ${multiplied}`;
    setAttributes(context.root, { "aria-valuenow": s.context, "aria-valuetext": `${grouped(s.context)} positions` });
    const slowest = `${grouped(s.base)}, slowest pair ${last} positions`;
    setAttributes(base.root, { "aria-valuenow": s.base, "aria-valuetext": slowest });
    setAttributes(root, { "aria-label": wavelengths });
  }

  function draw(s, width) {
    const perPower = (width - AXIS.left - AXIS.right) / (AXIS.last - AXIS.first);
    const x = (positions) => AXIS.left + (Math.log10(positions) - AXIS.first) * perPower;
    now = { s, perPower };
    setSize(root, width, HEIGHT);
    axis.replaceChildren(...drawAxis(x, width));
    teeth.replaceChildren(...drawTeeth(s, x));
    plot.replaceChildren(...drawScales(s, x, width));
    words.replaceChildren(...drawWords(s, x, width));
    setAttributes(trained, { x1: x(s.context), x2: x(s.context) });
    setAttributes(extended, { x1: x(s.extended), x2: x(s.extended) });
    setAttributes(context.root, { transform: `translate(${x(s.context)} ${ROWS.handle})` });
    setAttributes(base.root, { transform: `translate(${x(s.periods.at(-1))} ${mean(ROWS.upper)})` });
    describe(s);
  }
  return { root, draw, release: () => [context, base].forEach((one) => one.release()) };
}

function createLegend() {
  const key = (cls, shape) => svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true", class: cls }, shape);
  const entry = (kind, text) => h("span", {}, key(`fc-${kind}`, pointOf(kind, 5, 5)), text);
  return h(
    "div",
    { class: "fc-legend" },
    entry("known", "has turned at least once in training"),
    entry("safe", "has not, but meets no new angle"),
    entry("new", "meets angles it never had"),
    h("span", {}, key(null, svg("path", { class: "fc-ghost", d: "M0 5H10" })), "the other ways"),
  );
}

/** All controls, each writing one trait. */
function createControls(model, change) {
  const whole = (name) => () => grouped(model.get(name));
  const oneDigit = (name) => () => fmt(model.get(name), 1);
  const base = slider({
    label: "rope_base",
    min: BASE.low,
    max: BASE.high,
    step: BASE.step,
    value: 6,
    format: whole("rope_base"),
    onInput: (power) => change("rope_base", baseFrom(power)),
  });
  const context = slider({
    label: "trained length",
    min: CONTEXT.low,
    max: CONTEXT.high,
    step: 1,
    value: 11,
    format: whole("context"),
    onInput: (power) => change("context", contextFrom(power)),
  });
  const factor = slider({
    label: "factor s",
    min: 0,
    max: 6,
    step: 1,
    value: 4,
    format: whole("factor"),
    onInput: (power) => change("factor", 2 ** power),
  });
  const beta = (name, format, range) => {
    const onInput = (value) => change(name, value);
    return slider({
      label: `${name} (turns)`,
      ...range,
      value: range.min,
      format: format(name),
      onInput,
      tone: "accent",
    });
  };
  const fast = beta("beta_fast", whole, { min: 4, max: 64, step: 1 });
  const slow = beta("beta_slow", oneDigit, { min: 0.5, max: 3.5, step: 0.5 });
  const choiceOf = (name, label, options) => {
    const onChange = (value) => change(name, value);
    return choice({ label, options, value: model.get(name), onChange });
  };
  const dim = choiceOf("head_dim", "head_dim", optionsFor(HEAD_DIMS));
  const formula = choiceOf(
    "formula",
    "context extension",
    optionsFor(Object.keys(FORMULAS), (name) => FORMULAS[name]),
  );

  function set(s) {
    base.set(Math.log10(s.base));
    context.set(Math.log2(s.context));
    factor.set(Math.log2(s.factor));
    fast.set(s.fast);
    slow.set(s.slow);
    dim.set(s.dim);
    formula.set(s.formula);
    for (const control of [fast, slow]) control.root.hidden = s.formula !== "yarn" && s.formula !== "minimind2";
  }
  const choices = h("div", { class: "fc-choices" }, formula.root, dim.root);
  const sliders = [base, context, factor, fast, slow].map((control) => control.root);
  return { choices, sliders: h("div", { class: "mm-controls" }, sliders), set };
}

function renderComb({ model, el }) {
  const change = (name, value) => {
    if (model.get(name) !== value) setTraits(model, { [name]: value });
  };
  const comb = createComb(change);
  const controls = createControls(model, change);
  const numbers = readout([]);
  const box = h("div", {}, comb.root);
  const stage = h("div", { class: "mm-stage fc-stage" }, controls.choices, box, createLegend());
  const note = h("p", { class: "mm-note" }, NOTE);
  const root = h("div", { class: "mm-fig fc-fig" }, stage, controls.sliders, numbers.root, note);

  function draw(width) {
    const s = combState(model);
    comb.draw(s, Math.round(width));
    controls.set(s);
    numbers.set(combNumbers(s));
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [box], draw, parts: [comb] });
}

export default { render: renderComb };
