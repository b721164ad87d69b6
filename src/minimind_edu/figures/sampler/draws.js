// The histogram of the sampler: seeded draws from one distribution, counted. No DOM.

import { prefersReducedMotion } from "../../web/kit/kit.js";
import { drawOne, seededRandom } from "../../web/live/sampling.js";

const DRAWS_PER_FRAME = 4;

/**
 * changed() is called after each draw that can be seen.
 *
 *   follow(key, probabilities, { seed, first })  if the key differs from the last one: drops all draws, draws `first`
 *   draw(count)  draws so many more, a few in each frame
 *   now()        { counts [V], total, last: the id that was drawn last, isDrawing }
 *   gap()        half the sum of |share of the draws - probability|, or null without draws
 */
export function createDraws(changed) {
  let [key, probabilities, random, frame] = [null, [], null, 0];
  let [counts, total, last, pending] = [[], 0, null, 0];

  function follow(nextKey, next, { seed, first }) {
    if (nextKey === key) return;
    [key, probabilities, random] = [nextKey, next, seededRandom(seed)];
    [counts, total, last, pending] = [new Uint32Array(next.length), 0, null, 0];
    count(first);
  }

  function count(most) {
    for (const end = total + most; total < end; total++) counts[(last = drawOne(probabilities, random))]++;
  }

  function drawSome() {
    frame = 0;
    if (!pending) return;
    const some = Math.min(pending, DRAWS_PER_FRAME);
    pending -= some;
    count(some);
    if (pending) frame = requestAnimationFrame(drawSome);
    changed();
  }

  function draw(more) {
    if (more > 1 && !prefersReducedMotion()) {
      pending += more;
      frame ||= requestAnimationFrame(drawSome);
      return changed();
    }
    count(more);
    changed();
  }

  function gap() {
    if (!total) return null;
    return probabilities.reduce((sum, p, id) => sum + Math.abs(counts[id] / total - p), 0) / 2;
  }

  const now = () => ({ counts, total, last, isDrawing: pending > 0 });
  return { follow, draw, gap, now, release: () => cancelAnimationFrame(frame) };
}
