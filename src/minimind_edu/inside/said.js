// What the addresses of both pages say in the same way: ids, how a token is drawn, and a question. No DOM.

export const listed = (items, between = ".") => [...items].join(between);

/** The whole numbers of a list that are at least 0 and below a limit. @type {(text: string, below: number) => number[]} */
export function numbersIn(text, below) {
  const all = (text ?? "").split(".").filter(Boolean).map(Number);
  return all.filter((one) => Number.isInteger(one) && one >= 0 && one < below);
}

/** How a token is drawn: nothing where it is as at first. @type {(settings: any, atFirst: any) => string} */
export const saidOf = (settings, atFirst) => {
  const said = [settings, atFirst].map((one) => listed(Object.values(one), "_"));
  return said[0] === said[1] ? "" : said[0];
};

/** And back. @type {(text: string | null, atFirst: any) => any} */
export function settingsIn(text, atFirst) {
  const [temperature, topK, topP] = (text || listed(Object.values(atFirst), "_")).split("_").map(Number);
  const isDrawn = temperature >= 0 && temperature <= 2 && topK >= 0 && topK <= 50 && topP > 0 && topP <= 1;
  return isDrawn ? { temperature, topK: Math.round(topK), topP } : atFirst;
}

/** All that is said of a session, as the end of an address. @type {(said: any, session: any) => string} */
export function addressWith(said, { isChat, typed }) {
  const entries = Object.entries(said).filter(([, value]) => value);
  return `${new URLSearchParams([...entries, ...(isChat ? [["chat", typed]] : [])])}`;
}
