// The road of a question: all blocks in a row, their heads as buttons, what would be said after each of them, and the
// light that goes through. The front page and the living page show it.

import { h, fill } from "../kit/kit.js";
import { isSamePart, onLook } from "./parts.js";

const LEAST_OUTLINE = 0.01; // of a track: a shorter outline is nothing but its border

/** Where the outline of a bar is drawn that was so long before something changed, as createBar has it; or null. */
export const outlineOf = (before) => (before > LEAST_OUTLINE ? [0, before] : null);

/** The light goes once through the road below root; what it brings waits for it, in the style. */
export function shine(root, isLit = true) {
  delete root.dataset.lit;
  void root.offsetWidth; // so that it begins anew
  if (isLit) root.dataset.lit = true;
}

/** onHead({ layer, head }): a head was pressed; look(place or null): what the mouse or the focus is on. */
export function createRoad(words, { layers, heads }, onHead, look) {
  const line = h("span", { class: "st-line", "aria-hidden": "true" }, h("i", { class: "st-light" }));
  const blocks = Array.from({ length: layers }, (_, layer) => createBlock(layer));
  const root = h("div", { class: "st-road", role: "group", "aria-label": words.road }, blocks, line);

  function createBlock(layer) {
    const buttons = Array.from({ length: heads }, (_, head) => {
      const place = { layer, head };
      const attrs = { type: "button", class: "st-stop mm-shows", onClick: () => onHead(place), ...onLook(place, look) };
      return { root: h("button", attrs), place };
    });
    const saying = h("span", { class: "st-lens" });
    const box = h("span", { class: "st-box" }, h("span", { class: "st-stops" }, buttons), h("i", { class: "st-feed" }));
    const root = h(
      "div",
      { class: "st-station" },
      h("span", { class: "st-name" }, words.block(layer + 1)),
      box,
      saying,
    );
    root.style.setProperty("--st-at", layer + 1);
    return { root, buttons, saying };
  }

  /** lens: what each block would say, [word, share], or null before anything is answered; shown: a head, or null. */
  function draw(lens, silenced, shown) {
    blocks.forEach(({ buttons, saying }, layer) => {
      const [word, share] = lens?.[layer] ?? [];
      fill(saying, lens ? [h("b", {}, word), h("small", {}, words.percent(share))] : "?");
      for (const { root, place } of buttons) {
        const isSilent = silenced.has(`${layer}.${place.head}`);
        root.disabled = !lens;
        root.dataset.silent = isSilent;
        root.dataset.shown = Boolean(lens) && isSamePart(place, shown);
        root.setAttribute("aria-pressed", isSilent);
        root.title = words.roadHead(layer + 1, place.head + 1, isSilent);
        root.setAttribute("aria-label", root.title);
      }
    });
  }
  return { root, draw };
}
