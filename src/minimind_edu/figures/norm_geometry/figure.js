// The norm figure: three channels as a globe whose axis is (1, 1, 1), bars of the same channels, and 64 channels below.

import { draggable } from "../../web/kit/drag.js";
import {
  NARROW,
  h,
  svg,
  fill,
  setAttributes,
  setSize,
  clamp,
  fmt,
  slider,
  choice,
  namedOptions,
} from "../../web/kit/kit.js";
import { button, readout, announcement, controlsOf, row, prefersReducedMotion } from "../../web/kit/kit.js";
import { observeTraits, observeSize, frame, mount } from "../../web/kit/kit.js";
import { channelStats, dot3, scale3, azimuthOf, unproject, ledTo } from "./math.js";
import { INK, NORMS, normWords, epsText, smallText, resultsOf, remarkOn } from "./result.js";
import { paintGlobe } from "./globe.js";
import { createStream } from "./stream.js";
import { createSource } from "../../web/live/source.js";
import { ROW, barScale, drawBars, numbersTable, drawFan } from "./charts.js";

const LIMIT = 8; // of a channel of x that is dragged
const SMALLEST = -4; // log10 of the shortest x that the slider gives
const CURVE_EPS = 1e-5; // as in the package's curves
const PITCH = 0.34;
const ASIDE = 0.62; // how far right of the middle the reader sees x at first, in radians around the axis
const NEAR = 9; // pixels from a straight way of x within which a hand is led along it
const TRAITS = ["x", "offset", "gain", "eps"];

const EXAMPLES = [
  { label: normWords.equal, x: [1.2, 1.2, 1.2] },
  { label: normWords.centered, x: [1.3, -2, 0.7] },
  { label: normWords.tiny, x: [0.0021, -0.0012, 0.0015] },
  { label: normWords.gained, x: [1, -2, 3], gain: [1, 1.5, 1.2] },
];

// From a to b, numbers or vectors, as t goes from 0 to 1.
function mix(a, b, t) {
  if (t === 1) return b;
  return Array.isArray(a) ? a.map((value, i) => mix(value, b[i], t)) : a + (b - a) * t;
}

// Runs step(t) for t from 0 to 1, one run at a time; at once when the reader prefers no motion.
function makeAnimator() {
  let frame = 0;
  const cancel = () => cancelAnimationFrame(frame);
  const run = (duration, step) => {
    cancel();
    if (prefersReducedMotion()) return step(1);
    const begin = performance.now();
    const tick = (now) => {
      const t = clamp((now - begin) / duration, 0, 1);
      step(t * t * (3 - 2 * t));
      if (t < 1) frame = requestAnimationFrame(tick);
    };
    frame = requestAnimationFrame(tick);
  };
  return { run, cancel };
}

// Width of a text as the element would draw it.
function makeRuler(el) {
  const context = document.createElement("canvas").getContext("2d");
  const known = new Map();
  return (text, size, bold) => {
    const font = `${bold ? 650 : 400} ${size}px ${getComputedStyle(el).fontFamily}`;
    const key = font + text;
    if (!known.has(key)) {
      context.font = font;
      known.set(key, context.measureText(text).width);
    }
    return known.get(key);
  };
}

// A focus ring is for the keyboard: pressing the pointer on a large area should not frame it.
function dragQuietly(element, { onStart, ...options }) {
  const show = () => (element.style.outline = "");
  element.addEventListener("keydown", show);
  element.addEventListener("blur", show);
  return draggable(element, {
    ...options,
    onStart: (event) => {
      element.style.outline = "none";
      if (onStart) onStart(event);
    },
  });
}

function shadeGradient(id) {
  const stop = (offset, opacity) => svg("stop", { offset, "stop-color": INK, "stop-opacity": opacity });
  const stops = [stop("0%", 0), stop("60%", 0.035), stop("100%", 0.15)];
  return svg("defs", {}, svg("radialGradient", { id, cx: "38%", cy: "32%", r: "72%" }, stops));
}

const degrees = (radians) => Math.round((radians * 180) / Math.PI);

