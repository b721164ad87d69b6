// GuessAhead: a draft guesses words, a large model checks them, and the reader goes from word to word.

import { createBar } from "../../web/kit/bars.js";
import { h, fill, slider, choice, optionsFor, row } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { partsOf, textAfter, countsAt } from "./math.js";
import { guessAheadWords } from "./words.js";

const NO_SPACE_BEFORE = /^[.,:?。，：？]/u;
const CHINESE = /\p{Script=Han}|[。，：？]/u;

/** The text, with the fate of every word that was checked. */
function createText() {
  const root = h("p", { class: "ga-text" });
  function draw(text, table) {
    const shown = text.map(([id, kind], i) => {
      const [word, before] = [table[id], i ? table[text[i - 1][0]] : ""];
      const isJoined = !i || NO_SPACE_BEFORE.test(word) || (CHINESE.test(before) && CHINESE.test(word));
      return [isJoined ? "" : " ", kind ? h("span", { "data-kind": kind }, word) : word];
    });
    fill(
      root,
      shown.flat().filter((part) => part !== ""),
    );
  }
  return { root, draw };
}

/** A row for each word: what both say, what the draft says too often or leaves over, and the dart. */
function createBars(words) {
  const list = h("div", { class: "ga-bars" });
  const sample = ([name, text]) => h("span", {}, h("i", { class: `ga-part ga-${name}` }), text);
  const legend = h("p", { class: "mm-legend" }, Object.entries(words.legend).map(sample));
  const heads = [words.p, words.q].map((cell) => h("span", {}, cell));
  const head = h(
    "div",
    { class: "mm-bar ga-row ga-head" },
    h("span"),
    h("span"),
    h("span", { class: "mm-bar-number" }, heads),
  );
  const root = h("div", { class: "mm-column" }, head, list, legend);

  function drawRow(part, look, table, most) {
    const bar = createBar("ga-row", ["ga-part ga-both", "ga-part ga-often", "ga-part ga-left", "ga-dart"]);
    const span = (from, size) => (size ? [from / most, (from + size) / most] : null);
    const low = Math.min(part.p, part.q);
    const isGuess = part.word === look.word && look.kind !== "free";
    const dart = isGuess ? look.dart / most : null;
    const numbers = [words.percent(part.p), look.kind === "free" ? "–" : words.percent(part.q)];
    bar.set({
      word: table[part.word],
      shares: [span(0, part.both), span(low, part.tooOften), span(low, part.leftover), dart],
      said: numbers.map((number) => h("span", {}, number)),
      label: words.bar(table[part.word], part.p, part.q),
    });
    bar.root.dataset.said = part.word === look.said;
    bar.root.dataset.kind = look.kind;
    return bar;
  }

  function draw(look, table) {
    const parts = look.rows.map(partsOf);
    const most = Math.max(...parts.map(({ p, q }) => Math.max(p, q)));
    fill(
      list,
      parts.map((part) => drawRow(part, look, table, most)),
    );
  }
  return { root, draw };
}

function verdictOf(look, table, words) {
  const [word, said] = [table[look.word], table[look.said]];
  const [, p, q] = look.rows.find(([id]) => id === look.word);
  if (look.kind === "kept") return words.kept(word, p, q);
  return look.kind === "free" ? words.free(said) : words.rejected(word, said);
}

export default figure({
  words: guessAheadWords,
  traits: ["step", "seed"],
  verdict: "ga-verdict",
  create({ model, words, bound }) {
    const [table, start, runs] = ["words", "start", "runs"].map((name) => model.get(name));
    const max = Object.values(runs)[0].length;
    const seeds = optionsFor(Object.keys(runs).map(Number));
    const [text, bars] = [createText(), createBars(words)];

    function draw() {
      const [looks, step] = [runs[model.get("seed")], model.get("step")];
      const look = looks[step - 1];
      text.draw(textAfter(start, looks, step), table);
      bars.draw(look, table);
      const counts = countsAt(looks, step);
      return {
        verdict: verdictOf(look, table, words),
        tone: look.kind === "rejected" ? "bad" : "good",
        numbers: [
          [words.written, String(counts.words)],
          [words.passes, String(counts.passes)],
        ],
      };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column" }, text, bars),
      control: row(bound(slider, "step", { label: words.step, min: 1, max, step: 1 })),
      more: [row(bound(choice, "seed", { label: words.seed, options: seeds }))],
      draw,
    };
  },
});
