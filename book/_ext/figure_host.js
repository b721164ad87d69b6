// Mounts the figures of a static page: no kernel, no network. Each element of figureClass with a data-figure holds its
// state as JSON, in a script of stateType, and a table as fallback; window[modules][name] is the source of its module.
// alive and failed are what data-state says once a figure is mounted, or could not be. All of these names come from
// minimind_edu.figures.host, which writes the call below this file.
function mountFigures({ figureClass, fallbackClass, stateType, modules, alive, failed }) {
  const loaded = new Map();

  function load(name) {
    if (!loaded.has(name)) {
      const source = (window[modules] || {})[name];
      if (!source) return Promise.reject(new Error(`this page carries no figure called ${name}`));
      const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      const module = import(url).finally(() => URL.revokeObjectURL(url));
      loaded.set(name, module);
    }
    return loaded.get(name);
  }

  // The part of anywidget's model that figures use. As there, set() is heard only when the value differs.
  function createModel(state) {
    const listeners = new Map();
    const names = (text) => text.split(/\s+/);
    const model = {
      get: (key) => state[key],
      set(key, value) {
        const same = JSON.stringify(state[key]) === JSON.stringify(value);
        state[key] = value;
        if (same) return;
        for (const name of [`change:${key}`, "change"]) {
          for (const callback of [...(listeners.get(name) || [])]) callback(model, value);
        }
      },
      on(text, callback) {
        for (const name of names(text)) listeners.set(name, [...(listeners.get(name) || []), callback]);
      },
      off(text, callback) {
        for (const name of text ? names(text) : [...listeners.keys()]) {
          listeners.set(name, callback ? (listeners.get(name) || []).filter((one) => one !== callback) : []);
        }
      },
      save_changes() {},
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
  function fold(fallback) {
    if (!fallback) return;
    if (!fallback.querySelector("table")) return fallback.remove();
    const details = element("details", "mm-data");
    details.append(element("summary", "", "The numbers at the start, as a table"), ...fallback.childNodes);
    fallback.replaceWith(details);
  }

  async function mount(figure) {
    const stage = element("div", "mm-mount");
    try {
      const state = JSON.parse(figure.querySelector(`script[type="${stateType}"]`).textContent);
      const { default: module } = await load(figure.dataset.figure);
      figure.prepend(stage);
      await module.render({ model: createModel(state), el: stage });
      fold(figure.querySelector(`.${fallbackClass}`));
      figure.dataset.state = alive;
    } catch (error) {
      const words = "This figure could not start in this browser; its numbers stand here instead.";
      stage.remove();
      figure.prepend(element("p", "mm-failed", words));
      figure.dataset.state = failed;
      console.error(`figure ${figure.dataset.figure}:`, error);
    }
  }

  const waiting = `.${figureClass}[data-figure]:not([data-state])`;
  const mountAll = () => document.querySelectorAll(waiting).forEach(mount);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
  else mountAll();
}
