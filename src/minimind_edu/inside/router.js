// Where the router of a block sends every token of the text: a row for each expert, a column for each token.

import { h, announcement, clamp, observeSize } from "../web/kit/kit.js";

const NAMES = 68; // pixels for the names of the experts
const EXPERT = 18;
const COLUMN = 18; // pixels of a column

/** texts(): the tokens as they are shown; colors(): of now. */
export function createRouter(words, session, data, texts, colors) {
  const { num_experts: N } = data.config;
  const canvas = h("canvas", { class: "in-grid", role: "img", "aria-label": words.grid });
  const pointed = announcement("mm-note");
  const root = h("div", { class: "in-routes" }, h("p", { class: "mm-note" }, words.grid), canvas, pointed);
  let [layer, column] = [0, COLUMN];

  function draw() {
    const { told: positions, selected } = session;
    const width = root.clientWidth;
    if (!width || !positions.length || !positions[0].routes[layer]) return;
    const dense = globalThis.devicePixelRatio || 1;
    column = Math.min(COLUMN, (width - NAMES) / positions.length);
    Object.assign(canvas, { width: Math.round(width * dense), height: Math.round(N * EXPERT * dense) });
    Object.assign(canvas.style, { width: `${width}px`, height: `${N * EXPERT}px` });
    const { ink, faint, feed } = colors();
    const context = canvas.getContext("2d");
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.font = `12px ${getComputedStyle(root).fontFamily}`;
    context.textBaseline = "middle";
    context.fillStyle = faint;
    for (let expert = 0; expert < N; expert++) context.fillText(words.expert(expert), 0, (expert + 0.5) * EXPERT);
    const gap = column > 4 ? 1 : 0;
    positions.forEach(({ routes }, at) => {
      const { probabilities, chosen } = routes[layer];
      for (let expert = 0; expert < N; expert++) {
        const isChosen = chosen.includes(expert);
        context.globalAlpha = isChosen ? Math.max(0.25, probabilities[expert]) : 0.06;
        context.fillStyle = isChosen ? feed : faint;
        context.fillRect(NAMES + at * column, expert * EXPERT + 1, column - gap, EXPERT - 2);
      }
    });
    context.globalAlpha = 1;
    context.strokeStyle = ink;
    context.strokeRect(NAMES + selected * column - 0.5, 0.5, column, N * EXPERT - 1);
  }

  const tokenAt = (event) => {
    const at = Math.floor((event.clientX - canvas.getBoundingClientRect().left - NAMES) / column);
    return at < 0 ? null : clamp(at, 0, session.told.length - 1);
  };
  canvas.addEventListener("pointermove", (event) => {
    const at = tokenAt(event);
    if (at === null) return;
    const { chosen, probabilities } = session.told[at].routes[layer];
    pointed.set(
      words.sent(
        texts()[at],
        chosen.map((expert) => [expert, probabilities[expert]]),
      ),
    );
  });
  canvas.addEventListener("click", (event) => {
    const at = tokenAt(event);
    if (at !== null) session.select(at);
  });
  observeSize(root, draw);

  const show = (next) => ((layer = next), draw());
  return { root, show };
}
