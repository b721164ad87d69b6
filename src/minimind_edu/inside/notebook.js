// The page's views in a notebook: the model stays in the kernel, which answers as the worker of a page does.

import { h, askFor, observeSize, wordsOf } from "../web/kit/kit.js";
import { createViews } from "./views.js";
import { insideWords } from "./words.js";

const bytesOfView = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** As runner.js has it, by messages to the kernel. hear(message) gets what it tells by itself. */
function createKernelRunner(model, { num_hidden_layers: L, num_attention_heads: H, hidden_size: E }, hear) {
  const asked = new Map(); // key -> { resolve, what, place }: who waits for the answer
  let [count, run] = [0, 0];
  const view = Math.random().toString(36).slice(2); // a cell's output may be shown twice, each with a text of its own
  const send = (message) => model.send({ view, ...message });

  /** The vectors of all streams, and of the middles. */
  function streamsIn(bytes) {
    const numbers = new Float32Array(bytes.slice().buffer);
    const vectors = Array.from({ length: 2 * L + 1 }, (_, i) => numbers.subarray(i * E, (i + 1) * E));
    return { streams: vectors.slice(0, L + 1), middles: vectors.slice(L + 1) };
  }
  /** What the heads of a block read at each position from one on: [H * T] bytes for T positions. */
  function mapsIn(bytes, { from }) {
    const rows = [];
    for (let at = from, start = 0; start < bytes.length; at++)
      rows.push(bytes.subarray(start, (start += H * (at + 1))));
    return rows;
  }
  const inBytes = { stream: streamsIn, maps: mapsIn };

  function listen(message, buffers) {
    if (message.view !== view) return;
    if (message.did === "look") {
      const { resolve, what, place } = asked.get(message.key) ?? {};
      asked.delete(message.key);
      resolve?.(buffers.length ? inBytes[what](bytesOfView(buffers[0]), place) : message.answer);
    } else if (message.did === "read" && message.run === run) {
      hear({
        ...message,
        told: message.told.map((position) => ("top" in position ? { ...position, weights: [] } : position)),
      });
    } else if (message.did === "fail" || message.run === run) hear(message);
  }
  model.on("msg:custom", listen);
  const look = (what, place) =>
    new Promise((resolve) => {
      asked.set(++count, { resolve, what, place });
      send({ do: "look", key: count, what, ...place });
    });
  const read = (ids, silenced, known) => send({ do: "read", run: ++run, ids, silenced: [...silenced], known });
  const release = () => {
    model.off("msg:custom", listen);
    send({ do: "close" });
  };
  return { look, read, release };
}

function render({ model, el }) {
  const data = model.get("data");
  const root = h("div", { class: "mm-fig in-page" });
  el.append(root);
  const runnerOf = (hear) => createKernelRunner(model, data.config, hear);
  const keep = { given: () => askFor(model, "keep") }; // a cell's output has no address
  const views = createViews(root, data, wordsOf(insideWords), runnerOf, keep);
  const { session, runner, problem, state, paint, release } = views;
  let painted = 0;
  const unwatch = observeSize(root, (width) => {
    if (!width || width === painted) return; // there are no colors before it is shown
    painted = width;
    paint();
  });
  state.set(problem);
  session.type(problem ? "1 2 3" : data.text);
  return () => {
    unwatch();
    runner.release();
    release();
  };
}

export default { render };
