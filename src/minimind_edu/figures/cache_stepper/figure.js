// CacheStepper: a row for each position, a column for each call. What is computed, what reused, and where a bug shows.

import { WIDE, h, svg, fill, textAt, setSize, clamp, fmt, grouped, slider, choice } from "../../web/kit/kit.js";
import { namedOptions, readout, row, setTraits, prefersReducedMotion } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { createTransport } from "../../web/kit/transport.js";
import { lineThrough, across } from "../../web/kit/chart.js";
import { tokenPasses, callSizes, cacheCall, visibleKeys, cacheBytes, firstParting } from "./math.js";
import { coverable, createSource } from "../../web/live/source.js";
import { cacheStepperWords } from "./words.js";

const BEAT = 900; // milliseconds between two calls that play
const HEADER = 48;
const FOOTER = 24; // the row of verdicts on the logits

// Widths of a word, of a position id, of a column of keys or values and of the gap behind a layer; widest call column;
// height of a row.
const ROOMY = { word: 70, id: 38, cell: 20, gap: 16, step: 46, row: 19 };
const TIGHT = { word: 56, id: 26, cell: 12, gap: 8, step: 30, row: 14 };
// A trained model has more layers than the example, and longer words.
const ROOMY_STORY = { word: 104, id: 30, cell: 15, gap: 12, step: 46, row: 16 };
const TIGHT_STORY = { word: 102, id: 0, cell: 8.5, gap: 4, step: 30, row: 15 };
const mostRows = (width) => (width < WIDE ? 12 : 20); // words of a story that are shown
const CALL_NAME = 108; // pixels of "call 9 (decode)"
const FLOAT_BYTES = 4;
const KINDS = ["k", "v"];
const NOW = { cls: "mm-small mm-strong" }; // the words of what is happening
const WRONG = { ...NOW, tone: "bad" };

const total = (numbers) => numbers.reduce((sum, x) => sum + x, 0);
const crossAt = (cx, cy, r, cls) => {
  return svg("path", { class: cls, d: `M${cx - r} ${cy - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` });
};

/** What a story and the living model put in place of the example's traits. */
function storyTraits({ living, tokens }, calls) {
  const { num_hidden_layers: layers, num_key_value_heads: heads, head_dim: channels } = living.model.config;
  const rowBytes = 2 * heads * channels * FLOAT_BYTES;
  return { words: tokens, bug: "none", calls, num_layers: layers, layer_row_bytes: rowBytes };
}

/** What a position of a story costs, and how much of the story is shown. */
function storyNote({ living, tokens }, most, words) {
  const { num_hidden_layers: layers, num_key_value_heads: heads, head_dim: channels } = living.model.config;
  const cost = words.costOfPosition(layers, heads, channels, grouped(2 * layers * heads * channels * FLOAT_BYTES));
  return tokens.length > most ? cost + words.firstOf(most, tokens.length) : cost;
}

/** Everything the drawing needs to know about the calls made so far. A story has no run with a bug to differ from. */
function stepperState(model, isStory, most) {
  const get = (name) => model.get(name);
  const bug = get("bug");
  const words = isStory ? get("words").slice(0, most) : get("words");
  const prompt = Math.min(get("prompt_length"), words.length);
  const chunk = Math.min(get("chunk_size"), prompt);
  const sizes = callSizes(prompt, chunk, words.length);
  const calls = Math.min(get("calls"), sizes.length);
  const earlier = bug === "stale" ? get("earlier") : [];
  const made = sizes.slice(0, calls).map((_, i) => cacheCall(sizes, i, earlier.length, bug === "offset"));
  const differences = isStory ? sizes.map(() => 0) : get("differences")[bug][prompt - 1][chunk - 1];
  return {
    isStory,
    prompt,
    chunk,
    bug,
    sizes,
    calls,
    made,
    differences,
    earlier: earlier.length,
    rows: [...earlier, ...words],
    atMost: words.length + (isStory ? 0 : get("earlier").length),
    prefills: Math.ceil(prompt / chunk),
    now: made[calls - 1] || { past: earlier.length, size: 0, held: earlier.length, positions: [] },
    computed: total(made.map((call) => call.size)),
    reused: total(made.map((call) => call.past - earlier.length)),
    ids: [...earlier.keys(), ...made.flatMap((call) => call.positions)],
    parted: firstParting(differences.slice(0, calls)),
    spread: get("logit_spread"),
    layers: get("num_layers"),
    layerRow: get("layer_row_bytes"),
    fresh: get("new_tokens"),
  };
}

