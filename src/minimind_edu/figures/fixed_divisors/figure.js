// FixedDivisors: at each norm the size of `<s>` and of the other words, and what the norm divides by.

import { h, svg, fill, setAttributes, setText, textAt, setSize, fmt, slider, toggle, row } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, levels } from "../../web/kit/chart.js";
import { CEILING, FLOOR, heightOf, kindOf, runOf, toDigits, unpacked } from "./math.js";
import { fixedDivisorsWords } from "./words.js";

const TRAITS = ["percentile", "apart", "proportional", "networks_only", "twin"];
const SWITCHES = { number: ["apart", "twin"], square: ["proportional", "networks_only", "twin"] };
const WHO = ["first", "others"];
const TICKS = [1, 100, 10_000];
const WIDEST = 720; // pixels
const TALL = { plot: 150, compact: 158 };
const EDGE = { left: 52, right: 6, top: 12, bottom: 36 };
const NAMES = 560; // from this width on each norm is named

/** The bars of both, as trained and now, and the lines across them. */
function createBars(words, tall) {
  const root = svg("svg", { role: "img", class: "fd-plot fd-still" });
  const axis = svg("g");
  const norms = Array.from({ length: 9 }, () => {
    const outlines = WHO.map(() => svg("rect", { class: "fd-own" }));
    const bars = WHO.map((who) => svg("rect", { class: `fd-bar fd-${who}` }));
    const lines = WHO.map(() => svg("line", { class: "fd-line" }));
    const gone = WHO.map((who) => svg("path", { class: `fd-gone fd-${who}` }));
    return { own: outlines, bars, lines, gone };
  });
  const parts = (name) => norms.map((norm) => norm[name]);
  const bars = svg("g", { "data-sym": "stream" }, parts("bars"), parts("gone"));
  fill(root, axis, bars, parts("own"), svg("g", { "data-sym": "norm" }, parts("lines")));

  function drawAxis(width, y, step) {
    const end = EDGE.top + tall;
    const middle = (i) => EDGE.left + (i + 0.5) * step;
    const numbers = norms.map((_, i) => textAt(middle(i), end + 15, i + 1, { anchor: "middle" }));
    const isNamed = width >= NAMES;
    const nameOf = (i) => textAt(middle(i), end + 30, words.sublayers[i % 2], { anchor: "middle" });
    const blockOf = (i) => textAt(middle(2 * i + 0.5), end + 30, words.block(i + 1), { anchor: "middle" });
    fill(
      axis,
      levels(TICKS, y, EDGE.left, width, (tick) => tick.toLocaleString("en")),
      numbers,
      isNamed ? [0, 1, 2, 3, 4, 5, 6, 7].map(nameOf) : [0, 1, 2, 3].map(blockOf),
      textAt(EDGE.left - 6, EDGE.top + 4, words.axis, { anchor: "end" }),
      textAt(middle(8), end + 30, isNamed ? words.head : words.headNarrow, { anchor: "middle" }),
    );
  }

  function draw({ run, own: asTrained, divisors }, width, label) {
    const end = EDGE.top + tall;
    const up = linear([0, 1], [end, EDGE.top]);
    const y = (size) => up(heightOf(size));
    const step = (width - EDGE.left - EDGE.right) / norms.length;
    const wide = Math.min(26, step * 0.4);
    setSize(root, width, end + EDGE.bottom, label);
    drawAxis(width, y, step);
    norms.forEach((norm, i) => {
      WHO.forEach((who, side) => {
        const [size, trained, by] = [run[who][i], asTrained[who][i], divisors[who][i]];
        const x = EDGE.left + (i + 0.5) * step + (side - 1) * wide;
        const box = { x: (x + 0.5).toFixed(1), width: (wide - 1).toFixed(1), y: EDGE.top, height: tall };
        setAttributes(norm.bars[side], box);
        norm.bars[side].style.transform = `scaleY(${heightOf(size).toFixed(4)})`;
        setAttributes(norm.own[side], { ...box, y: y(trained).toFixed(1), height: (end - y(trained)).toFixed(1) });
        const middle = x + wide / 2;
        const d =
          size > CEILING ? `M${middle - 5} ${EDGE.top}L${middle} ${EDGE.top - 9}L${middle + 5} ${EDGE.top}Z` : "";
        setAttributes(norm.gone[side], { d });
        const isThere = by !== undefined && by >= FLOOR; // the last norm is not replaced
        norm.lines[side].style.display = isThere ? "" : "none";
        if (!isThere) return;
        setAttributes(norm.lines[side], { x1: (x - 1).toFixed(1), x2: (x + wide + 1).toFixed(1), y1: 0, y2: 0 });
        norm.lines[side].style.transform = `translateY(${y(by).toFixed(1)}px)`;
      });
    });
  }
  const release = () => root.classList.remove("fd-still");
  return { root, draw, release };
}

function createLegend(words) {
  const names = ["first", "others", "divisor", "own"];
  return h(
    "p",
    { class: "mm-legend fd-legend" },
    names.map((name) => h("span", {}, h("i", { class: `fd-mark fd-mark-${name}` }), words.legend[name])),
  );
}

/** Three numbers in a row: how far from the truth, and where both end. */
function createEnds(words) {
  const numbers = words.ends.map(() => h("b"));
  const cells = words.ends.map((name, i) => h("span", {}, name, " ", numbers[i]));
  const set = (texts) => texts.forEach((text, i) => setText(numbers[i], text));
  return { root: h("p", { class: "fd-ends" }, cells), set };
}

export default figure({
  words: fixedDivisorsWords,
  traits: TRAITS,
  verdict: "fd-verdict",
  create({ model, words, isCompact, bound, verdict }) {
    const stored = unpacked(model.get("stored"));
    const about = model.get("about");
    const stops = [0, ...new Set(stored.living.rows.map((row) => row.percentile))];
    const bars = createBars(words, isCompact ? TALL.compact : TALL.plot);
    const ends = createEnds(words);
    const by = bound(slider, "percentile", { label: words.percentile, stops, format: words.stop, tone: "norm" });
    const switches = isCompact ? [] : SWITCHES[about].map((name) => bound(toggle, name, { label: words[name] }));
    for (const { input } of [by, ...switches]) input.addEventListener("input", bars.release);

    function draw(given) {
      const width = Math.min(given, WIDEST);
      const traits = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
      const found = runOf(stored, traits);
      const { run, own: asTrained } = found;
      const [first, others] = WHO.map((who) => words.sizeOf(toDigits(run[who].at(-1), 3)));
      const nats = fmt(run.nats, 2);
      bars.draw(found, width, words.picture(words.stop(traits.percentile), nats, first, others));
      ends.set([words.nats(nats), first, others]);
      const times = (who) => words.sizeOf(toDigits(run[who].at(-1) / asTrained[who].at(-1), 2));
      const facts = {
        first: times("first"),
        others: times("others"),
        nats: Math.round(run.nats / asTrained.nats),
        percent: Math.round((100 * run.others.at(-1)) / asTrained.others.at(-1)),
      };
      return { verdict: words.verdict[kindOf(run, asTrained, !traits.percentile)](facts) };
    }
    return {
      title: isCompact ? words.titleCompact : words.titles[about],
      caption: words.captions[about],
      stage: h("div", { class: "mm-stage mm-column fd-stage" }, createLegend(words), bars, ends),
      control: h("div", { class: "fd-control" }, by, switches.length ? row(...switches) : null),
      numbers: verdict,
      draw,
    };
  },
});
