// The model writes a poem in a form: it chooses every character that is not given, and the form sets the marks. Whether
// the model itself expected them is noted. No DOM. tests/inside/test_inside_verse_compose.py compares it with torch.

import { drawnFrom, drawOne, seededRandom, softmax } from "../../web/live/sampling.js";
import { largest } from "../largest.js";

// The signs of the vocabulary; ids after them are characters.
const BOS = 0;
const EOS = 1;
const COMMA = 2;
const STOP = 3;
export const TOP_P = 0.9; // as in the exam of trained/verse/
export const DRAFTS = 24; // of a first couplet, where its rhyme is given
const TOLD = 8; // likeliest characters of a place

/**
 * @typedef {{ id: number, p: number, top: [number, number][] }} Place: a character, its probability, and the likeliest
 * @typedef {{ given: number[], rhyme: number | null, lines: number, width: number, seed: number, temperature: number,
 *     silenced: string[] }} Plan
 */

/**
 * A poem by a plan: { places: of each character, marks: of each line's end, and at last of the poem's, whether it was
 * what the model itself expected most }. The same plan gives the same poem.
 *
 * @type {(model: any, plan: Plan) => { places: Place[], marks: boolean[] }}
 */
export function compose(model, { given, rhyme, lines, width, seed, temperature, silenced }) {
  const random = seededRandom(seed);
  const options = { silenced: new Set(silenced), trace: false };
  const cache = model.newCache();
  const [places, marks] = [[], []];
  /** Read tokens; the logits after each. */
  const read = (tokens) => model.run(tokens, { cache, ...options }).traces.map(({ logits }) => logits);

  const place = (id, logits) => {
    const p = softmax(logits);
    places.push({ id, p: p[id], top: largest(p, TOLD) });
  };
  const draw = (logits) => drawOne(drawnFrom(withoutSigns(logits), { temperature, topP: TOP_P }), random);
  /** Put in a character, and the mark after it where a line ends; gives the logits after them. */
  function put(id, before) {
    place(id, before);
    const [after] = read([id]);
    if (places.length % width) return after;
    const mark = places.length % (2 * width) ? COMMA : STOP;
    marks.push(largest(after, 1)[0][0] === mark);
    return read([mark])[0];
  }

  /**
   * Draw the rest of the first couplet many times, and keep one of these drafts: the likelier the more it expects the
   * rhyme.
   */
  function towards(wanted, before) {
    const kept = { length: cache.length, places: places.length, marks: marks.length };
    const back = () => {
      cache.length = kept.length;
      places.length = kept.places;
      marks.length = kept.marks;
    };
    const drafts = Array.from({ length: DRAFTS }, () => {
      let now = before;
      while (places.length < 2 * width - 1) now = put(draw(now), now);
      const draft = { ids: places.slice(kept.places).map(({ id }) => id), p: softmax(withoutSigns(now))[wanted] };
      back();
      return draft;
    });
    const all = drafts.reduce((sum, { p }) => sum + p, 0);
    let rest = random() * all;
    const chosen = drafts.find(({ p }) => (rest -= p) < 0) ?? drafts[0];
    return [...chosen.ids, wanted].reduce((now, id) => put(id, now), before);
  }

  let logits = given.reduce((now, id) => put(id, now), read([BOS])[0]);
  if (rhyme !== null) logits = towards(rhyme, logits);
  while (places.length < lines * width) logits = put(draw(logits), logits);
  marks.push(largest(logits, 1)[0][0] === EOS);
  return { places, marks };
}

/** The logits of characters alone. */
function withoutSigns(logits) {
  const characters = Float64Array.from(logits);
  characters.fill(-Infinity, 0, STOP + 1);
  return characters;
}
