// How a page gets its model: the weights out of its elements, and whether it then computes what torch did.

const NOISE = 1e-3; // between two programs that compute the same logits in float32
// Where weights are rounded, the step rounds vectors too, each number by this part of the largest at most: to 16 bits
// for int8, to 8 for int4.
const ROUNDED = { 8: 2 ** -16, 4: 2 ** -8 };
const ROUNDINGS = 4; // of a block: before q, k and v, before o, before gate and up, before down; one more is the head's
// The largest number as a multiple of the root mean square: of a vector for int8, of 32 neighbors for int4.
const CREST = { 8: 4, 4: 2 };

/**
 * By how much of the largest logit the step may differ from torch: roundings know nothing of each other, so many of
 * them add up as the root of their number.
 */
export const roundingOf = ({ bits, config }) =>
  ROUNDED[bits] * CREST[bits] * Math.sqrt(ROUNDINGS * config.num_hidden_layers + 1);

/** The bytes of an element in base64, which is emptied: it may be large. */
export function bytesIn(element) {
  const bytes = atob(element.textContent);
  element.remove();
  const all = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) all[i] = bytes.charCodeAt(i);
  return all;
}

/** The weights of the page, a buffer for each model. sizes: theirs, in the order in which they come. */
export async function weightsInPage(sizes, tell) {
  const files = sizes.map((size) => new Uint8Array(size));
  const whole = sizes.reduce((sum, size) => sum + size);
  let [file, at, done] = [0, 0, 0];
  for (const element of document.querySelectorAll("script.weights")) {
    const bytes = bytesIn(element);
    files[file].set(bytes, at);
    at += bytes.length;
    done += bytes.length;
    if (at === sizes[file]) [file, at] = [file + 1, 0]; // no piece holds parts of two files
    tell(done / whole);
    await new Promise((resolve) => setTimeout(resolve));
  }
  return files.map(({ buffer }) => buffer);
}

/**
 * Whether the page computes what torch did: { far: by how much a logit is off at most, isSame }. why: it has no
 * WebAssembly.
 */
export async function comparedWithTorch(data, runner, why) {
  const { ids, top } = data.check;
  const { first, far } = await runner.look("check", { ids, top });
  const isFirst = first === top[0][0] || top[0][1] - top.at(1)[1] < NOISE;
  const noise = why === null && data.bits < 32 ? Math.max(NOISE, roundingOf(data) * Math.abs(top[0][1])) : NOISE;
  return { far, isSame: isFirst && far < noise };
}
