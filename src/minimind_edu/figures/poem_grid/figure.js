// PoemGrid: a poem as a grid, its tones, what a model expects where a rhyme is due, and what its heads read there.

import { WIDE, h, svg, fill, setAttributes, setSize, setText, textAt, fmt, clamp } from "../../web/kit/kit.js";
import { choice, namedOptions, optionsFor } from "../../web/kit/kit.js";
import { createBar } from "../../web/kit/bars.js";
import { figure } from "../../web/kit/figure.js";
import { COLUMNS, cellOf, endOf, opposed, middleOf, pathOf, wayOf } from "./math.js";
import { poemGridWords } from "./words.js";

const TRAITS = ["shows", "model", "silent", "first", "line"];
const FIRST = ["秋", "寒", "晴", "阴"];
const LINES = [4, 6, 8];
const BARS = 206; // pixels beside the grid
const UNITS = [22, 34]; // of a cell
const READERS = { 3.1: "v", 2.1: "k", 2.4: "q" };
const SHIFTS = { 3.1: 0, 2.1: 4, 2.4: -4 }; // pixels between their ways
const TONES = { "○": "level", "●": "oblique", "◐": "either", "·": "unknown" };
const GIVEN = endOf(4); // what stands before it is the poet's

const percent = (share, words) => words.percent(fmt(100 * share, share > 0 && share < 0.0095 ? 1 : 0));

/** What is drawn: one octave, what is expected at one of its lines, and how poems of this model keep the rules. */
function stateOf(model, isCompact) {
  const [shows, first] = ["shows", "first"].map((name) => model.get(name));
  const line = isCompact ? LINES[0] : model.get("line");
  const key = model.get(shows === "heads" ? "silent" : "model");
  const { octaves, poems } = model.get("stored");
  const octave = octaves[key][first];
  return { shows, first, line, key, octave, now: octave.lines[line], poems: poems[key] };
}

/** A circle: filled for an oblique tone, half for a character that is both, small for one that is in no list. */
function toneMark(tone, isWrong, [x, y], r) {
  const kind = { class: "pg-tone", "data-tone-kind": tone, "data-wrong": String(isWrong) };
  const circle = svg("circle", { ...kind, cx: x, cy: y, r: tone === "unknown" ? r / 3 : r });
  if (tone !== "either") return circle;
  const half = { class: "pg-tone", "data-tone-kind": "half", d: `M${x} ${y - r}a${r} ${r} 0 0 0 0 ${2 * r}z` };
  return svg("g", {}, circle, svg("path", half));
}

/** The cells, and arcs between them. */
function createGrid(words, isCompact) {
  const root = svg("svg", { role: "img", class: "pg-grid" });
  const arcs = svg("g");
  const cells = svg("g");
  fill(root, arcs, cells);

  function boxOf(place, size, kind) {
    const [x, y] = middleOf(place, size);
    const side = size.unit - 3;
    return svg("rect", {
      class: "pg-box",
      "data-kind": kind,
      x: x - side / 2,
      y: y - side / 2,
      width: side,
      height: size.high - 5,
      rx: 4,
    });
  }

  function draw(s, width) {
    const { text, tones, lines } = s.octave;
    const unit = clamp(Math.floor(width / COLUMNS), ...UNITS);
    const size = { unit, high: Math.round(unit * 1.5), top: 2 };
    const due = endOf(s.line);
    const rows = isCompact ? s.line / 2 : 4;
    const shown = [...text].slice(0, isCompact ? due : rows * COLUMNS);
    const marks = shown.map((character, place) => {
      const [x, y] = middleOf(place, size);
      const [coupled, column] = cellOf(place);
      const isWrong = [1, 3].some(
        (at, i) => place >= 2 * COLUMNS && column === 6 + at && opposed(tones, coupled)[i] === false,
      );
      const tone = TONES[tones[place]];
      return svg(
        "g",
        { class: "pg-cell", "data-given": String(place < GIVEN) },
        svg(
          "text",
          { x, y: y + unit * 0.22, "text-anchor": "middle", style: `font-size: ${unit * 0.64}px` },
          place === due ? "" : character,
        ),
        tone && place !== due && toneMark(tone, isWrong, [x, y + unit * 0.56], unit * 0.09),
      );
    });
    const ends = LINES.filter((line) => endOf(line) < shown.length && line !== s.line && !isCompact);
    fill(
      cells,
      boxOf(endOf(2), size, "first"),
      ends.map((line) => boxOf(endOf(line), size, lines[line].rhymes ? "good" : "bad")),
      boxOf(due, size, "due"),
      marks,
      textAt(...middleOf(due, size).map((at, i) => at + i * unit * 0.22), "?", { anchor: "middle", cls: "mm-strong" }),
    );
    const reads = Object.entries(s.now.reads).flatMap(([head, places]) =>
      places.map(([place, weight]) =>
        svg("path", {
          class: "pg-arc",
          d: pathOf(wayOf(due - 1, place, size, SHIFTS[head])),
          "data-tone": READERS[head],
          "data-silent": String(head === s.key),
          "data-head": head,
          "stroke-width": (1 + 4 * weight).toFixed(2),
        }),
      ),
    );
    fill(arcs, reads);
    setSize(root, COLUMNS * unit, rows * size.high + 10, words.picture([...text].slice(0, due).join(""), s.line));
  }
  return { root, draw };
}