function globePanel({ model, change, schedule, isCompact }) {
  const yaw = (azimuthOf(model.get("x")) || 0) + ASIDE;
  const camera = { yaw, pitch: PITCH, width: 380, height: 250 };
  const tools = { shade: `mm-globe-${Math.random().toString(36).slice(2)}`, memory: new Map() };
  let drawn = null;

  const slides = (label, min, max) => {
    return { role: "slider", tabindex: 0, "aria-label": label, "aria-valuemin": min, "aria-valuemax": max };
  };
  const turns = slides(normWords.rotate, -180, 180);
  const back = svg("rect", { class: "ng-back", width: "100%", height: "100%", ...turns });
  const scenery = svg("g", { class: "ng-passive" });
  const words = svg("g", { class: "ng-passive", "aria-hidden": "true" });
  const reach = svg("circle", { r: 18, fill: "transparent" });
  const handle = svg("g", slides(normWords.tip, 0, 20), reach, svg("circle", { class: "ng-tip", r: 9 }));
  const picture = svg("svg", { role: "group" }, shadeGradient(tools.shade), back, scenery, handle, words);
  const root = h("div", { class: "ng-globe" }, picture);
  tools.measure = makeRuler(picture);

  // Along x or straight up from where x was taken, if the pointer is near; else in the plane through the tip that faces
  // the reader.
  function moveTip(px, py, taken = null) {
    const { scene, result } = drawn;
    const seen = [(px - scene.center[0]) / scene.unit, (scene.center[1] - py) / scene.unit];
    const led = taken && ledTo(scene.view, taken, seen, NEAR / scene.unit);
    const tip = led ?? unproject(scene.view, [...seen, dot3(scene.view.toward, result.input)]);
    change({ x: tip.map((value) => clamp(value - result.offset, -LIMIT, LIMIT)) });
  }

  let grip = null; // from the tip to where the pointer took it, and x then
  const releaseTip = dragQuietly(handle, {
    onStart: () => (grip = null),
    onMove: (x, y, event) => {
      if (event.type === "keydown") return moveTip(x, y);
      const { scene, result } = drawn;
      const tip = scene.at(scene.seen(result.input));
      grip ??= { dx: x - tip[0], dy: y - tip[1], taken: result.input };
      moveTip(x - grip.dx, y - grip.dy, grip.taken);
    },
    keyStep: 8,
    position: () => drawn.scene.at(resultsOf(model).input), // not as drawn: two keys may come within one frame
  });

  let last = null;
  const releaseBack = dragQuietly(back, {
    onStart: () => (last = null),
    onMove: (x, y) => {
      if (last) {
        camera.yaw -= (x - last[0]) / 90;
        camera.pitch = clamp(camera.pitch + (y - last[1]) / 120, 0, Math.PI / 2);
      }
      last = [x, y];
      schedule();
    },
    position: () => (last = [0, 0]),
    keyStep: 8,
  });

  const unobserve = observeSize(root, (width) => {
    if (width < 1) return;
    Object.assign(camera, {
      width,
      height: isCompact ? 236 : clamp(width * 0.5, 230, 350),
      isPlain: isCompact || width < NARROW,
    });
    setSize(picture, width, camera.height);
    schedule();
  });

  function draw(result, remark) {
    const { scene, nodes, words: labels } = paintGlobe(result, camera, tools);
    drawn = { scene, result };
    fill(scenery, nodes);
    fill(words, labels);
    const [x, y] = scene.at(scene.seen(result.input));
    const { rms } = result.stats;
    const tip = normWords.tipAt(smallText(rms), result.input.map(smallText));
    setAttributes(picture, { "aria-label": normWords.globe(remark) });
    setAttributes(handle, {
      transform: `translate(${x} ${y})`,
      "aria-valuenow": rms.toFixed(2),
      "aria-valuetext": tip,
    });
    const around = degrees(Math.atan2(Math.sin(camera.yaw), Math.cos(camera.yaw)));
    const seen = normWords.seenFrom(around, degrees(camera.pitch));
    setAttributes(back, { "aria-valuenow": around, "aria-valuetext": seen });
  }

  // Steps that turn the globe, the short way round, until x stands where it is seen well.
  function turnTo(x) {
    const [{ yaw, pitch }, azimuth] = [camera, azimuthOf(x)];
    const way = Number.isNaN(azimuth) ? 0 : azimuth + ASIDE - yaw;
    const turn = Math.atan2(Math.sin(way), Math.cos(way));
    return (t) => {
      Object.assign(camera, { yaw: yaw + t * turn, pitch: mix(pitch, PITCH, t) });
      schedule();
    };
  }
  const release = () => [releaseTip, releaseBack, unobserve].forEach((stop) => stop());
  return { root, draw, turnTo, release };
}

