// HeadWiring: one dial from MHA over GQA to MQA. Who reads whom, what is copied, and what the cache weighs.

import { h, svg, fmt, slider, toggle, choice, readout, draggable, mount } from "./kit.js";
import { ITEM_SIZES, kvHeadStops, sourceHeads, cacheBytes, copiedBytes, projectionWeights, stepShapes, formatBytes } from "./head_wiring_math.js";

const WIRING_CSS = `
.hw-stage { display: grid !important; gap: 14px !important; justify-content: stretch !important; }
.hw-settings { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 240px), 1fr)); gap: 10px 28px; align-items: end; }
.hw-fig { --hw-c0: var(--mm-accent2); --hw-c1: var(--mm-good); --hw-c2: color-mix(in oklab, var(--mm-accent2), var(--mm-bad)); --hw-c3: var(--mm-muted); }
.hw-query { fill: color-mix(in oklab, var(--mm-accent) 16%, var(--mm-panel)); stroke: var(--mm-accent); stroke-width: 2; }
.hw-head { fill: color-mix(in oklab, var(--hw-color) 24%, var(--mm-panel)); stroke: var(--hw-color); stroke-width: 2; }
.hw-copy { fill: color-mix(in oklab, var(--hw-color) 24%, var(--mm-panel)); stroke: var(--hw-color); stroke-width: 1.5; stroke-dasharray: 4 3; }
.hw-copy.hw-same { stroke-dasharray: none; stroke-width: 2; }
.hw-stripe { stroke: var(--mm-panel); stroke-width: 4; }
.hw-wire { fill: none; stroke: var(--hw-color); stroke-width: 2.5; }
.hw-wire.hw-wrong { stroke: var(--mm-bad); stroke-dasharray: 5 4; }
.hw-link { stroke: var(--mm-line); stroke-width: 2; }
.mm-fig text.hw-name { font-size: 14px; font-weight: 700; text-anchor: middle; dominant-baseline: central; }
.mm-fig text.hw-copied { paint-order: stroke; stroke: var(--mm-panel); stroke-width: 4px; stroke-linejoin: round; }
.mm-fig text.hw-wrong { fill: var(--mm-bad); }
.mm-fig text.hw-small { fill: var(--mm-muted); font-size: 12.5px; paint-order: stroke; stroke: var(--mm-bg); stroke-width: 4px; stroke-linejoin: round; }
.mm-fig text.hw-now { fill: var(--mm-ink); font-weight: 700; }
.hw-verdict { font-size: 16px !important; font-weight: 600 !important; min-height: 1.5em; }
@container (max-width: 560px) { .mm-fig .hw-verdict { min-height: 3em; } }
.hw-bar { fill: color-mix(in oklab, var(--mm-accent2) 26%, var(--mm-panel)); }
.hw-bar.hw-here { fill: var(--mm-accent2); }
.hw-rail { fill: var(--mm-soft); }
.hw-handle { outline: none !important; }
.hw-knob { fill: var(--mm-bg); stroke: var(--mm-ink); stroke-width: 2.5; }
.hw-ring { fill: none; stroke: transparent; stroke-width: 2; }
.hw-handle:focus-visible .hw-ring { stroke: var(--mm-ink); }
.mm-fig table.hw-shapes { width: 100%; margin: 0; border-collapse: collapse; font: 13px/1.45 var(--mm-mono); color: var(--mm-ink); background: none; }
.mm-fig .hw-shapes :is(th, td) { padding: 3px 6px 3px 0; border: 0; border-bottom: 1px solid var(--mm-line); text-align: left; font-weight: 400; background: none; color: var(--mm-ink); vertical-align: top; }
.mm-fig .hw-shapes thead th { color: var(--mm-muted); font-family: var(--mm-font); }
.mm-fig .hw-shapes :is(th, td):last-child { text-align: right; padding-right: 0; }
.mm-fig .hw-shapes tr.hw-kept > * { font-weight: 700; color: var(--mm-accent2); }
.mm-fig .hw-shapes td.hw-wrong { color: var(--mm-bad); }
@container (max-width: 460px) { .mm-fig table.hw-shapes { font-size: 12px; } }
`;

const LAST_EXPONENT = 15;
const headColor = (head) => `--hw-color: var(--hw-c${head % 4})`;
const place = (node, attrs) => Object.entries(attrs).forEach(([name, value]) => node.setAttribute(name, value));
const kvName = (kvHeads, heads) => `${kvHeads} KV head${kvHeads > 1 ? "s" : ""}${kvHeads === heads ? " (MHA)" : kvHeads === 1 ? " (MQA)" : ""}`;

