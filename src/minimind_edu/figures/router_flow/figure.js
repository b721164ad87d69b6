// RouterFlow: the words of two sentences go to the experts of a mixture, at six moments of its training.

import { h, svg, textAt, setAttributes, setSize, setTraits, mount, frame, wordsOf } from "../kit/kit.js";
import { fmt, slider, toggle, choice, optionsFor, readout, announcement } from "../kit/kit.js";
import { runOf, waysOf, extremesOf, busiestAlong } from "./math.js";
import { routerFlowWords } from "./words.js";

const TRAITS = ["step", "balanced", "top_k", "block", "seed"];
const EXPERTS = 4;
const EVEN = 100 / EXPERTS; // percent
const UNEVEN = 1.5 * EVEN; // from here on an expert is a favorite
const NARROW = 460; // pixels
const THICKEST = 9; // pixels of a line whose weight is 1
const COURSE = { width: 460, height: 150 }; // pixels of the folded chart, at most
// Where things are, in pixels: a row for each word, and what is left of the lines and above the rows.
const PLACES = { row: 24, lowRow: 20, words: 116, top: 30, bottom: 4 };

function controlLine(x, y, end, height) {
  const middle = (x + end) / 2;
  return `M${x} ${y}C${middle} ${y} ${middle} ${height} ${end} ${height}`;
}

/** The words on the left, the experts with their loads on the right, and a line for every choice of the router. */
function createFlow(words) {
  const root = svg("svg", { role: "img" });
  const [names, ways, loads] = [svg("g", { "data-sym": "stream" }), svg("g", {}), svg("g", { "data-sym": "ffn" })];
  const bars = Array.from({ length: EXPERTS }, () => svg("rect", { class: "rf-bar", height: 16, rx: 2 }));
  root.append(ways, names, loads);

  function drawExpert(i, load, at) {
    const { x, length, y, isLast } = at;
    const tick = x + (EVEN / 100) * length;
    setAttributes(bars[i], { x, y: y - 8 });
    bars[i].style.width = `${(load / 100) * length}px`;
    return [
      textAt(x, y - 15, words.expert(i + 1), "rf-expert"),
      textAt(x + length, y - 15, words.percent(load), "rf-load", "end"),
      svg("rect", { class: "rf-rail", x, y: y - 8, width: length, height: 16, rx: 2 }),
      bars[i],
      svg("line", { class: "rf-tick", x1: tick, x2: tick, y1: y - 12, y2: y + 12 }),
      isLast ? textAt(tick, y + 26, words.even, "rf-small", "middle") : [],
    ];
  }

  function draw(shown, story, width, isCompact) {
    const { words: left, top, bottom } = PLACES;
    const row = isCompact || width < NARROW ? PLACES.lowRow : PLACES.row;
    const height = top + story.length * row + bottom;
    const yOf = (i) => top + (i + 0.5) * row;
    const length = Math.min(320, Math.max(112, width * 0.36));
    const x = width - length;
    const each = (story.length * row) / EXPERTS;
    const expertY = (i) => top + i * each + each / 2;
    setSize(root, width, height);
    names.replaceChildren(
      textAt(left - 10, 12, words.tokens, "rf-small", "end"),
      ...story.map((word, i) => textAt(left - 10, yOf(i) + 4, word, "rf-word", "end")),
    );
    const lines = shown.ways.map(([word, expert, weight]) =>
      svg("path", {
        class: "rf-way",
        d: controlLine(left, yOf(word), x - 3, expertY(expert)),
        "stroke-width": ((weight / 100) * THICKEST).toFixed(2),
      }),
    );
    ways.replaceChildren(...lines);
    const drawn = shown.loads.map((load, i) =>
      drawExpert(i, load, { x, length, y: expertY(i), isLast: i === EXPERTS - 1 }),
    );
    loads.replaceChildren(textAt(x + length, 12, words.loads, "rf-small", "end"), ...drawn.flat(Infinity));
    setAttributes(root, { "aria-label": words.picture(story.length, shown.loads, shown.step, shown.balanced) });
  }
  return { root, draw };
}

