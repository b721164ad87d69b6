// TwoTables: cosines of rows in two tables, or in one, while a model is trained.

import { h, svg, fill, fmt, textAt, setSize, slider, choice, namedOptions } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, across, upright, ticks } from "../../web/kit/chart.js";
import { tablesOf } from "./math.js";
import { twoTablesWords } from "./words.js";

const LANE = 26; // pixels, of a row of dots
const HEAD = 22; // of a table's name
const STRIP = HEAD + 2 * LANE + 10; // of a table
const NAMES = 84; // the names of the lanes, on the left
const EDGE = 10;
const SPREAD = 4; // dots lie so far above and below each other, at most

const digits = (x) => fmt(x, 2);

function createStrips(words) {
  const root = svg("svg", { role: "img", "data-sym": "stream" });

  function draw(tables, nameOf, width, label) {
    const x = linear([-1, 1], [NAMES + EDGE, width - EDGE]);
    const foot = 2 * STRIP; // of one table there is room for two: nothing below moves
    setSize(root, width, foot + 18, label);
    const strips = tables.map(({ name, dots, means }, i) => {
      const top = i * STRIP;
      const lanes = Object.entries(dots).map(([couples, cosines], lane) => {
        const y = top + HEAD + LANE * (lane + 0.5);
        const marks = cosines.map((cosine, k) => {
          const place = { cx: x(cosine).toFixed(1), cy: (y + ((k % 5) - 2) * (SPREAD / 2)).toFixed(1) };
          return svg("circle", { class: "tt-dot", "data-couples": couples, r: 3.5, ...place });
        });
        const mean = x(means[couples]);
        const line = across(y, NAMES + EDGE, width - EDGE, "mm-level");
        return [line, textAt(0, y + 4, words.couples[couples]), marks, upright(mean, y - 11, y + 11, "tt-mean")];
      });
      const zero = upright(x(0), top + HEAD, top + HEAD + 2 * LANE, "mm-faint");
      return [textAt(0, top + 14, nameOf(name), { cls: "mm-strong" }), zero, lanes];
    });
    fill(
      root,
      strips,
      ticks([-1, 0, 1], x, foot + 14, (cosine) => fmt(cosine, 0)),
    );
  }
  return { root, draw };
}

export default figure({
  words: twoTablesWords,
  traits: ["kind", "step"],
  verdict: "tt-verdict",
  create({ model, words, isCompact, bound }) {
    const results = model.get("results");
    const strips = createStrips(words);
    const steps = bound(slider, "step", { label: words.steps, stops: results.stops });
    const kind = bound(choice, "kind", { label: words.kind, options: namedOptions(words.kinds) });

    function draw(width) {
      const [shown, step] = [model.get("kind"), model.get("step")];
      const tables = tablesOf(results, shown, results.stops.indexOf(step));
      const keyOf = (name) => (shown === "one" ? "one" : name);
      const nameOf = (name) => words.tables[keyOf(name)];
      const sentences = tables.map(({ name, means }) =>
        words.verdict(nameOf(name), digits(means.pairs), digits(means.others)),
      );
      strips.draw(tables, nameOf, width, words.picture(sentences.join(" "), step));
      const numbers = tables.map(({ name, grown }) => [words.distance[keyOf(name)], words.times(digits(grown))]);
      return { verdict: sentences.join(" "), numbers };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column" }, strips),
      control: h("div", { class: "tt-control" }, steps, isCompact ? null : kind),
      draw,
    };
  },
});
