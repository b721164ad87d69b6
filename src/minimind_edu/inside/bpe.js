// BPE in the page, or whole pieces as tokens: text -> token ids -> text. tokenizer.py has translated a tokenizer.json
// into the few steps that are known here, and has refused every other one by name. No DOM.
// tests/inside/test_inside_bpe.py compares it with the tokenizers library.

/**
 * @typedef {{ id: number, content: string, lstrip?: boolean, rstrip?: boolean, normalized?: boolean }} AddedToken
 * @typedef {{ normalize: string } | { prepend: string } | { replace: [string, string] }} Normalizing
 * @typedef {{ first: string, everywhere: boolean } | { replace: [string, string] } | { bytes: true } |
 *   { split: string, behavior: string, invert: boolean }} Splitting
 * @typedef {{ bytes: true } | { fallback: true } | { fuse: true } | { strip: string, count: number } |
 *   { replace: [string, string] } | { marks: string, atFirst: boolean }} Writing
 * @typedef {{ model: { vocab: Record<string, number>, merges: (string | string[])[], is_whole?: boolean,
 *   ignore_merges?: boolean, byte_fallback?: boolean, unk_token?: string | null, fuse_unk?: boolean },
 *   added_tokens: AddedToken[], normalizer: Normalizing[], pre_tokenizer: Splitting[], decoder: Writing[] }} Steps
 * @typedef {{ encode: (text: string) => number[], decode: (ids: number[]) => string,
 *   bytesOf: (id: number) => Uint8Array, isSpecial: (id: number) => boolean }} Tokenizer
 */

const MOST_KNOWN = 20_000; // pieces whose tokens are kept,
const LONGEST_KNOWN = 100; // if they are no longer: where nothing splits a text, it is one piece
const BYTE = /^<0x[0-9a-f]{2}>$/i;
const SPACES_BEFORE = /\p{White_Space}*$/u;
const SPACES_AFTER = /^\p{White_Space}*/u;

/** The character that stands for each byte in the vocabulary. @type {() => string[]} */
function byteCharacters() {
  const isPrintable = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++));
}

/** Whether a place is between the halves of a character: V8 finds nothing there, as if it were something. */
const isHalfway = (text, at) => at > 0 && text.codePointAt(at - 1) > 0xffff;

/** What a pattern finds in a text, and what lies between: [text, whether it was found], as the library has them. */
/** @type {(text: string, pattern: RegExp) => [string, boolean][]} */
export function cutBy(text, pattern) {
  /** @type {[string, boolean][]} */
  const parts = [];
  let [from, isAfterOne] = [0, false];
  for (const { index, 0: found } of text.matchAll(pattern)) {
    if (!found && ((isAfterOne && index === from) || isHalfway(text, index))) continue; // the library looks on
    if (index > from) parts.push([text.slice(from, index), false]);
    parts.push([found, true]);
    [from, isAfterOne] = [index + found.length, true];
  }
  if (from < text.length) parts.push([text.slice(from), false]);
  return parts;
}

const joinedTo = (list, text) => (list.length ? (list[list.length - 1] += text) : list.push(text));

/**
 * Of parts that were found or not, the pieces that go on.
 * @type {Record<string, (parts: [string, boolean][]) => string[]>}
 */
const BEHAVIORS = {
  Isolated: (parts) => parts.map(([text]) => text),
  Removed: (parts) => parts.filter(([, isFound]) => !isFound).map(([text]) => text),
  Contiguous(parts) {
    const pieces = [];
    parts.forEach(([text, isFound], i) => {
      if (isFound === (parts[i - 1]?.[1] ?? false)) joinedTo(pieces, text);
      else pieces.push(text);
    });
    return pieces;
  },
  MergedWithPrevious(parts) {
    const pieces = [];
    parts.forEach(([text, isFound], i) => {
      if (isFound && !parts[i - 1]?.[1]) joinedTo(pieces, text);
      else pieces.push(text);
    });
    return pieces;
  },
  MergedWithNext(parts) {
    const pieces = [];
    for (const [i, [text, isFound]] of [...parts.entries()].reverse()) {
      if (isFound && !parts[i + 1]?.[1] && pieces.length) pieces[0] = text + pieces[0];
      else pieces.unshift(text);
    }
    return pieces;
  },
};