/** Query heads, the copies they are multiplied with, and the heads that are kept, from top to bottom. */
function createWires() {
  const height = 268;
  const [queryY, copyY, copyHeight, keptY, keptHeight] = [42, 96, 34, 222, 34];
  const root = svg("svg", { height, role: "img" });

  function stripes(x, width) {
    const lines = [];
    for (let at = -copyHeight; at < width; at += 11) {
      const [from, to] = [Math.max(at, 0), Math.min(at + copyHeight, width)];
      lines.push(svg("line", { class: "hw-stripe", x1: x + from, x2: x + to, y1: copyY + copyHeight - (from - at), y2: copyY + copyHeight - (to - at) }));
    }
    return lines;
  }

  function draw(s, width) {
    const column = width / s.heads;
    const x = (slot) => (slot + 0.5) * column;
    const keptX = (head) => ((head + 0.5) * width) / s.kvHeads;
    const copyWidth = Math.min(column - 6, 64);
    const keptWidth = Math.min(width / s.kvHeads - 6, 96);
    const shared = s.copied === 0;
    const middle = (copyY + copyHeight + keptY) / 2;
    const wires = s.sources.map((head, query) => svg("path", {
      class: `hw-wire${head === s.right[query] ? "" : " hw-wrong"}`, style: headColor(head),
      d: `M${keptX(head)} ${keptY}C${keptX(head)} ${middle} ${x(query)} ${middle} ${x(query)} ${copyY + copyHeight}`,
    }));
    const queries = s.sources.map((_, query) => [
      svg("line", { class: "hw-link", x1: x(query), x2: x(query), y1: queryY + 15, y2: copyY }),
      svg("circle", { class: "hw-query", cx: x(query), cy: queryY, r: 15 }),
      svg("text", { class: "hw-name", x: x(query), y: queryY }, `q${query}`),
    ]);
    const copies = s.sources.map((head, query) => [
      svg("rect", { class: `hw-copy${shared ? " hw-same" : ""}`, style: headColor(head), x: x(query) - copyWidth / 2, y: copyY, width: copyWidth, height: copyHeight, rx: 3 }),
      shared ? [] : stripes(x(query) - copyWidth / 2, copyWidth),
      svg("text", { class: `hw-name hw-copied${head === s.right[query] ? "" : " hw-wrong"}`, x: x(query), y: copyY + copyHeight / 2 }, `k${head}${head === s.right[query] ? "" : "≠"}`),
    ]);
    const kept = Array.from({ length: s.kvHeads }, (_, head) => [
      svg("rect", { class: "hw-head", style: headColor(head), x: keptX(head) - keptWidth / 2, y: keptY, width: keptWidth, height: keptHeight, rx: 6 }),
      svg("text", { class: "hw-name", x: keptX(head), y: keptY + keptHeight / 2 }, `k${head}`),
    ]);
    const titles = [
      svg("text", { class: "hw-small", x: 0, y: 14 }, "query heads"),
      svg("text", { class: "hw-small", x: 0, y: copyY - 8 }, shared ? "read the kept heads themselves" : "read copies, made for one moment"),
      svg("text", { class: "hw-small", x: 0, y: keptY - 8 }, "kept in the cache"),
    ];
    place(root, { width, viewBox: `0 0 ${width} ${height}` });
    root.replaceChildren(...[wires, queries, copies, kept, titles].flat(3));
    place(root, { "aria-label": `${s.sources.map((head, query) => `query ${query} reads key head ${head}`).join(", ")}` });
  }
  return { root, draw };
}

