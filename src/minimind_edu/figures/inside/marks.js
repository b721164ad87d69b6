// What the views of the page share: tokens as chips, pushes as bars, colors for canvases.

import { h } from "../kit/kit.js";
import { shownToken } from "./tokens.js";

/** chip(id): a token as it is shown in sentences and lists. */
export function chipsOf(reader) {
  return (id, attrs = {}) => {
    const { text, kind } = shownToken(reader, id);
    return h("span", { class: "in-token", "data-kind": kind, ...attrs }, text);
  };
}

/** A bar from the middle: to the right what raises, to the left what lowers. draw(value, most) */
export function createPush(cls = "in-push") {
  const bar = h("i", {});
  const root = h("span", { class: cls }, bar);
  const draw = (value, most) => {
    const share = 50 * Math.min(1, Math.abs(value) / most);
    Object.assign(bar.style, { width: `${share}%`, left: `${value < 0 ? 50 - share : 50}%` });
    bar.dataset.sign = value < 0 ? "minus" : "plus";
  };
  return { root, draw };
}

/** The weight that a byte stands for: see reading.js. */
export const weightOfByte = (byte) => (byte / 255) ** 2;

const UNSEEN_YET = new Uint8Array(0);

/** The bytes [T] of what a head reads at a position that was told; none while they are not here: session.sees(). */
export function readBy({ weights, at }, { layer, head }) {
  return (weights[layer] ?? UNSEEN_YET).subarray(head * (at + 1), (head + 1) * (at + 1));
}

/**
 * The colors of canvases, in the theme of now: text, faint text, what is read and what experts do, as CSS; what is read
 * (rgb), and numbers above and below 0, as [r, g, b].
 */
export function colorsOf(root) {
  const named = (name) => {
    const probe = h("span", { style: { color: `var(--mm-${name})` } });
    root.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  const context = h("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const numbersOf = (color) => {
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const [ink, read, faint, feed] = ["ink", "v", "muted", "ffn"].map(named);
  const [rgb, plus, less] = [read, named("plus"), named("minus")].map(numbersOf);
  return { ink, read, faint, feed, rgb, plus, less };
}
