// HeadWiring: one dial from MHA over GQA to MQA. Which key/value head each query head reads, and what the cache weighs.

import { NARROW, h, svg, fill, textAt, setSize, grouped, slider, toggle, choice } from "../../web/kit/kit.js";
import { optionsFor, namedOptions, readout, row } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { ITEM_SIZES, kvHeadStops, sourceHeads, stepShapes } from "./math.js";
import { cacheBytes, copiedBytes, projectionWeights, formatBytes } from "./math.js";
import { createReads, groupVerdict, wiringTraits } from "./reads.js";
import { coverable, createSource } from "../../web/live/source.js";
import { createWordLine } from "../../web/live/word_line.js";
import { headWiringWords } from "./words.js";

const LAST_EXPONENT = 15;
const LETTERED = 26; // pixels of a column: from here on a head shows its letter, too

/** Query heads above, the heads that are kept below, the wires between them, and the memory of all layers. */
function createWires(words, isCompact) {
  const root = svg("svg", { role: "img" });

  /** A soft field under the query heads that should share a head. */
  function drawGroup(s, head, column, rows) {
    const size = s.heads / s.kvHeads;
    const box = { x: head * size * column + 2, y: rows.query - 22, width: size * column - 4, height: 44, rx: 22 };
    return svg("rect", { class: "mm-soft", "data-sym": "group", ...box });
  }

  function drawQuery(query, x, y, column, r) {
    return svg(
      "g",
      { class: "hw-head", "data-tone": "q", "data-sym": "q" },
      svg("circle", { cx: x, cy: y, r }),
      textAt(x, y, column < LETTERED ? query + 1 : `q${query + 1}`, { cls: "hw-name" }),
    );
  }

  /** What the cache keeps of one head: keys above, values below. */
  function drawKept(head, x, y, width) {
    const half = (letter, top) => {
      const box = { x: x - width / 2, y: top, width, height: 24, rx: 4 };
      const name = textAt(x, top + 12, width < LETTERED - 4 ? head + 1 : `${letter}${head + 1}`, { cls: "hw-name" });
      return svg("g", { class: "hw-head", "data-tone": letter, "data-sym": letter }, svg("rect", box), name);
    };
    return [half("k", y), half("v", y + 26)];
  }

  function drawWire(from, to, rows, isRight, r) {
    const [top, bottom] = [rows.query + r, rows.kept];
    const middle = (top + bottom) / 2;
    const d = `M${from} ${bottom}C${from} ${middle} ${to} ${middle} ${to} ${top}`;
    return svg("path", { class: isRight ? "hw-wire" : "hw-wire hw-wrong", d });
  }

  /** A rail as long as MHA's cache, filled with a piece for every kept head. */
  function drawMemory(s, y, width) {
    const piece = width / s.heads;
    const pieces = Array.from({ length: s.kvHeads }, (_, head) => {
      return svg("rect", { class: "mm-ink", x: head * piece + 1, y, width: piece - 2, height: 12, rx: 2 });
    });
    const text = words.memoryOf(formatBytes(s.bytes), formatBytes(s.bytesOfMha));
    return svg(
      "g",
      { "data-sym": "cache" },
      textAt(0, y - 8, words.kept),
      textAt(width, y - 8, text, { anchor: "end", cls: "mm-strong" }),
      svg("rect", { class: "hw-rail", x: 0, y, width, height: 12, rx: 2 }),
      pieces,
    );
  }

  function draw(s, width, hasReads) {
    const isLow = isCompact || hasReads || width < NARROW;
    const rows = { query: 46, kept: isLow ? 116 : 160 };
    const bottom = rows.kept + 50; // of the kept heads
    const column = width / s.heads;
    const r = Math.min(15, column / 2 - 1); // of a query head
    const queryX = (query) => (query + 0.5) * column;
    const keptX = (head) => ((head + 0.5) * width) / s.kvHeads;
    const kept = Math.min(column - 3, 64);
    const heads = Array.from({ length: s.kvHeads }, (_, head) => head);
    const isRight = (query) => s.sources[query] === s.right[query];
    const reads = s.sources.map((head, query) => words.reads(query + 1, head + 1));
    setSize(root, width, bottom + 50, reads.join(", "));
    root.classList.toggle("hw-tight", column < LETTERED);
    fill(
      root,
      textAt(0, 14, words.queryHeads),
      heads.map((head) => drawGroup(s, head, column, rows)),
      s.sources.map((head, query) => drawWire(keptX(head), queryX(query), rows, isRight(query), r)),
      s.sources.map((_, query) => drawQuery(query, queryX(query), rows.query, column, r)),
      heads.map((head) => drawKept(head, keptX(head), rows.kept, kept)),
      drawMemory(s, bottom + 36, width),
    );
  }
  return { root, draw };
}

