// AttentionXRay: every stage of one head. Scores and weights are two tables and never one.

import { NARROW, WIDE, h, svg, fill, setAttributes, textAt, setSize, clamp, fmt, slider } from "../../web/kit/kit.js";
import { toggle, choice, row, setTraits } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { attentionStages, channelProducts, largestChange } from "./math.js";
import { createSource } from "../../web/live/source.js";
import { createWordLine } from "../../web/live/word_line.js";
import { attentionXrayWords } from "./words.js";

const HEAD_DIMS = [4, 8, 16, 32, 64, 128];
const SETTINGS = ["head_dim", "scaled", "causal", "rope", "qk_norm", "permuted", "row", "column"];
const WRITTEN_TERMS = 4;
const LOUD = 2; // the key that is twice as long

const scoreText = (x) => fmt(x, Math.abs(x) < 9.95 ? 2 : 1);
const total = (numbers) => numbers.reduce((sum, x) => sum + x, 0);
const mean = (numbers) => total(numbers) / numbers.length;

/** "0.50·1.20 + 0.30·(−0.70)" */
function sumOfProducts(pairs) {
  const factor = (x) => (x < 0 ? `(${fmt(x)})` : fmt(x));
  return pairs.map(([a, b]) => `${fmt(a)}·${factor(b)}`).join(" + ");
}

/** A table of buttons: one tab stop, arrow keys inside, and hovering chooses as well. */
function createTable(words, count, kind, sums, onChoose) {
  const buttons = [];
  const names = Array.from({ length: count }, () => h("th", { scope: "col" }));
  const createCell = (i, j) => {
    const choose = () => onChoose(i, j);
    const listeners = {
      onClick: choose,
      onMouseenter: choose,
      onFocus: choose,
      onKeydown: (event) => step(event, i, j),
    };
    return h("button", { type: "button", class: "ax-cell", ...listeners });
  };
  const rows = Array.from({ length: count }, (_, i) => {
    const cells = Array.from({ length: count }, (_, j) => createCell(i, j));
    buttons.push(cells);
    const [name, sum] = [h("th", { scope: "row" }), sums ? h("td", { class: "ax-sum" }) : null];
    const values = cells.map((cell) => h("td", {}, cell));
    return { name, sum, root: h("tr", {}, name, values, sum) };
  });
  const corner = h("td", {}, h("span", { class: "mm-hidden" }, words.query));
  const head = h("tr", {}, corner, names, sums ? h("td", { class: "ax-sum" }, words.sum) : null);
  const attrs = { class: "mm-table ax-table", "aria-label": words[kind] };
  const table = h("table", attrs, h("thead", {}, head), h("tbody", {}, rows));
  const title = h("p", { class: "ax-title" }, words[kind], h("span", {}, ` ${words[`${kind}Note`]}`));
  const root = h("div", { "data-sym": kind === "scores" ? "score" : kind }, title, table);

  function step(event, i, j) {
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const [row, column] = [i + way[0], j + way[1]].map((place) => clamp(place, 0, count - 1));
    buttons[row][column].focus();
  }

  function draw(s, look) {
    s.tokens.forEach((token, i) => {
      names[i].textContent = token;
      names[i].classList.toggle("ax-here", i === s.column);
      rows[i].name.textContent = token;
      rows[i].name.classList.toggle("ax-here", i === s.row);
      if (sums) rows[i].sum.textContent = fmt(total(s.weights[i]));
    });
    buttons.forEach((cells, i) => cells.forEach((cell, j) => drawCell(cell, s, i, j, look(i, j))));
  }

  function drawCell(cell, s, i, j, { text, tone, part }) {
    const chosen = i === s.row && j === s.column;
    cell.className = "ax-cell";
    cell.classList.toggle("ax-chosen", chosen);
    cell.classList.toggle("ax-row", i === s.row && !chosen);
    cell.classList.toggle("ax-masked", s.causal && j > i);
    cell.tabIndex = chosen ? 0 : -1;
    cell.style.setProperty("--ax-tone", `var(--mm-${tone})`);
    cell.style.setProperty("--ax-part", `${part}%`);
    cell.textContent = text;
    setAttributes(cell, { "aria-label": words.cell(s.tokens[i], s.tokens[j], text), "aria-pressed": chosen });
  }
  return { root, draw };
}

