// GateSurface: a point in the plane of gate and value, the output of a gated and a plain neuron, two cross-sections.

import { draggable, handle, grip } from "../../web/kit/drag.js";
import { WIDE, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, slider, choice } from "../../web/kit/kit.js";
import { optionsFor, namedOptions, readout, row, setTraits } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, lineThrough, across, upright } from "../../web/kit/chart.js";
import { LIMIT, activate, neuronOutput, regionsBeyond } from "./math.js";
import { gateSurfaceWords } from "./words.js";

const TRAITS = ["gate", "value", "activation", "gated"];
const LEVELS = [0.1, 0.3, 0.6, 1, 1.6, 2.5, 4, 6]; // where the shade of the surface changes
const COLUMNS = 181;
const STEP = 0.05; // of gate and value
const HIGHEST = 9; // of the sections' axis: no output is larger in the plane
const SHUT = 0.05; // a gate that lets less pass counts as shut
const PLANE = { left: 23, right: 8, top: 24, bottom: 22 };
const SECTION = { left: 23, right: 8, top: 24, bottom: 8 };
const TALL = 290; // a plane grows no further

const rounded = (x) => Math.round(clamp(x, -LIMIT, LIMIT) / STEP) * STEP;

function surfaceState(model) {
  const [g, u, name, isGated] = TRAITS.map((trait) => model.get(trait));
  const factor = activate(name, g);
  return { g, u, name, isGated, factor, output: neuronOutput(name, isGated, g, u) };
}

/** One plane: the surface as shades between levels, the lines of the sections, the point to drag. */
function createPlane(words, isGated, move) {
  const root = svg("svg", { role: "group", class: "gs-plane" });
  const title = textAt(0, 13, "", { cls: "mm-small mm-strong" });
  const surface = svg("g", { "data-sym": "ffn" });
  const axes = svg("g");
  const lines = { g: svg("line", { class: "gs-cut" }), u: svg("line", { class: "gs-cut" }) };
  const border = svg("rect", { class: "gs-border" });
  const point = handle({ label: words.point, min: -LIMIT, max: LIMIT, reach: 18, ring: 12, shape: grip(7) });
  fill(root, title, surface, axes, lines.g, lines.u, border, point);
  let [scale, drawn, now] = [null, "", null];

  function scaleFor(width) {
    const side = Math.min(width, TALL) - PLANE.left - PLANE.right;
    const x = linear([-LIMIT, LIMIT], [PLANE.left, PLANE.left + side]);
    const y = linear([LIMIT, -LIMIT], [PLANE.top, PLANE.top + side]);
    return { side, x, y };
  }

  function pathOf(run) {
    const above = run.map(([g, , high]) => [scale.x(g), scale.y(high)]);
    const below = run.map(([g, low]) => [scale.x(g), scale.y(low)]).reverse();
    return `${lineThrough([...above, ...below])}Z`;
  }

  function drawSurface(name) {
    const shades = [1, -1].flatMap((sign) =>
      LEVELS.map((level) => {
        const d = regionsBeyond(name, isGated, sign * level, COLUMNS)
          .map(pathOf)
          .join("");
        return d && svg("path", { class: sign > 0 ? "gs-plus" : "gs-minus", d });
      }),
    );
    fill(surface, shades.filter(Boolean));
  }

  function drawAxes() {
    const { side, x, y } = scale;
    const [right, floor] = [PLANE.left + side, PLANE.top + side];
    const ends = [-LIMIT, 0, LIMIT];
    const anchors = ["start", "middle", "end"];
    fill(
      axes,
      upright(x(0), PLANE.top, floor, "gs-zero"),
      across(y(0), PLANE.left, right, "gs-zero"),
      ends.map((end, i) => textAt(x(end), floor + 15, fmt(end, 0), { anchor: anchors[i] })),
      ends.map((end, i) => textAt(PLANE.left - 4, y(end) + [0, 4, 9][i], fmt(end, 0), { anchor: "end" })),
      textAt((x(0) + right) / 2, floor + 15, words.gateAxis, { anchor: "middle", cls: "gs-name" }),
      textAt(PLANE.left - 4, (y(0) + PLANE.top) / 2 + 4, words.valueAxis, { anchor: "end", cls: "gs-name" }),
    );
    setAttributes(border, { x: PLANE.left, y: PLANE.top, width: side, height: side });
  }

  function draw(s, width) {
    now = s;
    const key = `${s.name} ${width}`;
    const name = words.activations[s.name];
    const text = isGated ? words.gatedPlane(name) : words.plainPlane(name);
    if (key !== drawn) {
      scale = scaleFor(width);
      const { side } = scale;
      setSize(root, PLANE.left + side + PLANE.right, PLANE.top + side + PLANE.bottom, words.surface(text));
      drawSurface(s.name);
      drawAxes();
      title.textContent = text;
    }
    drawn = key;
    drawPoint(s);
  }

  function drawPoint(s) {
    const { side, x, y } = scale;
    const [left, top] = [x(s.g), y(s.u)];
    setAttributes(lines.g, { x1: PLANE.left, x2: PLANE.left + side, y1: top, y2: top });
    setAttributes(lines.u, { x1: left, x2: left, y1: PLANE.top, y2: PLANE.top + side });
    root.classList.toggle("gs-chosen", s.isGated === isGated);
    const output = neuronOutput(s.name, isGated, s.g, s.u);
    setAttributes(point, {
      transform: `translate(${left} ${top})`,
      "aria-valuenow": s.g,
      "aria-valuetext": words.pointAt(fmt(s.g), fmt(s.u), fmt(output)),
    });
  }

  const moveTo = (left, top) => move(rounded(scale.x.invert(left)), rounded(scale.y.invert(top)));
  const position = () => [scale.x(now.g), scale.y(now.u)];
  const release = draggable(point, { onMove: moveTo, position });
  return { root, draw, release };
}

