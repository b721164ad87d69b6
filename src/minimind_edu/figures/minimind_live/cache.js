// The KV cache of the story: a column of keys and values for each word, in every block, and what it weighs.

import { h, svg, fill, row } from "../../web/kit/kit.js";
import { linksToChapters } from "./marks.js";

const ITEM_BYTES = 4; // of a number, float32
const LEAST_COLUMNS = 32;

export function createCache(words, session, sizes, links) {
  const title = h("summary", {});
  const drawing = svg("svg", { class: "ml-cache", preserveAspectRatio: "none", role: "img" });
  const note = h("p", { class: "ml-hint" });
  const chapters = linksToChapters(words, links, ["cache", "groups", "speed"]);
  const root = h("details", { class: "mm-more" }, title, drawing, note, chapters);
  const { layers, heads, kv_heads: kvHeads, head_dim: dim } = sizes;

  /** Keys above, values below, a column for each word. */
  function drawBlockRows(layer, count) {
    const row = (y) => Array.from({ length: count }, (_, x) => `M${x} ${y}h.8v.8h-.8z`).join("");
    return ["k", "v"].map((name, i) => svg("path", { class: `ml-cache-${name}`, d: row(layer * 2.6 + i) }));
  }

  function draw() {
    const count = session.ids.length;
    const bytes = count * layers * 2 * kvHeads * dim * ITEM_BYTES;
    const [kib, all] = [bytes, (bytes * heads) / kvHeads].map(words.kib);
    title.textContent = words.cache(kib);
    note.textContent = words.cacheNote(count, layers, kvHeads, dim, kib, heads, all);
    const height = layers * 2.6;
    drawing.setAttribute("viewBox", `0 0 ${Math.max(count, LEAST_COLUMNS)} ${height}`);
    drawing.setAttribute("aria-label", words.cacheLabel(count));
    const blocks = Array.from({ length: layers }, (_, layer) => drawBlockRows(layer, count));
    const mark = svg("rect", { class: "ml-row-mark", x: session.selected - 0.1, y: 0, width: 1, height });
    fill(drawing, mark, blocks);
  }
  return { root, draw };
}
