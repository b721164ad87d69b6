// The norm figure: three channels as a globe whose axis is (1, 1, 1), bars of the same channels, and 64 channels below.

import { h, svg, fmt, slider, choice, button, draggable, prefersReducedMotion, observeSize } from "./kit.js";
import { rmsNorm, layerNorm, channelStats, angleBetween, POLE, RADIUS } from "./norm_geometry_math.js";
import { dot3, scale3, add3, multiply3, viewFrom, project, unproject } from "./norm_geometry_math.js";
import { outlineOf, parallel, meridianThrough } from "./norm_geometry_math.js";

const INK = "var(--mm-ink)";
const MUTED = "var(--mm-muted)";
const LINE = "var(--mm-line)";
const NORMS = {
  layer: { title: "LayerNorm", of: layerNorm, color: "var(--mm-accent2)", tone: "accent2" },
  rms: { title: "RMSNorm", of: rmsNorm, color: "var(--mm-accent)", tone: "accent" },
};
const LIMIT = 8; // of a channel of x
const SMALLEST = -4; // log10 of the shortest x that the length slider gives
const ONES = [1, 1, 1];

const short = (x) => Number(x.toPrecision(6));
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));
const vectorText = (values) => `(${values.map((value) => fmt(value)).join(", ")})`;
const ease = (t) => t * t * (3 - 2 * t);

function epsText(eps) {
  if (eps >= 0.01) return String(Number(eps.toPrecision(2)));
  const [mantissa, exponent] = eps.toExponential(1).split("e");
  return `${mantissa.replace(".0", "")}e${exponent.replace("-", "−").replace("+", "")}`;
}

// Small numbers need their leading digits: 0.0012 is not 0.00. What rounding leaves of a zero is a zero.
function smallText(x) {
  const size = Math.abs(x);
  if (size < 1e-12 || size >= 0.1) return fmt(x);
  return size >= 1e-4 ? fmt(x, 4) : `${x < 0 ? "−" : ""}${epsText(size)}`;
}

// What both panels show, from the traits.
function results(model) {
  const [x, offset, gain, eps, norm] = ["x", "offset", "gain", "eps", "norm"].map((name) => model.get(name));
  const input = x.map((value) => value + offset);
  const shown = norm === "both" ? ["layer", "rms"] : [norm];
  const outputs = {};
  for (const name of Object.keys(NORMS)) {
    const plain = NORMS[name].of(input, eps);
    const final = multiply3(plain, gain);
    outputs[name] = { plain, final, stats: channelStats(final), angle: angleBetween(input, final) };
  }
  const stats = channelStats(input);
  const centered = input.map((value) => value - stats.mean);
  return { x, offset, gain, eps, shown, input, stats, centered, outputs, stretched: gain.some((g) => g !== 1) };
}

// One sentence or two on what is to be seen now.
function remark({ stats, centered, outputs, eps, shown, stretched, offset }) {
  const flat = Math.max(...centered.map(Math.abs)) < 1e-9 * Math.max(1, Math.abs(stats.mean));
  if (stats.rms === 0) return "A vector of zeros stays zero under both norms: eps keeps them from dividing 0 by 0.";
  if (flat && shown.includes("layer")) {
    return "All channels are equal, so nothing is left once the mean is removed: LayerNorm(x) is 0. RMSNorm keeps the common value.";
  }
  const reached = shown.map((name) => channelStats(outputs[name].plain).rms);
  const low = shown.filter((_, i) => reached[i] < 0.99);
  if (low.length) {
    const where = low.map((name) => `${NORMS[name].title} stops at RMS ${fmt(reached[shown.indexOf(name)])}`).join(", ");
    return `With eps = ${epsText(eps)} so large against x², the point does not reach the sphere: ${where}.`;
  }
  if (stretched && shown.includes("rms")) {
    const turn = angleBetween(outputs.rms.plain, outputs.rms.final);
    return `The gain stretches the sphere to an ellipsoid (dashed): RMSNorm's output is no longer on the ray of x but ${fmt(turn)}° off.`;
  }
  if (Math.abs(stats.mean) < 1e-3 * stats.rms && shown.length === 2) return "The mean is zero already: both norms make the same move.";
  if (offset > 0 && shown.length === 2) {
    return "c lifts x straight up. LayerNorm drops it to the same point as before; RMSNorm's output climbs toward (1, 1, 1).";
  }
  return "Height is the mean of the channels. Drag the tip of x, or drag beside it to turn the globe.";
}

// Line pieces, arrow heads and dots in four layers: behind the globe, in it, its veil, in front of it.
class Scene {
  constructor(view, unit, center) {
    Object.assign(this, { view, unit, center });
    this.items = [];
    this.labels = [];
    this.segments = [];
    this.dots = [];
  }

  at(point) {
    const [x, y] = project(this.view, point);
    return [this.center[0] + this.unit * x, this.center[1] - this.unit * y];
  }

  add(point, node, lift = 0) {
    const depth = dot3(this.view.toward, point);
    const inside = Math.hypot(...point) < RADIUS * 0.999;
    this.items.push({ layer: inside ? 1 : depth < 0 ? 0 : 3, depth: depth + lift, node });
  }

