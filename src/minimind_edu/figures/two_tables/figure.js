// TwoTables: the rows of six words in two tables, or in one, while a model is trained.

import { h, svg, fill, fmt, textAt, setSize, slider, toggle, choice, optionsFor } from "../../web/kit/kit.js";
import { readout, announcement, controlsOf, row, wordsOf, frame, mount } from "../../web/kit/kit.js";
import { linear, lineThrough } from "../../web/kit/chart.js";
import { runOf, waysOf, reachOf } from "./math.js";
import { twoTablesWords } from "./words.js";

const TRAITS = ["step", "tied", "seed"];
const MOST = 300; // pixels: a picture's side at most,
const LOW = 216; // where it opens a chapter,
const TOP = 24; // its title
const EDGE = 14; // its margin
const GONE = 0.45; // of the first distance: from here on the rows of a pair count as alike

/** A mark of its own for each pair. */
function markAt([x, y], pair) {
  if (pair === 2)
    return svg("rect", { class: "tt-mark", x: x - 5, y: y - 5, width: 10, height: 10, "data-pair": pair });
  return svg("circle", { class: "tt-mark", cx: x, cy: y, r: 6, "data-pair": pair });
}

function createLegend(pairs, words) {
  const sample = (pair, i) => {
    const drawing = svg("svg", { width: 16, height: 16 }, markAt([8, 8], i));
    return h("span", {}, drawing, words.pair(pair));
  };
  return h("p", { class: "mm-legend" }, pairs.map(sample));
}

/** Both tables side by side, or the one. */
function createClouds(results, words, most) {
  const root = svg("svg", { role: "img", "data-sym": "stream" });
  const reach = reachOf(results);

  function drawTable(ways, name, left, side) {
    const [x, y] = [
      linear([-reach, reach], [left + EDGE, left + side - EDGE]),
      linear([-reach, reach], [TOP + side - EDGE, TOP + EDGE]),
    ];
    const place = ([a, b]) => [x(a), y(b)];
    const drawPair = (pair, i) => {
      const [ends, trails] = [pair.map((way) => place(way.at(-1))), pair.map((way) => way.map(place))];
      return [
        trails.map((trail) => svg("path", { class: "tt-trail", d: lineThrough(trail) })),
        svg("path", { class: "tt-pair", d: lineThrough(ends) }),
        ends.map((end) => markAt(end, i)),
      ];
    };
    return [
      textAt(left + side / 2, 14, name, { anchor: "middle" }),
      svg("rect", { class: "tt-paper", x: left + 0.5, y: TOP + 0.5, width: side - 1, height: side - 1, rx: 6 }),
      ways.map(drawPair),
    ];
  }

  function draw(run, stop, width, label) {
    const side = Math.min(most, (width - 16) / 2);
    const begin = (width - 2 * side - 16) / 2;
    const names = run.tied ? ["scoring"] : ["reading", "scoring"];
    setSize(root, width, TOP + side, label);
    fill(
      root,
      names.map((name, i) => {
        const left = run.tied ? (width - side) / 2 : begin + i * (side + 16);
        const title = words.tables[run.tied ? "both" : name];
        return drawTable(waysOf(run.tables[name], stop, results.pairs.length), title, left, side);
      }),
    );
  }
  return { root, draw };
}

function renderTwoTables({ model, el }) {
  const words = wordsOf(twoTablesWords);
  const [isCompact, results] = [Boolean(model.get("compact")), model.get("results")];
  const { bound, follow } = controlsOf(model);
  const steps = bound(slider, "step", { label: words.steps, stops: results.stops });
  const tied = bound(toggle, "tied", { label: words.tied });
  const seeds = [...new Set(results.runs.map((run) => run.seed))];
  const seed = bound(choice, "seed", { label: words.seed, options: optionsFor(seeds) });
  const clouds = createClouds(results, words, isCompact ? LOW : MOST);
  const verdict = announcement("mm-verdict tt-verdict");
  const numbers = readout([]);
  const stage = h("div", { class: "mm-stage mm-column" }, clouds, createLegend(results.pairs, words));
  const control = row(steps, isCompact ? null : tied);
  const shape = isCompact ? { ...words, title: words.titleCompact } : words;
  const root = frame(
    shape,
    { stage, control, numbers: h("div", {}, verdict, numbers), more: [row([seed])] },
    isCompact,
  );

  function verdictOf(run, stop) {
    if (!stop) return words.verdict.begin;
    const { distances } = run.tables.scoring;
    if (distances[stop] > GONE * distances[0]) return words.verdict.moving;
    return run.tied ? words.verdict.tied : words.verdict.apart;
  }

  function draw(width) {
    const run = runOf(results, model.get("tied"), model.get("seed"));
    const stop = results.stops.indexOf(model.get("step"));
    const tables = Object.entries(run.tables);
    const told = tables.map(([name, { distances }]) => {
      const shown = run.tied ? "both" : name;
      return { name: shown, first: fmt(distances[0], 2), now: fmt(distances[stop], 2) };
    });
    const label = told.map(({ name, now }) => words.picture(words.tables[name], model.get("step"), now)).join(" ");
    clouds.draw(run, stop, width, label);
    follow();
    if (isCompact) return;
    verdict.set(verdictOf(run, stop));
    numbers.set(told.map(({ name, first, now }) => [words.distance[name], words.fromTo(first, now)]));
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw });
}

export default { render: renderTwoTables };
