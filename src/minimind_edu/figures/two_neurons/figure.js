// TwoNeurons: a story, the activations of two neurons or what one is made of, and the word that follows.

import { draggable, handle, grip } from "../../web/kit/drag.js";
import { h, svg, fill, setAttributes, textAt, setSize, clamp, fmt } from "../../web/kit/kit.js";
import { slider, choice, button, namedOptions, announcement, controlsOf } from "../../web/kit/kit.js";
import { setTraits, wordsOf, frame, mount } from "../../web/kit/kit.js";
import { createBar } from "../../web/kit/bars.js";
import { linear, across, upright } from "../../web/kit/chart.js";
import { phraseGlosses } from "../../web/live/glosses.js";
import { ACTIVE, GATE, UP, silu, logitsAt, chancesOf, largest, countThen, regionOf } from "./math.js";
import { twoNeuronsWords } from "./words.js";

const TRAITS = ["shows", "story", "first", "second", "gate", "up"];
const TO_THE = "to the";
const THEN = "去";
const BARS = 3;
const EDGE = 9; // half a slider's thumb: its ends are so far from those of the picture
const PLANE = { left: 38, right: 9, top: 22, bottom: 34 };
const STEP = 3; // pixels of a region's cells
const AXES = {
  two: {
    x: ACTIVE,
    y: ACTIVE,
    traits: ["first", "second"],
    digits: 0,
    ticks: [
      [0, -50, -100, -150],
      [0, -50, -100, -150],
    ],
  },
  inside: {
    x: [...GATE].reverse(),
    y: UP,
    traits: ["gate", "up"],
    digits: 1,
    ticks: [
      [0, 5, 10, 15],
      [5, 0, -5, -10],
    ],
  },
};
const OTHER = { en: "zh", zh: "en" };

/** Everything that is drawn. */
function stateOf(model) {
  const traits = Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  const stored = model.get("stored");
  const telling = stored.told[traits.story];
  const first = traits.shows === "inside" ? silu(traits.gate) * traits.up : traits.first;
  const active = [first, traits.shows === "two" ? traits.second : telling.active[1]];
  const chances = chancesOf(logitsAt(stored, telling, active));
  const [likeliest] = largest(chances, 1);
  return { ...traits, stored, telling, active, chances, likeliest, word: stored.words[likeliest] };
}

/** What a story's own numbers are, as traits. */
function ownOf(telling) {
  const [first, second] = telling.active.map(Math.round);
  return { first, second, gate: Number(telling.gate[0].toFixed(1)), up: Number(telling.up[0].toFixed(1)) };
}

/** The story as words, with what the Chinese ones mean, and the place of the next one. */
function createStory(glossOf) {
  const root = h("p", { class: "mm-story tn-story" });
  const slot = h("b", { class: "mm-slot mm-next-word", "data-sym": "logits" });
  let shown = "";

  const wordOf = (word) => {
    const gloss = glossOf(word);
    return h("span", { class: "tn-word" }, word, gloss ? h("small", { class: "mm-gloss" }, gloss) : null);
  };

  function draw(s) {
    if (shown !== s.story) {
      const words = s.telling.tokens.slice(1).map((word) => [wordOf(word), " "]);
      fill(root, words, slot);
    }
    shown = s.story;
    fill(slot, wordOf(s.word));
  }
  return { root, draw };
}

/** Bars of the words that may follow: the likeliest, or always the same two and the likeliest other one. */
function createBars(words, glossOf, isCompact) {
  const bars = Array.from({ length: BARS }, () => createBar("mm-word-bar", ["mm-said"]));
  const root = h("div", { class: "tn-bars", "data-sym": "logits" }, bars);

  function draw(s) {
    const fixed = isCompact ? [] : [TO_THE, THEN].map((word) => s.stored.words.indexOf(word));
    const others = largest(s.chances, BARS + fixed.length).filter((i) => !fixed.includes(i));
    [...fixed, ...others].slice(0, BARS).forEach((i, place) => {
      const [word, share] = [s.stored.words[i], words.percent(fmt(100 * s.chances[i], 0))];
      const gloss = glossOf(word);
      const shownWord = gloss ? [word, " ", h("small", {}, gloss)] : word;
      bars[place].set({ word: shownWord, shares: [[0, s.chances[i]]], value: share, label: words.bar(word, share) });
    });
  }
  return { root, draw };
}