  // A straight line, cut where it enters or leaves the sphere and where it passes from behind to the front.
  line(from, to, style, lift = 0) {
    const way = add3(to, scale3(from, -1));
    const [a, b, c] = [dot3(way, way), dot3(from, way), dot3(from, from) - RADIUS ** 2];
    const root = Math.sqrt(Math.max(0, b * b - a * c));
    const turn = -dot3(this.view.toward, from) / dot3(this.view.toward, way);
    const cuts = [0, 1, (-b - root) / a, (-b + root) / a, turn].filter((t) => t >= 0 && t <= 1).sort((s, t) => s - t);
    const along = (t) => add3(from, scale3(way, t));
    cuts.slice(1).forEach((end, i) => {
      if (end - cuts[i] < 1e-6) return;
      const [[x1, y1], [x2, y2]] = [this.at(along(cuts[i])), this.at(along(end))];
      this.add(along((cuts[i] + end) / 2), svg("line", { x1, y1, x2, y2, ...style }), lift);
      this.segments.push([x1, y1, x2, y2, lift]);
    });
  }

  arrow(from, to, { color, width, dash = null, gap = 0 }) {
    const [[x1, y1], [x2, y2]] = [this.at(from), this.at(to)];
    const length = Math.hypot(x2 - x1, y2 - y1);
    const head = Math.min(6 + 2 * width, length - gap);
    if (head < 2) return;
    const stop = (distance) => add3(to, scale3(add3(from, scale3(to, -1)), distance / length));
    this.line(from, stop(gap + head * 0.8), { stroke: color, "stroke-width": width, "stroke-dasharray": dash }, 4);
    const turn = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    const [x, y] = this.at(stop(gap));
    const d = `M0,0 L${-head},${-head * 0.42} L${-head * 0.78},0 L${-head},${head * 0.42} Z`;
    this.add(stop(gap), svg("path", { d, fill: color, transform: `translate(${x} ${y}) rotate(${turn})` }), 4);
  }

  // Points of a closed or open curve: full strength in front, faint behind.
  curve(points, { color, width, front, back, dash = null }) {
    const runs = [];
    for (let i = 1; i < points.length; i += 1) {
      const middle = scale3(add3(points[i - 1], points[i]), 0.5);
      const behind = dot3(this.view.toward, middle) < 0;
      if (runs.at(-1)?.behind === behind) runs.at(-1).points.push(points[i]);
      else runs.push({ behind, points: [points[i - 1], points[i]] });
    }
    for (const { behind, points: run } of runs) {
      const d = `M${run.map((point) => this.at(point).map((z) => z.toFixed(1)).join(",")).join("L")}`;
      const style = { fill: "none", stroke: color, "stroke-width": width, "stroke-dasharray": dash };
      const node = svg("path", { d, ...style, "stroke-opacity": behind ? back : front });
      this.items.push({ layer: behind ? 0 : 2, depth: behind ? -9 : 9, node });
    }
  }

  dot(point, node) {
    const [x, y] = this.at(point);
    node.setAttribute("transform", `translate(${x} ${y})`);
    this.items.push({ layer: dot3(this.view.toward, point) < 0 ? 1 : 3, depth: 8, node });
    this.dots.push([x, y]);
  }

  label(point, text, { color = INK, bold = false, needed = false, prefer = 0, size = 13, apart = 9 }) {
    const [x, y] = this.at(point);
    this.labels.push({ x, y, text, color, bold, needed, prefer, size, apart });
  }

  nodes(veil) {
    this.items.push({ layer: 2, depth: 0, node: veil });
    return this.items.sort((a, b) => a.layer - b.layer || a.depth - b.depth).map((item) => item.node);
  }
}

const SIDES = [[1, 0], [0.8, -0.9], [0.8, 0.9], [-1, 0], [-0.8, -0.9], [-0.8, 0.9], [0, -1], [0, 1]];

function boxesMeet(a, b, margin) {
  return a.x < b.x + b.w + margin && b.x < a.x + a.w + margin && a.y < b.y + b.h + margin && b.y < a.y + a.h + margin;
}

function crossings(box, segments) {
  const within = (x, y) => x > box.x - 1 && x < box.x + box.w + 1 && y > box.y && y < box.y + box.h;
  const steps = Array.from({ length: 17 }, (_, i) => i / 16);
  const hit = ([x1, y1, x2, y2]) => steps.some((t) => within(x1 + t * (x2 - x1), y1 + t * (y2 - y1)));
  return segments.reduce((sum, segment) => sum + (hit(segment) ? 1 + segment[4] : 0), 0);
}

// Puts every label beside its point, where it hides least; one that would lie on another is left out unless needed.
function placeLabels(scene, width, height, measure, memory) {
  const placed = [];
  const dots = scene.dots.map(([x, y]) => ({ x: x - 6, y: y - 6, w: 12, h: 12 }));
  const cost = (box, index, label) => {
    const out = box.x < 2 || box.y < 2 || box.x + box.w > width - 2 || box.y + box.h > height - 2;
    const overlap = placed.filter((other) => boxesMeet(box, other, 2)).length;
    const onDots = dots.filter((dot) => boxesMeet(box, dot, 0)).length;
    const sameAsBefore = memory.get(label.text) === index;
    const far = Math.floor(index / SIDES.length);
    const side = index % SIDES.length;
    return (out ? 2000 : 0) + 1000 * overlap + 120 * onDots + 16 * crossings(box, scene.segments) + 12 * far + (side === label.prefer ? 0 : 6 + side) - (sameAsBefore ? 10 : 0);
  };
  return scene.labels.flatMap((label) => {
    const w = measure(label.text, label.size, label.bold);
    const h0 = label.size * 1.15;
    const options = [0, 12, 26].map((more) => label.apart + more).flatMap((gap) => SIDES.map(([dx, dy]) => {
      const x = label.x + dx * gap + (dx > 0 ? 0 : dx < 0 ? -w : -w / 2);
      return { x, y: label.y + dy * (gap + h0 / 2) - h0 / 2, w, h: h0 };
    }));
    const costs = options.map((box, i) => cost(box, i, label));
    const best = costs.indexOf(Math.min(...costs));
    if (costs[best] >= 1000 && !label.needed) return [];
    const box = options[best];
    memory.set(label.text, best);
    placed.push(box);
    const style = { fill: label.color, fontSize: `${label.size}px`, fontWeight: label.bold ? "650" : "400", paintOrder: "stroke", pointerEvents: "none" };
    return [svg("text", { x: box.x, y: box.y + h0 * 0.8, style, stroke: "var(--mm-bg)", "stroke-width": 3.5, "stroke-linejoin": "round" }, label.text)];
  });
}

