// GuessAhead: the reader or the draft guesses three words, the large model checks them, and what comes out is counted.

import { createBar } from "../../web/kit/bars.js";
import { h, fill, button, choice, namedOptions, fmt, grouped } from "../../web/kit/kit.js";
import { setTraits, prefersReducedMotion } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { OTHERS, partsOf, rowsAfter, roundsOf, gapOf, listedRows } from "./math.js";
import { guessAheadWords } from "./words.js";

const NAMES = ["first", "second", "third"];
const NO_SPACE_BEFORE = /^[.,:?。，：？]/u;
const MOST = 5000; // rounds
const SOME = [20, 1000];
const FRAMES = 40; // in which rounds are drawn

/** The story after a round of guesses; replacement: the word in place of one, or false, if all stay. */
function createText(words) {
  const root = h("p", { class: "ga-text" });

  function draw(start, { guessed, kept, replacement }, isFresh) {
    const now = replacement === false ? [[words.free, "free"]] : [[replacement, "rejected"]];
    const kinds = guessed.map((word, i) => [word, i < kept ? "kept" : "thrown"]);
    const parts = [...kinds.slice(0, kept), ...now, ...kinds.slice(kept)];
    const shown = parts.map(([word, kind], i) => {
      const space = NO_SPACE_BEFORE.test(word) ? "" : " ";
      return [space, h("span", { "data-kind": kind, style: `--ga-beat: ${i}` }, word)];
    });
    root.dataset.fresh = isFresh;
    fill(root, [start, shown].flat(2).filter(Boolean));
  }
  return { root, draw };
}

/** A list for a place: a row for each word, its bar by the large model, and how often it came. Rows may be pressed. */
function createList(words, head, onPress) {
  const list = h("div", { class: "ga-list", role: "group", "aria-label": head });
  const root = h("div", { class: "ga-place" }, h("p", { class: "mm-label" }, head), list);
  const bars = new Map();

  function rowOf(word) {
    if (!bars.has(word))
      bars.set(word, createBar("ga-row", ["mm-said", "mm-tick"], word === OTHERS ? null : () => onPress(word)));
    return bars.get(word);
  }

  function draw(rows, counts, nameOf, guess) {
    const [whole, total] = [rows.reduce((sum, [, p]) => sum + p, 0), sumOf(counts)];
    const shown = rows.map(([word, p]) => {
      const [bar, share] = [rowOf(word), total ? (counts[word] ?? 0) / total : null];
      const value = words.percent(fmt((100 * p) / whole, 0));
      const came = share === null ? words.nothing : words.percent(fmt(100 * share, 0));
      bar.set({
        word: nameOf(word),
        shares: [[0, p / whole], share],
        value,
        label: words.bar(nameOf(word), value, came),
      });
      if (word !== OTHERS) bar.root.setAttribute("aria-pressed", word === guess);
      return bar.root;
    });
    if (shown.some((node, i) => list.children[i] !== node) || list.children.length !== shown.length) fill(list, shown);
  }
  return { root, draw };
}

const sumOf = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);

/** The first word's bars in parts: what both say, what the guesser says too often or leaves over, dart, count. */
function createParts(words) {
  const list = h("div", { class: "ga-parts" });
  const sample = ([name, text]) => h("span", {}, h("i", { class: `ga-part ga-${name}` }), text);
  const legend = h("p", { class: "mm-legend" }, Object.entries(words.legend).map(sample));
  const heads = [words.p, words.q].map((name) => h("span", {}, name));
  const head = h(
    "div",
    { class: "mm-bar ga-part-row ga-head" },
    h("span"),
    h("span"),
    h("span", { class: "mm-bar-number" }, heads),
  );
  const root = h("div", { class: "mm-column" }, head, list, legend);
  const MARKS = ["ga-part ga-both", "ga-part ga-often", "ga-part ga-left", "mm-tick", "ga-dart"];

  function draw(rows, counts, nameOf, last) {
    const [most, total] = [Math.max(...rows.flatMap(([, p, q]) => [p, q])), sumOf(counts)];
    const scale = most / rows.reduce((sum, [, p]) => sum + p, 0);
    const shown = rows.map((item) => {
      const part = partsOf(item);
      const bar = createBar("ga-part-row", MARKS);
      const span = (from, size) => (size ? [from / most, (from + size) / most] : null);
      const share = total ? (counts[part.word] ?? 0) / total : null;
      const isGuess = last && part.word === last.guessed[0];
      const [p, q] = [part.p, part.q].map((x) => words.percent(fmt(x / 10, 0)));
      const came = share === null ? words.nothing : words.percent(fmt(100 * share, 0));
      bar.set({
        word: nameOf(part.word),
        shares: [
          span(0, part.both),
          span(part.both, part.tooOften),
          span(part.both, part.leftover),
          share === null ? null : Math.min(share / scale, 1),
          isGuess ? last.dart / most : null,
        ],
        value: [p, q].map((number) => h("span", {}, number)),
        label: words.barDraft(nameOf(part.word), p, q, came),
      });
      bar.root.dataset.kept = Boolean(isGuess && last.kept > 0);
      return bar;
    });
    fill(list, shown);
  }
  return { root, draw };
}

