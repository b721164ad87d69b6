// The one part that is open, with its real numbers at the selected word, and the way to its chapter.

import { h, svg, fill, fmt, toggle, row } from "../kit/kit.js";
import { softmax } from "../live/sampling.js";
import { descending, headNumbers } from "./session.js";
import { createStrip, linksToChapters, rootMeanSquare, wordWithGloss } from "./marks.js";

// what is open -> the parts of the model whose chapters teach it
const TAUGHT = {
  embedding: ["embedding"],
  final: ["norm", "embedding"],
  norm: ["norm"],
  ffn: ["ffn", "experts"],
  stream: ["stream"],
  head: ["head", "rope", "frequencies", "groups"],
};
const NEURONS = 5;
const NEAREST = 4;
const READS = 4;
const LENS = 4;
const DIAL = 21; // radius

const silu = (x) => x / (1 + Math.exp(-x));

/** Rows of [name, strip of values, a number]. */
function stripRows(rows, scale) {
  return rows.map(([name, values, number]) => {
    const strip = createStrip(name);
    strip.draw(values, scale);
    return h("div", { class: "ml-strip-row" }, h("span", { class: "ml-label" }, name), strip, h("span", {}, number));
  });
}

/** A list of words, each with its number. */
function wordList(session, glossOf, ids, numberOf) {
  const one = (id, i) => h("li", {}, wordWithGloss(session.world.words[id], glossOf(id)), h("b", {}, numberOf(id, i)));
  return h("ul", { class: "ml-words" }, ids.map(one));
}

/** The token's row of the table, and the rows that point the same way. */
function embeddingZoom({ words, session, glossOf }, trace) {
  const { shape, data } = session.tensors["model.embed_tokens.weight"];
  const [count, width] = shape;
  const row = (id) => data.subarray(id * width, (id + 1) * width);
  const own = trace.embedding;
  const cosine = (other) => {
    const dot = other.reduce((sum, x, i) => sum + x * own[i], 0);
    return dot / (width * rootMeanSquare(own) * rootMeanSquare(other));
  };
  const cosines = Float32Array.from({ length: count }, (_, id) => (id === trace.token ? -1 : cosine(row(id))));
  const nearest = descending(cosines).slice(0, NEAREST);
  return [
    h("p", { class: "ml-title" }, words.zoom.embedding(session.world.words[trace.token], width)),
    stripRows([[words.embedding, own, words.zoom.rms(fmt(rootMeanSquare(own)))]]),
    h("p", { class: "ml-label" }, words.zoom.nearest),
    wordList(session, glossOf, nearest, (id) => fmt(cosines[id])),
  ];
}

function oneNorm(words, title, before, gains) {
  const scale = rootMeanSquare(before);
  const after = before.map((x, i) => (x / scale) * gains[i]);
  const { zoom } = words;
  return [
    h("p", { class: "ml-title" }, title),
    stripRows([
      [zoom.before, before, zoom.rms(fmt(scale))],
      [zoom.afterwards, after, zoom.rms(fmt(rootMeanSquare(after)))],
    ]),
    h("p", { class: "ml-label" }, zoom.gains(fmt(Math.min(...gains)), fmt(Math.max(...gains)))),
  ];
}

function normZoom({ words, session }, trace, { layer }) {
  const gains = (name) => session.tensors[`model.layers.${layer}.${name}.weight`].data;
  const block = trace.blocks[layer];
  return [
    ...oneNorm(words, words.zoom.norm(layer + 1), block.input, gains("input_layernorm")),
    ...oneNorm(words, words.zoom.norm2, block.middle, gains("post_attention_layernorm")),
  ];
}

function finalZoom({ words, session }, trace) {
  return oneNorm(words, words.zoom.finalNorm, trace.final, session.tensors["model.norm.weight"].data);
}

/** The pairs of a vector as hands of dials: dotted before the rotation, solid after it. */
function dials(before, after, tone) {
  const half = before.length / 2;
  const longest = Math.max(...Array.from({ length: half }, (_, i) => Math.hypot(after[i], after[i + half])));
  const hand = (vector, i, cls) => {
    const [x, y] = [vector[i], vector[i + half]].map((value) => (DIAL * value) / longest);
    return svg("line", { class: cls, x2: x.toFixed(1), y2: (-y).toFixed(1) });
  };
  const size = DIAL + 3;
  const one = (_, i) =>
    svg(
      "svg",
      { class: "ml-dial", viewBox: `${-size} ${-size} ${2 * size} ${2 * size}`, "aria-hidden": "true" },
      svg("circle", { r: DIAL }),
      hand(before, i, "ml-hand ml-hand-before"),
      hand(after, i, "ml-hand"),
    );
  return h("div", { class: "ml-dials", "data-tone": tone }, Array.from({ length: half }, one));
}