/** The likeliest characters where the rhyme is due. */
function createBars(words) {
  const head = h("p", { class: "mm-label" });
  const bars = Array.from({ length: 5 }, () => createBar("pg-bar", ["pg-share"]));
  const root = h("div", { class: "pg-bars" }, head, bars);
  function draw(s) {
    setText(head, words.due(s.line));
    s.now.likeliest.forEach(([character, share, isRhyme, final], i) => {
      bars[i].root.dataset.rhymes = isRhyme;
      bars[i].set({
        word: [h("b", {}, character), h("small", {}, ` ${final}${isRhyme ? " ✓" : ""}`)],
        shares: [[0, share]],
        value: percent(share, words),
        label: words.bar(character, percent(share, words), isRhyme),
      });
    });
  }
  return { root, draw };
}

function verdictOf(s, words) {
  const [share, poets] = [FIRST.indexOf(s.first), 0].map((at) => percent(s.now.groups[at], words));
  return words.verdict({ line: s.line, first: s.first, share, poets: s.first === FIRST[0] ? null : poets });
}

const meanOf = ([a, b]) => (a === null || b === null ? null : (a + b) / 2);
const judged = (share, words) => (share === null ? "–" : percent(share, words));

function create({ model, words, isCompact, bound }) {
  const shows = model.get("shows");
  const grid = createGrid(words, isCompact);
  const bars = createBars(words);
  const reads =
    shows === "heads"
      ? h(
          "p",
          { class: "mm-legend pg-legend" },
          words.reads.map(([tone, text]) => h("span", { "data-tone": tone }, text)),
        )
      : null;
  const stage = h("div", { class: "mm-stage pg-stage" }, h("div", {}, grid, reads), bars);
  const whose =
    shows === "heads"
      ? bound(choice, "silent", { label: words.silence, options: namedOptions(words.heads) })
      : bound(choice, "model", { label: words.model, options: namedOptions(words.models) });
  const first = bound(choice, "first", { label: words.first, options: optionsFor(FIRST) });
  const line = isCompact ? null : bound(choice, "line", { label: words.line, options: optionsFor(LINES) });

  function draw(width) {
    const s = stateOf(model, isCompact);
    grid.draw(s, width >= WIDE - BARS ? width - BARS : width);
    bars.draw(s);
    const { form, opposite, rhyme, rhyme_chance: chance } = s.poems;
    const numbers = [
      [words.form, judged(form, words)],
      [words.tones, judged(meanOf(opposite), words)],
      [words.rhyme(judged(chance, words)), judged(rhyme, words)],
    ];
    return { verdict: verdictOf(s, words), numbers };
  }
  return {
    stage,
    control: h("div", { class: "pg-control" }, first, whose, line),
    title: words.titles[shows],
    caption: words.captions[shows],
    draw,
  };
}

export default figure({ words: poemGridWords, traits: TRAITS, verdict: "pg-verdict", create });
