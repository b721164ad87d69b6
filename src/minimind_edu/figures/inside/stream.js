// What passes through a block at a token: the stream, what attention and the feed-forward part add to it, and its size.

import { h, fill, announcement, clamp, fmt, observeSize } from "../kit/kit.js";

const LARGEST = 3; // channels that are named

const sizeOf = (x) => Math.sqrt(x.reduce((sum, value) => sum + value * value, 0) / x.length); // its root mean square
const minus = (a, b) => a.map((value, i) => value - b[i]);

/** colors(): of now. */
export function createStream(words, session, chip, data, colors) {
  const { num_hidden_layers: L, use_moe: isMixture } = data.config;
  const about = h("p", { class: "mm-note" });
  const strips = words.strips(isMixture).map((name) => {
    const [canvas, size] = [h("canvas", { height: 1, role: "img", "aria-label": name }), h("b", {})];
    return { canvas, size, root: h("li", {}, h("span", {}, name), canvas, size), values: [] };
  });
  const pointed = announcement("mm-note");
  const norms = h("p", {});
  const largest = h("p", {});
  const columns = Array.from({ length: L + 1 }, () => h("i", {}));
  const sizes = h("div", { class: "in-sizes", role: "img" }, columns);
  const sizesNote = h("p", { class: "mm-note" });
  const list = h("ol", { class: "in-list in-strips" }, strips);
  const root = h("div", {}, about, list, pointed, largest, norms, sizes, sizesNote);

  /** Channels from left to right; where there are more than pixels, the largest of those that share one. */
  function paint({ canvas, values }, most) {
    const count = Math.min(values.length, Math.max(1, canvas.clientWidth));
    canvas.width = count;
    const context = canvas.getContext("2d");
    const image = context.createImageData(count, 1);
    const { plus, less } = colors();
    const shown = new Float32Array(count);
    values.forEach((value, i) => {
      const at = Math.floor((i * count) / values.length);
      if (Math.abs(value) < Math.abs(shown[at])) return;
      shown[at] = value;
      image.data.set([...(value < 0 ? less : plus), 255 * Math.sqrt(Math.abs(value) / most)], 4 * at);
    });
    context.putImageData(image, 0, 0);
  }
  const paintAll = () => {
    const most = Math.max(1e-9, ...strips.map(({ values }) => values.reduce((m, x) => Math.max(m, Math.abs(x)), 0)));
    strips.forEach((strip) => strip.values.length && paint(strip, most));
  };
  observeSize(list, paintAll);

  list.addEventListener("pointermove", (event) => {
    const strip = strips.find(({ canvas }) => canvas === event.target);
    if (!strip?.values.length) return;
    const { left, width } = strip.canvas.getBoundingClientRect();
    const { length } = strip.values;
    const channel = clamp(Math.floor(((event.clientX - left) / width) * length), 0, length - 1);
    pointed.set(words.channel(channel + 1, fmt(strip.values[channel], 2)));
  });

  function drawOf(layer, { streams, middles }) {
    const [input, middle, output] = [streams[layer], middles[layer], streams[layer + 1]];
    [input, minus(middle, input), minus(output, middle), output].forEach((values, i) => {
      strips[i].values = values;
      strips[i].size.textContent = fmt(sizeOf(values), 2);
    });
    paintAll();
    const whole = output.reduce((sum, value) => sum + value * value, 0);
    const order = [...output.keys()].sort((a, b) => Math.abs(output[b]) - Math.abs(output[a])).slice(0, LARGEST);
    const named = order.map((channel) => [channel + 1, output[channel] ** 2 / whole]);
    largest.textContent = words.largest(named).replaceAll(" %", "\u00a0%");
    norms.textContent = words.norms(fmt(sizeOf(input), 2), fmt(sizeOf(middle), 2), isMixture);
    const all = streams.map(sizeOf);
    const most = Math.max(...all);
    columns.forEach((column, l) => {
      column.style.height = `${(100 * all[l]) / most}%`;
      column.dataset.isHere = String(l === layer || l === layer + 1);
    });
    const told = words.sizes(fmt(all[0], 2), fmt(all[L], 2), L);
    sizes.setAttribute("aria-label", told);
    sizesNote.textContent = told;
  }

  function show(layer) {
    fill(about, words.stream(data.config.hidden_size), chip(session.ids[session.selected]));
    session.look("stream", { at: session.selected }, (found) => drawOf(layer, found));
  }
  return { root, show };
}
