// PipeAndMill: a pipe that brings weights from memory, a mill that computes with them, and the times of both, measured.

import {
  h,
  svg,
  fill,
  setAttributes,
  textAt,
  setSize,
  fmt,
  grouped,
  slider,
  choice,
  button,
} from "../../web/kit/kit.js";
import { namedOptions, prefersReducedMotion } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear } from "../../web/kit/chart.js";
import { timesOf, shareOf, roomFor, turned } from "./math.js";
import { pipeAndMillWords } from "./words.js";

const WIDEST = 640; // pixels
const BITES = 12; // in which the mill takes the weights of a step
const PLAYS = { one: 2400, most: 6000 }; // milliseconds of a step of one text, and of the longest
const SIZES = ["living", "small", "large"];
const ALIKE = 0.85; // of a time, from which another is as long: these vary by so much
const TURNS = 3; // of the wheel, in a step of one text
const SCENE = { tall: 92, box: 86, wheel: 34, sacks: 74, side: 6, gap: 2, columns: 8 };
const LANE = { tall: 13, pitch: 34, name: 13, end: 60 }; // end: room for a number behind the longest

/** Milliseconds with three digits that count. */
const short = (ms) => fmt(ms, ms < 1 ? 2 : ms < 100 ? 1 : 0);

/** Memory, the pipe, the mill and the texts that it grinds for. */
function createScene(words) {
  const root = svg("g", {});
  const spokes = [0, 45, 90, 135].map((angle) =>
    svg("line", { x1: -SCENE.wheel, x2: SCENE.wheel, y1: 0, y2: 0, transform: `rotate(${angle})` }),
  );
  const turning = svg("g", {}, svg("circle", { r: SCENE.wheel - 4 }), spokes, svg("circle", { class: "pm-hub", r: 7 }));
  const wheel = svg("g", { class: "pm-wheel" }, turning);
  const barrels = svg("g", { class: "pm-barrel" });

  function draw({ texts, bytes, isShut }, width) {
    const middle = SCENE.tall / 2;
    const wheelAt = width - SCENE.sacks - SCENE.wheel;
    const sacks = Array.from({ length: texts }, (_, i) => {
      const place = SCENE.side + SCENE.gap;
      const x = width - SCENE.sacks + 6 + (i % SCENE.columns) * place;
      const y = middle + 34 - SCENE.side - Math.floor(i / SCENE.columns) * place;
      return svg("rect", { class: "pm-text", x, y, width: SCENE.side, height: SCENE.side, rx: 1 });
    });
    const pipe = { x: SCENE.box, y: middle - 12, width: wheelAt - SCENE.wheel - SCENE.box, height: 24 };
    setAttributes(wheel, { transform: `translate(${wheelAt} ${middle})` });
    fill(
      root,
      svg("rect", { class: "pm-box", x: 1, y: 14, width: SCENE.box - 1, height: SCENE.tall - 28, rx: 4 }),
      textAt(SCENE.box / 2, middle - 4, words.memory, { anchor: "middle" }),
      textAt(SCENE.box / 2, middle + 14, words.bytes(bytes), { anchor: "middle", cls: "mm-small mm-strong" }),
      isShut ? null : svg("rect", { class: "pm-pipe", ...pipe }),
      isShut ? null : barrels,
      wheel,
      sacks,
      textAt(width - SCENE.sacks + 6, SCENE.tall, words.grindsFor(texts), { cls: "mm-small" }),
    );
    return pipe;
  }

  /** Where everything is after this share of the step; null: nothing moves. */
  function move(place, share, pipe, grinds) {
    const done = place === null ? 0 : turned(place, share, BITES);
    const bite = place === null ? 1 : place * BITES - Math.floor(place * BITES);
    wheel.dataset.turns = String(place === null || (place < 1 && bite < share));
    setAttributes(turning, { transform: `rotate(${(done * grinds * TURNS * 360).toFixed(1)})` });
    const pitch = pipe.width / 4;
    const count = Math.max(0, Math.floor(pipe.width / pitch));
    const barrel = Math.min(18, pitch / 2);
    const shift = place === null ? 0.5 : (place * BITES) % 1;
    fill(
      barrels,
      Array.from({ length: count }, (_, i) => {
        const x = pipe.x + ((i + shift) % count) * pitch * (1 - barrel / pipe.width);
        return svg("rect", { x: x.toFixed(1), y: pipe.y + 5, width: barrel, height: 14, rx: 4 });
      }),
    );
  }
  return { root, draw, move };
}