/** The neuron's own activation at each place, where the word changes there, and where the slider is. */
function createStrip(words) {
  const root = svg("svg", { role: "img", class: "tn-strip" });
  const [ROWS, HEIGHT] = [[24, 62], 76];

  function draw(s, width) {
    const x = linear([ACTIVE[1], ACTIVE[0]], [EDGE, width - EDGE]);
    setSize(root, width, HEIGHT, words.picture.one);
    const places = s.stored.places.en;
    const at = (value, i, y) => ({ cx: x(clamp(value, ...ACTIVE)).toFixed(1), cy: y + ((i % 5) - 2) * 2.2, r: 3 });
    const dots = places.map(([, , trained, , end], i) => [
      svg("circle", { class: "tn-dot tn-on", ...at(trained, i, ROWS[0]) }),
      svg("circle", { class: s.active[0] <= end ? "tn-dot tn-on" : "tn-dot", ...at(end, i, ROWS[1]) }),
    ]);
    const [trainedLabel, changeLabel] = [words.own, words.change].map((label, i) => {
      const isLeft = i === 0; // where there are no dots
      return textAt(isLeft ? 2 : width - 2, ROWS[i] + 4, label, { anchor: isLeft ? "start" : "end" });
    });
    const here = x(clamp(s.active[0], ...ACTIVE));
    fill(root, upright(here, 4, HEIGHT, "mm-guide"), dots, trainedLabel, changeLabel);
  }
  return { root, draw };
}