/** How many of the rounds are shown: those that were pressed for arrive in FRAMES frames, a single one at once. */
function createRounds(model, redraw) {
  let [shown, step, frame, isOne] = [model.get("rounds"), 0, 0, model.get("rounds") === 1];

  function advance() {
    frame = 0;
    shown += step;
    redraw();
  }

  function play(more) {
    const rounds = Math.min(model.get("rounds") + more, MOST);
    isOne = more === 1;
    step = Math.ceil((rounds - shown) / FRAMES);
    if (isOne || prefersReducedMotion()) shown = rounds;
    setTraits(model, { rounds });
  }

  /** Asks for the next frame, if there are more to come. */
  function now() {
    const rounds = model.get("rounds");
    if (!step || shown > rounds) shown = rounds; // set by another hand
    if (shown < rounds) frame ||= requestAnimationFrame(advance);
    return { rounds: shown, isOne };
  }
  return { play, now, release: () => cancelAnimationFrame(frame) };
}

export default figure({
  words: guessAheadWords,
  traits: ["shows", "rule", "rounds", "seed", ...NAMES],
  verdict: "ga-verdict",
  create({ model, words, isCompact, bound, verdict, numbers, redraw }) {
    const [table, choices, places, tree] = ["words", "choices", "places", "tree"].map((name) => model.get(name));
    const isDraft = model.get("shows") === "draft";
    const named = isDraft ? places : choices[0];
    const start = joined(model.get("start").map((id) => table[id]));
    const nameOf = (word) => (word === OTHERS ? words.others : table[word]);

    const text = createText(words);
    const press = (name) => (word) => setTraits(model, { [name]: table[word] });
    const lists = NAMES.map((name, i) => createList(words, words.heads[i], press(name)));
    const parts = createParts(words);
    const rounds = createRounds(model, redraw);
    const buttons = [1, ...SOME].map((count) =>
      button({ label: words.play[count], onClick: () => rounds.play(count) }),
    );
    buttons[1].root.classList.add("mm-primary");
    const rule = bound(choice, "rule", { label: words.rule, options: namedOptions(words.rules) });
    const again = button({ label: words.again, onClick: () => setTraits(model, { rounds: 0 }) });
    const seed = button({ label: words.seed, onClick: () => setTraits(model, { seed: model.get("seed") + 1 }) });

    function drawText(last, isOne) {
      const guessed = last ? last.guessed.map(nameOf) : [];
      const replacement = last ? last.said !== null && nameOf(last.said) : "…";
      text.draw(start, { guessed, kept: last?.kept ?? 0, replacement }, isOne);
    }

    function drawLists(guess, came) {
      lists.forEach((list, i) => {
        const rows = listedRows(rowsAfter(tree, guess.slice(0, i), guess), choices[i]);
        list.draw(rows, collected(came[i], choices[i]), nameOf, guess[i]);
      });
    }

    function verdictOf({ last, perRound }, now, first, counts) {
      if (!last) return isDraft ? words.askDraft : words.ask;
      if (now.isOne) {
        return last.said === null ? words.kept : words.rejected(nameOf(last.guessed[last.kept]), nameOf(last.said));
      }
      const [word, p] = first.find(([id]) => id === (isDraft ? first[0][0] : table.indexOf(model.get("first"))));
      const count = grouped(counts[word] ?? 0);
      return words.after(nameOf(word), count, grouped(now.rounds), words.percent(fmt(p / 10, 0)), perRound);
    }

    function draw() {
      const now = rounds.now();
      const guess = isDraft ? null : NAMES.map((name) => table.indexOf(model.get(name)));
      const settings = { guess, rule: model.get("rule"), rounds: now.rounds, seed: model.get("seed") };
      const { last, written, came } = roundsOf(tree, settings);
      const first = listedRows(rowsAfter(tree, [], guess), named);
      const counts = collected(came[0], named);
      drawText(last, now.isOne);
      if (isDraft) parts.draw(first, counts, nameOf, last);
      else drawLists(guess, came);
      const perRound = last ? fmt(written / now.rounds, 2) : words.nothing;
      const gap = gapOf(first, counts);
      const title = isDraft ? words.titles.draft : words.titles[model.get("rule")];
      return {
        ...(isCompact ? {} : { title }),
        verdict: verdictOf({ last, perRound }, now, first, counts),
        numbers: [
          [words.numbers.rounds, grouped(now.rounds)],
          [words.numbers.words, perRound],
          [words.numbers.gap, gap === null ? words.nothing : words.percent(fmt(100 * gap, 0))],
        ],
      };
    }
    const played = h("div", { class: "ga-buttons" }, buttons);
    return {
      caption: isDraft ? words.captionDraft : words.caption,
      stage: h("div", { class: "mm-stage mm-column" }, text, isDraft ? parts : h("div", { class: "ga-lists" }, lists)),
      control: h("div", { class: "ga-control" }, played, isCompact ? verdict : isDraft ? null : rule),
      numbers: isCompact ? numbers : h("div", {}, verdict, numbers),
      more: [h("div", { class: "ga-buttons" }, again, seed)],
      parts: [rounds],
      draw,
    };
  },
});

/** Counts of the named words, and those of all others together. */
function collected(counts, named) {
  const listed = Object.fromEntries(named.filter((word) => word in counts).map((word) => [word, counts[word]]));
  const rest = sumOf(counts) - sumOf(listed);
  return rest ? { ...listed, [OTHERS]: rest } : listed;
}

/** Words as a text: no space before a sign. */
function joined(words) {
  return words.reduce((text, word) => text + (text && !NO_SPACE_BEFORE.test(word) ? " " : "") + word, "");
}
