// CacheStepper: one row a position, one column a call. What is computed, what is reused, and where a bug shows.

import { h, svg, fmt, slider, choice, button, readout, prefersReducedMotion, mount } from "./kit.js";
import { tokenPasses, callSizes, cacheCall, visibleKeys, cacheBytes, firstParting } from "./cache_stepper_math.js";

const BUG_LABELS = { none: "no bug", offset: "forget the position offset", again: "turn cached keys again", stale: "do not reset", square: "square mask" };
const HEADER = 46;
const PLOT_HEIGHT = 118;
const PLOT_TOP = 34;

// Widths of a word, of a position id, of a column of keys or values and of the gap behind a layer; height of a row.
const ROOMY = { word: 60, id: 34, cell: 15, gap: 14, row: 24 };
const TIGHT = { word: 52, id: 26, cell: 12, gap: 10, row: 20 };

const STEPPER_CSS = `
.mm-fig .cs-stage { display: grid; grid-template: "set" "grow" "tell" / minmax(0, 1fr); gap: 18px 28px; justify-content: stretch; }
.cs-set { grid-area: set; display: grid; gap: 8px; align-content: start; }
.cs-grow { grid-area: grow; }
.cs-tell { grid-area: tell; display: grid; gap: 12px; align-content: start; }
@container (width >= 620px) { .mm-fig .cs-stage { grid-template: "grow set" auto "grow tell" 1fr / minmax(0, 1.75fr) minmax(0, 1fr); } }
.mm-fig text.cs-small { fill: var(--mm-muted); font-size: 12px; }
.mm-fig text.cs-strong { font-weight: 600; }
.mm-fig text.cs-bad { fill: var(--mm-bad); font-weight: 600; }
.mm-fig text.cs-later { fill: var(--mm-muted); }
.cs-slot { fill: none; stroke: var(--mm-line); stroke-width: 1; }
.cs-new { fill: var(--mm-accent); }
.cs-kept { fill: color-mix(in oklab, var(--mm-accent2) 30%, var(--mm-panel)); stroke: var(--mm-accent2); stroke-width: 1.25; }
.cs-kept.cs-wrong { stroke: var(--mm-bad); stroke-width: 2; fill: color-mix(in oklab, var(--mm-bad) 22%, var(--mm-panel)); }
.cs-again { fill: none; stroke: var(--mm-accent2); stroke-width: 1.75; }
.cs-band { fill: var(--mm-soft); }
.cs-rule { stroke: var(--mm-line); stroke-width: 1; }
.cs-spread { stroke: var(--mm-muted); stroke-width: 1.25; stroke-dasharray: 3 4; }
.cs-path { fill: none; stroke: var(--mm-muted); stroke-width: 1.25; }
.cs-same { fill: var(--mm-good); stroke: var(--mm-bg); stroke-width: 1.5; }
.cs-apart { stroke: var(--mm-bad); stroke-width: 2.5; stroke-linecap: round; fill: none; }
.cs-hidden { fill: none; stroke: var(--mm-line); }
.cs-missed { fill: none; stroke: var(--mm-bad); stroke-width: 2; }
.mm-fig .cs-verdict { font-size: 16px; font-weight: 600; line-height: 1.4; }
.mm-fig .cs-caption { color: var(--mm-muted); font-size: 14px; line-height: 1.4; }
.cs-buttons { display: flex; flex-wrap: wrap; gap: 8px; }
.mm-fig .cs-legend { margin-top: 10px; display: flex; flex-wrap: wrap; gap: 4px 20px; color: var(--mm-muted); font-size: 14px; }
.cs-legend span { display: inline-flex; gap: 7px; align-items: center; }
.mm-fig .cs-legend svg { flex: none; }
@keyframes cs-arrive { from { opacity: 0; } }
.cs-arrive { animation: cs-arrive 0.35s ease-out backwards; }
`;

const setAll = (node, attrs) => Object.entries(attrs).forEach(([name, value]) => node.setAttribute(name, value));
const grouped = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
const label = (x, y, text, cls = "cs-small", anchor = "middle") => svg("text", { x, y, class: cls, "text-anchor": anchor }, text);

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
    prompt, chunk, bug, sizes, calls, made, differences,
    earlier: earlier.length, rows: [...earlier, ...words],
    prefills: Math.ceil(prompt / chunk),
    now: made[calls - 1] || { past: earlier.length, size: 0, held: earlier.length, positions: [] },
    ids: [...earlier.keys(), ...made.flatMap((call) => call.positions)],
    parted: firstParting(differences.slice(0, calls)),
    spread: get("logit_spread"), layers: get("num_layers"), layerRow: get("layer_row_bytes"), fresh: get("new_tokens"),
  };
}

