// One text as both models have read it: of each token what compare.js says of them, and what their heads read. No DOM.
// tests/inside/test_inside_beside.py compares it with torch.

import { softmax } from "../../web/live/sampling.js";
import { largest } from "../largest.js";
import { bytesOfHeads, TOLD } from "../reading.js";
import { PASSING } from "../step.js";
import { apartBy, comparable, movedBetween } from "./compare.js";

/**
 * @typedef {import("../../web/live/model.js").LiveModel & { atOnce?: number }} LiveModel
 * @typedef {import("./compare.js").Told} Told
 */

/** Two models and what they have read, one text at a time. @type {(models: LiveModel[]) => any} */
export function createComparison(models) {
  const { blocks, heads } = comparable(models.map(({ config }) => config));
  const caches = models.map((model) => model.newCache());
  const atOnce = Math.min(...models.map((model) => model.atOnce ?? 1)); // tokens
  const kept = []; // of each token { id, position, maps: of each model the bytes [H, T] of each block, finals }

  function keep(id, traces) {
    const at = kept.length;
    const [a, b] = traces.map((trace) => [trace.embedding, ...trace.blocks.map(({ output }) => output)]);
    const apart = blocks === null ? [] : a.slice(0, blocks + 1).map((stream, l) => apartBy(stream, b[l]));
    const [weights, others] = traces.map((trace) => trace.blocks.slice(0, heads).flatMap((block) => block.weights));
    const chances = traces.map(({ logits }) => softmax(logits));
    const position = {
      at,
      moved: movedBetween(...chances),
      tops: chances.map((p) => largest(p, TOLD)),
      apart,
      heads: weights.map((row, head) => movedBetween(row, others[head])),
    };
    const maps = traces.map((trace) => trace.blocks.map((block) => bytesOfHeads(block.weights, at + 1)));
    kept.push({ id, position, maps, finals: traces.map(({ final }) => final) });
  }

  /** Read these ids; what begins the text as before is kept. Yields after every few tokens. */
  function* read(ids) {
    const differs = ids.findIndex((id, at) => id !== kept[at]?.id);
    kept.length = Math.min(kept.length, differs < 0 ? ids.length : differs);
    for (const cache of caches) cache.length = kept.length;
    while (kept.length < ids.length) {
      const some = ids.slice(kept.length, kept.length + atOnce);
      const read = models.map((model, i) => model.run(some, { cache: caches[i], trace: PASSING }).traces);
      some.forEach((id, i) => keep(id, [read[0][i], read[1][i]]));
      yield kept.length;
    }
  }

  /** @type {(from: number) => Told[]} */
  const toldFrom = (from) => kept.slice(from).map(({ position }) => position);
  /** The logits [V] of one of the models after a position. */
  const logitsAt = (at, which) => models[which].read(kept[at].finals[which]);
  /** Of both models the bytes of what a head reads, position after position: T (T + 1) / 2 of each. */
  function mapsOf(layer, head) {
    return models.map((_, which) => {
      const bytes = new Uint8Array((kept.length * (kept.length + 1)) / 2);
      let end = 0;
      kept.forEach(({ maps }, at) => {
        bytes.set(maps[which][layer].subarray(head * (at + 1), (head + 1) * (at + 1)), end);
        end += at + 1;
      });
      return bytes;
    });
  }
  return { read, toldFrom, logitsAt, mapsOf, size: () => kept.length };
}
