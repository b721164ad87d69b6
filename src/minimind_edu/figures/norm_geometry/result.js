// What the norm figure knows about its traits: the outputs of both norms, their numbers as text, and a remark on them.

import { fmt, wordsOf } from "../../web/kit/kit.js";
import { normGeometryWords } from "./words.js";
import { rmsNorm, layerNorm, channelStats, angleBetween, multiply3 } from "./math.js";

export const INK = "var(--mm-ink)";
export const MUTED = "var(--mm-muted)";
export const PAPER = "var(--mm-bg)";
export const normWords = wordsOf(normGeometryWords);
// One hue for both: LayerNorm is closer to ink, dashed and square, RMSNorm plain and round.
export const NORMS = {
  layer: {
    title: normWords.norms.layer,
    of: layerNorm,
    color: "color-mix(in oklab, var(--mm-norm) 45%, var(--mm-ink))",
  },
  rms: { title: normWords.norms.rms, of: rmsNorm, color: "var(--mm-norm)" },
};

export function epsText(eps) {
  if (eps >= 0.01) return String(Number(eps.toPrecision(2)));
  const [mantissa, exponent] = eps.toExponential(1).split("e");
  return `${mantissa.replace(".0", "")}e${exponent.replace("-", "−")}`;
}

// Small numbers need their leading digits: 0.0012 is not 0.00. What rounding leaves of a zero is a zero.
export function smallText(x) {
  const size = Math.abs(x);
  if (size < 1e-12 || size >= 0.1) return fmt(x);
  return size >= 1e-4 ? fmt(x, 4) : `${x < 0 ? "−" : ""}${epsText(size)}`;
}

export function resultsOf(model) {
  const [x, offset, gain, eps, norm] = ["x", "offset", "gain", "eps", "norm"].map((name) => model.get(name));
  const input = x.map((value) => value + offset);
  const stats = channelStats(input);
  const outputs = {};
  for (const [name, { of }] of Object.entries(NORMS)) {
    const [plain, final] = [of(input, eps), of(input, eps, gain)];
    outputs[name] = { plain, final, stats: channelStats(final), angle: angleBetween(input, final) };
  }
  return {
    x,
    offset,
    gain,
    eps,
    input,
    stats,
    outputs,
    centered: input.map((value) => value - stats.mean),
    shown: norm === "both" ? Object.keys(NORMS) : [norm],
    stretched: gain.some((factor) => factor !== 1),
    argument: offset === 0 ? normWords.x : normWords.shifted,
  };
}

// One sentence or two on what is to be seen now: the strangest thing first.
export function remarkOn({ stats, centered, outputs, eps, shown, stretched, offset, gain }) {
  const { zero, flat, short, stopsAt, gain: stretches, same, lifted, plain } = normWords.remarks;
  const isFlat = Math.max(...centered.map(Math.abs)) < 1e-9 * Math.abs(stats.mean);
  const isBoth = shown.length === 2;
  const reached = (name) => channelStats(outputs[name].plain).rms;
  const low = shown.filter((name) => reached(name) < 0.99);
  if (stats.rms === 0) return zero;
  if (isFlat && shown.includes("layer")) return flat;
  if (low.length)
    return short(epsText(eps), low.map((name) => stopsAt(NORMS[name].title, fmt(reached(name)))).join(", "));
  if (stretched && !shown.includes("rms")) return stretches(null);
  if (stretched) return stretches(fmt(angleBetween(multiply3(outputs.rms.plain, gain), outputs.rms.plain)));
  if (isBoth && Math.abs(stats.mean) < 1e-3 * stats.rms) return same;
  return isBoth && offset > 0 ? lifted : plain;
}
