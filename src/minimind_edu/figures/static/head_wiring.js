// HeadWiring: one dial from MHA over GQA to MQA. Who reads whom, what is copied, and what the cache weighs.

import { h, svg, textAt, setAttributes, setSize, setTraits, clamp, arrowStep, draggable, mount } from "./kit.js";
import { fmt, grouped, slider, toggle, choice, optionsFor, readout, announcement, handle, grip } from "./kit.js";
import { ITEM_SIZES, kvHeadStops, sourceHeads, stepShapes } from "./head_wiring_math.js";
import { cacheBytes, copiedBytes, projectionWeights, formatBytes } from "./head_wiring_math.js";

const TRAITS = ["num_kv_heads", "head_dim", "num_layers", "length", "dtype", "order", "as_group_size"];
const LAST_EXPONENT = 15;
const HEAD_DIM_NAMES = { 64: "64 (MiniMind2)", 96: "96 (MiniMind3)" };
const ORDER_NAMES = { repeat_kv: "repeat_kv", tiled: "x.repeat (tiled)" };
const NOTE =
  "The cache holds the few heads at the bottom; the striped copies live only while one layer attends. Their shape is " +
  "the same in either order, so only the wires tell.";

const headColor = (head) => `--hw-color: var(--hw-c${head % 4})`;

function kvName(kvHeads, heads) {
  const kind = kvHeads === heads ? " (MHA)" : kvHeads === 1 ? " (MQA)" : "";
  return `${kvHeads} KV head${kvHeads > 1 ? "s" : ""}${kind}`;
}

/** Query heads, the copies they are multiplied with, and the heads that are kept, from top to bottom. */
function createWires() {
  const height = 268;
  const [queryY, copyY, copyHeight, keptY, keptHeight] = [42, 96, 34, 222, 34];
  const copyEnd = copyY + copyHeight;
  const root = svg("svg", { height, role: "img" });

  function stripes(x, width) {
    const lines = [];
    for (let at = -copyHeight; at < width; at += 11) {
      const [from, to] = [Math.max(at, 0), Math.min(at + copyHeight, width)];
      const ends = { x1: x + from, x2: x + to, y1: copyEnd - (from - at), y2: copyEnd - (to - at) };
      lines.push(svg("line", { class: "hw-stripe", ...ends }));
    }
    return lines;
  }

  function drawQuery(query, x) {
    return [
      svg("line", { class: "hw-link", x1: x, x2: x, y1: queryY + 15, y2: copyY }),
      svg("circle", { class: "hw-query", cx: x, cy: queryY, r: 15 }),
      textAt(x, queryY, `q${query}`, "hw-name"),
    ];
  }

  /** What a query is multiplied with: a striped copy, or, where nothing is copied, the kept head itself. */
  function drawCopy(head, x, width, isShared, isRight) {
    const box = { x: x - width / 2, y: copyY, width, height: copyHeight, rx: 3 };
    const cls = isRight ? "hw-name hw-copied" : "hw-name hw-copied hw-wrong";
    return [
      svg("rect", { class: isShared ? "hw-copy hw-same" : "hw-copy", style: headColor(head), ...box }),
      isShared ? [] : stripes(box.x, width),
      textAt(x, copyY + copyHeight / 2, `k${head}${isRight ? "" : "≠"}`, cls),
    ];
  }

  function drawKept(head, x, width) {
    const box = { x: x - width / 2, y: keptY, width, height: keptHeight, rx: 6 };
    return [
      svg("rect", { class: "hw-head", style: headColor(head), ...box }),
      textAt(x, keptY + keptHeight / 2, `k${head}`, "hw-name"),
    ];
  }

  function drawWire(head, from, to, isRight) {
    const middle = (copyEnd + keptY) / 2;
    const path = `M${from} ${keptY}C${from} ${middle} ${to} ${middle} ${to} ${copyEnd}`;
    return svg("path", { class: isRight ? "hw-wire" : "hw-wire hw-wrong", style: headColor(head), d: path });
  }

  function draw(s, width) {
    const column = width / s.heads;
    const x = (slot) => (slot + 0.5) * column;
    const keptX = (head) => ((head + 0.5) * width) / s.kvHeads;
    const copyWidth = Math.min(column - 6, 64);
    const keptWidth = Math.min(width / s.kvHeads - 6, 96);
    const isShared = s.copied === 0;
    const isRight = (query) => s.sources[query] === s.right[query];
    const parts = [
      s.sources.map((head, query) => drawWire(head, keptX(head), x(query), isRight(query))),
      s.sources.map((_, query) => drawQuery(query, x(query))),
      s.sources.map((head, query) => drawCopy(head, x(query), copyWidth, isShared, isRight(query))),
      Array.from({ length: s.kvHeads }, (_, head) => drawKept(head, keptX(head), keptWidth)),
      textAt(0, 14, "query heads", "hw-small"),
      textAt(
        0,
        copyY - 8,
        isShared ? "read the kept heads themselves" : "read copies, made for one moment",
        "hw-small",
      ),
      textAt(0, keptY - 8, "kept in the cache", "hw-small"),
    ];
    setSize(root, width, height);
    root.replaceChildren(...parts.flat(Infinity));
    const reads = s.sources.map((head, query) => `query ${query} reads key head ${head}`);
    setAttributes(root, { "aria-label": reads.join(", ") });
  }
  return { root, draw };
}