/** A plane of two numbers: where “to the” follows, the places of the stories, and the point to drag. */
function createPlane(words, shows, move) {
  const { x: rangeX, y: rangeY, traits, digits, ticks } = AXES[shows];
  const root = svg("svg", { role: "group", class: "tn-plane" });
  const [region, axes, dots, names] = ["g", "g", "g", "g"].map((tag) => svg(tag));
  const lines = [svg("line", { class: "mm-guide" }), svg("line", { class: "mm-guide" })];
  const point = handle({
    label: words.point,
    min: Math.min(...rangeX),
    max: Math.max(...rangeX),
    ring: 12,
    shape: grip(7),
  });
  fill(root, region, axes, dots, names, lines, point);
  let [scale, drawn, now] = [null, "", null];

  function drawGround(s, width, height) {
    const x = linear([rangeX[1], rangeX[0]], [PLANE.left, width - PLANE.right]);
    const y = linear([rangeY[1], rangeY[0]], [height - PLANE.bottom, PLANE.top]);
    scale = { x, y, right: width - PLANE.right, floor: height - PLANE.bottom };
    setSize(root, width, height, words.picture[shows]);
    const inner = { width: scale.right - PLANE.left, height: scale.floor - PLANE.top, step: STEP };
    const activeAt = (left, top) => {
      const [a, b] = [x.invert(left + PLANE.left), y.invert(top + PLANE.top)];
      return shows === "two" ? [a, b] : [silu(a) * b, s.telling.active[1]];
    };
    const rows = regionOf(s.stored, s.telling, s.stored.words.indexOf(TO_THE), { ...inner, activeAt });
    const runOf =
      (row) =>
      ([from, to]) =>
        `M${PLANE.left + from} ${PLANE.top + STEP * row}h${to - from}v${STEP}h${from - to}Z`;
    const d = rows.flatMap((runs, row) => runs.map(runOf(row))).join("");
    fill(region, svg("path", { class: "tn-region", d }));
    const labels = [
      ticks[0].map((tick) => [
        upright(x(tick), PLANE.top, scale.floor, "mm-level"),
        textAt(x(tick), scale.floor + 14, fmt(tick, 0), { anchor: "middle" }),
      ]),
      ticks[1].map((tick) => [
        across(y(tick), PLANE.left, scale.right, "mm-level"),
        textAt(PLANE.left - 5, y(tick) + 4, fmt(tick, 0), { anchor: "end" }),
      ]),
    ];
    const [number, second] = s.stored.pair.map((i) => i + 1);
    const across_ = shows === "two" ? words.active(number) : words.gate(number);
    const up = shows === "two" ? words.active(second) : words.up(number);
    fill(
      axes,
      labels,
      textAt((PLANE.left + scale.right) / 2, scale.floor + 29, across_, { anchor: "middle" }),
      textAt(2, 12, up),
    );
    const placeOf = ([gate, upward, firstActive, secondActive]) =>
      shows === "two" ? [firstActive, secondActive] : [gate, upward];
    const dotOf = (cls, r) => (row) => {
      const [a, b] = placeOf(row);
      return svg("circle", { class: cls, cx: x(a).toFixed(1), cy: y(b).toFixed(1), r });
    };
    const { en, zh, else: rest } = s.stored.places;
    fill(
      dots,
      shows === "inside" ? rest.map(dotOf("tn-rest", 1.6)) : [],
      en.map(dotOf("tn-dot tn-on", 3)),
      zh.map(dotOf("tn-dot", 3)),
    );
    const corner = { anchor: "end", cls: "mm-strong" };
    fill(
      names,
      shows === "two"
        ? [
            textAt(scale.right - 8, scale.floor - 10, TO_THE, corner),
            textAt(PLANE.left + 8, PLANE.top + 18, THEN, { cls: "mm-strong" }),
          ]
        : [
            textAt(scale.right - 8, PLANE.top + 18, TO_THE, corner),
            textAt(scale.right - 8, scale.floor - 10, THEN, corner),
          ],
    );
  }

  function draw(s, width) {
    now = traits.map((name) => s[name]);
    const height = Math.round(Math.min(300, Math.max(200, width * 0.62)));
    const key = `${s.story} ${width}`;
    if (key !== drawn) drawGround(s, width, height);
    drawn = key;
    const [left, top] = [scale.x(now[0]), scale.y(now[1])];
    setAttributes(lines[0], { x1: PLANE.left, x2: scale.right, y1: top, y2: top });
    setAttributes(lines[1], { x1: left, x2: left, y1: PLANE.top, y2: scale.floor });
    setAttributes(point, {
      transform: `translate(${left} ${top})`,
      "aria-valuenow": now[0],
      "aria-valuetext": now.map((value) => fmt(value, digits)).join(", "),
    });
  }

  const within = (value, [low, high]) => Number(clamp(value, Math.min(low, high), Math.max(low, high)).toFixed(digits));
  const moveTo = (left, top) => {
    const values = [within(scale.x.invert(left), rangeX), within(scale.y.invert(top), rangeY)];
    move(Object.fromEntries(traits.map((name, i) => [name, values[i]])));
  };
  const release = draggable(point, { onMove: moveTo, position: () => [scale.x(now[0]), scale.y(now[1])] });
  return { root, draw, release };
}

/** The sliders of a view: more to the right is further from 0 on the side of “to the”. */
function createSliders(words, bound, shows, [number, second]) {
  const mirrored = ([low, high], step, digits) => ({
    min: -high,
    max: -low,
    step,
    shown: (value) => -value,
    written: (value) => -value,
    format: (value) => fmt(-value, digits),
    tone: "ffn",
  });
  const first = () => bound(slider, "first", { label: words.active(number), ...mirrored(ACTIVE, 1, 0) });
  return {
    one: () => [first()],
    two: () => [first(), bound(slider, "second", { label: words.active(second), ...mirrored(ACTIVE, 1, 0) })],
    inside: () => [
      bound(slider, "gate", {
        label: words.gate(number),
        min: GATE[0],
        max: GATE[1],
        step: 0.1,
        format: (x) => fmt(x, 1),
        tone: "ffn",
      }),
      bound(slider, "up", { label: words.up(number), ...mirrored(UP, 0.1, 1) }),
    ],
  }[shows]();
}

