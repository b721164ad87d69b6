// MovedQuery: the story of one head, its query's arrows on four dials, and the word that follows when the query moves.

import {
  NARROW,
  h,
  svg,
  fill,
  setAttributes,
  setText,
  fmt,
  slider,
  announcement,
  controlsOf,
} from "../../web/kit/kit.js";
import { setTraits, wordsOf, frame, mount } from "../../web/kit/kit.js";
import { createBar } from "../../web/kit/bars.js";
import { ropeFrequencies } from "../../web/kit/rope.js";
import { PAIRS, arrowsOf, addsOf, lettersApart, weightsOf, sumOf } from "./math.js";
import { movedQueryWords } from "./words.js";

const TRAITS = ["shows", "back", "start", "word"];
const MIA = 23; // the word before the query
const RIM = 96; // a dial's radius, in drawing units
const DEGREES = 180 / Math.PI;
const SHOWN = 0.05; // a weight from which its number stands below its word

const signed = (x, digits) => (Number(x.toFixed(digits)) > 0 ? "+" : "") + fmt(x, digits);
const percentOf = (share) => fmt(100 * share, share > 0.999 || share < 0.001 ? 2 : 1);

/** Everything that is drawn. */
function stateOf(model) {
  const traits = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const { words, query, keys, following, base } = model.get("stored");
  const last = words.length - 1;
  const at = traits.start + last - traits.back;
  const adds = keys.map((key, i) => addsOf(query, key, at, traits.start + i, base));
  const scores = adds.map(sumOf);
  const weights = weightsOf(scores);
  const shown = { key: [MIA], keys: [MIA, traits.word] }[traits.shows];
  const letters = shown.map((i) => words[i][0].toUpperCase());
  if (letters[1] === letters[0] && letters.length > 1) letters[1] += "′";
  const frequencies = ropeFrequencies(query.length, base);
  return {
    ...traits,
    words,
    query,
    keys,
    next: following[traits.back],
    last,
    at,
    adds,
    scores,
    weights,
    shown,
    letters,
    frequencies,
  };
}

/** The story as words; below each its weight, and above one of them the query. */
function createStory(words, model, isCompact) {
  const tokens = model.get("stored").words;
  const press = (i) => setTraits(model, { word: i });
  const chips = tokens.map((word, i) => {
    const canBe = !isCompact && i > 0 && i < MIA;
    const [text, weight, letter] = [
      h("span", {}, word),
      h("b", { class: "mq-weight" }),
      h("i", { class: "mq-letter" }),
    ];
    const root = h(canBe ? "button" : "span", {
      class: "mq-word",
      type: canBe && "button",
      onClick: canBe && (() => press(i)),
    });
    root.append(letter, text, weight);
    return { root, weight, letter };
  });
  const flag = h("i", { class: "mq-flag" }, "q");
  const root = h(
    "div",
    { class: "mq-story", role: "group", "aria-label": words.story },
    chips.map((chip) => chip.root),
  );
  function draw(s) {
    const hasWeights = s.shows === "keys";
    root.dataset.weights = String(hasWeights);
    chips.forEach(({ root: chip, weight, letter }, i) => {
      const share = s.weights[i];
      chip.style.setProperty("--mq-share", `${(hasWeights ? 42 * share : 0).toFixed(1)}%`);
      setText(weight, hasWeights && share >= SHOWN ? fmt(share, 2) : "");
      const key = s.shown.indexOf(i);
      setText(letter, key < 0 ? "" : s.letters[key]);
      chip.dataset.place = i === s.last ? "query" : "";
      chip.dataset.left = String(i === s.last && s.back > 0);
      chip.disabled = chip.localName === "button" && s.shows !== "keys";
      if (chip.localName === "button")
        setAttributes(chip, {
          "aria-label": words.chipLabel(s.words[i], fmt(share, 2)),
          "aria-pressed": String(i === s.word && key >= 0),
        });
    });
    const host = chips[s.last - s.back].root;
    if (flag.parentNode !== host) host.append(flag);
  }
  return { root, draw };
}

