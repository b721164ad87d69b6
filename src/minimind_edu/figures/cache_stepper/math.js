// What a cache holds, shows and saves, call by call. No DOM; compared with the package in the tests.

/** How many times a token goes through the model: [without a cache, with one]. */
export function tokenPasses(prompt, fresh) {
  return [fresh * prompt + (fresh * (fresh - 1)) / 2, prompt + fresh - 1];
}

/** New positions of every call: the prompt in chunks, then one by one up to `total`. */
export function callSizes(prompt, chunk, total) {
  const sizes = [];
  for (let start = 0; start < prompt; start += chunk) sizes.push(Math.min(chunk, prompt - start));
  return sizes.concat(Array(total - prompt).fill(1));
}

/** The call with this index: where its new rows begin in the cache, how many there are, and their position ids. */
export function cacheCall(sizes, index, stale, forgetsOffset) {
  const past = stale + sizes.slice(0, index).reduce((sum, size) => sum + size, 0);
  const size = sizes[index];
  const positions = Array.from({ length: size }, (_, s) => (forgetsOffset ? s : past + s));
  return { past, size, held: past + size, positions };
}

/** Whether a query may see a key, [size][held]: the diagonal ends in the lower right corner, or begins upper left. */
export function visibleKeys(size, held, square) {
  const shift = square && size > 1 ? 0 : held - size;
  return Array.from({ length: size }, (_, s) => Array.from({ length: held }, (_, t) => t <= s + shift));
}

/** Bytes of keys and values: layers * batch * rows * bytes of a row in one layer. */
export function cacheBytes(rows, layers, layerRowBytes) {
  return rows * layers * layerRowBytes;
}

/** Index of the first call whose logits part from the uncached run, -1 if none does. */
export function firstParting(differences) {
  return differences.findIndex((difference) => difference > 0);
}
