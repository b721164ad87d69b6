// WhoWrites: ribbons from five writers, or five words, into the lead of one place over another.

import { NARROW, h, svg, fill, setAttributes, setText, fmt, choice, namedOptions } from "../../web/kit/kit.js";
import { optionsFor, setTraits, textAt, setSize, toggle } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { rowsOf, ribbonsOf, pathOf } from "./math.js";
import { whoWritesWords } from "./words.js";

const TRAITS = ["shows", "model", "silent", "reader", "exchanged"];
const WRITERS = 5;
const NONE = "none";
const SHOWN = 0.05; // a weight from which its number stands below its word
const TINT = 40; // percent of color of a word that is read with 1
const BAR = 7; // width of a writer's bar and of a pile
const SIZES = {
  broad: { left: 122, right: 84, unit: 6.4, least: 31, gap: 5 },
  narrow: { left: 110, right: 66, unit: 5, least: 27, gap: 3 },
};
const HEADS = [1, 2, 3, 4].flatMap((block) => [1, 2, 3, 4].map((head) => `${block}.${head}`));
const TONES = ["v", "v", "ffn", "v", "stream"];

const signed = (x) => (Number(x.toFixed(2)) > 0 ? "+" : "") + fmt(x, 2);

/** What is drawn: the ribbons as numbers, those of all settings of this view, and the names of the rows. */
function stateOf(model, words) {
  const [shows, silent, reader] = ["shows", "silent", "reader"].map((name) => model.get(name));
  const stored = model.get("stored");
  if (shows === "words") {
    const isExchanged = model.get("exchanged");
    const { writes, weights, lead } = stored.readers[isExchanged ? "exchanged" : "as it is"][reader];
    const usual = stored.readers["as it is"][reader].writes;
    const names = stored.places.map((place) => words.word(stored.words[place], place));
    names.push(words.rest(stored.words.length - stored.places.length));
    const all = Object.values(stored.readers).flatMap((heads) => Object.values(heads).map((read) => read.writes));
    const tones = Array(WRITERS).fill("v");
    return { shows, writes, usual, all, names, weights, lead, reader, tones, stored, isChanged: isExchanged };
  }
  const of = stored.models[shows === "models" ? model.get("model") : "living"];
  const [state, usual] = [of.states[silent], of.states[NONE]];
  const names = [
    words.head(of.crosses),
    of.moves.length > 1 ? words.heads(of.moves) : words.head(of.moves[0]),
    words.network,
    words.others(HEADS.length - 1 - of.moves.length),
    words.early,
  ];
  return {
    shows,
    writes: state.writes,
    usual: usual.writes,
    all: Object.values(of.states).map((state) => state.writes),
    names,
    lead: state.lead,
    state,
    whole: usual.lead,
    own: of.own[silent],
    silent,
    isChanged: silent !== NONE,
    tones: TONES,
    stored,
  };
}

/** The story; below its words the weights of a head; at its end the next word. */
function createStory(words, stored) {
  const tokens = stored.words.slice(1).map((word) => {
    const weight = h("b", { class: "ww-weight" });
    return { root: h("span", { class: "ww-word" }, word, weight), weight };
  });
  const slot = h("b", { class: "mm-slot ww-said", "data-sym": "logits" });
  const root = h(
    "p",
    { class: "ww-story", "aria-label": words.story },
    tokens.map(({ root: word }) => [word, " "]),
    slot,
  );
  function draw(s) {
    root.dataset.weights = String(Boolean(s.weights));
    tokens.forEach(({ root: word, weight }, i) => {
      const share = s.weights?.[i + 1] ?? 0;
      word.style.setProperty("--ww-share", `${(TINT * share).toFixed(1)}%`);
      setText(weight, share >= SHOWN ? fmt(share, 2) : "");
    });
    slot.hidden = s.shows === "words";
    setText(slot, s.state?.word ?? "");
  }
  return { root, draw };
}

