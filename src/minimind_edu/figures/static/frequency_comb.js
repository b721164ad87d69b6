// FrequencyComb: one tooth a pair, at its wavelength, before and after scaling; below it, by how much it was scaled.

import { h, svg, fmt, slider, choice, readout, draggable, mount } from "./kit.js";
import { ropePeriods, pairScaling, unfinishedPairs, meetsNewAngles, scoreChange } from "./frequency_comb_math.js";

const TRAITS = ["rope_base", "head_dim", "context", "factor", "beta_fast", "beta_slow", "formula"];
const FORMULAS = [["none", "none"], ["linear", "linear"], ["yarn", "YaRN"], ["minimind2", "MiniMind2"]];
const AXIS = { first: 0.6, last: 9.6, left: 36, right: 10 }; // powers of ten: room for base 1e7, slowed 64 times
const BASE = { low: 4, high: 7, step: 0.05 }; // powers of ten
const CONTEXT = { low: 9, high: 15 }; // powers of two
const ROWS = { handle: 26, upper: [38, 70], lower: [108, 140], axis: 152, plot: [234, 346] }; // y
const HEIGHT = 380;
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const NOTE = "A pair that completed no turn in training has angles it never met, and a longer text leads it there unless it is slowed. Slowing a fast pair is not free either: near distances then score differently.";

const COMB_CSS = `
.fc-stage { display: grid !important; gap: 12px !important; justify-content: stretch !important; }
.fc-choices { display: flex; flex-wrap: wrap; gap: 10px 24px; }
.fc-legend { display: flex; flex-wrap: wrap; gap: 4px 20px; color: var(--mm-muted); font-size: 13px; line-height: 1.4; }
.fc-legend svg { display: inline-block !important; width: 14px; height: 14px; margin-right: 6px; vertical-align: -2px; }
.fc-known { --fc-color: var(--mm-good); }
.fc-safe { --fc-color: var(--mm-accent2); }
.fc-new { --fc-color: var(--mm-bad); }
.fc-teeth { fill: none; stroke: var(--fc-color); stroke-width: 2; }
.fc-links { fill: none; stroke: var(--fc-color); stroke-width: 1; opacity: 0.45; }
.fc-point { fill: var(--fc-color); stroke: var(--fc-color); stroke-width: 1.5; }
.fc-safe .fc-point { fill: var(--mm-bg); }
.fc-ghost { fill: none; stroke: var(--mm-muted); stroke-width: 1; stroke-dasharray: 2 3; }
.fc-axis { stroke: var(--mm-muted); stroke-width: 1.25; }
.fc-grid { stroke: var(--mm-line); stroke-width: 1; }
.fc-trained { stroke: var(--mm-ink); stroke-width: 1.75; }
.fc-extended { stroke: var(--mm-ink); stroke-width: 1.75; stroke-dasharray: 5 4; }
.fc-guide { stroke: var(--mm-accent); stroke-width: 1.5; stroke-dasharray: 3 3; }
.mm-fig text.fc-small { fill: var(--mm-muted); font-size: 12px; }
.mm-fig text.fc-strong { font-size: 12.5px; font-weight: 600; }
.mm-fig text.fc-turns { fill: var(--mm-accent); font-size: 12px; font-weight: 600; }
.mm-fig text.fc-halo { paint-order: stroke; stroke: var(--mm-bg); stroke-width: 4px; stroke-linejoin: round; }
.fc-handle { outline: none !important; }
.fc-grip { fill: var(--mm-bg); stroke: var(--mm-ink); stroke-width: 2.5; }
.fc-ring { fill: none; stroke: transparent; stroke-width: 2; }
.fc-handle:focus-visible .fc-ring { stroke: var(--mm-ink); }
`;

const within = (x, low, high) => Math.min(high, Math.max(low, x));
const separated = (x) => String(Math.round(x)).replace(/\B(?=(\d{3})+$)/g, ",");
const put = (node, attrs) => Object.entries(attrs).forEach(([name, value]) => node.setAttribute(name, value));
const baseFrom = (power) => Number((10 ** within(Math.round(power / BASE.step) * BASE.step, BASE.low, BASE.high)).toPrecision(6));
const contextFrom = (power) => 2 ** within(Math.round(power), CONTEXT.low, CONTEXT.high);
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;

/** Everything that the drawing and the key numbers need. */
function combState(model) {
  const [base, dim, context, factor, fast, slow, formula] = TRAITS.map((name) => model.get(name));
  const scalingBy = (name) => pairScaling(name, dim, base, context, factor, fast, slow);
  const periods = ropePeriods(dim, base);
  const scaling = scalingBy(formula);
  const news = meetsNewAngles(dim, base, context, factor, scaling);
  const kinds = periods.map((period, pair) => (news[pair] ? "new" : period > context ? "safe" : "known"));
  const others = FORMULAS.map(([name]) => name).filter((name) => name !== formula && name !== "none").map(scalingBy);
  return { base, dim, context, factor, fast, slow, formula, periods, scaling, kinds, others, extended: context * factor };
}

