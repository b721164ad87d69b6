// What the cache stepper says.

const rowCount = (count) => (count === 1 ? "1 row" : `${count} rows`);
const passCount = (prompt, fresh) => `${prompt} + ${fresh} tokens`;

export const cacheStepperWords = {
  en: {
    title: "Each call computes only its new rows and reads the rest.",
    caption: "Without a cache, every circle would be computed again, in every layer.",
    costOfPosition: (layers, heads, channels, bytes) =>
      `Per position: ${layers} layers × 2 (k, v) × ${heads} heads × ${channels} channels × 4 bytes = ${bytes} bytes.`,
    firstOf: (shown, count) => ` Shown are the first ${shown} of ${count} tokens.`,
    more: "More: the mask, the logits, other sizes",
    play: "Play",
    pause: "Pause",
    step: "Step",
    back: "Back",
    reset: "Start over",
    layer: "layer",
    prefill: "prefill",
    decode: "decode",
    call: (number, isPrefill) => `call ${number} (${isPrefill ? "prefill" : "decode"})`,
    noCall: "no call yet",
    position: "pos.",
    rotations: "rot.",
    later: "not read yet",
    logits: "same logits?",
    computed: "computed in this call",
    reused: "read from the cache",
    computedSoFar: (count) => `computed: ${count}`,
    reusedSoFar: (count) => `read from the cache: ${count}`,
    picture: (call, calls, held, size) =>
      `After ${call} of ${calls} calls the cache holds ${rowCount(held)}. ` +
      `The last call computed ${size} and read ${held - size} from the cache.`,
    bug: "bug",
    bugs: {
      none: "no bug",
      offset: "offset",
      again: "again",
      stale: "stale",
      square: "square",
    },
    prompt: "words in the prompt",
    chunk: "words in a chunk",
    fresh: "new tokens to count passes for",
    start: "Press “Step” to make the first call.",
    same: "✓ The same logits as without a cache, in every call.",
    differ: (call, by) => `≠ Logits differ, first in call ${call}, by ${by}.`,
    noMask: "No call yet, so no mask.",
    mask: (call, size, held, missing) => {
      const shape = `Mask of call ${call}, [S, T] = [${size}, ${held}]`;
      const counts = `${size} ${size === 1 ? "query" : "queries"}, ${held} ${held === 1 ? "key" : "keys"}`;
      return `${shape}: ${counts}${missing ? `; ✕ ${missing} keys wrongly hidden` : ""}.`;
    },
    distances: "logits: distance from the run without a cache",
    spread: "spread of all logits (dashed)",
    identical: "identical",
    distanceOf: (call, distance) => `call ${call}: ${distance}`,
    holds: (rows) => `bytes in ${rowCount(rows)}`,
    soFar: "rows computed",
    without: "without a cache",
    oneLayer: "bytes in one layer",
    passes: (prompt, fresh) => `token passes for ${passCount(prompt, fresh)}, no cache`,
    passesWith: "with a cache",
    note:
      "All runs are a real two-layer MiniMind in float64 that reads the same words; each bug is one changed line. " +
      "Every distance was computed, not drawn.",
  },
};
