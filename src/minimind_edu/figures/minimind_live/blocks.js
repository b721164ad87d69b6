// The model from the embedding to the last norm at the selected word: every part can be pressed, every head is a map.

import { h, fill } from "../kit/kit.js";
import { softmax } from "../live/sampling.js";
import { descending } from "./session.js";
import { createHeadMap, createStrip, linksToChapters, rootMeanSquare, wordWithGloss } from "./marks.js";

const SAID = 2; // words that a stream would say

/** A head that can be pressed. */
function createHead(words, session, layer, head, look) {
  const map = createHeadMap();
  const key = `${layer}.${head}`;
  const root = h(
    "button",
    {
      type: "button",
      class: "ml-part ml-head mm-shows",
      "aria-label": words.head(layer + 1, head + 1),
      onClick: () => session.toggle({ part: "head", layer, head }),
      onPointerenter: () => look({ layer, head }),
      onPointerleave: () => look(null),
      onFocus: () => look({ layer, head }),
      onBlur: () => look(null),
    },
    map.root,
    h("span", { class: "ml-silent-mark", "aria-hidden": "true" }, words.silent),
  );

  /** Once for each story. */
  const drawStory = () => map.draw(session.traces, layer, head);

  function draw(zoom) {
    map.mark(session.selected);
    const { shown } = session;
    root.dataset.shown = shown?.layer === layer && shown.head === head;
    const isSilent = session.silenced.has(key);
    root.dataset.silent = isSilent;
    root.setAttribute("aria-expanded", zoom?.part === "head" && zoom.layer === layer && zoom.head === head);
  }
  return { root, drawStory, draw };
}

/** A part that can be pressed: its name, and perhaps a strip of what it gives. */
function createPart(session, label, name, place, tone) {
  const strip = createStrip(name);
  strip.root.setAttribute("aria-hidden", "true");
  const onClick = () => session.toggle(place);
  const attrs = { type: "button", class: "ml-part mm-shows", "data-tone": tone, "aria-label": name, onClick };
  const root = h("button", attrs, h("span", { class: "ml-part-name" }, label), strip);
  const draw = (values, zoom) => {
    if (values) strip.draw(values);
    root.setAttribute("aria-expanded", zoom?.part === place.part && zoom.layer === place.layer);
  };
  return { root, draw };
}

/** The words that logits would say, with their probabilities. */
function saidBy(words, session, glossOf, logits) {
  const chances = softmax(logits);
  return descending(chances)
    .slice(0, SAID)
    .map((id) => {
      const word = h("span", { class: "ml-said-word" }, wordWithGloss(session.world.words[id], glossOf(id)));
      return h("span", { class: "ml-said-one" }, word, " ", h("b", {}, words.percent(chances[id])));
    });
}

/** look({ layer, head } or null): what the mouse or the focus is on; zoom: the element of what is open. */
export function createBlocks(words, session, sizes, glossOf, look, zoom, links) {
  const part = (label, name, place, tone) => createPart(session, label, name, place, tone);
  const embedding = part(words.embedding, words.open(words.embedding), { part: "embedding" }, "stream");
  const final = part(words.finalNorm, words.open(words.finalNorm), { part: "final" }, "norm");
  const blocks = Array.from({ length: sizes.layers }, (_, layer) => {
    const open = (name) => words.open(name, layer + 1);
    const norm = part(words.norm, open(words.norm), { part: "norm", layer }, "norm");
    const ffn = part(words.ffn, open(words.ffn), { part: "ffn", layer }, "ffn");
    const stream = part(words.stream, open(words.stream), { part: "stream", layer }, "stream");
    const heads = Array.from({ length: sizes.heads }, (_, head) => createHead(words, session, layer, head, look));
    const said = h("span", { class: "ml-said" });
    const root = h(
      "div",
      { class: "ml-block", role: "group", "aria-label": words.block(layer + 1) },
      h("span", { class: "ml-block-name" }, words.block(layer + 1)),
      h("div", { class: "ml-heads", style: `--ml-heads:${sizes.heads}` }, heads),
      h("div", { class: "ml-parts" }, norm, ffn, stream),
      h("span", { class: "mm-hidden" }, words.says),
      said,
    );
    return { root, norm, heads, ffn, stream, said };
  });
  const ends = (one) => h("div", { class: "ml-block ml-end" }, one);
  const rows = [ends(embedding), ...blocks.map((one) => one.root), ends(final)];
  const root = h(
    "section",
    { class: "ml-inside" },
    h(
      "div",
      { class: "ml-block ml-heading" },
      h("p", { class: "ml-title" }, words.inside),
      h("span", { class: "ml-label", "aria-hidden": "true" }, words.says),
    ),
    rows,
    h("p", { class: "ml-hint" }, words.insideNote, h("span", { class: "scripted" }, " ", words.insidePress)),
    linksToChapters(words, links, ["whole", "bytes"]),
  );
  let drawn = null;

  /** The row under which the open part is shown. */
  function placeZoom() {
    const { zoom: open } = session;
    zoom.hidden = !open;
    if (!open) return;
    const row = open.part === "embedding" ? rows[0] : open.part === "final" ? rows.at(-1) : blocks[open.layer].root;
    if (row.nextSibling !== zoom) row.after(zoom);
  }

  function drawBlock({ norm, heads, ffn, stream, said }, layer, isNew) {
    const trace = session.traces[session.selected]?.blocks[layer];
    if (isNew) heads.forEach((one) => one.drawStory());
    heads.forEach((one) => one.draw(session.zoom));
    norm.draw(trace?.normed, session.zoom);
    ffn.draw(trace?.hidden, session.zoom);
    stream.draw(trace?.output, session.zoom);
    if (trace) fill(said, saidBy(words, session, glossOf, trace.lens));
  }

  function draw() {
    const { traces } = session;
    const last = traces.at(-1);
    const isNew = drawn !== last; // every change of the story reads its last word anew
    drawn = last;
    const trace = traces[session.selected];
    embedding.draw(trace?.embedding, session.zoom);
    const scale = trace && rootMeanSquare(trace.final);
    final.draw(trace && trace.final.map((x) => x / scale), session.zoom);
    blocks.forEach((one, layer) => drawBlock(one, layer, isNew && last));
    placeZoom();
  }

  /** Shows what a still of the same story has drawn inside, if there is one, until the weights are here to draw it. */
  function take(still) {
    if (drawn || !still) return;
    const [theirs, mine] = [still, root].map((one) =>
      one.querySelectorAll(".ml-map, .ml-map > g, .ml-strip, .ml-said"),
    );
    mine.forEach((one, at) => {
      if (one.matches("svg")) one.setAttribute("viewBox", theirs[at].getAttribute("viewBox"));
      if (!one.matches(".ml-map")) fill(one, [...theirs[at].cloneNode(true).childNodes]);
    });
  }
  return { root, draw, take };
}
