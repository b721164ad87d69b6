// Tabs: one panel of several is shown, and the arrow keys lead along their names.

import { h, fill } from "../../web/kit/kit.js";

let tabsHere = 0; // on this page, for their ids

/** panels: [{ name, label, root }]. show(name) brings one forward; reveal(element): the one that holds an element. */
export function createTabs(label, panels) {
  const id = `ml-tabs-${++tabsHere}`;
  const tabs = panels.map(({ name, label: text, root }, at) => {
    const panel = { role: "tabpanel", id: `${id}-${name}`, "aria-labelledby": `${id}-${name}-tab`, class: "ml-panel" };
    const attrs = { type: "button", role: "tab", class: "ml-tab", id: `${panel["aria-labelledby"]}` };
    const button = h("button", { ...attrs, "aria-controls": panel.id, onClick: () => show(name) }, text);
    return { name, at, button, panel: h("div", panel, root) };
  });
  const list = h("div", { class: "ml-tablist", role: "tablist", "aria-label": label });
  const root = h("div", { class: "ml-tabs scripted" }, list, h("div", { class: "ml-panels" }));
  fill(list, ...tabs.map(({ button }) => button));
  fill(root.lastChild, ...tabs.map(({ panel }) => panel));
  let current = null;

  function show(name) {
    current = name;
    for (const { name: tab, button, panel } of tabs) {
      button.setAttribute("aria-selected", tab === name);
      button.tabIndex = tab === name ? 0 : -1;
      panel.hidden = tab !== name;
    }
  }

  list.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const { at } = tabs.find(({ name }) => name === current);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    show(next.name);
    next.button.focus();
  });
  const reveal = (element) => tabs.forEach(({ name, panel }) => panel.contains(element) && show(name));
  show(tabs[0].name);
  return { root, show, reveal };
}
