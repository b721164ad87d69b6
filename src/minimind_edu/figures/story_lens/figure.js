// StoryLens: rows are the words of a story, columns the blocks; a cell is what the model would say there.

import { WIDE, h, fill, fmt, clamp, slider, row, setTraits } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { storyLensWords } from "./words.js";

/** The table: a button for each word of the story, and a cell for each block that has read it. */
function createTable(words, onChoose) {
  const root = h("div", { class: "sl-table" });
  let buttons = [];

  function step(event, at) {
    const way = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!way) return;
    event.preventDefault();
    const next = clamp(at + way, 0, buttons.length - 1);
    onChoose(next);
    buttons[next].focus();
  }

  function drawCell(token, [word, , right], column, depth) {
    const percent = words.percent(fmt(100 * right, 0));
    const looks = { class: "sl-cell", style: `--sl-part: ${(100 * right).toFixed(0)}%`, "data-there": column <= depth };
    const name = words.cell(token, words.columns[column], word, percent);
    return h(
      "span",
      { ...looks, "data-last": column === depth },
      column <= depth ? h("span", { title: name }, word) : "",
    );
  }

  function draw({ tokens, said: lens }, at, depth) {
    const focused = buttons.indexOf(document.activeElement);
    const head = [words.story, ...words.columns].map((name, i) =>
      h("span", { class: "sl-head mm-label", "data-last": i === depth + 1, "data-there": i <= depth + 1 }, name),
    );
    buttons = tokens.map((token, place) =>
      h(
        "button",
        {
          type: "button",
          class: "sl-word",
          tabindex: place === at ? 0 : -1,
          "aria-pressed": String(place === at),
          onClick: () => onChoose(place),
          onKeydown: (event) => step(event, place),
        },
        token,
      ),
    );
    const rows = tokens.map((token, place) =>
      h(
        "div",
        { class: "sl-row", "data-here": place === at },
        buttons[place],
        lens[place].map((look, column) => drawCell(token, look, column, depth)),
      ),
    );
    fill(root, h("div", { class: "sl-row", "aria-hidden": "true" }, head), rows);
    if (focused >= 0) buttons[focused]?.focus();
  }
  return { root, draw };
}

/** Every column has room for words, or on a phone the newest alone: the others are only as full as they are right. */
function columnsFor(width, count, depth) {
  const narrow = new Array(count).fill("1fr").with(depth, "92px").join(" ");
  return width >= WIDE ? `110px repeat(${count}, minmax(0, 1fr))` : `92px ${narrow}`;
}

export default figure({
  words: storyLensWords,
  traits: ["depth", "word", "reading"],
  create({ model, words, bound }) {
    const percent = (share) => words.percent(fmt(100 * share, 0));
    const max = model.get("reading").right.length - 1;
    const format = (blocks) => blocks || words.none;
    const depth = bound(slider, "depth", { label: words.depth, min: 0, max, step: 1, format, tone: "stream" });
    const table = createTable(words, (word) => setTraits(model, { word }));

    function draw(width) {
      const reading = model.get("reading");
      const [blocks, at] = [model.get("depth"), Math.min(model.get("word"), reading.tokens.length - 1)];
      const [word, share] = reading.said[at][blocks];
      const [likeliest, exact] = reading.truth[at];
      table.root.style.setProperty("--sl-columns", columnsFor(width, max + 1, blocks));
      table.draw(reading, at, blocks);
      const numbers = [
        [words.here(reading.tokens[at], at), words.said(word, percent(share))],
        [words.world, words.said(likeliest, percent(exact))],
      ];
      return { verdict: words.verdict(blocks, percent(reading.right[blocks])), numbers };
    }
    return { stage: h("div", { class: "mm-stage mm-column sl-stage" }, table), control: row(depth), draw };
  },
});
