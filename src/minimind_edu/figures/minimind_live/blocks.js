// The model from the embedding to the last norm at the selected word: every part can be pressed, every head is a map.

import { h, fill } from "../../web/kit/kit.js";
import { createHead } from "../../web/stage/heads.js";
import { isSamePart } from "../../web/stage/parts.js";
import { createStrip, rootMeanSquare } from "../../web/stage/strips.js";
import { createHeadMap, linksToChapters } from "./marks.js";

/** A head that can be pressed. */
function createSquare(words, session, place, look) {
  const [map, label] = [createHeadMap(), words.headTitle(place.layer + 1, place.head + 1)];
  const { root, draw: drawHead } = createHead(session, label, place, look, map);
  root.classList.add("mm-shows");

  function draw() {
    drawHead();
    map.draw(session, place);
    const { shown } = session;
    root.dataset.shown = shown?.layer === place.layer && shown.head === place.head;
  }
  return { root, draw };
}

/** A part that can be pressed: its name, and perhaps a strip of what it gives. */
function createPart(session, label, name, place, tone) {
  const strip = createStrip(name);
  strip.root.setAttribute("aria-hidden", "true");
  const onClick = () => session.toggle(place);
  const attrs = { type: "button", class: "ml-part mm-shows", "data-tone": tone, "aria-label": name, onClick };
  const root = h("button", attrs, h("span", { class: "ml-part-name" }, label), strip);
  const draw = (values) => {
    if (values) strip.draw(values);
    root.setAttribute("aria-expanded", isSamePart(session.zoom, place));
  };
  return { root, draw };
}

/** look({ layer, head } or null): what the mouse or the focus is on. */
export function createBlocks(words, session, sizes, look, links) {
  const part = (label, name, place, tone) => createPart(session, label, name, place, tone);
  const embedding = part(words.embedding, words.open(words.embedding), { part: "embedding" }, "stream");
  const final = part(words.finalNorm, words.open(words.finalNorm), { part: "final" }, "norm");
  const blocks = Array.from({ length: sizes.layers }, (_, layer) => {
    const open = (name) => words.open(name, layer + 1);
    const norm = part(words.norm, open(words.norm), { part: "norm", layer }, "norm");
    const ffn = part(words.ffn, open(words.ffn), { part: "ffn", layer }, "ffn");
    const stream = part(words.stream, open(words.stream), { part: "stream", layer }, "stream");
    const heads = Array.from({ length: sizes.heads }, (_, head) => createSquare(words, session, { layer, head }, look));
    const root = h(
      "div",
      { class: "ml-block", role: "group", "aria-label": words.block(layer + 1) },
      h("span", { class: "ml-block-name" }, words.block(layer + 1)),
      h("div", { class: "ml-heads", style: `--ml-heads:${sizes.heads}` }, heads),
      h("div", { class: "ml-parts" }, norm, ffn, stream),
    );
    return { root, norm, heads, ffn, stream };
  });
  const ends = (bars) => h("div", { class: "ml-block ml-end" }, bars);
  const rows = [ends(embedding), ...blocks.map((block) => block.root), ends(final)];
  const root = h(
    "div",
    { class: "ml-inside" },
    h("p", { class: "ml-title" }, words.inside),
    rows,
    h("p", { class: "ml-hint" }, words.insideNote, h("span", { class: "scripted" }, words.gap, words.insidePress)),
    linksToChapters(words, links, ["whole", "bytes"]),
  );
  /** The row under which an open part is shown. */
  const rowOf = ({ part, layer }) =>
    part === "embedding" ? rows[0] : part === "final" ? rows.at(-1) : blocks[layer].root;

  function drawBlock({ norm, heads, ffn, stream }, layer) {
    const trace = session.now?.blocks[layer];
    heads.forEach((head) => head.draw());
    norm.draw(trace?.normed);
    ffn.draw(trace?.hidden);
    stream.draw(trace?.output);
  }

  function draw() {
    const { now } = session;
    embedding.draw(now?.embedding);
    const scale = now && rootMeanSquare(now.final);
    final.draw(now?.final.map((x) => x / scale));
    blocks.forEach(drawBlock);
  }

  /** Shows what a still of the same story has drawn inside, if there is one, until the weights are here to draw it. */
  function take(still) {
    if (session.now || !still) return;
    const [theirs, mine] = [still, root].map((drawn) => drawn.querySelectorAll(".ml-map, .ml-map > g, .st-strip"));
    mine.forEach((drawn, at) => {
      if (drawn.matches("svg")) drawn.setAttribute("viewBox", theirs[at].getAttribute("viewBox"));
      if (!drawn.matches(".ml-map")) fill(drawn, [...theirs[at].cloneNode(true).childNodes]);
    });
  }
  return { root, draw, take, rowOf };
}
