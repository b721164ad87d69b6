// RotationDials: one dial a pair. Positions turn the arrows, dragging an arrow changes the query or the key itself.

import { h, clamp, grouped, setTraits, prefersReducedMotion, mount } from "./kit.js";
import { fmt, slider, toggle, choice, optionsFor, button, readout } from "./kit.js";
import { pairChannels, turnForPosition, ropeScore, cosineOnlyScore } from "./rope_math.js";
import { LAYOUT, LAST, situation, dialReach } from "./rotation_dials_views.js";
import { createDial, createRuler, createSum, createStrip } from "./rotation_dials_views.js";

const POSITIONS_PER_SECOND = 5;
const TRAITS = ["query", "key", "query_position", "key_position", "rope_base"];
const NOTE =
  "Slide both: every arrow turns, but no angle between q and k changes, so neither does the score. Drag a tip to " +
  "change the query or key itself.";

const whole = (x) => fmt(x, 0);

/** Let both positions run along the ruler; with reduced motion, jump eight positions instead. */
function createPlayer(positions, draw) {
  let frame = null;
  const stop = () => {
    if (frame === null) return;
    cancelAnimationFrame(frame);
    frame = null;
    const { m, n } = positions.read();
    positions.save(positions.slid(Math.round(Math.min(m, n)))); // rounding one by one could change their distance
    draw();
  };
  function start() {
    const { m, n } = positions.read();
    const end = LAST - Math.abs(m - n);
    const low = Math.min(m, n);
    if (prefersReducedMotion()) {
      positions.save(positions.slid(low + 8 > end ? 0 : low + 8));
      return;
    }
    const origin = low >= end ? 0 : low;
    let began = null;
    const step = (time) => {
      began ??= time;
      const first = Math.min(end, origin + ((time - began) / 1000) * POSITIONS_PER_SECOND);
      positions.pass(first);
      if (first < end) {
        frame = requestAnimationFrame(step);
        draw();
      } else stop();
    };
    frame = requestAnimationFrame(step);
  }
  return { start, stop, playing: () => frame !== null };
}

/** Reads and writes the positions; `between` holds them while the figure plays, when they are no whole numbers. */
function createPositions(model) {
  let between = null;
  const read = () => between ?? { m: model.get("query_position"), n: model.get("key_position") };
  const slid = (first) => {
    const { m, n } = read();
    const shift = clamp(first, 0, LAST - Math.abs(m - n)) - Math.min(m, n);
    return { m: m + shift, n: n + shift };
  };
  const apart = (distance) => {
    const n = clamp(read().n, Math.max(0, -distance), LAST - Math.max(0, distance));
    return { m: n + distance, n };
  };
  const save = ({ m, n }) => {
    between = null;
    const [query, key] = [m, n].map((position) => clamp(Math.round(position), 0, LAST));
    setTraits(model, { query_position: query, key_position: key });
  };
  return { read, slid, apart, save, pass: (first) => (between = slid(first)) };
}

/** Give the raw vector the values with which, turned for its position, its arrow points at `tip`. */
function dragArrow(model, name, position, channels, tip, reach) {
  const vector = model.get(name);
  const base = model.get("rope_base");
  const turned = turnForPosition(vector, position, base, LAYOUT, LAYOUT);
  const length = Math.hypot(...tip);
  const fitting = clamp(length, 0.1, reach) / (length || 1);
  channels.forEach((channel, i) => (turned[channel] = tip[i] * fitting));
  const raw = turnForPosition(turned, -position, base, LAYOUT, LAYOUT);
  const moved = (old, channel) => (channels.includes(channel) ? Number(raw[channel].toFixed(3)) : old);
  setTraits(model, { [name]: vector.map(moved) });
}

/** The rows of the read-out. While the figure plays they stay word for word the same: that is its message. */
function keyNumbers(s, playing, compare) {
  const first = Math.min(s.m, s.n);
  const [m, n] = [Math.round(s.m - first), Math.round(s.n - first)];
  const score = (a, b) => fmt(ropeScore(s.query, s.key, a, b, s.base, LAYOUT, LAYOUT), 6);
  const cosines = () => fmt(cosineOnlyScore(s.query, s.key, s.m - s.n, s.base, LAYOUT), 6);
  const rows = [
    [playing ? "score while both slide" : `score at m = ${whole(s.m)}, n = ${whole(s.n)}`, fmt(s.score, 6)],
    [`slid back to m = ${m}, n = ${n}`, score(m, n)],
    [`swapped: m = ${n}, n = ${m}`, score(n, m)],
  ];
  return compare ? [...rows, ["A·B·cos would say", cosines(), "bad"]] : rows;
}

