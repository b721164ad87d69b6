// What the calls so far have computed without a cache and with one, and what a bug has done to it. No DOM.

import { callSizes, cacheCall } from "../cache_stepper/math.js";

export const APART = 5; // percentage points from which a weight is told to be wrong

/** The calls made so far: the last one, rows computed in all without and with a cache, and how many calls there are. */
export function callsSoFar(prompt, chunk, total, calls) {
  const sizes = callSizes(prompt, chunk, total);
  const made = sizes.slice(0, calls).map((_, i) => cacheCall(sizes, i, 0, false));
  const sum = (numbers) => numbers.reduce((all, n) => all + n, 0);
  return {
    last: sizes.length,
    isPrefill: calls > 0 && made[calls - 1].held <= prompt,
    past: calls ? made[calls - 1].past : 0,
    held: calls ? made[calls - 1].held : 0,
    without: sum(made.map((call) => call.held)),
    withCache: sum(made.map((call) => call.size)),
  };
}

/** How often the key of a position has been rotated after so many calls: once, and with "again" in each later call. */
export function rotationsOf(position, prompt, chunk, total, calls, bug) {
  const sizes = callSizes(prompt, chunk, total).slice(0, calls);
  const later = sizes.filter((_, i) => cacheCall(sizes, i, 0, false).held > position).length;
  return bug === "again" ? later : Math.min(later, 1);
}

/** By which position a key was rotated: with "offset" each call counts from 0, with "stale" after the old. */
export function placeOf(position, prompt, chunk, total, bug, earlier) {
  if (bug === "stale") return position + earlier;
  if (bug !== "offset") return position;
  let start = 0;
  for (const size of callSizes(prompt, chunk, total)) {
    if (position < start + size) return position - start;
    start += size;
  }
  return position;
}

/** Whether a cached key is not the right one. A rotation by position 0 is none, however often. */
export function isWrongKey(position, { prompt, chunk, total, calls, bug }) {
  if (bug === "offset") return placeOf(position, prompt, chunk, total, bug, 0) !== position;
  if (bug === "again") return position > 0 && rotationsOf(position, prompt, chunk, total, calls, bug) > 1;
  return false;
}

/** Of a row of weights in percent, which differ from the right ones; `earlier` are the columns that come before. */
export function wrongWeights(row, right, earlier) {
  return row.map((weight, i) => Math.abs(weight - (i < earlier ? 0 : right[i - earlier])) >= APART);
}
