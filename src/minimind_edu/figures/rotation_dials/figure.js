// RotationDials: one dial a pair. Positions turn the arrows, dragging an arrow changes the query or the key itself.

import {
  h,
  fill,
  clamp,
  fmt,
  grouped,
  slider,
  toggle,
  choice,
  optionsFor,
  button,
  readout,
} from "../../web/kit/kit.js";
import { controlsOf, row, prefersReducedMotion, setTraits, wordsOf, frame, mount } from "../../web/kit/kit.js";
import { coverable, createSource } from "../../web/live/source.js";
import { createWordLine } from "../../web/live/word_line.js";
import { pairChannels, turnForPosition, ropeScore, cosineOnlyScore } from "../../web/kit/rope.js";
import { LAYOUT, LAST, situation, dialReach } from "./views.js";
import { createDial, createRuler, createStrip } from "./views.js";
import { rotationDialsWords } from "./words.js";

const POSITIONS_PER_SECOND = 5;
const TRAITS = ["query", "key", "query_position", "key_position", "rope_base"];
const whole = (x) => fmt(x, 0);

/** Let both positions run along the ruler; with reduced motion, jump eight positions instead. */
function createPlayer(positions, draw) {
  let frameId = null;
  const stop = () => {
    if (frameId === null) return;
    cancelAnimationFrame(frameId);
    frameId = null;
    positions.settle();
    draw();
  };
  function start() {
    const { m, n } = positions.read();
    const end = LAST - Math.abs(m - n);
    const low = Math.min(m, n);
    if (prefersReducedMotion()) {
      positions.save(positions.slid(low + 8 > end ? 0 : low + 8));
      return;
    }
    const origin = low >= end ? 0 : low;
    let began = null;
    const step = (time) => {
      began ??= time;
      const first = Math.min(end, origin + ((time - began) / 1000) * POSITIONS_PER_SECOND);
      positions.pass(first);
      if (first < end) {
        frameId = requestAnimationFrame(step);
        draw();
      } else stop();
    };
    frameId = requestAnimationFrame(step);
  }
  return { start, stop, playing: () => frameId !== null };
}

/** Reads and writes the positions; `between` holds them while both slide, when they are no whole numbers. */
function createPositions(model) {
  let between = null;
  const read = () => between ?? { m: model.get("query_position"), n: model.get("key_position") };
  const slid = (first) => {
    const { m, n } = read();
    const shift = clamp(first, 0, LAST - Math.abs(m - n)) - Math.min(m, n);
    return { m: m + shift, n: n + shift };
  };
  const apart = (distance) => {
    const n = clamp(read().n, Math.max(0, -distance), LAST - Math.max(0, distance));
    return { m: n + distance, n };
  };
  const save = ({ m, n }) => {
    between = null;
    const [query, key] = [m, n].map((position) => clamp(Math.round(position), 0, LAST));
    setTraits(model, { query_position: query, key_position: key });
  };
  const settle = () => {
    const { m, n } = read();
    save(slid(Math.round(Math.min(m, n)))); // rounding one by one could change their distance
  };
  return {
    read,
    slid,
    apart,
    save,
    settle,
    isBetween: () => between !== null,
    pass: (first) => (between = slid(first)),
  };
}

/** Give the raw vector the values with which, turned for its position, its arrow points at `tip`. */
function dragArrow(model, name, position, channels, tip, reach) {
  const vector = model.get(name);
  const base = model.get("rope_base");
  const turned = turnForPosition(vector, position, base, LAYOUT, LAYOUT);
  const length = Math.hypot(...tip);
  const fitting = clamp(length, 0.1, reach) / (length || 1);
  channels.forEach((channel, i) => (turned[channel] = tip[i] * fitting));
  const raw = turnForPosition(turned, -position, base, LAYOUT, LAYOUT);
  const moved = (old, channel) => (channels.includes(channel) ? Number(raw[channel].toFixed(3)) : old);
  setTraits(model, { [name]: vector.map(moved) });
}

