// RouterFlow: the words of two sentences go to the experts of a mixture, at six moments of its training.

import {
  NARROW,
  h,
  svg,
  fill,
  setAttributes,
  textAt,
  setSize,
  fmt,
  slider,
  toggle,
  choice,
} from "../../web/kit/kit.js";
import { optionsFor, readout, announcement, controlsOf, row, wordsOf, frame, mount } from "../../web/kit/kit.js";
import { linear, lineThrough, across, upright, levels, ticks } from "../../web/kit/chart.js";
import { runOf, waysOf, extremesOf, busiestAlong } from "./math.js";
import { routerFlowWords } from "./words.js";

const TRAITS = ["step", "balanced", "top_k", "block", "seed"];
const EXPERTS = 4;
const EVEN = 100 / EXPERTS; // percent
const UNEVEN = 1.5 * EVEN; // from here on an expert is a favorite
const THICKEST = 9; // pixels of a line whose weight is 1
const COURSE_HEIGHT = 116; // pixels of the chart below
const CLOSE = 26; // pixels: names of steps that are closer would touch
// Where things are, in pixels: a row for each word, and what is left of the lines and above the rows.
const PLACES = { row: 24, lowRow: 18, words: 116, top: 30, bottom: 4 };

function controlLine(x, y, end, height) {
  const middle = (x + end) / 2;
  return `M${x} ${y}C${middle} ${y} ${middle} ${height} ${end} ${height}`;
}

