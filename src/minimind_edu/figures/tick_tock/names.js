// Where the words of TickTock's plane stand: near what they name, and apart from each other.

import { textAt } from "../../web/kit/kit.js";

const HEIGHT = 18; // pixels of a line
const TIP = 13; // from a tip to the nearest word
const GRID = 9; // places across the plane that are tried

const isWide = (letter) => letter.charCodeAt(0) > 0x2e80; // Chinese
const widthOf = (text) => [...text].reduce((sum, letter) => sum + (isWide(letter) ? 14.5 : 8), 0);

/** Middles of a word around a tip: outward first. [dx, dy]: where the word lies from there. */
export function aroundTip([x, y], [x0, y0]) {
  const out = Math.atan2(y - y0, x - x0);
  return [0, 1, -1, 2, -2, 3, -3, 4].map((eighth) => {
    const angle = out + (eighth * Math.PI) / 4;
    return { x, y, dx: Math.cos(angle), dy: Math.sin(angle) };
  });
}

function isInside([x, y], corners) {
  const crossed = corners.filter(([x1, y1], i) => {
    const [x2, y2] = corners[(i + 1) % corners.length];
    return y1 > y !== y2 > y && x < x1 + ((y - y1) / (y2 - y1)) * (x2 - x1);
  });
  return crossed.length % 2 === 1;
}

/** Middles of a word within an area, those nearest to a corner of the plane first. */
export function within(corners, side) {
  const steps = Array.from({ length: GRID }, (_, i) => ((i + 0.5) * side) / GRID);
  const all = steps.flatMap((y) => steps.map((x) => [x, y])).filter((point) => isInside(point, corners));
  const fromMiddle = ([x, y]) => -Math.hypot(x - side / 2, y - side / 2);
  return all.sort((a, b) => fromMiddle(a) - fromMiddle(b)).map(([x, y]) => ({ x, y, dx: 0, dy: 0 }));
}

function boxAt({ x, y, dx, dy }, width) {
  const [across, down] = [x + dx * (TIP + width / 2), y + dy * (TIP + HEIGHT / 4)];
  return { left: across - width / 2, right: across + width / 2, top: down - HEIGHT / 2, bottom: down + HEIGHT / 2 };
}

const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** The words as texts, each at its first candidate that is free; a word without one is left out. */
export function placed(labels, tips, side) {
  const taken = tips.map(([x, y]) => ({ left: x - 8, right: x + 8, top: y - 8, bottom: y + 8 }));
  return labels.map(({ text, candidates, cls, tone }) => {
    const width = widthOf(text);
    const fits = (box) => box.left >= 2 && box.right <= side - 2 && box.top >= 2 && box.bottom <= side - 2;
    const isFree = (each) => fits(each) && !taken.some((other) => meet(each, other));
    const box = candidates.map((at) => boxAt(at, width)).find(isFree);
    if (!box) return null;
    taken.push(box);
    return textAt((box.left + box.right) / 2, box.bottom - 4, text, { anchor: "middle", cls, tone });
  });
}
