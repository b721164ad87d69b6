// What a reader does with the living model: one story, one position, one open part, and what was silenced. No DOM.

import { sample, softmax } from "../../web/live/sampling.js";
import { createEditing } from "../../web/stage/session.js";

const PLAY_TIME = 350; // milliseconds for a word
export const MOST_WORDS = 192; // of a story: twice what the model was trained on

/** How many words at the beginning of two stories are the same. */
function commonLength(a, b) {
  const differs = a.findIndex((id, at) => id !== b[at]);
  return differs < 0 ? a.length : differs;
}

/** The order of the items of a vector, the largest first. */
export const descending = (values) => [...values.keys()].sort((a, b) => values[b] - values[a]);

/**
 * The session of a world and the tables that made it: what createEditing tells, and
 *
 *   shown        null, or { layer, head }: the head that stands below the story
 *   brokenAt     where the story leaves the rules of the world, or null
 *   traces, now  of all positions, and of the selected one or null
 */
export function createSession({ world, tables }, ids, changed) {
  let [model, cache, traces, kept] = [null, null, [], { ids: [], silenced: "" }];
  const session = { world, tables, ids, selected: ids.length - 1, written: new Set(), silenced: new Set() };
  Object.assign(session, { zoom: null, shown: null, settings: { temperature: 1, topK: 0, topP: 1 } });
  let [exact, timer] = [world.distributions(ids), null];

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

  function become(next, changes) {
    if (next !== session.ids) exact = world.distributions(next);
    Object.assign(session, { selected: next.length - 1, ...changes, ids: next });
    readStory();
    changed();
  }

  /** Another story; its last word is selected. */
  const load = (next) => change(next, { written: new Set() });

  /** The model's own next word, at the end of the story. */
  function next(random = Math.random) {
    if (model) session.append(sample(traces.at(-1).logits, session.settings, random).token, true);
  }

  function play() {
    timer = setInterval(next, PLAY_TIME);
    changed();
  }

  function stop() {
    if (timer === null) return;
    clearInterval(timer);
    timer = null;
    changed();
  }

  const change = createEditing(session, { become, stop, most: MOST_WORDS }, changed);
  const { toggle } = session;

  /** A head below the story, in place of what is open, or null for none. */
  const show = (head) => session.set(head ? { shown: head, zoom: null } : { shown: null });

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
    readStory();
    changed();
  }

  const views = {
    brokenAt: { get: () => exact.brokenAt },
    traces: { get: () => traces },
    cache: { get: () => cache },
    model: { get: () => model },
    now: { get: () => traces[session.selected] ?? null },
    isPlaying: { get: () => timer !== null },
  };
  const methods = {
    load,
    next,
    play,
    stop,
    show,
    toggle: (zoom) => ((session.shown = null), toggle(zoom)),
    after,
    attach,
  };
  return Object.defineProperties(Object.assign(session, methods), views);
}
