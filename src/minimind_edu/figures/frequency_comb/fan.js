// The compact FrequencyComb: one distance, how far every pair has rotated at it, and the wavelengths it has passed.

import {
  WIDE,
  h,
  svg,
  fill,
  setAttributes,
  textAt,
  setSize,
  fmt,
  grouped,
  slider,
  announcement,
} from "../../web/kit/kit.js";
import { row } from "../../web/kit/kit.js";
import { ring } from "../../web/kit/arcs.js";
import { linear, across, upright, ticks } from "../../web/kit/chart.js";

const LAST_POWER = Math.log10(32768); // the longest distance, in powers of ten
const START = Math.log10(256);
const FIRST = 0.6; // where the comb's axis begins: just before pair 0

/** The rings of all pairs, the fastest inside. Each is drawn as far as its pair has rotated. */
function createRings(words) {
  const disk = svg("circle", { class: "mm-soft" });
  const [done, open, tips] = [svg("path", { class: "fc-done" }), svg("path", { class: "fc-open" }), svg("g")];
  const start = svg("line", { class: "mm-axis", y1: 0, y2: 0 });
  const root = svg("svg", { role: "img", class: "fc-rings", "data-sym": "theta" }, disk, start, done, open, tips);

  function draw(periods, distance, size) {
    const [inner, outer] = [0.06 * size, 0.5 * size - 4];
    const apart = (outer - inner) / (periods.length - 1);
    const turns = periods.map((period) => distance / period);
    const drawn = (isDone) =>
      turns.map((share, pair) => (share >= 1 === isDone ? ring(inner + apart * pair, share) : "")).join("");
    setAttributes(root, { width: size, height: size, viewBox: `${-size / 2} ${-size / 2} ${size} ${size}` });
    setAttributes(disk, { r: outer + 3 });
    setAttributes(start, { x1: 0, x2: outer + 3 });
    setAttributes(done, { d: drawn(true), "stroke-width": 0.6 * apart });
    setAttributes(open, { d: drawn(false), "stroke-width": 0.8 * apart });
    const tip = (share, pair) => {
      const [angle, r] = [share * 2 * Math.PI, inner + apart * pair];
      return svg("circle", {
        class: "mm-ink fc-tip",
        cx: r * Math.cos(angle),
        cy: -r * Math.sin(angle),
        r: 0.9 * apart,
      });
    };
    fill(tips, turns.map(tip));
    const finished = turns.filter((share) => share >= 1).length;
    setAttributes(root, { "aria-label": words.rings(grouped(distance), finished, periods.length) });
    return finished;
  }
  return { root, draw };
}

/** The wavelengths on a logarithmic axis, and how far the distance has come along it. */
function createTeeth(words) {
  const root = svg("svg", { "aria-hidden": "true" }); // the rings say the same

  function draw(periods, distance, width, isNarrow) {
    const [top, foot, left, right] = [4, isNarrow ? 38 : 64, 6, 6];
    const last = Math.ceil(Math.log10(periods.at(-1)) * 10) / 10;
    const powerAt = linear([FIRST, last], [left, width - right]);
    const x = (positions) => powerAt(Math.log10(positions));
    const at = Math.max(left, x(distance));
    const tooth = (period) => `M${x(period).toFixed(1)} ${top}V${foot}`;
    const teeth = (isDone) =>
      periods
        .filter((period) => distance >= period === isDone)
        .map(tooth)
        .join("");
    const isRoomy = x(100) - x(10) > 62; // for each power of ten
    const powers = [1, 2, 3, 4, 5, 6, 7].filter((power) => power < last && (isRoomy || power % 2));
    setSize(root, width, foot + 42);
    fill(
      root,
      svg("rect", { class: "mm-soft", x: left, y: 0, width: at - left, height: foot + 6 }),
      svg("path", { class: "fc-done fc-thick", d: teeth(true) }),
      svg("path", { class: "fc-open fc-thick", d: teeth(false) }),
      upright(at, 0, foot + 6, "fc-cursor"),
      across(foot + 6, left, width - right, "mm-axis"),
      ticks(
        powers.map((power) => 10 ** power),
        x,
        foot + 21,
        grouped,
      ),
      textAt(left, foot + 38, words.teeth),
    );
  }
  return { root, draw };
}

/** The parts of the compact figure: { stage, control, draw(periods, width) }. */
export function createFan(words, onInput) {
  const distanceAt = (power) => Math.round(10 ** power);
  const format = (power) => words.positions(grouped(distanceAt(power)));
  const range = { min: 0, max: LAST_POWER, value: START };
  const distance = slider({ ...range, label: words.distance, format, onInput, sym: "m-n" });
  const [rings, teeth, verdict] = [createRings(words), createTeeth(words), announcement()];
  const stage = h("div", { class: "mm-stage fc-fan" }, rings, h("div", { class: "fc-side" }, verdict, teeth));

  function draw(periods, width) {
    const isNarrow = width < WIDE;
    const size = isNarrow ? 152 : 240;
    const now = distanceAt(distance.get());
    const done = rings.draw(periods, now, size);
    teeth.draw(periods, now, isNarrow ? width : width - size - 28, isNarrow);
    verdict.set(words.done(fmt(done, 0), periods.length));
  }
  return { stage, control: row(distance), draw };
}
