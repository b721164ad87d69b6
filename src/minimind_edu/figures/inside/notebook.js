// The page's views in a notebook: the model stays in the kernel, which answers as the worker of a page does.

import { h, observeSize, wordsOf } from "../kit/kit.js";
import { createViews } from "./views.js";
import { insideWords } from "./words.js";

/** What kernel.py sends of a position, with the bytes [L, H * T] of its attention. */
const withWeights = (told, bytes, blocks) => {
  const size = bytes.length / blocks;
  return { ...told, weights: Array.from({ length: blocks }, (_, l) => bytes.subarray(l * size, (l + 1) * size)) };
};
const bytesOfView = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** As runner.js has it, by messages to the kernel. hear(message) gets what it tells by itself. */
function createKernelRunner(model, { num_hidden_layers: L, hidden_size: E }, hear) {
  const asked = new Map(); // key -> what waits for the answer
  let [count, run] = [0, 0];

  /** The vectors of all streams, and of the middles. */
  function streamsIn(view) {
    const numbers = new Float32Array(bytesOfView(view).slice().buffer);
    const vectors = Array.from({ length: 2 * L + 1 }, (_, i) => numbers.subarray(i * E, (i + 1) * E));
    return { streams: vectors.slice(0, L + 1), middles: vectors.slice(L + 1) };
  }
  function listen(message, buffers) {
    if (message.did === "look") {
      asked.get(message.key)?.(message.answer === "in bytes" ? streamsIn(buffers[0]) : message.answer);
      asked.delete(message.key);
    } else if (message.did === "read" && message.run === run) {
      hear({ ...message, told: message.told.map((one, i) => withWeights(one, bytesOfView(buffers[i]), L)) });
    } else if (message.did === "fail" || message.run === run) hear(message);
  }
  model.on("msg:custom", listen);
  const look = (what, place) =>
    new Promise((resolve) => {
      asked.set(++count, resolve);
      model.send({ do: "look", key: count, what, ...place });
    });
  const read = (ids, silenced) => model.send({ do: "read", run: ++run, ids, silenced: [...silenced] });
  const trial = (place) => model.send({ do: "trial", run, ...place });
  const release = () => model.off("msg:custom", listen);
  return { look, read, trial, release };
}

function render({ model, el }) {
  const data = model.get("data");
  const root = h("div", { class: "mm-fig in-page" });
  el.append(root);
  const runnerOf = (hear) => createKernelRunner(model, data.config, hear);
  const { session, runner, problem, state, paint, release } = createViews(root, data, wordsOf(insideWords), runnerOf);
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
