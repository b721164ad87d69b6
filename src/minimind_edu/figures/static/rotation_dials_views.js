// The parts that RotationDials is drawn with: a dial, the ruler, the running sum, the score at every distance.
// Each is { root, draw(...), release() }; none of them keeps the figure's state.

import { h, svg, fmt, draggable } from "./kit.js";
import { ropeFrequencies, pairChannels, turnForPosition, pairProducts, ropeScore, cosineOnlyScore, angleBetween } from "./rope_math.js";

export const LAYOUT = "half-split"; // MiniMind's own: pair i is channels i and i + dim/2
export const LAST = 63; // the ruler's last position
const RIM = 96; // a dial's radius, in drawing units
const DEGREES = 180 / Math.PI;

export const DIALS_CSS = `
.rd-stage { display: grid !important; gap: 14px !important; justify-content: stretch !important; }
.rd-dials { display: grid; grid-template-columns: repeat(var(--rd-columns), minmax(0, 1fr)); gap: 14px 12px; }
.rd-low { display: grid; grid-template-columns: minmax(0, 6fr) minmax(0, 7fr); gap: 14px 28px; }
.rd-sliders { grid-template-columns: repeat(3, minmax(0, 1fr)) !important; }
.rd-head-row { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center; justify-content: space-between; }
.rd-distance { font-size: 16px; font-weight: 600; }
.rd-dial { min-width: 0; text-align: center; font-size: 13px; line-height: 1.4; }
.rd-dial svg { width: 100%; max-width: 210px !important; margin: 0 auto; overflow: visible; touch-action: pan-y; }
.rd-dial b { font-size: 14px; }
.rd-dial p { color: var(--mm-muted); white-space: nowrap; }
.rd-dial .rd-adds { color: var(--mm-ink); font-weight: 600; }
.rd-face { fill: var(--mm-panel); stroke: var(--mm-line); stroke-width: 1.5; }
.rd-cross { stroke: var(--mm-line); stroke-width: 1; }
.rd-q { --rd-color: var(--mm-accent); }
.rd-k { --rd-color: var(--mm-accent2); }
.rd-shaft { stroke: var(--rd-color); stroke-width: 4.5; stroke-linecap: round; }
.rd-head { fill: var(--rd-color); stroke: var(--mm-panel); stroke-width: 1.5; stroke-linejoin: round; }
.rd-raw { stroke: var(--rd-color); stroke-width: 2; stroke-dasharray: 2 5; stroke-linecap: round; opacity: 0.55; }
.rd-rawtip { fill: var(--mm-panel); stroke: var(--rd-color); stroke-width: 1.75; opacity: 0.7; }
.rd-track { fill: none; stroke: var(--rd-color); stroke-width: 2; opacity: 0.28; }
.mm-fig text.rd-letter { fill: var(--rd-color); font-size: 21px; font-weight: 700; text-anchor: middle; dominant-baseline: central; }
.rd-hit { fill: transparent; outline: none !important; }
.rd-hit:focus-visible + .rd-ring, .rd-token:focus-visible .rd-ring { stroke: var(--mm-ink); }
.rd-token { outline: none !important; }
.rd-ring { fill: none; stroke: transparent; stroke-width: 2; pointer-events: none; }
.rd-wedge { fill: var(--mm-ink); fill-opacity: 0.1; stroke: var(--mm-ink); stroke-width: 1.5; stroke-linejoin: round; }
.rd-axis { stroke: var(--mm-muted); stroke-width: 1.5; }
.rd-tick { stroke: var(--mm-muted); stroke-width: 1; opacity: 0.6; }
.rd-stem { stroke: var(--rd-color); stroke-width: 2; }
.rd-body { fill: var(--rd-color); }
.mm-fig text.rd-onbody { fill: var(--mm-bg); font-size: 15px; font-weight: 700; text-anchor: middle; dominant-baseline: central; pointer-events: none; }
.rd-pill { fill: var(--mm-panel); stroke: var(--mm-ink); stroke-width: 1.5; }
.mm-fig text.rd-small { fill: var(--mm-muted); font-size: 12px; }
.mm-fig text.rd-strong { font-weight: 600; }
.rd-curve { fill: none; stroke: var(--mm-ink); stroke-width: 1.75; stroke-linejoin: round; }
.rd-wrong { fill: none; stroke: var(--mm-bad); stroke-width: 1.5; stroke-dasharray: 5 4; }
.rd-masked { fill: var(--mm-soft); }
.rd-zero { stroke: var(--mm-line); stroke-width: 1; }
.rd-plus { fill: var(--mm-good); }
.rd-minus { fill: var(--mm-bad); }
.rd-total { fill: var(--mm-ink); }
.rd-link { stroke: var(--mm-muted); stroke-width: 1; stroke-dasharray: 2 3; }
.rd-buttons { display: flex; flex-wrap: wrap; gap: 8px; }
.mm-fig text.rd-sum { font-size: 16px; font-weight: 700; }
@container (max-width: 560px) {
  .rd-dials { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .rd-low, .rd-sliders { grid-template-columns: minmax(0, 1fr) !important; }
  .rd-dial { font-size: 12px !important; }
}
`;

