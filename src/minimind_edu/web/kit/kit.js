// What all figures share: elements, controls, words and numbers. Plain DOM, no network, nothing global.

import { keepWords } from "./keep_words.js";

/**
 * @typedef {{ get(name: string): any, set(name: string, value: any): void, save_changes(): void,
 *   send(content: any): void, on(event: string, callback: Function): void,
 *   off(event: string, callback: Function): void, address?: () => string | null }} Model
 * @typedef {Record<string, any>} Attributes
 * @typedef {{ value: any, label: string | number }} Option
 * @typedef {{ label: string, min: number, max: number, step?: number, value?: number, tone?: string, sym?: string,
 *   format?: (x: number) => string | number, onInput?: (x: number) => void }} SliderOptions
 * @typedef {{ stage: any, control?: any, numbers?: any, more?: any[] }} Stage
 * @typedef {{ model: Model, traits: string[], draw: (...widths: number[]) => void, boxes?: Element[],
 *   parts?: { release?: () => void }[], address?: (() => string | null) | null, isKept?: boolean }} Mounting
 */

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

// Pixels, as in figure.css: a figure that is narrower is on a phone, one from WIDE on has room for two columns. And the
// three sizes of text.
export const NARROW = 460;
export const WIDE = 600;
export const TEXT_SIZES = { small: 12, text: 13.5, large: 16 };

function applyAttribute(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on") && typeof value === "function") node.addEventListener(name.slice(2).toLowerCase(), value);
  else if (name === "style" && typeof value === "object") Object.assign(node.style, value);
  else node.setAttribute(name === "className" ? "class" : name, value === true ? "" : value);
}

function fillElement(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs || {})) applyAttribute(node, name, value);
  // JupyterLab takes arrows, Enter and Space as its own commands, except from an element that says so itself.
  if (node.matches("input, button, select, summary, [tabindex]"))
    node.setAttribute("data-lm-suppress-shortcuts", "true");
  node.append(...contentOf(children));
  return node;
}

// Texts, numbers, nodes, parts { root, … } and lists of all these, as nodes; null, undefined and false are left out.
function contentOf(children) {
  const isThere = (child) => child !== null && child !== undefined && child !== false;
  return children
    .flat(Infinity)
    .filter(isThere)
    .map((child) => child.root ?? child);
}

// An HTML element: h("p", { class: "mm-note", onClick: f }, "text", child, part, [children]).
/** @type {(tag: string, attrs?: Attributes, ...children: any[]) => any} */
export function h(tag, attrs, ...children) {
  return fillElement(document.createElement(tag), attrs, children);
}

// An SVG element, called in the same way.
/** @type {(tag: string, attrs?: Attributes, ...children: any[]) => any} */
export function svg(tag, attrs, ...children) {
  return fillElement(document.createElementNS(SVG_NAMESPACE, tag), attrs, children);
}

// Gives an element this content instead of what it had; takes what h takes.
/** @type {(node: Element, ...children: any[]) => void} */
export function fill(node, ...children) {
  node.replaceChildren(...contentOf(children));
}

// Changes attributes that a drawing's element already has, or gives it more of them. What is the same is left alone: a
// browser would draw it again.
/** @type {(node: Element, attrs: Attributes) => void} */
export function setAttributes(node, attrs) {
  for (const [name, value] of Object.entries(attrs)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
  }
}

// Changes the text of an element, if it is another one.
/** @type {(node: Element, text: any) => void} */
export function setText(node, text) {
  if (node.textContent !== String(text)) node.textContent = text;
}

// An SVG text. anchor: which of its ends stands at x, "start", "middle" or "end". tone: as for sliders.
/**
 * @type {(x: number, y: number, text: any,
 *   looks?: { anchor?: string, cls?: string | null, tone?: string | null, sym?: string }) => any}
 */
export function textAt(x, y, text, { anchor = "start", cls = "mm-small", tone, sym } = {}) {
  return svg("text", { x, y, class: cls, "text-anchor": anchor, "data-tone": tone, "data-sym": sym }, text);
}

// Gives a drawing as many units as it has pixels and, if there is one, the sentence that says what it shows.
/** @type {(drawing: Element, width: number, height: number, label?: string) => void} */
export function setSize(drawing, width, height, label) {
  setAttributes(drawing, { width, height, viewBox: `0 0 ${width} ${height}` });
  if (label !== undefined) setAttributes(drawing, { "aria-label": label });
}

