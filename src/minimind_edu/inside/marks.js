// What the views of the page share: tokens as chips, pushes as bars, what heads read as bytes.

import { h } from "../web/kit/kit.js";
import { shownToken } from "./tokens.js";

/**
 * chip(id): a token as it is shown in sentences and lists; chip.at(position): one of the text, of which it may share a
 * character with its neighbors. shownNow(): { all }, the tokens of the text as they are shown.
 */
export function chipsOf(reader, shownNow) {
  const shown = ({ text, kind }) => h("span", { class: "in-token", "data-kind": kind }, text);
  return Object.assign((id) => shown(shownToken(reader, id)), { at: (position) => shown(shownNow().all[position]) });
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