/** An arrow that rotates: dashed for the second key. */
function createArrow(tone, isSecond) {
  const shaft = svg("line", { class: `mq-shaft${isSecond ? " mq-second" : ""}`, x1: 0, y1: 0, y2: 0 });
  const head = svg("path", { class: "mq-head", d: "M3 0L-15 9L-15 -9Z" });
  const turning = svg("g", { class: "mq-arrow" }, shaft, head);
  const letter = svg("text", { class: "mq-tip" });
  const root = svg("g", { "data-tone": tone, "data-sym": tone }, turning, letter);
  function draw(length, angle) {
    setAttributes(shaft, { x2: Math.max(0, length - 10).toFixed(1) });
    setAttributes(head, { transform: `translate(${length.toFixed(1)} 0)` });
    turning.style.transform = `rotate(${(-angle * DEGREES).toFixed(2)}deg)`;
  }
  function name(text, [x, y]) {
    setAttributes(letter, { x: x.toFixed(1), y: y.toFixed(1) });
    setText(letter, text);
  }
  return { root, draw, name };
}

/** What a column adds to the score of each key. */
function createAdds() {
  const rows = [0, 1].map(() => {
    const [letter, bar, number] = [h("span"), h("i"), h("b")];
    return {
      root: h("div", { class: "mq-add" }, letter, h("span", { class: "mq-bar" }, bar), number),
      letter,
      bar,
      number,
    };
  });
  const root = h("div", { class: "mq-adds" }, rows);
  function draw(letters, values, largest, isSum) {
    root.dataset.sum = String(isSum);
    rows.forEach((row, i) => {
      row.root.hidden = i >= values.length;
      if (row.root.hidden) return;
      setText(row.letter, letters[i]);
      setText(row.number, isSum ? fmt(values[i], 2) : signed(values[i], 2));
      const share = (50 * values[i]) / largest;
      row.bar.className = share < 0 ? "mq-minus" : "mq-plus";
      Object.assign(row.bar.style, { left: `${50 + Math.min(0, share)}%`, width: `${Math.abs(share)}%` });
    });
  }
  return { root, draw };
}

function createDial(words, pair, unit) {
  const arrows = [createArrow("k", false), createArrow("k", true), createArrow("q", false)];
  const drawing = svg(
    "svg",
    { viewBox: "-100 -100 200 200", role: "img" },
    svg("circle", { class: "mq-face", r: RIM }),
    svg("path", { class: "mm-level", d: `M${-RIM} 0H${RIM}M0 ${-RIM}V${RIM}` }),
    arrows.map((arrow) => arrow.root),
  );
  const speed = h("span", { "data-sym": "theta" });
  const adds = createAdds();
  const root = h(
    "div",
    { class: "mq-dial" },
    h("p", {}, h("b", {}, words.pair(pair)), " ", speed, h("span", { class: "mq-unit" }, words.unit)),
    drawing,
    adds,
  );
  function draw(s, largest, gap) {
    const turned = (vector, position) => {
      const [length, angle] = arrowsOf(vector)[pair];
      return [length * unit, angle + position * s.frequencies[pair]];
    };
    const [length, angle] = turned(s.query, s.at);
    const shown = [...s.shown.map((word) => turned(s.keys[word], s.start + word)), [length, angle]];
    const drawn = [...arrows.slice(0, s.shown.length), arrows[2]];
    const places = lettersApart(shown, gap);
    for (const arrow of arrows) arrow.root.style.display = drawn.includes(arrow) ? "" : "none";
    drawn.forEach((arrow, i) => {
      arrow.draw(...shown[i]);
      arrow.name(s.letters[i] ?? "q", places[i]);
    });
    setText(speed, words.speed(fmt(s.frequencies[pair] * DEGREES, 1)));
    setAttributes(drawing, { "aria-label": words.dial(pair, fmt((angle * DEGREES) % 360, 0)) });
    adds.draw(
      s.letters,
      s.shown.map((word) => s.adds[word][pair]),
      largest,
      false,
    );
  }
  return { root, draw };
}