/** @type {(x: number, low: number, high: number) => number} */
export function clamp(x, low, high) {
  return Math.min(high, Math.max(low, x));
}

function uniqueId() {
  return `mm-${Math.random().toString(36).slice(2, 10)}`;
}

// A number for reading: fixed digits, a true minus sign, never "-0.00".
/** @type {(x: number, digits?: number) => string} */
export function fmt(x, digits = 2) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "–" : x > 0 ? "∞" : "−∞";
  const text = Math.abs(x).toFixed(digits);
  return x < 0 && Number(text) !== 0 ? `−${text}` : text;
}

// A whole number for reading: 25,829,888.
/** @type {(x: number) => string} */
export function grouped(x) {
  return String(Math.round(x)).replace(/\B(?=(\d{3})+$)/g, ",");
}

// A native range with visible label and value. tone: a name of the palette, such as "q" or "good", or nothing: ink.
// sym: the symbol of the text that it moves. A step of whole numbers shows whole numbers.
/** @param {SliderOptions} options */
export function slider({ label, min, max, step, value, format, onInput, tone, sym }) {
  const textOf = format ?? ((x) => fmt(x, Number.isInteger(step) ? 0 : 2));
  const id = uniqueId();
  const input = h("input", { type: "range", id, min, max, step: step ?? "any" });
  const output = h("output", { for: id, class: "mm-value" });
  const show = () => {
    const number = Number(input.value);
    const text = String(textOf(number));
    output.textContent = text;
    input.setAttribute("aria-valuetext", text);
    const [from, to] = [Number(input.min), Number(input.max)]; // a figure may change them
    input.style.setProperty("--mm-fill", `${(100 * (number - from)) / (to - from || 1)}%`);
  };
  const set = (next) => {
    input.value = next;
    show();
  };
  input.addEventListener("input", () => {
    show();
    if (onInput) onInput(Number(input.value));
  });
  set(value);
  const root = h(
    "div",
    { class: "mm-slider", "data-tone": tone, "data-sym": sym },
    h("label", { for: id, class: "mm-label" }, label),
    output,
    input,
  );
  return { root, input, set, get: () => Number(input.value) };
}

// A native checkbox that looks like a switch.
/** @param {{ label: string, checked?: boolean, onChange?: (isOn: boolean) => void }} options */
export function toggle({ label, checked = false, onChange }) {
  const input = h("input", { type: "checkbox", role: "switch" });
  input.checked = checked;
  input.addEventListener("change", () => onChange && onChange(input.checked));
  const root = h("label", { class: "mm-toggle" }, input, h("span", { class: "mm-label" }, label));
  return { root, input, set: (next) => (input.checked = next), get: () => input.checked };
}

// A native radio group that looks like a segmented control. Values may be anything; they are compared with ===.
/** @param {{ label: string, options: Option[], value?: any, onChange?: (value: any) => void }} options */
export function choice({ label, options, value, onChange }) {
  const name = uniqueId();
  const inputs = options.map((option) => {
    const input = h("input", { type: "radio", name });
    input.addEventListener("change", () => input.checked && onChange && onChange(option.value));
    return input;
  });
  const set = (next) => options.forEach((option, i) => (inputs[i].checked = option.value === next));
  const segments = options.map((option, i) => h("label", {}, inputs[i], h("span", {}, option.label)));
  const root = h("fieldset", { class: "mm-choice" }, h("legend", { class: "mm-label" }, label), h("div", {}, segments));
  set(value);
  return { root, set, get: () => options.find((option, i) => inputs[i].checked)?.value };
}

// The options of a choice between these values, each named by labelOf.
/** @type {<V>(values: V[], labelOf?: (value: V) => string | number) => Option[]} */
export function optionsFor(values, labelOf = String) {
  return values.map((value) => ({ value, label: labelOf(value) }));
}

// The options of a choice whose values are the names of an object, and its words their labels.
/** @type {(labels: Record<string, string>) => Option[]} */
export function namedOptions(labels) {
  return Object.entries(labels).map(([value, label]) => ({ value, label }));
}

/** @param {{ label: string, onClick?: () => void }} options */
export function button({ label, onClick }) {
  const root = h("button", { type: "button", class: "mm-button", onClick }, label);
  return { root, set: (text) => (root.textContent = text) };
}

