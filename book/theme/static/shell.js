// What the pages do by themselves: theme, reading or code, where the reader is, folded parts that open when something
// in them is sought, letters that light up together, and figures that text, address and earlier visits can set.
(() => {
  const root = document.documentElement;
  // A page in another language brings its words along (minimind_book.words).
  const words = JSON.parse(root.dataset.words ?? "null")?.shell ?? {
    copy: "Copy",
    copied: "Copied",
    mode: "Color mode: {}",
    modes: { auto: "auto", light: "light", dark: "dark" },
    reset: "Back to the start",
    right: "Right.",
    wrong: "Not quite.",
    read: "{} of {} chapters read; only this browser knows.",
  };
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

  // What a reader has chosen is remembered, where the browser allows it.
  const parsed = (text, otherwise) => {
    try {
      return JSON.parse(text) ?? otherwise;
    } catch {
      return otherwise;
    }
  };
  const unescaped = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text; // half of an escape, from an address that was cut
    }
  };
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
    button.title = words.mode.replace("{}", words.modes[mode]);
    button.setAttribute("aria-label", button.title);
  }
  dark.addEventListener("change", () => setTheme(root.dataset.mode));
  setTheme(root.dataset.mode);
  document.querySelector(".theme-switch").addEventListener("click", () => {
    const order = dark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    const mode = order[(order.indexOf(root.dataset.mode) + 1) % order.length];
    kept.write("mode", mode);
    setTheme(mode);
  });
  for (const button of document.querySelectorAll(".print")) button.addEventListener("click", () => print());

  // Menus close when something was chosen, or nothing.
  for (const menu of document.querySelectorAll(".more")) {
    document.addEventListener("click", (event) => menu.contains(event.target) || (menu.open = false));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }
  const contents = document.getElementById("contents");
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && contents.matches(":popover-open")) contents.hidePopover();
  });

  // Read or code
  const switches = all("button[data-view]");
  const folds = all("details.code");
  const openAtFirst = new Map(folds.map((fold) => [fold, fold.open]));
  function setView(name) {
    root.dataset.view = name;
    switches.forEach((toggle) => toggle.setAttribute("aria-pressed", toggle.dataset.view === name));
    folds.forEach((fold) => (fold.open = name === "code" || openAtFirst.get(fold)));
  }
  // What stands at the top of the screen stays there.
  function changeView(name) {
    const mark = all("article :is(h2, h3, p, figure)").find(
      (part) => part.checkVisibility() && part.getBoundingClientRect().top > 60,
    );
    const before = mark?.getBoundingClientRect().top;
    root.style.overflowAnchor = "none"; // the browser would make up for it a second time
    setView(name);
    // Opening takes some frames.
    let frames = 8;
    const back = () => {
      if (mark) scrollBy(0, mark.getBoundingClientRect().top - before);
      if (frames--) requestAnimationFrame(back);
      else root.style.overflowAnchor = "";
    };
    back();
  }
  switches.forEach((toggle) =>
    toggle.addEventListener("click", () => {
      kept.write("view", toggle.dataset.view);
      changeView(toggle.dataset.view);
    }),
  );
  if (switches.length) setView(root.dataset.view);

  // A link into a folded part opens it, and so does a word that was searched for and is nowhere else.
  function open(node) {
    for (let fold = node.closest("details:not([open])"); fold; fold = fold.parentElement.closest("details:not([open])"))
      fold.open = true;
  }
  // What a lesson had once stands on its deeper page now.
  const movedPlaces = parsed(document.querySelector("article")?.dataset.moved, {});
  function reveal() {
    const name = unescaped(location.hash.slice(1));
    const target = name ? document.getElementById(name) : null;
    const moved = target ? null : movedPlaces[name];
    if (moved) return location.replace(moved);
    if (!target?.closest("details:not([open])")) return;
    open(target);
    target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();

  const sought = kept.read("sought"); // found.js leaves it for the page that a result leads to
  if (sought) {
    kept.write("sought", "");
    const section = document.getElementById(unescaped(location.hash.slice(1)));
    const texts = [];
    const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (!walker.currentNode.parentElement.closest(".install")) texts.push(walker.currentNode);
    // All that was typed as it is, or else the first of its words; in the section, in a heading, in what is open, or
    // anywhere.
    const whole = sought.toLowerCase();
    const here = texts.filter((node) => section?.contains(node));
    const [text, hits] = [whole, ...whole.split(/\s+/)]
      .flatMap((term) =>
        [here, texts].map((some) => [term, some.filter((node) => node.data.toLowerCase().includes(term))]),
      )
      .find(([term, found]) => term && found.length) ?? [whole, []];
    const hit =
      hits.find((node) => node.parentElement.closest("h2, h3")) ??
      hits.find((node) => node.parentElement.checkVisibility()) ??
      hits[0];
    if (hit) {
      open(hit.parentElement);
      if (!hit.parentElement.checkVisibility()) setView("code"); // in what only the code shows
      const range = document.createRange();
      const start = hit.data.toLowerCase().indexOf(text);
      range.setStart(hit, start);
      range.setEnd(hit, start + text.length);
      getSelection().addRange(range);
      // Where the section begins is where the result led to, unless the words are further down.
      const { top } = range.getBoundingClientRect();
      if (!section || top > innerHeight - 80) scrollBy(0, top - innerHeight / 3);
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

  // The other language: the place on the page that is in sight, and the choice is remembered.
  document.querySelector(".other-language")?.addEventListener("click", ({ currentTarget: link }) => {
    kept.write("language", link.hreflang.split("-")[0]);
    const isAbove = (section) => section.getBoundingClientRect().top < innerHeight / 5;
    link.hash = all("article section section[id]").filter(isAbove).at(-1)?.id ?? "";
  });

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

  // What scrolls sideways can be reached with the keyboard, and nothing else of the kind takes a Tab stop. It shows the
  // sides at which it goes on.
  const scrollers = "pre, .math, .scroll";
  function tellSides(box) {
    const right = box.scrollWidth - box.clientWidth - box.scrollLeft > 1;
    const sides = [box.scrollLeft > 1 && "left", right && "right"].filter(Boolean);
    if (sides.length) box.dataset.more = sides.join(" ");
    else delete box.dataset.more;
  }
  const sized = new ResizeObserver((entries) =>
    entries.forEach(({ target }) => {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
      tellSides(target);
    }),
  );
  all(scrollers).forEach((box) => sized.observe(box));
  document.addEventListener("scroll", ({ target }) => target.matches?.(scrollers) && tellSides(target), true);

  // "/" goes to the search.
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, [contenteditable]")) return;
    const field = all("input[type=search]").find((input) => input.checkVisibility());
    if (!field) return;
    event.preventDefault();
    field.focus();
  });

  // The search comes with the first letter that somebody types, and looks while one types.
  let search;
  const script = (file) =>
    new Promise((done, failed) =>
      document.head.append(
        Object.assign(document.createElement("script"), {
          src: root.dataset.content_root + file,
          async: false, // the words come before what looks through them
          onload: done,
          onerror: failed,
        }),
      ),
    );
  addEventListener("input", async ({ target }) => {
    if (!target.matches("input[type=search]")) return;
    try {
      await (search ??= Promise.all(["search_texts.js", "_static/search.js", "_static/found.js"].map(script)));
    } catch {
      search = null; // no network: the next letter tries again
      return;
    }
    showFound(target);
  });
  const asked = document.querySelector("article input[type=search]");
  if (asked) {
    asked.value = new URLSearchParams(location.search).get("q") ?? "";
    asked.form.addEventListener("submit", (event) => event.preventDefault()); // it is there already
    if (asked.value) asked.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // Letters that stand for the same thing light up together, in text, formulas and figures.
  let lit = [];
  function light(event) {
    const name = event.type.endsWith("out") ? null : event.target.closest?.("[data-sym]")?.dataset.sym;
    lit.forEach((symbol) => symbol.classList.remove("mm-lit"));
    lit = name ? all(`[data-sym="${CSS.escape(name)}"]`) : [];
    lit.forEach((symbol) => symbol.classList.add("mm-lit"));
  }
  ["pointerover", "pointerout", "focusin", "focusout"].forEach((type) => document.addEventListener(type, light));

  // Figures. The state of each is kept for the next visit, and can be set by an address, and by a link in the text:
  // [40](figure:rotation_dials?query_position=40) sets the nearest one of its kind, rotation_dials#2 the second on the
  // page. A number in such a link can be dragged, and follows.
  const CHANGED = "minimind-figure-changed";
  const SET = "minimind-figure-set";
  const page = location.pathname.split("/").slice(-2).join("/");
  const isSmall = (value) => JSON.stringify(value).length < 200;
  const states = parsed(kept.read("figures"), {}); // page#figure -> what the reader has changed
  const figures = all(".minimind-figure[data-figure][id]");
  const place = (figure) => `${page}#${figure.id}`;

  // Addresses and stores may hold anything: the host leaves out what the figure does not take. Null is its start.
  const tell = (figure, detail) => figure.dispatchEvent(new CustomEvent(SET, { detail }));
  function whenAlive(figure, act) {
    if (figure.dataset.state) return act();
    const observer = new MutationObserver(() => {
      observer.disconnect();
      act();
    });
    observer.observe(figure, { attributes: true, attributeFilter: ["data-state"] });
  }

  function offerReset(figure) {
    const fold = figure.querySelector(".mm-more");
    if (!fold || fold.querySelector(".mm-reset")) return; // a figure that opens a chapter is for a first look
    const bar = document.createElement("p");
    bar.className = "mm-reset";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words.reset;
    button.addEventListener("click", () => {
      tell(figure, null);
      delete states[place(figure)];
      kept.write("figures", JSON.stringify(states));
      bar.remove();
    });
    bar.append(button);
    fold.append(bar);
  }

  let writing = 0;
  function remember(figure, key, value) {
    if (!isSmall(value)) return;
    (states[place(figure)] ??= {})[key] = value;
    clearTimeout(writing); // a drag says a lot, and the store is slow
    writing = setTimeout(() => kept.write("figures", JSON.stringify(states)), 300);
    offerReset(figure);
  }

  figures.forEach((figure) => {
    figure.addEventListener(CHANGED, (event) => remember(figure, event.detail.key, event.detail.value));
    if (states[place(figure)]) whenAlive(figure, () => (tell(figure, states[place(figure)]), offerReset(figure)));
  });

  const valuesOf = (query) =>
    Object.fromEntries([...new URLSearchParams(query)].map(([key, text]) => [key, parsed(text, text)]));

  // #figure-3?query_position=40
  function setFromAddress() {
    const [, id, query] = location.hash.match(/^#(figure-\d+)\?(.*)$/) ?? [];
    const figure = id && document.getElementById(id);
    if (!figure) return;
    figure.scrollIntoView({ block: "center" });
    whenAlive(figure, () => {
      tell(figure, null); // what an earlier visit left is no part of the address
      tell(figure, valuesOf(query));
    });
  }
  addEventListener("hashchange", setFromAddress);
  setFromAddress();

  // Sections count first: of the figures in the link's own one, or else of all, the one with fewest pixels between.
  const nearest = (link, kind) => {
    const section = link.closest("section");
    const inside = kind.filter((figure) => figure.closest("section") === section);
    const [only, ...others] = inside.length ? inside : kind;
    if (!others.length) return only; // nothing is measured while the page loads
    const height = (node) => node.getBoundingClientRect().top;
    const away = (figure) => Math.abs(height(figure) - height(link));
    return [only, ...others].sort((a, b) => away(a) - away(b))[0];
  };

  all('a[href^="figure:"]').forEach((link) => {
    const [, name, which, query] = link.getAttribute("href").match(/^figure:([^#?]+)(?:#(\d+))?\??(.*)$/);
    const { min = 0, max, ...values } = valuesOf(query);
    const kind = figures.filter((figure) => figure.dataset.figure === name);
    const target = which ? kind[which - 1] : nearest(link, kind);
    if (!target) return;
    const set = (next) => whenAlive(target, () => tell(target, next));
    link.addEventListener("click", (event) => {
      event.preventDefault();
      if (link.dataset.dragged) return delete link.dataset.dragged;
      set(values);
      target.scrollIntoView({ block: "nearest" });
    });
    if (max === undefined) return;

    // A number that can be dragged, from `min` to `max`
    const [key] = Object.keys(values);
    const current = () => Number(link.textContent);
    const change = (value) => set({ [key]: Math.min(max, Math.max(min, value)) });
    link.classList.add("scrub");
    const letter = link.previousElementSibling?.dataset.sym; // "$m$ = [8]": the number is of the letter's color
    if (letter) link.dataset.sym = letter;
    link.role = "spinbutton";
    link.setAttribute("aria-label", key.replaceAll("_", " "));
    link.setAttribute("aria-valuemin", min);
    link.setAttribute("aria-valuemax", max);
    link.setAttribute("aria-valuenow", values[key]);
    target.addEventListener(CHANGED, (event) => {
      if (event.detail.key !== key) return;
      link.textContent = event.detail.value;
      link.setAttribute("aria-valuenow", event.detail.value);
    });
    let from = null;
    link.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, value: current() };
      link.setPointerCapture(event.pointerId);
    });
    link.addEventListener("pointermove", (event) => {
      if (!from) return;
      const moved = Math.round((event.clientX - from.x) / 8);
      if (moved) link.dataset.dragged = "true";
      change(from.value + moved);
    });
    ["pointerup", "pointercancel"].forEach((type) => link.addEventListener(type, () => (from = null)));
    link.addEventListener("dragstart", (event) => event.preventDefault());
    link.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      change(current() + step);
    });
  });

  // A prediction: a quotation with a list of guesses and a folded answer that begins with the right one in bold. A list
  // in the answer has a sentence for each wrong guess, which it begins with: only the chosen one's is told.
  const guesses = parsed(kept.read("predictions"), {});
  all('blockquote[class*="callout-predict"]:has(ul):has(details)').forEach((quote, number) => {
    const answer = quote.querySelector("details");
    const right = answer
      .querySelector("strong")
      ?.textContent.trim()
      .replace(/[.。]$/, "");
    const key = `${page}#${number}`;
    const because = {};
    all("ul", answer).forEach((list) => {
      all("li", list).forEach((item) => {
        const guess = item.querySelector("em");
        because[guess?.textContent.trim()] = item.textContent
          .trim()
          .slice(guess?.textContent.length)
          .replace(/^: |^：/, "")
          .replace(/^./u, (letter) => letter.toUpperCase());
      });
      list.remove();
    });
    const verdict = document.createElement("p");
    verdict.className = "verdict";
    verdict.setAttribute("aria-live", "polite");
    const buttons = all("ul > li", quote).map((item) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "guess";
      button.append(...(item.querySelector("p") ?? item).childNodes);
      item.replaceChildren(button);
      return button;
    });
    const textOf = (button) => button.textContent.trim().replace(/[.。]$/, "");
    function choose(index) {
      buttons.forEach((button, i) => {
        button.setAttribute("aria-pressed", i === index);
        if (textOf(button) === right) button.dataset.right = "true";
      });
      const chosen = textOf(buttons[index]);
      verdict.textContent = chosen === right ? words.right : `${words.wrong} ${because[chosen] ?? ""}`.trim();
      answer.open = true;
    }
    buttons.forEach((button, index) =>
      button.addEventListener("click", () => {
        guesses[key] = index;
        kept.write("predictions", JSON.stringify(guesses));
        choose(index);
      }),
    );
    answer.querySelector("summary").after(verdict);
    if (Number.isInteger(guesses[key]) && buttons[guesses[key]]) choose(guesses[key]);
  });

  // The strip of the front page fills as chapters are read: a chapter is, when its summary has been in sight.
  const chaptersRead = parsed(kept.read("chapters"), {});
  const summary = document.querySelector("article[data-fills] #in-short");
  if (summary) {
    const watch = new IntersectionObserver(([seen]) => {
      if (!seen.isIntersecting) return;
      chaptersRead[page] = summary.closest("article").dataset.fills;
      kept.write("chapters", JSON.stringify(chaptersRead));
      watch.disconnect();
    });
    watch.observe(summary);
  }
  all(".mp-face").forEach((face) => {
    const chapters = parsed(face.dataset.chapters, {});
    const read = Object.values(chaptersRead);
    for (const [part, count] of Object.entries(chapters)) {
      const share = Math.min(1, read.filter((readPart) => readPart === part).length / count);
      face.querySelector(`[data-part="${part}"]`).style.setProperty("--read", `${Math.round(100 * share)}%`);
    }
    const count = Object.values(chapters).reduce((sum, value) => sum + value, 0);
    face.hidden = !read.length;
    face.querySelector("p").textContent = words.read.replace("{}", Math.min(read.length, count)).replace("{}", count);
  });
})();
