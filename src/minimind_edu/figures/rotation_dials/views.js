// The parts that RotationDials is drawn with: a dial, the ruler, the score at every distance.
// Each is { root, draw(...), release() }; none of them keeps the figure's state.

import { draggable, handle, arrowStep } from "../../web/kit/drag.js";
import { h, svg, fill, setAttributes, setText, textAt, setSize, clamp, fmt } from "../../web/kit/kit.js";
import { linear, lineThrough, across, upright, levels, ticks } from "../../web/kit/chart.js";
import { ropeFrequencies, pairChannels, turnForPosition, pairProducts } from "../../web/kit/rope.js";
import { ropeScore, scoresAt, cosineOnlyScore, angleBetween } from "../../web/kit/rope.js";

export const LAYOUT = "half-split"; // MiniMind's own: pair i is channels i and i + dim/2
export const LAST = 63; // the ruler's last position
const RIM = 96; // a dial's radius, in drawing units
const PILL = 104; // how wide the handle that slides both is at least, in pixels
const DEGREES = 180 / Math.PI;

const signed = (x, digits) => (Number(x.toFixed(digits)) > 0 ? "+" : "") + fmt(x, digits);

/** Everything the drawing needs for positions m and n, which may stand between two positions while the figure plays. */
export function situation(query, key, m, n, base) {
  const turned = {
    q: turnForPosition(query, m, base, LAYOUT, LAYOUT),
    k: turnForPosition(key, n, base, LAYOUT, LAYOUT),
  };
  const products = pairProducts(turned.q, turned.k, LAYOUT);
  const score = products.reduce((sum, product) => sum + product, 0);
  const [frequencies, largest] = [ropeFrequencies(query.length, base), largestProduct(query, key)];
  return { query, key, m, n, base, turned, products, score, frequencies, largest };
}

/** Where an arrow key or a drag leads on a ruler of positions. */
function positionAfter(event, dragged, now) {
  const step = arrowStep(event);
  return step ? now + step : Math.round(dragged);
}

function arcPath(radius, from, sweep, closed) {
  const at = (angle) => `${(radius * Math.cos(angle)).toFixed(2)} ${(-radius * Math.sin(angle)).toFixed(2)}`;
  const turn = clamp(sweep, -2 * Math.PI + 1e-3, 2 * Math.PI - 1e-3); // a full circle has no two ends to draw between
  const flags = `${Math.abs(turn) > Math.PI ? 1 : 0} ${turn > 0 ? 0 : 1}`;
  const arc = `A${radius} ${radius} 0 ${flags} ${at(from + turn)}`;
  return closed ? `M0 0L${at(from)}${arc}Z` : `M${at(from)}${arc}`;
}

