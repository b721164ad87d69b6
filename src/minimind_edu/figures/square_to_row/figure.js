// SquareToRow: attention weights of one head, call by call: left all rows, right what a cache leaves to do.

import { WIDE, h, svg, fill, textAt, setSize, clamp, fmt, choice } from "../../web/kit/kit.js";
import { namedOptions, optionsFor, setTraits, prefersReducedMotion } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { createTransport } from "../../web/kit/transport.js";
import { callsSoFar, rotationsOf, placeOf, isWrongKey, wrongWeights } from "./math.js";
import { squareToRowWords } from "./words.js";

const BEAT = 1300; // milliseconds of a call that plays
const WIDEST = 720; // pixels
const CHUNKS = [9, 3, 1];
// Width of the words, gap between the tables, height of a row.
const ROOMY = { word: 108, gap: 34, row: 18 };
const TIGHT = { word: 107, gap: 15, row: 15 };
const LOW = 15.5; // height of a row at the head of a chapter
const HEAD = 20; // the names of the tables
const STRIPS = 25; // keys and values
const NUMBERS = 14; // of the keys, where a bug is about them
const FOOT = 20;
const STRIP = 8; // height
const PITCH = STRIP + 3; // so that their names keep apart
const NAME = { cls: "mm-small mm-strong" }; // of a table
const FAINT = 0.16; // opacity of a weight of 0

const opacityOf = (weight) => (FAINT + (1 - FAINT) * Math.sqrt(weight / 100)).toFixed(2);

/** All that is drawn. */
function stateOf(model) {
  const [stored, shows, chunk, bug] = ["stored", "shows", "chunk", "bug"].map((name) => model.get(name));
  const total = stored.words.length;
  const { last } = callsSoFar(stored.prompt, chunk, total, 0);
  const calls = Math.min(model.get("calls"), last);
  const run = stored.runs[bug][chunk];
  return {
    ...callsSoFar(stored.prompt, chunk, total, calls),
    ...{ shows, chunk, bug, calls, total, run, prompt: stored.prompt, words: stored.words, square: stored.rows },
    next: stored.next,
    earlier: bug === "stale" ? stored.earlier.length : 0,
    parted: run.apart.slice(0, calls).findIndex((gap) => gap > 0),
  };
}

function crossAt(cx, cy, r) {
  return svg("path", { class: "sr-wrong", d: `M${cx - r} ${cy - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}` });
}