/** A bar for every number of key/value heads; the end of the current one can be dragged. */
function createRuler(onKvHeads) {
  const [row, barTop, barHeight, pad] = [38, 18, 13, 18];
  const bars = svg("g");
  const handle = svg("g", { class: "hw-handle", tabindex: 0, role: "slider", "aria-label": "key/value heads, by the end of the bar" },
    svg("circle", { r: 18, fill: "transparent" }), svg("circle", { class: "hw-ring", r: 13 }), svg("circle", { class: "hw-knob", r: 8 }));
  const root = svg("svg", { role: "group", style: "touch-action: pan-y" }, bars, handle);
  let now = { stops: [1], kvHeads: 1, heads: 1, room: 1 };
  let start = 1;
  const stopAt = (index) => now.stops[Math.min(now.stops.length - 1, Math.max(0, index))];
  const release = draggable(handle, {
    onStart: () => (start = now.kvHeads),
    onMove: (x, y, event) => {
      const step = { ArrowRight: -1, ArrowUp: -1, ArrowLeft: 1, ArrowDown: 1 }[event.key];
      if (step) return onKvHeads(stopAt(now.stops.indexOf(now.kvHeads) + step));
      // along the bar to another length, or down to another bar
      const distance = (stop) => Math.abs(Math.log2((stop / now.heads) * now.room) - Math.log2(Math.max(x, 1)));
      const byLength = now.stops.reduce((best, stop) => (distance(stop) < distance(best) ? stop : best));
      onKvHeads(byLength === start ? stopAt(Math.round((y - barTop - barHeight / 2) / row)) : byLength);
    },
  });

  function draw(s, width) {
    const room = width - pad;
    const height = s.stops.length * row;
    now = { stops: s.stops, kvHeads: s.kvHeads, heads: s.heads, room };
    place(root, { width, height, viewBox: `0 0 ${width} ${height}` });
    bars.replaceChildren(...s.stops.flatMap((stop, i) => {
      const here = stop === s.kvHeads;
      const bytes = cacheBytes(1, s.length, s.layers, stop, s.headDim, s.itemSize);
      return [
        svg("text", { class: `hw-small${here ? " hw-now" : ""}`, x: 0, y: i * row + 13 }, kvName(stop, s.heads)),
        svg("text", { class: `hw-small${here ? " hw-now" : ""}`, x: room, y: i * row + 13, "text-anchor": "end" }, formatBytes(bytes)),
        svg("rect", { class: "hw-rail", x: 0, y: i * row + barTop, width: room, height: barHeight, rx: 3 }),
        svg("rect", { class: `hw-bar${here ? " hw-here" : ""}`, x: 0, y: i * row + barTop, width: (room * stop) / s.heads, height: barHeight, rx: 3 }),
      ];
    }));
    const text = `${kvName(s.kvHeads, s.heads)}, ${formatBytes(s.bytes)}`;
    place(handle, { transform: `translate(${(room * s.kvHeads) / s.heads} ${s.stops.indexOf(s.kvHeads) * row + barTop + barHeight / 2})`,
      "aria-valuemin": 1, "aria-valuemax": s.heads, "aria-valuenow": s.kvHeads, "aria-valuetext": text });
    place(root, { "aria-label": `memory of the cache: ${text}` });
  }
  return { root, draw, release };
}

function createShapes() {
  const body = h("tbody");
  const head = h("thead", {}, h("tr", {}, ["keys of one layer, one new token", "shape", "new memory"].map((name) => h("th", { scope: "col" }, name))));
  const root = h("table", { class: "hw-shapes" }, head, body);
  function draw(s) {
    const steps = stepShapes(1, s.length, s.heads, s.kvHeads, s.headDim, s.itemSize, s.order);
    // x.repeat needs no fifth axis
    const shown = s.order === "tiled" ? steps.filter(([step]) => step !== "expand" && !step.startsWith("[")) : steps;
    body.replaceChildren(...shown.map(([step, shape, bytes]) => {
      const same = s.kvHeads === s.heads && s.order === "repeat_kv" && ["[:, :, :, None]", "expand", "reshape"].includes(step);
      const name = step === "reshape" && s.order === "tiled" ? "x.repeat" : step;
      const wrong = !s.harmless && step === "reshape";
      const cost = bytes === null ? "–" : same ? "0, not needed" : bytes === 0 ? "0, a view" : formatBytes(bytes);
      return h("tr", { class: step === "cached keys" ? "hw-kept" : null }, h("th", { scope: "row" }, name),
        h("td", { class: wrong ? "hw-wrong" : null }, `[${shape.join(", ")}]${wrong ? " ≠ order" : ""}`), h("td", {}, cost));
    }));
  }
  return { root, draw };
}

function wiringState(model) {
  const [heads, dial, headDim, layers, length, dtype, order, misread] =
    ["num_heads", "num_kv_heads", "head_dim", "num_layers", "length", "dtype", "order", "as_group_size"].map((name) => model.get(name));
  const kvHeads = misread ? heads / dial : dial;
  const itemSize = ITEM_SIZES[dtype];
  const [sources, right] = [order, "repeat_kv"].map((way) => sourceHeads(heads, kvHeads, way));
  const bytes = cacheBytes(1, length, layers, kvHeads, headDim, itemSize);
  const copied = copiedBytes(1, length, heads, kvHeads, headDim, itemSize, order);
  const wrong = sources.filter((head, query) => head !== right[query]).length;
  return { heads, dial, kvHeads, headDim, layers, length, dtype, order, misread, itemSize, sources, right, bytes, copied, wrong, harmless: wrong === 0, stops: kvHeadStops(heads) };
}

function wiringVerdict(s) {
  if (s.misread && s.kvHeads !== s.dial)
    return [`≠ ${s.dial} was meant as KV heads and taken as queries per KV head: ${s.kvHeads} KV heads.`, "bad"];
  if (!s.harmless) return [`≠ ${s.wrong} of ${s.heads} queries read another head than they should, and no error is raised.`, "bad"];
  if (s.order === "tiled") return [`With ${kvName(s.kvHeads, s.heads)} both orders are the same: a test here would not notice.`, null];
  if (s.kvHeads === s.heads) return ["✓ MHA: every query has a head of its own.", "good"];
  if (s.kvHeads === 1) return [`✓ MQA: all ${s.heads} queries share one head, and even the reshape is a view.`, "good"];
  return [`✓ GQA: ${s.heads / s.kvHeads} neighboring queries share a head.`, "good"];
}

