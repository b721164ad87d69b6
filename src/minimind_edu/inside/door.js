// The ways from the page of a model to the book, and how it is told that there are such: what a view shows, and the
// chapter that explains it.

import { h } from "../web/kit/kit.js";

const CHAPTER = /chapters\/0*(\d+)/;

/** door(name): a link to the page of the book about one of data.links, in words.explains; null where none is known. */
export function doorsOf(words, { links }) {
  return (name) => {
    const href = links?.[name];
    if (!href) return null;
    const chapter = CHAPTER.exec(href)?.[1];
    const says = words.explains[name];
    return h("a", { class: "in-door", href }, chapter ? words.inChapter(says, chapter) : says);
  };
}