/** Ribbons from the writers on the left to the two words on the right. */
function createRibbons(words) {
  const root = svg("svg", { role: "img", class: "ww-ribbons" });
  const rows = Array.from({ length: WRITERS }, () => {
    const parts = {
      ghost: svg("rect", { class: "ww-ghost", width: BAR + 4, rx: 2 }),
      ribbon: svg("path", { class: "ww-ribbon" }),
      bar: svg("rect", { class: "ww-bar", width: BAR }),
      name: svg("text", { class: "ww-name" }),
      value: svg("text", { class: "mm-strong" }),
    };
    return { ...parts, root: svg("g", {}, Object.values(parts)) };
  });
  const piles = ["new", "old"].map(() => svg("rect", { class: "ww-pile", width: BAR }));
  const labels = svg("g", { "data-sym": "logits" });
  const lead = svg("text", { class: "ww-lead" });
  fill(
    root,
    rows.map((row) => row.root),
    piles,
    labels,
    lead,
  );
  function draw(s, width) {
    const { left, right, ...size } = SIZES[width < NARROW ? "narrow" : "broad"];
    const places = rowsOf(s.all, size);
    const { ribbons, piles: heights, bottom } = ribbonsOf(s.writes, places, size.unit);
    const [x1, x2] = [left + BAR, width - right - BAR];
    const sums = [true, false].map((isFor) => s.writes.reduce((sum, x) => sum + (x >= 0 === isFor ? x : 0), 0));
    const list = s.names.map((name, i) => words.ribbon(name, signed(s.writes[i]))).join(", ");
    setSize(root, width, Math.ceil(bottom) + 2, words.picture(list, signed(sums[0]), signed(-sums[1])));
    rows.forEach((row, i) => {
      const [ribbon, [top, height]] = [ribbons[i], places[i]];
      const middle = top + height / 2;
      const usual = Math.abs(s.usual[i]) * size.unit;
      row.root.dataset.tone = s.tones[i];
      row.root.dataset.for = String(ribbon.isFor);
      setAttributes(row.ribbon, { d: pathOf(ribbon, x1, x2) });
      setAttributes(row.bar, { x: left, y: ribbon.from.toFixed(1), height: ribbon.size.toFixed(1) });
      setAttributes(row.ghost, { x: left - 2, y: (middle - usual / 2).toFixed(1), height: usual.toFixed(1) });
      row.ghost.style.display = s.isChanged ? "" : "none";
      setAttributes(row.name, { x: 0, y: middle - 2 });
      setText(row.name, s.names[i]);
      setAttributes(row.value, { x: 0, y: middle + 13 });
      setText(row.value, signed(s.writes[i]));
    });
    heights.forEach(([y, height], i) => setAttributes(piles[i], { x: x2, y: y.toFixed(1), height: height.toFixed(1) }));
    const at = width - right + 6;
    const [low, high] = [Math.max(16, heights[0][1] / 2), Math.min(bottom - 18, bottom - heights[1][1] / 2)];
    setAttributes(lead, { x: at, y: bottom / 2 + 11 });
    setText(lead, fmt(s.lead, 2));
    fill(
      labels,
      textAt(at, bottom / 2 - 6, words.lead),
      textAt(at, low - 3, s.stored.new, { cls: "mm-strong" }),
      textAt(at, low + 12, signed(sums[0])),
      textAt(at, high - 3, s.stored.old, { cls: "mm-strong" }),
      textAt(at, high + 12, signed(-sums[1])),
    );
  }
  return { root, draw };
}

/** A button for each head: pressed, it is silenced; pressed again, it speaks. */
function createSwitches(words, model) {
  const press = (head) => setTraits(model, { silent: model.get("silent") === head ? NONE : head });
  const buttons = HEADS.map((head) =>
    h("button", { class: "ww-chip", type: "button", "aria-label": words.chip(head), onClick: () => press(head) }, head),
  );
  const label = h("span", { class: "mm-label" }, words.silence);
  const root = h(
    "div",
    { class: "ww-switches", role: "group", "aria-label": words.silence },
    label,
    h("div", {}, buttons),
  );
  function draw() {
    buttons.forEach((press, i) => setAttributes(press, { "aria-pressed": String(HEADS[i] === model.get("silent")) }));
  }
  return { root, draw };
}

function verdictOf(s, words) {
  if (s.shows === "words") {
    const { words: tokens, places } = s.stored;
    const most = [...places].sort((a, b) => s.weights[b] - s.weights[a]).slice(0, 2);
    const read = words.and(most.map((place) => words.read(words.word(tokens[place], place), fmt(s.weights[place], 2))));
    return words.reads({ head: s.reader, lead: fmt(s.lead, 2), words: read });
  }
  if (s.silent === NONE) return words.all(fmt(s.lead, 2));
  const gone = s.whole - s.lead;
  return words.without({
    head: s.silent,
    written: fmt(s.own, 2),
    lead: fmt(s.lead, 2),
    gone: fmt(Math.abs(gone), 2),
    isLess: gone >= 0,
    word: s.state.word,
    share: fmt(100 * s.state.share, 0),
  });
}

function create({ model, words, isCompact, bound }) {
  const shows = model.get("shows");
  const story = createStory(words, model.get("stored"));
  const ribbons = createRibbons(words);
  const switches = shows === "words" ? null : createSwitches(words, model);
  const controls = {
    writers: () => switches,
    models: () => [bound(choice, "model", { label: words.model, options: namedOptions(words.models) }), switches],
    words: () => [
      bound(choice, "reader", { label: words.reader, options: optionsFor(["4.2", "4.1"]) }),
      bound(toggle, "exchanged", { label: words.exchange(model.get("stored").tells) }),
    ],
  };
  const stage = h("div", { class: "mm-stage mm-column ww-stage" }, story, ribbons);

  function draw(width) {
    const s = stateOf(model, words);
    story.draw(s);
    ribbons.draw(s, width);
    switches?.draw();
    return { verdict: verdictOf(s, words) };
  }
  return {
    stage,
    control: h("div", { class: "ww-control" }, controls[shows]()),
    title: isCompact ? words.titleCompact : words.titles[shows],
    caption: words.captions[shows],
    draw,
  };
}

export default figure({ words: whoWritesWords, traits: TRAITS, verdict: "ww-verdict", create });
