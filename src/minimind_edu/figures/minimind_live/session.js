// What a reader does with the living model: one story, one position, one open part, and what was silenced. No DOM.

import { sample, softmax } from "../live/sampling.js";

const MOST_UNDO = 100;
export const MOST_WORDS = 192; // of a story: twice what the model was trained on

/** How many words at the beginning of two stories are the same. */
function commonLength(a, b) {
  const differs = a.findIndex((id, at) => id !== b[at]);
  return differs < 0 ? a.length : differs;
}

/** The order of the items of a vector, the largest first. */
export const descending = (values) => [...values.keys()].sort((a, b) => values[b] - values[a]);

/** The two numbers of a head's key. */
export const headNumbers = (key) => key.split(".").map(Number);

/**
 * The session of a world and the tables that made it. Its fields are read by the views, which change it by its methods
 * alone; changed() is called after each change.
 *
 *   ids, selected, written   the story, the position that everything is about, the positions that the model wrote
 *   zoom                     null, or { part, layer, head }: what is open
 *   shown                    null, or { layer, head }: the head that stands below the story
 *   silenced                 Set of "layer.head"
 *   settings                 { temperature, topK, topP } of the sampling
 *   brokenAt                 where the story leaves the rules of the world, or null
 */
export function createSession({ world, tables }, ids, changed) {
  let [model, cache, traces, kept] = [null, null, [], { ids: [], silenced: "" }];
  const history = [];
  const session = { world, tables, ids, selected: ids.length - 1, written: new Set(), silenced: new Set() };
  Object.assign(session, { zoom: null, shown: null });
  session.settings = { temperature: 1, topK: 0, topP: 1 };
  let exact = world.distributions(ids);

  /** Reads again what differs from what was read, and no word before it. */
  function readStory() {
    if (!model) return;
    const silenced = [...session.silenced].sort().join();
    const length = silenced === kept.silenced ? commonLength(kept.ids, session.ids) : 0;
    cache = length ? cache : model.newCache();
    cache.length = length;
    for (const layer of cache.layers) layer.keys.length = layer.values.length = length;
    traces.length = length;
    const options = { silenced: session.silenced, lens: true };
    for (const id of session.ids.slice(length)) traces.push(model.step(id, cache, options));
    kept = { ids: [...session.ids], silenced };
  }

  function remember() {
    const { ids: before, selected, written, silenced } = session;
    history.push({ ids: before, selected, written: new Set(written), silenced: new Set(silenced) });
    if (history.length > MOST_UNDO) history.shift();
  }

  function update() {
    readStory();
    changed();
  }

  function become(next, selected, written) {
    Object.assign(session, { ids: next, selected, written });
    exact = world.distributions(next);
    update();
  }

  /** Another story; its last word is selected. */
  function load(next, selected = next.length - 1) {
    remember();
    become(next, selected, new Set());
  }

  /** A word at the end of the story. */
  function append(id, byModel = false) {
    if (session.ids.length >= MOST_WORDS) return;
    remember();
    const written = new Set(session.written);
    if (byModel) written.add(session.ids.length);
    become([...session.ids, id], session.ids.length, written);
  }

  /** Another word at a position; what follows stays. The last word is selected, for there the answer is. */
  function replace(at, id) {
    remember();
    const written = new Set([...session.written].filter((one) => one !== at));
    become(session.ids.with(at, id), session.ids.length - 1, written);
  }

  /** The word that a bar stands for: it takes the place after the selected one. */
  function answer(id) {
    const at = session.selected + 1;
    if (at === session.ids.length) return append(id);
    replace(at, id);
    return select(at);
  }

  /** The model's own next word, at the end of the story. */
  function next(random = Math.random) {
    if (!model) return;
    append(sample(traces.at(-1).logits, session.settings, random).token, true);
  }

  function undo() {
    const before = history.pop();
    if (!before) return;
    session.silenced = before.silenced;
    become(before.ids, before.selected, before.written);
  }

  function select(at) {
    session.selected = Math.max(0, Math.min(session.ids.length - 1, at));
    changed();
  }

  function open(zoom) {
    session.zoom = zoom;
    if (zoom) session.shown = null;
    changed();
  }

  /** A head below the story, in place of what is open, or null for none. */
  function show(head) {
    session.shown = head;
    if (head) session.zoom = null;
    changed();
  }

  /** Open a part, or close it if it is the one that is open. */
  function toggle(zoom) {
    const { part, layer, head } = session.zoom ?? {};
    open(part === zoom.part && layer === zoom.layer && head === zoom.head ? null : zoom);
  }

  function silence(key, isSilent) {
    if (session.silenced.has(key) === isSilent) return;
    remember();
    session.silenced = new Set(session.silenced);
    if (isSilent) session.silenced.add(key);
    else session.silenced.delete(key);
    update();
  }

  function set(settings) {
    Object.assign(session.settings, settings);
    changed();
  }

  /** What comes after a position: { model, drawn, exact }, each [V], or null where it is not known. */
  function after(at = session.selected) {
    const trace = traces[at];
    const { temperature } = session.settings;
    return {
      model: trace ? softmax(trace.logits, temperature || 1) : null,
      drawn: trace ? sample(trace.logits, session.settings, () => 0).probabilities : null,
      exact: exact.rows[at] ?? null,
    };
  }

  /** The model arrives, with the tensors that it was made of. */
  function attach(live, tensors) {
    model = live;
    session.tensors = tensors;
    update();
  }

  const methods = {
    load,
    append,
    replace,
    answer,
    next,
    undo,
    select,
    open,
    show,
    toggle,
    silence,
    set,
    after,
    attach,
  };
  const views = {
    brokenAt: { get: () => exact.brokenAt },
    traces: { get: () => traces },
    cache: { get: () => cache },
    model: { get: () => model },
    canUndo: { get: () => history.length > 0 },
  };
  return Object.defineProperties(Object.assign(session, methods), views);
}