function barsPanel({ model, change, schedule }) {
  let [width, limit] = [280, 3];
  const table = numbersTable();
  const block = (name, attrs) => {
    const title = h("div", { class: "ng-head", style: { color: NORMS[name]?.color ?? INK } });
    const bars = svg("g", {});
    const picture = svg("svg", { height: ROW * 3, ...attrs }, bars);
    return { title, bars, picture, root: h("div", { class: "ng-block" }, title, picture) };
  };
  const blocks = {
    input: block("input", { role: "group", "aria-label": normWords.threeChannels }),
    layer: block("layer", { "aria-hidden": "true" }),
    rms: block("rms", { "aria-hidden": "true" }),
  };
  const root = h("div", { class: "ng-column" }, Object.values(blocks), table);

  const moveChannel = (i, value) => {
    const moved = clamp(value - model.get("offset"), -LIMIT, LIMIT);
    change({ x: model.get("x").map((old, channel) => (channel === i ? moved : old)) });
  };
  const createGrip = (i) => {
    const knob = svg("circle", { class: "ng-grip", r: 5.5, cy: ROW * i + ROW / 2 });
    const ground = svg("rect", { y: ROW * i, height: ROW, width: "100%", fill: "transparent" });
    const slides = {
      role: "slider",
      "aria-label": normWords.channelOfX(i + 1),
      "aria-valuemin": -LIMIT,
      "aria-valuemax": LIMIT,
    };
    const row = svg("g", { class: "ng-row", tabindex: 0, ...slides }, ground, knob);
    const release = dragQuietly(row, {
      // Keys come as a step from [0, 0]: up and right are more, a tenth each.
      onMove: (x, y, event) => {
        const value = model.get("x")[i] + model.get("offset");
        moveChannel(i, event.type === "keydown" ? value + (x - y) / 10 : barScale(width, limit).valueAt(x));
      },
      onEnd: schedule,
      position: () => [0, 0],
      keyStep: 1,
    });
    blocks.input.picture.append(row);
    return { row, knob, release };
  };
  const grips = [0, 1, 2].map(createGrip);
  const unobserve = observeSize(root, (next) => {
    width = next || width;
    schedule();
  });

  function drawBlock(name, values, stats, options) {
    const { bars, picture } = blocks[name];
    setAttributes(picture, { width, viewBox: `0 0 ${width} ${ROW * 3}` });
    fill(bars, drawBars(values, stats, { color: NORMS[name]?.color ?? INK, width, ...options }));
  }

  function draw(result) {
    const { x, offset, input, stats, outputs, shown, argument, stretched } = result;
    const longest = Math.max(...input.map(Math.abs));
    const held = grips.some(({ row }) => row.matches(":active")); // the scale must not run away from the hand
    if (!held || longest > limit) limit = Math.max(3, Math.ceil(longest));
    const outputLimit = Math.max(2, ...shown.flatMap((name) => outputs[name].final.map(Math.abs)));
    blocks.input.title.textContent = normWords.inputOf(argument);
    drawBlock("input", input, stats, { opacity: 0.55, limit, text: smallText });
    for (const name of Object.keys(NORMS)) {
      blocks[name].root.style.display = shown.includes(name) ? "" : "none";
      const title = normWords.ofInput(NORMS[name].title, argument);
      blocks[name].title.textContent = stretched ? normWords.withGain(title) : title;
      const { final, stats: moments } = outputs[name];
      drawBlock(name, final, moments, { opacity: 0.85, limit: outputLimit, text: (value) => fmt(value) });
    }
    grips.forEach(({ row, knob }, i) => {
      const plain = smallText(x[i]);
      const text = offset ? normWords.withC(plain, smallText(input[i])) : plain;
      setAttributes(knob, { cx: barScale(width, limit).at(input[i]) });
      setAttributes(row, { "aria-valuenow": x[i].toFixed(2), "aria-valuetext": text });
    });
    table.set(result);
  }
  const release = () => [...grips.map((grip) => grip.release), unobserve].forEach((stop) => stop());
  return { root, draw, release };
}

