// The stream of the living model at one word of the story, before one of its norms and after it.

import { h, svg, fill, setSize, fmt, slider } from "../../web/kit/kit.js";
import { across } from "../../web/kit/chart.js";
import { createWordLine } from "../../web/live/word_line.js";
import { angleBetween, channelStats, layerNorm, rmsNorm } from "./math.js";
import { normWords } from "./result.js";

const STRIP = 54; // pixels
const STREAM = "var(--mm-stream)";
const NORMED = "var(--mm-norm)";
const GAINED = "color-mix(in oklab, var(--mm-norm) 55%, var(--mm-panel))";

/** Every norm of the model in its order, with the vector x [E] that it gets at the chosen word. */
function normSites({ living, traces, at }) {
  const gainOf = (name) => [...living.tensors[`model.${name}.weight`].data];
  const { blocks, final } = traces[at];
  const sites = blocks.flatMap(({ input, middle }, layer) => [
    { name: normWords.sites.attention(layer + 1), x: [...input], gain: gainOf(`layers.${layer}.input_layernorm`) },
    {
      name: normWords.sites.feedForward(layer + 1),
      x: [...middle],
      gain: gainOf(`layers.${layer}.post_attention_layernorm`),
    },
  ]);
  return [...sites, { name: normWords.sites.final, x: [...final], gain: gainOf("norm") }];
}

/** The three vectors at a norm: as it comes, divided by its RMS, times the gain. */
function throughNorm({ x, gain }, eps) {
  return { x, plain: rmsNorm(x, eps), final: rmsNorm(x, eps, gain) };
}

const largestOfAll = (vectors) => Math.max(...vectors.flat().map(Math.abs));

/** A bar for each channel, up or down from a zero in the middle. */
function createStrip(color) {
  const title = h("p", { class: "mm-label" });
  const picture = svg("svg", { role: "img", height: STRIP });

  function draw(values, limit, width, text) {
    const step = width / values.length;
    const bars = values.map((value, i) => {
      const height = (Math.abs(value) / limit) * (STRIP / 2);
      const y = STRIP / 2 - (value > 0 ? height : 0);
      return svg("rect", { fill: color, x: i * step + 0.5, y, width: Math.max(1, step - 1), height });
    });
    title.textContent = text;
    setSize(picture, width, STRIP, text);
    fill(picture, bars, across(STRIP / 2, 0, width, "mm-axis"));
  }
  return { root: h("div", { class: "ng-strip" }, title, picture), draw };
}

/** The strips and the slider that goes from norm to norm; changed() is called when it moves. */
export function createStream(source, changed) {
  const line = createWordLine((at) => source.choose({ at }));
  const strips = [STREAM, NORMED, GAINED].map(createStrip);
  const root = h("div", { class: "mm-column ng-stream", hidden: true }, line, h("div", {}, strips));
  let [names, place] = [[], null];
  const norm = slider({
    label: normWords.whichNorm,
    min: 0,
    max: 1,
    step: 1,
    value: 0,
    format: (at) => names[at] ?? "",
    onInput: (at) => changed((place = at)),
  });

  /** Draws the chosen norm and returns its sentence and its numbers. */
  function draw(reading) {
    const sites = normSites(reading);
    const eps = reading.living.model.config.rms_norm_eps;
    const all = sites.map((site) => throughNorm(site, eps));
    names = sites.map((site) => site.name);
    place ??= sites.length - 1; // where the stream is largest, as a rule
    norm.input.max = sites.length - 1;
    norm.set(place);
    line.draw(reading.tokens, reading.at, (at) => ({ tone: at === reading.at ? "ink" : "" }));
    const rms = (values) => fmt(channelStats(values).rms);
    const { x, plain, final } = all[place];
    const width = root.clientWidth;
    const limit = largestOfAll(all.flatMap((norm) => [norm.plain, norm.final]));
    strips[0].draw(x, largestOfAll(all.map((norm) => norm.x)), width, normWords.strips.x(rms(x)));
    strips[1].draw(plain, limit, width, normWords.strips.plain(rms(plain)));
    strips[2].draw(final, limit, width, normWords.strips.final(rms(final)));
    const { mean } = channelStats(x);
    return [
      [normWords.streamRms, rms(x)],
      [normWords.streamMean, fmt(mean)],
      [normWords.apart, normWords.degrees(fmt(angleBetween(plain, layerNorm(x, eps)), 1))],
    ];
  }
  return { root, control: norm, draw };
}
