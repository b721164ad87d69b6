// KeyCircles: the keys of four properties in four fields, how many names are right, and where a query looks.

import { NARROW, h, svg, fill, setAttributes, setText, textAt, setSize, fmt } from "../../web/kit/kit.js";
import { slider, choice, optionsFor } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { reachOf, weightsOf, answered, meanOf } from "./math.js";
import { keyCirclesWords } from "./words.js";

const DOTS = [6.5, 5]; // pixels of radius, on a phone the second
const ROOM = { above: 22, below: 26 }; // of a field, for its name and its number
const LEAST = 0.1; // of the reach: a shorter arrow is none

/** What the traits choose among the stored trainings. */
function stateOf(model) {
  const [shows, width, seed, asked] = ["shows", "width", "seed", "asked"].map((name) => model.get(name));
  const { portraits } = model.get("stored");
  const { right, keys, queries } = portraits.find((portrait) => portrait.width === width && portrait.seed === seed);
  const looks = queries.map((of) => of[asked - 1]);
  const weights = keys.map((of, i) => weightsOf(looks[i], of));
  return { shows, width, asked, right, keys, looks, weights, reach: [reachOf(keys), reachOf(queries)] };
}

/** One property: its name, the keys of its eight values, the arrow of the query, and how many names are right. */
function createField(words, count) {
  const [name, share] = [
    textAt(0, 0, "", { anchor: "middle" }),
    textAt(0, 0, "", { anchor: "middle", cls: "kc-share" }),
  ];
  const dots = Array.from({ length: count }, () => svg("circle", { class: "kc-key", "data-sym": "k" }));
  const shaft = svg("path", { class: "kc-query", "data-sym": "q" });
  const root = svg("g", {}, name, shaft, dots, share);

  function draw(s, i, { x, y, radius, isNarrow }) {
    const right = s.right[i];
    const [keysReach, queriesReach] = s.reach;
    const r = DOTS[Number(isNarrow)];
    const inner = radius - r;
    const at = ([a, b], reach) => [x + (inner * a) / reach, y - (inner * b) / reach];
    setAttributes(name, { x, y: y - radius - 9 });
    setText(name, (isNarrow ? words.short : words.properties)[i]);
    setAttributes(share, { x, y: y + radius + 18, "data-tone": answered([right]) ? "good" : "bad" });
    setText(share, words.percent(right));
    const hasQuery = s.shows === "query";
    dots.forEach((dot, value) => {
      const [left, top] = at(s.keys[i][value], keysReach);
      setAttributes(dot, { r });
      dot.style.transform = `translate(${left.toFixed(1)}px, ${top.toFixed(1)}px)`;
      dot.dataset.asked = String(hasQuery && value === s.asked - 1);
      dot.style.setProperty("--kc-share", hasQuery ? s.weights[i][value].toFixed(3) : "1");
    });
    const [left, top] = at(s.looks[i], queriesReach);
    const [across, up] = [left - x, top - y];
    const length = Math.hypot(across, up);
    const isSeen = hasQuery && length > LEAST * inner;
    const tip = (turn) => {
      const angle = Math.atan2(up, across) + turn;
      return `${(left - 9 * Math.cos(angle)).toFixed(1)} ${(top - 9 * Math.sin(angle)).toFixed(1)}`;
    };
    const end = `L${left.toFixed(1)} ${top.toFixed(1)}`;
    const line = `M${x} ${y}${end}M${tip(0.45)}${end}L${tip(-0.45)}`;
    setAttributes(shaft, { d: isSeen ? line : "" });
  }
  return { root, draw };
}

function createFields(words, properties, count) {
  const fields = Array.from({ length: properties }, () => createField(words, count));
  const root = svg("svg", { role: "img" }, fields);

  function draw(s, width) {
    const isNarrow = width < NARROW;
    const column = width / properties;
    const radius = Math.min(column / 2 - 4, 74);
    const labels = s.right.map((share, i) =>
      words.field(words.properties[i], words.percent(share), answered([share]) === 1),
    );
    setSize(root, width, ROOM.above + 2 * radius + ROOM.below, words.picture(s.width, labels));
    fields.forEach((field, i) => field.draw(s, i, { x: (i + 0.5) * column, y: ROOM.above + radius, radius, isNarrow }));
  }
  return { root, draw };
}

export default figure({
  words: keyCirclesWords,
  traits: ["shows", "width", "seed", "asked"],
  create({ model, words, isCompact, bound }) {
    const { widths, seeds, portraits } = model.get("stored");
    const values = portraits[0].keys[0].length;
    const isQuery = model.get("shows") === "query";
    const fields = createFields(words, portraits[0].right.length, values);
    const channels = bound(slider, "width", { label: words.channels, stops: widths, tone: "k" });
    const asked = bound(slider, "asked", { label: words.asked, min: 1, max: values, step: 1, tone: "q" });
    const start = bound(choice, "seed", { label: words.seed, options: optionsFor(seeds, (seed) => seed + 1) });
    const switches = isCompact ? [channels] : isQuery ? [channels, asked] : [channels, start];

    function draw(width) {
      const s = stateOf(model);
      fields.draw(s, width);
      const all = words.percent(fmt(meanOf(s.right), 0));
      const shares = s.weights.map((of) => words.percent(fmt(100 * of[s.asked - 1], 0)));
      const { keys, query } = words.verdict;
      return { verdict: isQuery ? query(s.asked, words.listed(shares)) : keys(s.width, answered(s.right), all) };
    }
    return {
      stage: h("div", { class: "mm-stage" }, fields),
      control: h("div", { class: "mm-controls" }, switches),
      title: isQuery && !isCompact ? words.titleOfQuery : undefined,
      caption: isQuery ? words.captionOfQuery : undefined,
      draw,
    };
  },
});