/** Keys and values of every layer: one cell for each row that the cache holds or will hold. */
function cacheCells(s, sizes, words, y, from) {
  const { word, id, cell, gap, row: height } = sizes;
  const cells = [textAt(word + id - 6, HEADER - 21, words.layer, { anchor: "end" })];
  for (let layer = 0; layer < s.layers; layer++) {
    const x = word + id + layer * (2 * cell + gap);
    KINDS.forEach((kind, i) => {
      const place = { x: x + i * cell + 1.5, width: cell - 3, height: height - 5, rx: 3 };
      const hue = { "data-tone": kind, "data-sym": kind };
      const name = { anchor: "middle", ...NOW, tone: kind, sym: kind };
      cells.push(textAt(x + (i + 0.5) * cell, HEADER - 6, kind, name));
      s.rows.forEach((_, row) => {
        const isNew = row < s.now.held && row >= s.now.past;
        const isArriving = isNew && from !== null;
        const style = `--cs-from: ${from - place.x}px; animation-delay: ${0.2 * layer}s`;
        const cls = `${cellClass(s, row, kind === "k")}${isArriving ? " cs-arrive" : ""}`;
        cells.push(svg("rect", { class: cls, ...place, ...hue, y: y(row) + 2.5, style: isArriving && style }));
      });
    });
    cells.push(textAt(x + cell, HEADER - 21, layer + 1, { anchor: "middle" }));
  }
  return cells;
}

function cellClass(s, row, isKey) {
  if (row >= s.now.held) return "cs-slot";
  if (row >= s.now.past) return "cs-cell cs-new";
  const isWrong = row < s.earlier || (s.bug === "again" && isKey && row > 0); // position 0 rotates by an angle of 0
  return isWrong ? "cs-cell cs-wrong" : "cs-cell";
}

/** The word of every row, and where there is room the position id that it got, or how often its key was rotated. */
function rowNames(s, sizes, y) {
  const turns = (row) => s.made.filter((call) => row < call.held).length;
  const idOf = (row) => (s.bug === "again" ? `×${turns(row)}` : String(s.ids[row]));
  const isWrong = (row) =>
    (s.bug === "offset" && s.ids[row] !== row) || (s.bug === "again" && row > 0 && turns(row) > 1);
  return s.rows.flatMap((word, row) => {
    const base = y(row) + sizes.row / 2 + 4.5;
    const isFilled = row < s.now.held;
    const looks = row < s.earlier ? WRONG : { cls: isFilled ? "cs-word" : "cs-word cs-later" };
    const name = textAt(sizes.word - 6, base, word, { anchor: "end", ...looks });
    if (!isFilled || !sizes.id) return [name];
    const id = { anchor: "middle", ...(isWrong(row) ? WRONG : {}) };
    return [name, textAt(sizes.word + sizes.id / 2 - 4, base, idOf(row), id)];
  });
}

/** One column for every call: what it computed, and what it read, which a call without a cache would compute again. */
function callColumns(s, x, y, step, height) {
  const size = Math.min(step - 3, 13, height - 3);
  const square = { width: size, height: size, rx: 2 };
  return s.made.flatMap((call, i) =>
    Array.from({ length: call.held }, (_, row) => {
      const cy = y(row) + height / 2;
      if (row >= call.past) return svg("rect", { class: "mm-ink", x: x(i) - size / 2, y: cy - size / 2, ...square });
      const isNow = i === s.calls - 1;
      const cls = `cs-read${isNow ? " cs-now" : ""}`;
      return svg("circle", { class: cls, cx: x(i), cy, r: Math.min(size / 2 - 1, 4), "data-sym": "cache" });
    }),
  );
}

/** Below every call, whether its logits are those of the run without a cache. */
function logitMarks(s, words, x, y) {
  const marks = s.differences.slice(0, s.calls).map((d, i) => {
    if (d > 0) return crossAt(x(i), y, 4, "cs-apart");
    return svg("path", { class: "cs-same", d: `M${x(i) - 5} ${y}l3.5 4l6.5 -8` });
  });
  return svg("g", { "data-sym": "logits" }, textAt(0, y + 4, words.logits), marks);
}

