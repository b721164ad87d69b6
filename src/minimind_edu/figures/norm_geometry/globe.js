// The globe of the norm figure as SVG: orthographic, sorted by depth, with labels that keep out of each other's way.

import { NARROW, TEXT_SIZES, svg, setAttributes, clamp } from "../../web/kit/kit.js";
import { lineThrough } from "../../web/kit/chart.js";
import { POLE, RADIUS, dot3, scale3, add3, multiply3, viewFrom, project } from "./math.js";
import { outlineOf, parallel, meridianThrough } from "./math.js";
import { INK, MUTED, PAPER, NORMS, normWords, smallText } from "./result.js";

const GROUND = 1.32; // radius of the drawn part of the plane, in radii of the sphere
const AXIS = 1.4; // length of the axis (1, 1, 1), likewise
const ORIGIN = [0, 0, 0];
const EDGE = 14; // pixels from the picture's edge where a tip that is outside is held

// Layers, back to front. Within a layer the depth decides.
const BEHIND = 0;
const INSIDE = 1;
const SURFACE = 2;
const BEFORE = 3;

const ROOM = 1.5; // how far a gain may stretch the sphere before the view steps back

// What is drawn, with the way from channels to the page.
class Scene {
  constructor(camera, { unit, center }) {
    Object.assign(this, { view: viewFrom(camera.yaw, camera.pitch), unit, center, size: camera });
    this.items = [];
    this.segments = []; // [x1, y1, x2, y2, weight]: what a label should not cross
    this.dots = []; // [x, y]: what a label must not hide
    this.labels = [];
  }

  at(point) {
    const [x, y] = project(this.view, point);
    return [this.center[0] + this.unit * x, this.center[1] - this.unit * y];
  }

  // The point itself or, of one that is out of the picture, where its ray leaves the picture.
  seen(point) {
    const { center, size } = this;
    const [dx, dy] = this.at(point).map((z, i) => z - center[i]);
    const across = (dx < 0 ? center[0] - EDGE : size.width - EDGE - center[0]) / Math.abs(dx);
    const along = (dy < 0 ? center[1] - EDGE : size.height - EDGE - center[1]) / Math.abs(dy);
    return scale3(point, Math.min(1, across, along));
  }

  distance(from, to) {
    const [[x1, y1], [x2, y2]] = [this.at(from), this.at(to)];
    return Math.hypot(x2 - x1, y2 - y1);
  }

  add(point, node, lift = 0) {
    const depth = dot3(this.view.toward, point);
    const inside = Math.hypot(...point) < RADIUS * 0.999;
    this.items.push({ layer: inside ? INSIDE : depth < 0 ? BEHIND : BEFORE, depth: depth + lift, node });
  }

  // A straight line, cut where it enters or leaves the sphere and where it comes to the front.
  line(from, to, style, lift = 0) {
    const way = add3(to, scale3(from, -1));
    const [a, b, c] = [dot3(way, way), dot3(from, way), dot3(from, from) - RADIUS ** 2];
    const root = Math.sqrt(Math.max(0, b * b - a * c));
    const turn = -dot3(this.view.toward, from) / dot3(this.view.toward, way);
    const meetings = [0, 1, (-b - root) / a, (-b + root) / a, turn];
    const cuts = meetings.filter((t) => t >= 0 && t <= 1).sort((s, t) => s - t);
    const along = (t) => add3(from, scale3(way, t));
    cuts.slice(1).forEach((end, i) => {
      if (end - cuts[i] < 1e-6) return;
      const [[x1, y1], [x2, y2]] = [this.at(along(cuts[i])), this.at(along(end))];
      this.add(along((cuts[i] + end) / 2), svg("line", { x1, y1, x2, y2, ...style }), lift);
      this.segments.push([x1, y1, x2, y2, lift]);
    });
  }