// How far the view must reach: units around the center, as large as fits. During a drag it stays as it was.
function fitView(result, { width, height, pitch }) {
  const flat = Math.hypot(...result.centered);
  const up = result.stats.mean * RADIUS;
  const [c, s] = [Math.cos(pitch), Math.sin(pitch)];
  const shell = RADIUS * Math.max(...result.gain.map(Math.abs), 1);
  const above = Math.max(RADIUS * 1.4 * c, shell, up * c + flat * s);
  const below = Math.max(shell, flat * s - Math.min(0, up) * c);
  const unit = Math.min((width / 2 - 12) / Math.max(flat, shell, RADIUS * GROUND), (height - 56) / (above + below));
  return { unit, center: [width / 2, 30 + above * unit + (height - 56 - (above + below) * unit) / 2] };
}

const GROUND = 1.32; // radius of the drawn part of the plane, in radii of the sphere
const LATITUDES = [-60, -30, 30, 60].map((degrees) => (degrees * Math.PI) / 180);
const MERIDIANS = [0, 1, 2, 3, 4, 5].map((i) => (i * Math.PI) / 6);

function drawGlobe(scene, { gain, stretched, shown }, shade) {
  const faint = { color: MUTED, width: 0.8, front: 0.34, back: 0.13 };
  for (const latitude of LATITUDES) scene.curve(parallel(latitude, RADIUS, 72), faint);
  const equator = parallel(0, 1, 72);
  for (const turn of MERIDIANS) {
    const at = equator[Math.round((turn / (2 * Math.PI)) * 72)];
    for (const side of [at, scale3(at, -1)]) scene.curve(meridianThrough(side, RADIUS, 36), faint);
  }
  const ring = { color: shown.includes("layer") ? NORMS.layer.color : MUTED, width: 1.8, front: 0.9, back: 0.4 };
  scene.curve(parallel(0, RADIUS, 96), ring);
  if (stretched) {
    const onShell = parallel(0, RADIUS, 96).map((point) => multiply3(point, gain));
    scene.curve(onShell, { ...ring, width: 1.3, dash: "4 3" });
  }
  const [cx, cy] = scene.center;
  return svg("circle", { cx, cy, r: RADIUS * scene.unit, fill: `url(#${shade})`, stroke: MUTED, "stroke-width": 1.2 });
}

function drawGround(scene, shown) {
  const size = RADIUS * GROUND;
  const [cx, cy] = scene.center;
  const steep = scene.view.toward.reduce((sum, value) => sum + value, 0) / RADIUS;
  const color = shown.includes("layer") ? NORMS.layer.color : MUTED;
  const style = { fill: color, "fill-opacity": 0.08, stroke: color, "stroke-opacity": 0.35, "stroke-dasharray": "2 4" };
  return svg("ellipse", { cx, cy, rx: size * scene.unit, ry: size * scene.unit * Math.abs(steep), ...style });
}

function drawShell(scene, gain) {
  const { major, minor, angle } = outlineOf(scene.view, gain, RADIUS);
  const [cx, cy] = scene.center;
  const turn = `rotate(${(-angle * 180) / Math.PI} ${cx} ${cy})`;
  return svg("ellipse", { cx, cy, rx: major * scene.unit, ry: minor * scene.unit, transform: turn, fill: "none", stroke: MUTED, "stroke-width": 1.4, "stroke-dasharray": "6 4" });
}

function drawAxes(scene) {
  const zero = [0, 0, 0];
  const axis = { stroke: MUTED, "stroke-width": 1, "stroke-opacity": 0.75 };
  scene.line(scale3(POLE, -RADIUS * 1.12), scale3(POLE, RADIUS * 1.38), { ...axis, "stroke-dasharray": "5 3" });
  [0, 1, 2].forEach((i) => {
    const tip = zero.map((_, k) => (k === i ? RADIUS * 1.22 : 0));
    scene.line(zero, tip, axis);
  });
}

function labelAxes(scene) {
  scene.label(scale3(POLE, RADIUS * 1.38), "(1, 1, 1)", { color: MUTED, prefer: 6, apart: 5 });
  [0, 1, 2].forEach((i) => {
    const tip = [0, 0, 0].map((_, k) => (k === i ? RADIUS * 1.22 : 0));
    scene.label(tip, `channel ${i + 1}`, { color: MUTED, size: 12, apart: 4 });
  });
}

const MARKS = {
  layer: () => svg("rect", { x: -6.5, y: -6.5, width: 13, height: 13, rx: 1.5, fill: NORMS.layer.color, stroke: "var(--mm-bg)", "stroke-width": 1.5 }),
  rms: () => svg("circle", { r: 5.6, fill: NORMS.rms.color, stroke: "var(--mm-bg)", "stroke-width": 1.5 }),
};

function drawGain(scene, name, { plain, final }) {
  const { color } = NORMS[name];
  scene.dot(plain, svg("circle", { r: 3.5, fill: "var(--mm-bg)", stroke: color, "stroke-width": 1.5 }));
  scene.arrow(plain, final, { color, width: 1.6, dash: "2 3", gap: 6 });
}