function controlsPanel({ model, change }) {
  let direction = [1, 1, 1]; // of x, kept while x is zero
  const size = () => channelStats(model.get("x")).rms;
  const { bound, follow } = controlsOf(model, change);
  const oneDigit = (c) => fmt(c, 1);
  const offset = bound(slider, "offset", { label: normWords.offset, min: 0, max: 5, step: 0.1, format: oneDigit });
  const gains = [0, 1, 2].map((i) => {
    const shown = (gain) => gain[i];
    const written = (value) => model.get("gain").with(i, value);
    return bound(slider, "gain", { label: normWords.gainOf(i + 1), min: 0.2, max: 2, step: 0.05, shown, written });
  });
  const length = bound(slider, "x", {
    label: normWords.size,
    min: SMALLEST,
    max: 0.6,
    step: 0.02,
    shown: () => (size() > 0 ? Math.log10(size()) : SMALLEST),
    written: (power) => scale3(direction, 10 ** power),
    format: () => smallText(size()),
  });
  const eps = bound(slider, "eps", {
    label: normWords.eps,
    min: -6,
    max: 0,
    step: 0.25,
    shown: Math.log10,
    written: (power) => 10 ** power,
    format: () => epsText(model.get("eps")),
  });
  const root = h("div", { class: "mm-controls ng-controls" }, gains, length, eps);

  function draw(result) {
    if (size() > 0) direction = scale3(result.x, 1 / size());
    follow();
  }
  return { root, offset, draw };
}

function fansPanel({ model, change, schedule }) {
  const height = 164;
  const title = h("p", { class: "mm-label ng-fans" });
  const createFan = ([name, { title: norm, color }]) => {
    const label = normWords.fan(norm);
    const picture = svg("svg", { class: "ng-fan", role: "img", height, "aria-label": label });
    const numbers = h("span", {});
    const head = h("div", { class: "ng-head", style: { color } }, norm, numbers);
    const fan = { name, picture, numbers, plot: null, root: h("div", { class: "ng-column ng-wide" }, head, picture) };
    const onMove = (x, y, event) => {
      if (event.type === "keydown" || !fan.plot) return;
      change({ offset: Math.round(fan.plot.offsetAt(x) * 10) / 10 });
    };
    fan.release = draggable(picture, { onMove });
    return fan;
  };
  const fans = Object.entries(NORMS).map(createFan);
  const box = h("div", { class: "mm-stage" }, fans);
  const root = h("div", {}, title, box);

  function rebuild() {
    const [values, curve] = [model.get("values"), model.get("curve")];
    title.textContent = normWords.fans(values.length);
    for (const fan of fans) {
      const width = fan.root.clientWidth;
      if (!width) continue;
      fan.plot = drawFan({ name: fan.name, values, curve, eps: CURVE_EPS, width, height });
      setAttributes(fan.picture, { width, viewBox: `0 0 ${width} ${height}` });
      fill(fan.picture, fan.plot.nodes);
    }
    schedule();
  }
  const unobserve = observeSize(box, rebuild);
  const unlisten = observeTraits(model, ["values", "curve"], rebuild);

  function draw({ offset }) {
    const curve = model.get("curve");
    const at = clamp(Math.round(offset * 10), 0, curve.c.length - 1); // the curves have a point every tenth
    for (const { name, numbers, plot } of fans) {
      const [mean, std, rms] = ["mean", "std", "rms"].map((key) => fmt(curve[name][key][at]));
      numbers.textContent = normWords.fanStats(mean, std, rms);
      plot?.mark(curve.c[at], at);
    }
  }
  const release = () => [...fans.map((fan) => fan.release), unobserve, unlisten].forEach((stop) => stop());
  return { root, draw, release };
}

