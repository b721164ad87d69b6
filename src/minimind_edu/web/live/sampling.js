// From logits to one token, in the order of minimind_edu.model.sampling: repetition penalty, temperature, top-k, top-p,
// min-p, one draw. No DOM, no network. tests/web/test_live_sampling.py compares the probabilities with the package's.
//
// V words. Logits may be any array of numbers, probabilities are a Float32Array [V]. Of the settings, `seen` are the
// ids that have occurred.

/**
 * @typedef {{ seen?: Iterable<number>, penalty?: number, temperature?: number, topK?: number, topP?: number,
 *   minP?: number }} Settings
 * @typedef {{ token: number, probabilities: Float32Array }} Sampled
 * @typedef {ArrayLike<number> & Iterable<number>} Numbers
 * @typedef {(logits: Float64Array, settings: Settings) => Float64Array} Step
 */

const ROUNDING = 1e-6; // of a sum of float32 probabilities, as a share of it

/** @type {(logits: Numbers) => number} */
function largestOf(logits) {
  let largest = -Infinity;
  for (const logit of logits) largest = Math.max(largest, logit); // NaN stays NaN
  return largest;
}

/** exp(logits / temperature), divided by their sum. Subtracting the largest changes nothing and avoids infinity. */
/** @type {(logits: Numbers, temperature?: number) => Float32Array} */
export function softmax(logits, temperature = 1) {
  const largest = largestOf(logits);
  let sum = 0;
  const powers = new Float32Array(logits.length);
  for (let i = 0; i < powers.length; i++) sum += powers[i] = Math.exp((logits[i] - largest) / temperature);
  return powers.map((power) => power / sum);
}

// Each takes and gives logits; what it cuts becomes -Infinity.
/** @type {Record<string, Step>} */
const SAMPLING_STEPS = { penalty: penalizeSeen, temperature: divide, topK: keepTopK, topP: keepTopP, minP: keepMinP };

/** What each step leaves: { step: logits [V] }, the steps in their order. A temperature of 0 divides nothing. */
/** @type {(logits: Numbers, settings?: Settings) => Record<string, Float64Array>} */
export function reshape(logits, settings = {}) {
  /** @type {Float64Array} */
  let reshaped = Float64Array.from(logits);
  const entries = Object.entries(SAMPLING_STEPS).map(([name, step]) => [name, (reshaped = step(reshaped, settings))]);
  return Object.fromEntries(entries);
}

/** Words that have occurred become less likely: positive logits are divided by the penalty, negative multiplied. */
/** @type {Step} */
function penalizeSeen(logits, { penalty = 1, seen = [] }) {
  const occurred = new Set(seen);
  const penalized = (logit) => (logit > 0 ? logit / penalty : logit * penalty);
  return logits.map((logit, id) => (occurred.has(id) ? penalized(logit) : logit));
}

/** @type {Step} */
function divide(logits, { temperature = 1 }) {
  return temperature === 0 ? logits : logits.map((logit) => logit / temperature);
}

/** @type {(logits: Float64Array | Float32Array) => number[]} */
const byLogit = (logits) => [...logits.keys()].sort((a, b) => logits[b] - logits[a]); // the largest first

/** Keep the k largest, and those equal to the last one; 0 keeps all. @type {Step} */
function keepTopK(logits, { topK }) {
  if (!topK) return logits; // sorting thousands takes longer than all else
  const least = logits[byLogit(logits)[Math.min(topK || Infinity, logits.length) - 1]];
  return logits.map((logit) => (logit < least ? -Infinity : logit));
}

/**
 * Keep the fewest of the most probable words whose probabilities reach p; at least one. 1 keeps all. A word goes if it
 * and those below are not needed: they are summed from the least probable on, where little is rounded.
 * @type {Step}
 */
function keepTopP(logits, { topP = 1 }) {
  if (topP === 1) return logits;
  const [probabilities, kept] = [softmax(logits), logits.slice()];
  const order = [...logits.keys()].sort((a, b) => logits[a] - logits[b]); // the least probable first
  let sum = 0;
  for (const id of order.slice(0, -1)) {
    sum += probabilities[id];
    if (sum <= (1 - topP) * (1 + ROUNDING)) kept[id] = -Infinity;
  }
  return kept;
}

/** Keep words at least this fraction as probable as the most probable one; 0 keeps all. @type {Step} */
function keepMinP(logits, { minP = 0 }) {
  const probabilities = softmax(logits);
  const least = Math.fround(Math.fround(minP) * Math.max(...probabilities)); // as torch computes it
  return logits.map((logit, id) => (probabilities[id] < least ? -Infinity : logit));
}

/**
 * The probabilities [V] that a token is drawn from: 0 where it was cut. Temperature 0 leaves the most probable. Throws
 * if the largest logit is no number: NaN and infinity carry over to it, and no comparison would tell.
 */
/** @type {(logits: Numbers, settings?: Settings) => Float32Array} */
export function drawnFrom(logits, settings = {}) {
  if (!Number.isFinite(largestOf(logits))) {
    throw new Error("the logits contain NaN or infinity, so no token is the most probable one");
  }
  const { minP: reshaped } = reshape(logits, settings); // the last step
  if (settings.temperature !== 0) return softmax(reshaped);
  const first = byLogit(reshaped)[0];
  return Float32Array.from(reshaped, (_, id) => Number(id === first));
}

/** One token from these probabilities; random() is in [0, 1). */
/** @type {(probabilities: Float32Array, random: () => number) => number} */
export function drawOne(probabilities, random) {
  const drawable = [...probabilities.keys()].filter((id) => probabilities[id] > 0);
  const order = drawable.sort((a, b) => probabilities[b] - probabilities[a]);
  let rest = random();
  return order.find((id) => (rest -= probabilities[id]) < 0) ?? order[0];
}

/** The next token, and the probabilities [V] that it was drawn from. */
/** @type {(logits: Numbers, settings?: Settings, random?: () => number) => Sampled} */
export function sample(logits, settings = {}, random = Math.random) {
  const probabilities = drawnFrom(logits, settings);
  return { token: drawOne(probabilities, random), probabilities };
}

/** -Σ p ln p, in nats. @type {(probabilities: Float32Array) => number} */
export function entropyInNats(probabilities) {
  return probabilities.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
}

/** random() in [0, 1), the same numbers for a seed on every machine (mulberry32). */
/** @type {(seed: number) => () => number} */
export function seededRandom(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
