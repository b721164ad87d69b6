// The theme of the page, that of the system until somebody chooses another by a button, which the browser keeps.

import { h, svg } from "../web/kit/kit.js";

const KEPT = "minimind-theme";
const RAYS = "M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2";
const SHAPES = {
  light: `M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8${RAYS}`,
  dark: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5",
};

/** A browser may refuse to keep anything, above all for a page from a file. */
function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}
function keep(theme) {
  try {
    localStorage.setItem(KEPT, theme);
  } catch {
    // the choice holds for this page
  }
}

/** The button; changed(): the colors of now are others. */
export function createTheme(words, changed) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const path = svg("path", {});
  const icon = svg("svg", { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" }, path);
  let chosen = kept();
  const now = () => chosen ?? (dark.matches ? "dark" : "light");
  const root = h("button", { type: "button", class: "in-theme", onClick: turn }, icon);

  function show() {
    const theme = now();
    document.documentElement.dataset.theme = theme;
    path.setAttribute("d", SHAPES[theme]);
    root.title = words.theme[theme];
    root.setAttribute("aria-label", root.title);
    changed();
  }
  function turn() {
    chosen = now() === "dark" ? "light" : "dark";
    keep(chosen);
    show();
  }
  dark.addEventListener("change", show);
  return { root, show };
}
