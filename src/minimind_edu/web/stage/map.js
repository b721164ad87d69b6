// The map of one head, large enough to read, with the text along both sides. A text of 500 tokens makes a map of 7,000
// pixels, so the canvas is as large as what is seen of it, and is drawn again when that moves.

import { h, clamp, announcement, observeSize } from "../kit/kit.js";

const LEFT = 92; // pixels for the words of the rows
const TOP = 84; // and for those of the columns
const NARROWEST = 15; // pixels of a cell
const WIDEST = 30;
const HEIGHT = 440;
const LETTERS = 11; // of a word, at most
const LEAST_SHADE = 0.02; // below it nothing is read

/** reading: see heads.js; highest(): pixels of the map at most. */
export function createMap(words, session, { count, texts, weightAt, colors }, highest = () => HEIGHT) {
  const canvas = h("canvas", { role: "img", "aria-label": words.bigMap });
  const sizer = h("div", { class: "st-sizer" }, canvas);
  const box = h("div", { class: "st-map", tabindex: 0, role: "group", "aria-label": words.bigMap }, sizer);
  const pointed = announcement("mm-note");
  const root = h("div", { class: "st-mapside" }, box, pointed);
  let [place, cell, shownFor] = [null, NARROWEST, null];
  pointed.set(words.point);

  const clipped = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);

  /** The cells that are in sight: [from, to) of rows or columns. */
  const seen = (scroll, size) => [scroll / cell, Math.min(count(), scroll / cell + Math.ceil(size / cell))];
  /** How far it is scrolled, in whole cells: no row and no word is cut. */
  const scrolled = () => [box.scrollLeft, box.scrollTop].map((scroll) => Math.round(scroll / cell) * cell);

  function size() {
    const [barX, barY] = [box.offsetWidth - box.clientWidth, box.offsetHeight - box.clientHeight]; // that scroll
    const room = root.clientWidth - barX;
    const fitting = Math.min(room - LEFT, highest() - TOP) / count();
    cell = clamp(Math.floor(fitting), NARROWEST, WIDEST);
    const [width, height] = [LEFT + count() * cell, TOP + count() * cell];
    Object.assign(sizer.style, { width: `${width}px`, height: `${height}px` });
    const whole = (most, words) => words + Math.floor((most - words) / cell) * cell;
    const [across, down] = [Math.min(width, whole(room, LEFT)), Math.min(height, whole(highest(), TOP))];
    Object.assign(box.style, { width: `${across + barX}px`, height: `${down + barY}px` });
    const dense = globalThis.devicePixelRatio || 1;
    if (canvas.width !== Math.round(across * dense) || canvas.height !== Math.round(down * dense)) {
      [canvas.width, canvas.height] = [Math.round(across * dense), Math.round(down * dense)];
      Object.assign(canvas.style, { width: `${across}px`, height: `${down}px` });
    }
    return [across, down, dense];
  }

  /** How many rows and columns are out of sight, and where, in the corner that words leave empty. */
  function drawHidden(context, { ink }, [fromY, toY], [fromX, toX]) {
    const hidden = [
      ["↑", fromY],
      ["←", fromX],
      ["→", count() - toX],
      ["↓", count() - toY],
    ].filter(([, many]) => many > 0);
    context.fillStyle = ink;
    context.font = `12px ${getComputedStyle(root).fontFamily}`;
    context.textAlign = "left";
    context.textBaseline = "top";
    hidden.forEach(([arrow, many], line) => context.fillText(`${arrow} ${many}`, 2, 4 + 17 * line));
  }

  function drawWords(context, { ink, faint }, [fromY, toY], [fromX, toX], [down, across]) {
    const all = texts();
    const family = getComputedStyle(root).fontFamily;
    const fontOf = (isStrong) => `${isStrong ? 600 : 400} 12px ${family}`;
    const [left, top] = scrolled();
    context.textBaseline = "middle";
    for (const [from, to, isRow] of [
      [fromY, toY, true],
      [fromX, toX, false],
    ]) {
      context.save();
      context.beginPath();
      if (isRow) context.rect(0, TOP, LEFT, down);
      else context.rect(LEFT, 0, across, TOP);
      context.clip();
      for (let at = from; at < to; at++) {
        const isSelected = at === session.selected;
        context.fillStyle = isSelected ? ink : faint;
        context.font = fontOf(isSelected);
        context.textAlign = isRow ? "right" : "left";
        context.save();
        if (isRow) context.translate(LEFT - 6, TOP + (at + 0.5) * cell - top);
        else context.translate(LEFT + (at + 0.5) * cell - left, TOP - 6);
        if (!isRow) context.rotate(-Math.PI / 2);
        context.fillText(clipped(all[at]), 0, 0);
        context.restore();
      }
      context.restore();
    }
  }

  function draw() {
    const { selected } = session;
    if (!place || !count() || !root.clientWidth) return;
    const [across, down, dense] = size();
    const { ink, faint, read } = colors();
    const context = canvas.getContext("2d");
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.clearRect(0, 0, across, down);
    const [left, top] = scrolled();
    const [rows, columns] = [seen(top, down - TOP), seen(left, across - LEFT)];
    drawWords(context, { ink, faint }, rows, columns, [down, across]);
    drawHidden(context, { ink }, rows, columns);
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP, across - LEFT, down - TOP);
    context.clip();
    context.translate(LEFT - left, TOP - top);
    for (let y = rows[0]; y < rows[1]; y++) {
      for (let x = columns[0]; x < Math.min(columns[1], y + 1); x++) {
        const shade = Math.sqrt(weightAt(place, y, x));
        context.globalAlpha = Math.max(0.05, shade);
        context.fillStyle = shade < LEAST_SHADE ? faint : read;
        context.fillRect(x * cell + 0.5, y * cell + 0.5, cell - 1, cell - 1);
      }
    }
    context.globalAlpha = 1;
    context.strokeStyle = ink;
    context.strokeRect(0.5, selected * cell + 0.5, (selected + 1) * cell - 1, cell - 1);
    context.restore();
  }

  /** The tokens under the mouse: [row, column], or null outside. */
  function tokensAt(event) {
    const { left, top } = box.getBoundingClientRect();
    const [across, down] = scrolled();
    const [x, y] = [event.clientX - left - LEFT + across, event.clientY - top - TOP + down];
    const isOnWords = event.clientY - top < TOP;
    const [column, row] = [Math.floor(x / cell), Math.floor(y / cell)];
    return isOnWords || row < 0 || row >= count() ? null : [row, clamp(column, 0, count() - 1)];
  }
  box.addEventListener("pointermove", (event) => {
    const found = tokensAt(event);
    if (!found || !place) return;
    const [y, x] = found;
    const [reader, other] = [texts()[y], texts()[x]];
    pointed.set(x > y ? words.later(reader, other) : words.pointed(reader, other, weightAt(place, y, x)));
  });
  box.addEventListener("click", (event) => {
    const found = tokensAt(event);
    if (found) session.select(found[0]);
  });
  box.addEventListener("scroll", () => draw());
  box.addEventListener("transitionend", () => draw()); // its color has changed with the theme
  const release = observeSize(root, () => draw());

  /** Another head, or another text: the row of the selected token comes into sight. */
  function show(next) {
    place = next;
    const key = `${next.layer} ${next.head} ${session.selected}`;
    draw();
    if (key === shownFor) return;
    shownFor = key;
    const middle = (session.selected + 1) * cell;
    box.scrollTop = Math.max(0, middle - (highest() - TOP) / 2);
    box.scrollLeft = Math.max(0, middle - (box.clientWidth - LEFT) * 0.8);
    draw();
  }
  return { root, show, release };
}
