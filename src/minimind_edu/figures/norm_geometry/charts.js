// The flat drawings of the norm figure: bars of three channels, their numbers, and the lines of 64 channels over c.

import { h, svg, fill, setAttributes, textAt, clamp, fmt, row } from "../../web/kit/kit.js";
import { linear, lineThrough, upright, levels, ticks } from "../../web/kit/chart.js";
import { NORMS, normWords, smallText } from "./result.js";

export const ROW = 24; // pixels for one bar
const LEFT = 20;
const RIGHT = 50;
const FAN = { left: 24, right: 10, top: 6, bottom: 24 };

// From a value to the page and back, for bars around a zero in the middle.
export function barScale(width, limit) {
  const scale = linear([-limit, limit], [LEFT, width - RIGHT]);
  return { at: (value) => scale(clamp(value, -limit, limit)), valueAt: scale.invert };
}

// Bars, with a band of mean ± std behind them and a tick at the mean.
export function drawBars(values, { mean, std }, { color, opacity, width, limit, text }) {
  const { at } = barScale(width, limit);
  const height = ROW * values.length;
  const between = (from, to) => ({ x: Math.min(at(from), at(to)), width: Math.abs(at(to) - at(from)) });

  const drawRow = (value, i) => {
    const y = ROW * i + ROW / 2;
    const bar = { ...between(0, value), y: y - 6, height: 12, rx: 2, fill: color, "fill-opacity": opacity };
    return [
      textAt(4, y + 4.5, `${i + 1}`),
      svg("rect", bar),
      textAt(width - 2, y + 4.5, text(value), { anchor: "end", cls: null }),
    ];
  };
  const band = { ...between(mean - std, mean + std), y: 1, height: height - 2, fill: color, "fill-opacity": 0.13 };
  const tick = upright(at(mean), 0, height);
  setAttributes(tick, { stroke: color, "stroke-width": 2, "stroke-dasharray": "3 2" });
  return [svg("rect", band), upright(at(0), 0, height, "mm-axis"), values.map(drawRow), tick];
}

// Mean, std and RMS of the input and of each output, and the angle between the two.
export function numbersTable() {
  const titles = normWords.stats.map((text) => h("th", { scope: "col" }, text));
  const body = h("tbody", { "aria-live": "polite" });
  const root = h("table", { class: "mm-table ng-table" }, h("thead", {}, h("tr", {}, h("td"), titles)), body);
  const row = (title, color, numbers) => {
    const cells = numbers.map((text) => h("td", {}, text));
    return h("tr", {}, h("th", { scope: "row", style: { color } }, title), cells);
  };
  const three = ({ mean, std, rms }, text) => [mean, std, rms].map((value) => text(value));
  const turned = ({ angle }) => (Number.isNaN(angle) ? normWords.none : normWords.degrees(fmt(angle, 1)));
  const set = ({ argument, stats, outputs, shown }) => {
    const rows = shown.map((name) => {
      const { title, color } = NORMS[name];
      return row(title, color, [...three(outputs[name].stats, fmt), turned(outputs[name])]);
    });
    fill(body, row(argument, "", [...three(stats, smallText), ""]), rows);
  };
  return { root, set };
}

// One thin line for each channel of the output over c, computed here; mean and std are the package's curves.
export function drawFan({ name, values, curve, eps, width, height }) {
  const { of, color } = NORMS[name];
  const { mean, std } = curve[name];
  const { left, right, top, bottom } = FAN;
  const last = curve.c.at(-1);
  const shifted = (c) => values.map((value) => value + c);
  const outputs = curve.c.map((c) => of(shifted(c), eps)); // [points of c][channels]
  const limit = 1.05 * Math.max(2.5, ...outputs.flat().map(Math.abs));
  const px = linear([0, last], [left, width - right]);
  const py = linear([limit, -limit], [top, height - bottom]);
  const points = (ys) => ys.map((y, i) => [px(curve.c[i]), py(y)]);
  const path = (ys) => lineThrough(points(ys));
  const upper = points(mean.map((m, i) => m + std[i]));
  const lower = points(mean.map((m, i) => m - std[i])).reverse();
  const channels = values.map((_, channel) => path(outputs.map((output) => output[channel])));
  const cs = [0, 1, 2, 3, 4, 5].filter((c) => c <= last);
  const thin = { fill: "none", stroke: color, "stroke-width": 0.8, "stroke-opacity": 0.42 };
  const marker = svg("line", { class: "ng-marker", y1: top, y2: height - bottom });
  const knob = svg("circle", { class: "ng-knob", r: 5, fill: color });
  const nodes = [
    levels([-2, 0, 2], py, left, width - right, (y) => fmt(y, 0)),
    svg("path", { d: `${lineThrough([...upper, ...lower])}Z`, fill: color, "fill-opacity": 0.16 }),
    svg("path", { d: channels.join(""), ...thin }),
    svg("path", { d: path(mean), fill: "none", stroke: color, "stroke-width": 2.6 }),
    ticks(cs, px, height - 6, (c) => (c === 0 ? normWords.cIs(c) : c)),
    marker,
    knob,
  ];
  const mark = (c, index) => {
    setAttributes(marker, { x1: px(c), x2: px(c) });
    setAttributes(knob, { cx: px(c), cy: py(mean[index]) });
  };
  return { nodes, mark, offsetAt: (x) => clamp(px.invert(x), 0, last) };
}
