// What each query head of the living model reads at one word of the story, in columns that stand above its wires.

import { h, fill, fmt } from "../../web/kit/kit.js";
import { mostRead } from "./math.js";

const SHOWN_WORDS = 3; // of a head

/** The sizes of the living model as the figure's own traits, with the story in its cache. */
export function wiringTraits({ living, ids }) {
  const { config } = living.model;
  return {
    num_heads: config.num_attention_heads,
    num_kv_heads: config.num_key_value_heads,
    head_dim: config.head_dim,
    num_layers: config.num_hidden_layers,
    length: ids.length,
    dtype: "float32",
    order: "repeat_kv",
    as_group_size: false,
  };
}

/** The attention weights [H][T] of the chosen layer at the chosen word. */
const weightsAt = ({ traces, at, layer }) => traces[at].blocks[layer].weights;

export function createReads(words) {
  const label = h("p", { class: "mm-label" });
  const columns = h("div", { class: "hw-columns" });
  const root = h("div", { class: "hw-reads" }, label, columns);

  function drawRead([word, share]) {
    const style = `--hw-share:${(100 * share).toFixed(1)}%`;
    return h("li", { style }, h("span", {}, word), h("b", {}, words.percent(fmt(100 * share, 0))));
  }

  function draw(reading) {
    const heads = weightsAt(reading).map((weights) => mostRead(weights, reading.tokens, SHOWN_WORDS));
    label.textContent = words.readsAt(reading.layer + 1, reading.tokens[reading.at]);
    columns.style.gridTemplateColumns = `repeat(${heads.length}, minmax(0, 1fr))`;
    const listOf = (reads, head) => h("ul", { "aria-label": words.readsOf(head + 1) }, reads.map(drawRead));
    fill(columns, heads.map(listOf));
  }
  return { root, draw };
}

/** A sentence on the group that the head belongs to which matters most: one key/value head, and what is read there. */
export function groupVerdict(reading, words) {
  const { num_attention_heads: heads, num_key_value_heads: kvHeads } = reading.living.model.config;
  const size = heads / kvHeads;
  const shared = Math.floor(reading.head / size);
  const queries = Array.from({ length: size }, (_, i) => shared * size + i);
  const most = queries.map((query) => mostRead(weightsAt(reading)[query], reading.tokens, 1)[0]);
  const parts = most.map(([word, share], i) => words.looksAt(queries[i] + 1, word, words.percent(fmt(100 * share, 0))));
  const doDiffer = new Set(most.map(([word]) => word)).size > 1;
  return words.serves(
    queries.map((query) => query + 1),
    shared + 1,
    parts,
    doDiffer,
  );
}
