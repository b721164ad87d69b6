// FiveSwitches: a board of five parts, each large or small, and how the training that begins so goes, seed by seed.

import { WIDE, h, svg, fill, setAttributes, setText, textAt, setSize, setTraits, fmt } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { linear, lineThrough, across, upright, levels, ticks } from "../../web/kit/chart.js";
import { PARTS, nameOf, endsOf, inOrder, learned } from "./math.js";
import { fiveSwitchesWords } from "./words.js";

const TONES = { table: "stream", q_k: "q", v_o: "v", feed_forward: "ffn", norm: "norm" };
const MOST = 1; // of the axis, in nats above the floor: what is higher is above the picture
const GUESSED = (3 * Math.log(8)) / 13; // nats: three of 13 words guessed among eight
const TALL = { plot: 190, compact: 150 };
const EDGE = { left: 34, right: 8, top: 22, bottom: 22 };
const ROW = { height: 15, low: 12, apart: 16, square: 9, small: 3, gap: 2, left: 62, right: 14 };
const FARTHEST = 0.6; // of the axis of ends, in nats

/** The five parts, each a button that makes it large or small. */
function createBoard(words, press) {
  const buttons = PARTS.map((part) => {
    const size = h("small", {});
    const root = h(
      "button",
      { type: "button", class: "fs-part", "data-tone": TONES[part], onClick: () => press(part) },
      h("i", { "aria-hidden": "true" }),
      h("span", {}, words.parts[part]),
      size,
    );
    return { root, size };
  });
  function draw(isLarge) {
    PARTS.forEach((part, i) => {
      const word = words.sizes[isLarge[part] ? "large" : "small"];
      setAttributes(buttons[i].root, {
        "aria-pressed": isLarge[part],
        "aria-label": words.part(words.parts[part], word),
      });
      setText(buttons[i].size, word);
    });
  }
  return { root: h("div", { class: "fs-board", role: "group", "aria-label": words.board }, buttons), draw };
}

/** How far each seed is above the floor, step by step; the setting before it as thin lines. */
function createCurves(words, stored, tall) {
  const root = svg("svg", { role: "img", class: "fs-plot fs-still" });
  let [name, before] = [null, null];
  const { steps, every } = stored;

  function linesOf(of, x, y, cls) {
    return stored.trainings[of].map((seed) => {
      const d = lineThrough(seed.map((above, i) => [x(i * every), y(above)]));
      return svg("path", { class: cls, d, pathLength: 1 });
    });
  }

  function draw(now, width) {
    if (now !== name) [name, before] = [now, name];
    const end = EDGE.top + tall;
    const x = linear([0, steps], [EDGE.left, width - EDGE.right]);
    const y = linear([0, MOST], [end, EDGE.top]);
    const ends = endsOf(stored, name).map((above) => fmt(above, 2));
    setSize(root, width, end + EDGE.bottom, words.picture(ends));
    const places = [0, steps / 3, (2 * steps) / 3, steps];
    fill(
      root,
      levels([0, 0.5, 1], y, EDGE.left, width - EDGE.right),
      across(y(GUESSED), EDGE.left, width - EDGE.right, "fs-guessed"),
      textAt(0, 12, words.axis),
      places.map((step, i) =>
        textAt(x(step), end + 17, i === 3 ? words.steps(step) : step, { anchor: i === 3 ? "end" : "middle" }),
      ),
      svg(
        "svg",
        { x: 0, y: EDGE.top, width, height: tall + 4, viewBox: `0 ${EDGE.top} ${width} ${tall + 4}` },
        before === null ? null : linesOf(before, x, y, "fs-before"),
        linesOf(name, x, y, "fs-line"),
      ),
      textAt(EDGE.left + 4, y(GUESSED) + 14, words.guessed, { cls: "mm-small mm-halo" }),
    );
  }
  return { root, draw };
}

/** Where the seeds of all settings end, three dots in a row; the chosen row is marked. */
function createRows(words, stored) {
  const root = svg("svg", { role: "img", class: "fs-plot" });
  const columns = inOrder(stored);

  function signOf(name, y, height) {
    return PARTS.map((part, i) => {
      const side = name.includes(part[0]) ? ROW.small : ROW.square;
      const [cx, cy] = [6 + i * (ROW.square + ROW.gap), y + height / 2];
      const at = { x: cx - side / 2, y: cy - side / 2, width: side, height: side };
      return svg("rect", { class: "fs-sign", "data-tone": TONES[part], ...at });
    });
  }

  function drawColumn(names, chosen, { from, to, top, height }) {
    const x = linear([0, FARTHEST], [from + ROW.left, to - ROW.right]);
    const end = top + names.length * height;
    return svg(
      "g",
      {},
      ticks([0, 0.2, 0.4, 0.6], x, top - 5),
      [0, 0.2, 0.4, 0.6].map((place) => upright(x(place), top, end, "mm-level")),
      names.map((name, i) => {
        const y = top + i * height;
        const dots = endsOf(stored, name).map((above) =>
          svg("circle", { class: "fs-dot", cx: x(Math.min(above, FARTHEST)).toFixed(1), cy: y + height / 2, r: 3.5 }),
        );
        const box = { x: from, y, width: to - from, height, rx: 3 };
        const mark = svg("rect", { class: "fs-row", "data-chosen": String(name === chosen), ...box });
        return svg("g", {}, mark, svg("g", { transform: `translate(${from} 0)` }, signOf(name, y, height)), dots);
      }),
    );
  }

  function draw(chosen, width) {
    const isWide = width >= WIDE;
    const half = (width - ROW.apart) / 2;
    const height = isWide ? ROW.height : ROW.low;
    const top = 38;
    const tall = top + columns[0].length * height;
    setSize(root, width, isWide ? tall : 2 * tall + ROW.apart, words.rows);
    fill(
      root,
      columns.map((names, i) => {
        const from = isWide ? i * (half + ROW.apart) : 0;
        const down = isWide ? 0 : i * (tall + ROW.apart);
        return [
          textAt(from, down + 12, words.columns[i], { cls: "mm-strong" }),
          drawColumn(names, chosen, { from, to: isWide ? from + half : width, top: down + top, height }),
        ];
      }),
    );
  }
  return { root, draw };
}

export default figure({
  words: fiveSwitchesWords,
  traits: PARTS,
  verdict: "fs-verdict",
  create({ model, words, isCompact }) {
    const stored = model.get("stored");
    const shows = isCompact ? "curve" : model.get("shows");
    const picture =
      shows === "all" ? createRows(words, stored) : createCurves(words, stored, isCompact ? TALL.compact : TALL.plot);
    const board = createBoard(words, (part) => {
      picture.root.classList.remove("fs-still");
      setTraits(model, { [part]: !model.get(part) });
    });

    function draw(width) {
      const isLarge = Object.fromEntries(PARTS.map((part) => [part, model.get(part)]));
      const name = nameOf(isLarge);
      board.draw(isLarge);
      picture.draw(name, width);
      const ends = endsOf(stored, name);
      const numbers = ends.map((above) => fmt(above, 2));
      return { verdict: words.verdict(learned(ends), numbers) };
    }
    return {
      title: isCompact ? words.titleCompact : words.titles[shows],
      caption: words.captions[shows],
      stage: h("div", { class: "mm-stage mm-column fs-stage" }, board, picture),
      draw,
    };
  },
});