/** Rows are positions: the cache's keys and values at the left, a column for every call at the right. */
function createGrowth(words, isCompact) {
  const root = svg("svg", { role: "img" });

  function callNumbers(s, x, step) {
    const now = s.calls - 1;
    return s.sizes.map((_, i) => {
      const isNow = i === now;
      const every = step < 11 ? 4 : 2;
      if (step < 22 && !isNow && (i % every || Math.abs(i - now) < every)) return null; // two digits need that room
      return textAt(x(i), HEADER - 6, i + 1, { anchor: "middle", ...(isNow ? NOW : {}) });
    });
  }

  function phases(s, x, left, split, wide) {
    const isEarly = s.calls < s.sizes.length / 2;
    const start = left + 2 + Math.max(0, x(s.calls - 1) - x(0));
    const [here, anchor] = !isEarly
      ? [x(s.calls - 1) + 8, "end"]
      : start + CALL_NAME > wide
        ? [wide, "end"]
        : [start, "start"];
    const callName = s.calls ? words.call(s.calls, s.calls <= s.prefills) : words.noCall;
    return [
      textAt(split - 7, HEADER - 36, words.prefill, { anchor: "end" }),
      textAt(split + 7, HEADER - 36, words.decode),
      textAt(here, HEADER - 21, callName, { anchor, ...NOW }),
    ];
  }

  function draw(s, width, isArriving) {
    const [tight, roomy] = s.isStory ? [TIGHT_STORY, ROOMY_STORY] : [TIGHT, ROOMY];
    const base = width < WIDE ? tight : roomy;
    const showsIds = ["offset", "again"].includes(s.bug) || (base === roomy && !isCompact);
    const sizes = { ...base, id: showsIds ? base.id : 0, row: base.row - (isCompact && base === ROOMY ? 3.5 : 0) };
    const left = sizes.word + sizes.id + s.layers * (2 * sizes.cell + sizes.gap) + 4;
    const step = Math.min(sizes.step, (width - left) / s.sizes.length);
    const wide = left + step * s.sizes.length;
    const [x, y] = [(call) => left + (call + 0.5) * step, (row) => HEADER + row * sizes.row];
    const bottom = y(s.rows.length);
    const showsLogits = !isCompact && !s.isStory;
    const height = bottom + (showsLogits ? FOOTER : 4);
    const spare = showsLogits ? (s.atMost - s.rows.length) * sizes.row : 0; // where stale rows would move what is below
    const split = left + s.prefills * step;
    const band = { class: "mm-soft", y: HEADER - 19, width: step, height: height - HEADER + 19, rx: 5 };
    const idName = s.bug === "again" ? words.rotations : words.position;
    const parts = [
      s.calls > 0 && svg("rect", { ...band, x: x(s.calls - 1) - step / 2 }),
      svg("path", { class: "mm-level", d: `M${split} 2V14M${split} ${HEADER - 17}V${bottom}` }),
      showsIds && textAt(sizes.word + sizes.id / 2 - 4, HEADER - 6, idName, { anchor: "middle" }),
      phases(s, x, left, split, wide),
      callNumbers(s, x, step),
      rowNames(s, sizes, y),
      cacheCells(s, sizes, words, y, isArriving ? x(s.calls - 1) : null),
      s.now.held < s.rows.length && textAt(left + 4, bottom - sizes.row / 2 + 4, words.later),
      callColumns(s, x, y, step, sizes.row),
      showsLogits && logitMarks(s, words, x, bottom + 15),
    ];
    setSize(root, wide, height + spare, words.picture(s.calls, s.sizes.length, s.now.held, s.now.size));
    fill(root, parts);
  }
  return { root, draw };
}