// The moves: first down to the plane and then to the sphere, or straight to the sphere.
function drawMoves(scene, result) {
  const { input, centered, outputs, shown, stretched } = result;
  const zero = [0, 0, 0];
  scene.line(zero, input, { stroke: INK, "stroke-width": 1.8 });
  if (shown.includes("layer")) {
    const { color } = NORMS.layer;
    scene.arrow(input, centered, { color, width: 2, dash: "5 4", gap: 2 });
    scene.line(zero, centered, { stroke: color, "stroke-width": 1, "stroke-opacity": 0.55 });
    scene.arrow(centered, outputs.layer.plain, { color, width: 3, gap: 5 });
    if (stretched) drawGain(scene, "layer", outputs.layer);
    scene.dot(outputs.layer.final, MARKS.layer());
  }
  if (shown.includes("rms")) {
    const { color } = NORMS.rms;
    const path = meridianThrough(input, RADIUS, 48);
    if (path) scene.curve(path, { color, width: 1.6, front: 0.85, back: 0.35, dash: "1.5 3.5" });
    scene.arrow(input, outputs.rms.plain, { color, width: 3, gap: 6 });
    if (stretched) drawGain(scene, "rms", outputs.rms);
    scene.dot(outputs.rms.final, MARKS.rms());
  }
}

function labelMoves(scene, { input, centered, outputs, shown, offset, stretched }) {
  const middle = (a, b) => scale3(add3(a, b), 0.5);
  const apart = (a, b) => Math.hypot(...scene.at(a).map((z, i) => z - scene.at(b)[i]));
  scene.dots.push(scene.at(input));
  scene.label(input, offset > 0 ? "x + c" : "x", { bold: true, needed: true, apart: 13, size: 14 });
  for (const name of shown) {
    const { title, color } = NORMS[name];
    scene.label(outputs[name].final, title, { color, bold: true, needed: true, apart: 11, prefer: name === "rms" ? 3 : 2 });
  }
  const moves = [];
  const climb = shown.includes("rms") && !stretched && meridianThrough(input, RADIUS, 48);
  if (climb) {
    const latitude = Math.asin(clamp(dot3(outputs.rms.plain, POLE) / Math.hypot(...outputs.rms.plain), -1, 1));
    const way = climb[Math.round(48 * (0.5 + (latitude + (Math.PI / 2 - latitude) * 0.55) / Math.PI))];
    if (latitude < 1.1) scene.label(way, "as c grows", { color: NORMS.rms.color, size: 12, apart: 5, prefer: 4 });
  }
  if (shown.includes("layer")) moves.push([input, centered, "− mean", "layer"], [centered, outputs.layer.plain, "÷ std", "layer"]);
  if (shown.includes("rms")) moves.push([input, outputs.rms.plain, "÷ RMS", "rms"]);
  if (stretched) for (const name of shown) moves.push([outputs[name].plain, outputs[name].final, "× gain", name]);
  for (const [from, to, text, name] of moves) {
    if (apart(from, to) > 16) scene.label(middle(from, to), text, { color: NORMS[name].color, apart: 6 });
  }
}

function labelGlobe(scene, shown) {
  const flat = (turn, size) => parallel(0, size, 72)[turn];
  if (shown.includes("layer")) scene.label(flat(scene.groundAt ?? 0, RADIUS * GROUND), "mean 0", { color: NORMS.layer.color, size: 12, prefer: 7, apart: 3 });
  const edge = add3(scale3(scene.view.right, RADIUS * 0.8), scale3(scene.view.up, -RADIUS * 0.6));
  scene.label(edge, "RMS 1", { color: MUTED, size: 12, prefer: 2, apart: 4 });
}

// The label of the plane stands at its rim, lower left as seen.
function rimPoint(view) {
  const rim = parallel(0, 1, 72);
  const score = (point) => project(view, point)[0] * 0.8 + project(view, point)[1] * 2;
  return rim.map(score).reduce((best, value, i, all) => (value < all[best] ? i : best), 0);
}

function makeRuler(el) {
  const context = document.createElement("canvas").getContext("2d");
  const known = new Map();
  return (text, size, bold) => {
    const key = `${text}|${size}|${bold}`;
    if (!known.has(key)) {
      context.font = `${bold ? 650 : 400} ${size}px ${getComputedStyle(el).fontFamily}`;
      known.set(key, context.measureText(text).width);
    }
    return known.get(key);
  };
}

// Bars of three channels: a band of mean ± std behind them, a tick at the mean.
const ROW = 24;
const BAR_LEFT = 20;
const BAR_RIGHT = 50;

function barPlace(width, limit) {
  const [low, high] = [BAR_LEFT, width - BAR_RIGHT];
  return (value) => low + ((clamp(value, -limit, limit) / limit + 1) / 2) * (high - low);
}

function drawBars(values, stats, color, width, limit, mark) {
  const at = barPlace(width, limit);
  const height = ROW * values.length;
  const band = [at(stats.mean - stats.std), at(stats.mean + stats.std)];
  const rows = values.flatMap((value, i) => {
    const y = ROW * i + ROW / 2;
    const [left, right] = [Math.min(at(0), at(value)), Math.max(at(0), at(value))];
    return [
      svg("text", { x: 4, y: y + 4.5, style: { fill: MUTED, fontSize: "12px" } }, `${i + 1}`),
      svg("rect", { x: left, y: y - 6, width: right - left, height: 12, rx: 2, fill: color, "fill-opacity": mark ? 0.85 : 0.55 }),
      svg("text", { x: width - 2, y: y + 4.5, "text-anchor": "end", style: { fontSize: "13px" } }, mark ? fmt(value) : smallText(value)),
    ];
  });
  return [
    svg("rect", { x: band[0], y: 1, width: band[1] - band[0], height: height - 2, fill: color, "fill-opacity": 0.13 }),
    svg("line", { x1: at(0), x2: at(0), y1: 0, y2: height, stroke: MUTED, "stroke-width": 1 }),
    ...rows,
    svg("line", { x1: at(stats.mean), x2: at(stats.mean), y1: 0, y2: height, stroke: color, "stroke-width": 2, "stroke-dasharray": "3 2" }),
  ];
}

