// What this book wants of Sphinx's search. Its own files come before this one, but for the words of the language.

// Excerpts are of the pages that were found, which are fetched. Browsers refuse that to a page from file://: there, one
// script has the texts of all pages, and comes with the first excerpt.
if (location.protocol === "file:") {
  let texts;
  const load = (done, failed) => {
    const script = Object.assign(document.createElement("script"), { src: "search_texts.js", onerror: failed });
    script.onload = () => done(searchTexts);
    document.head.append(script);
  };
  window.fetch = async (address) => {
    const page = address.slice(document.documentElement.dataset.content_root.length).replace(/\.html$/, "");
    return new Response((await (texts ??= new Promise(load)))[page]);
  };
}

// Sections are found, too.
Documentation.TRANSLATIONS["Search finished, found ${resultCount} page(s) matching the search query."] =
  "Pages and sections found: ${resultCount}.";
Object.assign(Documentation.TRANSLATIONS, JSON.parse(document.documentElement.dataset.words ?? "null")?.search);

// A title with all that is sought comes before any text: that of a page, then those of sections, first what says little
// else. (Sphinx knows of a word only whether a page has it, and gives every heading the weight of a title.) The
// corrections of the notes come last, for they name everything, too.
// A section of the notes, as in "004 §3.7" or "000 KV 3.1", holds no word, but has its place on their map.
function placeInTheNotes() {
  const typed = new URLSearchParams(location.search).get("q") ?? "";
  const named = /^\s*(00[0134])\s*(RoPE|GQA|KV|RMS|mask|MoE)?\s*§?\s*(Q\d+|\d(?:\.\d+)?)?\s*$/i.exec(typed);
  if (!named) return [];
  const { titles, docnames, filenames } = Search._index;
  const page = docnames.indexOf("book/reference/notes_map");
  const anchor = ["notes", ...named.slice(1)].filter(Boolean).join("-").toLowerCase().replace(".", "-");
  return [[docnames[page], `${titles[page]} > ${typed.trim()}`, `#${anchor}`, null, 300, filenames[page]]];
}

const byText = Search.performTermsSearch;
Search.performTermsSearch = (sought, excluded) => {
  const { alltitles, titles, docnames, filenames } = Search._index;
  const stemmer = new Stemmer();
  const found = [...placeInTheNotes(), ...byText(sought, excluded)];
  for (const [title, places] of Object.entries(alltitles)) {
    const words = splitQuery(title.toLowerCase()).filter((word) => !stopwords.includes(word) && !/^\d+$/.test(word));
    const stems = new Set(words.map((word) => stemmer.stemWord(word)));
    if (!sought.size || ![...sought].every((word) => stems.has(word))) continue;
    for (const [page, section] of places) {
      const name = section ? `${titles[page]} > ${title}` : title;
      const score = section ? 100 + (90 * sought.size) / stems.size : 200;
      found.push([docnames[page], name, section ? `#${section}` : "", null, score, filenames[page]]);
    }
  }
  return found;
};
Scorer.score = ([page, , , , score]) => (page.startsWith("chapters/C") ? score / 100 : score);

// An excerpt is of the text, around the first place with all that was typed, or with the longest of its words; of code
// only where the text does not say it. Words inside drawings mean nothing without them, and the heading is the link.
Search.makeSearchSummary = (html, words, anchor) => {
  const page = new DOMParser().parseFromString(html, "text/html");
  const part = page.querySelector(`article ${anchor}`) ?? page.querySelector("article");
  const unsaid = ".minimind-figure, .mp-strip, .picture, .install, .headerlink, summary, script";
  [part.querySelector("h1, h2, h3"), ...part.querySelectorAll(unsaid)].forEach((one) => one?.remove());
  part.append(...part.querySelectorAll(".cell"));
  const text = part.textContent.replace(/\s+/g, " ").trim();
  const typed = new URLSearchParams(location.search).get("q").trim();
  const places = [typed, ...[...words].sort((a, b) => b.length - a.length)].map((word) =>
    text.toLowerCase().indexOf(word.toLowerCase()),
  );
  const first = places.find((place) => place >= 0) ?? 0;
  // Chinese has no spaces to cut at, or far apart.
  const begin = first < 100 ? 0 : Math.min(text.indexOf(" ", first - 100) + 1 || first, first);
  const end = begin + 240 < text.length ? Math.max(text.lastIndexOf(" ", begin + 240), begin + 200) : text.length;
  const excerpt = document.createElement("p");
  excerpt.className = "context";
  excerpt.textContent = `${begin ? "… " : ""}${text.slice(begin, end)}${end < text.length ? " …" : ""}`;
  return excerpt;
};

// The page that a result leads to shows what was sought there, and no page that is opened in another way.
for (const type of ["click", "auxclick"])
  document.addEventListener(type, (event) => {
    if (!event.target.closest("#search-results a")) return;
    try {
      localStorage.setItem("sought", new URLSearchParams(location.search).get("q"));
    } catch {
      // a private window may refuse: the page then opens at its beginning
    }
  });