/** The rows of the read-out. While both slide they stay word for word the same: that is their message. */
function keyNumbers(words, s, isSliding, compare) {
  const first = Math.min(s.m, s.n);
  const [m, n] = [Math.round(s.m - first), Math.round(s.n - first)];
  const score = (a, b) => fmt(ropeScore(s.query, s.key, a, b, s.base, LAYOUT, LAYOUT), 6);
  const cosines = () => fmt(cosineOnlyScore(s.query, s.key, s.m - s.n, s.base, LAYOUT), 6);
  const rows = [
    [isSliding ? words.scoreSliding : words.scoreAt(whole(s.m), whole(s.n)), fmt(s.score, 6)],
    [words.slidBack(m, n), score(m, n)],
    [words.swapped(n, m), score(n, m)],
  ];
  return compare ? [...rows, [words.cosineOnly, cosines(), "bad"]] : rows;
}

const RANGE = { min: 0, max: LAST, value: 0 };

/** The one control that all sizes of the figure have: both positions, by hand or by themselves. */
function createSlideBoth(words, positions, player, draw) {
  const format = () => {
    const { m, n } = positions.read();
    return words.positions(whole(m), whole(n));
  };
  const onInput = (first) => {
    player.stop();
    positions.pass(first); // between two whole positions, so that the arrows rotate and do not jump
    draw();
  };
  const both = slider({ ...RANGE, label: words.slideBoth, format, onInput, sym: "m-n" });
  both.input.addEventListener("change", () => {
    if (!positions.isBetween()) return;
    positions.settle();
    draw();
  });
  const play = button({ label: words.play, onClick: () => (player.playing() ? player.stop() : player.start()) });

  const set = (s) => {
    both.set(Math.min(s.m, s.n));
    play.set(player.playing() ? words.pause : words.play);
  };
  return { root: h("div", { class: "rd-player" }, play, both), set };
}

function createSliders(words, move) {
  const slide = (name, label, tone) =>
    slider({ ...RANGE, step: 1, label, tone, sym: name, onInput: (value) => move({ [name]: value }) });
  const [m, n] = [slide("m", words.queryPosition, "q"), slide("n", words.keyPosition, "k")];
  const set = (s) => {
    m.set(s.m);
    n.set(s.n);
  };
  return { both: [m, n], set };
}

/** A word's query and another one's key in a head of the living model, before rotation. */
function storyTraits({ living, traces, layer, head }, m, n) {
  const { head_dim: D, num_attention_heads: H, num_key_value_heads: K, rope_theta: base } = living.model.config;
  const headIn = (vector, head) => [...vector.subarray(head * D, (head + 1) * D)];
  const query = headIn(traces[m].blocks[layer].qRaw, head);
  const key = headIn(traces[n].blocks[layer].kRaw, Math.floor((head * K) / H));
  return { query, key, query_position: m, key_position: n, rope_base: base };
}

/** The words of the story above the ruler: one gives the query, another the key. */
function createStoryWords(words, model, changed) {
  const options = ["q", "k"].map((value) => ({ value, label: words.roles[value] }));
  const role = choice({ label: words.chooses, options, value: "q" });
  role.root.querySelector("legend").classList.add("mm-hidden");
  const line = createWordLine(choose);
  const source = createSource(model, follow, { picks: "head" });
  const root = h("div", { class: "rd-words" }, role, line);
  let [m, n, followed, version] = [0, 0, "", 0];

  /** Takes the key that this query reads most, whenever the query is another one. */
  function follow() {
    const reading = source.reading();
    if (reading) {
      const { at, layer, head, ids, traces } = reading;
      m = Math.min(at, LAST);
      const weights = traces[m].blocks[layer].weights[head];
      if (`${[m, layer, head, ids]}` !== followed) n = weights.indexOf(Math.max(...weights));
      followed = `${[m, layer, head, ids]}`;
    }
    model.cover(reading && storyTraits(reading, m, n));
    version += 1;
    changed();
  }

  function choose(place) {
    if (role.get() === "q") return source.choose({ at: place });
    n = place;
    return follow();
  }

  function draw() {
    const reading = source.reading();
    root.hidden = !reading;
    if (!reading) return;
    const weights = reading.traces[m].blocks[reading.layer].weights[reading.head];
    line.draw(reading.tokens.slice(0, LAST + 1), role.get() === "q" ? m : n, (place) => {
      const [tone, letter] = place === m ? ["q", "q"] : place === n ? ["k", "k"] : ["", ""];
      const both = m === n && place === m;
      return { tone, fill: "v", part: 60 * (weights[place] ?? 0), note: both ? "q k" : letter };
    });
  }
  const isOn = () => Boolean(source.reading());
  // version: another one for other vectors, which may need other dials
  return { root, control: source, draw, isOn, version: () => version, release: source.release };
}