function statsTable() {
  const cell = { padding: "3px 0 3px 8px", textAlign: "right", border: "0", background: "none", fontSize: "13px" };
  const head = { ...cell, color: MUTED, fontWeight: "400", fontSize: "12.5px" };
  const titles = ["", "mean", "std", "RMS", "turned by"].map((text) => h("th", { scope: "col", style: head }, text));
  const body = h("tbody", {});
  const root = h("table", { style: { width: "100%", borderCollapse: "collapse", margin: "6px 0 0" } }, h("thead", {}, h("tr", {}, titles)), body);
  const set = (rows) => body.replaceChildren(...rows.map(([title, tone, numbers]) => {
    const name = h("th", { scope: "row", "data-tone": tone, style: { ...cell, textAlign: "left", paddingLeft: "0", fontWeight: "600" } }, title);
    return h("tr", { style: { borderTop: `1px solid ${LINE}`, background: "none" } }, name, numbers.map((text) => h("td", { style: cell }, text)));
  }));
  return { root, set };
}

// 64 channels: one thin line each over c, recomputed here; mean and std are the package's curves.
function fan({ name, values, curve, width, height }) {
  const { of, color } = NORMS[name];
  const [left, right, top, bottom] = [24, 10, 6, 24];
  const offsets = curve.c;
  const last = offsets.at(-1);
  const outputs = offsets.map((c) => of(values.map((value) => value + c), 1e-5));
  const limit = Math.max(2.5, ...outputs[0].map(Math.abs)) * 1.05;
  const px = (c) => left + (c / last) * (width - left - right);
  const py = (y) => top + ((limit - y) / (2 * limit)) * (height - top - bottom);
  const path = (ys) => `M${ys.map((y, i) => `${px(offsets[i]).toFixed(1)},${py(y).toFixed(1)}`).join("L")}`;
  const threads = values.map((_, k) => path(outputs.map((y) => y[k]))).join("");
  const { mean, std } = curve[name];
  const upper = mean.map((m, i) => `${px(offsets[i])},${py(m + std[i])}`);
  const lower = mean.map((m, i) => `${px(offsets[i])},${py(m - std[i])}`).reverse();
  const ticks = [-2, 0, 2].flatMap((y) => [
    svg("line", { x1: left, x2: width - right, y1: py(y), y2: py(y), stroke: LINE, "stroke-width": 1 }),
    svg("text", { x: left - 6, y: py(y) + 4, "text-anchor": "end", style: { fill: MUTED, fontSize: "12px" } }, fmt(y, 0)),
  ]);
  const steps = [0, 1, 2, 3, 4, 5].map((c) => svg("text", { x: px(c), y: height - 6, "text-anchor": "middle", style: { fill: MUTED, fontSize: "12px" } }, c === 0 ? "c = 0" : `${c}`));
  const marker = svg("line", { y1: top, y2: height - bottom, stroke: INK, "stroke-width": 1.5 });
  const knob = svg("circle", { r: 5, fill: color, stroke: "var(--mm-bg)", "stroke-width": 1.5 });
  const nodes = [
    ...ticks,
    svg("polygon", { points: [...upper, ...lower].join(" "), fill: color, "fill-opacity": 0.16 }),
    svg("path", { d: threads, fill: "none", stroke: color, "stroke-width": 0.8, "stroke-opacity": 0.42 }),
    svg("path", { d: path(mean), fill: "none", stroke: color, "stroke-width": 2.6 }),
    ...steps,
    marker,
    knob,
  ];
  const mark = (c, index) => {
    marker.setAttribute("x1", px(c));
    marker.setAttribute("x2", px(c));
    knob.setAttribute("cx", px(c));
    knob.setAttribute("cy", py(mean[index]));
  };
  return { nodes, mark, offsetAt: (x) => clamp(((x - left) / (width - left - right)) * last, 0, last) };
}

const OUTLOOK = { yaw: -0.95, pitch: 0.36 };

const EXAMPLES = [
  { label: "All channels equal", x: [1.2, 1.2, 1.2] },
  { label: "Mean zero", x: [1.6, -1.8, 0.2] },
  { label: "Tiny vector", x: [0.0024, -0.001, 0.001] },
  { label: "The notes' example", x: [1, -2, 3], gain: [1, 1.5, 1.2] },
];