/** How far the logits of every call are from the uncached run, on a logarithmic axis with a place for 0. */
function createDistances(words) {
  const root = svg("svg", { role: "img" });
  const [left, top, height] = [62, 30, 96];
  const floor = top + height;
  const y = (d) => (d > 0 ? top + ((1 - Math.log10(Math.max(d, 0.02))) / 3) * height : floor);

  function draw(s, width) {
    const step = Math.min(46, (width - left) / s.sizes.length);
    const right = left + step * s.sizes.length;
    const x = (call) => left + (call + 0.5) * step;
    const done = s.differences.slice(0, s.calls);
    const point = (d, i) => {
      return d > 0
        ? crossAt(x(i), y(d), 4, "cs-apart")
        : svg("circle", { class: "cs-equal", cx: x(i), cy: y(d), r: 5 });
    };
    const distances = done.map((d, i) => words.distanceOf(i + 1, d ? fmt(d, 2) : words.identical));
    setSize(root, Math.max(right, 300), floor + 28, [words.distances, ...distances].join("; "));
    fill(
      root,
      textAt(0, 12, words.distances),
      [10, 1, 0.1].map((d) => textAt(left - 6, y(d) + 4, d, { anchor: "end" })),
      [10, 1, 0.1, 0].map((d) => across(y(d), left, right, "mm-level")),
      textAt(left - 6, floor + 4, words.identical, { anchor: "end" }),
      across(y(s.spread), left, right, "mm-faint"),
      textAt(left, floor + 22, words.spread),
      svg("path", { class: "cs-path", d: lineThrough(done.map((d, i) => [x(i), y(d)])) }),
      done.map(point),
    );
  }
  return { root, draw };
}

/** The mask of the last call: queries down, keys across. */
function createMask(words) {
  const drawing = svg("svg", { role: "img" });
  const caption = h("p", { class: "mm-label" });
  const root = h("div", {}, caption, drawing);
  const [left, top, row] = [62, 22, 20];

  function drawCell(s, cell, i, t, isShown, isRight) {
    const box = { x: left + t * cell + 1, y: top + i * row + 2, width: cell - 2, height: 16, rx: 2 };
    const key = { "data-tone": "k" };
    if (isShown && t >= s.now.past) return svg("rect", { ...box, ...key, class: "cs-cell cs-new" });
    if (isShown) return svg("rect", { ...box, ...key, class: t < s.earlier ? "cs-cell cs-wrong" : "cs-cell" });
    if (!isRight) return svg("rect", { ...box, class: "cs-slot" });
    return crossAt(left + (t + 0.5) * cell, top + (i + 0.5) * row, Math.min(cell / 2 - 2, 4), "cs-apart");
  }

  function draw(s, width) {
    const { size, held, past } = s.now;
    const shown = visibleKeys(size, held, s.bug === "square");
    const right = visibleKeys(size, held, false);
    const cell = Math.min(20, (width - left - 4) / Math.max(held, 1));
    const every = cell >= 17 ? 1 : cell >= 9 ? 2 : 3;
    const numbered = Array.from({ length: held }, (_, t) => t).filter((t) => t % every === 0);
    const missing = right.flat().filter((isRight, i) => isRight && !shown.flat()[i]).length;
    caption.textContent = s.calls ? words.mask(s.calls, size, held, missing) : words.noMask;
    const query = { anchor: "end", cls: null, tone: "q" };
    setSize(drawing, width, top + Math.max(size, 1) * row + 4, caption.textContent);
    fill(
      drawing,
      numbered.map((t) => textAt(left + (t + 0.5) * cell, 14, t, { anchor: "middle", tone: "k" })),
      s.rows.slice(past, held).map((word, i) => textAt(left - 6, top + i * row + 15, word, query)),
      shown.map((keys, i) => keys.map((isShown, t) => drawCell(s, cell, i, t, isShown, right[i][t]))),
    );
  }
  return { root, draw };
}

function stepperVerdict(s, words) {
  if (!s.calls) return [words.start, ""];
  if (s.parted < 0) return [words.same, "good"];
  return [words.differ(s.parted + 1, fmt(s.differences[s.parted], 2)), "bad"];
}

function stepperNumbers(s, words) {
  const rows = s.now.held;
  return [
    [words.holds(rows), grouped(cacheBytes(rows, s.layers, s.layerRow))],
    [words.soFar, grouped(s.computed)],
    [words.without, grouped(s.computed + s.reused)],
  ];
}

function passNumbers(s, words) {
  const [without, withCache] = tokenPasses(s.prompt, s.fresh);
  return [
    [words.passes(s.prompt, s.fresh), grouped(without)],
    [words.passesWith, grouped(withCache)],
    [words.oneLayer, grouped(cacheBytes(s.now.held, 1, s.layerRow))],
  ];
}

