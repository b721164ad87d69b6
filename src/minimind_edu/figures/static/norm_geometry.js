// The norm figure: three channels as a globe whose axis is (1, 1, 1), bars of the same channels, and 64 channels below.

import { h, svg, fmt, slider, choice, button, draggable, prefersReducedMotion, observeSize, observeTraits } from "./kit.js";
import { channelStats, dot3, scale3, azimuthOf, unproject } from "./norm_geometry_math.js";
import { INK, LINE, NORMS, clamp, epsText, smallText, resultsOf, remarkOn } from "./norm_geometry_result.js";
import { fitView, paintGlobe } from "./norm_geometry_globe.js";
import { ROW, barScale, drawBars, numbersTable, drawFan } from "./norm_geometry_charts.js";

const LIMIT = 8; // of a channel of x that is dragged
const SMALLEST = -4; // log10 of the shortest x that the slider gives
const CURVE_EPS = 1e-5; // as in the package's curves
const PITCH = 0.34;
const ASIDE = 0.62; // how far right of the middle the reader sees x at first, in radians around the axis
const COLUMN = { flex: "1 1 270px", minWidth: "0", maxWidth: "430px" };
const TRAITS = ["x", "offset", "gain", "eps"];

const EXAMPLES = [
  { label: "All channels equal", x: [1.2, 1.2, 1.2] },
  { label: "Mean zero", x: [1.3, -2, 0.7] },
  { label: "Tiny vector", x: [0.0021, -0.0012, 0.0015] },
  { label: "The notes' example", x: [1, -2, 3], gain: [1, 1.5, 1.2] },
];

const mix = (a, b, t) => (t === 1 ? b : Array.isArray(a) ? a.map((one, i) => mix(one, b[i], t)) : a + (b - a) * t);

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
  const stops = [[0, 0], [60, 0.035], [100, 0.15]];
  const nodes = stops.map(([offset, opacity]) => svg("stop", { offset: `${offset}%`, "stop-color": INK, "stop-opacity": opacity }));
  return svg("defs", {}, svg("radialGradient", { id, cx: "38%", cy: "32%", r: "72%" }, nodes));
}

const degrees = (radians) => Math.round((radians * 180) / Math.PI);