/** "0–8", "5" or "none": which pairs the condition holds for. They are neighbors, because scales only fall. */
function pairsWhere(scaling, condition) {
  const pairs = scaling.map((_, pair) => pair).filter((pair) => condition(scaling[pair]));
  if (!pairs.length) return "none";
  return pairs.length === 1 ? String(pairs[0]) : `${pairs[0]}–${pairs.at(-1)}`;
}

function combNumbers(s) {
  const pairs = s.periods.length;
  const [kept, whole] = [(scale) => scale > 1 - 1e-9, (scale) => scale < 1 / s.factor + 1e-9];
  const count = s.kinds.filter((kind) => kind === "new").length;
  const rows = [
    [`without a turn in ${separated(s.context)}`, `${unfinishedPairs(s.dim, s.base, s.context)} of ${pairs} pairs`],
    [`without a turn in ${separated(s.extended)}`, `${unfinishedPairs(s.dim, s.base, s.extended)} of ${pairs} pairs`],
    [`meet new angles in ${separated(s.extended)}`, `${count} of ${pairs} pairs`, count ? "bad" : "good"],
  ];
  if (s.formula === "none" || s.factor === 1) return rows;
  rows.push(
    ["pairs left alone", pairsWhere(s.scaling, kept)],
    ["slowed a little", pairsWhere(s.scaling, (scale) => !kept(scale) && !whole(scale))],
    [`slowed ${fmt(s.factor, 0)} times`, pairsWhere(s.scaling, whole)],
    ["change of scores at distance 1", fmt(scoreChange(s.dim, s.base, s.scaling, 1), 4)],
  );
  if (s.formula === "yarn") rows.push(["attention factor (paper)", fmt(0.1 * Math.log(s.factor) + 1, 4)]);
  return rows;
}