/** Rows are positions: the cache's keys and values at the left, one column for every call at the right, its logits below. */
function createGrowth() {
  const root = svg("svg", { role: "img" });

  function cacheCells(s, sizes, y, arriving) {
    const { word, id, cell, gap, row: height } = sizes;
    const cells = [label(word + id / 2, HEADER - 24, "layer")];
    for (let layer = 0; layer < s.layers; layer++) {
      const x = word + id + layer * (2 * cell + gap);
      ["K", "V"].forEach((name, i) => {
        cells.push(label(x + (i + 0.5) * cell, HEADER - 6, name));
        s.rows.forEach((_, row) => {
          const filled = row < s.now.held;
          const fresh = filled && row >= s.now.past;
          const wrong = row < s.earlier || (s.bug === "again" && i === 0 && !fresh);
          const state = fresh ? "cs-new" : filled ? `cs-kept${wrong ? " cs-wrong" : ""}` : "cs-slot";
          const attrs = { class: state, x: x + i * cell + 1.5, y: y(row) + 3, width: cell - 3, height: height - 6, rx: 3 };
          if (fresh && arriving) Object.assign(attrs, { class: `${state} cs-arrive`, style: `animation-delay: ${0.22 * layer}s` });
          cells.push(svg("rect", attrs));
        });
      });
      cells.push(label(x + cell, HEADER - 24, String(layer + 1)));
    }
    return cells;
  }

  function rowNames(s, sizes, y) {
    const turns = (row) => s.made.filter((call) => row < call.held).length;
    return s.rows.flatMap((word, row) => {
      const filled = row < s.now.held;
      const wrongId = filled && (s.bug === "offset" ? s.ids[row] !== row : s.bug === "again" && turns(row) > 1);
      const id = s.bug === "again" ? `×${turns(row)}` : String(s.ids[row]);
      const cls = row < s.earlier ? "cs-bad" : filled ? "" : "cs-later";
      return [
        label(sizes.word - 4, y(row) + sizes.row / 2 + 5, word, `cs-word ${cls}`, "end"),
        filled && label(sizes.word + sizes.id / 2, y(row) + sizes.row / 2 + 5, id, wrongId ? "cs-bad" : "cs-small"),
      ];
    });
  }

  function callColumns(s, x, y, step, height) {
    const size = Math.min(step - 2, 12);
    return s.made.flatMap((call, i) => {
      const marks = [];
      for (let row = 0; row < call.held; row++) {
        const cy = y(row) + height / 2;
        marks.push(row >= call.past
          ? svg("rect", { class: "cs-new", x: x(i) - size / 2, y: cy - size / 2, width: size, height: size, rx: 2 })
          : svg("circle", { class: "cs-again", cx: x(i), cy, r: Math.min(size / 2 - 1, 3.5) }));
      }
      return marks;
    });
  }

  function plot(s, x, left, right, top) {
    const floor = top + PLOT_TOP + PLOT_HEIGHT - 14;
    const y = (d) => (d > 0 ? top + PLOT_TOP + ((1 - Math.log10(Math.max(d, 0.02))) / 3) * (PLOT_HEIGHT - 14) : floor);
    const done = s.differences.slice(0, s.calls);
    const parts = [
      label(0, top + 20, "logits: distance from the uncached run", "cs-small", "start"),
      ...[[10, "10"], [1, "1"], [0.1, "0.1"], [0, "0"]].flatMap(([d, text]) => [
        svg("line", { class: "cs-rule", x1: left, x2: right, y1: y(d), y2: y(d) }), label(left - 6, y(d) + 4, text, "cs-small", "end")]),
      svg("line", { class: "cs-spread", x1: left, x2: right, y1: y(s.spread), y2: y(s.spread) }),
      label(0, y(s.spread) + 4, "spread of all", "cs-small", "start"), label(0, y(s.spread) + 18, "logits (dashed)", "cs-small", "start"),
      label(0, floor + 4, "identical", "cs-small", "start"),
      svg("path", { class: "cs-path", d: done.map((d, i) => `${i ? "L" : "M"}${x(i)} ${y(d)}`).join("") }),
      ...done.map((d, i) => (d > 0 ? svg("path", { class: "cs-apart", d: `M${x(i) - 4} ${y(d) - 4}l8 8m0 -8l-8 8` }) : svg("circle", { class: "cs-same", cx: x(i), cy: y(d), r: 5 }))),
    ];
    return parts;
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
    setAll(root, { width, height, viewBox: `0 0 ${width} ${height}` });
    const numbered = s.sizes.map((_, i) => (step >= 17 || i % 2 === 0 ? label(x(i), HEADER - 6, String(i + 1), i === s.calls - 1 ? "cs-small cs-strong" : "cs-small") : null));
    const roomy = s.prefills * step > 44;
    root.replaceChildren(...[
      s.calls && svg("rect", { class: "cs-band", x: x(s.calls - 1) - step / 2, y: HEADER - 20, width: step, height: height - HEADER + 16, rx: 5 }),
      svg("line", { class: "cs-rule", x1: split, x2: split, y1: 8, y2: bottom }),
      label(sizes.word + sizes.id / 2, HEADER - 6, s.bug === "again" ? "turns" : "pos."),
      roomy && label(split - 6, HEADER - 28, "prefill", "cs-small", "end"), label(split + 6, HEADER - 28, "decode", "cs-small", "start"),
      numbered, rowNames(s, sizes, y), cacheCells(s, sizes, y, arriving), callColumns(s, x, y, step, sizes.row), plot(s, x, left, right, bottom),
    ].flat(Infinity).filter(Boolean));
    const reused = s.now.held - s.now.size;
    setAll(root, { "aria-label": `After ${s.calls} of ${s.sizes.length} calls the cache holds ${s.now.held} positions; the last call computed ${s.now.size} and reused ${reused}` });
  }
  return { root, draw };
}

