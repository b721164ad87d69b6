// What a reader does with a text and a model, whoever runs it. No DOM.

import { isSamePart } from "./parts.js";

const MOST_UNDO = 100;

/**
 * Give a session what readers do on both pages. It has these fields, read by the views, which change them by methods
 * alone; changed() is called after each change:
 *
 *   ids, selected, written    the text, the position that everything is about, the positions that the model wrote
 *   silenced                  Set of "layer.head" and "layer.feed"
 *   zoom                      null, or { part, layer, head }: what is open
 *   settings                  { temperature, topK, topP } of a draw
 *   canUndo                   whether there is something to take back
 *
 * become(ids, changes), the page's own: another text, or other silent heads, and whatever else changes with it; stop(),
 * its own too: nothing is written by itself any more; most: tokens of a text; kept: more fields that undo brings back.
 * Gives change(ids, changes): become, so that it can be taken back.
 */
export function createEditing(session, { become, stop, most, kept = [] }, changed) {
  const fields = ["selected", "written", "silenced", ...kept];
  const history = [];

  function change(ids, changes) {
    if (session.ids.length)
      history.push([session.ids, Object.fromEntries(fields.map((name) => [name, session[name]]))]);
    if (history.length > MOST_UNDO) history.shift();
    become(ids, changes);
  }

  /** A token at the end. */
  function append(id, byModel = false) {
    const { ids, written } = session;
    if (ids.length >= most) return stop();
    return change([...ids, id], { written: byModel ? new Set([...written, ids.length]) : written });
  }

  /** Another token at a position; what follows stays. */
  function replace(at, id, selected = session.ids.length - 1) {
    change(session.ids.with(at, id), {
      selected,
      written: new Set([...session.written].filter((place) => place !== at)),
    });
  }

  /** The token that a bar stands for: it takes the place after the selected one. */
  function answer(id) {
    stop();
    const at = session.selected + 1;
    if (at === session.ids.length) append(id);
    else replace(at, id, at);
  }

  function undo() {
    stop();
    if (history.length) become(...history.pop());
  }

  function select(at) {
    session.selected = Math.max(0, Math.min(session.ids.length - 1, at));
    changed();
  }

  /** Open a part, or close it if it is the one that is open. */
  function toggle(zoom) {
    session.zoom = isSamePart(session.zoom, zoom) ? null : zoom;
    changed();
  }

  /** Parts fall silent beside others that are, or come back. */
  function silenceSome(keys, isSilent) {
    const others = keys.filter((key) => session.silenced.has(key) !== isSilent);
    if (!others.length) return;
    stop();
    const silenced = new Set(session.silenced);
    for (const key of others) silenced[isSilent ? "add" : "delete"](key);
    change(session.ids, { silenced, selected: session.selected });
  }

  function set(changes) {
    Object.assign(session, changes);
    changed();
  }

  Object.defineProperty(session, "canUndo", { get: () => history.length > 0 });
  Object.assign(session, { append, replace, answer, undo, select, toggle, silenceSome, set });
  return change;
}