/** The output along one axis through the point: a curve along g, a straight line along u. */
function createSection(words, isAlongGate) {
  const root = svg("svg", { role: "img", class: "gs-section" });

  function titleOf(s) {
    if (!isAlongGate) return words.alongValue(fmt(s.isGated ? s.factor : 0));
    return s.isGated ? words.alongGateAt(fmt(s.u)) : words.alongGate;
  }

  function draw(s, width, height) {
    const [right, floor] = [width - SECTION.right, height - SECTION.bottom];
    const x = linear([-LIMIT, LIMIT], [SECTION.left, right]);
    const y = linear([HIGHEST, -HIGHEST], [SECTION.top, floor]);
    const outputAt = (z) => neuronOutput(s.name, s.isGated, isAlongGate ? z : s.g, isAlongGate ? s.u : z);
    const places = Array.from({ length: 61 }, (_, i) => (i / 60 - 0.5) * 2 * LIMIT);
    const curve = lineThrough(places.map((z) => [x(z), y(outputAt(z))]));
    const title = titleOf(s);
    const here = isAlongGate ? s.g : s.u;
    setSize(root, width, height, title);
    fill(
      root,
      textAt(1, 13, title, { cls: "mm-small mm-strong" }),
      upright(x(0), SECTION.top, floor, "gs-zero"),
      [-HIGHEST, 0, HIGHEST].map((tick) => [
        across(y(tick), SECTION.left, right, "gs-zero"),
        textAt(SECTION.left - 5, y(tick) + 4, fmt(tick, 0), { anchor: "end" }),
      ]),
      svg("path", { class: "gs-curve", "data-sym": "output", d: curve }),
      svg("circle", { class: "gs-here", cx: x(here), cy: y(s.output), r: 4.5 }),
    );
  }
  return { root, draw };
}

function surfaceVerdict(s, words) {
  const { open, shut, leaks, plain } = words.verdict;
  if (!s.isGated) return plain;
  if (Math.abs(s.factor) < SHUT) return shut(fmt(s.factor));
  return s.factor < 0 ? leaks(fmt(s.factor)) : open(fmt(s.g), fmt(s.factor), fmt(s.u), fmt(s.output));
}

function surfaceNumbers(s, words) {
  return [
    [words.factor(words.activations[s.name]), fmt(s.factor)],
    [words.times, s.isGated ? fmt(s.u) : words.notRead],
    [words.output, fmt(s.output)],
  ];
}

/** What a second neuron, with the opposite gate, takes away: activation(g) − activation(−g) is g for all three. */
function productNumbers(s, words) {
  const name = words.activations[s.name];
  const [first, second] = [1, -1].map((sign) => neuronOutput(s.name, true, sign * s.g, s.u));
  return [
    [words.first(name), fmt(first)],
    [words.second(name), fmt(second)],
    [words.difference, fmt(first - second)],
  ];
}

/** Two sliders for the point and the choice of the activation, and what is folded. */
function createControls(bound, words) {
  const range = { min: -LIMIT, max: LIMIT, step: STEP, tone: "ffn" };
  const point = ["gate", "value"].map((name) => bound(slider, name, { label: words[name], ...range }));
  const activation = bound(choice, "activation", { label: words.activation, options: namedOptions(words.activations) });
  const neuron = row(point, activation);
  neuron.classList.add("gs-neuron");
  const layers = optionsFor([true, false], (isGated) => words.layers[isGated ? "gated" : "plain"]);
  return { neuron, folded: row(bound(choice, "gated", { label: words.layer, options: layers })) };
}

export default figure({
  words: gateSurfaceWords,
  traits: TRAITS,
  create({ model, words, isCompact, bound, verdict, numbers }) {
    const move = (gate, value) => setTraits(model, { gate, value });
    const planes = [true, false].map((isGated) => createPlane(words, isGated, move));
    const sections = isCompact ? [] : [createSection(words, true), createSection(words, false)];
    const controls = createControls(bound, words);
    const product = readout([]);
    const boxes = [...planes, ...sections].map((part) => h("div", { class: "gs-box" }, part));
    const stage = h("div", { class: "mm-stage mm-column gs-stage" }, boxes, isCompact && verdict);

    function draw(...widths) {
      const s = surfaceState(model);
      planes.forEach((plane, i) => plane.draw(s, widths[i]));
      const isWide = stage.clientWidth >= WIDE; // the sections are one above the other, beside the planes
      const height = planes[0].root.height.baseVal.value;
      sections.forEach((section, i) => section.draw(s, widths[2 + i], isWide ? (height - 12) / 2 : 116));
      product.set(productNumbers(s, words));
      return { verdict: surfaceVerdict(s, words), numbers: surfaceNumbers(s, words) };
    }
    return {
      stage,
      control: isCompact ? null : controls.neuron,
      numbers: isCompact ? null : h("div", {}, verdict, numbers),
      more: [controls.folded, h("p", { class: "mm-label" }, words.product), product],
      boxes,
      parts: planes,
      draw,
    };
  },
});