/** A bar for every number of key/value heads; the end of the current one can be dragged. */
function createRuler(onKvHeads) {
  const [row, barTop, barHeight, pad] = [38, 18, 13, 18];
  const bars = svg("g");
  const end = handle({ label: "key/value heads, by the end of the bar", ring: 13, shape: grip(8) });
  const root = svg("svg", { role: "group", style: "touch-action: pan-y" }, bars, end);
  let now = { stops: [1], kvHeads: 1, heads: 1, room: 1 };
  let start = 1;
  const stopAt = (index) => now.stops[clamp(index, 0, now.stops.length - 1)];
  const release = draggable(end, {
    onStart: () => (start = now.kvHeads),
    onMove: (x, y, event) => {
      const step = Math.sign(arrowStep(event)); // the stops fall, so that the bar grows towards the first
      if (step) return onKvHeads(stopAt(now.stops.indexOf(now.kvHeads) - step));
      // along the bar to another length, or down to another bar
      const distance = (stop) => Math.abs(Math.log2((stop / now.heads) * now.room) - Math.log2(Math.max(x, 1)));
      const byLength = now.stops.reduce((best, stop) => (distance(stop) < distance(best) ? stop : best));
      onKvHeads(byLength === start ? stopAt(Math.round((y - barTop - barHeight / 2) / row)) : byLength);
    },
  });

  function drawBar(s, stop, top, room) {
    const isHere = stop === s.kvHeads;
    const bytes = cacheBytes(1, s.length, s.layers, stop, s.headDim, s.itemSize);
    const text = isHere ? "hw-small hw-now" : "hw-small";
    const bar = { x: 0, y: top + barTop, height: barHeight, rx: 3 };
    return [
      textAt(0, top + 13, kvName(stop, s.heads), text),
      textAt(room, top + 13, formatBytes(bytes), text, "end"),
      svg("rect", { class: "hw-rail", ...bar, width: room }),
      svg("rect", { class: isHere ? "hw-bar hw-here" : "hw-bar", ...bar, width: (room * stop) / s.heads }),
    ];
  }

  function draw(s, width) {
    const room = width - pad;
    now = { stops: s.stops, kvHeads: s.kvHeads, heads: s.heads, room };
    setSize(root, width, s.stops.length * row);
    bars.replaceChildren(...s.stops.flatMap((stop, i) => drawBar(s, stop, i * row, room)));
    const text = `${kvName(s.kvHeads, s.heads)}, ${formatBytes(s.bytes)}`;
    const y = s.stops.indexOf(s.kvHeads) * row + barTop + barHeight / 2;
    setAttributes(end, { transform: `translate(${(room * s.kvHeads) / s.heads} ${y})` });
    setAttributes(end, { "aria-valuemin": 1, "aria-valuemax": s.heads });
    setAttributes(end, { "aria-valuenow": s.kvHeads, "aria-valuetext": text });
    setAttributes(root, { "aria-label": `memory of the cache: ${text}` });
  }
  return { root, draw, release };
}

