// Which tokens of a chat count, what each position must say, and who may read whom. No DOM.

/** Of each token, whether a mask counts it; the answer is [first, last], without padding there are `real` tokens. */
export function countedTokens(mask, { first, last, real, total }) {
  const by = { early: -1, late: 1 }[mask] ?? 0;
  return Array.from({ length: total }, (_, i) => {
    if (mask === "padding") return true;
    if (mask === "all") return i < real;
    return i >= first + by && i <= last + by;
  });
}

/** Of each position but the last, which token it must say and whether that counts; token: null where there is none. */
export function labelsOf(mask, ahead, chat) {
  const counts = countedTokens(mask, chat);
  return Array.from({ length: chat.total - 1 }, (_, s) => {
    const token = s + ahead < chat.total ? s + ahead : null;
    return { token, counts: token !== null && counts[token] };
  });
}

/** Whether a token reads another: not what comes after it, and no padding. */
export function reads(reader, token, { real }) {
  return token <= reader && token < real;
}

/** Words as sentences: each ends with its stop, which has no space before it. */
export function sentencesOf(words) {
  const found = [];
  let line = "";
  for (const word of words) {
    const isStop = /^[.?]$/.test(word);
    line += line && !isStop ? ` ${word}` : word;
    if (!isStop) continue;
    found.push(line);
    line = "";
  }
  return line ? [...found, line] : found;
}
