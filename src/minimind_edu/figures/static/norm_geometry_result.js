// What the norm figure knows about its traits: the outputs of both norms, their numbers as text, and a remark on them.

import { fmt } from "./kit.js";
import { rmsNorm, layerNorm, channelStats, angleBetween, multiply3 } from "./norm_geometry_math.js";

export const INK = "var(--mm-ink)";
export const MUTED = "var(--mm-muted)";
export const PAPER = "var(--mm-bg)";
export const NORMS = {
  layer: { title: "LayerNorm", of: layerNorm, color: "var(--mm-accent2)", tone: "accent2" },
  rms: { title: "RMSNorm", of: rmsNorm, color: "var(--mm-accent)", tone: "accent" },
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
    stretched: gain.some((one) => one !== 1),
    argument: offset === 0 ? "x" : "x + c",
  };
}

// One sentence or two on what is to be seen now: the strangest thing first.
export function remarkOn({ stats, centered, outputs, eps, shown, stretched, offset, gain }) {
  const isFlat = Math.max(...centered.map(Math.abs)) < 1e-9 * Math.abs(stats.mean);
  const isBoth = shown.length === 2;
  const reached = (name) => channelStats(outputs[name].plain).rms;
  const short = shown.filter((name) => reached(name) < 0.99);
  if (stats.rms === 0) return "A vector of zeros stays zero under both norms: eps keeps them from dividing 0 by 0.";
  if (isFlat && shown.includes("layer")) {
    const left = "All channels are equal, so nothing is left once the mean is removed";
    return `${left}: LayerNorm gives 0. RMSNorm keeps the common value.`;
  }
  if (short.length) {
    const where = short.map((name) => `${NORMS[name].title} stops at RMS ${fmt(reached(name))}`).join(", ");
    return `x is so short that eps = ${epsText(eps)} counts, and the output does not reach the sphere: ${where}.`;
  }
  const stretches = "The gain stretches the sphere to an ellipsoid (dashed)";
  if (stretched && shown.includes("rms")) {
    const turn = fmt(angleBetween(multiply3(outputs.rms.plain, gain), outputs.rms.plain));
    return `${stretches}. It turns RMSNorm's output ${turn}° away from the ray of x.`;
  }
  if (stretched) return `${stretches}, and the mean of the output is no longer zero.`;
  if (isBoth && Math.abs(stats.mean) < 1e-3 * stats.rms)
    return "The mean is zero already: both norms make the same move.";
  if (isBoth && offset > 0) {
    const same = "LayerNorm drops it onto the same point as before";
    return `c lifts x straight up. ${same}; RMSNorm's output climbs toward (1, 1, 1).`;
  }
  return "Height is the mean of the channels. Drag the tip of x, or drag beside it to turn the globe.";
}