/** Call `draw` once after any number of changes in the same moment. */
function drawLater(draw) {
  let isWaiting = false;
  return () => {
    if (!isWaiting) {
      queueMicrotask(() => {
        isWaiting = false;
        draw();
      });
    }
    isWaiting = true;
  };
}

function renderDials({ model: given, el }) {
  const model = coverable(given);
  const positions = createPositions(model);
  const player = createPlayer(positions, () => draw());
  const move = (change) => {
    player.stop();
    if (change.first !== undefined) positions.save(positions.slid(change.first));
    else if (change.distance !== undefined) positions.save(positions.apart(change.distance));
    else positions.save({ ...positions.read(), ...change });
  };
  const onTip = (name, channels, tip) => {
    player.stop();
    const { m, n } = positions.read();
    dragArrow(model, name === "q" ? "query" : "key", name === "q" ? m : n, channels, tip, reach);
  };

  const words = wordsOf(rotationDialsWords);
  const isCompact = model.get("compact");
  let [dials, reach, dialed] = [[], 0, null];
  const board = h("div", { class: "rd-dials" });
  const story = isCompact ? null : createStoryWords(words, model, () => (player.stop(), draw()));
  const slideBoth = createSlideBoth(words, positions, player, () => draw());
  const score = readout([]);
  score.root.classList.add("rd-score");
  score.root.dataset.sym = "score";
  const [ruler, strip] = isCompact ? [] : [createRuler(words, move), createStrip(words, move)];
  const [sliders, numbers] = [createSliders(words, move), readout([])];
  const { bound, follow } = controlsOf(model);
  const bases = [...new Set([100, 10000, 1000000, model.get("rope_base")])].sort((a, b) => a - b);
  const base = bound(choice, "rope_base", { label: words.base, options: optionsFor(bases, grouped) });
  const compare = toggle({ label: words.compare, onChange: () => draw() });
  const swap = button({ label: words.swap, onClick: () => move({ m: positions.read().n, n: positions.read().m }) });
  const equation = h("div", { class: "rd-equation" }, board, score);
  const stage = h(
    "div",
    { class: "mm-stage mm-column rd-stage" },
    story,
    ruler && h("div", { class: "rd-ruler" }, ruler),
    equation,
  );
  const controls = row(sliders.both, base, compare, swap);
  const more = [story?.control, controls, h("div", {}, strip), numbers];
  const root = frame(words, { stage, control: slideBoth, more }, isCompact);

  const fold = root.querySelector("details");
  fold?.addEventListener("toggle", () => draw());

  /** Dials for these vectors: as many as they have pairs, and large enough. Dragging makes no new ones. */
  function createDials() {
    const pairs = pairChannels(model.get("query").length, LAYOUT);
    dials.forEach((dial) => dial.release());
    reach = dialReach(model.get("query"), model.get("key"));
    dials = pairs.map((channels, pair) => createDial(words, pair, channels, reach, isCompact ? null : onTip));
    board.style.setProperty("--rd-columns", Math.min(4, pairs.length));
    fill(board, dials);
  }

  function draw() {
    const width = stage.clientWidth;
    if (!width) return; // hidden, or already taken away
    if (dialed !== (story?.version() ?? 0)) createDials();
    dialed = story?.version() ?? 0;
    const { m, n } = positions.read();
    const s = situation(model.get("query"), model.get("key"), m, n, model.get("rope_base"));
    dials.forEach((dial) => dial.draw(s));
    slideBoth.set(s);
    score.set([[words.score, fmt(s.score, 4)]]);
    if (isCompact) return;
    root.dataset.story = story.isOn();
    story.draw();
    ruler.draw(s, width);
    if (fold.open) drawFolded(s, width);
  }

  function drawFolded(s, width) {
    strip.draw(s, width, compare.get());
    sliders.set(s);
    follow();
    numbers.set(keyNumbers(words, s, positions.isBetween(), compare.get()));
  }

  const releaseDials = () => dials.forEach((dial) => dial.release());
  const parts = [{ release: player.stop }, { release: releaseDials }, ruler, strip, story];
  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw: drawLater(draw), parts });
}

export default { render: renderDials };
