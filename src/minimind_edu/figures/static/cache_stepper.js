// CacheStepper: a row for each position, a column for each call. What is computed, what reused, and where a bug shows.

import { h, svg, textAt, setAttributes, setSize, setTraits, clamp, prefersReducedMotion, mount } from "./kit.js";
import { fmt, grouped, slider, choice, button, readout, announcement } from "./kit.js";
import { tokenPasses, callSizes, cacheCall, visibleKeys, cacheBytes, firstParting } from "./cache_stepper_math.js";

const TRAITS = ["prompt_length", "chunk_size", "bug", "calls", "new_tokens", "differences"];
const BUG_LABELS = {
  none: "no bug",
  offset: "forget the position offset",
  again: "turn cached keys again",
  stale: "do not reset",
  square: "square mask",
};
const HEADER = 46;
const PLOT_HEIGHT = 118;
const PLOT_TOP = 34;
const NOTE = "All runs are a real two-layer MiniMind in float64, reading the same words; each bug is one changed line.";

// Widths of a word, of a position id, of a column of keys or values and of the gap behind a layer; height of a row.
const ROOMY = { word: 60, id: 34, cell: 15, gap: 14, row: 24 };
const TIGHT = { word: 52, id: 26, cell: 12, gap: 10, row: 20 };

const label = (x, y, text, cls = "cs-small", anchor = "middle") => textAt(x, y, text, cls, anchor);

/** Everything the drawing needs to know about the calls made so far. */
function stepperState(model) {
  const get = (name) => model.get(name);
  const [prompt, bug, words] = [get("prompt_length"), get("bug"), get("words")];
  const chunk = Math.min(get("chunk_size"), prompt);
  const sizes = callSizes(prompt, chunk, words.length);
  const calls = Math.min(get("calls"), sizes.length);
  const earlier = bug === "stale" ? get("earlier") : [];
  const made = sizes.slice(0, calls).map((_, i) => cacheCall(sizes, i, earlier.length, bug === "offset"));
  const differences = get("differences")[bug][prompt - 1][chunk - 1];
  return {
    prompt,
    chunk,
    bug,
    sizes,
    calls,
    made,
    differences,
    earlier: earlier.length,
    rows: [...earlier, ...words],
    prefills: Math.ceil(prompt / chunk),
    now: made[calls - 1] || { past: earlier.length, size: 0, held: earlier.length, positions: [] },
    ids: [...earlier.keys(), ...made.flatMap((call) => call.positions)],
    parted: firstParting(differences.slice(0, calls)),
    spread: get("logit_spread"),
    layers: get("num_layers"),
    layerRow: get("layer_row_bytes"),
    fresh: get("new_tokens"),
  };
}

/** Keys and values of every layer: one cell for each row that the cache holds or will hold. */
function cacheCells(s, sizes, y, arriving) {
  const { word, id, cell, gap, row: height } = sizes;
  const cells = [label(word + id / 2, HEADER - 24, "layer")];
  for (let layer = 0; layer < s.layers; layer++) {
    const x = word + id + layer * (2 * cell + gap);
    ["K", "V"].forEach((name, i) => {
      const place = { x: x + i * cell + 1.5, width: cell - 3, height: height - 6, rx: 3 };
      cells.push(label(x + (i + 0.5) * cell, HEADER - 6, name));
      s.rows.forEach((_, row) => {
        const isNew = row < s.now.held && row >= s.now.past;
        const motion = isNew && arriving ? { style: `animation-delay: ${0.22 * layer}s` } : {};
        const cls = cellClass(s, row, name) + (isNew && arriving ? " cs-arrive" : "");
        cells.push(svg("rect", { class: cls, ...place, y: y(row) + 3, ...motion }));
      });
    });
    cells.push(label(x + cell, HEADER - 24, String(layer + 1)));
  }
  return cells;
}

function cellClass(s, row, name) {
  if (row >= s.now.held) return "cs-slot";
  if (row >= s.now.past) return "cs-new";
  const turnedTwice = s.bug === "again" && name === "K";
  return row < s.earlier || turnedTwice ? "cs-kept cs-wrong" : "cs-kept";
}

