// The words of the norm figure, by language.

export const normGeometryWords = {
  en: {
    title: "Make x longer, and neither output moves. Lift it, and RMSNorm's climbs.",
    caption:
      "Drag the tip of x; near its arrow and straight up from it your hand is led along. Height is the mean of the " +
      "channels. LayerNorm drops x to mean 0 and scales it to RMS 1; RMSNorm only scales.",
    more: "More: examples, gain, eps, 64 channels",
    streamTitle: "However large the stream, RMSNorm hands on a vector of RMS 1.",
    whichNorm: "norm",
    sites: {
      attention: (layer) => `layer ${layer}, before attention`,
      feedForward: (layer) => `layer ${layer}, before feed-forward`,
      final: "the last, before the head",
    },
    strips: {
      x: (rms) => `x, the stream: RMS ${rms}`,
      plain: (rms) => `x ÷ RMS: RMS ${rms}`,
      final: (rms) => `× gain, what is handed on: RMS ${rms}`,
    },
    streamRms: "RMS of the stream",
    streamMean: "mean of its channels",
    apart: "LayerNorm's output, apart by",
    norms: { layer: "LayerNorm", rms: "RMSNorm" },
    x: "x",
    shifted: "x + c",
    ofInput: (norm, input) => `${norm}(${input})`,
    withGain: (text) => `${text}, with gain`,
    inputOf: (input) => `${input}, the input`,
    meanOf: (input) => `mean of ${input}`,
    meanAfter: (norm) => `mean after ${norm}`,
    outside: (input, rms) => `${input}, out of view, RMS ${rms}`,
    globe: (remark) => `Three channels in space: the sphere of RMS 1 and the plane of mean zero. ${remark}`,
    rotate: "Rotate the globe",
    seenFrom: (around, above) => `${around} degrees around, ${above} from above`,
    tip: "Tip of x: RMS",
    tipAt: (rms, channels) => `${rms}, channels ${channels.join(", ")}`,
    pole: "(1, 1, 1)",
    channel: (number) => `channel ${number}`,
    meanZero: "mean 0",
    rmsOne: "RMS 1",
    minusMean: "− mean",
    overStd: "÷ std",
    overRms: "÷ RMS",
    timesGain: "× gain",
    threeChannels: "The three channels of the input",
    channelOfX: (number) => `Channel ${number} of x`,
    withC: (plain, shifted) => `${plain}, with c ${shifted}`,
    stats: ["mean", "std", "RMS", "rotated by"],
    degrees: (number) => `${number}°`,
    none: "–",
    offset: "c, added to every channel",
    size: "size of x (its RMS)",
    eps: "eps",
    gainOf: (number) => `gain of channel ${number}`,
    fans: (count) =>
      `The same c on ${count} channels: a thin line is one channel of the output, the thick line is their mean, the ` +
      "band is mean ± std.",
    fan: (norm) => `${norm} of the longer vector while c grows from 0 to 5`,
    fanStats: (mean, std, rms) => `mean ${mean} · std ${std} · RMS ${rms}`,
    cIs: (c) => `c = ${c}`,
    examples: "Examples",
    reset: "Reset",
    equal: "All channels equal",
    centered: "Mean zero",
    tiny: "Tiny vector",
    gained: "With a gain",
    show: "Show",
    both: "Both",
    remarks: {
      zero: "A vector of zeros stays zero under both norms: eps keeps them from dividing 0 by 0.",
      flat:
        "All channels are equal, so nothing is left once the mean is removed: LayerNorm gives 0. RMSNorm keeps the " +
        "common value.",
      short: (eps, norms) =>
        `x is so short that eps = ${eps} counts, and the output does not reach the sphere: ${norms}.`,
      stopsAt: (norm, rms) => `${norm} stops at RMS ${rms}`,
      gain: (angle) =>
        "The gain stretches the sphere to an ellipsoid (dashed). " +
        (angle ? `It rotates RMSNorm's output ${angle}° away from x.` : "The output's mean is no longer zero."),
      same: "The mean is zero already: both norms make the same move.",
      lifted:
        "c lifts x straight up. LayerNorm drops it onto the same point; RMSNorm's output climbs toward (1, 1, 1).",
      plain: "Drag the tip of x, or drag next to it to rotate the globe.",
    },
  },
};