  arrow(from, to, { color, width, dash = null, gap = 0, sym }) {
    const [[x1, y1], [x2, y2]] = [this.at(from), this.at(to)];
    const length = Math.hypot(x2 - x1, y2 - y1);
    const head = Math.min(6 + 2 * width, length - gap);
    if (head < 2) return;
    const before = (distance) => add3(to, scale3(add3(from, scale3(to, -1)), distance / length));
    this.line(
      from,
      before(gap + head * 0.8),
      { stroke: color, "stroke-width": width, "stroke-dasharray": dash, "data-sym": sym },
      4,
    );
    const [x, y] = this.at(before(gap));
    const turn = (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI;
    const d = `M0,0 L${-head},${-head * 0.42} L${-head * 0.78},0 L${-head},${head * 0.42} Z`;
    const transform = `translate(${x} ${y}) rotate(${turn})`;
    this.add(before(gap), svg("path", { d, fill: color, transform }), 4);
  }

  // A curve around the globe: full strength in front, faint behind.
  curve(points, { color, width, front, back, dash = null }) {
    const runs = [];
    points.slice(1).forEach((point, i) => {
      const behind = dot3(this.view.toward, add3(points[i], point)) < 0;
      if (runs.at(-1)?.behind !== behind) runs.push({ behind, path: [points[i]] });
      runs.at(-1).path.push(point);
    });
    const style = { fill: "none", stroke: color, "stroke-width": width, "stroke-dasharray": dash };
    for (const { behind, path } of runs) {
      const d = lineThrough(path.map((point) => this.at(point)));
      const node = svg("path", { d, ...style, "stroke-opacity": behind ? back : front });
      this.items.push({ layer: behind ? BEHIND : SURFACE, depth: behind ? -99 : 99, node });
    }
  }

  dot(point, node) {
    const [x, y] = this.at(point);
    setAttributes(node, { transform: `translate(${x} ${y})` });
    this.items.push({ layer: dot3(this.view.toward, point) < 0 ? INSIDE : BEFORE, depth: 99, node });
    this.dots.push([x, y]);
  }

  // side: index of the preferred one of SIDES. rings: how far off it may stand. needed: it is never left out.
  label(
    point,
    text,
    { color = MUTED, bold, needed, side = 0, size = TEXT_SIZES.text, apart = 6, rings = 3, sym } = {},
  ) {
    const [x, y] = this.at(point);
    this.labels.push({ x, y, text, color, bold, needed, side, size, apart, rings, sym });
  }

  sorted() {
    return this.items.sort((a, b) => a.layer - b.layer || a.depth - b.depth).map((item) => item.node);
  }
}

// The sphere keeps its size while x moves; only a gain that stretches it far makes the view step back. Pixels for one
// unit, and where the center of the globe is.
export function fitView({ gain }, { width, height }) {
  const back = Math.max(1, ...gain.map((factor) => Math.abs(factor) / ROOM));
  const unit = Math.min((0.42 * width - 4) / (RADIUS * GROUND), (height - 38) / (RADIUS * (AXIS + 1))) / back;
  const aside = width < NARROW ? 0.42 : 0.5; // x and its labels are on the right
  return { unit, center: [aside * width, height - 12 - (height - 38) / (AXIS + 1)] };
}

function drawGround(scene, color) {
  const [cx, cy] = scene.center;
  const rx = RADIUS * GROUND * scene.unit;
  const ry = rx * Math.abs(dot3(scene.view.toward, POLE));
  const edge = { stroke: color, "stroke-opacity": 0.4, "stroke-dasharray": "2 4" };
  return svg("ellipse", { cx, cy, rx, ry, fill: color, "fill-opacity": 0.08, ...edge });
}

function drawSphere(scene, shade) {
  const [cx, cy] = scene.center;
  const edge = { stroke: MUTED, "stroke-width": 1.2 };
  const node = svg("circle", { cx, cy, r: RADIUS * scene.unit, fill: `url(#${shade})`, ...edge });
  scene.items.push({ layer: SURFACE, depth: 0, node });
  const faint = { color: MUTED, width: 0.8, front: 0.34, back: 0.13 };
  for (const degrees of [-60, -30, 30, 60]) scene.curve(parallel((degrees * Math.PI) / 180, RADIUS, 72), faint);
  for (const point of parallel(0, RADIUS, 12).slice(1)) scene.curve(meridianThrough(point, RADIUS, 36), faint);
}

// The sphere and its equator after the gain.
function drawShell(scene, gain, ring) {
  const { major, minor, angle } = outlineOf(scene.view, gain, RADIUS);
  const [cx, cy] = scene.center;
  const [rx, ry] = [major * scene.unit, minor * scene.unit];
  const transform = `rotate(${(-angle * 180) / Math.PI} ${cx} ${cy})`;
  const style = { fill: "none", stroke: MUTED, "stroke-width": 1.4, "stroke-dasharray": "6 4" };
  const stretched = parallel(0, RADIUS, 96).map((point) => multiply3(point, gain));
  scene.curve(stretched, { ...ring, width: 1.3, dash: "4 3" });
  scene.items.push({ layer: BEHIND, depth: -100, node: svg("ellipse", { cx, cy, rx, ry, transform, ...style }) });
}

// Where the axes of the three channels end; a plain globe goes without them.
function axisTips(isPlain) {
  if (isPlain) return [];
  return [0, 1, 2].map((i) => ORIGIN.map((_, k) => (k === i ? RADIUS * 1.22 : 0)));
}

function drawAxes(scene, isPlain) {
  const style = { stroke: MUTED, "stroke-width": 1, "stroke-opacity": 0.75 };
  scene.line(scale3(POLE, -RADIUS * 1.12), scale3(POLE, RADIUS * AXIS), { ...style, "stroke-dasharray": "5 3" });
  for (const tip of axisTips(isPlain)) scene.line(ORIGIN, tip, style);
}

const MARKS = {
  layer: { x: -6.5, y: -6.5, width: 13, height: 13, rx: 1.5 },
  rms: { r: 5.6 },
};

function drawOutput(scene, name, { plain, final }, stretched) {
  const { color } = NORMS[name];
  if (stretched) {
    scene.dot(plain, svg("circle", { r: 3.5, fill: PAPER, stroke: color, "stroke-width": 1.5 }));
    scene.arrow(plain, final, { color, width: 1.6, dash: "2 3", gap: 6, sym: "gamma" });
  }
  const style = { fill: color, stroke: PAPER, "stroke-width": 1.5, "data-sym": "norm" };
  scene.dot(final, svg(name === "rms" ? "circle" : "rect", { ...MARKS[name], ...style }));
}

// LayerNorm: down to the plane, then along it to the sphere. RMSNorm: along the ray of x to the sphere.
function drawMoves(scene, { input, centered, outputs, shown, stretched }) {
  scene.line(ORIGIN, input, { stroke: INK, "stroke-width": 1.8 }, 1);
  if (shown.includes("layer")) {
    const { color } = NORMS.layer;
    scene.arrow(input, centered, { color, width: 2, dash: "5 4", gap: 2, sym: "mean" });
    scene.line(ORIGIN, centered, { stroke: color, "stroke-width": 1, "stroke-opacity": 0.55 });
    scene.arrow(centered, outputs.layer.plain, { color, width: 3, dash: "7 3", gap: 5 });
    drawOutput(scene, "layer", outputs.layer, stretched);
  }
  if (shown.includes("rms")) {
    const { color } = NORMS.rms;
    const way = meridianThrough(input, RADIUS, 48);
    if (way) scene.curve(way, { color, width: 1.8, front: 0.9, back: 0.35, dash: "1.5 3.5" });
    scene.arrow(input, outputs.rms.plain, { color, width: 3, gap: 6, sym: "rms" });
    drawOutput(scene, "rms", outputs.rms, stretched);
  }
}

function labelMoves(scene, { input, centered, stats, outputs, shown, stretched, argument }) {
  const seen = scene.seen(input);
  const isOutside = seen[0] !== input[0];
  scene.dots.push(scene.at(seen));
  const name = isOutside ? normWords.outside(argument, smallText(stats.rms)) : argument;
  scene.label(seen, name, { color: INK, bold: true, needed: true, apart: 13 });
  for (const norm of shown) {
    const { title, color } = NORMS[norm];
    const side = norm === "rms" ? 3 : 2;
    scene.label(outputs[norm].final, title, { color, bold: true, needed: true, apart: 11, side, sym: "norm" });
  }
  const over = add3(centered, scale3(POLE, clamp(dot3(POLE, input), -RADIUS, RADIUS)));
  const { minusMean, overStd, overRms, timesGain } = normWords;
  const moves = [
    [over, centered, minusMean, "layer", "mean"],
    [centered, outputs.layer.plain, overStd, "layer"],
    [seen, outputs.rms.plain, overRms, "rms", "rms"],
  ];
  const gains = shown.map((norm) => [outputs[norm].plain, outputs[norm].final, timesGain, norm, "gamma"]);
  for (const [from, to, text, norm, sym] of stretched ? [...moves, ...gains] : moves) {
    if (!shown.includes(norm) || scene.distance(from, to) < 16) continue;
    scene.label(scale3(add3(from, to), 0.5), text, { color: NORMS[norm].color, rings: 2, sym });
  }
}

function labelGlobe(scene, isPlain) {
  scene.label(scale3(POLE, RADIUS * AXIS), normWords.pole, { side: 6, apart: 5 });
  axisTips(isPlain).forEach((tip, i) =>
    scene.label(tip, normWords.channel(i + 1), { size: TEXT_SIZES.small, apart: 4, rings: 1 }),
  );
  const { right, up } = scene.view;
  const rim = parallel(0, RADIUS * GROUND, 72);
  const lowLeft = (point) => 0.8 * dot3(right, point) + 2 * dot3(up, point);
  const corner = rim.reduce((best, point) => (lowLeft(point) < lowLeft(best) ? point : best));
  scene.label(corner, normWords.meanZero, { size: TEXT_SIZES.small, side: 7, apart: 3, rings: 1, sym: "mean" });
  const lowRight = add3(scale3(right, RADIUS * 0.8), scale3(up, -RADIUS * 0.6));
  scene.label(lowRight, normWords.rmsOne, { size: TEXT_SIZES.small, side: 2, apart: 4, rings: 1, sym: "rms" });
}

const BLOCKED = 1e5; // the cost of lying on another label, more than all else together; on a dot a little less
const SIDES = [
  [1, 0],
  [0.8, -0.9],
  [0.8, 0.9],
  [-1, 0],
  [-0.8, -0.9],
  [-0.8, 0.9],
  [0, -1],
  [0, 1],
];

function boxesMeet(a, b, margin) {
  const acrossMeets = a.x < b.x + b.w + margin && b.x < a.x + a.w + margin;
  return acrossMeets && a.y < b.y + b.h + margin && b.y < a.y + a.h + margin;
}

// The weight of all lines that a box would hide something of.
function weightCrossed(box, segments) {
  const crossed = ([x1, y1, x2, y2]) => {
    const span = (from, to, low, high) => [(low - from) / (to - from), (high - from) / (to - from)];
    const [across, along] = [span(x1, x2, box.x - 1, box.x + box.w + 1), span(y1, y2, box.y, box.y + box.h)];
    return Math.max(0, Math.min(...across), Math.min(...along)) < Math.min(1, Math.max(...across), Math.max(...along));
  };
  return segments.filter(crossed).reduce((sum, segment) => sum + 1 + segment[4], 0);
}

// The boxes where a label may stand, nearest ones first: a ring of SIDES around its point, then wider rings.
function boxesAround({ x, y, apart, rings, size }, w) {
  const h = size * 1.15;
  const atSide =
    (away) =>
    ([dx, dy]) => {
      const before = dx > 0 ? 0 : dx < 0 ? w : w / 2; // how much of the label stands left of its point
      return { x: x + dx * away - before, y: y + dy * (away + h / 2) - h / 2, w, h };
    };
  return [0, 12, 26].slice(0, rings).flatMap((more) => SIDES.map(atSide(apart + more)));
}

// Every label goes where it hides least: beside its point, or a little farther off. One that would still lie on another
// is left out. memory holds the last places, so that labels do not flicker between equals.
function placeLabels(scene, { width, height }, measure, memory) {
  const placed = [];
  const dots = scene.dots.map(([x, y]) => ({ x: x - 6, y: y - 6, w: 12, h: 12 }));
  const isOutside = (box) => box.x < 2 || box.y < 2 || box.x + box.w > width - 2 || box.y + box.h > height - 2;
  const cost = (box, index, label) => {
    const hidden = placed.filter((other) => boxesMeet(box, other, 2)).length;
    const dotsHidden = dots.filter((dot) => boxesMeet(box, dot, 0)).length;
    const [ring, side] = [Math.floor(index / SIDES.length), index % SIDES.length];
    const place = 12 * ring + (side === label.side ? 0 : 6 + side) - (memory.get(label.text) === index ? 10 : 0);
    const blocked = (isOutside(box) ? 2 : 0) + hidden + 0.6 * dotsHidden;
    return BLOCKED * blocked + 16 * weightCrossed(box, scene.segments) + place;
  };
  return scene.labels.flatMap((label) => {
    const boxes = boxesAround(label, measure(label.text, label.size, label.bold));
    const costs = boxes.map((box, i) => cost(box, i, label));
    const best = costs.indexOf(Math.min(...costs));
    if (costs[best] > BLOCKED / 2 && !label.needed) return [];
    memory.set(label.text, best);
    placed.push(boxes[best]);
    return [writeLabel(label, boxes[best].x, boxes[best].y + boxes[best].h * 0.8)];
  });
}

function writeLabel({ text, color, size, bold, sym }, x, y) {
  const style = { fill: color, fontSize: `${size}px` };
  return svg("text", { x, y, class: bold ? "mm-halo ng-bold" : "mm-halo", style, "data-sym": sym }, text);
}

// The whole picture for one result: nodes, labels, and the scene that tells where things stand.
export function paintGlobe(result, camera, { shade, measure, memory }) {
  const scene = new Scene(camera, fitView(result, camera));
  const ring = { color: MUTED, width: 1.8, front: 0.9, back: 0.4 };
  drawSphere(scene, shade);
  scene.curve(parallel(0, RADIUS, 96), ring);
  if (result.stretched) drawShell(scene, result.gain, ring);
  drawAxes(scene, camera.isPlain);
  drawMoves(scene, result);
  labelMoves(scene, result);
  labelGlobe(scene, camera.isPlain);
  const nodes = [drawGround(scene, MUTED), ...scene.sorted()];
  return { scene, nodes, words: placeLabels(scene, camera, measure, memory) };
}