/** What the queries are multiplied with: striped copies, or, where nothing is copied, the kept heads themselves. */
function createCopies(words) {
  const [top, height] = [2, 30];
  const picture = svg("svg", { role: "img" });
  const label = h("p", { class: "mm-label" });
  const root = h("div", { class: "mm-stage mm-column" }, label, picture);

  function stripes(x, width) {
    const lines = [];
    for (let at = -height; at < width; at += 11) {
      const [from, to] = [Math.max(at, 0), Math.min(at + height, width)];
      const ends = { x1: x + from, x2: x + to, y1: top + height - (from - at), y2: top + height - (to - at) };
      lines.push(svg("line", { class: "hw-stripe", ...ends }));
    }
    return lines;
  }

  function draw(s, width) {
    const column = width / s.heads;
    const wide = Math.min(column - 3, 64);
    const isShared = s.copied === 0;
    const copies = s.sources.map((head, query) => {
      const middle = (query + 0.5) * column;
      const isRight = head === s.right[query];
      const box = { x: middle - wide / 2, y: top, width: wide, height, rx: 4 };
      const name = `${column < LETTERED ? "" : "k"}${head + 1}${isRight ? "" : "≠"}`;
      return svg(
        "g",
        { class: isShared ? "hw-head" : "hw-head hw-copy", "data-tone": "k", "data-sym": "k" },
        svg("rect", box),
        isShared ? null : stripes(box.x, wide),
        textAt(middle, top + height / 2, name, { cls: "hw-name", tone: isRight ? null : "bad" }),
      );
    });
    setSize(picture, width, top + height + 4, words.copiesRead(s.sources.map((head) => head + 1)));
    label.textContent = isShared ? words.shared : words.copies;
    picture.classList.toggle("hw-tight", column < LETTERED);
    fill(picture, copies);
  }
  return { root, draw };
}

/** The shapes of one decode step, and the memory that each line takes. */
function createShapes(words) {
  const body = h("tbody");
  const titles = words.columns.map((title) => h("th", { scope: "col" }, title));
  const root = h("table", { class: "mm-table hw-shapes" }, h("thead", {}, h("tr", {}, titles)), body);

  function costOf(s, step, bytes) {
    if (bytes === null) return words.nothing;
    const isRepeating = ["[:, :, :, None]", "expand", "reshape"].includes(step);
    if (isRepeating && s.kvHeads === s.heads && s.order === "repeat_kv") return words.notNeeded;
    return bytes === 0 ? words.view : formatBytes(bytes);
  }

  function drawStep(s, [step, shape, bytes]) {
    const isWrong = step === "reshape" && !s.harmless;
    const name = step === "reshape" && s.order === "tiled" ? "x.repeat" : (words.steps[step] ?? step);
    const text = `[${shape.join(", ")}]${isWrong ? words.wrongOrder : ""}`;
    return h(
      "tr",
      { class: step === "keys" ? "hw-kept" : null },
      h("th", { scope: "row" }, name),
      h("td", { "data-tone": isWrong && "bad" }, text),
      h("td", {}, costOf(s, step, bytes)),
    );
  }

  function draw(s) {
    const steps = stepShapes(1, s.length, s.heads, s.kvHeads, s.headDim, s.itemSize, s.order);
    const isShown = ([step]) => s.order !== "tiled" || !["[:, :, :, None]", "expand"].includes(step); // no fifth axis
    fill(
      body,
      steps.filter(isShown).map((step) => drawStep(s, step)),
    );
  }
  return { root, draw };
}

function wiringState(model) {
  const get = (name) => model.get(name);
  const [heads, asked, misread, dtype, order] = ["num_heads", "num_kv_heads", "as_group_size", "dtype", "order"].map(
    get,
  );
  const dial = kvHeadStops(heads).findLast((stop) => stop <= asked);
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
    bytesOfMha: cacheBytes(1, length, layers, heads, headDim, itemSize),
    copied: copiedBytes(1, length, heads, kvHeads, headDim, itemSize, order),
    harmless: wrong === 0,
  };
}