/** The word of every row, and the position id that it got, or how often its key was turned. */
function rowNames(s, sizes, y) {
  const turns = (row) => s.made.filter((call) => row < call.held).length;
  const idOf = (row) => (s.bug === "again" ? `×${turns(row)}` : String(s.ids[row]));
  const isWrong = (row) => (s.bug === "offset" && s.ids[row] !== row) || (s.bug === "again" && turns(row) > 1);
  return s.rows.flatMap((word, row) => {
    const base = y(row) + sizes.row / 2 + 5;
    const isFilled = row < s.now.held;
    const cls = row < s.earlier ? "cs-bad" : isFilled ? "" : "cs-later";
    const name = label(sizes.word - 4, base, word, `cs-word ${cls}`, "end");
    if (!isFilled) return [name];
    return [name, label(sizes.word + sizes.id / 2, base, idOf(row), isWrong(row) ? "cs-bad" : "cs-small")];
  });
}

/** One column for every call: what it computed, and what a call without a cache would compute again. */
function callColumns(s, x, y, step, height) {
  const size = Math.min(step - 2, 12);
  const square = { width: size, height: size, rx: 2 };
  return s.made.flatMap((call, i) =>
    Array.from({ length: call.held }, (_, row) => {
      const cy = y(row) + height / 2;
      if (row >= call.past) return svg("rect", { class: "cs-new", x: x(i) - size / 2, y: cy - size / 2, ...square });
      return svg("circle", { class: "cs-again", cx: x(i), cy, r: Math.min(size / 2 - 1, 3.5) });
    }),
  );
}

/** How far the logits of every call are from the uncached run, on a logarithmic axis with a place for 0. */
function drawDistances(s, x, left, right, top) {
  const floor = top + PLOT_TOP + PLOT_HEIGHT - 14;
  const height = PLOT_HEIGHT - 14;
  const y = (d) => (d > 0 ? top + PLOT_TOP + ((1 - Math.log10(Math.max(d, 0.02))) / 3) * height : floor);
  const done = s.differences.slice(0, s.calls);
  const rule = (d, cls) => svg("line", { class: cls, x1: left, x2: right, y1: y(d), y2: y(d) });
  const point = (d, i) => {
    if (d > 0) return svg("path", { class: "cs-apart", d: `M${x(i) - 4} ${y(d) - 4}l8 8m0 -8l-8 8` });
    return svg("circle", { class: "cs-same", cx: x(i), cy: y(d), r: 5 });
  };
  return [
    label(0, top + 20, "logits: distance from the uncached run", "cs-small", "start"),
    [10, 1, 0.1, 0].map((d) => [rule(d, "cs-rule"), label(left - 6, y(d) + 4, String(d), "cs-small", "end")]),
    rule(s.spread, "cs-spread"),
    label(0, y(s.spread) + 4, "spread of all", "cs-small", "start"),
    label(0, y(s.spread) + 18, "logits (dashed)", "cs-small", "start"),
    label(0, floor + 4, "identical", "cs-small", "start"),
    svg("path", { class: "cs-path", d: done.map((d, i) => `${i ? "L" : "M"}${x(i)} ${y(d)}`).join("") }),
    done.map(point),
  ];
}

/** Rows are positions: the cache's keys and values at the left, a column for every call at the right, logits below. */
function createGrowth() {
  const root = svg("svg", { role: "img" });

  function callNumbers(s, x, step) {
    return s.sizes.map((_, i) => {
      if (step < 17 && i % 2) return null;
      return label(x(i), HEADER - 6, String(i + 1), i === s.calls - 1 ? "cs-small cs-strong" : "cs-small");
    });
  }

  function draw(s, width, arriving) {
    const sizes = width < 340 ? TIGHT : ROOMY;
    const left = sizes.word + sizes.id + s.layers * (2 * sizes.cell + sizes.gap) + 4;
    const step = Math.min(30, (width - left) / s.sizes.length);
    const right = left + step * s.sizes.length;
    const [x, y] = [(call) => left + (call + 0.5) * step, (row) => HEADER + row * sizes.row];
    const bottom = y(s.rows.length);
    const height = bottom + PLOT_TOP + PLOT_HEIGHT + 6;
    const split = left + s.prefills * step;
    const band = { class: "cs-band", y: HEADER - 20, width: step, height: height - HEADER + 16, rx: 5 };
    const isRoomy = s.prefills * step > 44;
    const parts = [
      s.calls > 0 && svg("rect", { ...band, x: x(s.calls - 1) - step / 2 }),
      svg("line", { class: "cs-rule", x1: split, x2: split, y1: 8, y2: bottom }),
      label(sizes.word + sizes.id / 2, HEADER - 6, s.bug === "again" ? "turns" : "pos."),
      isRoomy && label(split - 6, HEADER - 28, "prefill", "cs-small", "end"),
      label(split + 6, HEADER - 28, "decode", "cs-small", "start"),
      callNumbers(s, x, step),
      rowNames(s, sizes, y),
      cacheCells(s, sizes, y, arriving),
      callColumns(s, x, y, step, sizes.row),
      drawDistances(s, x, left, right, bottom),
    ];
    setSize(root, width, height);
    root.replaceChildren(...parts.flat(Infinity).filter(Boolean));
    const reused = s.now.held - s.now.size;
    const held = `After ${s.calls} of ${s.sizes.length} calls the cache holds ${s.now.held} positions`;
    setAttributes(root, { "aria-label": `${held}; the last call computed ${s.now.size} and reused ${reused}` });
  }
  return { root, draw };
}

