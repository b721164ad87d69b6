// The text that the sampler goes on with: it begins with given words, and grows by words that are added. No DOM.

import { arrivedInTime } from "../../web/live/source.js";

const MOST_ADDED = 40;

/**
 * model: the figure's, which can ask for the living model; changed() is called when the text or its status has changed.
 *
 *   begin(base)  { ids, logits }: the words that are given, and the logits [V] of the next; drops added words if others
 *                were given before
 *   now()        { ids, logits, added: how many words were added, status: "ready", "loading", "unavailable" or "full" }
 *   add(id)      resolves to whether the word was added
 *   back()       takes the last added word back
 */
export function createText(model, changed) {
  let [base, added, grown, living, status, isReleased] = [{ ids: [] }, [], null, null, "ready", false];

  function begin(given) {
    if (`${given.ids}` !== `${base.ids}`) [added, status] = [[], "ready"];
    base = given;
  }

  function become(next) {
    added = next;
    if (added.length) grown = living.model.run([...base.ids, ...added]).traces.at(-1).logits;
    status = added.length < MOST_ADDED ? "ready" : "full";
    changed();
  }

  async function arrive() {
    status = "loading";
    changed();
    try {
      living = await arrivedInTime(model);
    } catch {
      status = "unavailable";
    }
    if (!living && !isReleased) changed();
  }

  async function add(id) {
    if (status === "loading" || status === "full") return false;
    const before = `${base.ids}`;
    if (!living) await arrive();
    if (!living || isReleased) return false;
    const isSame = `${base.ids}` === before; // another start may have been chosen while the model was on its way
    become(isSame ? [...added, id] : added);
    return isSame;
  }

  const now = () => ({
    ids: [...base.ids, ...added],
    logits: added.length ? grown : base.logits,
    added: added.length,
    status,
  });
  return { begin, now, add, back: () => become(added.slice(0, -1)), release: () => (isReleased = true) };
}