/** What a square and a circle are; compact, with no other numbers, also how many there are. */
function createLegend(words, isCompact) {
  const swatch = (shape) => svg("svg", { width: 13, height: 13, "aria-hidden": "true" }, shape);
  const computed = swatch(svg("rect", { class: "mm-ink", width: 13, height: 13, rx: 2 }));
  const reused = swatch(svg("circle", { class: "cs-read cs-now", cx: 6.5, cy: 6.5, r: 4.5 }));
  const texts = [h("span", {}, words.computed), h("span", {}, words.reused)];
  const set = (s) => {
    if (!isCompact) return;
    texts[0].textContent = words.computedSoFar(s.computed);
    texts[1].textContent = words.reusedSoFar(s.reused);
  };
  const parts = [h("span", {}, computed, texts[0]), h("span", { "data-sym": "cache" }, reused, texts[1])];
  return { root: h("p", { class: "mm-legend cs-legend" }, parts), set };
}

/** What is folded: how the prompt is cut, what goes wrong, and what a mask and the logits have to say to it. */
function createWorkshop(bound, words) {
  const bugs = bound(choice, "bug", { label: words.bug, options: namedOptions(words.bugs) });
  const prompt = bound(slider, "prompt_length", { label: words.prompt, min: 1, max: 8, step: 1 });
  const chunk = bound(slider, "chunk_size", { label: words.chunk, min: 1, max: 8, step: 1 });
  const fresh = bound(slider, "new_tokens", { label: words.fresh, min: 1, max: 500, step: 1 });
  const [mask, distances, passes] = [createMask(words), createDistances(words), readout([])];
  const apart = h("div", {}, distances);
  const cut = h("div", { class: "mm-column" }, prompt, chunk, apart);
  const seen = h("div", { class: "mm-column" }, mask);
  const root = h("div", { class: "mm-column cs-more" }, cut, seen);
  const note = h("p", { class: "mm-note" }, words.note);

  function draw(s, width) {
    for (const part of [bugs.root, apart, note]) part.hidden = s.isStory;
    const column = width < WIDE ? width : (width - 28) / 2;
    mask.draw(s, column);
    distances.draw(s, column);
    passes.set(passNumbers(s, words));
  }
  return { bugs, roots: [root, row(fresh), passes, note], draw };
}

export default figure({
  words: cacheStepperWords,
  traits: ["prompt_length", "chunk_size", "bug", "calls", "new_tokens", "differences"],
  modelOf: coverable,
  create({ model, words, isCompact, bound, verdict, numbers, redraw }) {
    const growth = createGrowth(words, isCompact);
    const transport = createTransport(words, go, { beat: BEAT, isCompact });
    const workshop = createWorkshop(bound, words);
    const legend = createLegend(words, isCompact);
    const source = isCompact ? null : createSource(model, changeSource);
    const note = h("p", { class: "mm-note cs-told", hidden: true });
    const bugs = isCompact ? null : [workshop.bugs, verdict];
    let [arriving, most] = [false, mostRows(WIDE)];
    const stateNow = () => stepperState(model, Boolean(source?.reading()), most);

    function changeSource() {
      const reading = source.reading();
      model.cover(reading && storyTraits(reading, model.get("calls")));
      redraw();
    }

    function go(direction) {
      const s = stateNow();
      arriving = direction === 1 && !prefersReducedMotion();
      setTraits(model, { calls: clamp(s.calls + direction, 0, s.sizes.length) });
      arriving = false;
    }

    function draw(width) {
      most = mostRows(width);
      const s = stateNow();
      for (const part of [note, verdict.root]) part.hidden = s.isStory === (part !== note);
      note.textContent = s.isStory ? storyNote(source.reading(), most, words) : "";
      growth.draw(s, width, arriving);
      transport.set(s.calls, s.sizes.length);
      legend.set(s);
      workshop.draw(s, width);
      const [sentence, tone] = stepperVerdict(s, words);
      return { verdict: sentence, tone, numbers: stepperNumbers(s, words) };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column cs-stage" }, growth, isCompact ? null : note),
      control: h("div", { class: "cs-control" }, transport, legend, bugs),
      numbers,
      more: [source, workshop.roots],
      parts: [transport, source],
      draw,
    };
  },
});