/** The mask of the last call: queries down, keys across. */
function createMask() {
  const root = svg("svg", { role: "img" });
  const caption = h("p", { class: "cs-caption" });
  const [left, top, row] = [ROOMY.word, 22, 20];

  function drawCell(s, cell, i, t, isShown, isRight) {
    const box = { x: left + t * cell + 1, y: top + i * row + 2, width: cell - 2, height: 16, rx: 2 };
    if (isShown && t >= s.now.past) return svg("rect", { ...box, class: "cs-new" });
    if (isShown) return svg("rect", { ...box, class: t < s.earlier ? "cs-kept cs-wrong" : "cs-kept" });
    if (!isRight) return svg("rect", { ...box, class: "cs-hidden" });
    const [cx, cy, r] = [left + (t + 0.5) * cell, top + (i + 0.5) * row, Math.min(cell / 2 - 2, 4)];
    const cross = `M${cx - r} ${cy - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`;
    return svg("path", { class: "cs-missed", d: cross });
  }

  function captionOf(s, missing) {
    if (!s.calls) return "No call yet, so no mask.";
    const { size, held } = s.now;
    const queries = size === 1 ? "1 query" : `${size} queries`;
    const keys = `${held} key${held === 1 ? "" : "s"}`;
    const wrong = missing ? `; ✕ ${missing} keys wrongly hidden` : "";
    return `Mask of call ${s.calls}, [S, T] = [${size}, ${held}]: ${queries}, ${keys}${wrong}.`;
  }

  function draw(s, width) {
    const { size, held, past } = s.now;
    const shown = visibleKeys(size, held, s.bug === "square");
    const right = visibleKeys(size, held, false);
    const cell = Math.min(20, (width - left - 4) / Math.max(held, 1));
    const every = cell >= 17 ? 1 : cell >= 9 ? 2 : 3;
    const numbered = Array.from({ length: held }, (_, t) => t).filter((t) => t % every === 0);
    setSize(root, width, top + Math.max(size, 1) * row + 4);
    root.replaceChildren(
      ...numbered.map((t) => label(left + (t + 0.5) * cell, 14, String(t))),
      ...s.rows.slice(past, held).map((word, i) => label(left - 4, top + i * row + 15, word, "cs-word", "end")),
      ...shown.flatMap((keys, i) => keys.map((isShown, t) => drawCell(s, cell, i, t, isShown, right[i][t]))),
    );
    const missing = right.flat().filter((isRight, i) => isRight && !shown.flat()[i]).length;
    caption.textContent = captionOf(s, missing);
    setAttributes(root, { "aria-label": caption.textContent });
  }
  return { root, caption, draw };
}

function stepperVerdict(s) {
  if (!s.calls) return ["Press “Prefill a chunk”.", ""];
  if (s.parted < 0) return ["✓ The same logits as without a cache, in every call.", "good"];
  return [`≠ Call ${s.parted + 1} is the first whose logits part, by ${fmt(s.differences[s.parted], 2)}.`, "bad"];
}

function stepperNumbers(s) {
  const [without, withCache] = tokenPasses(s.prompt, s.fresh);
  const rows = s.now.held;
  return [
    ["the cache holds", `${rows} rows, ${grouped(cacheBytes(rows, s.layers, s.layerRow))} bytes`],
    ["of which one layer", `${grouped(cacheBytes(rows, 1, s.layerRow))} bytes`],
    ["this call computes", `${s.now.size} of ${rows} rows`, "accent"],
    [`passes, ${s.prompt} + ${s.fresh} tokens, no cache`, grouped(without)],
    ["with a cache", grouped(withCache), "good"],
  ];
}

