// What is open: one part of the model in a frame below its row, and how a name leads there.

import { h, fill } from "../kit/kit.js";
import { isSamePart } from "./parts.js";

/**
 * views: part -> { root, draw(zoom) }, what shows it; rowOf(zoom): the row of the model below which it stands; foot:
 * what is below all of them. A part comes into sight when it is opened, and stays where it is while it changes.
 */
export function createOpened(words, session, views, rowOf, foot = null) {
  const onClick = () => session.toggle(session.zoom);
  const close = h("button", { type: "button", class: "st-close", "aria-label": words.close, onClick }, "×");
  const content = h("div", {});
  const root = h("div", { class: "st-open", hidden: true }, close, content, foot);
  let opened = null;

  function draw() {
    const { zoom } = session;
    const isOther = !isSamePart(zoom, opened);
    opened = zoom;
    root.hidden = !zoom;
    if (!zoom) return;
    const row = rowOf(zoom);
    if (row.nextSibling !== root) row.after(root);
    if (isOther) fill(content, views[zoom.part]);
    views[zoom.part].draw(zoom, isOther);
    if (isOther) root.scrollIntoView({ block: "nearest" });
  }
  return { root, draw };
}

/** Lead to what was named: a part of the model, or an element of the page, which is opened if it can be. */
export function leadTo(session, named) {
  if (!(named instanceof Element)) return session.toggle(named);
  if (named instanceof HTMLDetailsElement) named.open = true;
  return named.scrollIntoView({ block: "nearest" });
}