function verdictOf(s, words, glossOf, isCompact) {
  const { head, one: ofOne, two: ofTwo, inside } = words.verdict;
  const word = words.glossed(s.word, glossOf(s.word));
  const share = words.percent(fmt(100 * s.chances[s.likeliest], 0));
  const [first, second] = s.active.map((value) => fmt(value, 0));
  if (isCompact) return head(first, word, share);
  const places = s.stored.places.en;
  return {
    one: () => ofOne(first, word, countThen(places, s.active[0]), places.length),
    two: () => ofTwo(first, second, word, share),
    inside: () => inside(fmt(s.gate, 1), fmt(silu(s.gate), 1), fmt(s.up, 1), first, word),
  }[s.shows]();
}

function renderNeurons({ model, el }) {
  const words = wordsOf(twoNeuronsWords);
  const isCompact = Boolean(model.get("compact"));
  const shows = model.get("shows");
  const { pair, told: tellings, glosses } = model.get("stored");
  const meanings = wordsOf(phraseGlosses);
  const all = THEN in meanings ? { ...glosses, ...meanings } : {}; // Chinese readers need none
  const glossOf = (word) => all[word];
  const { bound, follow } = controlsOf(model);
  const story = createStory(glossOf);
  const bars = createBars(words, glossOf, isCompact);
  const move = (values) => setTraits(model, values);
  const picture = isCompact ? null : shows === "one" ? createStrip(words) : createPlane(words, shows, move);
  const sliders = createSliders(
    words,
    bound,
    shows,
    pair.map((i) => i + 1),
  ); // readers count from 1
  const tell = ({ story: chosen }) => setTraits(model, { story: chosen, ...ownOf(tellings[chosen]) });
  const stories = controlsOf(model, tell);
  const which = stories.bound(choice, "story", { label: words.story, options: namedOptions(words.stories) });
  const isOwn = () => model.get("first") === ownOf(tellings[model.get("story")]).first;
  const exchange = button({
    label: words.exchange,
    onClick: () => {
      const { first, second } = ownOf(tellings[isOwn() ? OTHER[model.get("story")] : model.get("story")]);
      move({ first, second });
    },
  });
  const verdict = announcement("mm-verdict tn-verdict");
  const box = picture ? h("div", { class: "tn-box" }, picture) : bars.root; // its width is the picture's
  const stage = h("div", { class: "mm-stage mm-column tn-stage" }, story, bars, picture && box);
  const hasSwitches = !isCompact && shows !== "one"; // the one neuron writes nothing in Chinese
  const switches = hasSwitches ? h("div", { class: "tn-switches" }, which, shows === "two" ? exchange : null) : null;
  const control = h("div", { class: "tn-control" }, h("div", { class: "tn-sliders" }, sliders), switches, verdict);
  const title = isCompact || shows === "one" ? words.head : words.titles[shows];
  const root = frame({ ...words, title, caption: words.captions[shows] }, { stage, control }, isCompact);
  root.dataset.shows = shows;

  function draw(width) {
    const s = stateOf(model);
    story.draw(s);
    bars.draw(s);
    picture?.draw(s, width);
    exchange.set(isOwn() ? words.exchange : words.back);
    verdict.set(verdictOf(s, words, glossOf, isCompact));
    follow();
    stories.follow();
  }
  return mount(el, root, { model, traits: TRAITS, boxes: [box], draw, parts: picture ? [picture] : [] });
}

export default { render: renderNeurons };