function legend() {
  const swatch = (shape) => svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, shape);
  const computed = swatch(svg("rect", { class: "cs-new", x: 1, y: 1, width: 12, height: 12, rx: 2 }));
  const reused = swatch(svg("circle", { class: "cs-again", cx: 7, cy: 7, r: 4 }));
  return h(
    "p",
    { class: "cs-legend" },
    h("span", {}, computed, "computed in this call"),
    h("span", {}, reused, "reused; without a cache, computed again"),
  );
}

/** The buttons that make calls. One that has nothing left to do is disabled, and the focus moves to its successor. */
function createSteps(go) {
  const steps = {
    prefill: button({ label: "Prefill a chunk", onClick: () => go(1) }),
    decode: button({ label: "Decode one", onClick: () => go(1) }),
    back: button({ label: "One call back", onClick: () => go(-1) }),
    reset: button({ label: "Reset", onClick: () => go(-Infinity) }),
  };

  function set(s) {
    const isUseful = {
      prefill: s.calls < s.prefills,
      decode: s.calls >= s.prefills && s.calls < s.sizes.length,
      back: s.calls > 0,
      reset: s.calls > 0,
    };
    const focused = Object.keys(steps).find((name) => steps[name].root === document.activeElement);
    Object.entries(steps).forEach(([name, step]) => (step.root.disabled = !isUseful[name]));
    if (!focused || isUseful[focused]) return;
    const successor = ["decode", "prefill", "reset"].find((name) => isUseful[name]);
    steps[successor]?.root.focus({ preventScroll: true });
  }
  const roots = Object.values(steps).map((step) => step.root);
  return { root: h("div", { class: "cs-buttons" }, roots), set };
}

function renderStepper({ model, el }) {
  const sliderOf = (name, text, max) => {
    const onInput = (value) => setTraits(model, { [name]: value });
    return slider({ label: text, min: 1, max, step: 1, value: model.get(name), format: (x) => fmt(x, 0), onInput });
  };
  const sliders = {
    prompt_length: sliderOf("prompt_length", "words of the prompt", 8),
    chunk_size: sliderOf("chunk_size", "words in a chunk", 8),
    new_tokens: sliderOf("new_tokens", "new tokens to count passes for", 500),
  };
  const options = Object.entries(BUG_LABELS).map(([value, text]) => ({ value, label: text }));
  const onChange = (bug) => setTraits(model, { bug });
  const bugs = choice({ label: "bug", options, value: model.get("bug"), onChange });
  const [growth, mask, steps, numbers] = [createGrowth(), createMask(), createSteps(go), readout([])];
  const verdict = announcement("cs-verdict");

  const { prompt_length: prompt, chunk_size: chunk, new_tokens: fresh } = sliders;
  const growBox = h("div", { class: "cs-grow" }, growth.root, legend());
  const setBox = h("div", { class: "cs-set" }, bugs.root, prompt.root, chunk.root, steps.root);
  const tellBox = h("div", { class: "cs-tell" }, verdict.root, h("div", {}, mask.caption, mask.root));
  const stage = h("div", { class: "mm-stage cs-stage" }, setBox, growBox, tellBox);
  const controls = h("div", { class: "mm-controls" }, fresh.root);
  const root = h("div", { class: "mm-fig" }, stage, controls, numbers.root, h("p", { class: "mm-note" }, NOTE));
  let arriving = false;

  function go(direction) {
    const s = stepperState(model);
    arriving = direction === 1 && !prefersReducedMotion();
    setTraits(model, { calls: clamp(s.calls + direction, 0, s.sizes.length) });
    arriving = false;
  }

  function draw(growWidth, tellWidth) {
    const s = stepperState(model);
    growth.draw(s, growWidth, arriving);
    mask.draw(s, tellWidth);
    steps.set(s);
    Object.entries(sliders).forEach(([name, control]) => control.set(model.get(name)));
    bugs.set(s.bug);
    verdict.set(...stepperVerdict(s));
    numbers.set(stepperNumbers(s));
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [growBox, tellBox], draw });
}

export default { render: renderStepper };
