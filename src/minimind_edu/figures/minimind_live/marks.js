// What the views of the living model share: words with glosses, ways to chapters, small maps of heads.

import { h, svg, fill, wordsOf } from "../../web/kit/kit.js";
import { phraseGlosses } from "../../web/live/glosses.js";
import { createCells } from "../../web/stage/strips.js";

/** What words mean in the other language: id -> gloss, or nothing. */
export function glossary(tables) {
  const pairs = ["people", "objects", "places", "pronouns"].flatMap((list) => {
    const [english, chinese] = tables[list];
    return chinese.map((word, at) => [word, english[at]]);
  });
  const glosses = { ...Object.fromEntries(pairs), ...wordsOf(phraseGlosses) };
  return (id) => glosses[tables.words[id]];
}

/** The same person, thing or place in the other language, or nothing. */
export function twinOf(tables, id) {
  const word = tables.words[id];
  for (const list of [tables.people, tables.objects, tables.places]) {
    const language = list.findIndex((names) => names.includes(word));
    if (language >= 0) return tables.words.indexOf(list[1 - language][list[language].indexOf(word)]);
  }
  return undefined;
}

/** A word with its gloss, as the content of a button or a line. */
export const wordWithGloss = (word, gloss) => [word, gloss ? h("small", {}, gloss) : null];

/** Links to the chapters that teach parts of the model. links: part -> { href, label }. */
export function linksToChapters(words, links, parts) {
  const known = parts.map((part) => links[part]).filter(Boolean);
  const linkTo = ({ href, label }) => h("a", { href }, words.chapter(label));
  return h("p", { class: "ml-chapter" }, known.map(linkTo));
}

/** The small map of a head: rows read, columns are read; the row of the selected word is marked. */
export function createHeadMap() {
  const cells = svg("g", { "shape-rendering": "crispEdges" });
  const row = svg("rect", { class: "ml-row-mark", x: 0, height: 1 });
  const root = svg("svg", { class: "ml-map", preserveAspectRatio: "none", "aria-hidden": "true" }, cells, row);
  let drawn = { last: null, key: "" };

  /** All that a head reads in the story; only the mark moves while both are the same. */
  function draw({ traces, selected }, { layer, head }) {
    row.setAttribute("y", selected);
    const [last, key] = [traces.at(-1), `${layer}.${head}`]; // every change of the story reads its last word anew
    if (!last || (drawn.last === last && drawn.key === key)) return;
    drawn = { last, key };
    root.setAttribute("viewBox", `0 0 ${traces.length} ${traces.length}`);
    row.setAttribute("width", traces.length);
    const found = createCells();
    traces.forEach(({ blocks }, y) =>
      blocks[layer].weights[head].forEach((weight, x) => found.add(x, y, weight, "st-read")),
    );
    fill(cells, found.nodes());
  }
  return { root, draw };
}
