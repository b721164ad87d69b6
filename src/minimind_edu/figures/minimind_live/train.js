// A reader's own training: a smaller model learns to translate while its loss falls to what no model can get below.

import { h, svg, fill, textAt, setSize, fmt, button, toggle, announcement, observeSize } from "../../web/kit/kit.js";
import { linear, lineThrough, across, levels } from "../../web/kit/chart.js";
import { linksToChapters } from "./marks.js";

const RUN_STEPS = 200;
const LAST = 20; // steps whose mean is told: a batch alone is noisy
const HIGHEST = 5; // nats per word at the top of the chart
const CHART_HEIGHT = 200;
const SMALL_INITIALIZATION = 0.02;
const CHANGES = {
  positions: { switches: { positions: false } },
  residual: { switches: { residual: false } },
  initialization: { config: { initializer_range: SMALL_INITIALIZATION } },
};

const meanOf = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;
const entropyOf = (run) => meanOf(run.progress.map(({ entropy }) => entropy));

/** How far the last steps of a run are above the entropy, in nats per word. */
const excessOf = (run) => meanOf(run.progress.slice(-LAST).map(({ loss, entropy }) => loss - entropy));

/** The options of createTraining for the names of some changes. */
function optionsOf(names) {
  const [switches, config] = ["switches", "config"].map((part) =>
    Object.assign({}, ...names.map((name) => CHANGES[name][part])),
  );
  return { steps: RUN_STEPS, switches, config };
}

/** The loss of each step, the entropy as a dashed line, and the run before as a faint curve. */
function createLossChart(words) {
  const [left, right, top, bottom] = [22, 12, 24, 24];
  const root = svg("svg", { class: "ml-loss", role: "img" });
  const floor = CHART_HEIGHT - bottom;
  const up = linear([0, HIGHEST], [floor, top]);
  const y = (loss) => up(Math.min(loss, HIGHEST));

  function drawAxes(x, width) {
    const steps = [
      textAt(x(0), floor + 18, 0),
      textAt(x(RUN_STEPS / 2), floor + 18, RUN_STEPS / 2, { anchor: "middle" }),
      textAt(x(RUN_STEPS), floor + 18, words.steps(RUN_STEPS), { anchor: "end" }),
    ];
    return [textAt(0, 12, words.lossAxis), levels([0, 1, 2, 3, 4, HIGHEST], y, left, width - right), steps];
  }

  function curve({ progress }, x, cls) {
    const d = lineThrough(progress.map(({ step, loss }) => [x(step), y(loss)]));
    return svg("path", { class: `ml-loss-curve ${cls}`, d });
  }

  function drawEntropy(run, x, width) {
    const entropy = entropyOf(run);
    return [
      across(y(entropy), left, width - right, "mm-guide"),
      textAt(left + 4, y(entropy) + 12, words.entropy(fmt(entropy))),
    ];
  }

  function drawEnd({ progress }, x) {
    const { step, loss } = progress.at(-1);
    const isLate = step > RUN_STEPS * 0.8;
    const at = [x(step) + (isLate ? 0 : 7), y(loss) - (isLate ? 9 : 5)];
    return [
      svg("circle", { class: "mm-ink ml-loss-end", cx: x(step), cy: y(loss), r: 3.5 }),
      textAt(...at, fmt(loss), { anchor: isLate ? "end" : "start", cls: "mm-strong ml-loss-now" }),
    ];
  }

  function draw(run, before, width) {
    const x = linear([0, RUN_STEPS], [left, width - right]);
    const steps = run?.progress.length;
    const label = steps ? words.chart(steps, fmt(run.progress.at(-1).loss), fmt(entropyOf(run))) : words.chartEmpty;
    setSize(root, width, CHART_HEIGHT, label);
    fill(
      root,
      drawAxes(x, width),
      before && curve(before, x, "ml-loss-before"),
      steps ? [drawEntropy(run, x, width), curve(run, x, "ml-loss-run"), drawEnd(run, x)] : null,
    );
  }
  return { root, draw };
}

