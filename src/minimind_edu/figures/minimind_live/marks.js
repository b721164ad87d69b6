// Words and numbers of the living model as small drawings: chips with glosses, and rows of numbers as colored cells.

import { h, svg, fill, wordsOf } from "../kit/kit.js";
import { phraseGlosses } from "../live/glosses.js";

const LEVELS = 4; // shades of a cell
const FAINT = 0.06; // of the strongest: below it a cell is not drawn

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

/** Cells of a table as few paths, a path for each shade: add(x, y, share of the strongest, class), then nodes(). */
export function createCells() {
  const paths = new Map();
  const add = (x, y, share, cls) => {
    if (share < FAINT) return;
    const key = `ml-level-${Math.min(LEVELS, Math.ceil(share * LEVELS))} ${cls}`;
    paths.set(key, `${paths.get(key) ?? ""}M${x} ${y}h1v1h-1z`);
  };
  const nodes = () => [...paths].map(([name, d]) => svg("path", { class: name, d }));
  return { add, nodes };
}

/** A vector as a row of cells: the sign is the hue, the size the shade. */
export function createStrip(label) {
  const root = svg("svg", { class: "ml-strip", preserveAspectRatio: "none", role: "img", "aria-label": label });
  const draw = (values, scale = 2 * rootMeanSquare(values)) => {
    root.setAttribute("viewBox", `0 0 ${values.length} 1`);
    const cells = createCells();
    values.forEach((x, i) => cells.add(i, 0, Math.abs(x) / (scale || 1), x > 0 ? "ml-plus" : "ml-minus"));
    fill(root, cells.nodes());
  };
  return { root, draw };
}

export const rootMeanSquare = (values) => Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);

/** Links to the chapters that teach parts of the model. links: part -> { href, label }. */
export function linksToChapters(words, links, parts) {
  const known = parts.map((part) => links[part]).filter(Boolean);
  const one = ({ href, label }) => h("a", { href }, words.chapter(label));
  return h("p", { class: "ml-chapter" }, known.map(one));
}

/** The map of a head: rows read, columns are read; the row of one word is marked. */
export function createHeadMap() {
  const cells = svg("g", { "shape-rendering": "crispEdges" });
  const row = svg("rect", { class: "ml-row-mark", x: 0, height: 1 });
  const root = svg("svg", { class: "ml-map", preserveAspectRatio: "none", "aria-hidden": "true" }, cells, row);

  /** All that this head reads in a story. */
  function draw(traces, layer, head) {
    const length = traces.length || 1;
    root.setAttribute("viewBox", `0 0 ${length} ${length}`);
    const found = createCells();
    traces.forEach((trace, y) =>
      trace.blocks[layer].weights[head].forEach((weight, x) => found.add(x, y, weight, "ml-read")),
    );
    fill(cells, found.nodes());
    row.setAttribute("width", length);
  }
  const mark = (at) => row.setAttribute("y", at);
  return { root, draw, mark };
}
