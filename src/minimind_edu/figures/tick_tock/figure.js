// TickTock: the rows of two words as arrows to drag, and which of two predictions are right.

import { draggable, handle, grip } from "../../web/kit/drag.js";
import { linear, lineThrough } from "../../web/kit/chart.js";
import { createBar } from "../../web/kit/bars.js";
import { h, svg, fill, setAttributes, setText, setSize, setTraits, clamp, fmt } from "../../web/kit/kit.js";
import { slider, choice, namedOptions } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { hiddenOf, leadsOf, chanceOf, beyond } from "./math.js";
import { aroundTip, within, placed } from "./names.js";
import { tickTockWords } from "./words.js";

const TRAITS = ["model", "tick", "tock", "reads_tick", "reads_tock", "angle"];
const ROWS = ["tick", "tock", "reads_tick", "reads_tock"];
const EDGE = 3; // as EDGE of the class
const STEP = 0.1; // of a coordinate
const MOST = 280; // pixels: the plane's side at most,
const HEAD = 244; // and at the head of a chapter
const OUTSIDE = 8; // pixels: from the plane's edge to its words
// Steps along both axes; from an end on, nothing goes further.
const WAYS = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
  PageUp: [5, 5],
  PageDown: [-5, -5],
  Home: [-Infinity, -Infinity],
  End: [Infinity, Infinity],
};

const round = (x) => Number(x.toFixed(1));

