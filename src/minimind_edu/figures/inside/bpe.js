// Byte-level BPE in the page: text -> token ids -> bytes. It reads the parts of a tokenizer.json that MiniMind, GPT-2,
// Llama 3 and Qwen have, and refuses every other one by name. No DOM. tests/test_inside_bpe.py compares it with the
// tokenizers library.

/**
 * @typedef {{ id: number, content: string }} AddedToken
 * @typedef {{ model: { vocab: Record<string, number>, merges: (string | string[])[], ignore_merges?: boolean },
 *   added_tokens: AddedToken[], normalizer: { type: string } | null, pre_tokenizer: any }} TokenizerFile
 * @typedef {{ encode: (text: string) => number[], bytesOf: (id: number) => Uint8Array,
 *   isSpecial: (id: number) => boolean }} Tokenizer
 */

const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
// White_Space of Unicode: \s of JavaScript has U+FEFF besides, and lacks U+0085.
const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const MOST_KNOWN = 20_000; // pieces whose tokens are kept

/** The character that stands for each byte in the vocabulary. @type {() => string[]} */
function byteCharacters() {
  const isPrintable = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++));
}

/** @type {(text: string) => string} */
const literally = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

/** A pattern of the tokenizers library as JavaScript's: two constructs differ, `\s` and `(?i:…)`. */
/** @type {(source: string) => RegExp} */
function patternOf(source) {
  const inBothCases = (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`;
  const flat = source.replace(/\(\?i:([^()]*)\)/g, (_, inner) => `(?:${inner.replace(/[a-z]/gi, inBothCases)})`);
  let isInClass = false;
  const exact = flat.replace(/\\.|[[\]]/g, (one) => {
    if (one === "[" || one === "]") isInClass = one === "[";
    if (one === "\\s") return isInClass ? SPACE : `[${SPACE}]`;
    return one === "\\S" ? `[^${SPACE}]` : one;
  });
  return new RegExp(exact, "gu");
}

/** The patterns that cut a text into pieces, one after the other. @type {(part: any) => RegExp[]} */
function splittersOf(part) {
  if (!part) return [];
  if (part.type === "Sequence") return part.pretokenizers.flatMap(splittersOf);
  if (part.type === "ByteLevel") return part.use_regex === false ? [] : [patternOf(GPT2)];
  if (part.type === "Split") return [patternOf(part.pattern.Regex ?? literally(part.pattern.String))];
  if (part.type === "Digits") return [part.individual_digits ? /\p{N}/gu : /\p{N}+/gu];
  throw new Error(`a tokenizer that splits by ${part.type} is not read here`);
}

/** What a pattern finds in a text, and what lies between. @type {(text: string, pattern: RegExp) => string[]} */
function piecesOf(text, pattern) {
  const found = [];
  let from = 0;
  for (const { index, 0: match } of text.matchAll(pattern)) {
    found.push(text.slice(from, index), match);
    from = index + match.length;
  }
  return [...found, text.slice(from)].filter(Boolean);
}

/** encode(text), bytesOf(id), isSpecial(id): of the contents of a tokenizer.json, which page.py has looked at. */
/** @type {(file: TokenizerFile) => Tokenizer} */
export function createBpe({ model, added_tokens: added, normalizer, pre_tokenizer: splitting }) {
  const splitters = splittersOf(splitting);
  const characters = byteCharacters();
  const byteOf = new Map(characters.map((character, byte) => [character, byte]));
  const idOf = new Map(Object.entries(model.vocab));
  const tokenOf = new Map([...idOf].map(([token, id]) => [id, token]));
  const rankOf = new Map(model.merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank]));
  const special = new Map(added.map(({ id, content }) => [content, id]));
  const contentOf = new Map(added.map(({ id, content }) => [id, content]));
  const longestFirst = [...special.keys()].sort((a, b) => b.length - a.length).map(literally);
  const specialPattern = longestFirst.length ? new RegExp(longestFirst.join("|"), "gu") : null;
  const known = new Map(); // piece -> ids
  const encoder = new TextEncoder();

  /** All places of the pair with the lowest rank become one part, until no pair has a rank. */
  function merged(parts) {
    for (;;) {
      const ranks = parts.slice(1).map((part, i) => rankOf.get(`${parts[i]} ${part}`) ?? Infinity);
      const best = ranks.reduce((least, rank) => Math.min(least, rank), Infinity);
      if (best === Infinity) return parts;
      const next = [];
      for (let i = 0; i < parts.length; i++) next.push(ranks[i] === best ? parts[i] + parts[++i] : parts[i]);
      parts = next;
    }
  }

  function idsOf(piece) {
    const parts = Array.from(encoder.encode(piece), (byte) => characters[byte]);
    const whole = model.ignore_merges ? idOf.get(parts.join("")) : undefined;
    return whole === undefined ? merged(parts).map((part) => idOf.get(part)) : [whole];
  }

  function keptIdsOf(piece) {
    if (known.size > MOST_KNOWN) known.clear();
    if (!known.has(piece)) known.set(piece, idsOf(piece));
    return known.get(piece);
  }

  function encode(text) {
    return (specialPattern ? piecesOf(text, specialPattern) : [text]).flatMap((part) => {
      if (special.has(part)) return [special.get(part)];
      const normalized = normalizer ? part.normalize("NFC") : part;
      const pieces = splitters.reduce((list, splitter) => list.flatMap((one) => piecesOf(one, splitter)), [normalized]);
      return pieces.flatMap(keptIdsOf);
    });
  }

  function bytesAnew(id) {
    if (contentOf.has(id)) return encoder.encode(contentOf.get(id));
    const token = tokenOf.get(id);
    return token === undefined ? encoder.encode(`‹${id}›`) : Uint8Array.from(token, (one) => byteOf.get(one));
  }
  const bytes = []; // by id, of those that were asked for
  const bytesOf = (id) => (bytes[id] ??= bytesAnew(id));
  return { encode, bytesOf, isSpecial: (id) => contentOf.has(id) };
}