/** The words on the left, the experts with their loads on the right, and a line for every choice of the router. */
function createFlow(words) {
  const root = svg("svg", { role: "img" });
  const [names, ways, loads] = [svg("g", { "data-sym": "stream" }), svg("g", {}), svg("g", { "data-sym": "ffn" })];
  const bars = Array.from({ length: EXPERTS }, () => svg("rect", { class: "rf-bar", height: 16, rx: 2 }));
  fill(root, ways, names, loads);

  function drawExpert(i, load, at) {
    const { x, length, y, isLast } = at;
    const tick = x + (EVEN / 100) * length;
    setAttributes(bars[i], { x, y: y - 8 });
    bars[i].style.width = `${(load / 100) * length}px`;
    return [
      textAt(x, y - 15, words.expert(i + 1), { cls: null }),
      textAt(x + length, y - 15, words.percent(load), { anchor: "end", cls: "mm-strong" }),
      svg("rect", { class: "mm-soft", x, y: y - 8, width: length, height: 16, rx: 2 }),
      bars[i],
      upright(tick, y - 12, y + 12, "rf-tick"),
      isLast && textAt(tick, y + 26, words.even, { anchor: "middle" }),
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
    setSize(root, width, height, words.picture(story.length, shown.loads, shown.step, shown.balanced));
    fill(
      names,
      textAt(left - 10, 12, words.tokens, { anchor: "end" }),
      story.map((word, i) => textAt(left - 10, yOf(i) + 4, word, { anchor: "end", cls: null, tone: "stream" })),
    );
    const lines = shown.ways.map(([word, expert, weight]) =>
      svg("path", {
        class: "rf-way",
        d: controlLine(left, yOf(word), x - 3, expertY(expert)),
        "stroke-width": ((weight / 100) * THICKEST).toFixed(2),
      }),
    );
    fill(ways, lines);
    const drawn = shown.loads.map((load, i) =>
      drawExpert(i, load, { x, length, y: expertY(i), isLast: i === EXPERTS - 1 }),
    );
    fill(loads, textAt(x + length, 12, words.loads, { anchor: "end" }), drawn);
  }
  return { root, draw };
}

/**
 * The load of the busiest expert along the training, up to the chosen step: a line for each seed, dashed with the
 * auxiliary loss. The axis is that of the whole training, so that dragging uncovers the rest.
 */
function createCourses(words) {
  const [left, right, top, bottom] = [48, 12, 44, 22];
  const root = svg("svg", { role: "img" });

  function drawLegend() {
    const sample = (x, cls) => across(26, x, x + 22, `rf-course ${cls}`);
    return [
      textAt(0, 12, words.along),
      [sample(0, ""), textAt(28, 30, words.without)],
      [sample(206, "rf-balanced"), textAt(234, 30, words.with)],
    ];
  }

  function draw(results, traits, stop, width) {
    const floor = COURSE_HEIGHT - bottom;
    const x = linear([0, results.stops.at(-1)], [left, width - right]);
    const y = linear([0, 100], [floor, top]);
    const here = x(traits.step);
    const [without, balanced] = [false, true].map((isBalanced) =>
      busiestAlong(results, traits.top_k, isBalanced, traits.block - 1).map((loads) => loads.slice(0, stop + 1)),
    );
    const course = (cls) => (loads) => [
      svg("path", {
        class: `rf-course ${cls}`,
        d: lineThrough(loads.map((load, i) => [x(results.stops[i]), y(load)])),
      }),
      svg("circle", { class: `rf-end ${cls}`, cx: here, cy: y(loads[stop]), r: 3 }),
    ];
    const last = (courses) => courses.map((loads) => loads[stop]);
    setSize(root, width, COURSE_HEIGHT, words.course(traits.step, last(without), last(balanced)));
    fill(
      root,
      drawLegend(),
      levels([0, EVEN, 50, 100], y, left, width - right, words.percent),
      ticks(
        results.stops.filter((step) => step % 100 === 0 && Math.abs(x(step) - here) > CLOSE),
        x,
        floor + 17,
        String,
      ),
      upright(here, top, floor, "rf-here"),
      textAt(here, floor + 17, traits.step, { anchor: "middle", cls: "mm-small rf-step" }),
      balanced.map(course("rf-balanced")),
      without.map(course("")),
    );
  }
  return { root, draw };
}

function createControls(model, words, { stops, runs }) {
  const { bound, follow } = controlsOf(model);
  const options = (name) => optionsFor([...new Set(runs.map((run) => run[name]))]);
  const blocks = optionsFor(runs[0].looks[0].blocks.map((_, i) => i + 1));
  const steps = bound(slider, "step", { label: words.steps, stops });
  const balanced = bound(toggle, "balanced", { label: words.balanced });
  const folded = [
    bound(choice, "top_k", { label: words.topK, options: options("top_k") }),
    bound(choice, "block", { label: words.block, options: blocks }),
    bound(choice, "seed", { label: words.seed, options: options("seed") }),
  ];
  return { steps, balanced, folded, follow };
}

function renderRouter({ model, el }) {
  const words = wordsOf(routerFlowWords);
  const [isCompact, results] = [model.get("compact"), model.get("results")];
  const controls = createControls(model, words, results);
  const [flow, courses] = [createFlow(words), createCourses(words)];
  const verdict = announcement("mm-verdict rf-verdict");
  const numbers = readout([]);
  const stage = h("div", { class: "mm-stage" }, flow);
  const control = row(isCompact ? null : controls.steps, controls.balanced);
  const along = h("div", { class: "mm-stage rf-along" }, courses);
  const below = h("div", { class: "rf-below" }, h("div", {}, verdict, numbers), along);
  const more = [row(controls.folded)];
  const root = frame(words, { stage, control, numbers: below, more }, isCompact);

  function say(loads, balance, loss, topK) {
    const { busiest, idle } = extremesOf(loads);
    const most = loads[busiest];
    verdict.set(most > UNEVEN ? words.favorite(busiest + 1, most, idle, topK) : words.level(most));
    numbers.set([
      [words.balance, fmt(balance, 2)],
      [words.loss, fmt(loss, 2)],
    ]);
  }

  function draw(width, widthAlong) {
    const traits = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
    const stop = results.stops.indexOf(traits.step);
    const run = runOf(results, traits.top_k, traits.balanced, traits.seed);
    const { loss, blocks } = run.looks[stop];
    const { loads, balance } = blocks[traits.block - 1];
    const ways = waysOf(results, run, stop, traits.block - 1);
    flow.draw({ ...traits, loads, ways }, results.words, width, isCompact);
    controls.follow();
    if (isCompact) return;
    courses.draw(results, traits, stop, widthAlong);
    say(loads, balance, loss, traits.top_k);
  }

  return mount(el, root, { model, traits: TRAITS, boxes: isCompact ? [stage] : [stage, along], draw });
}

export default { render: renderRouter };
