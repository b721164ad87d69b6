// Mounts the figures of a page that has no kernel, each with its state. The names come from minimind_edu.web.host,
// which writes the call below this file.
function mountFigures(names) {
  const words = names.words ?? {
    table: "Starting values as a table",
    failed: "This figure could not start in this browser; its numbers stand here instead.",
  };
  const { figureClass, fallbackClass, stillClass, openingClass, stateType, modules } = names;
  const folder = document.currentScript?.src.replace(/[^/]*$/, "");
  const loading = new Map();

  // The page brings the script of its first figure along; the others come when they are wanted.
  function fetched(name) {
    const registered = () => (window[modules] || {})[name];
    if (registered()) return Promise.resolve(registered());
    const missing = new Error(`this page carries no script called ${name}`);
    if (!folder) return Promise.reject(missing);
    return new Promise((resolve, reject) => {
      // its script may be under way
      const script = document.querySelector(`script[src$="/${name}.js"]`) ?? document.createElement("script");
      script.addEventListener("load", () => (registered() ? resolve(registered()) : reject(missing)));
      script.addEventListener("error", () => reject(missing));
      if (script.isConnected) return;
      script.src = `${folder}${name}.js`;
      document.head.append(script);
    });
  }

  function load(name) {
    if (!loading.has(name))
      loading.set(
        name,
        fetched(name).then((create) => create()),
      );
    return loading.get(name);
  }

  // What may be set from outside, as minimind_edu.web.traits says it: addresses and stores may hold anything.
  function allows(limits, value, now) {
    if (!limits) return false;
    if (limits.of) return limits.of.includes(value);
    if (limits.each)
      return Array.isArray(value) && value.length === now.length && value.every((item) => allows(limits.each, item));
    const fits = limits.whole ? Number.isSafeInteger(value) : Number.isFinite(value);
    return fits && !(value < limits.from) && !(value > limits.to);
  }

  // In a link 3.1 is a number; where a figure has a choice of that name, a head, it is the name.
  const named = (limits, value) =>
    typeof value === "number" && limits?.of?.includes(String(value)) ? String(value) : value;

  // The state of a figure; what one of its kind further up has alike is written only there.
  function stateOf(figure) {
    const script = figure.querySelector(`:scope > script[type="${stateType}"]`);
    const like = document.getElementById(script.dataset.like);
    return { ...(like ? stateOf(like) : {}), ...JSON.parse(script.textContent) };
  }

  // The part of anywidget's model that figures use. As there, set() is heard only when the value differs, and what is
  // sent is answered by a message; in place of a kernel, the files of the page answer.
  function createModel(state, onChange) {
    const listeners = new Map();
    const split = (text) => text.split(/\s+/);
    const emit = (name, ...heard) => [...(listeners.get(name) || [])].forEach((callback) => callback(...heard));
    const model = {
      get: (key) => state[key],
      set(key, value) {
        const same = JSON.stringify(state[key]) === JSON.stringify(value);
        state[key] = value;
        if (same) return;
        for (const name of [`change:${key}`, "change"]) emit(name, model, value);
        onChange(key, value);
      },
      on(text, callback) {
        for (const name of split(text)) listeners.set(name, [...(listeners.get(name) || []), callback]);
      },
      off(text, callback) {
        for (const name of text ? split(text) : [...listeners.keys()]) {
          listeners.set(name, callback ? (listeners.get(name) || []).filter((listener) => listener !== callback) : []);
        }
      },
      save_changes() {},
      async send({ ask }) {
        if (!names.loaded.includes(ask)) return;
        const answer = await load(ask).then(
          (value) => ({ value }),
          (error) => ({ error: error.message }),
        );
        emit("msg:custom", { asked: ask, ...answer });
      },
    };
    return model;
  }

  function element(tag, className, text = "") {
    const node = document.createElement(tag);
    node.className = className;
    node.textContent = text;
    return node;
  }

  // A table of numbers stays at hand below the figure; a fallback without one says nothing that the figure does not.
  function fold(figure) {
    const fallback = figure.querySelector(`:scope > .${fallbackClass}`);
    if (!fallback) return;
    if (figure.classList.contains(openingClass) || !fallback.querySelector("table")) return fallback.remove();
    const details = element("details", "mm-data");
    details.append(element("summary", "", words.table), ...fallback.childNodes);
    fallback.replaceWith(details);
  }

  // Figures draw when they know their width, a frame after they are put on the page, and are alive from then on. Until
  // then the still stays, and leaves in the moment in which the figure takes its place: nothing moves. A page that is
  // hidden has no frames.
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const unseen = () => new Promise((resolve) => setTimeout(() => document.hidden && resolve(), 3000));
  const drawn = () => Promise.race([frame().then(frame), unseen()]);

  async function mount(figure) {
    const stage = element("div", "mm-mount");
    const still = figure.querySelector(`:scope > .${stillClass}`);
    try {
      const state = stateOf(figure);
      const start = { ...state };
      const tell = (key, value) =>
        figure.dispatchEvent(new CustomEvent(names.changed, { bubbles: true, detail: { key, value } }));
      const model = createModel(state, tell);
      // Of the state, what an address may set and what is not as the page has it.
      model.address = () => {
        const { limits } = window[modules][figure.dataset.figure];
        const isOther = (key) => JSON.stringify(state[key]) !== JSON.stringify(start[key]);
        const parts = Object.keys(limits).filter((key) => key in start && isOther(key));
        const query = parts.map((key) => `${key}=${encodeURIComponent(JSON.stringify(state[key]))}`);
        return figure.id ? `${location.href.split("#")[0]}#${figure.id}?${query.join("&")}` : null;
      };
      const module = await load(figure.dataset.figure);
      stage.classList.toggle("mm-unseen", Boolean(still));
      figure.prepend(stage);
      await module.render({ model, el: stage });
      await drawn();
      stage.classList.remove("mm-unseen");
      still?.remove();
      fold(figure);
      const { limits } = window[modules][figure.dataset.figure];
      figure.addEventListener(names.asked, (event) => {
        // nothing is asked for: as the page has it
        for (const [key, asked] of Object.entries(event.detail ?? start)) {
          if (!Object.hasOwn(limits, key)) continue;
          const value = named(limits[key], asked);
          if (allows(limits[key], value, state[key])) model.set(key, value);
        }
      });
      figure.dataset.state = names.alive;
    } catch (error) {
      stage.remove();
      still?.remove();
      figure.prepend(element("p", "mm-failed", words.failed));
      figure.dataset.state = names.failed;
      console.error(`figure ${figure.dataset.figure}:`, error);
    }
  }

  // The figure that opens the page starts at once. The others start when the reader comes near, or one after the other
  // when the page has a moment.
  const started = new Map();
  function start(figure) {
    if (!started.has(figure)) started.set(figure, mount(figure));
    return started.get(figure);
  }
  const waiting = () => [...document.querySelectorAll(`.${figureClass}[data-figure]:not([data-state])`)];
  const moment = window.requestIdleCallback ?? ((callback) => setTimeout(callback, 50));
  const near = new IntersectionObserver(
    (entries) => entries.forEach((entry) => entry.isIntersecting && start(entry.target)),
    { rootMargin: "800px 0px" },
  );

  async function startAll() {
    for (const figure of waiting()) {
      await new Promise((resolve) => moment(resolve, { timeout: 1000 }));
      await start(figure);
    }
  }

  // It stands at the top and is complete when something follows it: it need not wait for the rest of the page.
  const opening = document.querySelector(`.${openingClass}[data-figure]:not([data-state])`);
  if (opening?.nextElementSibling) start(opening);

  function begin() {
    const figures = waiting();
    figures.filter((figure) => figure.classList.contains(openingClass)).forEach(start);
    figures.forEach((figure) => near.observe(figure));
    addEventListener("beforeprint", () => waiting().forEach(start));
    if (document.readyState === "complete") startAll();
    else addEventListener("load", startAll);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
}
