// One row of the living model's table: a word of the story, and the words whose rows point nearly the same way.

import { h, fill, fmt } from "../../web/kit/kit.js";
import { nearestRows } from "./math.js";

const SHOWN_ROWS = 5;

/** What the ledger counts of the living model, as parameterLedger takes it. */
export function sizesOfLiving({ living }) {
  const { config } = living.model;
  return {
    hidden: config.hidden_size,
    layers: config.num_hidden_layers,
    vocabulary: config.vocab_size,
    heads: config.num_attention_heads,
    kvHeads: config.num_key_value_heads,
    headDim: config.head_dim,
    inner: config.intermediate_size,
    hasQkNorm: config.use_qk_norm,
  };
}

/** The words nearest to the one at a position of the story: [{ word, cosine }]. */
export function nearestWords({ living, ids }, at, count = SHOWN_ROWS) {
  const table = living.tensors["model.embed_tokens.weight"];
  const wordOf = ({ row, cosine }) => ({ word: living.world.words[row], cosine });
  return nearestRows(table, ids[at], count).map(wordOf);
}

/** The position of the story whose word has the nearest neighbor: the one to show first. */
export function tellingPosition(reading) {
  const nearest = reading.ids.map((_, at) => nearestWords(reading, at, 1)[0].cosine);
  return nearest.indexOf(Math.max(...nearest));
}

/** The nearest words with a bar for each cosine. */
export function createNearest(words) {
  const label = h("caption", {});
  const body = h("tbody");
  const root = h("table", { class: "mm-table le-table le-nearest" }, label, body);

  function drawRow({ word, cosine }) {
    const width = `${Math.max(0, 100 * cosine)}%`;
    const bar = h("div", { class: "le-part", "data-tone": "stream", style: { width } });
    return h("tr", {}, h("th", { scope: "row" }, word), h("td", { class: "le-bar" }, bar), h("td", {}, fmt(cosine)));
  }

  function draw(reading) {
    label.textContent = words.nearestTo(reading.tokens[reading.at]);
    fill(body, nearestWords(reading, reading.at).map(drawRow));
  }
  return { root, draw };
}