function renderMoved({ model, el }) {
  const words = wordsOf(movedQueryWords);
  const isCompact = Boolean(model.get("compact"));
  const shows = model.get("shows");
  const { bound, follow } = controlsOf(model);
  const { query, keys } = model.get("stored");
  const fast = [query, ...keys].flatMap((vector) => arrowsOf(vector).slice(0, PAIRS));
  const unit = RIM / Math.max(...fast.map(([length]) => length));
  const longest = Math.max(
    ...[...keys].flatMap((key) =>
      addsOf(query, key, 0, 0, 1e4).map((_, i) => arrowsOf(query)[i][0] * arrowsOf(key)[i][0]),
    ),
  );
  const largest = longest / Math.sqrt(query.length);
  const story = createStory(words, model, isCompact);
  const dials = Array.from({ length: PAIRS }, (_, pair) => createDial(words, pair, unit));
  const [slower, whole] = [createAdds(), createAdds()];
  const column = (label, adds) => h("div", { class: "mq-sum" }, h("p", {}, label), adds);
  const sums = [column(words.slower, slower), column(words.score, whole)];
  const dialBox = h("div", { class: "mq-dials mq-still" }, dials, isCompact ? null : sums);
  const bars = [0, 1].map(() => createBar("mq-next", ["mm-after"]));
  const lead = h("p", { class: "mq-lead" });
  const nextBox = h("div", { class: "mq-following", "data-sym": "logits" }, lead, bars);
  const verdict = announcement("mm-verdict mq-verdict");
  const start = bound(slider, "start", { label: words.start, min: 0, max: 100, step: 1, format: words.backValue });
  const back = bound(slider, "back", {
    label: words.back,
    min: 0,
    max: 12,
    step: 1,
    tone: "q",
    sym: "m",
    format: words.backValue,
  });
  for (const { input } of [back, start]) input.addEventListener("input", () => dialBox.classList.remove("mq-still"));
  const stage = h("div", { class: "mm-stage mm-column mq-stage" }, story, dialBox, nextBox);
  const control = h("div", { class: "mq-control" }, shows === "key" ? [start, back] : back, isCompact ? null : verdict);
  const title = words.titles[isCompact ? "head" : shows];
  const root = frame({ ...words, title, caption: words.captions[shows] }, { stage, control }, isCompact);
  root.classList.add("mq-fig");
  root.dataset.shows = shows;

  function draw(width) {
    const s = stateOf(model);
    const gap = width < NARROW ? 48 : isCompact ? 40 : 30; // between letters, in units of a dial
    story.draw(s);
    dials.forEach((dial) => dial.draw(s, largest, gap));
    const slow = s.shown.map((word) => sumOf(s.adds[word].slice(PAIRS)));
    slower.draw(s.letters, slow, 1, true);
    whole.draw(
      s.letters,
      s.shown.map((word) => s.scores[word]),
      1,
      true,
    );
    nextBox.hidden = shows !== "keys";
    setText(lead, words.following(fmt(s.next.lead, 2)));
    ["kitchen", "garden"].forEach((room, i) => {
      const share = words.percent(percentOf(s.next.shares[i]));
      bars[i].set({ word: room, shares: [[0, s.next.shares[i]]], value: share, label: words.bar(room, share) });
    });
    const most = s.weights.indexOf(Math.max(...s.weights));
    const speed = s.frequencies[1] * DEGREES;
    const [m, n] = [s.at, s.start + MIA];
    const [query, key] = [m, n].map((position) => fmt(position * speed, 0));
    const sentences = {
      key: () => words.rotated({ m, n, speed: fmt(speed, 1), query, key, score: fmt(s.scores[MIA], 2) }),
      keys: () => words.told({ back: s.back, word: s.words[most], weight: fmt(s.weights[most], 2), next: s.next.word }),
    };
    verdict.set(sentences[shows]());
    follow();
  }
  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw });
}

export default { render: renderMoved };