/** What a head reads, and why: the query of this word, the key of the word that it reads most. */
function headZoom({ words, session, glossOf }, trace, { layer, head }) {
  const { head_dim: dim, num_attention_heads: heads, num_key_value_heads: kvHeads } = session.model.config;
  const shared = Math.floor(head / (heads / kvHeads));
  const weights = trace.blocks[layer].weights[head];
  const order = descending(weights).slice(0, READS);
  const [read, readIds] = [order[0], order.map((at) => session.ids[at])];
  const word = (at) => session.world.words[session.ids[at]];
  const key = `${layer}.${head}`;
  const off = toggle({
    label: words.zoom.silence,
    checked: session.silenced.has(key),
    onChange: (isSilent) => session.silence(key, isSilent),
  });
  const part = (vector, index) => vector.subarray(index * dim, (index + 1) * dim);
  const mine = trace.blocks[layer];
  const theirs = session.traces[read].blocks[layer];
  const [q, k] = [part(mine.q, head), part(theirs.k, shared)];
  const dot = q.reduce((sum, x, i) => sum + x * k[i], 0);
  const { zoom } = words;
  return [
    h("div", { class: "ml-bar-head" }, h("p", { class: "ml-title" }, words.head(layer + 1, head + 1)), off),
    h("p", { class: "ml-label" }, zoom.reads(word(session.selected), session.selected)),
    wordList(session, glossOf, readIds, (_, i) => words.percent(weights[order[i]])),
    h("p", { class: "ml-label" }, zoom.dials(word(session.selected), word(read))),
    dials(part(mine.qRaw, head), q, "q"),
    dials(part(theirs.kRaw, shared), k, "k"),
    h("p", { class: "ml-label" }, `${zoom.score("q", "k", fmt(dot / Math.sqrt(dim)))}. ${zoom.dialHint}`),
  ];
}

/** The neurons that write most, with all that makes their number. */
function ffnZoom({ words }, trace, { layer }) {
  const { gate, up, hidden } = trace.blocks[layer];
  const strongest = descending(hidden.map(Math.abs)).slice(0, NEURONS);
  const cellsOf = (i) => [gate[i], silu(gate[i]), up[i], hidden[i]].map((x) => h("td", {}, fmt(x)));
  const row = (i) => h("tr", {}, h("th", { scope: "row" }, i), cellsOf(i));
  const titles = words.zoom.columns.map((title) => h("th", { scope: "col" }, title));
  return [
    h("p", { class: "ml-title" }, words.zoom.ffn(layer + 1, hidden.length)),
    h("table", { class: "mm-table" }, h("thead", {}, h("tr", {}, titles)), h("tbody", {}, strongest.map(row))),
  ];
}

/** The stream before and after a block, what its parts add, and what it would say. */
function streamZoom({ words, session, glossOf }, trace, { layer }) {
  const { input, attended, fed, output, lens } = trace.blocks[layer];
  const { zoom } = words;
  const vectors = [input, attended, fed, output];
  const scale = 2 * rootMeanSquare(output);
  const rows = vectors.map((one, i) => [zoom.parts[i], one, zoom.rms(fmt(rootMeanSquare(one)))]);
  const chances = softmax(lens);
  const said = descending(chances).slice(0, LENS);
  return [
    h("p", { class: "ml-title" }, zoom.stream(layer + 1)),
    stripRows(rows, scale),
    h("p", { class: "ml-label" }, zoom.lens),
    wordList(session, glossOf, said, (id) => words.percent(chances[id])),
  ];
}

const ZOOMS = {
  embedding: embeddingZoom,
  norm: normZoom,
  head: headZoom,
  ffn: ffnZoom,
  stream: streamZoom,
  final: finalZoom,
};

/** links: part of the model -> { href, label } of its chapter. */
export function createZoom(words, session, glossOf, links) {
  const content = h("div", {});
  const close = h("button", { type: "button", class: "ml-close", "aria-label": words.close }, "×");
  close.addEventListener("click", () => session.open(null));
  const chapters = h("div", {});
  const root = h("div", { class: "ml-zoom", role: "region", "aria-label": words.more }, close, content, chapters);
  const context = { words, session, glossOf };

  function draw() {
    const trace = session.traces[session.selected];
    const { zoom } = session;
    root.hidden = !zoom;
    if (!zoom || !trace) return;
    const focusIsSwitch = content.contains(document.activeElement);
    fill(content, ZOOMS[zoom.part](context, trace, zoom));
    if (focusIsSwitch) content.querySelector("input")?.focus({ preventScroll: true });
    fill(chapters, linksToChapters(words, links, TAUGHT[zoom.part]));
  }
  return { root, draw };
}

/** The zoom of a head's key. */
export function zoomOfHead(key) {
  const [layer, head] = headNumbers(key);
  return { part: "head", layer, head };
}

/** The zoom that an address names, counted from 1 as on the page: `final`, `norm-2`, `head-4-2`; null if it is none. */
export function zoomOfName(name, { layers, heads }) {
  const [part, ...numbers] = name.split("-");
  const counts = { embedding: [], final: [], norm: [layers], ffn: [layers], stream: [layers], head: [layers, heads] };
  const most = Object.hasOwn(counts, part) ? counts[part] : null;
  const fits = (count, at) => /^[1-9]\d*$/.test(numbers[at]) && Number(numbers[at]) <= count;
  if (most?.length !== numbers.length || !most.every(fits)) return null;
  const [layer, head] = numbers.map((number) => number - 1);
  return { part, layer, head };
}
