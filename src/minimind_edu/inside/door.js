// The ways from the page of a model to the book, and how it is told that there are such: what a view shows, and the
// chapter that explains it.

import { h, svg } from "../web/kit/kit.js";

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

/** The book's mark, which leads there. */
export function homeOf(words, links) {
  const line = (d, stroke, width) =>
    svg("path", { d, stroke, "stroke-width": width, fill: "none", "stroke-linecap": "round" });
  const part = (x, fill) => svg("rect", { x, y: 11, width: 20, height: 21, rx: 4, fill });
  const [attention, feed, norm, stream] = ["v", "ffn", "norm", "stream"].map((name) => `var(--mm-${name})`);
  const mark = svg(
    "svg",
    { viewBox: "0 0 64 64", width: 26, height: 26, "aria-hidden": "true" },
    line("M3 48H61", stream, 5),
    line("M13 46V26h14v20", attention, 4),
    line("M39 46V26h14v20", feed, 4),
    part(10, attention),
    part(36, feed),
    line("M33 41v14", norm, 5),
  );
  return links && h("a", { class: "in-home", href: links.book }, mark, words.book);
}
