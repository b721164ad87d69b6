// ParameterLedger: a bar for every part of a model, and their shares at every depth. What does tying take away?

import { draggable, handle, grip, arrowStep } from "../../web/kit/drag.js";
import { WIDE, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, grouped, slider } from "../../web/kit/kit.js";
import { toggle, choice, optionsFor, row, setTraits } from "../../web/kit/kit.js";
import { setText } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, lineThrough, ticks } from "../../web/kit/chart.js";
import { intermediateSize, parameterLedger, savedByTying } from "./math.js";
import { vocabularyAt, vocabularyStep } from "./math.js";
import { createNearest, nearestWords, sizesOfLiving, tellingPosition } from "./rows.js";
import { coverable, createSource } from "../../web/live/source.js";
import { createWordLine } from "../../web/live/word_line.js";
import { parameterLedgerWords } from "./words.js";

const HEADS = 8;
const DEPTHS = 32;
const GAP = 28; // between them
// The parts in the order of the table, and the symbols of the text that they stand for.
const PARTS = { embedding: "embed", attention: "attn", feedForward: "ffn", norms: "norm", head: "logits" };
const TONES = { embedding: "stream", attention: "v", feedForward: "ffn", norms: "norm", head: "stream" };
const PRESETS = {
  "MiniMind2 small": { hidden_size: 512, num_hidden_layers: 8, num_key_value_heads: 2, generation: "minimind2" },
  MiniMind2: { hidden_size: 768, num_hidden_layers: 16, num_key_value_heads: 2, generation: "minimind2" },
  MiniMind3: { hidden_size: 768, num_hidden_layers: 8, num_key_value_heads: 4, generation: "minimind3" },
};
const PRESET_VOCABULARY = 6400;
const STACK = ["head", "embedding", "attention", "feedForward", "norms"]; // of the chart, from the top

const partClass = (key, tied) => (key === "head" && tied ? "le-part le-saved" : "le-part");

/** Shares of the untied model for 1 to 32 layers; the two tables lie at the top, the head uppermost. */
function createDepthChart(words, percent, onLayers) {
  const [height, left, right, top, bottom] = [232, 46, 92, 24, 40];
  const floor = height - bottom;
  const grid = svg("g");
  const areas = STACK.map((key) => svg("path", { "data-tone": TONES[key], "data-sym": PARTS[key] }));
  const names = svg("g");
  const plumb = svg("line", { class: "mm-guide", y1: top, y2: floor });
  const here = handle({ label: words.layersHandle, min: 1, max: DEPTHS, ring: 12, shape: grip(7) });
  const root = svg("svg", { height, role: "group", style: "touch-action: pan-y" }, areas, grid, names, plumb, here);
  let now = { layers: 8, x: null };
  const release = draggable(here, {
    onMove: (px, _, event) => {
      const step = arrowStep(event);
      onLayers(clamp(step ? now.layers + step : Math.round(now.x.invert(px)), 1, DEPTHS));
    },
  });

  /** Where the parts of the stack end, 0 first and 1 last, at every depth. */
  function edgesOf(s) {
    const end = (ends, key, at) => [...ends, ends.at(-1) + at[key] / at.total];
    return s.depths.map((at) => STACK.reduce((ends, key) => end(ends, key, at), [0]));
  }

  function drawAreas(s, edges, x, y) {
    const along = (edge) => edges.map((ends, depth) => [x(depth + 1), y(ends[edge])]);
    STACK.forEach((key, i) => {
      const outline = lineThrough([...along(i), ...along(i + 1).reverse()]);
      setAttributes(areas[i], { class: partClass(key, s.tied), d: `${outline}Z` });
    });
  }

  function drawGrid(x, y, width) {
    const share = (part) => textAt(left - 6, y(part) + 4, words.percent(fmt(100 * (1 - part), 0)), { anchor: "end" });
    return [
      [0, 0.5, 1].map(share),
      ticks([1, 8, 16, 24, 32], x, floor + 17),
      textAt((left + width - right) / 2, height - 5, words.layers, { anchor: "middle" }),
      textAt(0, 12, words.depths),
    ];
  }

  /** Names at the right end of their areas, kept apart; the norms are too thin to have one. */
  function drawNames(s, edges, y, width) {
    const nameOf = (key) => (key === "head" && s.tied ? words.headSaved : words.parts[key]);
    let above = 0;
    return STACK.slice(0, 4).map((key, i) => {
      const middle = y((edges.at(-1)[i] + edges.at(-1)[i + 1]) / 2) + 4;
      above = Math.max(middle, above + 15);
      return textAt(width - right + 7, above, nameOf(key));
    });
  }

  function draw(s, width) {
    const x = linear([1, DEPTHS], [left, width - right]);
    const y = linear([0, 1], [top, floor]);
    now = { layers: s.sizes.layers, x };
    const edges = edgesOf(s);
    const headAt = (layers) => edges[layers - 1][1];
    const shares = [1, 8, 16, 32].map((layers) => words.headShare(percent(headAt(layers)), layers));
    setSize(root, width, height, words.headShares(shares.join(", ")));
    drawAreas(s, edges, x, y);
    fill(grid, drawGrid(x, y, width));
    fill(names, drawNames(s, edges, y, width));
    const saved = headAt(now.layers);
    const text = words.atDepth(now.layers, percent(saved));
    setAttributes(plumb, { x1: x(now.layers), x2: x(now.layers) });
    setAttributes(here, { transform: `translate(${x(now.layers)} ${y(saved)})` });
    setAttributes(here, { "aria-valuenow": now.layers, "aria-valuetext": text });
  }
  return { root, draw, release };
}

