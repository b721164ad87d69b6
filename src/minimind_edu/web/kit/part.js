// Keep for a part of a page that is no figure by itself. In a file of its own: figures do not carry it.

import { keeperOf } from "./kit.js";

// name: of its files. given() promises what keep.js exports.
/** @type {(root: any, name: string, given: () => Promise<any>, address?: (() => string | null) | null) => void} */
export function keepPart(root, name, given, address) {
  root.dataset.figure = name;
  root.classList.add("mm-kept");
  root.append(keeperOf(given, root, address));
}