function createSliders(move) {
  const range = { min: 0, max: LAST, step: 1, value: 0, format: whole };
  const m = slider({ ...range, label: "query position m", tone: "accent", onInput: (value) => move({ m: value }) });
  const n = slider({ ...range, label: "key position n", tone: "accent2", onInput: (value) => move({ n: value }) });
  const first = slider({ ...range, label: "slide both, starting at", onInput: (value) => move({ first: value }) });
  const set = (s) => {
    m.set(s.m);
    n.set(s.n);
    first.set(Math.min(s.m, s.n));
  };
  return { root: h("div", { class: "mm-controls rd-sliders" }, m.root, n.root, first.root), set };
}

function createBaseChoice(model) {
  const bases = [...new Set([100, 10000, 1000000, model.get("rope_base")])].sort((a, b) => a - b);
  const onChange = (value) => setTraits(model, { rope_base: value });
  return choice({ label: "rope_base", options: optionsFor(bases, grouped), value: model.get("rope_base"), onChange });
}

/** Call `draw` once after any number of changes in the same moment. */
function drawLater(draw) {
  let isWaiting = false;
  return () => {
    if (!isWaiting) {
      queueMicrotask(() => {
        isWaiting = false;
        draw();
      });
    }
    isWaiting = true;
  };
}

function renderDials({ model, el }) {
  const positions = createPositions(model);
  const player = createPlayer(positions, () => draw());
  const move = (change) => {
    player.stop();
    if (change.first !== undefined) positions.save(positions.slid(change.first));
    else if (change.distance !== undefined) positions.save(positions.apart(change.distance));
    else positions.save({ ...positions.read(), ...change });
  };
  const onTip = (name, channels, tip) => {
    player.stop();
    const { m, n } = positions.read();
    dragArrow(model, name === "q" ? "query" : "key", name === "q" ? m : n, channels, tip, reach);
  };

  const reach = dialReach(model.get("query"), model.get("key"));
  const pairs = pairChannels(model.get("query").length, LAYOUT);
  const [ruler, sum, strip] = [createRuler(move), createSum(pairs.length), createStrip(move)];
  const dials = pairs.map((channels, pair) => createDial(pair, channels, reach, onTip));
  const [sliders, base, numbers] = [createSliders(move), createBaseChoice(model), readout([])];
  const compare = toggle({ label: "Compare with A·B·cos (dashed)", onChange: () => draw() });
  const play = button({ label: "", onClick: () => (player.playing() ? player.stop() : player.start()) });
  const swap = button({
    label: "Swap m and n",
    onClick: () => move({ m: positions.read().n, n: positions.read().m }),
  });
  const distance = h("div", { class: "rd-distance" });
  const [rulerBox, sumBox, stripBox] = [ruler, sum, strip].map((part) => h("div", {}, part.root));
  const buttons = h("div", { class: "rd-buttons" }, play.root, swap.root);
  const columns = `--rd-columns: ${Math.min(4, pairs.length)}`;
  const stage = h(
    "div",
    { class: "mm-stage rd-stage" },
    h("div", { class: "rd-head-row" }, distance, buttons),
    rulerBox,
    h(
      "div",
      { class: "rd-dials", style: columns },
      dials.map((dial) => dial.root),
    ),
    h("div", { class: "rd-low" }, sumBox, stripBox),
  );
  const controls = h("div", { class: "mm-controls" }, base.root, compare.root);
  const note = h("p", { class: "mm-note" }, NOTE);
  const root = h("div", { class: "mm-fig" }, stage, sliders.root, controls, numbers.root, note);

  function draw() {
    if (!rulerBox.clientWidth) return; // hidden, or already taken away
    const { m, n } = positions.read();
    const s = situation(model.get("query"), model.get("key"), m, n, model.get("rope_base"));
    ruler.draw(s, rulerBox.clientWidth);
    dials.forEach((dial) => dial.draw(s));
    sum.draw(s, sumBox.clientWidth);
    strip.draw(s, stripBox.clientWidth, compare.get());
    sliders.set(s);
    base.set(s.base);
    distance.textContent = `m − n = ${whole(m - n)}`;
    play.set(player.playing() ? "❚❚ Pause" : "▶ Slide both");
    numbers.set(keyNumbers(s, player.playing(), compare.get()));
  }

  const parts = [{ release: player.stop }, ruler, strip, ...dials];
  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw: drawLater(draw), parts });
}

export default { render: renderDials };