function createTables(words, isCompact) {
  const root = svg("svg", { role: "img", class: "sr-tables" });

  /** One row of weights: `from` is the left end of its first cell. */
  function rowOf(weights, { from, y, cell, row, cls, seen = weights.length }) {
    const box = { y: y + 1, width: (cell - 1).toFixed(2), height: row - 2, rx: cell > 12 ? 2 : 1 };
    const cells = weights
      .slice(0, seen)
      .map((weight, t) => svg("rect", { ...box, x: (from + t * cell).toFixed(2), "fill-opacity": opacityOf(weight) }));
    return svg("g", { class: cls }, cells);
  }

  /** The outline of all rows that there will be. */
  function slots(s, from, top, cell, row, earlier) {
    const steps = s.words.map((_, i) => `H${(from + (earlier + i + 1) * cell).toFixed(1)}v${row}`).join("");
    return svg("path", { class: "sr-slots", d: `M${from} ${top}${steps}H${from}Z` });
  }

  function labels(s, { word, row }, top) {
    return [...s.words, s.next[s.total - 1]].map((text, i) => {
      if (i > Math.max(s.held, s.prompt - 1)) return null; // not written yet
      const isNew = i >= s.past && i < s.held;
      const isSaid = s.calls > 0 && i === s.held && i >= s.prompt;
      const cls = isSaid ? "sr-said" : isNew ? "mm-small mm-strong" : "mm-small";
      return textAt(word - 6, top + i * row + row / 2 + 4, text, { anchor: "end", cls });
    });
  }

  /** Keys and values that are kept, as two strips above the table; a bug's numbers above them. */
  function strips(s, { from, y, cell, showsNumbers }) {
    const columns = s.earlier + s.total;
    const [top, parts] = [y + (showsNumbers ? NUMBERS : 0), []];
    for (let t = 0; t < columns; t++) {
      const position = t - s.earlier;
      const isThere = t < s.earlier || position < s.held;
      const isNew = position >= s.past && position < s.held;
      const isWrong = isThere && (t < s.earlier || isWrongKey(position, s));
      const x = (from + t * cell).toFixed(2);
      ["k", "v"].forEach((kind, i) => {
        const bad = isWrong && (kind === "k" || t < s.earlier) ? " sr-bad" : "";
        const cls = isThere ? `sr-kept${isNew ? " sr-fresh" : ""}${bad}` : "sr-empty";
        const box = { x, y: top + i * PITCH, width: (cell - 1).toFixed(2), height: STRIP, rx: 1 };
        parts.push(svg("rect", { ...box, class: cls, "data-tone": kind, "data-sym": kind }));
      });
      if (!showsNumbers || !isThere || t < s.earlier) continue;
      const given =
        s.bug === "again"
          ? rotationsOf(position, s.prompt, s.chunk, s.total, s.calls, s.bug)
          : placeOf(position, s.prompt, s.chunk, s.total, s.bug, s.earlier);
      const looks = { anchor: "middle", cls: isWrong ? "mm-small sr-red" : "mm-small" };
      parts.push(textAt((from + (t + 0.5) * cell - 0.5).toFixed(1), y + 9, given, looks));
    }
    const name = (kind, i) =>
      textAt(from - 4, top + i * PITCH + 7, kind, {
        anchor: "end",
        tone: kind,
        sym: kind,
        cls: "mm-small mm-strong",
      });
    if (showsNumbers) parts.push(textAt(from - 4, y + 9, words.numbers[s.bug], { anchor: "end" }));
    return [...parts, name("k", 0), name("v", 1)];
  }

  function draw(s, given, isArriving) {
    const width = Math.min(given, WIDEST);
    const isBroken = s.shows === "broken";
    const isTight = width < WIDE;
    const { word, gap, ...high } = isTight ? TIGHT : ROOMY;
    const row = isCompact ? Math.min(high.row, LOW) : high.row;
    const wide = (width - word - gap) / 2;
    const cellOf = (columns) => Math.min(wide / columns, 22);
    const [cell, cellBroken] = [cellOf(s.total), cellOf(s.total + s.earlier)];
    const numbers = isBroken && !isTight ? NUMBERS : 0;
    const top = HEAD + numbers + STRIPS;
    const [left, right] = [word, word + s.total * cell + gap];
    const bottom = top + (s.total + 1) * row;
    const y = (i) => top + i * row;
    const parts = [
      textAt(left, 12, words.without(isTight), NAME),
      textAt(right, 12, s.bug === "none" ? words.withCache(isTight) : words.bugged(words.bugs[s.bug], isTight), NAME),
      slots(s, left, top, cell, row, 0),
      slots(s, right, top, cellBroken, row, s.earlier),
      labels(s, { word, row }, top),
      strips(s, {
        from: right,
        y: HEAD,
        cell: cellBroken,
        showsNumbers: numbers && ["again", "offset"].includes(s.bug),
      }),
    ];
    const fresh = `sr-new${isArriving ? " sr-arrive" : ""}`;
    const before = isBroken ? "sr-new sr-past" : "sr-old";
    for (let i = 0; i < s.held; i++) {
      const cls = i >= s.past ? fresh : before;
      parts.push(rowOf(s.square[i], { from: left, y: y(i), cell, row, seen: i + 1, cls }));
      if (i < s.past && !isBroken) continue; // no row of an earlier call is computed with a cache
      const seen = s.earlier + i + 1;
      parts.push(rowOf(s.run.rows[i], { from: right, y: y(i), cell: cellBroken, row, seen, cls }), crosses(s, i));
    }
    if (!isBroken) {
      parts.push(
        countsAt(left, words.inAll(s.held, s.without)),
        countsAt(right, words.inAll(s.held - s.past, s.withCache)),
      );
    }
    const foot = isBroken ? 4 : isTight ? 2 * FOOT : FOOT;
    setSize(root, width, bottom + foot, words.picture(isBroken ? s.held - s.past : s.held, s.held - s.past));

    function crosses({ run, square, earlier }, i) {
      const radius = Math.min(cellBroken / 2 - 1, 4);
      return wrongWeights(run.rows[i], square[i], earlier).map((isWrong, t) =>
        isWrong ? crossAt(right + (t + 0.5) * cellBroken - 0.5, y(i) + row / 2, radius) : null,
      );
    }

    function countsAt(x, [now, all]) {
      if (!isTight) return textAt(x, bottom + 13, now + words.comma + all);
      return [now, all].map((text, line) => textAt(x, bottom + 12 + 16 * line, text));
    }
    fill(root, parts);
  }
  return { root, draw };
}

function verdictOf(s, words) {
  if (!s.calls) return [words.start, ""];
  const word = s.run.said[s.calls - 1];
  if (s.shows === "saved") {
    if (s.isPrefill) return [words.prefill(s.held - s.past, s.past === 0), ""];
    return [words.saved(s.words[s.past], s.held, s.past), ""];
  }
  const gap = s.run.apart[s.calls - 1];
  if (s.parted < 0) return [words.same(word), "good"];
  const sentence = gap ? words.differ(word, s.next[s.held - 1], fmt(gap, 1)) : words.same(word);
  return [`${sentence} ${words.first(s.parted + 1)}`, "bad"];
}

export default figure({
  words: squareToRowWords,
  traits: ["shows", "calls", "chunk", "bug"],
  verdict: "sr-verdict",
  create({ model, words, isCompact, bound, verdict }) {
    const shows = model.get("shows");
    const tables = createTables(words, isCompact);
    const transport = createTransport(words, go, { beat: BEAT, isCompact });
    let isArriving = false;

    function go(direction) {
      const s = stateOf(model);
      isArriving = direction === 1 && !prefersReducedMotion();
      setTraits(model, { calls: clamp(s.calls + direction, 0, s.last) });
      isArriving = false;
    }

    const switches = shows === "broken" && !isCompact ? switchesOf() : null;
    function switchesOf() {
      const bugs = bound(choice, "bug", { label: words.bug, options: namedOptions(words.bugs) });
      const chunks = bound(choice, "chunk", { label: words.chunk, options: optionsFor(CHUNKS) });
      return h("div", { class: "sr-switches" }, bugs, chunks);
    }

    function draw(width) {
      const s = stateOf(model);
      tables.draw(s, width, isArriving);
      transport.set(s.calls, s.last);
      const [sentence, tone] = verdictOf(s, words);
      const title = shows === "broken" && s.bug === "none" ? words.titles.sound : words.titles[shows];
      return isCompact ? {} : { verdict: sentence, tone, title };
    }
    return {
      stage: h("div", { class: "mm-stage sr-stage" }, tables),
      control: h("div", { class: "sr-control" }, isCompact ? null : verdict, transport, switches),
      numbers: null,
      title: isCompact ? words.titleCompact : words.titles[shows],
      caption: words.captions[shows],
      parts: [transport],
      draw,
    };
  },
});
