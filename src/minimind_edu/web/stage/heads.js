// A head: the button among all of them, and all of it once it is open.
//
// The views ask a reading, which each page has of its own:
//
//   count()                 the tokens that were read
//   texts()                 all of them, as they are shown
//   named(at)               one of them in a list
//   isHere(place)           whether it is known what a head, { layer, head }, reads
//   weightAt(place, y, x)   what it gives at position y to position x
//   colors()                those of now, as map.js has them

import { createBar } from "../kit/bars.js";
import { h, fill, toggle } from "../kit/kit.js";
import { createMap } from "./map.js";
import { isSamePart, onLook } from "./parts.js";

const MOST_READ = 6; // tokens that are named
const LEAST_READ = 0.005; // of what is read

/** A head as a button around its small map, which each page draws. look(place or null): what the mouse is on. */
export function createHead(session, label, place, look, ...content) {
  const part = { part: "head", ...place };
  const onClick = () => session.toggle(part);
  const attrs = { type: "button", class: "st-head", "aria-label": label, onClick, ...onLook(place, look) };
  const root = h("button", attrs, content);
  const draw = () => {
    root.dataset.silent = session.silenced.has(`${place.layer}.${place.head}`);
    root.setAttribute("aria-expanded", isSamePart(session.zoom, part));
  };
  return { root, draw };
}

/** What the selected token reads most in a head, as the lines of a list: a word, a bar, a number. */
export function readsOf(words, { selected }, reading, place, most = MOST_READ) {
  const weights = Array.from({ length: selected + 1 }, (_, x) => reading.weightAt(place, selected, x));
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, most);
  const isRead = (at) => weights[at] > LEAST_READ;
  return order.filter(isRead).map((at) => {
    const bar = createBar("st-weight", ["st-read"]);
    bar.set({ word: reading.named(at), shares: [[0, weights[at]]], value: words.percent(weights[at]) });
    return h("li", {}, bar);
  });
}

/** A head that is open. about(zoom): what is said above the list of what it reads, and below it: [above, ...below]. */
export function createOpenHead(words, session, reading, about) {
  const keyNow = () => [`${session.zoom.layer}.${session.zoom.head}`];
  const off = toggle({ label: words.silence, onChange: (isSilent) => session.silenceSome(keyNow(), isSilent) });
  const [title, list, below] = [h("p", { class: "st-title" }), h("ol", { class: "st-list" }), h("div", {})];
  const above = h("p", {});
  const map = createMap(words, session, reading);
  const head = h("div", { class: "st-openhead" }, title, off);
  const root = h("div", {}, head, h("div", { class: "st-sides" }, map, h("div", {}, above, list)), below);

  function draw(zoom) {
    const { layer, head: number } = zoom;
    title.textContent = words.headTitle(layer + 1, number + 1);
    off.set(session.silenced.has(`${layer}.${number}`));
    if (!reading.isHere(zoom)) return;
    const [first, ...others] = about(zoom);
    fill(above, first);
    fill(list, readsOf(words, session, reading, zoom));
    fill(below, others);
    map.show(zoom);
  }
  return { root, draw, release: map.release };
}