function createHandle(label, low, high, keys) {
  const root = svg("g", { class: "fc-handle", tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": low, "aria-valuemax": high },
    svg("circle", { r: 16, fill: "transparent" }), svg("circle", { class: "fc-ring", r: 10 }), svg("circle", { class: "fc-grip", r: 5.5 }));
  const release = draggable(root, {
    onMove: (px, _, event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (step) keys.step(step);
      else keys.to(px);
    },
  });
  return { root, release };
}

/** A mark of each kind: filled circle, hollow circle, square. */
function pointOf(kind, cx, cy) {
  if (kind === "new") return svg("rect", { class: "fc-point", x: cx - 2.5, y: cy - 2.5, width: 5, height: 5 });
  return svg("circle", { class: "fc-point", cx, cy, r: 2.6 });
}

function createComb(change) {
  let now = { s: null, x: null, perPower: 1 };
  const powerAt = (px) => AXIS.first + (px - AXIS.left) / now.perPower;
  const context = createHandle("trained length", 2 ** CONTEXT.low, 2 ** CONTEXT.high, {
    step: (step) => change("context", contextFrom(Math.log2(now.s.context) + step)),
    to: (px) => change("context", contextFrom(powerAt(px) / Math.log10(2))),
  });
  const base = createHandle("rope_base, at the wavelength of the slowest pair", 10 ** BASE.low, 10 ** BASE.high, {
    step: (step) => change("rope_base", baseFrom(Math.log10(now.s.base) + 2 * step * BASE.step)),
    to: (px) => change("rope_base", baseFrom((powerAt(px) - Math.log10(2 * Math.PI)) / (1 - 2 / now.s.dim))),
  });
  const [frame, teeth, plot, words] = [svg("g"), svg("g"), svg("g"), svg("g")];
  const trained = svg("line", { class: "fc-trained", y1: ROWS.handle, y2: ROWS.axis });
  const extended = svg("line", { class: "fc-extended", y1: 18, y2: ROWS.axis });
  const root = svg("svg", { height: HEIGHT, role: "group", style: "touch-action: pan-y" }, frame, extended, trained, teeth, plot, words, base.root, context.root);

  function drawFrame(x, width) {
    const powers = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    const y = ROWS.axis;
    frame.replaceChildren(
      svg("line", { class: "fc-axis", x1: AXIS.left, x2: width - AXIS.right, y1: y, y2: y }),
      ...powers.map((power) => svg("line", { class: "fc-axis", x1: x(10 ** power), x2: x(10 ** power), y1: y, y2: y + 4 })),
      ...powers.map((power) => svg("text", { class: "fc-small", x: x(10 ** power), y: y + 18, "text-anchor": "middle" }, `10${SUPERSCRIPTS[power]}`)),
      svg("text", { class: "fc-small", x: (AXIS.left + width - AXIS.right) / 2, y: y + 34, "text-anchor": "middle" }, "positions for one full turn (logarithmic)"),
    );
  }

  function drawTeeth(s, x) {
    const [[a, b], [c, d]] = [ROWS.upper, ROWS.lower];
    const groups = ["known", "safe", "new"].map((kind) => {
      const pairs = s.periods.map((_, pair) => pair).filter((pair) => s.kinds[pair] === kind);
      const before = (pair) => x(s.periods[pair]).toFixed(1);
      const after = (pair) => x(s.periods[pair] / s.scaling[pair]).toFixed(1);
      const path = (piece) => pairs.map(piece).join("");
      const foot = kind === "new" ? d + 7 : d; // longer, so that color is not alone
      return svg("g", { class: `fc-${kind}` },
        svg("path", { class: "fc-links", d: path((pair) => `M${before(pair)} ${b}L${after(pair)} ${c}`) }),
        svg("path", { class: "fc-teeth", d: path((pair) => `M${before(pair)} ${a}V${b}M${after(pair)} ${c}V${foot}`) }));
    });
    teeth.replaceChildren(...groups);
  }

  function drawScales(s, x, width) {
    const [top, bottom] = ROWS.plot;
    const y = (scale) => bottom - scale * (bottom - top);
    const line = (scales) => `M${scales.map((scale, pair) => `${x(s.periods[pair]).toFixed(1)} ${y(scale).toFixed(1)}`).join("L")}`;
    const levels = [[1, "1"], [0.5, "½"], [0, "0"]];
    const stride = s.dim === 128 ? 16 : 8;
    const named = s.periods.map((_, pair) => pair).filter((pair) => pair % stride === 0 || pair === s.periods.length - 1);
    plot.replaceChildren(
      ...levels.map(([v]) => svg("line", { class: "fc-grid", x1: AXIS.left, x2: width - AXIS.right, y1: y(v), y2: y(v) })),
      ...levels.map(([v, text]) => svg("text", { class: "fc-small", x: AXIS.left - 7, y: y(v) + 4, "text-anchor": "end" }, text)),
      ...s.others.map((scales) => svg("path", { class: "fc-ghost", d: line(scales) })),
      ...s.scaling.map((scale, pair) => svg("g", { class: `fc-${s.kinds[pair]}` }, pointOf(s.kinds[pair], x(s.periods[pair]), y(scale)))),
      ...named.filter((pair) => pair + stride / 2 < s.periods.length || pair === s.periods.length - 1)
        .map((pair) => svg("text", { class: "fc-small", x: x(s.periods[pair]), y: bottom + 17, "text-anchor": "middle" }, String(pair))),
      svg("text", { class: "fc-small", x: (x(s.periods[0]) + x(s.periods.at(-1))) / 2, y: bottom + 32, "text-anchor": "middle" }, "pair"),
    );
  }

  function drawWords(s, x, width) {
    const guides = s.formula === "yarn" ? [[s.fast, "end"], [s.slow, "start"]] : [];
    const turns = (count) => `${fmt(count, Number.isInteger(count) ? 0 : 1)} ${count === 1 ? "turn" : "turns"}`;
    const [top, bottom] = ROWS.plot;
    const extendedName = `extended ${separated(s.extended)}`;
    words.replaceChildren(
      svg("text", { class: "fc-strong fc-halo", x: Math.max(x(s.context) - 6, 86), y: 13, "text-anchor": "end" }, `trained ${separated(s.context)}`),
      svg("text", { class: "fc-strong fc-halo", x: Math.min(x(s.extended) + 5, width - 7.4 * extendedName.length), y: 13 }, extendedName),
      svg("text", { class: "fc-small fc-halo", x: 0, y: ROWS.upper[0] - 8 }, "as trained"),
      svg("text", { class: "fc-small fc-halo", x: 0, y: ROWS.lower[0] - 8 }, s.formula === "none" ? "not slowed" : "slowed"),
      svg("text", { class: "fc-small fc-halo", x: 0, y: top - 26 }, "each pair's frequency is multiplied by"),
      ...guides.map(([beta]) => svg("line", { class: "fc-guide", x1: x(s.context / beta), x2: x(s.context / beta), y1: top - 6, y2: bottom })),
      ...guides.map(([beta, anchor]) => svg("text", { class: "fc-turns fc-halo", x: Math.max(x(s.context / beta) + (anchor === "end" ? -3 : 3), anchor === "end" ? 52 : 0), y: top - 9, "text-anchor": anchor }, turns(beta))),
    );
  }

  function draw(s, width) {
    const perPower = (width - AXIS.left - AXIS.right) / (AXIS.last - AXIS.first);
    const x = (positions) => AXIS.left + (Math.log10(positions) - AXIS.first) * perPower;
    now = { s, x, perPower };
    put(root, { width, viewBox: `0 0 ${width} ${HEIGHT}` });
    drawFrame(x, width);
    drawTeeth(s, x);
    drawScales(s, x, width);
    drawWords(s, x, width);
    put(trained, { x1: x(s.context), x2: x(s.context) });
    put(extended, { x1: x(s.extended), x2: x(s.extended) });
    put(context.root, { transform: `translate(${x(s.context)} ${ROWS.handle})`, "aria-valuenow": s.context, "aria-valuetext": `${separated(s.context)} positions` });
    put(base.root, { transform: `translate(${x(s.periods.at(-1))} ${mean(ROWS.upper)})`, "aria-valuenow": s.base, "aria-valuetext": `${separated(s.base)}, slowest pair ${separated(s.periods.at(-1))} positions` });
    put(root, { "aria-label": `${s.periods.length} wavelengths from ${fmt(s.periods[0], 1)} to ${separated(s.periods.at(-1))} positions, and what each frequency is multiplied by, from ${fmt(s.scaling[0], 3)} to ${fmt(s.scaling.at(-1), 3)}` });
  }
  return { root, draw, release: () => [context, base].forEach((handle) => handle.release()) };
}

function createLegend() {
  const entry = (kind, text) => h("span", {}, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true", class: `fc-${kind}` }, pointOf(kind, 5, 5)), text);
  return h("div", { class: "fc-legend" },
    entry("known", "has turned at least once in training"), entry("safe", "has not, but meets no new angle"), entry("new", "meets angles it never had"),
    h("span", {}, svg("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, svg("path", { class: "fc-ghost", d: "M0 5H10" })), "the other ways"));
}

/** All controls, each writing one trait. */
function createControls(model, change) {
  const trait = (name, digits = 0) => () => (digits ? fmt(model.get(name), digits) : separated(model.get(name)));
  const base = slider({ label: "rope_base", min: BASE.low, max: BASE.high, step: BASE.step, value: 6, format: trait("rope_base"), onInput: (power) => change("rope_base", baseFrom(power)) });
  const context = slider({ label: "trained length", min: CONTEXT.low, max: CONTEXT.high, step: 1, value: 11, format: trait("context"), onInput: (power) => change("context", contextFrom(power)) });
  const factor = slider({ label: "factor s", min: 0, max: 6, step: 1, value: 4, format: trait("factor"), onInput: (power) => change("factor", 2 ** power) });
  const fast = slider({ label: "beta_fast (turns)", min: 4, max: 64, step: 1, value: 32, format: trait("beta_fast"), onInput: (value) => change("beta_fast", value), tone: "accent" });
  const slow = slider({ label: "beta_slow (turns)", min: 0.5, max: 3.5, step: 0.5, value: 1, format: trait("beta_slow", 1), onInput: (value) => change("beta_slow", value), tone: "accent" });
  const dim = choice({ label: "head_dim", options: [64, 96, 128].map((value) => ({ value, label: String(value) })), value: 96, onChange: (value) => change("head_dim", value) });
  const formula = choice({ label: "context extension", options: FORMULAS.map(([value, label]) => ({ value, label })), value: "yarn", onChange: (value) => change("formula", value) });
  function set(s) {
    base.set(Math.log10(s.base));
    context.set(Math.log2(s.context));
    factor.set(Math.log2(s.factor));
    fast.set(s.fast);
    slow.set(s.slow);
    dim.set(s.dim);
    formula.set(s.formula);
    for (const beta of [fast, slow]) beta.root.hidden = s.formula !== "yarn" && s.formula !== "minimind2";
  }
  const sliders = [base, context, factor, fast, slow].map((control) => control.root);
  return { choices: h("div", { class: "fc-choices" }, formula.root, dim.root), sliders: h("div", { class: "mm-controls" }, sliders), set };
}

function renderComb({ model, el }) {
  const change = (name, value) => {
    if (model.get(name) === value) return;
    model.set(name, value);
    model.save_changes();
  };
  const comb = createComb(change);
  const controls = createControls(model, change);
  const numbers = readout([]);
  const box = h("div", {}, comb.root);
  const root = h("div", { class: "mm-fig fc-fig" }, h("style", {}, COMB_CSS),
    h("div", { class: "mm-stage fc-stage" }, controls.choices, box, createLegend()), controls.sliders, numbers.root, h("p", { class: "mm-note" }, NOTE));
  function draw(width) {
    const s = combState(model);
    comb.draw(s, Math.round(width));
    controls.set(s);
    numbers.set(combNumbers(s));
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [box], draw, parts: [comb] });
}

export default { render: renderComb };