function renderWiring({ model, el }) {
  const change = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const stops = kvHeadStops(model.get("num_heads"));
  const wires = createWires();
  const ruler = createRuler((kvHeads) => change("num_kv_heads", model.get("as_group_size") ? model.get("num_heads") / kvHeads : kvHeads));
  const shapes = createShapes();
  const dial = slider({ label: "KV heads", min: 0, max: stops.length - 1, step: 1, value: stops.indexOf(model.get("num_kv_heads")),
    format: (i) => kvName(stops[i], stops[0]).replace(/ KV heads?/, ""), onInput: (i) => change("num_kv_heads", stops[i]), tone: "accent2" });
  const order = choice({ label: "repeated by", value: model.get("order"), onChange: (value) => change("order", value),
    options: [{ value: "repeat_kv", label: "repeat_kv" }, { value: "tiled", label: "x.repeat (tiled)" }] });
  const misread = toggle({ label: "misread the number as queries per KV head", checked: model.get("as_group_size"), onChange: (on) => change("as_group_size", on) });
  const length = slider({ label: "positions in the cache", min: 0, max: LAST_EXPONENT, step: 1, value: Math.log2(model.get("length")),
    format: (x) => Math.round(2 ** x).toLocaleString("en-US"), onInput: (x) => change("length", Math.round(2 ** x)) });
  const layers = slider({ label: "layers", min: 1, max: 32, step: 1, value: model.get("num_layers"), format: (x) => fmt(x, 0), onInput: (x) => change("num_layers", x) });
  const sizes = [...new Set([64, 96, model.get("head_dim")])].sort((a, b) => a - b);
  const names = { 64: "64 (MiniMind2)", 96: "96 (MiniMind3)" };
  const headDim = choice({ label: "head_dim", value: model.get("head_dim"), onChange: (value) => change("head_dim", value),
    options: sizes.map((value) => ({ value, label: names[value] || String(value) })) });
  const dtype = choice({ label: "dtype", value: model.get("dtype"), onChange: (value) => change("dtype", value),
    options: Object.keys(ITEM_SIZES).map((value) => ({ value, label: value })) });
  const words = h("p", { class: "hw-verdict", "aria-live": "polite" });
  const numbers = readout([]);
  const stage = h("div", { class: "mm-stage hw-stage" }, h("div", { class: "hw-settings" }, dial.root, order.root), wires.root, words,
    h("div", { class: "hw-settings" }, length.root, layers.root), ruler.root, shapes.root);
  const note = "The cache holds the few heads at the bottom; the striped copies live only while one layer attends. Their shape is the same in either order, so only the wires tell.";
  const root = h("div", { class: "mm-fig hw-fig" }, h("style", {}, WIRING_CSS), stage,
    h("div", { class: "mm-controls" }, headDim.root, dtype.root, misread.root), numbers.root, h("p", { class: "mm-note" }, note));
  function draw(width) {
    const s = wiringState(model);
    wires.draw(s, width);
    ruler.draw(s, width);
    shapes.draw(s);
    dial.set(s.stops.indexOf(s.dial));
    [[order, s.order], [misread, s.misread], [layers, s.layers], [headDim, s.headDim], [dtype, s.dtype]].forEach(([control, value]) => control.set(value));
    length.set(Math.log2(s.length));
    const [text, tone] = wiringVerdict(s);
    if (words.textContent !== text) words.textContent = text;
    if (tone) words.dataset.tone = tone;
    else delete words.dataset.tone;
    const whole = (x) => x.toLocaleString("en-US");
    numbers.set([
      ["bytes per token, all layers", whole(cacheBytes(1, 1, s.layers, s.kvHeads, s.headDim, s.itemSize))],
      [`at ${whole(s.length)} positions`, formatBytes(s.bytes)],
      ["of MHA's", `${fmt((100 * s.kvHeads) / s.heads, 1)} %`],
      ["k_proj and v_proj, one layer", `${whole(projectionWeights(s.heads * s.headDim, s.kvHeads, s.headDim))} weights`],
      ["copied in one layer, keys and values", formatBytes(s.copied)],
    ]);
  }

  return mount(el, root, { model, traits: ["num_kv_heads", "head_dim", "num_layers", "length", "dtype", "order", "as_group_size"], boxes: [stage], draw, parts: [ruler] });
}

export default { render: renderWiring };