/** The mask of the last call: queries down, keys across. */
function createMask() {
  const root = svg("svg", { role: "img" });
  const caption = h("p", { class: "cs-caption" });

  function draw(s, width) {
    const { size, held, past } = s.now;
    const shown = visibleKeys(size, held, s.bug === "square");
    const right = visibleKeys(size, held, false);
    const cell = Math.min(20, (width - ROOMY.word - 4) / Math.max(held, 1));
    const height = 22 + Math.max(size, 1) * 20 + 4;
    const [x, y] = [(t) => ROOMY.word + t * cell, (row) => 22 + row * 20];
    const every = cell >= 17 ? 1 : cell >= 9 ? 2 : 3;
    setAll(root, { width, height, viewBox: `0 0 ${width} ${height}` });
    const cells = shown.flatMap((row, i) => row.map((seen, t) => {
      const box = { x: x(t) + 1, y: y(i) + 2, width: cell - 2, height: 16, rx: 2 };
      if (seen) return svg("rect", { ...box, class: t >= past ? "cs-new" : `cs-kept${t < s.earlier ? " cs-wrong" : ""}` });
      const missed = right[i][t];
      const [cx, cy, r] = [x(t) + cell / 2, y(i) + 10, Math.min(cell / 2 - 2, 4)];
      return missed ? svg("path", { class: "cs-missed", d: `M${cx - r} ${cy - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` }) : svg("rect", { ...box, class: "cs-hidden" });
    }));
    root.replaceChildren(
      ...Array.from({ length: held }, (_, t) => (t % every ? null : label(x(t) + cell / 2, 14, String(t)))).filter(Boolean),
      ...s.rows.slice(past, held).map((word, i) => label(ROOMY.word - 4, y(i) + 15, word, "cs-word", "end")),
      ...cells,
    );
    const missing = right.flat().filter((seen, i) => seen && !shown.flat()[i]).length;
    const keys = `${held} key${held === 1 ? "" : "s"}`;
    caption.textContent = s.calls
      ? `Mask of call ${s.calls}, [S, T] = [${size}, ${held}]: ${size === 1 ? "1 query" : `${size} queries`}, ${keys}${missing ? `; ✕ ${missing} keys wrongly hidden` : ""}.`
      : "No call yet, so no mask.";
    setAll(root, { "aria-label": caption.textContent });
  }
  return { root, caption, draw };
}

function stepperVerdict(s) {
  if (!s.calls) return ["Press “Prefill a chunk”.", ""];
  if (s.parted < 0) return ["✓ The same logits as without a cache, in every call.", "good"];
  return [`≠ Call ${s.parted + 1} is the first whose logits part, by ${fmt(s.differences[s.parted], 2)}.`, "bad"];
}

function legend() {
  const swatch = (shape) => svg("svg", { width: 14, height: 14, "aria-hidden": "true" }, shape);
  return h("p", { class: "cs-legend" },
    h("span", {}, swatch(svg("rect", { class: "cs-new", x: 1, y: 1, width: 12, height: 12, rx: 2 })), "computed in this call"),
    h("span", {}, swatch(svg("circle", { class: "cs-again", cx: 7, cy: 7, r: 4 })), "reused; without a cache, computed again"));
}