export const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const place = (node, attrs) => Object.entries(attrs).forEach(([name, value]) => node.setAttribute(name, value));
const signed = (x, digits) => (Number(x.toFixed(digits)) > 0 ? "+" : "") + fmt(x, digits);

/** Everything the drawing needs for positions m and n, which may stand between two positions while the figure plays. */
export function situation(query, key, m, n, base) {
  const turned = { q: turnForPosition(query, m, base, LAYOUT, LAYOUT), k: turnForPosition(key, n, base, LAYOUT, LAYOUT) };
  const products = pairProducts(turned.q, turned.k, LAYOUT);
  const score = products.reduce((sum, product) => sum + product, 0);
  return { query, key, m, n, base, turned, products, score, frequencies: ropeFrequencies(query.length, base) };
}

/** Where an arrow key or a drag leads on a ruler of positions. */
function positionAfter(event, dragged, now) {
  const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  return step ? now + step * (event.shiftKey ? 5 : 1) : Math.round(dragged);
}

function arcPath(radius, from, sweep, closed) {
  const at = (angle) => `${(radius * Math.cos(angle)).toFixed(2)} ${(-radius * Math.sin(angle)).toFixed(2)}`;
  const turn = clamp(sweep, -2 * Math.PI + 1e-3, 2 * Math.PI - 1e-3); // a full circle has no two ends to draw between
  const flags = `${Math.abs(turn) > Math.PI ? 1 : 0} ${turn > 0 ? 0 : 1}`;
  const arc = `A${radius} ${radius} 0 ${flags} ${at(from + turn)}`;
  return closed ? `M0 0L${at(from)}${arc}Z` : `M${at(from)}${arc}`;
}

