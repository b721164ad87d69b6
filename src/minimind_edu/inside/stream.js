// What passes through a block at a token: the stream, what attention and the feed-forward part add to it, and its size.

import { h, fill, fmt } from "../web/kit/kit.js";
import { rootMeanSquare, stripRows } from "../web/stage/strips.js";

const LARGEST = 3; // channels that are named

const minus = (a, b) => a.map((value, i) => value - b[i]);

export function createStream(words, session, chip, data) {
  const { num_hidden_layers: L, use_moe: isMixture } = data.config;
  const names = words.strips(isMixture);
  const about = h("p", { class: "mm-note" });
  const list = h("div", {});
  const norms = h("p", {});
  const largest = h("p", {});
  const columns = Array.from({ length: L + 1 }, () => h("i", {}));
  const sizes = h("div", { class: "in-sizes", role: "img" }, columns);
  const sizesNote = h("p", { class: "mm-note" });
  const root = h("div", {}, about, list, largest, norms, sizes, sizesNote);

  function drawOf(layer, { streams, middles }) {
    const [input, middle, output] = [streams[layer], middles[layer], streams[layer + 1]];
    const vectors = [input, minus(middle, input), minus(output, middle), output];
    const most = Math.max(1e-9, ...vectors.map((values) => values.reduce((m, x) => Math.max(m, Math.abs(x)), 0)));
    const rows = vectors.map((values, i) => [names[i], values, fmt(rootMeanSquare(values))]);
    const shareOf = (x) => Math.sqrt(x / most); // a few channels of real models are far larger than all others
    fill(list, stripRows(words, rows, shareOf));
    const whole = output.reduce((sum, value) => sum + value * value, 0);
    const order = [...output.keys()].sort((a, b) => Math.abs(output[b]) - Math.abs(output[a])).slice(0, LARGEST);
    const named = order.map((channel) => [channel + 1, output[channel] ** 2 / whole]);
    largest.textContent = words.largest(named);
    norms.textContent = words.norms(fmt(rootMeanSquare(input), 2), fmt(rootMeanSquare(middle), 2), isMixture);
    const all = streams.map(rootMeanSquare);
    const largestSize = Math.max(...all);
    columns.forEach((column, l) => {
      column.style.height = `${(100 * all[l]) / largestSize}%`;
      column.dataset.isHere = String(l === layer || l === layer + 1);
    });
    const sentence = words.sizes(fmt(all[0], 2), fmt(all[L], 2), L);
    sizes.setAttribute("aria-label", sentence);
    sizesNote.textContent = sentence;
  }

  let drawn = { found: null, layer: null };
  function show(layer) {
    const [before, after] = words.stream(data.config.hidden_size);
    fill(about, before, chip.at(session.selected), after);
    session.look("stream", { at: session.selected }, (found) => {
      if (drawn.found === found && drawn.layer === layer) return;
      drawn = { found, layer };
      drawOf(layer, found);
    });
  }
  return { root, show };
}
