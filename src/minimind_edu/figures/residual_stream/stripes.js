// The stream through the blocks in stripes, one for the embedding and for what each sublayer added, with its axis.

import { svg, textAt, clamp, fmt, grouped, wordsOf } from "../../web/kit/kit.js";
import { across, levels, lineThrough, ticks } from "../../web/kit/chart.js";
import { smoothPath } from "./math.js";
import { residualStreamWords } from "./words.js";

export const streamWords = wordsOf(residualStreamWords);
export const SIDES = { left: 36, exit: 78 };
export const KINDS = ["embed", "attn", "ffn"];
export const TONES = ["stream", "v", "ffn"];
const TALLEST = 20; // beyond this RMS the stream leaves the picture
const TICKS = [0.1, 0.25, 0.5, 1, 2, 4, 8, 12, 16];
const LEAST = 2; // pixels of the embedding, however small its share

/** Three digits at least, without any point from 1,000 on. */
export function threeDigits(x) {
  if (x === null || x === undefined) return streamWords.overflow;
  if (x === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(Number(x.toPrecision(3)))));
  return power > 2 ? grouped(x) : fmt(x, Math.min(3, 2 - power));
}

/** A share in percent, with a digit after the point where it is small. */
export function percentOf(share) {
  const percent = 100 * share;
  if (percent > 99.95 && percent < 100) return streamWords.nearly(fmt(99.9, 1));
  if (Math.abs(percent) < 0.1) return streamWords.lessThan(fmt(0.1, 1));
  return streamWords.percent(fmt(percent, percent < 9.95 ? 1 : 0));
}

/** The axis of sizes, from 0 at top + height to the largest of this stream at the top. */
export function riverScale(s, top, height) {
  const end = clamp(Math.max(...s.sizes), 1.3, TALLEST);
  const floor = top + height;
  return { end, floor, y: (size) => floor - Math.min(size / end, 1.05) * height };
}

/** The sizes that are named on it: 0, and what has room. */
function sizeTicks({ end, floor, y }) {
  const inside = TICKS.filter((size) => size <= end && y(size) < floor - 14);
  return [0, ...inside.filter((size, i) => i + 1 === inside.length || y(size) - y(inside[i + 1]) > 14)];
}

/** The stream at every sublayer and, if it gets that far, through the final norm to the head: place, size, shares. */
function riverPoints(s, x, width) {
  const points = s.sizes.map((size, at) => ({ at: x(at), size, shares: s.shares[at] }));
  if (!s.isWhole) return points;
  const [end, out] = [points.at(-1), x(2 * s.depth)];
  const leaving = { ...end, size: s.leaving ?? (s.finalNorm ? 1 : end.size) };
  return [...points, { ...end, at: out + 14 }, { ...leaving, at: out + 40 }, { ...leaving, at: width - 1 }];
}

/**
 * A stripe for the embedding and for every sublayer, each from the floor up, so that the next one covers its rest.
 * Where points are dense, straight lines look alike, and weigh half.
 */
function drawStripes(s, points, { y, floor }) {
  const ends = points.map(({ size, shares }) => {
    let sum = 0;
    const shown = shares.reduce((all, share) => all + Math.max(0, share), 0);
    const height = (share) => (Math.max(0, share) / shown) * (floor - y(size));
    return shares.map((share) => floor - Math.max(LEAST, (sum += height(share))));
  });
  const stripe = (_, part) => {
    const first = Math.min(Math.max(part - 1, 0), points.length - 2);
    const edge = points.slice(first).map(({ at }, i) => [at, ends[first + i][part]]);
    const d = `${s.isDense ? lineThrough(edge) : `M${smoothPath(edge)}`}V${floor}H${edge[0][0].toFixed(1)}Z`;
    const kind = part ? 2 - (part % 2) : 0;
    const early = part ? Math.round(88 - (46 * part) / (2 * s.depth)) : 100;
    const attrs = {
      class: "mm-stripe",
      "data-tone": TONES[kind],
      "data-sym": KINDS[kind],
      style: `--mm-mix: ${early}%`,
    };
    return svg("path", { ...attrs, d });
  };
  return Array.from({ length: 2 * s.depth + 1 }, stripe).reverse();
}

/** The stream, its exit through the final norm, and the axis of sizes. x(p) is the place of sublayer p of 2L. */
export function drawRiver(s, x, width, scale) {
  const { end, floor, y } = scale;
  const out = x(2 * s.depth);
  const read = !s.isStory &&
    s.placement === "pre" && [
      across(y(1), SIDES.left, out, "mm-guide"),
      svg(
        "g",
        { "data-sym": "norm" },
        textAt(out - 12, y(1) - 6, streamWords.reads, { anchor: "end", cls: "mm-small mm-read" }),
      ),
    ];
  const below = s.finalNorm ? streamWords.finalNorm : streamWords.noNorm;
  return [
    levels(sizeTicks(scale), y, SIDES.left, width),
    drawStripes(s, riverPoints(s, x, width), scale),
    read,
    !s.isWhole &&
      textAt(x(s.sizes.length - 1) + 8, y(end) + 24, streamWords.overflow, { cls: "mm-strong", tone: "bad" }),
    s.isWhole && svg("g", { "data-sym": "norm" }, textAt(width, floor + 18, below, { anchor: "end" })),
    s.isWhole && textAt(out + 14, y(s.sizes.at(-1)) - 6, threeDigits(s.sizes.at(-1)), { cls: "mm-strong" }),
  ];
}

/** The numbers of the blocks below a drawing that ends at `floor`. */
export function drawBlockAxis(s, x, floor, room) {
  const every = [1, 2, 4, 8].find((step) => (room * step) / s.depth > 26);
  const isNumbered = (block) => block % every === 0 || (block === 1 && every < 4);
  const blocks = Array.from({ length: s.depth }, (_, i) => i + 1).filter(isNumbered);
  return ticks(blocks, (block) => x(2 * block - 1), floor + 18);
}