/** Every part's parameters as a bar, a count and a share of the model as it is now; a tied head is only an outline. */
function createTable(words) {
  const rows = Object.entries(PARTS).map(([key, symbol]) => {
    const [bar, count, share] = [h("div", { "data-tone": TONES[key] }), h("td"), h("td")];
    const cells = [h("th", { scope: "row" }, words.parts[key]), h("td", { class: "le-bar" }, bar), count, share];
    return { key, bar, count, share, root: h("tr", { "data-sym": symbol }, cells) };
  });
  const { part, bar: size, count, share } = words.columns;
  const hidden = h("span", { class: "mm-hidden" }, size);
  const titles = [part, hidden, count, share].map((title) => h("th", { scope: "col" }, title));
  const [total, all] = [h("td"), h("td")];
  const foot = h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, words.total), h("td"), total, all));
  const root = h(
    "table",
    { class: "mm-table le-table" },
    h("thead", {}, h("tr", {}, titles)),
    h("tbody", {}, rows),
    foot,
  );

  function draw(s, percent) {
    const largest = Math.max(...Object.keys(PARTS).map((key) => s.untied[key]));
    for (const { key, bar, count: number, share: part } of rows) {
      bar.className = partClass(key, s.tied);
      bar.style.width = `${(100 * s.untied[key]) / largest}%`;
      number.textContent = key === "head" && s.tied ? words.tiedCount : grouped(s.current[key]);
      part.textContent = percent(s.current[key] / s.current.total);
    }
    total.textContent = grouped(s.current.total);
    all.textContent = percent(1);
  }
  return { root, draw };
}

function sizesOfTraits(get) {
  return {
    hidden: get("hidden_size"),
    layers: get("num_hidden_layers"),
    vocabulary: get("vocab_size"),
    heads: HEADS,
    kvHeads: get("num_key_value_heads"),
    generation: get("generation"),
  };
}

/** reading: what the living model has read, or null for the sizes of the traits. */
function ledgerState(model, reading) {
  const tied = model.get("tied");
  const sizes = reading ? sizesOfLiving(reading) : sizesOfTraits(model.get);
  const depths = Array.from({ length: DEPTHS }, (_, i) => parameterLedger({ ...sizes, layers: i + 1, tied: false }));
  const current = parameterLedger({ ...sizes, tied });
  return { sizes, tied, depths, untied: depths[sizes.layers - 1], current, saved: savedByTying(sizes), reading };
}

function presetName(model) {
  if (model.get("vocab_size") !== PRESET_VOCABULARY) return undefined;
  const isAt = (preset) => Object.entries(preset).every(([name, value]) => model.get(name) === value);
  return Object.keys(PRESETS).find((name) => isAt(PRESETS[name]));
}

function ledgerVerdict(s, words, percent) {
  const saved = words[s.tied ? "saves" : "wouldSave"](grouped(s.saved.parameters), percent(s.saved.share));
  if (!s.reading || !s.tied) return saved;
  const [{ word, cosine }] = nearestWords(s.reading, s.reading.at, 1);
  return `${saved} ${words.oneRow(s.reading.tokens[s.reading.at], word, fmt(cosine))}`;
}

function ledgerNumbers(s, words, percent) {
  const other = s.tied ? s.untied.total : s.untied.total - s.saved.parameters;
  return [
    [s.tied ? words.untied : words.tied, grouped(other)],
    [words.both, percent(2 * s.saved.share)],
  ];
}