function wiringVerdict(s, words) {
  const { misread, wrong, unnoticed, mha, mqa, gqa } = words.verdict;
  if (s.misread && s.kvHeads !== s.dial) return [misread(s.dial, s.kvHeads), "bad"];
  if (!s.harmless) return [wrong(s.wrong, s.heads), "bad"];
  if (s.order === "tiled") return [unnoticed(s.kvHeads), null];
  if (s.kvHeads === s.heads) return [mha, null];
  return [s.kvHeads === 1 ? mqa(s.heads) : gqa(s.heads / s.kvHeads), null];
}

function wiringNumbers(s, words) {
  const token = cacheBytes(1, 1, s.layers, s.kvHeads, s.headDim, s.itemSize);
  return [
    [words.perToken, grouped(token)],
    [words.atLength(grouped(s.length)), formatBytes(s.bytes)],
    [words.copied, formatBytes(s.copied)],
  ];
}

function wiringCosts(s, words) {
  const weights = projectionWeights(s.heads * s.headDim, s.kvHeads, s.headDim);
  return [[words.weights, words.weightCount(grouped(weights))]];
}

/** All controls, each writing one trait. */
function createControls(model, bound, words) {
  const stops = kvHeadStops(model.get("num_heads"));
  const format = (kvHeads) => words.stop(kvHeads, stops.at(-1));
  const dial = bound(slider, "num_kv_heads", { label: words.kvHeads, stops, format });
  const lengths = Array.from({ length: LAST_EXPONENT + 1 }, (_, power) => 2 ** power);
  const length = bound(slider, "length", { label: words.length, stops: lengths, format: grouped });
  const layers = bound(slider, "num_layers", { label: words.layers, min: 1, max: 32, step: 1 });
  const sizes = [...new Set([64, 96, model.get("head_dim")])].sort((a, b) => a - b);
  const headDims = optionsFor(sizes, (size) => words.headDims[size] || size);
  const headDim = bound(choice, "head_dim", { label: words.headDim, options: headDims });
  const dtype = bound(choice, "dtype", { label: words.dtype, options: optionsFor(Object.keys(ITEM_SIZES)) });
  const order = bound(choice, "order", { label: words.order, options: namedOptions(words.orders) });
  const misread = bound(toggle, "as_group_size", { label: words.misread });
  return { dial: row(dial), mistakes: row(order, misread), sizes: [row(length, layers), row(headDim, dtype)] };
}

export default figure({
  words: headWiringWords,
  traits: ["num_kv_heads", "head_dim", "num_layers", "length", "dtype", "order", "as_group_size"],
  verdict: "hw-verdict",
  modelOf: coverable,
  create({ model, words, isCompact, bound, redraw }) {
    const controls = createControls(model, bound, words);
    const [wires, copies, shapes] = [createWires(words, isCompact), createCopies(words), createShapes(words)];
    const costs = readout([]);
    const source = isCompact ? null : createSource(model, redraw, { picks: "layer" });
    const line = createWordLine((at) => source.choose({ at }));
    const reads = createReads(words);
    const telling = h("div", { class: "mm-column hw-telling", hidden: true }, line, reads);
    const ofExample = [controls.dial, controls.mistakes, ...controls.sizes]; // what the living model has settled

    function drawReading(reading) {
      model.cover(reading && wiringTraits(reading));
      telling.hidden = !reading;
      for (const control of ofExample) control.hidden = Boolean(reading);
      if (!reading) return;
      line.draw(reading.tokens, reading.at, (at) => ({ tone: at === reading.at ? "q" : "" }));
      reads.draw(reading);
    }

    function draw(width) {
      const reading = source?.reading() ?? null;
      drawReading(reading);
      const s = wiringState(model);
      for (const part of [copies, shapes]) part.draw(s, width);
      wires.draw(s, width, Boolean(reading));
      costs.set(wiringCosts(s, words));
      const [verdict, tone] = reading ? [groupVerdict(reading, words)] : wiringVerdict(s, words);
      const title = s.wrong ? words.titleOfWrong : words.title;
      return { title, verdict, tone, numbers: wiringNumbers(s, words), isStory: Boolean(reading) };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column" }, telling, wires),
      control: controls.dial,
      more: [source, controls.mistakes, copies, shapes, controls.sizes, costs],
      parts: [source],
      draw,
    };
  },
});
