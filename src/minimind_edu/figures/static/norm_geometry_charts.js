// The flat drawings of the norm figure: bars of three channels, their numbers, and the lines of 64 channels over c.

import { h, svg, fmt } from "./kit.js";
import { INK, MUTED, LINE, PAPER, NORMS, clamp, smallText } from "./norm_geometry_result.js";

export const ROW = 24; // pixels for one bar
const LEFT = 20;
const RIGHT = 50;

// From a value to the page and back, for bars around a zero in the middle.
export function barScale(width, limit) {
  const unit = (width - LEFT - RIGHT) / (2 * limit);
  return { unit, at: (value) => LEFT + unit * (clamp(value, -limit, limit) + limit), valueAt: (x) => (x - LEFT) / unit - limit };
}

// Bars, with a band of mean ± std behind them and a tick at the mean.
export function drawBars(values, { mean, std }, { color, opacity, width, limit, text }) {
  const { at } = barScale(width, limit);
  const height = ROW * values.length;
  const upright = (value, style) => svg("line", { x1: at(value), x2: at(value), y1: 0, y2: height, ...style });
  const rows = values.map((value, i) => {
    const y = ROW * i + ROW / 2;
    const ends = [at(0), at(value)].sort((a, b) => a - b);
    return [
      svg("text", { x: 4, y: y + 4.5, style: { fill: MUTED, fontSize: "12px" } }, `${i + 1}`),
      svg("rect", { x: ends[0], y: y - 6, width: ends[1] - ends[0], height: 12, rx: 2, fill: color, "fill-opacity": opacity }),
      svg("text", { x: width - 2, y: y + 4.5, "text-anchor": "end" }, text(value)),
    ];
  });
  const band = { x: at(mean - std), width: at(mean + std) - at(mean - std), y: 1, height: height - 2 };
  return [
    svg("rect", { ...band, fill: color, "fill-opacity": 0.13 }),
    upright(0, { stroke: MUTED, "stroke-width": 1 }),
    ...rows.flat(),
    upright(mean, { stroke: color, "stroke-width": 2, "stroke-dasharray": "3 2" }),
  ];
}

// Mean, std and RMS of the input and of each output, and the angle between the two.
export function numbersTable() {
  const cell = { padding: "3px 0 3px 8px", textAlign: "right", border: "0", background: "none", fontSize: "13px" };
  const quiet = { ...cell, color: MUTED, fontWeight: "400" };
  const first = { ...cell, textAlign: "left", paddingLeft: "0", fontWeight: "600" };
  const titles = ["mean", "std", "RMS", "turned by"].map((text) => h("th", { scope: "col", style: quiet }, text));
  const body = h("tbody", { "aria-live": "polite" });
  const style = { width: "100%", borderCollapse: "collapse", margin: "4px 0 0", tableLayout: "auto" };
  const root = h("table", { style }, h("thead", {}, h("tr", {}, h("td", { style: quiet }), titles)), body);
  const row = (title, tone, numbers) => {
    const cells = numbers.map((text) => h("td", { style: cell }, text));
    const line = { borderTop: `1px solid ${LINE}`, background: "none" };
    return h("tr", { style: line }, h("th", { scope: "row", "data-tone": tone, style: first }, title), cells);
  };
  const three = ({ mean, std, rms }, text) => [mean, std, rms].map(text);
  const set = ({ argument, stats, outputs, shown }) => {
    const turned = ({ angle }) => (Number.isNaN(angle) ? "–" : `${fmt(angle, 1)}°`);
    const rows = shown.map((name) => row(NORMS[name].title, NORMS[name].tone, [...three(outputs[name].stats, (z) => fmt(z)), turned(outputs[name])]));
    body.replaceChildren(row(argument, null, [...three(stats, smallText), ""]), ...rows);
  };
  return { root, set };
}

// One thin line for each channel of the output over c, computed here; mean and std are the package's curves.
export function drawFan({ name, values, curve, eps, width, height }) {
  const { of, color } = NORMS[name];
  const { mean, std } = curve[name];
  const [left, right, top, bottom] = [24, 10, 6, 24];
  const last = curve.c.at(-1);
  const outputs = curve.c.map((c) => of(values.map((value) => value + c), eps));
  const limit = 1.05 * Math.max(2.5, ...outputs.flat().map(Math.abs));
  const px = (c) => left + (c / last) * (width - left - right);
  const py = (y) => top + ((limit - y) / (2 * limit)) * (height - top - bottom);
  const path = (ys) => `M${ys.map((y, i) => `${px(curve.c[i]).toFixed(1)},${py(y).toFixed(1)}`).join("L")}`;
  const band = `${path(mean.map((m, i) => m + std[i]))}L${path(mean.map((m, i) => m - std[i])).slice(1).split("L").reverse().join("L")}Z`;
  const small = { fill: MUTED, fontSize: "12px" };
  const levels = [-2, 0, 2].flatMap((y) => [
    svg("line", { x1: left, x2: width - right, y1: py(y), y2: py(y), stroke: LINE, "stroke-width": 1 }),
    svg("text", { x: left - 6, y: py(y) + 4, "text-anchor": "end", style: small }, fmt(y, 0)),
  ]);
  const ticks = [0, 1, 2, 3, 4, 5].filter((c) => c <= last);
  const marker = svg("line", { y1: top, y2: height - bottom, stroke: INK, "stroke-width": 1.5 });
  const knob = svg("circle", { r: 5, fill: color, stroke: PAPER, "stroke-width": 1.5 });
  const nodes = [
    ...levels,
    svg("path", { d: band, fill: color, "fill-opacity": 0.16 }),
    svg("path", { d: values.map((_, k) => path(outputs.map((y) => y[k]))).join(""), fill: "none", stroke: color, "stroke-width": 0.8, "stroke-opacity": 0.42 }),
    svg("path", { d: path(mean), fill: "none", stroke: color, "stroke-width": 2.6 }),
    ...ticks.map((c) => svg("text", { x: px(c), y: height - 6, "text-anchor": "middle", style: small }, c === 0 ? "c = 0" : `${c}`)),
    marker,
    knob,
  ];
  const mark = (c, index) => {
    for (const end of ["x1", "x2"]) marker.setAttribute(end, px(c));
    knob.setAttribute("cx", px(c));
    knob.setAttribute("cy", py(mean[index]));
  };
  return { nodes, mark, offsetAt: (x) => clamp(((x - left) / (width - left - right)) * last, 0, last) };
}