/** All controls, each writing one trait, but for the presets, which write several. */
function createControls(model, bound, words) {
  const preset = choice({
    label: words.preset,
    options: optionsFor(Object.keys(PRESETS)),
    value: presetName(model),
    onChange: (name) => setTraits(model, { ...PRESETS[name], vocab_size: PRESET_VOCABULARY }),
  });
  const tied = bound(toggle, "tied", { label: words.tie });
  const hidden = bound(slider, "hidden_size", { label: words.hidden, min: 128, max: 2048, step: 64 });
  const layers = bound(slider, "num_hidden_layers", { label: words.layers, min: 1, max: DEPTHS, step: 1 });
  const vocabulary = bound(slider, "vocab_size", {
    label: words.vocabulary,
    min: 12,
    max: 44,
    step: 1,
    shown: vocabularyStep,
    written: vocabularyAt,
    format: (step) => {
      const size = model.get("vocab_size"); // which may lie between two steps
      return grouped(step === vocabularyStep(size) ? size : vocabularyAt(step));
    },
  });
  const kvHeads = bound(slider, "num_key_value_heads", { label: words.kvHeads, stops: [1, 2, 4, 8] });
  const others = [preset.root, row(vocabulary, layers, hidden, kvHeads)];

  function draw({ reading }) {
    for (const control of others) control.hidden = Boolean(reading); // the living model has settled these
    preset.set(presetName(model));
  }
  return { tied, others, draw };
}

export default figure({
  words: parameterLedgerWords,
  traits: ["hidden_size", "num_hidden_layers", "vocab_size", "num_key_value_heads", "generation", "tied"],
  verdict: "le-verdict",
  modelOf: coverable,
  create({ model, words, isCompact, bound, verdict, numbers, redraw }) {
    const percent = (share) => words.percent(fmt(100 * share, 2));
    const chart = createDepthChart(words, percent, (layers) => setTraits(model, { num_hidden_layers: layers }));
    const [table, nearest] = [createTable(words), createNearest(words)];
    const controls = createControls(model, bound, words);
    const source = isCompact ? null : createSource(model, changeSource);
    const line = createWordLine((at) => source.choose({ at }));
    const rows = h("div", { class: "mm-column le-rows" }, line, nearest);
    const stage = h("div", { class: "mm-stage le-stage" }, h("div", { class: "le-box" }, table, verdict));
    const folded = h("div", {});
    const note = h("p", { class: "mm-note" });
    let [isStory, chosenFor] = [false, null]; // chosenFor: the story whose telling word was chosen

    /** The living model is tied, and a reader who unties it does so in this figure alone. */
    function changeSource() {
      const reading = source.reading();
      if (Boolean(reading) !== isStory)
        model.cover(reading && { tied: reading.living.model.config.tie_word_embeddings });
      isStory = Boolean(reading);
      if (!reading || reading.ids === chosenFor) return redraw();
      chosenFor = reading.ids;
      source.choose({ at: tellingPosition(reading) });
    }

    function drawRows(reading) {
      chart.root.remove();
      if (rows.parentNode !== stage) stage.append(rows);
      line.draw(reading.tokens, reading.at, (at) => ({ tone: at === reading.at ? "ink" : "" }));
      nearest.draw(reading);
    }

    function drawDepths(s, width) {
      rows.remove();
      const home = width < WIDE ? folded : stage;
      if (chart.root.parentNode !== home) home.append(chart.root);
      chart.draw(s, width < WIDE ? width : Math.round((width - GAP) * 0.46));
    }

    function rulesOf({ sizes, reading }) {
      if (reading) return words.living(grouped(sizes.inner));
      return words.rules[sizes.generation](grouped(intermediateSize(sizes.hidden, sizes.generation)));
    }

    function draw(width) {
      const s = ledgerState(model, source?.reading() ?? null);
      table.draw(s, percent);
      controls.draw(s);
      if (s.reading) drawRows(s.reading);
      else if (!isCompact) drawDepths(s, width);
      setText(note, rulesOf(s));
      const isStory = Boolean(s.reading);
      return { verdict: ledgerVerdict(s, words, percent), numbers: ledgerNumbers(s, words, percent), isStory };
    }
    return {
      stage,
      control: row(controls.tied),
      numbers,
      more: [source, folded, controls.others, note],
      parts: [chart, source],
      draw,
    };
  },
});
