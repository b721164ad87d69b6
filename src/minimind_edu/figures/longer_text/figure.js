// LongerText: four bars, one for each quarter of a long text; below, on the same axis, one word looks back at the words
// before it, each where it is and where the unfinished pairs see it.

import { NARROW, h, svg, fill, setSize, textAt, fmt, slider, toggle, choice, optionsFor } from "../../web/kit/kit.js";
import { namedOptions, row } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { sector } from "../../web/kit/arcs.js";
import { linear, across, upright } from "../../web/kit/chart.js";
import { seenAt, sharesOf, bestOf } from "./math.js";
import { longerTextWords } from "./words.js";

const MOST = 1.32; // nats: the top of the bars, above the largest loss and its spread
const EDGE = 4; // between a bar and the end of its quarter
const APART = 24; // words between two lines of the fan
const ROOM = 150; // pixels that the longer name of a strip takes
const MET = 1e-9; // rotations: what is no further than this beyond is not beyond
const SIZES = { whole: { bars: 108, fan: 62 }, compact: { bars: 84, fan: 50 } };

function stateOf(model) {
  const [stretch, isFar, stored] = [model.get("stretch"), model.get("far"), model.get("stored")];
  const word = model.get("word");
  const ways = stored.losses[model.get("model")];
  const { mean, spread } = ways[isFar ? "far" : "pairs"];
  const here = { losses: mean[stretch - 1], spread: spread[stretch - 1], best: bestOf(mean) };
  return { stretch, isFar, stored, word, ...here, plain: mean[0], all: ways.pairs.mean[stretch - 1] };
}

/** A bar for each quarter of the text, dashed where it is without a stretch, with its loss above it. */
function createBars(x, top, floor, words, isNarrow) {
  const y = linear([0, MOST], [floor, top]);
  const at = (quarter, context) => [x(quarter * context) + EDGE, x((quarter + 1) * context) - EDGE];
  return (s) =>
    s.losses.map((loss, quarter) => {
      const [left, right] = at(quarter, s.stored.context);
      const [middle, first] = [(left + right) / 2, quarter * s.stored.context + 1];
      const ends = [loss - s.spread[quarter], loss + s.spread[quarter]].map(y);
      const isBest = s.best[quarter] === s.stretch;
      const name = words.words(first, first + s.stored.context - 1, isNarrow || quarter > 0);
      return [
        svg("rect", {
          class: "lt-plain",
          x: left,
          width: right - left,
          y: y(s.plain[quarter]),
          height: floor - y(s.plain[quarter]),
        }),
        svg("rect", {
          class: s.word > first && s.word < first + s.stored.context ? "lt-bar lt-reads" : "lt-bar",
          x: left,
          width: right - left,
          y: y(loss),
          height: floor - y(loss),
        }),
        svg("path", { class: "lt-spread", d: `M${middle} ${ends[0]}V${ends[1]}` }),
        textAt(middle, Math.min(ends[1], y(loss)) - 5, fmt(loss, 2), {
          anchor: "middle",
          cls: isBest ? "mm-strong" : "mm-halo",
        }),
        textAt(middle, floor + 15, name, { anchor: "middle" }),
      ];
    });
}

/** A line for every 24th word before the one that looks back: its top in its place, its foot where it is seen. */
function createFan(x, top, floor, words) {
  return (s) => {
    const { word, stored } = s;
    const known = word - stored.context; // from here on, words are as near as in training
    const room = x(known) - x(0);
    const distances = Array.from({ length: word / APART }, (_, i) => (i + 1) * APART);
    const lines = distances.map((distance) => {
      const seen = seenAt(stored, distance, s.stretch, s.isFar);
      const cls = seen > stored.context + MET ? "lt-line lt-new" : "lt-line";
      return svg("path", { class: cls, d: `M${x(word - distance)} ${top}L${x(word - seen).toFixed(1)} ${floor}` });
    });
    const back = (place, anchor) => textAt(x(place), floor + 34, words.back(word - place), { anchor });
    return [
      svg("rect", { class: "lt-met", x: x(known), width: x(word) - x(known), y: floor, height: 20 }),
      svg("rect", { class: "lt-unmet", x: x(0), width: room, y: floor, height: 20 }),
      across(top, x(0), x(word), "mm-axis"),
      lines,
      room > 0
        ? textAt(x(word) - 14, top - 6, words.away(word), { anchor: "end" })
        : textAt(x(word) + 6, top - 6, words.away(word)),
      svg("path", { class: "lt-reader", d: `M${x(word) - 9} ${top - 8}h9v8z` }),
      upright(x(word), top, floor + 20, "lt-here"),
      textAt((x(known) + x(word)) / 2, floor + 14, words.met, { anchor: "middle" }),
      room > 0 && textAt((x(0) + x(known)) / 2, floor + 14, words.unmet(room < ROOM), { anchor: "middle" }),
      room > 0 && (room < ROOM ? textAt(x(0), floor + 34, String(word)) : back(0, "start")),
      back(known, room > 0 ? "middle" : "start"),
      textAt(x(word), floor + 34, "0", { anchor: "end" }),
    ];
  };
}