// Key numbers, announced politely: rows of [label, value] or [label, value, tone]. set() touches only what changed.
export function readout(rows) {
  const root = h("dl", { class: "mm-readout", "aria-live": "polite" });
  const set = (next) => {
    while (root.children.length > next.length) root.lastChild.remove();
    next.forEach(([label, value, tone], i) => {
      if (!root.children[i]) root.append(h("div", {}, h("dt", {}), h("dd", {})));
      const [term, number] = root.children[i].children;
      setText(term, label);
      setText(number, value);
      if (tone) number.dataset.tone = tone;
      else delete number.dataset.tone;
    });
  };
  set(rows || []);
  return { root, set };
}

// A sentence on the picture, or one of another class, announced politely when it differs. tone: as for sliders. No line
// ends between a number and its percent sign.
/** @type {(cls?: string) => { root: any, set: (sentence: string, tone?: string) => void }} */
export function announcement(cls = "mm-verdict") {
  const root = h("p", { class: cls, "aria-live": "polite" });
  const set = (sentence, tone) => {
    setText(root, sentence.replaceAll(" %", "\u00a0%"));
    if (tone) root.dataset.tone = tone;
    else delete root.dataset.tone;
  };
  return { root, set };
}

// Controls that each show and write one trait of a model: bound(slider, "gate", { label, min, max }) makes one, and
// follow() lets all of them show what the traits are now. stops: the values between which a slider moves, in their
// order; its format then gets a value. shown and written lead from the trait to the control's number and back.
// change(values): what writes, if there is more to do.
export function controlsOf(model, change = (values) => setTraits(model, values)) {
  const follows = [];
  const bound = (create, name, options) => {
    const {
      shown = (value) => value,
      written = (value) => value,
      ...others
    } = options.stops ? onStops(options) : options;
    const now = () => shown(model.get(name));
    const write = (value) => change({ [name]: written(value) });
    const control = create({ ...others, value: now(), checked: now(), onInput: write, onChange: write });
    follows.push(() => control.set(now()));
    return control;
  };
  return { bound, follow: () => follows.forEach((follow) => follow()) };
}

// A slider's range of places in a list of rising numbers; what is between two of them counts as the lower one.
function onStops({ stops, format = String, ...others }) {
  const shown = (value) => stops.findLastIndex((stop) => stop <= value);
  const range = { min: 0, max: stops.length - 1, step: 1, format: (at) => format(stops[at]) };
  return { ...others, ...range, shown, written: (at) => stops[at] };
}

// Controls side by side.
export function row(...controls) {
  return h("div", { class: "mm-controls" }, controls);
}

export function prefersReducedMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

// Sets traits from an object of names and values, and tells the kernel if there is one.
/** @type {(model: Model, values: Attributes) => void} */
export function setTraits(model, values) {
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  model.save_changes();
}

// Calls cb whenever one of these traits changes. Returns the clean-up.
/** @type {(model: Model, names: string[], cb: () => void) => () => void} */
export function observeTraits(model, names, cb) {
  names.forEach((name) => model.on(`change:${name}`, cb));
  return () => names.forEach((name) => model.off(`change:${name}`, cb));
}

const answers = new WeakMap(); // model -> name of what was asked for -> the promise of it

// A kernel sends code along; it runs as a figure's own module does, from the URL of a blob.
async function runCode({ code, payload }) {
  const url = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  const module = await import(url);
  URL.revokeObjectURL(url);
  return typeof module.default === "function" ? module.default(payload) : module.default;
}

// What travels only when it is asked for: the kernel sends it; where there is none, the page fetches it.
/** @type {(model: Model, name: string) => Promise<any>} */
export function askFor(model, name) {
  const promised = answers.get(model) ?? new Map();
  answers.set(model, promised);
  if (!promised.has(name)) {
    const arrived = new Promise((resolve, reject) => {
      const hear = ({ asked, value, error }) => {
        if (asked !== name) return;
        model.off("msg:custom", hear);
        if (error) reject(new Error(error));
        else resolve(value.code ? runCode(value) : value);
      };
      model.on("msg:custom", hear);
      model.send({ ask: name });
    });
    promised.set(name, arrived);
  }
  return promised.get(name);
}