/** The products of all channels as bars, and their sum written out. */
function createDotProduct(words) {
  const title = h("p", { class: "ax-title" });
  const bars = h("div", { class: "ax-products", role: "img" });
  const written = h("p", { class: "ax-written" });
  const root = h("div", { "data-sym": "score" }, title, bars, written);

  function bar(product, largest) {
    const height = (50 * Math.abs(product)) / largest; // percent of the strip
    const top = ((product > 0 ? 50 - height : 50) / (100 - height)) * 100;
    const tone = product > 0 ? "plus" : "minus";
    const [tall, below] = [height, top].map((percent) => `${percent.toFixed(1)}%`);
    return h("i", { style: `--ax-tone: var(--mm-${tone}); --ax-height: ${tall}; --ax-top: ${below}` });
  }

  function draw(s) {
    const [q, k] = [s.q[s.row], s.k[s.column]];
    const products = channelProducts(q, k);
    const largest = Math.max(...products.map(Math.abs));
    const dot = fmt(s.dots[s.row][s.column]);
    const from = h("b", { "data-tone": "q" }, s.tokens[s.row]);
    const to = h("b", { "data-tone": "k" }, s.tokens[s.column]);
    const origin = h("span", {}, words.origin(s.dim));
    fill(title, words.score, from, " · ", to, origin);
    fill(
      bars,
      products.map((product) => bar(product, largest)),
    );
    const positive = products.filter((x) => x > 0).length;
    setAttributes(bars, { "aria-label": words.products(positive, s.dim, dot) });
    const first = sumOfProducts(q.slice(0, WRITTEN_TERMS).map((x, i) => [x, k[i]]));
    const more = s.dim > WRITTEN_TERMS ? " + …" : "";
    const score = s.scaled ? words.scaled(dot, s.dim, fmt(s.scores[s.row][s.column])) : words.bare;
    const hidden = s.causal && s.column > s.row ? words.masked : "";
    written.textContent = [words.dot(first + more, dot), score, hidden, words.end].join("");
  }
  return { root, draw };
}

/** The chosen row's weights as lengths, and the vector they mix. */
function createMixture(words) {
  const title = h("p", { class: "ax-title" });
  let parts = [];
  const bar = h("div", { class: "ax-mixture", role: "img" });
  const written = h("p", { class: "ax-written" });
  const root = h("div", { "data-sym": "output" }, title, bar, written);

  function draw(s, width) {
    const least = width < NARROW ? 0.18 : 0.12; // the weight whose part has room for its token
    const weights = s.weights[s.row];
    const reader = h("b", { "data-tone": "q" }, s.tokens[s.row]);
    const isWritten = (weight) => weight >= (s.isStory ? 0.05 : 0.005);
    if (parts.length !== weights.length) fill(bar, (parts = weights.map(() => h("div", {}))));
    fill(title, words.receives[0], reader, words.receives[1], h("span", {}, words.mixed));
    parts.forEach((part, j) => {
      part.style.flexBasis = `${100 * weights[j]}%`;
      part.hidden = weights[j] < 0.005;
      part.textContent = weights[j] > least ? s.tokens[j] : "";
    });
    const terms = weights.map((w, j) => words.value(fmt(w), s.tokens[j])).filter((_, j) => isWritten(weights[j]));
    const [first, rest] = [s.outputs[s.row].slice(0, WRITTEN_TERMS), s.outputs[s.row].length > WRITTEN_TERMS];
    const output = first.map((x) => fmt(x)).join(", ") + (rest ? ", …" : "");
    setAttributes(bar, { "aria-label": sharesOf(s, words) });
    written.textContent = `${terms.join(" + ")}${s.isStory ? " + …" : ""} = (${output})`;
  }
  return { root, bar, draw };
}

const sharesOf = (s, words) => s.tokens.map((token, j) => words.share(token, fmt(s.weights[s.row][j]))).join(", ");