/** All pairs as dials: the angles that training showed them, and those that are new. */
function createDials(words) {
  const root = h("div", { class: "lt-dials", "data-sym": "theta" });
  function draw(s) {
    const dials = sharesOf(s.stored, s.stretch, s.isFar, s.word).map(([met, reached], pair) => {
      const isNew = reached > met + MET;
      const drawing = svg(
        "svg",
        { viewBox: "-20 -20 40 40", role: "img", "aria-label": words.dial(pair, fmt(360 * met, 0), isNew) },
        svg("circle", { class: "mm-soft", r: 18 }),
        svg("path", { class: "lt-known", d: sector(18, 0, met) }),
        isNew && svg("path", { class: "lt-beyond", d: sector(18, met, reached) }),
      );
      return h("div", {}, drawing, h("span", {}, String(pair)));
    });
    fill(root, dials);
  }
  return { root, draw };
}

function verdictOf(s, words) {
  if (s.isFar) return words.verdict.far(s.stretch, fmt(s.losses.at(-1), 2), fmt(s.all.at(-1), 2));
  const quarter = s.best.indexOf(s.stretch);
  if (quarter < 0) return words.verdict.more(s.stretch);
  const first = quarter * s.stored.context + 1;
  return words.verdict.best(s.stretch, first, first + s.stored.context - 1, fmt(s.losses[quarter], 2));
}

export default figure({
  words: longerTextWords,
  traits: ["shows", "stretch", "far", "model", "word"],
  verdict: "lt-verdict",
  create({ model, words, isCompact, bound }) {
    const sizes = SIZES[isCompact ? "compact" : "whole"];
    const drawing = svg("svg", { role: "img" });
    const dials = isCompact ? null : createDials(words);
    const stretch = bound(slider, "stretch", {
      label: words.stretch,
      min: 1,
      max: 8,
      step: 1,
      format: words.times,
      sym: "theta",
    });
    const far = bound(toggle, "far", { label: words.far });
    const which = bound(choice, "model", { label: words.model, options: namedOptions(words.models) });
    const { context, length } = model.get("stored");
    const ends = Array.from({ length: length / context }, (_, quarter) => (quarter + 1) * context);
    const word = bound(choice, "word", { label: words.word, options: optionsFor(ends) });
    const isAboutFar = model.get("shows") === "far";

    function draw(width) {
      const s = stateOf(model);
      const isNarrow = width < NARROW;
      const x = linear([0, length], [1, width - 1]);
      const floor = 18 + sizes.bars;
      const [top, foot] = [floor + 44, floor + 44 + sizes.fan];
      const drawBars = createBars(x, 18, floor, words, isNarrow);
      const drawFan = createFan(x, top, foot, words);
      const label = words.picture(
        s.stretch,
        s.losses.map((loss) => fmt(loss, 2)),
      );
      setSize(drawing, width, foot + 38, label);
      fill(drawing, textAt(1, 12, words.loss), across(floor, x(0), x(length), "mm-axis"), drawBars(s), drawFan(s));
      dials?.draw(s);
      return { verdict: verdictOf(s, words) };
    }
    const box = h("div", { class: "lt-box" }, drawing);
    const switches = h("div", { class: "lt-switches" }, isAboutFar ? far : word, which);
    return {
      stage: h("div", { class: "mm-stage mm-column lt-stage" }, box, dials),
      control: h("div", { class: "lt-control" }, stretch, isCompact ? null : switches),
      title: isCompact ? words.titles.head : words.titles[model.get("shows")],
      boxes: [box],
      draw,
    };
  },
});