/** What the model writes after the given words: right words plain, wrong words marked. */
function createWritten(words, { tables, world }) {
  const title = h("p", { class: "ml-label" });
  const list = h("ul", { class: "ml-written" });
  const root = h("div", {}, title, list);

  function sentence({ ids, given, expected }) {
    const answer = ids.slice(given).map((id, at) => {
      const word = tables.words[id];
      return id === expected[at]
        ? h("span", {}, word)
        : h("del", { title: words.insteadOf(tables.words[expected[at]]) }, word);
    });
    return h("li", {}, h("span", { class: "ml-given" }, world.decode(ids.slice(1, given - 1))), h("span", {}, answer));
  }

  function draw(run) {
    root.hidden = !run?.rows;
    if (!run?.rows) return;
    title.textContent = words.writtenAt(run.rowsAt);
    fill(list, run.rows.map(sentence));
  }
  return { root, draw };
}

/** What a run has reached, as a sentence. */
function toldOf(run, words, tables) {
  const isRight = ({ ids, given, expected }) => expected.every((id, at) => id === ids[given + at]);
  const indexOf = (list, id) => list[0].indexOf(tables.words[id]);
  // live_train.js never shows a person with the object of the same number
  const isNew = ({ ids, given }) => {
    const person = indexOf(tables.people, ids[1]);
    return ids.slice(2, given).some((id) => indexOf(tables.objects, id) === person);
  };
  const steps = run.progress.length;
  const reached = words.reached(steps, Math.min(steps, LAST), fmt(Math.max(0, excessOf(run))));
  if (!run.rows) return reached;
  const right = run.rows.filter(isRight);
  return `${reached} ${words.wrote(run.rowsAt, right.length, run.rows.length, right.filter(isNew).length)}`;
}

/**
 * Train a model here. load() gives a promise of what living.js opens.
 * links: part of the model -> { href, label } of its chapter.
 */
export function createTrainView(allWords, session, load, links) {
  const words = allWords.train;
  const { tables } = session;
  const switches = Object.keys(CHANGES).map((name) => ({ name, ...toggle({ label: words.changes[name] }) }));
  const press = button({ label: words.start, onClick: () => (isRunning ? finish() : begin()) });
  const status = announcement("ml-seen");
  const legend = h("p", { class: "ml-label ml-loss-legend" });
  const [chart, written] = [createLossChart(words), createWritten(words, session)];
  const box = h("div", { class: "mm-stage ml-loss-box" }, chart);
  const root = h(
    "div",
    { class: "ml-train" },
    h("p", { class: "ml-hint" }, words.task),
    h("div", { class: "st-presses" }, press, h("div", { class: "ml-changes" }, switches)),
    box,
    legend,
    written,
    status,
    linksToChapters(allWords, links, ["training"]),
  );
  let [run, before, isRunning, width] = [null, null, false, 0];

  const namesOf = ({ changes }) => changes.map((name) => words.changes[name]).join(", ") || words.unchanged;

  function draw() {
    if (width) chart.draw(run, before, width);
    written.draw(run);
    legend.textContent = before ? words.compared(namesOf(run), namesOf(before)) : "";
  }

  function setRunning(next) {
    isRunning = next;
    press.set(next ? words.stop : words.start);
    switches.forEach(({ input }) => (input.disabled = next));
  }

  function finish() {
    run.training?.stop();
    setRunning(false);
    status.set(run.progress.length ? toldOf(run, words, tables) : "");
  }

  function hear(message) {
    if (message.type === "progress") run.progress.push(message);
    if (message.type === "samples") [run.rows, run.rowsAt] = [message.rows, message.step];
    draw();
    if (message.type === "done") finish();
    if (message.type === "error") fail(words.failed(message.message));
  }

  function fail(text) {
    setRunning(false);
    status.set(text);
  }

  async function begin() {
    if (run?.progress.length) before = run;
    const changes = switches.filter((change) => change.get()).map(({ name }) => name);
    const mine = { changes, progress: [], rows: null };
    run = mine;
    setRunning(true);
    status.set("");
    draw();
    try {
      const { createTraining } = await load();
      if (run !== mine || !isRunning) return; // stopped before the code was here
      run.training = createTraining({ tables, ...optionsOf(changes) }, hear);
      run.training.start();
    } catch {
      if (run === mine) fail(allWords.unavailable);
    }
  }

  const unobserve = observeSize(box, (now) => {
    width = now;
    draw();
  });
  const release = () => {
    unobserve();
    setRunning(false);
    run?.training?.stop();
  };
  return { root, release };
}