/** Compact: one token reads, and a line to each key is as wide as its weight. */
function createReading(words, tokens, onRow) {
  const height = 128;
  const options = tokens.map((token, value) => ({ value, label: token }));
  const reader = choice({ label: words.reader, options, value: 0, onChange: onRow });
  reader.root.querySelector("legend").classList.add("mm-hidden");
  const keys = tokens.map((token) => textAt(0, 34, token, { anchor: "middle", cls: "ax-key" }));
  const shares = tokens.map(() => textAt(0, 14, "", { anchor: "middle" }));
  const lines = tokens.map(() => svg("path", { class: "ax-line" }));
  const drawing = svg("svg", { role: "img", "data-sym": "weights" }, lines, keys, shares);
  const root = h("div", { class: "ax-reading" }, drawing, reader);

  function draw(s, width) {
    const x = (place) => ((place + 0.5) * width) / tokens.length;
    setSize(drawing, width, height, words.reads(s.tokens[s.row], sharesOf(s, words)));
    tokens.forEach((_, j) => {
      const [weight, isHidden] = [s.weights[s.row][j], s.causal && j > s.row];
      const bend = `${x(s.row)} 64 ${x(j)} 108`;
      setAttributes(lines[j], { d: `M${x(s.row)} ${height}C${bend} ${x(j)} 46` });
      lines[j].style.strokeWidth = isHidden ? 0 : 1 + 20 * weight;
      setAttributes(keys[j], { x: x(j) });
      setAttributes(shares[j], { x: x(j) });
      keys[j].classList.toggle("ax-far", isHidden);
      shares[j].textContent = isHidden ? words.future : fmt(weight);
    });
    reader.set(s.row);
  }
  return { root, draw };
}

function xrayState(model) {
  const get = (name) => model.get(name);
  const [permuted, order] = [get("permuted"), get("order")];
  const settings = {
    dim: get("head_dim"),
    scaled: get("scaled"),
    causal: get("causal"),
    rope: get("rope"),
    qkNorm: get("qk_norm"),
    base: get("rope_base"),
    eps: get("qk_norm_eps"),
  };
  const given = ["query", "key", "value"].map(get);
  const inOrder = (list) => (permuted ? order.map((token) => list[token]) : list);
  const before = attentionStages(...given, settings);
  const stages = permuted ? attentionStages(...given.map(inOrder), settings) : before;
  const change = permuted ? largestChange(before.outputs, stages.outputs, order) : 0;
  const tokens = inOrder(get("tokens"));
  const [row, column] = ["row", "column"].map((name) => Math.min(get(name), tokens.length - 1));
  return { ...settings, ...stages, change, permuted, row, column, tokens };
}

/** The same stages of a head of the living model, for the words that the chosen one may read. */
function storyStages({ tokens, traces, at, layer, head, living }) {
  const { head_dim: dim, num_attention_heads: H, num_key_value_heads: K } = living.model.config;
  const kvHead = Math.floor((head * K) / H);
  const block = traces[at].blocks[layer];
  const headIn = (vector, head) => [...vector.subarray(head * dim, (head + 1) * dim)];
  const at1 = (value) => ({ [at]: value }); // the one row that is shown
  const q = headIn(block.q, head);
  const k = traces.slice(0, at + 1).map((trace) => headIn(trace.blocks[layer].k, kvHead));
  const dots = k.map((key) => total(channelProducts(q, key)));
  const weights = [...block.weights[head]];
  const column = weights.indexOf(Math.max(...weights));
  const scores = dots.map((dot) => dot / Math.sqrt(dim));
  const shown = { q: at1(q), k, dots: at1(dots), scores: at1(scores), weights: at1(weights) };
  const settings = { dim, scaled: true, causal: true, rope: true, permuted: false, isStory: true };
  return { ...settings, ...shown, outputs: at1([...block.heads[head]]), tokens, row: at, column };
}

/** A sentence, and whether it is good or bad news; most are neither. */
function xrayVerdict(s, words) {
  if (s.permuted && s.change < 1e-9) return [words.verdictSame, "good"];
  if (s.permuted) return [words.verdictChange(fmt(s.change), s.rope, s.causal)];
  const largest = Math.max(...s.weights[s.row]);
  const token = s.tokens[s.row];
  if (s.causal && s.row === 0) return [words.verdictFirst(token)];
  if (largest > 0.95) return [words.verdictSaturated(token, words.percent(fmt(100 * largest, 1))), "bad"];
  return [words.verdictSpread(token, fmt(largest))];
}

/** The slider and the switches. */
function createControls(bound, words) {
  const headDim = bound(slider, "head_dim", { label: words.headDim, stops: HEAD_DIMS });
  const switchesOf = (labels) => {
    const toggles = Object.entries(labels).map(([name, label]) => bound(toggle, name, { label }));
    return h("div", { class: "mm-controls ax-switches" }, toggles);
  };
  return { headDim, switches: switchesOf(words.switches), others: switchesOf(words.others) };
}

function xrayNumbers(s, words) {
  const scores = s.scores.flat();
  const middle = mean(scores);
  const spread = Math.sqrt(mean(scores.map((x) => (x - middle) ** 2)));
  const largest = mean(s.weights.map((row) => Math.max(...row)));
  return [
    [words.spread, fmt(spread)],
    [words.largest, fmt(largest, 3)],
    [words.change, s.permuted ? fmt(s.change, 3) : words.none],
  ];
}

