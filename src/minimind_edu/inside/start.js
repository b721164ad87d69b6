// How the page of a reader's own models begins: with which text, and whether it reads and computes as Python does.

import { idsOf } from "./field.js";
import { comparedWithTorch } from "./opening.js";

const CLEARLY = 0.9; // of the tokens that the first text takes

/** The first text, or one in another language that the vocabulary writes in clearly fewer tokens. */
export function textFor(data, reader) {
  const counts = data.texts.map(([, sentence]) => countOf(reader, sentence));
  const fewest = Math.min(...counts);
  return fewest < CLEARLY * counts[0] ? data.texts[counts.indexOf(fewest)][0] : data.texts[0][0];
}
function countOf(reader, text) {
  try {
    return reader.encode(text).length;
  } catch {
    return Infinity; // a small world has no words for it
  }
}

/** Whether a text has the tokens that the library gave it. */
function hasTokens(data, reader, [text, expected]) {
  try {
    return `${idsOf(data, reader, text)}` === `${expected}`;
  } catch {
    return false; // what cannot be read is not the same
  }
}

/**
 * Whether the page computes what torch did, as a sentence. data: of one model; hasReader: whether its tokenizer could
 * be used; runner: whose look("check") asks this model; why: it has no WebAssembly.
 */
export async function checked(words, data, reader, hasReader, runner, why) {
  const compared = hasReader ? data.check.texts : [];
  const wrong = compared.filter((pair) => !hasTokens(data, reader, pair)).length;
  return words.checked({ ...(await comparedWithTorch(data, runner, why)), wrong, texts: compared.length, why });
}
