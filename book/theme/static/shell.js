// What the pages do by themselves: theme, reading or code, where the reader is, folded parts that open when something
// in them is sought, letters that light up together, and figures that text, address and earlier visits can set.
(() => {
  const WORDS = {
    en: { copy: "Copy", copied: "Copied", mode: (mode) => `Color mode: ${mode}`, modes: ["auto", "light", "dark"] },
  };
  const root = document.documentElement;
  const words = WORDS[root.lang.split("-")[0]] ?? WORDS.en;
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

  // What a reader has chosen is remembered, where the browser allows it.
  const kept = {
    read(key) {
      try {
        return localStorage.getItem(key);
      } catch {
        return null;
      }
    },
    write(key, value) {
      try {
        localStorage.setItem(key, value);
      } catch {
        // private windows may refuse: the choice then holds for this page
      }
    },
  };

  // Theme
  const dark = matchMedia("(prefers-color-scheme: dark)");
  function setTheme(mode) {
    root.dataset.mode = mode;
    root.dataset.theme = mode === "auto" ? (dark.matches ? "dark" : "light") : mode;
    const button = document.querySelector(".theme-switch");
    button.title = words.mode(mode);
    button.setAttribute("aria-label", words.mode(mode));
  }
  dark.addEventListener("change", () => setTheme(root.dataset.mode));
  setTheme(root.dataset.mode);
  document.querySelector(".theme-switch").addEventListener("click", () => {
    const order = dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    const mode = order[(order.indexOf(root.dataset.mode) + 1) % order.length];
    kept.write("mode", mode);
    setTheme(mode);
  });
  document.querySelector(".print")?.addEventListener("click", () => print());

  // Read or code
  const switches = all("button[data-view]");
  const folds = all("details.code");
  const openAtFirst = new Map(folds.map((fold) => [fold, fold.open]));
  function setView(name) {
    root.dataset.view = name;
    switches.forEach((one) => one.setAttribute("aria-pressed", one.dataset.view === name));
    folds.forEach((fold) => (fold.open = name === "code" || openAtFirst.get(fold)));
  }
  // What stands at the top of the screen stays there.
  function changeView(name) {
    const mark = all("article :is(h2, h3, p, figure)").find((one) => one.getBoundingClientRect().top > 60);
    const before = mark?.getBoundingClientRect().top;
    root.style.overflowAnchor = "none"; // the browser would make up for it a second time
    setView(name);
    const back = () => mark && scrollBy(0, mark.getBoundingClientRect().top - before);
    back();
    requestAnimationFrame(() => {
      back();
      root.style.overflowAnchor = "";
    });
  }
  switches.forEach((one) =>
    one.addEventListener("click", () => {
      kept.write("view", one.dataset.view);
      changeView(one.dataset.view);
    }),
  );
  if (switches.length) setView(root.dataset.view);

  // A link into a folded part opens it, and so does a word that was searched for and is nowhere else.
  function open(node) {
    for (let fold = node.closest("details:not([open])"); fold; fold = fold.parentElement.closest("details:not([open])"))
      fold.open = true;
  }
  function reveal() {
    const name = location.hash.slice(1);
    const target = name ? document.getElementById(decodeURIComponent(name)) : null;
    if (!target?.closest("details:not([open])")) return;
    open(target);
    target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();

  const sought = kept.read("sphinx_highlight_terms"); // Sphinx's search leaves it for the page that it leads to
  if (sought && !document.getElementById("search-results")) {
    kept.write("sphinx_highlight_terms", "");
    const text = sought.toLowerCase();
    const article = document.querySelector("article");
    const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT, (node) =>
      node.data.toLowerCase().includes(text) ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT,
    );
    const hits = [];
    while (walker.nextNode()) hits.push(walker.currentNode);
    const hit = hits.find((node) => node.parentElement.checkVisibility()) ?? hits[0];
    if (hit) {
      open(hit.parentElement);
      const range = document.createRange();
      const start = hit.data.toLowerCase().indexOf(text);
      range.setStart(hit, start);
      range.setEnd(hit, start + text.length);
      getSelection().addRange(range);
      if (!location.hash) hit.parentElement.scrollIntoView({ block: "center" });
    }
  }

  // Which section is being read
  const links = new Map(all(".sections a").map((link) => [link.getAttribute("href").slice(1), link]));
  const sections = all("article section[id]").filter((section) => links.has(section.id));
  const inSight = new Set();
  const reading = new IntersectionObserver(
    (entries) => {
      entries.forEach((entry) => inSight[entry.isIntersecting ? "add" : "delete"](entry.target));
      const now = sections.find((section) => inSight.has(section));
      links.forEach((link, id) =>
        now?.id === id ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"),
      );
    },
    { rootMargin: "-25% 0px -70% 0px" },
  );
  sections.forEach((section) => reading.observe(section));

  // Copied formulas are TeX, as in the notebook.
  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return;
    const part = selection.getRangeAt(0).cloneContents();
    const formulas = all("math[alttext]", part);
    if (!formulas.length) return;
    formulas.forEach((formula) => {
      const sign = formula.getAttribute("display") === "block" ? "$$" : "$";
      formula.replaceWith(sign + formula.getAttribute("alttext") + sign);
    });
    event.clipboardData.setData("text/plain", part.textContent);
    event.preventDefault();
  });

  // A button to copy code, made when the reader comes to it.
  function offerCopy(event) {
    const block = event.target.closest?.("article .highlight");
    if (!block || block.closest(".cell_output") || block.querySelector(".copy")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = words.copy;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("pre").innerText);
      button.textContent = words.copied;
      setTimeout(() => (button.textContent = words.copy), 1500);
    });
    block.append(button);
  }
  document.addEventListener("pointerover", offerCopy);
  document.addEventListener("focusin", offerCopy);

  // What scrolls sideways can be reached with the keyboard, and nothing else of the kind takes a Tab stop.
  const sized = new ResizeObserver((entries) =>
    entries.forEach(({ target }) => {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }),
  );
  all("pre, .math, .scroll").forEach((one) => sized.observe(one));

  // "/" goes to the search.
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, [contenteditable]")) return;
    const field = all("input[type=search]").find((one) => one.checkVisibility());
    if (!field) return;
    event.preventDefault();
    field.focus();
  });

  // Letters that stand for the same thing light up together, in text, formulas and figures.
  let lit = [];
  function light(event) {
    const name = event.type.endsWith("out") ? null : event.target.closest?.("[data-sym]")?.dataset.sym;
    lit.forEach((one) => one.classList.remove("mm-lit"));
    lit = name ? all(`[data-sym="${CSS.escape(name)}"]`) : [];
    lit.forEach((one) => one.classList.add("mm-lit"));
  }
  ["pointerover", "pointerout", "focusin", "focusout"].forEach((type) => document.addEventListener(type, light));
})();