/** An arrow on a dial: its track, its ghost before the rotation, itself, and with onDrag the handle at its tip. */
function createArrow(words, name, label, unit, onDrag) {
  const head = { q: "M4 0L-14 9L-14 -9Z", k: "M4 0L-7 8.5L-18 0L-7 -8.5Z" }[name]; // triangle and diamond
  const slides = { tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": -180, "aria-valuemax": 180 };
  const parts = {
    track: svg("path", { class: "rd-track" }),
    raw: svg("line", { class: "rd-raw", x1: 0, y1: 0 }),
    rawTip: svg("circle", { class: "rd-rawtip", r: 4 }),
    shaft: svg("line", { class: "rd-shaft", x1: 0, y1: 0 }),
    head: svg("path", { class: "rd-head", d: head }),
    letter: svg("text", { class: "rd-letter" }, name),
  };
  const hit = onDrag && svg("circle", { class: "rd-hit", r: 22, ...slides });
  const ring = onDrag && svg("circle", { class: "rd-ring", r: 20 });
  const under = svg("g", { "data-tone": name, "data-sym": name }, parts.track, parts.raw, parts.rawTip);
  const over = svg("g", { "data-tone": name, "data-sym": name }, parts.shaft, parts.head, parts.letter, hit, ring);
  let tip = [0, 0];
  const dragging = {
    keyStep: unit / 20,
    position: () => [tip[0] * unit, -tip[1] * unit],
    onMove: (x, y) => onDrag([x / unit, -y / unit]),
  };
  const release = onDrag ? draggable(hit, dragging) : () => {};

  function draw(before, after, sweep) {
    tip = after;
    const length = Math.hypot(...after);
    const [x, y] = [after[0] * unit, -after[1] * unit];
    const angle = Math.atan2(after[1], after[0]);
    const [rawX, rawY] = [before[0] * unit, -before[1] * unit];
    const beyond = length * unit + 13;
    setAttributes(parts.track, { d: arcPath(length * unit, Math.atan2(before[1], before[0]), sweep) });
    setAttributes(parts.raw, { x2: rawX, y2: rawY });
    setAttributes(parts.rawTip, { cx: rawX, cy: rawY });
    const neck = Math.max(0, 1 - 10 / Math.max(length * unit, 1));
    setAttributes(parts.shaft, { x2: x * neck, y2: y * neck });
    setAttributes(parts.head, { transform: `translate(${x} ${y}) rotate(${-angle * DEGREES})` });
    setAttributes(parts.letter, { x: beyond * Math.cos(angle), y: -beyond * Math.sin(angle) });
    if (!onDrag) return;
    for (const node of [hit, ring]) setAttributes(node, { cx: x, cy: y });
    const text = words.arrow(fmt(length), fmt(angle * DEGREES, 0));
    setAttributes(hit, { "aria-valuenow": Math.round(angle * DEGREES), "aria-valuetext": text });
  }
  return { under, over, draw, release };
}

/** The longest arrow that the dials hold: 1.5, or more if an arrow is longer from the start. */
export function dialReach(query, key) {
  const pairs = pairChannels(query.length, LAYOUT);
  const lengths = [query, key].flatMap((vector) => pairs.map(([a, b]) => Math.hypot(vector[a], vector[b])));
  return Math.max(1.5, ...lengths);
}

/** The most that a pair can add, however its arrows point: the end of the bars, which no rotation can move. */
export function largestProduct(query, key) {
  const lengths = (vector) => pairChannels(vector.length, LAYOUT).map(([a, b]) => Math.hypot(vector[a], vector[b]));
  const [q, k] = [lengths(query), lengths(key)];
  return Math.max(...q.map((length, pair) => length * k[pair])) || 1;
}

/** One pair: its two arrows, and below them what it adds to the score. Without onDrag the arrows cannot be dragged. */
export function createDial(words, pair, channels, reach, onDrag) {
  const createOne = (name, label) => {
    return createArrow(words, name, label, RIM / reach, onDrag && ((tip) => onDrag(name, channels, tip)));
  };
  const arrows = [createOne("q", words.queryArrow(pair)), createOne("k", words.keyArrow(pair))];
  const wedge = svg("path", { class: "rd-wedge" });
  const [speed, between] = [h("p", { class: "rd-speed", "data-sym": "theta" }), h("p", { class: "rd-between" })];
  const adds = h("p", { class: "rd-adds" });
  const bar = h("div");
  const drawing = svg(
    "svg",
    { viewBox: "-113 -113 226 226", role: onDrag ? "group" : "img" },
    svg("circle", { class: "rd-face", r: RIM }),
    svg("path", { class: "mm-level", d: `M${-RIM} 0H${RIM}M0 ${-RIM}V${RIM}` }),
    arrows.map((arrow) => arrow.under),
    wedge,
    arrows.map((arrow) => arrow.over),
  );
  const where = h("span", { class: "rd-channels" }, ` · ${words.channels(channels)}`);
  const title = h("p", { class: "rd-name" }, h("b", {}, words.pair(pair)), where);
  const root = h("div", { class: "rd-dial" }, title, speed, drawing, between, adds, h("div", { class: "rd-bar" }, bar));

  function draw(s) {
    const of = (vector) => channels.map((channel) => vector[channel]);
    const sweep = LAST * s.frequencies[pair];
    arrows[0].draw(of(s.query), of(s.turned.q), sweep);
    arrows[1].draw(of(s.key), of(s.turned.k), sweep);
    const [q, k] = [of(s.turned.q), of(s.turned.k)];
    const angle = angleBetween(k, q);
    setAttributes(wedge, { d: arcPath(30, Math.atan2(k[1], k[0]), angle, true) });
    const degrees = s.frequencies[pair] * DEGREES;
    const digits = degrees < 0.095 ? 4 : degrees < 1 ? 2 : 1;
    const [apart, product] = [signed(angle * DEGREES, 1), signed(s.products[pair], 3)];
    setText(speed, words.speed(fmt(degrees, digits)));
    setText(between, words.between(apart));
    setText(adds, words.adds(product));
    setAttributes(drawing, { "aria-label": words.dial(pair, apart, product) });
    const share = (50 * s.products[pair]) / s.largest; // percent of the bar, from its middle
    bar.className = share < 0 ? "rd-minus" : "rd-plus";
    Object.assign(bar.style, { left: `${50 + Math.min(0, share)}%`, width: `${Math.abs(share)}%` });
  }
  return { root, draw, release: () => arrows.forEach((arrow) => arrow.release()) };
}

/** The ruler of positions: the query's token above, the key's below, and between them the handle that slides both. */
export function createRuler(words, move) {
  const [top, middle, bottom, height, margin] = [17, 48, 79, 96, 18];
  let now = { m: 0, n: 0 };
  let [x, drawnWidth] = [null, 0];
  const axis = svg("g");

  const token = (tone, symbol, label, ...shapes) => {
    const slides = { tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": LAST };
    return svg("g", { class: "rd-token", "data-tone": tone, "data-sym": symbol, ...slides }, shapes);
  };
  const stem = (from) => svg("line", { class: "rd-stem", y1: from, y2: middle });
  const letter = (y, text) => svg("text", { class: "rd-onbody", y }, text);
  const disk = (cls, r) => svg("circle", { class: cls, cy: top, r });
  const square = (cls, half, rx) => {
    return svg("rect", { class: cls, x: -half, y: bottom - half, width: 2 * half, height: 2 * half, rx });
  };
  const lozenge = (cls, half) => svg("rect", { class: cls, y: middle - half, height: 2 * half, rx: half });

  const queryShapes = [stem(top), disk("rd-body", 14), letter(top, "q"), disk("rd-ring", 17)];
  const keyShapes = [stem(bottom), square("rd-body", 14, 5), letter(bottom, "k"), square("rd-ring", 17, 7)];
  const q = token("q", "m", words.queryPosition, queryShapes);
  const k = token("k", "n", words.keyPosition, keyShapes);
  const [pill, pillRing] = [lozenge("rd-pill", 14), lozenge("rd-ring", 17)];
  const distance = textAt(null, middle, "", { anchor: "middle", cls: "mm-strong rd-both" });
  const both = token(null, "m-n", words.slideOnRuler, pill, distance, pillRing);
  const drawing = { height, role: "group", "aria-label": words.ruler, style: "touch-action: pan-y" };
  const root = svg("svg", drawing, axis, q, k, both);

  let offset = 0; // of the finger from the smaller position, while both slide
  const start = (event) => {
    const px = event.clientX - root.getBoundingClientRect().left;
    offset = x.invert(px) - Math.min(now.m, now.n);
  };
  const slideBoth = (px, _, event) => {
    move({ first: positionAfter(event, x.invert(px) - offset, Math.min(now.m, now.n)) });
  };
  const releases = [
    draggable(q, { onMove: (px, _, event) => move({ m: positionAfter(event, x.invert(px), now.m) }) }),
    draggable(k, { onMove: (px, _, event) => move({ n: positionAfter(event, x.invert(px), now.n) }) }),
    draggable(both, { onStart: start, onMove: slideBoth }),
  ];

  function drawTicks(width) {
    setSize(root, width, height);
    x = linear([0, LAST], [margin, width - margin]);
    const tick = (_, position) => {
      const half = position % 8 ? 3 : 6;
      return upright(x(position), middle - half, middle + half, "rd-tick");
    };
    fill(
      axis,
      across(middle, x(0), x(LAST), "rd-axis"),
      Array.from({ length: LAST + 1 }, tick),
      ticks([0, 16, 32, 48, LAST], x, middle + 24),
    );
  }

  function draw(s, width) {
    now = { m: s.m, n: s.n };
    if (width !== drawnWidth) drawTicks(width);
    drawnWidth = width;
    const [low, high] = [Math.min(s.m, s.n), Math.max(s.m, s.n)];
    const wide = Math.max(PILL, x(high) - x(low));
    const from = clamp((x(high) + x(low) - wide) / 2, 0, width - wide);
    setAttributes(pill, { x: from, width: wide });
    setAttributes(pillRing, { x: from - 3, width: wide + 6 });
    setAttributes(distance, { x: from + wide / 2 });
    setText(distance, `‹ ${words.distance(fmt(s.m - s.n, 0))} ›`);
    setAttributes(q, { transform: `translate(${x(s.m)} 0)`, "aria-valuenow": Math.round(s.m) });
    setAttributes(k, { transform: `translate(${x(s.n)} 0)`, "aria-valuenow": Math.round(s.n) });
    const text = words.positions(fmt(s.m, 0), fmt(s.n, 0));
    setAttributes(both, { "aria-valuenow": Math.round(low), "aria-valuetext": text });
  }
  return { root, draw, release: () => releases.forEach((release) => release()) };
}

/** The score at every distance, with the point where the figure stands and its mirror image. */
export function createStrip(words, move) {
  const [height, left, right, top, bottom] = [186, 34, 8, 22, 22];
  const wordsHeight = 18; // the line of words above the curves
  const masked = svg("rect", { class: "mm-soft", x: left, y: top, height: height - top - bottom });
  const [grid, sides] = [svg("g"), svg("g")];
  const [curve, wrong] = [svg("path", { class: "rd-curve" }), svg("path", { class: "rd-wrong" })];
  const plumb = svg("line", { class: "mm-faint", y1: top, y2: height - bottom });
  const mirror = svg("circle", { class: "rd-mirror", r: 4.5 });
  const point = svg("circle", { class: "rd-point", r: 6.5 });
  const title = textAt(0, 12, words.strip);
  const here = handle({ label: words.stripHandle, min: -LAST, max: LAST, reach: 20, ring: 11, shape: point });
  const parts = [masked, grid, sides, wrong, curve, plumb, mirror, here, title];
  const drawing = { height, role: "group", "aria-label": words.strip, style: "touch-action: pan-y" };
  const root = svg("svg", drawing, parts);
  let drawnFor = "";
  let y = () => 0;
  let now = { distance: 0, x: null };
  const release = draggable(here, {
    onMove: (px, _, event) => {
      move({ distance: clamp(positionAfter(event, now.x.invert(px), now.distance), -LAST, LAST) });
    },
  });

  function drawCurves(s, width, x, compare) {
    const distances = Array.from({ length: 8 * LAST + 1 }, (_, i) => i / 4 - LAST);
    const scores = scoresAt(s.query, s.key, distances, s.base, LAYOUT);
    const cosines = compare ? distances.map((d) => cosineOnlyScore(s.query, s.key, d, s.base, LAYOUT)) : [];
    const [low, high] = [Math.min(...scores, ...cosines), Math.max(...scores, ...cosines)];
    const pad = 0.08 * (high - low) + 0.05;
    y = linear([high + pad, low - pad], [top + wordsHeight, height - bottom]);
    const line = (values) => lineThrough(values.map((value, i) => [x(distances[i]), y(value)]));
    setAttributes(curve, { d: line(scores) });
    setAttributes(wrong, { d: line(cosines) });
    setSize(root, width, height);
    setAttributes(masked, { width: Math.max(0, x(0) - left) });
    const isInside = (level) => level >= low - pad && level <= high + pad;
    const scoresNamed = [...new Set([Math.ceil(low), 0, Math.floor(high)])].filter(isInside);
    const whole = (number) => fmt(number, 0);
    fill(
      grid,
      levels(scoresNamed, y, left, width - right, whole),
      ticks([-48, -32, -16, 0, 16, 32, 48], x, height - 6, whole),
    );
    fill(
      sides,
      textAt((left + x(0)) / 2, top + 14, words.keyAfter, { anchor: "middle" }),
      textAt((x(0) + width - right) / 2, top + 14, words.keyBefore, { anchor: "middle" }),
    );
  }

  function draw(s, width, compare) {
    const x = linear([-LAST, LAST], [left, width - right]);
    const wanted = JSON.stringify([s.query, s.key, s.base, width, compare]);
    if (wanted !== drawnFor) drawCurves(s, width, x, compare);
    drawnFor = wanted;
    const distance = s.m - s.n;
    const swapped = ropeScore(s.query, s.key, s.n, s.m, s.base, LAYOUT, LAYOUT);
    setAttributes(plumb, { x1: x(distance), x2: x(distance) });
    now = { distance, x };
    const text = words.stripValue(fmt(distance, 0), fmt(s.score, 4), fmt(swapped, 4));
    setAttributes(here, { transform: `translate(${x(distance)} ${y(s.score)})` });
    setAttributes(here, { "aria-valuenow": Math.round(distance), "aria-valuetext": text });
    setAttributes(mirror, { cx: x(-distance), cy: y(swapped) });
  }
  return { root, draw, release };
}