/** An arrow on a dial: its track, its ghost before the turn, itself, and the handle at its tip. */
function createArrow(name, label, unit, onDrag) {
  const head = { q: "M4 0L-14 9L-14 -9Z", k: "M4 0L-7 8.5L-18 0L-7 -8.5Z" }[name]; // triangle and diamond
  const parts = {
    track: svg("path", { class: "rd-track" }),
    raw: svg("line", { class: "rd-raw", x1: 0, y1: 0 }),
    rawTip: svg("circle", { class: "rd-rawtip", r: 4 }),
    shaft: svg("line", { class: "rd-shaft", x1: 0, y1: 0 }),
    head: svg("path", { class: "rd-head", d: head }),
    letter: svg("text", { class: "rd-letter" }, name),
    hit: svg("circle", { class: "rd-hit", r: 22, tabindex: 0, role: "slider", "aria-label": label, "aria-valuemin": -180, "aria-valuemax": 180 }),
    ring: svg("circle", { class: "rd-ring", r: 20 }),
  };
  const { track, raw, rawTip, shaft, ...rest } = parts;
  const under = svg("g", { class: `rd-${name}` }, track, raw, rawTip);
  const over = svg("g", { class: `rd-${name}` }, shaft, Object.values(rest));
  let tip = [0, 0];
  const release = draggable(parts.hit, {
    keyStep: unit / 20,
    position: () => [tip[0] * unit, -tip[1] * unit],
    onMove: (x, y) => onDrag([x / unit, -y / unit]),
  });

  function draw(before, after, sweep) {
    tip = after;
    const length = Math.hypot(...after);
    const [x, y] = [after[0] * unit, -after[1] * unit];
    const angle = Math.atan2(after[1], after[0]);
    const [rawX, rawY] = [before[0] * unit, -before[1] * unit];
    const beyond = length * unit + 13;
    place(track, { d: arcPath(length * unit, Math.atan2(before[1], before[0]), sweep) });
    place(raw, { x2: rawX, y2: rawY });
    place(rawTip, { cx: rawX, cy: rawY });
    const neck = Math.max(0, 1 - 10 / Math.max(length * unit, 1));
    place(shaft, { x2: x * neck, y2: y * neck });
    place(parts.head, { transform: `translate(${x} ${y}) rotate(${-angle * DEGREES})` });
    place(parts.letter, { x: beyond * Math.cos(angle), y: -beyond * Math.sin(angle) });
    for (const node of [parts.hit, parts.ring]) place(node, { cx: x, cy: y });
    const text = `length ${fmt(length)}, ${fmt(angle * DEGREES, 0)} degrees`;
    place(parts.hit, { "aria-valuenow": Math.round(angle * DEGREES), "aria-valuetext": text });
  }
  return { under, over, draw, release };
}

/** The longest arrow that the dials hold: 1.5, or more if an arrow is longer from the start. */
export function dialReach(query, key) {
  const lengths = pairChannels(query.length, LAYOUT).flatMap(([a, b]) => [query, key].map((v) => Math.hypot(v[a], v[b])));
  return Math.max(1.5, ...lengths);
}

export function createDial(pair, channels, reach, onDrag) {
  const arrows = ["q", "k"].map((name) =>
    createArrow(name, `${name === "q" ? "query" : "key"} arrow of pair ${pair}`, RIM / reach, (tip) => onDrag(name, channels, tip)),
  );
  const wedge = svg("path", { class: "rd-wedge" });
  const [speed, between, adds] = [h("p"), h("p"), h("p", { class: "rd-adds" })];
  const drawing = svg(
    "svg",
    { viewBox: "-113 -113 226 226", role: "group", "aria-label": `dial of pair ${pair}` },
    svg("circle", { class: "rd-face", r: RIM }),
    svg("path", { class: "rd-cross", d: `M${-RIM} 0H${RIM}M0 ${-RIM}V${RIM}` }),
    arrows.map((arrow) => arrow.under),
    wedge,
    arrows.map((arrow) => arrow.over),
  );
  const title = h("p", {}, h("b", { style: "color: var(--mm-ink)" }, `pair ${pair}`), ` · channels ${channels.join(", ")}`);
  const root = h("div", { class: "rd-dial" }, drawing, title, speed, between, adds);

  function draw(s) {
    const of = (vector) => channels.map((channel) => vector[channel]);
    const sweep = LAST * s.frequencies[pair];
    arrows[0].draw(of(s.query), of(s.turned.q), sweep);
    arrows[1].draw(of(s.key), of(s.turned.k), sweep);
    const [q, k] = [of(s.turned.q), of(s.turned.k)];
    const angle = angleBetween(k, q);
    place(wedge, { d: arcPath(30, Math.atan2(k[1], k[0]), angle, true) });
    const degrees = s.frequencies[pair] * DEGREES;
    speed.textContent = `${degrees >= 0.095 ? fmt(degrees, degrees < 1 ? 2 : 1) : fmt(degrees, 4)}° per position`;
    between.textContent = `from k to q ${signed(angle * DEGREES, 1)}°`;
    adds.textContent = `adds ${signed(s.products[pair], 3)}`;
    adds.dataset.tone = s.products[pair] < 0 ? "bad" : "good";
  }
  return { root, draw, release: () => arrows.forEach((arrow) => arrow.release()) };
}