/** The shapes of one decode step, and the memory that each line takes. */
function createShapes() {
  const body = h("tbody");
  const titles = ["keys of one layer, one new token", "shape", "new memory"];
  const head = h(
    "thead",
    {},
    h(
      "tr",
      {},
      titles.map((title) => h("th", { scope: "col" }, title)),
    ),
  );
  const root = h("table", { class: "hw-shapes" }, head, body);

  function costOf(s, step, bytes) {
    if (bytes === null) return "–";
    const isRepeating = ["[:, :, :, None]", "expand", "reshape"].includes(step);
    if (isRepeating && s.kvHeads === s.heads && s.order === "repeat_kv") return "0, not needed";
    return bytes === 0 ? "0, a view" : formatBytes(bytes);
  }

  function drawStep(s, [step, shape, bytes]) {
    const isTiled = s.order === "tiled";
    const isWrong = step === "reshape" && !s.harmless;
    const name = step === "reshape" && isTiled ? "x.repeat" : step;
    const text = `[${shape.join(", ")}]${isWrong ? " ≠ order" : ""}`;
    return h(
      "tr",
      { class: step === "cached keys" ? "hw-kept" : null },
      h("th", { scope: "row" }, name),
      h("td", { class: isWrong ? "hw-wrong" : null }, text),
      h("td", {}, costOf(s, step, bytes)),
    );
  }

  function draw(s) {
    const steps = stepShapes(1, s.length, s.heads, s.kvHeads, s.headDim, s.itemSize, s.order);
    const isShown = ([step]) => s.order !== "tiled" || !["[:, :, :, None]", "expand"].includes(step); // no fifth axis
    body.replaceChildren(...steps.filter(isShown).map((step) => drawStep(s, step)));
  }
  return { root, draw };
}

function wiringState(model) {
  const get = (name) => model.get(name);
  const [heads, dial, misread, dtype, order] = ["num_heads", "num_kv_heads", "as_group_size", "dtype", "order"].map(
    get,
  );
  const [headDim, layers, length] = ["head_dim", "num_layers", "length"].map(get);
  const kvHeads = misread ? heads / dial : dial;
  const itemSize = ITEM_SIZES[dtype];
  const [sources, right] = [order, "repeat_kv"].map((way) => sourceHeads(heads, kvHeads, way));
  const wrong = sources.filter((head, query) => head !== right[query]).length;
  const settings = { heads, dial, kvHeads, headDim, layers, length, dtype, order, misread, itemSize };
  return {
    ...settings,
    sources,
    right,
    wrong,
    bytes: cacheBytes(1, length, layers, kvHeads, headDim, itemSize),
    copied: copiedBytes(1, length, heads, kvHeads, headDim, itemSize, order),
    harmless: wrong === 0,
    stops: kvHeadStops(heads),
  };
}

function wiringVerdict(s) {
  if (s.misread && s.kvHeads !== s.dial) {
    return [`≠ ${s.dial} was meant as KV heads and taken as queries per KV head: ${s.kvHeads} KV heads.`, "bad"];
  }
  if (!s.harmless) {
    return [`≠ ${s.wrong} of ${s.heads} queries read another head than they should, and no error is raised.`, "bad"];
  }
  if (s.order === "tiled") {
    return [`With ${kvName(s.kvHeads, s.heads)} both orders are the same: a test here would not notice.`, null];
  }
  if (s.kvHeads === s.heads) return ["✓ MHA: every query has a head of its own.", "good"];
  if (s.kvHeads === 1) return [`✓ MQA: all ${s.heads} queries share one head, and even the reshape is a view.`, "good"];
  return [`✓ GQA: ${s.heads / s.kvHeads} neighboring queries share a head.`, "good"];
}