function renderStepper({ model, el }) {
  const set = (changes) => {
    Object.entries(changes).forEach(([name, value]) => model.set(name, value));
    model.save_changes();
  };
  const whole = (x) => fmt(x, 0);
  const [growth, mask, numbers] = [createGrowth(), createMask(), readout([])];
  const verdict = h("p", { class: "cs-verdict", "aria-live": "polite" });
  const steps = {
    prefill: button({ label: "Prefill a chunk", onClick: () => go(1) }),
    decode: button({ label: "Decode one", onClick: () => go(1) }),
    back: button({ label: "One call back", onClick: () => go(-1) }),
    reset: button({ label: "Reset", onClick: () => go(-Infinity) }),
  };
  const prompt = slider({ label: "words of the prompt", min: 1, max: 8, step: 1, value: model.get("prompt_length"), format: whole, onInput: (value) => set({ prompt_length: value }) });
  const chunk = slider({ label: "words in a chunk", min: 1, max: 8, step: 1, value: model.get("chunk_size"), format: whole, onInput: (value) => set({ chunk_size: value }) });
  const fresh = slider({ label: "new tokens to count passes for", min: 1, max: 500, step: 1, value: model.get("new_tokens"), format: whole, onInput: (value) => set({ new_tokens: value }) });
  const options = Object.entries(BUG_LABELS).map(([value, text]) => ({ value, label: text }));
  const bugs = choice({ label: "bug", options, value: model.get("bug"), onChange: (value) => set({ bug: value }) });
  const growBox = h("div", { class: "cs-grow" }, growth.root, legend());
  const setBox = h("div", { class: "cs-set" }, bugs.root, prompt.root, chunk.root, h("div", { class: "cs-buttons" }, Object.values(steps).map((step) => step.root)));
  const tellBox = h("div", { class: "cs-tell" }, verdict, h("div", {}, mask.caption, mask.root));
  const root = h("div", { class: "mm-fig" }, h("style", {}, STEPPER_CSS),
    h("div", { class: "mm-stage cs-stage" }, setBox, growBox, tellBox), h("div", { class: "mm-controls" }, fresh.root), numbers.root,
    h("p", { class: "mm-note" }, "All runs are a real two-layer MiniMind in float64, reading the same words; each bug is one changed line."));
  let arriving = false;

  function go(direction) {
    const s = stepperState(model);
    arriving = direction === 1 && !prefersReducedMotion();
    set({ calls: Math.min(s.sizes.length, Math.max(0, s.calls + direction)) });
    arriving = false;
  }

  // a button that has nothing left to do is disabled; the keyboard's focus moves on to the one that takes over
  function setSteps(s) {
    const useful = { prefill: s.calls < s.prefills, decode: s.calls >= s.prefills && s.calls < s.sizes.length, back: s.calls > 0, reset: s.calls > 0 };
    const focused = Object.keys(steps).find((name) => steps[name].root === document.activeElement);
    Object.entries(steps).forEach(([name, step]) => (step.root.disabled = !useful[name]));
    if (focused && !useful[focused]) steps[["decode", "prefill", "reset"].find((name) => useful[name])]?.root.focus({ preventScroll: true });
  }

  function draw(growWidth, tellWidth) {
    const s = stepperState(model);
    growth.draw(s, growWidth, arriving);
    mask.draw(s, tellWidth);
    setSteps(s);
    [[prompt, s.prompt], [chunk, model.get("chunk_size")], [fresh, s.fresh], [bugs, s.bug]].forEach(([control, value]) => control.set(value));
    const [text, tone] = stepperVerdict(s);
    if (verdict.textContent !== text) verdict.textContent = text;
    verdict.dataset.tone = tone;
    const [without, withCache] = tokenPasses(s.prompt, s.fresh);
    const rows = s.now.held;
    numbers.set([
      ["the cache holds", `${rows} rows, ${grouped(cacheBytes(rows, s.layers, s.layerRow))} bytes`],
      ["of which one layer", `${grouped(cacheBytes(rows, 1, s.layerRow))} bytes`],
      ["this call computes", `${s.now.size} of ${rows} rows`, "accent"],
      [`passes, ${s.prompt} + ${s.fresh} tokens, no cache`, grouped(without)],
      ["with a cache", grouped(withCache), "good"],
    ]);
  }

  return mount(el, root, { model, traits: ["prompt_length", "chunk_size", "bug", "calls", "new_tokens", "differences"], boxes: [growBox, tellBox], draw });
}

export default { render: renderStepper };