/** The load of the busiest expert along the training: a line for each seed, dashed with the auxiliary loss. */
function createCourses(words) {
  const [left, right, top, bottom] = [48, 12, 44, 22];
  const root = svg("svg", { role: "img" });

  function drawLegend() {
    const sample = (x, cls) => svg("line", { class: `rf-course ${cls}`, x1: x, x2: x + 22, y1: 26, y2: 26 });
    return [
      textAt(0, 12, words.along, "rf-small"),
      [sample(0, ""), textAt(28, 30, words.without, "rf-small")],
      [sample(206, "rf-balanced"), textAt(234, 30, words.with, "rf-small")],
    ];
  }

  function draw(results, traits, stop, width) {
    const { height } = COURSE;
    const floor = height - bottom;
    const x = (i) => left + (i / (results.stops.length - 1)) * (width - left - right);
    const y = (load) => floor - (load / 100) * (floor - top);
    const ticks = [0, EVEN, 50, 100].map((load) => [
      svg("line", { class: "rf-grid", x1: left, x2: width - right, y1: y(load), y2: y(load) }),
      textAt(left - 6, y(load) + 4, words.percent(load), "rf-small", "end"),
    ]);
    const courses = [true, false].map((balanced) =>
      busiestAlong(results, traits.top_k, balanced, traits.block - 1).map((loads) => {
        const points = loads.map((load, i) => `${x(i).toFixed(1)} ${y(load).toFixed(1)}`);
        return svg("path", { class: `rf-course ${balanced ? "rf-balanced" : ""}`, d: `M${points.join("L")}` });
      }),
    );
    const parts = [
      drawLegend(),
      ticks,
      results.stops.map((step, i) => textAt(x(i), floor + 17, step, "rf-small", "middle")),
      svg("line", { class: "rf-now", x1: x(stop), x2: x(stop), y1: top, y2: floor }),
      courses,
    ];
    setSize(root, width, height);
    root.replaceChildren(...parts.flat(Infinity));
    const last = (balanced) =>
      busiestAlong(results, traits.top_k, balanced, traits.block - 1).map((loads) => loads.at(-1));
    setAttributes(root, { "aria-label": words.course(last(false), last(true)) });
  }
  return { root, draw };
}

// A row of choices that write one trait.
function traitChoice(model, name, label, values) {
  const control = choice({
    label,
    options: optionsFor(values),
    value: model.get(name),
    onChange: (value) => setTraits(model, { [name]: value }),
  });
  return { name, ...control };
}

function createControls(model, words, results) {
  const { stops, runs } = results;
  const [first] = runs;
  const values = (name) => [...new Set(runs.map((run) => run[name]))];
  const steps = slider({
    label: words.steps,
    min: 0,
    max: stops.length - 1,
    step: 1,
    value: stops.indexOf(model.get("step")),
    format: (i) => stops[i],
    onInput: (i) => setTraits(model, { step: stops[i] }),
  });
  const balanced = toggle({
    label: words.balanced,
    checked: model.get("balanced"),
    onChange: (isOn) => setTraits(model, { balanced: isOn }),
  });
  const folded = [
    traitChoice(model, "top_k", words.topK, values("top_k")),
    traitChoice(
      model,
      "block",
      words.block,
      first.looks[0].blocks.map((_, i) => i + 1),
    ),
    traitChoice(model, "seed", words.seed, values("seed")),
  ];
  const set = (traits) => {
    steps.set(stops.indexOf(traits.step));
    balanced.set(traits.balanced);
    folded.forEach((control) => control.set(traits[control.name]));
  };
  return { steps, balanced, folded, set };
}

function renderRouter({ model, el }) {
  const words = wordsOf(routerFlowWords);
  const [isCompact, results] = [model.get("compact"), model.get("results")];
  const controls = createControls(model, words, results);
  const [flow, courses] = [createFlow(words), createCourses(words)];
  const verdict = announcement("rf-verdict");
  const numbers = readout([]);
  const stage = h("div", { class: "mm-stage" }, flow.root);
  const primary = isCompact ? [controls.balanced.root] : [controls.steps.root, controls.balanced.root];
  const control = h("div", { class: "mm-controls" }, primary);
  const below = h("div", { class: "rf-below" }, verdict.root, numbers.root);
  const choices = h(
    "div",
    { class: "mm-controls" },
    controls.folded.map((one) => one.root),
  );
  const more = [choices, h("div", { class: "mm-stage rf-along" }, courses.root)];
  const root = frame(words, { stage, control, numbers: below, more }, isCompact);

  function say(loads, balance, loss, topK) {
    const { busiest, idle } = extremesOf(loads);
    const most = loads[busiest];
    verdict.set(most > UNEVEN ? words.favorite(busiest + 1, most, idle, topK) : words.level(most));
    numbers.set([
      [words.busiest, words.percent(most)],
      [words.balance, fmt(balance, 2)],
      [words.loss, fmt(loss, 2)],
    ]);
  }

  function draw(width) {
    const traits = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
    const stop = results.stops.indexOf(traits.step);
    const run = runOf(results, traits.top_k, traits.balanced, traits.seed);
    const { loss, blocks } = run.looks[stop];
    const { loads, balance } = blocks[traits.block - 1];
    const ways = waysOf(results, run, stop, traits.block - 1);
    flow.draw({ ...traits, loads, ways }, results.words, width, isCompact);
    controls.set(traits);
    if (isCompact) return;
    courses.draw(results, traits, stop, Math.min(width, COURSE.width));
    say(loads, balance, loss, traits.top_k);
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw });
}

export default { render: renderRouter };