/** Cuts a text at added tokens, those of `contents` [[text, token]]: [text or id]. */
/** @type {(contents: [string, AddedToken][]) => (text: string) => (string | number)[]} */
function cutterOf(contents) {
  if (!contents.length) return (text) => [text];
  const tokenOf = new Map([...contents].reverse()); // of two that are written alike, the first
  const longestFirst = [...tokenOf.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(
    longestFirst.map((content) => content.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|"),
    "gu",
  );
  return (text) => {
    const parts = [];
    let from = 0;
    for (const { index, 0: found } of text.matchAll(pattern)) {
      const { id, lstrip, rstrip } = tokenOf.get(found);
      const before = lstrip ? SPACES_BEFORE.exec(text.slice(0, index))[0].length : 0;
      const end = index + found.length;
      const start = Math.max(index - before, lstrip ? from : 0);
      if (start > from) parts.push(text.slice(from, start));
      parts.push(id);
      from = end + (rstrip ? SPACES_AFTER.exec(text.slice(end))[0].length : 0);
    }
    return from < text.length ? [...parts, text.slice(from)] : parts;
  };
}

/** encode(text), decode(ids), bytesOf(id), isSpecial(id): of what tokenizer.py made of a tokenizer.json. */
/** @type {(steps: Steps) => Tokenizer} */
export function createBpe({ model, added_tokens: added, normalizer, pre_tokenizer: splitting, decoder: writing }) {
  const characters = byteCharacters();
  const byteOf = new Map(characters.map((character, byte) => [character, byte]));
  const idOf = new Map(Object.entries(model.vocab));
  const tokenOf = new Map([...idOf].map(([token, id]) => [id, token]));
  const size = [...idOf.values()].reduce((most, id) => Math.max(most, id), 0) + 1;
  const rankOf = new Map(); // first * size + second -> rank
  const madeBy = []; // rank -> id
  model.merges.forEach((merge, rank) => {
    const [first, second] = Array.isArray(merge) ? merge : merge.split(" ");
    rankOf.set(idOf.get(first) * size + idOf.get(second), rank);
    madeBy.push(idOf.get(first + second));
  });
  const [encoder, reader] = [new TextEncoder(), new TextDecoder("utf-8", { ignoreBOM: true })];
  const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });
  const patterns = new Map(); // source -> RegExp: those that cannot be compiled are noticed at once
  const compiled = ({ split, replace }) => split ?? replace?.[0];
  for (const source of [...normalizer, ...splitting, ...writing].map(compiled))
    if (source !== undefined) patterns.set(source, new RegExp(source, "gu"));
  const replaced = (text, [source, other]) => text.replace(patterns.get(source), () => other);

  function normalized(text) {
    return normalizer.reduce((all, { normalize, prepend, replace }) => {
      if (normalize) return all.normalize(normalize);
      return replace ? replaced(all, replace) : all && prepend + all;
    }, text);
  }

  /** The pieces of a text without added tokens. isFirst: whether it is where the whole text begins. */
  function piecesOf(text, isFirst) {
    return splitting.reduce(
      (pieces, { first, everywhere, replace, bytes, split, behavior, invert }) => {
        if (first !== undefined)
          return pieces.map((piece, i) => {
            const isDue = (everywhere || (isFirst && i === 0)) && !piece.startsWith(first);
            return isDue ? first + piece : piece;
          });
        if (replace) return pieces.map((piece) => replaced(piece, replace));
        if (bytes) return pieces.map((piece) => Array.from(encoder.encode(piece), (byte) => characters[byte]).join(""));
        return pieces.flatMap((piece) => {
          const parts = cutBy(piece, patterns.get(split));
          const marked = parts.map(([part, isFound]) => /** @type {[string, boolean]} */ ([part, isFound !== invert]));
          return BEHAVIORS[behavior](marked).filter(Boolean);
        });
      },
      text ? [text] : [],
    );
  }

  /** The tokens of characters: of what no token is for, its bytes, or the token for what is unknown, or nothing. */
  function smallest(piece) {
    const ids = [];
    const unknown = idOf.get(model.unk_token);
    let isUnknown = false; // the last characters: they wait for more of them
    for (const character of piece) {
      const id = idOf.get(character);
      const bytes = id === undefined && model.byte_fallback ? bytesFor(character) : [];
      if (id !== undefined) {
        if (isUnknown) ids.push(unknown);
        isUnknown = false;
        ids.push(id);
      } else if (bytes.length && !bytes.includes(undefined)) ids.push(...bytes);
      else if (unknown !== undefined) {
        if (isUnknown && !model.fuse_unk) ids.push(unknown);
        isUnknown = true;
      }
    }
    return isUnknown ? [...ids, unknown] : ids;
  }
  const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");
  const bytesFor = (character) => Array.from(encoder.encode(character), (byte) => idOf.get(`<0x${hex(byte)}>`));

  /** The pair with the lowest rank becomes one token, of several the leftmost, until no pair has a rank. */
  function merged(ids) {
    const rankAt = (i) => rankOf.get(ids[i] * size + ids[i + 1]) ?? Infinity;
    const ranks = ids.map((_, i) => rankAt(i));
    for (;;) {
      let best = 0;
      for (let i = 1; i < ranks.length; i++) if (ranks[i] < ranks[best]) best = i;
      if (!(ranks[best] < Infinity)) return ids;
      ids.splice(best, 2, madeBy[ranks[best]]);
      ranks.splice(best, 1);
      ranks[best] = rankAt(best);
      if (best) ranks[best - 1] = rankAt(best - 1);
    }
  }

  // As the library writes them: those that are looked for in a normalized text are normalized themselves.
  const contentOf = new Map(
    added.map((token) => [token.id, token.normalized ? normalized(token.content) : token.content]),
  );
  const known = new Map(); // piece -> ids
  function idsOf(piece) {
    if (known.has(piece)) return known.get(piece);
    const whole = model.is_whole
      ? (idOf.get(piece) ?? idOf.get(model.unk_token))
      : model.ignore_merges
        ? idOf.get(piece)
        : undefined;
    const ids = whole === undefined ? merged(smallest(piece)) : [whole];
    if (known.size > MOST_KNOWN) known.clear();
    if (piece.length <= LONGEST_KNOWN) known.set(piece, ids);
    return ids;
  }

  const cutterFor = (isNormalized) =>
    cutterOf(
      added
        .filter((token) => Boolean(token.normalized) === isNormalized)
        .map((token) => [contentOf.get(token.id), token]),
    );
  const [cutRaw, cutNormalized] = [cutterFor(false), cutterFor(true)];

  function encode(text) {
    return cutRaw(text.replace(/\p{Cs}/gu, "\ufffd")).flatMap((part, i) => {
      if (typeof part === "number") return [part];
      return cutNormalized(normalized(part)).flatMap((inner, j) =>
        typeof inner === "number" ? [inner] : piecesOf(inner, i === 0 && j === 0).flatMap(idsOf),
      );
    });
  }

  const textAnew = (id) => contentOf.get(id) ?? tokenOf.get(id) ?? `‹${id}›`;
  const bytesIn = (token) => {
    const bytes = Array.from(token, (character) => byteOf.get(character));
    return bytes.includes(undefined) ? encoder.encode(token) : Uint8Array.from(bytes);
  };
  const fallenBack = (token) => (BYTE.test(token) ? parseInt(token.slice(3, 5), 16) : null);

  /** Runs of tokens that stand for bytes as their text; where they spell none, each byte is one broken character. */
  function withoutFallback(tokens) {
    const [found, run] = [[], []];
    const end = () => {
      if (!run.length) return;
      try {
        found.push(strict.decode(Uint8Array.from(run)));
      } catch {
        found.push(...run.map(() => "\ufffd"));
      }
      run.length = 0;
    };
    for (const token of tokens) {
      const byte = fallenBack(token);
      if (byte === null) {
        end();
        found.push(token);
      } else run.push(byte);
    }
    end();
    return found;
  }
  function withoutStart(token, strip, count) {
    const letters = [...token];
    let cut = 0;
    while (cut < count && letters[cut] === strip) cut++;
    return letters.slice(cut).join("");
  }
  const spaced = (token, marks, isFirst) => token.replaceAll(marks, isFirst ? "" : " ");

  /** The text that the library writes for tokens. */
  function decode(ids) {
    return writing
      .reduce((tokens, { bytes, fallback, fuse, strip, count, replace, marks, atFirst }) => {
        if (bytes) return [reader.decode(Uint8Array.from(tokens.flatMap((token) => [...bytesIn(token)])))];
        if (fallback) return withoutFallback(tokens);
        if (fuse) return [tokens.join("")];
        if (replace) return tokens.map((token) => replaced(token, replace));
        if (marks) return tokens.map((token, i) => spaced(token, marks, atFirst && i === 0));
        return tokens.map((token) => withoutStart(token, strip, count));
      }, ids.map(textAnew))
      .join("");
  }

  /** The bytes of a token by itself, wherever it stands. */
  function bytesAnew(id) {
    if (writing.some(({ bytes }) => bytes)) return bytesIn(textAnew(id));
    const byte = writing.some(({ fallback }) => fallback) ? fallenBack(textAnew(id)) : null;
    if (byte !== null) return Uint8Array.of(byte);
    const text = writing.reduce((token, { replace, marks }) => {
      if (replace) return replaced(token, replace);
      return marks ? spaced(token, marks, false) : token;
    }, textAnew(id));
    return encoder.encode(text);
  }
  const bytes = []; // by id, of those that were asked for
  const bytesOf = (id) => (bytes[id] ??= bytesAnew(id));
  return { encode, decode, bytesOf, isSpecial: (id) => contentOf.has(id) };
}