function globePanel({ model, change, schedule, animator, cleanups }) {
  const camera = { yaw: (azimuthOf(model.get("x")) || 0) + ASIDE, pitch: PITCH, width: 380, height: 399, frozen: null };
  const tools = { shade: `mm-globe-${Math.random().toString(36).slice(2)}`, memory: new Map() };
  let drawn = null;

  const slidesOver = { role: "slider", tabindex: 0 };
  const back = svg("rect", { ...slidesOver, width: "100%", height: "100%", fill: "transparent", style: { outlineOffset: "-3px" }, "aria-label": "Turn the globe", "aria-valuemin": -180, "aria-valuemax": 180 });
  const scenery = svg("g", { style: { pointerEvents: "none" } });
  const words = svg("g", { style: { pointerEvents: "none" }, "aria-hidden": "true" });
  const ring = svg("circle", { r: 9, fill: "transparent", stroke: INK, "stroke-width": 2.5 });
  const handle = svg("g", { ...slidesOver, "aria-label": "Tip of x: RMS", "aria-valuemin": 0, "aria-valuemax": 20 }, svg("circle", { r: 18, fill: "transparent" }), ring);
  const label = "Three channels in space: the sphere of RMS 1 and the plane of mean zero";
  const picture = svg("svg", { role: "group", "aria-label": label }, shadeGradient(tools.shade), back, scenery, handle, words);
  const root = h("div", { style: { ...COLUMN, flexBasis: "330px" } }, picture);
  tools.measure = makeRuler(picture);

  // In the plane through the old tip that faces the reader.
  function moveTip(px, py) {
    const { scene, result } = drawn;
    const [x, y] = [clamp(px, 10, camera.width - 10), clamp(py, 10, camera.height - 10)];
    const [right, up] = [(x - scene.center[0]) / scene.unit, (scene.center[1] - y) / scene.unit];
    const tip = unproject(scene.view, [right, up, dot3(scene.view.toward, result.input)]);
    change({ x: tip.map((value) => clamp(value - result.offset, -LIMIT, LIMIT)) });
  }

  function zoomToFit() {
    const [from, to] = [camera.frozen, fitView(drawn.result, camera)];
    animator.run(260, (t) => {
      camera.frozen = t === 1 ? null : { unit: mix(from.unit, to.unit, t), center: mix(from.center, to.center, t) };
      schedule();
    });
  }

  let grip = null; // from the tip to where the pointer took it
  cleanups.push(dragQuietly(handle, {
    onStart: () => {
      camera.frozen = { unit: drawn.scene.unit, center: drawn.scene.center };
      grip = null;
    },
    onMove: (x, y, event) => {
      if (event.type === "keydown") return moveTip(x, y);
      const tip = drawn.scene.at(drawn.result.input);
      grip ??= [x - tip[0], y - tip[1]];
      moveTip(x - grip[0], y - grip[1]);
    },
    onEnd: zoomToFit,
    keyStep: 8,
    position: () => drawn.scene.at(resultsOf(model).input), // not as drawn: two keys may come within one frame
  }));

  let last = null;
  cleanups.push(dragQuietly(back, {
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
  }));
  back.style.touchAction = "pan-y"; // a finger that moves up or down still scrolls the page

  cleanups.push(observeSize(root, (width) => {
    if (width < 1) return;
    Object.assign(camera, { width, height: width * 1.05 });
    picture.setAttribute("viewBox", `0 0 ${camera.width} ${camera.height}`);
    picture.setAttribute("width", camera.width);
    picture.setAttribute("height", camera.height);
    schedule();
  }));

  function draw(result) {
    const { scene, nodes, words: labels } = paintGlobe(result, camera, tools);
    drawn = { scene, result };
    scenery.replaceChildren(...nodes);
    words.replaceChildren(...labels);
    const [x, y] = scene.at(result.input);
    handle.setAttribute("transform", `translate(${x} ${y})`);
    handle.setAttribute("aria-valuenow", result.stats.rms.toFixed(2));
    handle.setAttribute("aria-valuetext", `${smallText(result.stats.rms)}, channels ${result.input.map(smallText).join(", ")}`);
    const around = degrees(Math.atan2(Math.sin(camera.yaw), Math.cos(camera.yaw)));
    back.setAttribute("aria-valuenow", around);
    back.setAttribute("aria-valuetext", `${around} degrees around, ${degrees(camera.pitch)} from above`);
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
  return { root, draw, turnTo };
}

function barsPanel({ model, change, schedule, cleanups }) {
  let [width, limit] = [280, 3];
  const table = numbersTable();
  const block = (name, attrs) => {
    const title = h("div", { style: { color: NORMS[name]?.color ?? INK, fontWeight: "600", fontSize: "14px", lineHeight: "1.3" } });
    const bars = svg("g", {});
    const picture = svg("svg", { height: ROW * 3, ...attrs }, bars);
    return { title, bars, picture, root: h("div", { style: { marginBottom: "8px" } }, title, picture) };
  };
  const blocks = {
    input: block("input", { role: "group", "aria-label": "The three channels of the input" }),
    layer: block("layer", { "aria-hidden": "true" }),
    rms: block("rms", { "aria-hidden": "true" }),
  };
  const root = h("div", { style: COLUMN }, Object.values(blocks).map((one) => one.root), table.root);

  const moveChannel = (i, value) => {
    const offset = model.get("offset");
    change({ x: model.get("x").map((own, k) => (k === i ? clamp(value - offset, -LIMIT, LIMIT) : own)) });
  };
  const grips = [0, 1, 2].map((i) => {
    const knob = svg("circle", { r: 5.5, fill: "var(--mm-bg)", stroke: INK, "stroke-width": 2, cy: ROW * i + ROW / 2 });
    const ground = svg("rect", { y: ROW * i, height: ROW, width: "100%", fill: "transparent" });
    const row = svg("g", { tabindex: 0, role: "slider", "aria-label": `Channel ${i + 1} of x`, "aria-valuemin": -LIMIT, "aria-valuemax": LIMIT }, ground, knob);
    cleanups.push(dragQuietly(row, {
      // Keys come as a step from [0, 0]: up and right are more, a tenth each.
      onMove: (x, y, event) => {
        const own = model.get("x")[i] + model.get("offset");
        moveChannel(i, event.type === "keydown" ? own + (x - y) / 10 : barScale(width, limit).valueAt(x));
      },
      onEnd: schedule,
      position: () => [0, 0],
      keyStep: 1,
    }));
    row.style.touchAction = "pan-y";
    blocks.input.picture.append(row);
    return { row, knob };
  });
  cleanups.push(observeSize(root, (next) => {
    width = next || width;
    schedule();
  }));

  function fill(name, values, stats, options) {
    const { bars, picture } = blocks[name];
    picture.setAttribute("width", width);
    picture.setAttribute("viewBox", `0 0 ${width} ${ROW * 3}`);
    bars.replaceChildren(...drawBars(values, stats, { color: NORMS[name]?.color ?? INK, width, ...options }));
  }

  function draw(result) {
    const { x, offset, input, stats, outputs, shown, argument, stretched } = result;
    const longest = Math.max(...input.map(Math.abs));
    const held = grips.some(({ row }) => row.matches(":active")); // the scale must not run away from the hand
    if (!held || longest > limit) limit = Math.max(3, Math.ceil(longest));
    const outputLimit = Math.max(2, ...shown.flatMap((name) => outputs[name].final.map(Math.abs)));
    blocks.input.title.textContent = `${argument}, the input`;
    fill("input", input, stats, { opacity: 0.55, limit, text: smallText });
    for (const name of Object.keys(NORMS)) {
      blocks[name].root.style.display = shown.includes(name) ? "" : "none";
      blocks[name].title.textContent = `${NORMS[name].title}(${argument})${stretched ? ", with gain" : ""}`;
      fill(name, outputs[name].final, outputs[name].stats, { opacity: 0.85, limit: outputLimit, text: (z) => fmt(z) });
    }
    grips.forEach(({ row, knob }, i) => {
      knob.setAttribute("cx", barScale(width, limit).at(input[i]));
      row.setAttribute("aria-valuenow", x[i].toFixed(2));
      row.setAttribute("aria-valuetext", offset ? `${smallText(x[i])}, with c ${smallText(input[i])}` : smallText(x[i]));
    });
    table.set(result);
  }
  return { root, draw };
}

function controlsPanel({ model, change }) {
  let direction = [1, 1, 1]; // of x, kept while x is zero
  const size = () => channelStats(model.get("x")).rms;
  const offset = slider({ label: "c, added to every channel", min: 0, max: 5, step: 0.1, value: 0, format: (c) => fmt(c, 1), onInput: (c) => change({ offset: c }) });
  const length = slider({ label: "size of x (its RMS)", min: SMALLEST, max: 0.6, step: 0.02, value: 0, format: () => smallText(size()), onInput: (power) => change({ x: scale3(direction, 10 ** power) }) });
  const eps = slider({ label: "eps", min: -6, max: 0, step: 0.25, value: -5, format: () => epsText(model.get("eps")), onInput: (power) => change({ eps: 10 ** power }) });
  const gains = [0, 1, 2].map((i) => slider({
    label: `gain of channel ${i + 1}`, min: 0.2, max: 2, step: 0.05, value: 1,
    onInput: (value) => change({ gain: model.get("gain").map((own, k) => (k === i ? value : own)) }),
  }));
  const grid = { gridTemplateColumns: "repeat(auto-fit, minmax(min(100%, 190px), 1fr))" };
  const root = h("div", { class: "mm-controls", style: grid }, [...gains, length, eps].map((one) => one.root));

  function draw(result) {
    const rms = size();
    if (rms > 0) direction = scale3(result.x, 1 / rms);
    offset.set(result.offset);
    length.set(rms > 0 ? Math.log10(rms) : SMALLEST);
    eps.set(Math.log10(result.eps));
    gains.forEach((one, i) => one.set(result.gain[i]));
  }
  return { root, offset: offset.root, draw };
}

function fansPanel({ model, change, schedule, cleanups }) {
  const height = 164;
  const title = h("p", { class: "mm-label", style: { marginTop: "18px", paddingTop: "14px", borderTop: `1px solid ${LINE}` } });
  const fans = Object.entries(NORMS).map(([name, { title: norm, tone }]) => {
    const picture = svg("svg", { role: "img", height, "aria-label": `${norm} of the longer vector while c grows from 0 to 5` });
    const numbers = h("span", { style: { fontWeight: "400", color: INK, whiteSpace: "nowrap" } });
    const row = { display: "flex", flexWrap: "wrap", justifyContent: "space-between", columnGap: "12px", fontWeight: "600", fontSize: "14px" };
    const root = h("div", { style: { ...COLUMN, flexBasis: "250px" } }, h("div", { style: row, "data-tone": tone }, norm, numbers), picture);
    const fan = { name, picture, numbers, root, plot: null };
    const follow = (x, y, event) => event.type !== "keydown" && fan.plot && change({ offset: Math.round(fan.plot.offsetAt(x) * 10) / 10 });
    cleanups.push(draggable(picture, { onMove: follow }));
    Object.assign(picture.style, { touchAction: "pan-y", cursor: "ew-resize" });
    return fan;
  });
  const box = h("div", { class: "mm-stage", style: { marginTop: "8px" } }, fans.map((one) => one.root));
  const root = h("div", {}, title, box);

  function rebuild() {
    const [values, curve] = [model.get("values"), model.get("curve")];
    title.textContent = `The same c on ${values.length} channels: each thin line is one channel of the output, the thick line their mean, the band mean ± std.`;
    for (const fan of fans) {
      const width = fan.root.clientWidth;
      if (!width) continue;
      fan.plot = drawFan({ name: fan.name, values, curve, eps: CURVE_EPS, width, height });
      fan.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      fan.picture.setAttribute("width", width);
      fan.picture.replaceChildren(...fan.plot.nodes);
    }
    schedule();
  }
  cleanups.push(observeSize(box, rebuild));

  function draw({ offset }) {
    const curve = model.get("curve");
    const at = clamp(Math.round(offset * 10), 0, curve.c.length - 1); // the curves have a point every tenth
    for (const { name, numbers, plot } of fans) {
      const [mean, std, rms] = ["mean", "std", "rms"].map((key) => fmt(curve[name][key][at]));
      numbers.textContent = `mean ${mean} · std ${std} · RMS ${rms}`;
      plot?.mark(curve.c[at], at);
    }
  }
  return { root, draw, rebuild };
}

function examplesRow({ model, change, animator }, turnTo) {
  const start = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const goTo = (example) => {
    const to = { x: start.x, offset: 0, gain: [1, 1, 1], eps: start.eps, ...example };
    const from = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
    const turn = turnTo(to.x);
    animator.run(520, (t) => {
      turn(t);
      change(Object.fromEntries(TRAITS.map((name) => [name, mix(from[name], to[name], t)])), t === 1);
    });
  };
  const buttons = [{ label: "Start again", ...start }, ...EXAMPLES].map(({ label, ...example }) => button({ label, onClick: () => goTo(example) }));
  const style = { display: "flex", flexWrap: "wrap", gap: "8px" };
  return h("div", { role: "group", "aria-label": "Examples", style }, buttons.map((one) => one.root));
}

function render({ model, el }) {
  const cleanups = [];
  const animator = makeAnimator();
  let pending = 0;
  const schedule = () => {
    if (!pending) pending = requestAnimationFrame(draw);
  };
  const tidy = (value) => (Array.isArray(value) ? value.map(tidy) : Number(value.toPrecision(6)));
  const change = (values, finished = true) => {
    for (const [name, value] of Object.entries(values)) model.set(name, tidy(value));
    if (finished) model.save_changes();
  };
  const byHand = (values) => {
    animator.cancel();
    change(values);
  };
  const shared = { model, schedule, animator, cleanups, change: byHand };

  const globe = globePanel(shared);
  const bars = barsPanel(shared);
  const controls = controlsPanel(shared);
  const fans = fansPanel(shared);
  const examples = examplesRow({ ...shared, change }, globe.turnTo);
  const options = [{ value: "both", label: "Both" }, ...Object.entries(NORMS).map(([value, { title }]) => ({ value, label: title }))];
  const selector = choice({ label: "Show", options, value: model.get("norm"), onChange: (norm) => {
    model.set("norm", norm);
    model.save_changes();
  } });
  const note = h("p", { class: "mm-note", role: "status", style: { minHeight: "3em", marginBottom: "10px" } });
  globe.root.append(controls.offset);
  const stage = h("div", { class: "mm-stage" }, globe.root, bars.root);
  const root = h("div", { class: "mm-fig" }, selector.root, stage, note, examples, controls.root, fans.root);
  el.append(root);

  function draw() {
    pending = 0;
    const result = resultsOf(model);
    for (const panel of [globe, bars, controls, fans]) panel.draw(result);
    selector.set(model.get("norm"));
    const text = remarkOn(result);
    if (note.textContent !== text) note.textContent = text;
  }

  cleanups.push(observeTraits(model, [...TRAITS, "norm"], schedule), observeTraits(model, ["values", "curve"], fans.rebuild));
  draw();
  return () => {
    cancelAnimationFrame(pending);
    animator.cancel();
    for (const cleanup of cleanups) cleanup();
    root.remove();
  };
}

export default { render };
