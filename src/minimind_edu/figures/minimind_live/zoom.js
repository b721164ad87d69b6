// The one part that is open, with its real numbers at the selected word, and the way to its chapter.

import { h, fill, fmt } from "../../web/kit/kit.js";
import { softmax } from "../../web/live/sampling.js";
import { createOpenHead } from "../../web/stage/heads.js";
import { createOpened } from "../../web/stage/opened.js";
import { partNamed } from "../../web/stage/parts.js";
import { rootMeanSquare, sharesBy, stripRows } from "../../web/stage/strips.js";
import { descending } from "./session.js";
import { linksToChapters, wordWithGloss } from "./marks.js";

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
const LENS = 4;

const silu = (x) => x / (1 + Math.exp(-x));

/** A list of words, each with its number. */
function wordList(session, glossOf, ids, numberOf) {
  const wordOf = (id) => h("span", {}, wordWithGloss(session.world.words[id], glossOf(id)));
  const item = (id, i) => h("li", {}, wordOf(id), h("b", {}, numberOf(id, i)));
  return h("ol", { class: "st-list ml-words" }, ids.map(item));
}

/** The token's row of the table, and the rows that point the same way. */
function embeddingZoom({ words, session, glossOf }, trace) {
  const { shape, data } = session.tensors["model.embed_tokens.weight"];
  const [count, width] = shape;
  const row = (id) => data.subarray(id * width, (id + 1) * width);
  const embedding = trace.embedding;
  const cosine = (other) => {
    const dot = other.reduce((sum, x, i) => sum + x * embedding[i], 0);
    return dot / (width * rootMeanSquare(embedding) * rootMeanSquare(other));
  };
  const cosines = Float32Array.from({ length: count }, (_, id) => (id === trace.token ? -1 : cosine(row(id))));
  const nearest = descending(cosines).slice(0, NEAREST);
  return [
    h("p", { class: "st-title" }, words.zoom.embedding(session.world.words[trace.token], width)),
    stripRows(words, [[words.embedding, embedding, words.zoom.rms(fmt(rootMeanSquare(embedding)))]]),
    h("p", { class: "ml-label" }, words.zoom.nearest),
    wordList(session, glossOf, nearest, (id) => fmt(cosines[id])),
  ];
}

function oneNorm(words, title, before, gains) {
  const scale = rootMeanSquare(before);
  const after = before.map((x, i) => (x / scale) * gains[i]);
  const { zoom } = words;
  return [
    h("p", { class: "st-title" }, title),
    stripRows(words, [
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

/** Why a head reads: the query of this word, the key of the word that it reads most, and what their channels add. */
function scoreOf({ words, session }, trace, { layer, head }) {
  const { head_dim: dim, num_attention_heads: heads, num_key_value_heads: kvHeads } = session.model.config;
  const shared = Math.floor(head / (heads / kvHeads));
  const mine = trace.blocks[layer];
  const [read] = descending(mine.weights[head]);
  const word = (at) => session.world.words[session.ids[at]];
  const part = (vector, index) => vector.subarray(index * dim, (index + 1) * dim);
  const [q, k] = [part(mine.q, head), part(session.traces[read].blocks[layer].k, shared)];
  const products = q.map((x, i) => x * k[i]);
  const dot = products.reduce((sum, x) => sum + x, 0);
  const { zoom } = words;
  return [
    stripRows(words, [
      [zoom.query(word(session.selected)), q, ""],
      [zoom.key(word(read)), k, ""],
      [zoom.products, products, zoom.sum(fmt(dot))],
    ]),
    h("p", { class: "ml-label" }, zoom.score(fmt(dot / Math.sqrt(dim)))),
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
    h("p", { class: "st-title" }, words.zoom.ffn(layer + 1, hidden.length)),
    h("table", { class: "mm-table" }, h("thead", {}, h("tr", {}, titles)), h("tbody", {}, strongest.map(row))),
  ];
}

/** The stream before and after a block, what its parts add, and what it would say. */
function streamZoom({ words, session, glossOf }, trace, { layer }) {
  const { input, attended, fed, output, lens } = trace.blocks[layer];
  const { zoom } = words;
  const vectors = [input, attended, fed, output];
  const scale = sharesBy(2 * rootMeanSquare(output));
  const rows = vectors.map((vector, i) => [zoom.parts[i], vector, zoom.rms(fmt(rootMeanSquare(vector)))]);
  const chances = softmax(lens);
  const likeliest = descending(chances).slice(0, LENS);
  return [
    h("p", { class: "st-title" }, zoom.stream(layer + 1)),
    stripRows(words, rows, scale),
    h("p", { class: "ml-label" }, zoom.lens),
    wordList(session, glossOf, likeliest, (id) => words.percent(chances[id])),
  ];
}

const DRAWN = { embedding: embeddingZoom, norm: normZoom, ffn: ffnZoom, stream: streamZoom, final: finalZoom };

/** reading: see heads.js; rowOf(zoom): the row of a part; links: part of the model -> { href, label }, its chapter. */
export function createZoom(words, session, glossOf, reading, rowOf, links) {
  const context = { words, session, glossOf };
  const viewOf = (build) => {
    const root = h("div", { class: "mm-column" });
    return { root, draw: (zoom) => session.now && fill(root, build(context, session.now, zoom)) };
  };
  const views = Object.fromEntries(Object.entries(DRAWN).map(([part, build]) => [part, viewOf(build)]));
  const about = (zoom) => {
    const { ids, selected, world } = session;
    return [words.zoom.reads(world.words[ids[selected]], selected), scoreOf(context, session.now, zoom)];
  };
  views.head = createOpenHead(words, session, reading, about);
  const chapters = h("div", {});
  const { root, draw: drawOpened } = createOpened(words, session, views, rowOf, chapters);

  function draw() {
    drawOpened();
    if (session.zoom) fill(chapters, linksToChapters(words, links, TAUGHT[session.zoom.part]));
  }
  return { root, draw, release: views.head.release };
}

/** The name of a part in an address. */
export const nameOfZoom = ({ part, layer, head }) =>
  [part, ...[layer, head].filter((at) => at !== undefined).map((at) => at + 1)].join("-");

/** The part that an address names, counted from 1 as on the page: `final`, `norm-2`, `head-4-2`; null if it is none. */
export function zoomOfName(name, { layers: L, heads: H }) {
  const counts = { embedding: [], final: [], norm: [L], ffn: [L], stream: [L], head: [L, H] };
  return partNamed(name.split("-"), counts, 1);
}