function examplesRow({ model, change, animator }, turnTo) {
  const now = () => Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const start = now();
  const goTo = (example) => {
    const to = { x: start.x, offset: 0, gain: [1, 1, 1], eps: start.eps, ...example };
    const [from, turn] = [now(), turnTo(to.x)];
    animator.run(520, (t) => {
      turn(t);
      change(Object.fromEntries(TRAITS.map((name) => [name, mix(from[name], to[name], t)])), t === 1);
    });
  };
  const all = [{ label: normWords.reset, ...start }, ...EXAMPLES];
  const buttons = all.map(({ label, ...example }) => button({ label, onClick: () => goTo(example) }));
  const group = { class: "ng-examples", role: "group", "aria-label": normWords.examples };
  return h("div", group, buttons);
}

// Calls draw in the next frame, once, however often it is asked before.
function makeScheduler(draw) {
  let pending = 0;
  const schedule = () => {
    pending ||= requestAnimationFrame(() => {
      pending = 0;
      draw();
    });
  };
  return { schedule, release: () => cancelAnimationFrame(pending) };
}

function renderGeometry({ model, el }) {
  const animator = makeAnimator();
  const scheduler = makeScheduler(() => draw());
  const tidy = (value) => (Array.isArray(value) ? value.map(tidy) : Number(value.toPrecision(6)));
  const change = (values, isFinished = true) => {
    for (const [name, value] of Object.entries(values)) model.set(name, tidy(value));
    if (isFinished) model.save_changes();
  };
  const byHand = (values) => {
    animator.cancel();
    change(values);
  };
  const shared = { model, schedule: scheduler.schedule, animator, change: byHand, isCompact: model.get("compact") };

  const globe = globePanel(shared);
  const bars = barsPanel(shared);
  const controls = controlsPanel(shared);
  const fans = fansPanel(shared);
  const examples = examplesRow({ ...shared, change }, globe.turnTo);
  const norms = namedOptions({ both: normWords.both, ...normWords.norms });
  const { bound, follow } = controlsOf(model);
  const selector = bound(choice, "norm", { label: normWords.show, options: norms });
  const remark = announcement("ng-remark");
  const numbers = readout([]);
  const source = shared.isCompact ? null : createSource(model, scheduler.schedule);
  const stream = source && createStream(source, scheduler.schedule);
  const stage = h("div", { class: "mm-stage" }, globe, stream);
  const details = h("div", { class: "mm-stage" }, bars);
  const ofExample = h("div", {}, selector, examples, remark, details, controls, fans);
  const more = [source, ofExample];
  const control = row(controls.offset, stream?.control);
  const root = frame(normWords, { stage, control, numbers, more }, shared.isCompact);

  function showStory(isStory) {
    root.dataset.story = isStory;
    root.firstChild.textContent = isStory ? normWords.streamTitle : normWords.title;
    for (const part of [globe.root, ofExample, controls.offset.root]) part.hidden = isStory;
    for (const part of [stream.root, stream.control.root]) part.hidden = !isStory;
  }

  function draw() {
    const reading = source?.reading() ?? null;
    if (source) showStory(Boolean(reading));
    if (reading) return numbers.set(stream.draw(reading));
    return drawExample();
  }

  function drawExample() {
    const result = resultsOf(model);
    const text = remarkOn(result);
    globe.draw(result, text);
    controls.draw(result);
    if (shared.isCompact) return;
    // what is folded away is drawn when it opens, by its change of size
    for (const panel of [bars, fans]) if (panel.root.checkVisibility()) panel.draw(result);
    follow();
    remark.set(text);
    const means = result.shown.map((name) => [
      normWords.meanAfter(NORMS[name].title),
      fmt(result.outputs[name].stats.mean),
    ]);
    numbers.set([[normWords.meanOf(result.argument), smallText(result.stats.mean)], ...means]);
  }

  const parts = [scheduler, { release: animator.cancel }, globe, bars, fans, source];
  return mount(el, root, { model, traits: [...TRAITS, "norm"], draw: scheduler.schedule, parts });
}

export default { render: renderGeometry };