function wiringNumbers(s) {
  const token = cacheBytes(1, 1, s.layers, s.kvHeads, s.headDim, s.itemSize);
  const weights = projectionWeights(s.heads * s.headDim, s.kvHeads, s.headDim);
  return [
    ["bytes per token, all layers", grouped(token)],
    [`at ${grouped(s.length)} positions`, formatBytes(s.bytes)],
    ["of MHA's", `${fmt((100 * s.kvHeads) / s.heads, 1)} %`],
    ["k_proj and v_proj, one layer", `${grouped(weights)} weights`],
    ["copied in one layer, keys and values", formatBytes(s.copied)],
  ];
}

/** All controls, each writing one trait. */
function createControls(model) {
  const change = (name) => (value) => setTraits(model, { [name]: value });
  const stops = kvHeadStops(model.get("num_heads"));
  const dial = slider({
    label: "KV heads",
    min: 0,
    max: stops.length - 1,
    step: 1,
    value: stops.indexOf(model.get("num_kv_heads")),
    format: (i) => kvName(stops[i], stops[0]).replace(/ KV heads?/, ""),
    onInput: (i) => setTraits(model, { num_kv_heads: stops[i] }),
    tone: "accent2",
  });
  const length = slider({
    label: "positions in the cache",
    min: 0,
    max: LAST_EXPONENT,
    step: 1,
    value: Math.log2(model.get("length")),
    format: (power) => grouped(2 ** power),
    onInput: (power) => setTraits(model, { length: 2 ** power }),
  });
  const layers = slider({
    label: "layers",
    min: 1,
    max: 32,
    step: 1,
    value: model.get("num_layers"),
    format: (x) => fmt(x, 0),
    onInput: change("num_layers"),
  });
  const choiceOf = (name, label, options) => {
    return choice({ label, options, value: model.get(name), onChange: change(name) });
  };
  const sizes = [...new Set([64, 96, model.get("head_dim")])].sort((a, b) => a - b);
  const headDims = optionsFor(sizes, (size) => HEAD_DIM_NAMES[size] || String(size));
  const orders = optionsFor(Object.keys(ORDER_NAMES), (name) => ORDER_NAMES[name]);
  const headDim = choiceOf("head_dim", "head_dim", headDims);
  const dtype = choiceOf("dtype", "dtype", optionsFor(Object.keys(ITEM_SIZES)));
  const order = choiceOf("order", "repeated by", orders);
  const misread = toggle({
    label: "misread the number as queries per KV head",
    checked: model.get("as_group_size"),
    onChange: change("as_group_size"),
  });

  function set(s) {
    dial.set(s.stops.indexOf(s.dial));
    length.set(Math.log2(s.length));
    layers.set(s.layers);
    headDim.set(s.headDim);
    dtype.set(s.dtype);
    order.set(s.order);
    misread.set(s.misread);
  }
  return {
    heads: h("div", { class: "hw-settings" }, dial.root, order.root),
    sizes: h("div", { class: "hw-settings" }, length.root, layers.root),
    others: h("div", { class: "mm-controls" }, headDim.root, dtype.root, misread.root),
    set,
  };
}

function renderWiring({ model, el }) {
  const controls = createControls(model);
  const wires = createWires();
  const ruler = createRuler((kvHeads) => {
    const number = model.get("as_group_size") ? model.get("num_heads") / kvHeads : kvHeads;
    setTraits(model, { num_kv_heads: number });
  });
  const shapes = createShapes();
  const verdict = announcement("hw-verdict");
  const numbers = readout([]);
  const parts = [controls.heads, wires.root, verdict.root, controls.sizes, ruler.root, shapes.root];
  const stage = h("div", { class: "mm-stage hw-stage" }, parts);
  const note = h("p", { class: "mm-note" }, NOTE);
  const root = h("div", { class: "mm-fig hw-fig" }, stage, controls.others, numbers.root, note);

  function draw(width) {
    const s = wiringState(model);
    wires.draw(s, width);
    ruler.draw(s, width);
    shapes.draw(s);
    controls.set(s);
    verdict.set(...wiringVerdict(s));
    numbers.set(wiringNumbers(s));
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw, parts: [ruler] });
}

export default { render: renderWiring };