/** The times of a step as bars on one axis. */
function createLanes(words, shows) {
  const root = svg("g", {});
  const marker = svg("line", { class: "pm-place" });

  function bar(i, cls, x, from, to) {
    const y = SCENE.tall + 12 + i * LANE.pitch + LANE.name;
    return svg("rect", {
      class: cls,
      x: x(from).toFixed(1),
      y,
      width: Math.max(1, x(to) - x(from)).toFixed(1),
      height: LANE.tall,
    });
  }

  function draw(times, width) {
    const x = linear([0, roomFor(times)], [0, width - LANE.end]);
    const share = shareOf(times);
    const bites = Array.from({ length: BITES }, (_, i) => {
      const start = (i * times.step) / BITES;
      return bar(2, "pm-grinds", x, start, start + (share * times.step) / BITES);
    });
    const y = (i) => SCENE.tall + 12 + i * LANE.pitch;
    const numberAt = (i, ms) =>
      textAt(x(ms) + 6, y(i) + LANE.name + 11, words.ms(short(ms)), { cls: "mm-small mm-strong" });
    const [low, high] = [x(times.low), x(times.high)].map((at) => at.toFixed(1));
    const spread = `M${low} ${y(2) + LANE.name + LANE.tall + 2}v6m0 -3H${high}m0 -3v6`;
    fill(
      root,
      ["pipe", shows === "models" ? "hand" : "mill", "step"].map((lane, i) => textAt(0, y(i) + 9, words.lanes[lane])),
      times.pipe ? bar(0, "pm-bytes", x, 0, times.pipe) : null,
      times.pipe ? numberAt(0, times.pipe) : textAt(0, y(0) + LANE.name + 11, words.none),
      bar(1, "pm-grinds", x, 0, times.mill),
      numberAt(1, times.mill),
      bar(2, "pm-waits", x, 0, times.step),
      bites,
      numberAt(2, times.step),
      svg("path", { class: "pm-spread", d: spread }),
      marker,
    );
    setAttributes(marker, { y1: y(2) + LANE.name - 3, y2: y(2) + LANE.name + LANE.tall + 3 });
    return x;
  }

  function move(place, times, x) {
    marker.style.display = place === null ? "none" : "";
    if (place !== null) setAttributes(marker, { x1: x(place * times.step), x2: x(place * times.step) });
  }
  return { root, draw, move, tall: SCENE.tall + 12 + 3 * LANE.pitch + 6 };
}

/** Plays a step: tells 60 times a second which share of it is over, and null at the end. */
function createPlay(words, move) {
  let [frame, start] = [0, 0];
  let lasts = PLAYS.one;
  const play = button({ label: words.play, onClick: press });
  play.root.classList.add("mm-primary", "mm-play");

  function stop() {
    cancelAnimationFrame(frame);
    frame = 0;
    play.set(words.play);
    move(null);
  }
  function advance(now) {
    start ||= now;
    const place = (now - start) / lasts;
    if (place >= 1) return stop();
    move(place);
    frame = requestAnimationFrame(advance);
  }
  function press() {
    if (frame) return stop();
    if (prefersReducedMotion()) return move(1);
    play.set(words.stop);
    start = 0;
    frame = requestAnimationFrame(advance);
  }
  return {
    root: play.root,
    stop,
    set: (milliseconds) => (lasts = milliseconds),
    release: () => cancelAnimationFrame(frame),
  };
}

/** What the drawn setting says, given the same step with its weights in memory. */
function verdictOf({ shows, texts, weights, share, times, memory }, words) {
  const { step } = memory;
  if (times.step >= ALIKE * step && weights === "hand") return words.verdict.none;
  if (weights === "hand") return words.verdict.hand(words.ms(short(times.step)), words.ms(short(step)));
  if (share >= ALIKE) return shows === "models" ? words.verdict.fits : words.verdict.busy;
  const waits = words.percent(fmt(100 * (1 - share), 0));
  return texts === 1 ? words.verdict.one(waits) : words.verdict.waits(waits, fmt(step / memory.one, 1));
}

export default figure({
  words: pipeAndMillWords,
  traits: ["model", "texts", "weights"],
  verdict: "pm-verdict",
  create({ model, words, isCompact, bound, verdict }) {
    const stored = model.get("stored");
    const shows = model.get("shows");
    const [scene, lanes] = [createScene(words), createLanes(words, shows)];
    const root = svg("svg", { role: "img", class: "pm-picture" }, scene.root, lanes.root);
    const slower = h("span", { class: "pm-slower" });
    let now = null; // what is drawn, for the frames that play

    function move(place) {
      if (!now) return;
      scene.move(place, now.share, now.pipe, now.times.mill / now.hand);
      lanes.move(place, now.times, now.x);
    }
    const play = createPlay(words, move);
    function draw(given) {
      const width = Math.min(given, WIDEST);
      const [texts, weights, name] = ["texts", "weights", "model"].map((trait) => model.get(trait));
      const times = timesOf(stored, { model: name, texts, weights });
      const hand = timesOf(stored, { model: name, texts: 1, weights: "hand" }).step;
      const pipe = scene.draw({ texts, bytes: stored.models[name].said, isShut: weights === "hand" }, width);
      const share = shareOf(times);
      const x = lanes.draw(times, width);
      now = { times, share, pipe, x, hand };
      play.stop();
      const lasts = Math.min(PLAYS.most, (PLAYS.one * times.step) / times.one);
      play.set(lasts);
      slower.textContent = words.slower(grouped(lasts / times.step));
      const percent = words.percent(fmt(100 * share, 0));
      setSize(root, width, lanes.tall, words.picture(texts, words.ms(short(times.step)), percent));
      const memory = timesOf(stored, { model: name, texts, weights: "memory" });
      return {
        verdict: verdictOf({ shows, texts, weights, share, times, memory }, words),
        numbers: [
          [words.numbers.step, words.ms(short(times.step))],
          [words.numbers.turns, percent],
          [words.numbers.words, grouped((1000 * texts) / times.step)],
        ],
      };
    }
    const many = bound(slider, "texts", { label: words.texts, stops: stored.texts, format: words.textsValue });
    const switches = isCompact
      ? null
      : [
          bound(choice, "weights", { label: words.weights, options: namedOptions(words.places) }),
          shows === "models" &&
            bound(choice, "model", {
              label: words.model,
              options: SIZES.map((value) => ({ value, label: words.bytes(stored.models[value].said) })),
            }),
        ];
    return {
      title: isCompact ? words.titleCompact : words.titles[shows],
      caption: words.captions[shows],
      stage: h("div", { class: "mm-stage pm-stage" }, root),
      control: h("div", { class: "pm-control" }, many, h("div", { class: "pm-row" }, play, slower, switches)),
      parts: [play],
      draw,
    };
  },
});