/** An arrow from one point to another. */
function createArrow(cls) {
  const shaft = svg("path", { class: `tk-shaft ${cls}` });
  const head = svg("path", { class: `tk-head ${cls}`, d: "M2 0L-10 6L-10 -6Z" });
  const root = svg("g", {}, shaft, head);
  function draw([x0, y0], [x, y]) {
    const long = Math.hypot(x - x0, y - y0) || 1;
    const [dx, dy] = [(x - x0) / long, (y - y0) / long];
    setAttributes(shaft, { d: lineThrough([[x0, y0], [x - 8 * dx, y - 8 * dy]]) }); // prettier-ignore
    const degrees = (Math.atan2(dy, dx) * 180) / Math.PI;
    setAttributes(head, { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${degrees.toFixed(1)})` });
  }
  return { root, draw };
}

function createPlane(words, move, most) {
  const root = svg("svg", { class: "tk-plane", role: "group" });
  const paper = svg("g", {});
  const arrows = ["tk-score", "tk-score", "tk-read", "tk-read"].map(createArrow); // in the order of ROWS
  const names = svg("g", {});
  const handles = svg("g", {});
  const [points, releases] = [[], []];
  let [scale, shown] = [null, {}];

  ROWS.forEach((name, i) => {
    const label = (i < 2 ? words.handle : words.handleRead)(words.words[i % 2]);
    const point = handle({ label, min: -EDGE, max: EDGE, reach: 17, ring: 11, shape: grip(5) });
    const onMove = (left, top) => {
      const at = [scale.x.invert(left), scale.y.invert(top)].map((x) => round(clamp(x, -EDGE, EDGE)));
      move({ [name]: at });
    };
    const position = () => [scale.x(shown[name][0]), scale.y(shown[name][1])];
    releases.push(draggable(point, { onMove, position, keyStep: 0 }));
    point.addEventListener("keydown", (event) => byKey(event, name), true);
    points.push(point);
  });

  // A key moves by one step of the coordinates: pixels would be rounded away.
  function byKey(event, name) {
    const direction = WAYS[event.key];
    if (!direction || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const step = STEP * (event.shiftKey && event.key.startsWith("Arrow") ? 5 : 1);
    move({ [name]: shown[name].map((x, axis) => round(clamp(x + step * direction[axis], -EDGE, EDGE))) });
  }

  function draw(state, leads, width) {
    shown = state;
    const side = Math.min(most, width);
    scale = {
      x: linear([-EDGE, EDGE], [OUTSIDE, side - OUTSIDE]),
      y: linear([-EDGE, EDGE], [side - OUTSIDE, OUTSIDE]),
    };
    const place = ([x, y]) => [scale.x(x), scale.y(y)];
    const named = (row) => words.point(...row.map((x) => fmt(x, 1)));
    setSize(root, side, side, words.picture(named(state.tick), named(state.tock)));
    const middle = place([0, 0]);
    const scoring = [state.tick, state.tock];
    const hidden = hiddenOf(state);
    // After a word is read, the row of the other must lie beyond the row of the same.
    const places = hidden.map((direction, read) => {
      const tone = leads[read] > 0 ? "good" : "bad";
      const corners = beyond(scoring[read], direction, EDGE).map(place);
      return svg("path", { class: "tk-place", "data-tone": tone, "data-read": read, d: `${lineThrough(corners)}Z` });
    });
    fill(
      paper,
      svg("rect", { class: "tk-paper", x: OUTSIDE, y: OUTSIDE, width: side - 2 * OUTSIDE, height: side - 2 * OUTSIDE }),
      places,
      svg("path", {
        class: "tk-axis",
        d: `M${OUTSIDE} ${middle[1]}H${side - OUTSIDE}M${middle[0]} ${OUTSIDE}V${side - OUTSIDE}`,
      }),
    );
    const drawn = state.model === "one" ? scoring : [...scoring, ...hidden];
    const tips = drawn.map(place);
    arrows.forEach((arrow, i) => {
      arrow.root.style.display = i < drawn.length ? "" : "none";
      if (i < drawn.length) arrow.draw(middle, tips[i]);
    });
    const labels = tips.map((tip, i) => {
      const kind = i < 2 ? "score" : state.model === "two" ? "read" : "block";
      return { text: words.labels[kind](words.words[i % 2]), candidates: aroundTip(tip, middle), cls: "mm-strong" };
    });
    const belongs = hidden.map((direction, read) => ({
      text: words.place(words.words[1 - read]),
      candidates: within(beyond(scoring[read], direction, EDGE).map(place), side),
      tone: leads[read] > 0 ? "good" : "bad",
    }));
    fill(names, placed([...labels, ...belongs], tips, side));
    const count = state.model === "two" ? ROWS.length : 2; // only what can be moved is there
    if (handles.children.length !== count) fill(handles, points.slice(0, count).reverse());
    points.forEach((point, i) => {
      const row = state[ROWS[i]];
      const [x, y] = place(row);
      setAttributes(point, {
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        "aria-valuenow": row[0],
        "aria-valuetext": named(row),
      });
    });
  }
  fill(
    root,
    paper,
    [...arrows].reverse().map((arrow) => arrow.root),
    names,
    handles,
  );
  return { root, draw, release: () => releases.forEach((release) => release()) };
}

/** Two predictions, by how much the right word leads in each, and the sum. */
function createResults(words) {
  const bars = [0, 1].map(() => createBar("tk-bar", ["tk-chance"]));
  const sum = h("b", {});
  const heads = h(
    "p",
    { class: "tk-heads" },
    words.heads.map((head) => h("span", {}, head)),
  );
  const last = h("p", { class: "tk-sum" }, h("span", {}, words.sum), sum);
  const root = h("div", { class: "tk-results", role: "group", "aria-label": words.results }, heads, bars, last);
  function draw(leads) {
    leads.forEach((lead, i) => {
      const [read, right] = [words.words[i], words.words[1 - i]];
      const isRight = lead > 0;
      bars[i].root.dataset.tone = isRight ? "good" : "bad";
      const number = fmt(lead, 1);
      const label = words.bar(read, right, number, isRight);
      const value = words.lead(number, isRight);
      bars[i].set({ word: words.after(read, right), shares: [[0, chanceOf(lead)]], value, label });
    });
    setText(sum, fmt(leads[0] + leads[1], 1));
  }
  return { root, draw };
}

function verdictOf(leads, words) {
  const right = [0, 1].filter((i) => leads[i] > 0);
  if (right.length === 2) return words.verdict.two;
  return right.length ? words.verdict.one(words.words[right[0]]) : words.verdict.none;
}

export default figure({
  words: tickTockWords,
  traits: TRAITS,
  verdict: "tk-verdict",
  create({ model, words, isCompact, bound }) {
    const plane = createPlane(words, (values) => setTraits(model, values), isCompact ? HEAD : MOST);
    const results = createResults(words);
    const box = h("div", { class: "tk-box" }, plane);
    const models = isCompact
      ? null
      : bound(choice, "model", { label: words.model, options: namedOptions(words.models) });
    const angle = bound(slider, "angle", {
      label: words.angle,
      min: 0,
      max: 360,
      step: 5,
      format: (x) => words.degrees(fmt(x, 0)),
    });
    const control = isCompact ? null : h("div", { class: "tk-control" }, models, angle);

    function draw(width) {
      const state = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
      // Of a sum that is zero nothing but rounding may be left.
      const leads = leadsOf(state).map((lead) => (Math.abs(lead) < 1e-9 ? 0 : lead));
      plane.draw(state, leads, width);
      results.draw(leads);
      angle.root.style.visibility = state.model === "block" ? "" : "hidden"; // its place stays
      return { verdict: verdictOf(leads, words), title: words.title[state.model] };
    }
    return {
      stage: h("div", { class: "mm-stage tk-stage" }, box, results),
      control,
      boxes: [box],
      parts: [plane],
      title: words.title[model.get("model")],
      draw,
    };
  },
});