/** Another cell, unless it is the chosen one. */
const choose = (model) => (row, column) => {
  if (row !== model.get("row") || column !== model.get("column")) setTraits(model, { row, column });
};

/** The whole figure: both tables and the sums that lead to the chosen cell; where these have no room, they fold. */
function createXray({ model, words, bound, verdict, numbers, redraw }) {
  const tokens = model.get("tokens");
  const scores = createTable(words, tokens.length, "scores", false, choose(model));
  const weights = createTable(words, tokens.length, "weights", true, choose(model));
  const [product, mixture] = [createDotProduct(words), createMixture(words)];
  const source = createSource(model, redraw, { picks: "head" });
  const line = createWordLine((at) => source.choose({ at }));
  const story = h("div", { class: "ax-told" }, h("p", { class: "mm-note" }, words.choose), line);
  const controls = createControls(bound, words);
  const sums = h("div", { class: "mm-column ax-sums" }, verdict, product, mixture);
  const stage = h("div", { class: "mm-stage mm-column ax-stage" }, scores, weights, sums);
  const folded = h("div", { class: "ax-folded" });
  const note = h("p", { class: "mm-note" }, words.note(tokens[LOUD]));
  const control = h("div", {}, row(controls.headDim), controls.switches);
  const rest = h("div", {}, controls.others, numbers, note); // like the controls, of the example alone

  function draw(width) {
    const reading = source.reading();
    for (const part of [control, rest]) part.hidden = Boolean(reading);
    const home = width < WIDE ? folded : stage;
    const shown = [...(reading ? [story] : [scores.root, weights.root]), home === stage && sums].filter(Boolean);
    if (shown.some((part, i) => stage.children[i] !== part)) stage.replaceChildren(...shown);
    if (home === folded && sums.parentNode !== folded) folded.append(sums);
    const says = reading ? drawStory(storyStages(reading), width) : drawExample(xrayState(model), width);
    return { ...says, isStory: Boolean(reading) };
  }

  /** The word that reads, those that it reads in the color of values, as full as their weights. */
  function drawStory(s, width) {
    const row = s.weights[s.row];
    line.draw(s.tokens, s.row, (place) => {
      const weight = row[place] ?? 0; // what comes later is not read
      const tone = place === s.row ? "q" : place === s.column ? "k" : "";
      const note = weight >= 0.05 ? fmt(weight) : "";
      return { tone, fill: "v", part: 60 * weight, note, spoken: place > s.row ? words.future : fmt(weight) };
    });
    product.draw(s);
    mixture.draw(s, width);
    return { verdict: words.verdictStory(s.tokens[s.row], s.tokens[s.column], fmt(row[s.column])) };
  }

  function drawExample(s, width) {
    const isHidden = (i, j) => s.causal && j > i;
    const seen = s.scores.flatMap((row, i) => row.filter((_, j) => !isHidden(i, j)));
    const largest = Math.max(...seen.map(Math.abs));
    scores.draw(s, (i, j) => {
      const x = s.scores[i][j];
      const text = isHidden(i, j) ? "−∞" : scoreText(x);
      return { text, tone: x > 0 ? "plus" : "minus", part: (45 * Math.abs(x)) / largest };
    });
    weights.draw(s, (i, j) => ({ text: fmt(s.weights[i][j]), tone: "v", part: 45 * s.weights[i][j] }));
    product.draw(s);
    mixture.draw(s, width);
    const [sentence, tone] = xrayVerdict(s, words);
    return { verdict: sentence, tone, numbers: xrayNumbers(s, words) };
  }
  return { stage, control, numbers: null, more: [source, folded, rest], parts: [source], draw };
}

/** Compact: who reads what, and the mixture that comes of it. */
function createOpening({ model, words }) {
  const { tokens } = xrayState(model);
  const reading = createReading(words, tokens, (row) => choose(model)(row, model.get("column")));
  const mixture = createMixture(words);

  function draw(width) {
    const s = xrayState(model);
    reading.draw(s, width);
    mixture.draw(s, width);
  }
  return { stage: h("div", { class: "mm-stage mm-column" }, reading, mixture.bar), draw };
}

export default figure({
  words: attentionXrayWords,
  traits: SETTINGS,
  create: (shell) => (shell.isCompact ? createOpening(shell) : createXray(shell)),
});
