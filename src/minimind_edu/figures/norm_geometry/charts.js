// The flat drawings of the norm figure: bars of three channels, their numbers, and the lines of 64 channels over c.

import { h, svg, textAt, setAttributes, clamp, fmt } from "../kit/kit.js";
import { NORMS, normWords, smallText } from "./result.js";

export const ROW = 24; // pixels for one bar
const LEFT = 20;
const RIGHT = 50;
const FAN = { left: 24, right: 10, top: 6, bottom: 24 };

// From a value to the page and back, for bars around a zero in the middle.
export function barScale(width, limit) {
  const unit = (width - LEFT - RIGHT) / (2 * limit);
  const at = (value) => LEFT + unit * (clamp(value, -limit, limit) + limit);
  return { at, valueAt: (x) => (x - LEFT) / unit - limit };
}

// Bars, with a band of mean ± std behind them and a tick at the mean.
export function drawBars(values, { mean, std }, { color, opacity, width, limit, text }) {
  const { at } = barScale(width, limit);
  const height = ROW * values.length;
  const between = (from, to) => ({ x: Math.min(at(from), at(to)), width: Math.abs(at(to) - at(from)) });
  const upright = (value, style) => svg("line", { x1: at(value), x2: at(value), y1: 0, y2: height, ...style });
  const drawRow = (value, i) => {
    const y = ROW * i + ROW / 2;
    const bar = { ...between(0, value), y: y - 6, height: 12, rx: 2, fill: color, "fill-opacity": opacity };
    return [
      textAt(4, y + 4.5, `${i + 1}`, "ng-small"),
      svg("rect", bar),
      textAt(width - 2, y + 4.5, text(value), null, "end"),
    ];
  };
  const band = { ...between(mean - std, mean + std), y: 1, height: height - 2, fill: color, "fill-opacity": 0.13 };
  return [
    svg("rect", band),
    upright(0, { class: "ng-zero" }),
    ...values.flatMap(drawRow),
    upright(mean, { stroke: color, "stroke-width": 2, "stroke-dasharray": "3 2" }),
  ];
}

// Mean, std and RMS of the input and of each output, and the angle between the two.
export function numbersTable() {
  const titles = normWords.stats.map((text) => h("th", { scope: "col" }, text));
  const body = h("tbody", { "aria-live": "polite" });
  const root = h("table", { class: "ng-table" }, h("thead", {}, h("tr", {}, h("td"), titles)), body);
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
    body.replaceChildren(row(argument, "", [...three(stats, smallText), ""]), ...rows);
  };
  return { root, set };
}

// One thin line for each channel of the output over c, computed here; mean and std are the package's curves.
export function drawFan({ name, values, curve, eps, width, height }) {
  const { of, color } = NORMS[name];
  const { mean, std } = curve[name];
  const { left, right, top, bottom } = FAN;
  const last = curve.c.at(-1);
  const outputs = curve.c.map((c) =>
    of(
      values.map((value) => value + c),
      eps,
    ),
  ); // [points of c][channels]
  const limit = 1.05 * Math.max(2.5, ...outputs.flat().map(Math.abs));
  const px = (c) => left + (c / last) * (width - left - right);
  const py = (y) => top + ((limit - y) / (2 * limit)) * (height - top - bottom);
  const points = (ys) => ys.map((y, i) => `${px(curve.c[i]).toFixed(1)},${py(y).toFixed(1)}`);
  const path = (ys) => `M${points(ys).join("L")}`;
  const upper = points(mean.map((m, i) => m + std[i]));
  const lower = points(mean.map((m, i) => m - std[i])).reverse();
  const channels = values.map((_, channel) => path(outputs.map((output) => output[channel])));
  const level = (y) => svg("line", { class: "ng-level", x1: left, x2: width - right, y1: py(y), y2: py(y) });
  const tick = (c) => textAt(px(c), height - 6, c === 0 ? normWords.cIs(c) : `${c}`, "ng-small", "middle");
  const thin = { fill: "none", stroke: color, "stroke-width": 0.8, "stroke-opacity": 0.42 };
  const marker = svg("line", { class: "ng-marker", y1: top, y2: height - bottom });
  const knob = svg("circle", { class: "ng-knob", r: 5, fill: color });
  const nodes = [
    ...[-2, 0, 2].flatMap((y) => [level(y), textAt(left - 6, py(y) + 4, fmt(y, 0), "ng-small", "end")]),
    svg("path", { d: `M${[...upper, ...lower].join("L")}Z`, fill: color, "fill-opacity": 0.16 }),
    svg("path", { d: channels.join(""), ...thin }),
    svg("path", { d: path(mean), fill: "none", stroke: color, "stroke-width": 2.6 }),
    ...[0, 1, 2, 3, 4, 5].filter((c) => c <= last).map(tick),
    marker,
    knob,
  ];
  const mark = (c, index) => {
    setAttributes(marker, { x1: px(c), x2: px(c) });
    setAttributes(knob, { cx: px(c), cy: py(mean[index]) });
  };
  return { nodes, mark, offsetAt: (x) => clamp(((x - left) / (width - left - right)) * last, 0, last) };
}
