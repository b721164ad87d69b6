// Excerpts of the pages that were found are fetched, which browsers refuse to a page from file://.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// An excerpt is of the text: the words inside drawings and around the text mean nothing without them.
const textOf = Search.htmlToText;
Search.htmlToText = (html, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  page
    .querySelectorAll("article :is(.minimind-figure, .mp-strip, summary), nav, footer")
    .forEach((one) => one.remove());
  return textOf(page.documentElement.outerHTML, anchor);
};