// The living model, when it has arrived, as living.js opens it: { model, tensors, world, tables, heads, … }.
/** @type {(model: Model) => Promise<any>} */
export function loadLiving(model) {
  return askFor(model, "living");
}

// What a reader takes along, on the lower edge of a figure, where it takes no room. keep.js knows how, and comes with
// the first press; a notebook whose kernel has gone never sends it, one that still computes sends it later.
// given() promises what keep.js exports.
/** @type {(given: () => Promise<any>, root: Element, address?: (() => string | null) | null) => any} */
export function keeperOf(given, root, address) {
  const words = wordsOf(keepWords);
  const menu = h("div", {}, words.wait);
  const summary = h("summary", { title: words.hint, "aria-label": words.hint }, words.keep);
  const keeper = h("details", { class: "mm-keep" }, summary, menu);
  const fail = () => (menu.textContent = words.failed);
  const open = () => {
    const late = setTimeout(fail, 8000);
    given()
      .then((keep) => keep.offer(keeper, root, address, words), fail)
      .finally(() => clearTimeout(late));
  };
  keeper.addEventListener("toggle", open, { once: true });
  return keeper;
}

// Calls cb(width, height) now and whenever the element's size changes. Returns the clean-up.
/** @type {(el: Element, cb: (width: number, height: number) => void) => () => void} */
export function observeSize(el, cb) {
  const observer = new ResizeObserver(([entry]) => cb(entry.contentRect.width, entry.contentRect.height));
  observer.observe(el);
  return () => observer.disconnect();
}

// The words of a figure. table: { en: { title, caption, … } }; a module that was joined for another language has the
// words of that one instead.
export function wordsOf(table) {
  const [words] = Object.values(table);
  return words;
}

// The shape that all figures have: the claim as a title, the picture with its one control right below it, at most three
// numbers, a caption of a sentence or two, and everything else folded behind `words.more`. Compact, as at the head of a
// chapter, it is title, picture and control. words: { title, caption, more }; the others are whatever h takes.
/** @type {(words: Attributes, stage: Stage, isCompact?: boolean) => any} */
export function frame(words, { stage, control = null, numbers = null, more = [] }, isCompact = false) {
  const id = uniqueId();
  const title = h("figcaption", { id, class: "mm-title" }, words.title);
  const caption = h("p", { class: "mm-note" }, words.caption);
  const fold = h("details", { class: "mm-more" }, h("summary", {}, words.more), more);
  const whole = isCompact ? [] : [numbers, caption, more.length ? fold : null];
  const attrs = { class: "mm-fig", "aria-labelledby": id, "data-compact": isCompact };
  return h("figure", attrs, title, stage, control, whole);
}

// Once, when a figure is first seen, its handles show that they can be dragged. Returns the clean-up.
function nudgeHandles(root) {
  const observer = new IntersectionObserver(
    ([entry]) => {
      if (!entry.isIntersecting) return;
      root.classList.add("mm-seen");
      observer.disconnect();
    },
    { threshold: 0.6 },
  );
  observer.observe(root);
  return () => observer.disconnect();
}

// Puts a figure on the page and keeps it drawn: as soon as every box has a width, and again whenever a width or one of
// the traits changes. draw gets the widths; what of `parts` has something to release is released. address leads back to
// the state that is shown, if it is another than the host's; a figure that is no picture has isKept: false. Returns the
// clean-up.
/** @type {(el: any, root: Element, mounting: Mounting) => () => void} */
export function mount(
  el,
  root,
  { model, traits, draw, boxes = [], parts = [], address = model.address, isKept = true },
) {
  const widths = boxes.map(() => 0);
  const redraw = () => widths.every(Boolean) && draw(...widths);
  const unlisten = observeTraits(model, traits, redraw);
  redraw();
  const keeper = isKept ? keeperOf(() => askFor(model, "keep"), root, address) : null;
  el.classList.add("mm-kept");
  el.append(root, ...(keeper ? [keeper] : []));
  const unobserveSight = nudgeHandles(root);
  const unobserve = boxes.map((box, i) =>
    observeSize(box, (width) => {
      if (width === widths[i]) return; // a change of height is of our own making
      widths[i] = width;
      redraw();
    }),
  );
  return () => {
    [...unobserve, unobserveSight, unlisten].forEach((stop) => stop());
    parts.forEach((part) => part?.release?.());
    root.remove();
    keeper?.remove();
  };
}