function render({ model, el }) {
  const cleanups = [];
  const start = Object.fromEntries(["x", "offset", "gain", "eps"].map((name) => [name, model.get(name)]));
  const camera = { ...OUTLOOK, width: 372, height: 410, frozen: null };
  const memory = new Map();
  let direction = [2.4, -1, 1].map((value) => value / 1.6);
  let drawn = null;
  let pending = 0;
  let tween = 0;

  const put = (values) => {
    for (const [name, value] of Object.entries(values)) model.set(name, Array.isArray(value) ? value.map(short) : short(value));
  };
  const change = (values) => {
    cancelAnimationFrame(tween);
    put(values);
    model.save_changes();
  };

  // The globe
  const shade = `mm-globe-${Math.random().toString(36).slice(2)}`;
  const stop = (offset, opacity) => svg("stop", { offset, "stop-color": INK, "stop-opacity": opacity });
  const defs = svg("defs", {}, svg("radialGradient", { id: shade, cx: "38%", cy: "32%", r: "72%" }, stop("0%", 0), stop("60%", 0.035), stop("100%", 0.15)));
  const back = svg("rect", { width: "100%", height: "100%", fill: "transparent", tabindex: 0, role: "slider", "aria-label": "Turn the globe", "aria-valuemin": -180, "aria-valuemax": 180 });
  const drawing = svg("g", { style: { pointerEvents: "none" } });
  const words = svg("g", { style: { pointerEvents: "none" }, "aria-hidden": "true" });
  const ring = svg("circle", { r: 9, fill: "transparent", stroke: INK, "stroke-width": 2.5 });
  const handle = svg("g", { tabindex: 0, role: "slider", "aria-label": "Tip of x in the plane of the screen", "aria-valuemin": 0, "aria-valuemax": 20, style: { outlineOffset: "-4px" } }, svg("circle", { r: 18, fill: "transparent" }), ring);
  const globe = svg("svg", { role: "group", "aria-label": "Three channels in space: the sphere of RMS 1 and the plane of mean zero" }, defs, back, drawing, handle, words);
  const globeBox = h("div", { style: { flex: "1 1 330px", minWidth: "0", maxWidth: "430px" } }, globe);
  const measure = makeRuler(el);

  function drawScene(result) {
    const { width, height, yaw, pitch } = camera;
    const { unit, center } = camera.frozen ?? fitView(result, camera);
    const scene = new Scene(viewFrom(yaw, pitch), unit, center);
    scene.groundAt = rimPoint(scene.view);
    const veil = drawGlobe(scene, result, shade);
    drawAxes(scene);
    drawMoves(scene, result);
    labelMoves(scene, result);
    labelAxes(scene);
    labelGlobe(scene, result.shown);
    const shell = result.stretched ? [drawShell(scene, result.gain)] : [];
    drawing.replaceChildren(drawGround(scene, result.shown), ...shell, ...scene.nodes(veil));
    words.replaceChildren(...placeLabels(scene, width, height, measure, memory));
    const [x, y] = scene.at(result.input);
    handle.setAttribute("transform", `translate(${x} ${y})`);
    handle.setAttribute("aria-valuenow", result.stats.rms.toFixed(2));
    handle.setAttribute("aria-valuetext", vectorText(result.input));
    back.setAttribute("aria-valuenow", Math.round((yaw * 180) / Math.PI));
    back.setAttribute("aria-valuetext", `${Math.round((yaw * 180) / Math.PI)} degrees around, ${Math.round((pitch * 180) / Math.PI)} from above`);
    drawn = { scene, result };
  }

  function moveTip(px, py) {
    const { scene, result } = drawn;
    const [x, y] = [clamp(px, 10, camera.width - 10), clamp(py, 10, camera.height - 10)];
    const depth = dot3(scene.view.toward, result.input);
    const at = unproject(scene.view, [(x - scene.center[0]) / scene.unit, (scene.center[1] - y) / scene.unit, depth]);
    change({ x: at.map((value) => clamp(value - result.offset, -LIMIT, LIMIT)) });
  }

  let grip = [0, 0];
  cleanups.push(draggable(handle, {
    onStart: (event) => {
      camera.frozen = { unit: drawn.scene.unit, center: drawn.scene.center };
      const box = globe.getBoundingClientRect();
      const [x, y] = drawn.scene.at(drawn.result.input);
      grip = [((event.clientX - box.left) * camera.width) / box.width - x, ((event.clientY - box.top) * camera.height) / box.height - y];
    },
    onMove: (x, y, event) => (event.type === "keydown" ? moveTip(x, y) : moveTip(x - grip[0], y - grip[1])),
    onEnd: () => release(),
    position: () => drawn.scene.at(drawn.result.input),
  }));

  let last = null;
  cleanups.push(draggable(back, {
    onStart: () => (last = null),
    onMove: (x, y) => {
      if (last) {
        camera.yaw = ((camera.yaw - (x - last[0]) / 90 + 3 * Math.PI) % (2 * Math.PI)) - Math.PI;
        camera.pitch = clamp(camera.pitch + (y - last[1]) / 120, 0, 1.45);
      }
      last = [x, y];
      schedule();
    },
    position: () => (last = [0, 0]),
    keyStep: 8,
  }));
  back.style.touchAction = "pan-y"; // a finger that moves up or down still scrolls the page

  // After a drag the view zooms to what it would show anyway.
  function release() {
    const from = camera.frozen;
    camera.frozen = null;
    const target = fitView(drawn.result, camera);
    if (prefersReducedMotion()) return schedule();
    const between = (a, b, t) => a + (b - a) * t;
    animate(260, (t) => {
      const center = from.center.map((z, i) => between(z, target.center[i], t));
      camera.frozen = t === 1 ? null : { unit: between(from.unit, target.unit, t), center };
      schedule();
    });
  }

  function animate(duration, step) {
    const begin = performance.now();
    const frame = (now) => {
      const t = clamp((now - begin) / duration, 0, 1);
      step(t === 1 ? 1 : ease(t));
      if (t < 1) tween = requestAnimationFrame(frame);
    };
    cancelAnimationFrame(tween);
    tween = requestAnimationFrame(frame);
  }

  // Bars and numbers
  const barDrawing = {};
  const blocks = ["input", "layer", "rms"].map((name) => {
    const color = NORMS[name]?.color ?? INK;
    const title = h("div", { style: { color, fontWeight: "600", fontSize: "14px", lineHeight: "1.3" } }, "");
    const group = svg("g", {});
    const picture = svg("svg", { height: ROW * 3, "aria-hidden": name === "input" ? null : "true", role: "group", "aria-label": name === "input" ? "Channels of x + c" : null }, group);
    barDrawing[name] = { title, group, picture, root: h("div", { style: { marginBottom: "8px" } }, title, picture) };
    return barDrawing[name].root;
  });
  const table = statsTable();
  const side = h("div", { style: { flex: "1 1 270px", minWidth: "0", maxWidth: "430px" } }, blocks, table.root);
  let sideWidth = 280;
  let inputLimit = 3;

  const grips = [0, 1, 2].map((i) => {
    const knob = svg("circle", { r: 5.5, fill: "var(--mm-bg)", stroke: INK, "stroke-width": 2 });
    const row = svg("g", { tabindex: 0, role: "slider", "aria-label": `Channel ${i + 1} of x`, "aria-valuemin": -LIMIT, "aria-valuemax": LIMIT }, svg("rect", { x: 0, y: ROW * i, height: ROW, width: "100%", fill: "transparent" }), knob);
    const perUnit = () => (sideWidth - BAR_LEFT - BAR_RIGHT) / (2 * inputLimit);
    cleanups.push(draggable(row, {
      onMove: (x, y, event) => {
        const { result } = drawn;
        const keyed = event.type === "keydown";
        const px = keyed ? x - y : x;
        const value = ((px - BAR_LEFT) / (sideWidth - BAR_LEFT - BAR_RIGHT)) * 2 * inputLimit - inputLimit;
        const shifted = keyed ? result.input[i] + (px / perUnit()) : value;
        change({ x: result.x.map((own, k) => (k === i ? clamp(shifted - result.offset, -LIMIT, LIMIT) : own)) });
      },
      onEnd: () => schedule(),
      position: () => [0, 0],
      keyStep: 4,
    }));
    row.style.touchAction = "pan-y";
    barDrawing.input.picture.append(row);
    return { row, knob };
  });

  function drawSide({ input, stats, outputs, shown, x, offset, stretched }) {
    const dragging = grips.some(({ row }) => row.matches(":active"));
    const largest = Math.max(...input.map(Math.abs));
    if (!dragging || largest > inputLimit) inputLimit = Math.max(3, Math.ceil(largest));
    const limit = Math.max(2, ...shown.flatMap((name) => outputs[name].final.map(Math.abs)));
    const argument = offset > 0 ? "x + c" : "x";
    barDrawing.input.title.textContent = `${argument}, the input`;
    const fill = (name, values, numbers, scale) => {
      const { group, picture } = barDrawing[name];
      picture.setAttribute("width", sideWidth);
      picture.setAttribute("viewBox", `0 0 ${sideWidth} ${ROW * 3}`);
      group.replaceChildren(...drawBars(values, numbers, NORMS[name]?.color ?? INK, sideWidth, scale, name === "input" ? null : name));
    };
    fill("input", input, stats, inputLimit);
    for (const name of Object.keys(NORMS)) {
      barDrawing[name].root.style.display = shown.includes(name) ? "" : "none";
      barDrawing[name].title.textContent = `${NORMS[name].title}(${argument})${stretched ? ", with gain" : ""}`;
      if (shown.includes(name)) fill(name, outputs[name].final, outputs[name].stats, limit);
    }
    grips.forEach(({ row, knob }, i) => {
      knob.setAttribute("cx", barPlace(sideWidth, inputLimit)(input[i]));
      knob.setAttribute("cy", ROW * i + ROW / 2);
      row.setAttribute("aria-valuenow", x[i].toFixed(2));
      row.setAttribute("aria-valuetext", offset > 0 ? `${fmt(x[i])}, with c ${fmt(input[i])}` : fmt(x[i]));
    });
    const three = ({ mean, std, rms }, text) => [mean, std, rms].map(text);
    const degrees = (angle) => (Number.isNaN(angle) ? "–" : `${fmt(angle, 1)}°`);
    table.set([
      [argument, null, [...three(stats, smallText), ""]],
      ...shown.map((name) => [NORMS[name].title, NORMS[name].tone, [...three(outputs[name].stats, (z) => fmt(z)), degrees(outputs[name].angle)]]),
    ]);
  }

  // Controls
  const offsetSlider = slider({ label: "c, added to every channel", min: 0, max: 5, step: 0.1, value: start.offset, format: (c) => fmt(c, 1), onInput: (offset) => change({ offset }) });
  const lengthSlider = slider({ label: "size of x (its RMS)", min: SMALLEST, max: 0.6, step: 0.02, value: 0, format: () => smallText(channelStats(model.get("x")).rms), onInput: (power) => change({ x: scale3(direction, 10 ** power) }) });
  const epsSlider = slider({ label: "eps", min: -6, max: 0, step: 0.25, value: -5, format: () => epsText(model.get("eps")), onInput: (power) => change({ eps: 10 ** power }) });
  const gainSliders = [0, 1, 2].map((i) => slider({ label: `gain of channel ${i + 1}`, min: 0.2, max: 2, step: 0.05, value: 1, onInput: (value) => change({ gain: model.get("gain").map((own, k) => (k === i ? value : own)) }) }));
  const controls = h("div", { class: "mm-controls", style: { gridTemplateColumns: "repeat(auto-fit, minmax(min(100%, 190px), 1fr))" } }, offsetSlider.root, lengthSlider.root, epsSlider.root, gainSliders.map((one) => one.root));
  const selector = choice({ label: "Show", options: [{ value: "both", label: "Both" }, { value: "layer", label: "LayerNorm" }, { value: "rms", label: "RMSNorm" }], value: model.get("norm"), onChange: (norm) => { model.set("norm", norm); model.save_changes(); } });

  function syncControls({ x, offset, gain, eps, stats }) {
    const size = channelStats(x).rms;
    if (size > 0) direction = scale3(x, 1 / size);
    offsetSlider.set(offset);
    lengthSlider.set(size > 0 ? Math.log10(size) : SMALLEST);
    epsSlider.set(Math.log10(eps));
    gainSliders.forEach((one, i) => one.set(gain[i]));
    selector.set(model.get("norm"));
  }

  function goTo(example) {
    const to = { x: start.x, offset: 0, gain: ONES, eps: start.eps, ...example };
    if (prefersReducedMotion()) return change(to);
    const from = Object.fromEntries(Object.keys(to).map((name) => [name, model.get(name)]));
    const between = (a, b, t) => (t === 1 ? b : a + (b - a) * t);
    animate(480, (t) => {
      put(Object.fromEntries(Object.entries(to).map(([name, b]) => [name, Array.isArray(b) ? b.map((z, i) => between(from[name][i], z, t)) : between(from[name], b, t)])));
      if (t === 1) model.save_changes();
    });
  }
  const examples = [{ label: "Start again", ...start }, ...EXAMPLES].map(({ label, ...example }) => button({ label, onClick: () => {
    if (label === "Start again") Object.assign(camera, OUTLOOK);
    goTo(example);
  } }).root);
  const examplesBox = h("div", { role: "group", "aria-label": "Examples", style: { display: "flex", flexWrap: "wrap", gap: "8px" } }, examples);

  // 64 channels
  const fans = Object.keys(NORMS).map((name) => {
    const picture = svg("svg", { role: "img", "aria-label": `${NORMS[name].title} of ${model.get("values").length} channels, over c from 0 to 5`, style: { cursor: "ew-resize" } });
    const numbers = h("span", { style: { fontWeight: "400", color: INK, whiteSpace: "nowrap" } });
    const title = h("div", { style: { display: "flex", flexWrap: "wrap", justifyContent: "space-between", columnGap: "12px", fontWeight: "600", fontSize: "14px" }, "data-tone": NORMS[name].tone }, NORMS[name].title, numbers);
    const root = h("div", { style: { flex: "1 1 250px", minWidth: "0", maxWidth: "430px" } }, title, picture);
    const one = { name, picture, numbers, root, width: 0, plot: null };
    cleanups.push(draggable(picture, { onMove: (x, y, event) => event.type !== "keydown" && one.plot && change({ offset: Math.round(one.plot.offsetAt(x) * 10) / 10 }) }));
    picture.style.touchAction = "pan-y";
    return one;
  });
  const fanBox = h("div", { class: "mm-stage", style: { marginTop: "8px" } }, fans.map((one) => one.root));
  const fanTitle = h("p", { class: "mm-label", style: { marginTop: "18px", paddingTop: "14px", borderTop: `1px solid ${LINE}` } });

  function buildFans() {
    const [values, curve] = [model.get("values"), model.get("curve")];
    fanTitle.textContent = `The same c on ${values.length} channels: each thin line is one channel of the output, the thick line their mean, the band mean ± std.`;
    for (const one of fans) {
      if (!one.width) continue;
      one.plot = fan({ name: one.name, values, curve, width: one.width, height: 164 });
      one.picture.setAttribute("viewBox", `0 0 ${one.width} 164`);
      one.picture.setAttribute("width", one.width);
      one.picture.setAttribute("height", 164);
      one.picture.replaceChildren(...one.plot.nodes);
    }
  }

  function markFans({ offset }) {
    const curve = model.get("curve");
    const index = clamp(Math.round(offset * 10), 0, curve.c.length - 1);
    for (const one of fans) {
      const { mean, std, rms } = curve[one.name];
      one.plot?.mark(clamp(offset, 0, 5), index);
      one.numbers.textContent = `mean ${fmt(mean[index])} · std ${fmt(std[index])} · RMS ${fmt(rms[index])}`;
    }
  }

  const note = h("p", { class: "mm-note", role: "status", style: { minHeight: "3em", marginBottom: "10px" } });
  const stage = h("div", { class: "mm-stage" }, globeBox, side);
  const root = h("div", { class: "mm-fig" }, selector.root, stage, note, examplesBox, controls, fanTitle, fanBox);
  el.append(root);

  function draw() {
    pending = 0;
    const result = results(model);
    drawScene(result);
    drawSide(result);
    syncControls(result);
    markFans(result);
    const text = remark(result);
    if (note.textContent !== text) note.textContent = text;
  }
  const schedule = () => {
    if (!pending) pending = requestAnimationFrame(draw);
  };

  cleanups.push(observeSize(globeBox, (width) => {
    if (width < 1) return;
    Object.assign(camera, { width, height: Math.min(430, width * 1.1) });
    globe.setAttribute("viewBox", `0 0 ${camera.width} ${camera.height}`);
    globe.setAttribute("width", camera.width);
    globe.setAttribute("height", camera.height);
    schedule();
  }));
  cleanups.push(observeSize(side, (width) => {
    sideWidth = width || sideWidth;
    schedule();
  }));
  cleanups.push(observeSize(fanBox, () => {
    for (const one of fans) one.width = one.root.clientWidth;
    buildFans();
    schedule();
  }));
  const rebuild = () => {
    buildFans();
    schedule();
  };
  const watched = ["x", "offset", "gain", "eps", "norm"];
  for (const name of watched) model.on(`change:${name}`, schedule);
  for (const name of ["values", "curve"]) model.on(`change:${name}`, rebuild);
  draw();

  return () => {
    cancelAnimationFrame(pending);
    cancelAnimationFrame(tween);
    for (const name of watched) model.off(`change:${name}`, schedule);
    for (const name of ["values", "curve"]) model.off(`change:${name}`, rebuild);
    for (const cleanup of cleanups) cleanup();
    root.remove();
  };
}

export default { render };
