// SinkingWords: the stream through 32 blocks in stripes, and below it the angle of each word to the first.

import { NARROW, h, svg, fill, textAt, setSize, fmt } from "../../web/kit/kit.js";
import { slider, choice, namedOptions, row } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, across, levels, lineThrough } from "../../web/kit/chart.js";
import { streamSizes, streamShares } from "../residual_stream/math.js";
import { SIDES, TONES, drawBlockAxis, drawRiver } from "../residual_stream/stripes.js";
import { percentOf, riverScale, streamWords, threeDigits } from "../residual_stream/stripes.js";
import { mean, threadsOf } from "./math.js";
import { sinkingWordsWords } from "./words.js";

const LOUDNESS = [0.25, 0.5, 1, 2, 4, 8];
const DEPTH = 32;
const EVERY = 2; // blocks between two angles
const SIXTH = 4; // its place among the words after the first
const WIDEST = 110; // degrees
const LEVELS = [0, 30, 60, 90];
const KEY = [92, 160]; // where the names of the stripes begin
const CLEAR = 13; // pixels between the names of two lines

function stateOf(model) {
  const { placement, loudness, louder } = Object.fromEntries(
    ["placement", "loudness", "louder"].map((name) => [name, model.get(name)]),
  );
  const at = LOUDNESS.indexOf(loudness);
  const { first, sixth } = model.get("moved")[louder][placement];
  const threads = threadsOf(model.get("angles")[louder][placement][at], DEPTH / EVERY);
  return {
    placement,
    depth: DEPTH,
    threads,
    angle: mean(threads.map((angles) => angles.at(-1))),
    first: first[at],
    sixth: sixth[at],
  };
}

/** What the river shows, besides: the sizes of the stream, and whose they are. */
function streamOf(model, { placement }) {
  const { added, total } = model.get("sizes")[placement];
  const at = LOUDNESS.indexOf(model.get("loudness"));
  const sizes = streamSizes(total[at], placement, model.get("embedding"), DEPTH);
  return {
    placement,
    sizes,
    shares: streamShares(added[at], sizes, DEPTH),
    depth: DEPTH,
    finalNorm: true,
    isWhole: true,
    isDense: true,
  };
}

/** Of three heights: on a phone, at the head of a chapter, whole. */
function heightOf(isCompact, width, [phone, head, whole]) {
  return width < NARROW ? phone : isCompact ? head : whole;
}

/** The stream in stripes, and whose they are. */
function createRiver(words, isCompact) {
  const root = svg("svg", { role: "img" });
  function draw(s, x, width, verdict) {
    const scale = riverScale(s, 30, heightOf(isCompact, width, [64, 71, 150]));
    const [, ...names] = streamWords.shares; // the embedding's is too thin to be seen
    const key = names.map((name, i) => textAt(KEY[i], 14, name, { tone: TONES[i + 1], cls: "mm-small" }));
    setSize(root, width, scale.floor + 22, verdict);
    fill(root, textAt(0, 14, words.size), key, drawRiver(s, x, width, scale));
  }
  return { root, draw };
}

/** A line for each word: its angle to the first one. */
function createThreads(words, isCompact) {
  const root = svg("svg", { role: "img" });

  function names(y, end, right) {
    const first = y(0) + 4;
    const sixth = Math.min(y(end) + 4, first - CLEAR);
    return [
      textAt(right + 8, first, words.first, { cls: "mm-small" }),
      textAt(right + 8, sixth, words.sixth, { cls: "mm-small sw-name" }),
    ];
  }

  function draw(s, x, width) {
    const [top, height] = [26, heightOf(isCompact, width, [70, 78, 130])];
    const y = linear([0, WIDEST], [top + height, top]);
    const right = x(2 * DEPTH);
    const threads = s.threads.map((angles) => lineThrough(angles.map((angle, i) => [x(2 * EVERY * i), y(angle)])));
    const line = (d, cls) => svg("path", { class: cls, d });
    const note = words.replaced(percentOf(s.sixth));
    setSize(root, width, top + height + (isCompact ? 42 : 24), `${words.angles}. ${note}.`);
    fill(root, [
      textAt(0, 14, words.angles),
      levels(LEVELS, y, SIDES.left, right, words.degrees),
      threads.map((d) => line(d, "sw-thread")),
      line(threads[SIXTH], "sw-sixth"),
      across(y(0), SIDES.left, right, "sw-first"),
      names(y, s.threads[SIXTH].at(-1), right),
      drawBlockAxis(s, x, top + height, right - x(0)),
      textAt(0, top + height + 18, streamWords.block),
      isCompact && textAt(0, top + height + 38, note, { cls: "mm-strong" }),
    ]);
  }
  return { root, draw };
}

export default figure({
  words: sinkingWordsWords,
  traits: ["placement", "loudness", "louder"],
  create({ model, words, isCompact, bound }) {
    const about = model.get("about");
    const { pre, post } = streamWords.placements;
    const scaleName = (loudness) => streamWords.scales[LOUDNESS.indexOf(loudness)];
    const placement = bound(choice, "placement", {
      label: streamWords.placement,
      options: namedOptions({ pre, post }),
    });
    const loudness = bound(slider, "loudness", { label: words.loud, stops: LOUDNESS, format: scaleName });
    const isCauses = about === "causes";
    const louder = isCauses && bound(choice, "louder", { label: words.factor, options: namedOptions(words.louder) });
    const river = isCauses ? null : createRiver(words, isCompact);
    const threads = createThreads(words, isCompact);

    function draw(width) {
      const s = stateOf(model);
      const x = linear([0, 2 * DEPTH], [SIDES.left, width - SIDES.exit]);
      const angle = fmt(s.angle, 0);
      const verdict = (s.angle < 5 ? words.alike : words.apart)(angle);
      if (river) {
        const stream = streamOf(model, s);
        river.draw(stream, x, width, words.ends(angle, threeDigits(stream.sizes.at(-1))));
      }
      threads.draw(s, x, width);
      const numbers = [
        [words.mean, words.degrees(angle)],
        [words.firstReplaced, percentOf(s.first)],
        [words.sixthReplaced, percentOf(s.sixth)],
      ];
      return { verdict, numbers };
    }
    return {
      title: words.titles[about],
      caption: isCauses ? words.captionOfCauses : words.caption,
      stage: h("div", { class: "mm-stage mm-column" }, river, threads),
      control: row(placement, ...(louder ? [louder] : []), loudness),
      draw,
    };
  },
});
