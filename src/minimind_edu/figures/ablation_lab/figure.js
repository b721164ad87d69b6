// AblationLab: take one part of a small model away, and see its loss, its answers and one mistake beside the whole's.

import { WIDE, h, svg, fill, textAt, setSize, fmt, grouped, choice, optionsFor, row } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, lineThrough, across, upright, levels } from "../../web/kit/chart.js";
import { accuracyRows, excessOf, sampleOf } from "./math.js";
import { ablationLabWords } from "./words.js";

const GAP = 28;
const LONGER = 460; // pixels that the folded bars take at most
const LOSSES = [0, 3]; // of the axis, in nats
// What a reader sees missing at once, for the control; the others are folded.
const NOTICED = [
  "whole",
  "no attention",
  "no residual",
  "no positions",
  "no feed-forward",
  "1 layer",
  "initialization 0.02",
  "300 rows",
];

/** Held-out loss of both seeds while they train, the whole model's as thin dashes, and the entropy below them. */
function createCurves(words) {
  const [left, right, top, bottom] = [34, 10, 26, 22];
  const root = svg("svg", { role: "img" });

  function pathOf(values, every, x, y, cls) {
    return svg("path", { class: cls, d: lineThrough(values.map((value, i) => [x(i * every), y(value)])) });
  }

  function drawAxes(results, x, y, width, height) {
    const floor = height - bottom;
    const shown = y(0) - y(1) < 14 ? LOSSES : [0, 1, 2, 3]; // where there is no room, both ends
    const steps = [0, results.steps / 2, results.steps]; // the last with its unit
    const anchors = ["start", "middle", "end"];
    return [
      levels(shown, y, left, width - right),
      steps.map((step, i) => textAt(x(step), floor + 17, i === 2 ? words.steps(step) : step, { anchor: anchors[i] })),
      textAt(0, 12, words.lossAxis),
    ];
  }

  /** Its words below the line; where the axis ends there, at the other end, if that is free of words. */
  function drawFloor(entropy, x, y, width, isFree) {
    const [at, text] = [y(entropy), words.floor(fmt(entropy, 2))];
    const isLow = y(LOSSES[0]) - at < 24;
    const [side, anchor] = isLow && isFree ? [width - right, "end"] : [left + 4, "start"];
    return [across(at, left, width - right, "mm-axis"), textAt(side, at + 15, text, { anchor })];
  }

  function draw(results, variant, width, height) {
    const floor = height - bottom;
    const x = linear([0, results.steps], [left, width - right]);
    const loss = linear(LOSSES, [floor, top]);
    const y = (value) => loss(Math.min(value, LOSSES[1]));
    const { seeds } = results.variants[variant];
    const curve = (cls, name) => (seed) => pathOf(seed[name], results.every, x, y, cls);
    const remembered = seeds.filter((seed) => seed.training);
    const losses = seeds.map((seed) => fmt(seed.loss.at(-1), 2));
    setSize(root, width, height, words.curves(losses));
    fill(
      root,
      drawAxes(results, x, y, width, height),
      drawFloor(results.entropy, x, y, width, !remembered.length),
      results.variants.whole.seeds.map(curve("mm-faint", "loss")),
      seeds.map(curve("al-line", "loss")),
      remembered.map(curve("al-line al-training", "training")),
      remembered.length > 0 && textAt(width - right, floor - 6, words.onItsRows, { anchor: "end" }),
    );
  }
  return { root, draw };
}

/** For each task a bar for each seed, and a tick where the whole model is. */
function createBars(words, title) {
  const [left, right, top, step] = [62, 2, 24, 30];
  const root = svg("svg", { role: "img" });

  function drawRow({ seeds, whole }, i, width) {
    const length = width - left - right - 50; // room for the numbers
    const y = top + i * step;
    const bars = seeds.map((fraction, seed) => {
      const at = { x: left, y: y + seed * 11, height: 9, rx: 2 };
      return [
        svg("rect", { class: "mm-soft", ...at, width: length }),
        svg("rect", { class: "mm-ink", ...at, width: Math.max(0, fraction * length) }),
      ];
    });
    const tick = left + whole * length;
    const mean = seeds.reduce((sum, fraction) => sum + fraction, 0) / seeds.length;
    return [
      textAt(0, y + 14, words.tasks[i], { cls: null }),
      bars,
      upright(tick, y - 3, y + 23, "al-tick"),
      textAt(width - right, y + 14, words.percent(fmt(100 * mean, 0)), { anchor: "end", cls: "mm-strong" }),
    ];
  }

  function draw(rows, width) {
    const percent = (fraction) => words.percent(fmt(100 * fraction, 0));
    const shares = rows.map((row, i) => words.row(words.tasks[i], ...row.seeds.map(percent)));
    setSize(root, width, top + rows.length * step, `${title}: ${shares.join(", ")}`);
    const drawn = rows.map((row, i) => drawRow(row, i, width));
    fill(root, textAt(0, 12, title), drawn);
  }
  return { root, draw };
}

/** One question with the model's answer; wrong words are marked. */
function createSample(words) {
  const root = h("p", { class: "al-sample", "aria-live": "polite" });
  function draw([prompt, answered, right]) {
    const marked = answered.map((word, i) => [" ", word === right[i] ? word : h("b", {}, word)]);
    const answer = h("span", { class: "al-answer" }, prompt, ...marked.flat());
    fill(root, h("span", { class: "mm-label" }, words.says), answer);
  }
  return { root, draw };
}

function labNumbers(results, variant, words) {
  const span = ([low, high]) => words.span(fmt(low, 2), fmt(high, 2));
  return [
    [words.excess, span(excessOf(results, variant))],
    [words.wholeExcess, span(excessOf(results, "whole"))],
    [words.parameters, grouped(results.variants[variant].parameters)],
  ];
}

export default figure({
  words: ablationLabWords,
  traits: ["variant"],
  verdict: "al-verdict",
  create({ model, words, isCompact, bound }) {
    const results = model.get("results");
    const others = Object.keys(words.variants).filter((name) => !NOTICED.includes(name));
    const variants = (label, names) =>
      bound(choice, "variant", { label, options: optionsFor(names, (name) => words.variants[name]) });
    const [curves, sample] = [createCurves(words), createSample(words)];
    const [bars, longer] = [createBars(words, words.accuracy), createBars(words, words.longer)];

    function draw(width) {
      const variant = model.get("variant");
      const isWide = width >= WIDE;
      const first = isWide ? ((width - GAP) * 11) / 20 : width;
      curves.draw(results, variant, first, isWide ? 206 : isCompact ? 78 : 132);
      bars.draw(accuracyRows(results, variant, "accuracy"), isWide ? width - GAP - first : width);
      sample.draw(sampleOf(results, variant));
      longer.draw(accuracyRows(results, variant, "longer"), Math.min(width, LONGER));
      return { verdict: words.verdict[variant], numbers: labNumbers(results, variant, words) };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column al-stage" }, curves, h("div", {}, bars, sample)),
      control: row(variants(words.missing, NOTICED)),
      more: [variants(words.unnoticed, others), h("div", { class: "mm-stage al-longer" }, longer)],
      draw,
    };
  },
});
