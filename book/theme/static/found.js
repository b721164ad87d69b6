// What was found, below the field in which it was asked for: on the page of the search, or in a list over another page.
globalThis.showFound = (() => {
  const root = document.documentElement;
  const words = JSON.parse(root.dataset.words ?? "null")?.search ?? {
    found: "Pages and sections found: {}.",
    nothing: "Nothing found. Try another word, or fewer.",
    instead: "The book has no “{}”. Found is “{}”.",
    all: "All results",
  };
  const AT_ONCE = 6; // results over another page
  const find = bookSearch(searchTexts);

  function element(name, given = {}, children = []) {
    const made = Object.assign(document.createElement(name), given);
    made.append(...children);
    return made;
  }
  const filled = (text, values) => values.reduce((sentence, value) => sentence.replace("{}", value), text);

  // The words that were sought stand out in an excerpt.
  function marked(text, marks) {
    if (!marks.length) return [text];
    const parts = text.split(new RegExp(`(${marks.join("|")})`, "gi"));
    return parts.map((part, at) => (at % 2 ? element("mark", { textContent: part }) : part));
  }
  function shown({ address, title, heading, excerpt, term, marks }) {
    const link = element("a", {
      href: root.dataset.content_root + address,
      textContent: heading ? `${title} › ${heading}` : title,
    });
    const says = term ? [element("b", { textContent: term }), " · ", excerpt] : marked(excerpt, marks);
    return element("li", {}, [link, element("p", { className: "context" }, says)]);
  }

  // The page that a result leads to shows what was sought there, and no page that is opened in another way.
  function remember(query) {
    try {
      localStorage.setItem("sought", query);
    } catch {
      // a private window may refuse: the page then opens at its section
    }
  }

  function listOver(field) {
    const form = field.form;
    const made = element("div", { className: "found" });
    form.append(made);
    form.addEventListener("keydown", (event) => {
      const stops = [field, ...made.querySelectorAll("a")];
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") {
        made.hidden = true;
        field.focus();
      } else if (step) {
        event.preventDefault();
        stops[Math.max(0, Math.min(stops.length - 1, stops.indexOf(event.target) + step))].focus();
      }
    });
    form.addEventListener("focusout", (event) => (made.hidden = !form.contains(event.relatedTarget)));
    field.addEventListener("focus", () => (made.hidden = !field.value.trim()));
    return made;
  }

  const places = new Map(); // of the results, for each field
  return (field) => {
    const isPage = Boolean(field.closest("article"));
    if (!places.has(field)) {
      places.set(field, isPage ? document.getElementById("search-results") : listOver(field));
      for (const type of ["click", "auxclick"])
        places.get(field).addEventListener(type, ({ target }) => target.closest("a") && remember(field.value));
    }
    const place = places.get(field);
    const query = field.value.trim();
    place.hidden = !query;
    if (!query) return place.replaceChildren();
    const { results, instead } = find(query);
    const summary = [
      ...instead.map((two) => filled(words.instead, two)),
      results.length ? filled(words.found, [results.length]) : words.nothing,
    ];
    const list = element("ol", {}, results.slice(0, isPage ? undefined : AT_ONCE).map(shown));
    const all = `${root.dataset.content_root}search.html?q=${encodeURIComponent(query)}`;
    place.replaceChildren(
      element("p", { className: "search-summary", role: "status", textContent: summary.join(" ") }),
      list,
      ...(isPage || results.length <= AT_ONCE
        ? []
        : [element("a", { className: "all", href: all, textContent: words.all })]),
    );
    if (isPage) history.replaceState(null, "", all + location.hash);
  };
})();
