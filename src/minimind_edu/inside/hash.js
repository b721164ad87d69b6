// What the addresses of both pages say in the same way: ids, how a token is drawn, and a question. No DOM.

export const listed = (items, between = ".") => [...items].join(between);

/**
 * The whole numbers of a list that are at least 0 and below a limit.
 * @type {(text: string, below: number) => number[]}
 */
export function numbersIn(text, below) {
  const all = (text ?? "").split(".").filter(Boolean).map(Number);
  return all.filter((number) => Number.isInteger(number) && number >= 0 && number < below);
}

/** How a token is drawn: nothing where it is as at first. @type {(settings: any, atFirst: any) => string} */
export const drawFieldOf = (settings, atFirst) => {
  const [now, first] = [settings, atFirst].map((each) => listed(Object.values(each), "_"));
  return now === first ? "" : now;
};

/** And back. @type {(text: string | null, atFirst: any) => any} */
export function settingsIn(text, atFirst) {
  const [temperature, topK, topP] = (text || listed(Object.values(atFirst), "_")).split("_").map(Number);
  const isDrawn = temperature >= 0 && temperature <= 2 && topK >= 0 && topK <= 50 && topP > 0 && topP <= 1;
  return isDrawn ? { temperature, topK: Math.round(topK), topP } : atFirst;
}

/** The fields that say something, as the end of an address. @type {(fields: any, session: any) => string} */
export function addressWith(fields, { isChat, typed }) {
  const entries = Object.entries(fields).filter(([, value]) => value);
  return `${new URLSearchParams([...entries, ...(isChat ? [["chat", typed]] : [])])}`;
}
