// TwoTables: the rows of six words in two tables, or in one, while a model is trained.

import { h, svg, fill, fmt, textAt, setSize, slider, toggle, choice, optionsFor, row } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, lineThrough } from "../../web/kit/chart.js";
import { runOf, waysOf, reachOf } from "./math.js";
import { twoTablesWords } from "./words.js";

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

function verdictOf(run, stop, words) {
  if (!stop) return words.verdict.begin;
  const { distances } = run.tables.scoring;
  if (distances[stop] > GONE * distances[0]) return words.verdict.moving;
  return run.tied ? words.verdict.tied : words.verdict.apart;
}

/** For each table that there is: its name, and how far apart the rows of two words alike were first and are now. */
function distancesOf(run, stop) {
  return Object.entries(run.tables).map(([name, { distances }]) => {
    return { name: run.tied ? "both" : name, first: fmt(distances[0], 2), now: fmt(distances[stop], 2) };
  });
}

export default figure({
  words: twoTablesWords,
  traits: ["step", "tied", "seed"],
  verdict: "tt-verdict",
  create({ model, words, isCompact, bound }) {
    const results = model.get("results");
    const seeds = optionsFor([...new Set(results.runs.map((run) => run.seed))]);
    const clouds = createClouds(results, words, isCompact ? LOW : MOST);
    const steps = bound(slider, "step", { label: words.steps, stops: results.stops });
    const tied = bound(toggle, "tied", { label: words.tied });

    function draw(width) {
      const step = model.get("step");
      const [run, stop] = [runOf(results, model.get("tied"), model.get("seed")), results.stops.indexOf(step)];
      const distances = distancesOf(run, stop);
      const label = distances.map(({ name, now }) => words.picture(words.tables[name], step, now)).join(" ");
      clouds.draw(run, stop, width, label);
      const numbers = distances.map(({ name, first, now }) => [words.distance[name], words.fromTo(first, now)]);
      return { verdict: verdictOf(run, stop, words), numbers };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column" }, clouds, createLegend(results.pairs, words)),
      control: row(steps, isCompact ? null : tied),
      more: [row(bound(choice, "seed", { label: words.seed, options: seeds }))],
      draw,
    };
  },
});