/** The ruler of positions: the query's token above, the key's below, and between them the handle that slides both. */
export function createRuler(move) {
  const [top, middle, bottom, height, margin] = [18, 52, 88, 108, 18];
  let now = { m: 0, n: 0, step: 1 };
  const x = (position) => margin + position * now.step;
  const ticks = svg("g");
  const handle = (name, text, ...shapes) =>
    svg("g", { class: `rd-token rd-${name}`, tabindex: 0, role: "slider", "aria-label": text, "aria-valuemin": 0, "aria-valuemax": LAST }, shapes);
  const q = handle("q", "query position m",
    svg("line", { class: "rd-stem", y1: top, y2: middle }), svg("circle", { class: "rd-body", cy: top, r: 14 }),
    svg("text", { class: "rd-onbody", y: top }, "q"), svg("circle", { class: "rd-ring", cy: top, r: 17 }));
  const k = handle("k", "key position n",
    svg("line", { class: "rd-stem", y1: bottom, y2: middle }), svg("rect", { class: "rd-body", x: -14, y: bottom - 14, width: 28, height: 28, rx: 5 }),
    svg("text", { class: "rd-onbody", y: bottom }, "k"), svg("rect", { class: "rd-ring", x: -17, y: bottom - 17, width: 34, height: 34, rx: 7 }));
  const [pill, pillRing] = [svg("rect", { class: "rd-pill", y: middle - 14, height: 28, rx: 14 }), svg("rect", { class: "rd-ring", y: middle - 17, height: 34, rx: 17 })];
  const grip = svg("text", { class: "rd-strong", y: middle, "text-anchor": "middle", "dominant-baseline": "central", style: "font-size: 12px; pointer-events: none" }, "‹ both ›");
  const both = handle("both", "slide both", pill, grip, pillRing);
  const root = svg("svg", { height, role: "group", "aria-label": "ruler of positions", style: "touch-action: pan-y" }, ticks, q, k, both);

  let offset = 0; // of the finger from the smaller position, while both slide
  const start = (event) => (offset = (event.clientX - root.getBoundingClientRect().left - margin) / now.step - Math.min(now.m, now.n));
  const releases = [
    draggable(q, { onMove: (px, _, event) => move({ m: positionAfter(event, (px - margin) / now.step, now.m) }) }),
    draggable(k, { onMove: (px, _, event) => move({ n: positionAfter(event, (px - margin) / now.step, now.n) }) }),
    draggable(both, { onStart: start, onMove: (px, _, event) => move({ first: positionAfter(event, (px - margin) / now.step - offset, Math.min(now.m, now.n)) }) }),
  ];

  function drawTicks(width) {
    place(root, { width, viewBox: `0 0 ${width} ${height}` });
    const marks = Array.from({ length: LAST + 1 }, (_, p) =>
      svg("line", { class: "rd-tick", x1: x(p), x2: x(p), y1: middle - (p % 8 ? 3 : 6), y2: middle + (p % 8 ? 3 : 6) }));
    const numbers = [0, 16, 32, 48, 63].map((p) => svg("text", { class: "rd-small", x: x(p), y: middle + 24, "text-anchor": "middle" }, String(p)));
    ticks.replaceChildren(svg("line", { class: "rd-axis", x1: x(0), x2: x(LAST), y1: middle, y2: middle }), ...marks, ...numbers);
  }

  function draw(s, width) {
    const step = (width - 2 * margin) / LAST;
    const resized = step !== now.step;
    now = { m: s.m, n: s.n, step };
    if (resized) drawTicks(width);
    const [low, high] = [Math.min(s.m, s.n), Math.max(s.m, s.n)];
    const wide = Math.max(60, x(high) - x(low));
    const from = (x(high) + x(low) - wide) / 2;
    place(pill, { x: from, width: wide });
    place(pillRing, { x: from - 3, width: wide + 6 });
    place(grip, { x: from + wide / 2 });
    place(q, { transform: `translate(${x(s.m)} 0)`, "aria-valuenow": Math.round(s.m) });
    place(k, { transform: `translate(${x(s.n)} 0)`, "aria-valuenow": Math.round(s.n) });
    place(both, { "aria-valuenow": Math.round(low) });
  }
  return { root, draw, release: () => releases.forEach((release) => release()) };
}

