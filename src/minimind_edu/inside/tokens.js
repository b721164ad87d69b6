// Tokens of a text, and tokens for the eye. No DOM. tests/inside/test_inside_tokens.py looks at both.

import { createBpe } from "./bpe.js";

/**
 * @typedef {Omit<import("./bpe.js").Tokenizer, "decode"> &
 *     { joins: string, decode?: (ids: number[]) => string }} Reader
 *   joins: what is written between two tokens; decode: where a text is not its tokens side by side
 * @typedef {{ text: string, kind: "text" | "special" | "bytes" | "part" }} Shown
 */

const bytesOfText = (text) => new TextEncoder().encode(text);
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
// Control characters, and those without width or with a direction: they would hide, or reorder what is around them.
const UNSEEN = /[\u0000-\u001f\u007f-\u00a0\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufe00-\ufe0f\ufeff]/g;
const MOST_JOINED = 12; // tokens that may share characters
const PLACES = "₁₂₃₄";

/** The words of a small world, the longest that fits first; the message says which word is none of them. */
/** @type {(content: { words: string[] }, complain: (word: string, words: string[]) => string) => Reader} */
function createWords({ words }, complain) {
  const longestFirst = [...words.keys()].sort((a, b) => words[b].length - words[a].length);
  const encode = (text) => {
    const ids = [];
    for (let rest = text.trim(); rest; rest = rest.slice(words[ids.at(-1)].length).trimStart()) {
      const id = longestFirst.find((index) => rest.startsWith(words[index]));
      if (id === undefined) throw new Error(complain(rest.split(/\s/)[0], words));
      ids.push(id);
    }
    return ids;
  };
  return { encode, bytesOf: (id) => bytesOfText(words[id]), isSpecial: (id) => words[id][0] === "<", joins: " " };
}

/** No tokenizer: the ids themselves. */
/** @type {(size: number, complain: (word: string, size: number) => string) => Reader} */
function createIds(size, complain) {
  const encode = (text) =>
    (text.match(/[^\s,]+/g) ?? []).map((digits) => {
      if (!/^\d+$/.test(digits) || Number(digits) >= size) throw new Error(complain(digits, size));
      return Number(digits);
    });
  return { encode, bytesOf: (id) => bytesOfText(String(id)), isSpecial: () => false, joins: " " };
}

/**
 * The tokenizer of a page. data: what page.py wrote; words: { noWord(word, words), noId(word, size) }, what is said of
 * a text that has no tokens.
 */
export function createReader({ tokenizer, config }, words) {
  if (tokenizer?.kind === "bpe") return { ...createBpe(tokenizer.content), joins: "" };
  if (tokenizer?.kind === "words") return createWords(tokenizer.content, words.noWord);
  return createIds(config.vocab_size, words.noId);
}

/** The tokenizer of a page, or ids and the reason why: { reader, problem: a sentence or "" }. */
export function readerOf(data, words) {
  try {
    return { reader: createReader(data, words), problem: "" };
  } catch (error) {
    Object.assign(data, { tokenizer: null, prefix: [], suffix: [], chat: null }); // they are of a text
    return { reader: createReader(data, words), problem: words.noTokenizer(error.message) };
  }
}

/** The text that tokens spell. @type {(reader: Reader, ids: number[]) => string} */
export function textOf(reader, ids) {
  if (reader.decode) return reader.decode(ids);
  const spell = (list) => decoder.decode(joined(list.map(reader.bytesOf)));
  return reader.joins ? ids.map((id) => spell([id])).join(reader.joins) : spell(ids);
}

/** @type {(parts: Uint8Array[]) => Uint8Array} */
function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** What bytes spell; those that are no whole character are written as ‹e6›. */
/** @type {(bytes: Uint8Array) => { text: string, isBroken: boolean }} */
function readable(bytes) {
  let [text, isBroken, at] = ["", false, 0];
  while (at < bytes.length) {
    const byte = bytes[at];
    const length = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    try {
      text += strict.decode(bytes.slice(at, at + length));
      at += length;
    } catch {
      text += `‹${byte.toString(16).padStart(2, "0")}›`;
      [isBroken, at] = [true, at + 1];
    }
  }
  return { text, isBroken };
}

/** Spaces are raised dots, line ends arrows, and nothing hides. @type {(text: string) => string} */
function visible(text) {
  const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  const seen = text.replace(/\r?\n/g, "⏎").replace(/\t/g, "⇥").replace(/ /g, "·").replace(UNSEEN, escaped);
  return seen || "∅";
}

/** Of each reader its tokens by themselves, by id: most come often in a text. @type {WeakMap<Reader, Shown[]>} */
const shownOf = new WeakMap();

/** A token by itself. @type {(reader: Reader, id: number) => Shown} */
export function shownToken(reader, id) {
  if (!shownOf.has(reader)) shownOf.set(reader, []);
  return (shownOf.get(reader)[id] ??= describe(reader, id));
}

/** @type {(reader: Reader, id: number) => Shown} */
function describe(reader, id) {
  const { text, isBroken } = readable(reader.bytesOf(id));
  return { text: visible(text), kind: reader.isSpecial(id) ? "special" : isBroken ? "bytes" : "text" };
}

/** Tokens in a text: a character that several of them share is in each, with the number of its part. */
/** @type {(reader: Reader, ids: number[]) => Shown[]} */
export function shownTokens(reader, ids) {
  const shown = ids.map((id) => shownToken(reader, id));
  for (let from = 0; from < ids.length; from++) {
    if (shown[from].kind !== "bytes") continue;
    let to = from;
    while (shown[to + 1]?.kind === "bytes" && to - from + 1 < MOST_JOINED) to++;
    const bytes = ids.slice(from, to + 1).map(reader.bytesOf);
    const { text, isBroken } = readable(joined(bytes));
    if (!isBroken) sharedCharacters(text, bytes).forEach((part, i) => (shown[from + i] = { text: part, kind: "part" }));
    from = to;
  }
  return shown;
}

/** What each token has of a text that they spell together: 归₁, then 归₂一. */
/** @type {(text: string, bytes: Uint8Array[]) => string[]} */
function sharedCharacters(text, bytes) {
  const owners = bytes.flatMap((part, i) => Array(part.length).fill(i)); // the token of each byte
  const parts = bytes.map(() => "");
  let at = 0;
  for (const character of text) {
    const sharing = [...new Set(owners.slice(at, (at += bytesOfText(character).length)))];
    sharing.forEach((owner, i) => (parts[owner] += visible(character) + (sharing.length > 1 ? PLACES[i] : "")));
  }
  return parts;
}

/** Whether a token is the first of a line: after the end of one, but several ends of lines stay together. */
export const beginsLine = (before, text) => before.includes("⏎") && !/^⏎+$/.test(text);