/** The smallest and largest running sum at any distance: a scale that holds still while the arrows turn. */
function runningSumRange(s) {
  let [low, high] = [-0.1, 0.1];
  for (let distance = -LAST; distance <= LAST; distance++) {
    let sum = 0;
    for (const product of situation(s.query, s.key, distance, 0, s.base).products) {
      sum += product;
      [low, high] = [Math.min(low, sum), Math.max(high, sum)];
    }
  }
  return [low, high];
}

/** The pairs' products one after another, each starting where the last one ended; the end is the score. */
export function createSum(pairs) {
  const [row, left, right, top] = [26, 58, 66, 22];
  const height = top + row * (pairs + 1) + 8;
  const bars = Array.from({ length: pairs + 1 }, () => svg("rect", { height: 14, rx: 2 }));
  const links = Array.from({ length: pairs }, () => svg("line", { class: "rd-link" }));
  const names = bars.map((_, i) => svg("text", { x: 0, y: top + i * row + 16, class: i === pairs ? "rd-sum" : "" }, i === pairs ? "score" : `pair ${i}`));
  const values = bars.map((_, i) => svg("text", { y: top + i * row + 16, "text-anchor": "end", class: i === pairs ? "rd-sum" : "" }));
  const zero = svg("line", { class: "rd-zero", y1: top, y2: height - 4 });
  const title = svg("text", { class: "rd-small", x: 0, y: 12 }, "running sum of the pairs");
  const root = svg("svg", { height, role: "img", "aria-label": "running sum of the pairs' products" }, title, zero, links, bars, names, values);

  let [low, high, scaledFor] = [-1, 1, ""];

  function draw(s, width) {
    const vectors = JSON.stringify([s.query, s.key, s.base]);
    if (vectors !== scaledFor) [low, high] = runningSumRange(s);
    scaledFor = vectors;
    const x = (value) => left + ((value - low) / (high - low)) * (width - left - right);
    place(root, { width, viewBox: `0 0 ${width} ${height}` });
    place(zero, { x1: x(0), x2: x(0) });
    let sum = 0;
    bars.forEach((bar, i) => {
      const [from, to] = i < pairs ? [sum, sum + s.products[i]] : [0, sum];
      place(bar, { x: Math.min(x(from), x(to)), y: top + i * row + 4, width: Math.max(1.5, Math.abs(x(to) - x(from))), class: i === pairs ? "rd-total" : to < from ? "rd-minus" : "rd-plus" });
      place(values[i], { x: width });
      values[i].textContent = i < pairs ? signed(s.products[i], 3) : fmt(s.score, 4);
      if (i < pairs) place(links[i], { x1: x(to), x2: x(to), y1: top + i * row + 18, y2: top + (i + 1) * row + 4 });
      sum = to;
    });
  }
  return { root, draw };
}

/** The score at every distance, with the point where the figure stands and its mirror image. */
export function createStrip(move) {
  const [height, left, right, top, bottom] = [186, 34, 8, 22, 22];
  const masked = svg("rect", { class: "rd-masked", x: left, y: top, height: height - top - bottom });
  const [frame, words] = [svg("g"), svg("g")];
  const [curve, wrong] = [svg("path", { class: "rd-curve" }), svg("path", { class: "rd-wrong" })];
  const plumb = svg("line", { class: "rd-axis", y1: top, y2: height - bottom, style: "stroke-dasharray: 2 3" });
  const mirror = svg("circle", { r: 4.5, style: "fill: var(--mm-bg); stroke: var(--mm-ink); stroke-width: 2" });
  const point = svg("circle", { r: 6.5, style: "fill: var(--mm-ink); stroke: var(--mm-bg); stroke-width: 2" });
  const title = svg("text", { class: "rd-small", x: 0, y: 12 }, "score at every distance m − n");
  const handle = svg("g", { class: "rd-token", tabindex: 0, role: "slider", "aria-label": "distance m − n", "aria-valuemin": -LAST, "aria-valuemax": LAST },
    svg("circle", { class: "rd-hit", r: 20 }), point, svg("circle", { class: "rd-ring", r: 11 }));
  const root = svg("svg", { height, role: "group", "aria-label": "score at every distance", style: "touch-action: pan-y" }, masked, frame, words, wrong, curve, plumb, mirror, handle, title);
  let drawnFor = "";
  let y = () => 0;
  let now = { distance: 0, perPosition: 1 };
  const release = draggable(handle, {
    onMove: (px, _, event) => move({ distance: clamp(positionAfter(event, (px - left) / now.perPosition - LAST, now.distance), -LAST, LAST) }),
  });

  function drawCurves(s, width, x, compare) {
    const distances = Array.from({ length: 8 * LAST + 1 }, (_, i) => i / 4 - LAST);
    // the curve needs one table of turns a distance; the key stays at 0
    const scores = distances.map((d) => ropeScore(s.query, s.key, d, 0, s.base, LAYOUT, LAYOUT));
    const cosines = compare ? distances.map((d) => cosineOnlyScore(s.query, s.key, d, s.base, LAYOUT)) : [];
    const [low, high] = [Math.min(...scores, ...cosines), Math.max(...scores, ...cosines)];
    const pad = 0.08 * (high - low) + 0.05;
    y = (score) => top + 18 + ((high + pad - score) / (high - low + 2 * pad)) * (height - top - bottom - 18); // 18: the words' line
    const line = (values) => (values.length ? `M${values.map((v, i) => `${x(distances[i]).toFixed(1)} ${y(v).toFixed(1)}`).join("L")}` : "");
    place(curve, { d: line(scores) });
    place(wrong, { d: line(cosines) });
    place(root, { width, viewBox: `0 0 ${width} ${height}` });
    place(masked, { width: Math.max(0, x(0) - left) });
    const levels = [Math.ceil(low), 0, Math.floor(high)].filter((v, i, all) => all.indexOf(v) === i && v >= low - pad && v <= high + pad);
    frame.replaceChildren(
      ...levels.map((v) => svg("line", { class: "rd-zero", x1: left, x2: width - right, y1: y(v), y2: y(v) })),
      ...levels.map((v) => svg("text", { class: "rd-small", x: left - 6, y: y(v) + 4, "text-anchor": "end" }, fmt(v, 0))),
      ...[-48, -32, -16, 0, 16, 32, 48].map((d) => svg("text", { class: "rd-small", x: x(d), y: height - 6, "text-anchor": "middle" }, fmt(d, 0))),
    );
    words.replaceChildren(
      svg("text", { class: "rd-small", x: (left + x(0)) / 2, y: top + 14, "text-anchor": "middle" }, "key after query"),
      svg("text", { class: "rd-small", x: (x(0) + width - right) / 2, y: top + 14, "text-anchor": "middle" }, "key before query"),
    );
  }

  function draw(s, width, compare) {
    const x = (distance) => left + ((distance + LAST) / (2 * LAST)) * (width - left - right);
    const wanted = JSON.stringify([s.query, s.key, s.base, width, compare]);
    if (wanted !== drawnFor) drawCurves(s, width, x, compare);
    drawnFor = wanted;
    const distance = s.m - s.n;
    const swapped = ropeScore(s.query, s.key, s.n, s.m, s.base, LAYOUT, LAYOUT);
    place(plumb, { x1: x(distance), x2: x(distance) });
    now = { distance, perPosition: (width - left - right) / (2 * LAST) };
    const text = `${fmt(distance, 0)}, score ${fmt(s.score, 4)}; the order swapped: ${fmt(swapped, 4)}`;
    place(handle, { transform: `translate(${x(distance)} ${y(s.score)})`, "aria-valuenow": Math.round(distance), "aria-valuetext": text });
    place(mirror, { cx: x(-distance), cy: y(swapped) });
  }
  return { root, draw, release };
}
