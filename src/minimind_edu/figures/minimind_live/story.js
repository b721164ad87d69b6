// The story: its words as chips, what a head reads of them, and what could stand instead of a word.

import { h, svg, fill, textAt, setSize, observeSize } from "../../web/kit/kit.js";
import { readsOf } from "../../web/stage/heads.js";
import { walkAlong } from "../../web/stage/writing.js";
import { createHeadMap, wordWithGloss } from "./marks.js";

const LEAST_ARC = 0.04; // weight: below it no arc is drawn
const LABELLED = 0.1; // weight: from here on it is written
const READ_FIRST = 3; // words of the head below the story

/** glossOf(id) -> text or nothing. */
export function createStory(words, session, glossOf) {
  const arcs = svg("svg", { class: "ml-arcs", "aria-hidden": "true" });
  const line = h("div", { class: "ml-chips", role: "group", "aria-label": words.story });
  const root = h("div", { class: "ml-story" }, arcs, line);
  let [chips, drawn, tinted] = [[], null, []];
  let places = null; // where the chips are, until something moves them

  walkAlong(line, session, () => chips);

  function stateOf(at) {
    if (session.brokenAt !== null && at >= session.brokenAt) return at === session.brokenAt ? "broken" : "after";
    return session.written.has(at) ? "written" : null;
  }

  function createChip(id, at) {
    const word = session.world.words[id];
    const state = stateOf(at);
    const hint = { broken: words.chipBroken, after: words.chipAfter, written: words.chipWritten }[state];
    const attrs = {
      type: "button",
      class: "ml-chip mm-shows",
      "data-is": state,
      title: hint,
      onClick: () => session.select(at),
    };
    return h("button", attrs, wordWithGloss(word, glossOf(id)));
  }

  function build() {
    const focused = chips.indexOf(document.activeElement);
    chips = session.ids.map(createChip);
    fill(line, chips);
    if (focused >= 0) chips[session.selected].focus({ preventScroll: true });
    drawn = { ids: session.ids, written: session.written };
    places = null;
  }

  function select() {
    chips.forEach((chip, at) => {
      chip.setAttribute("aria-current", at === session.selected);
      chip.tabIndex = at === session.selected ? 0 : -1;
    });
  }

  /** Where the chips are in the box; measured once, for nothing that a hand does to a head moves them. */
  function measure() {
    const box = root.getBoundingClientRect();
    setSize(arcs, box.width, box.height);
    return chips.map((chip) => {
      const { left, width, top } = chip.getBoundingClientRect();
      return [left + width / 2 - box.left, top - box.top];
    });
  }

  /** From the word that is read to the one that reads. */
  function arcTo([x, y], [fromX, fromY], weight) {
    const rise = 12 + Math.min(22, 0.08 * Math.abs(fromX - x));
    const d = `M${fromX} ${fromY}C${fromX} ${fromY - rise} ${x} ${y - rise} ${x} ${y}`;
    return svg("path", { class: "ml-arc", d, "stroke-width": 1 + 5 * weight, opacity: 0.3 + 0.7 * weight });
  }

  /**
   * The weights [T] of a head, or null: a tint for each word that is read, its percent above those that are read most,
   * and arcs, where the story is one line and they cross no words. The lines of the story make room only for a head
   * that is open (isOpen), since what the mouse touches must not move.
   */
  function drawArcs(weights, isOpen) {
    if (root.dataset.open !== `${isOpen}`) [root.dataset.open, places] = [isOpen, null];
    tinted.forEach((chip) => chip.style.removeProperty("--ml-read"));
    fill(arcs);
    if (!weights) return;
    places ??= measure();
    const read = [...weights.keys()].filter((at) => weights[at] >= LEAST_ARC);
    tinted = read.map((at) => chips[at]);
    tinted.forEach((chip, i) => chip.style.setProperty("--ml-read", `${100 * weights[read[i]]}%`));
    const labelled = read.filter((at) => weights[at] >= LABELLED);
    const isOneLine = new Set(places.map(([, y]) => Math.round(y))).size === 1;
    fill(
      arcs,
      isOneLine && read.map((at) => arcTo(places[session.selected], places[at], weights[at])),
      labelled.map((at) =>
        textAt(places[at][0], places[at][1] - 4, words.percent(weights[at]), {
          anchor: "middle",
          cls: "mm-small mm-strong",
          tone: "v",
        }),
      ),
    );
  }

  function draw() {
    if (drawn?.ids !== session.ids || drawn.written !== session.written) build();
    select();
  }
  const release = observeSize(root, () => (places = null));
  return { root, draw, drawArcs, release };
}

/** The head that a press of the guide shows, small: its map, the words that it reads most, the way to all of it. */
export function createLens(words, session, reading) {
  const map = createHeadMap();
  const [title, list] = [h("p", { class: "ml-title" }), h("ol", { class: "st-list" })];
  const onClick = () => session.toggle({ part: "head", ...session.shown });
  const open = h("button", { type: "button", class: "st-link", onClick }, words.openBelow);
  const root = h("div", { class: "ml-lens", hidden: true }, map.root, h("div", {}, title, list, open));

  function draw() {
    const { shown, now } = session;
    root.hidden = !shown || !now;
    if (root.hidden) return;
    const { layer, head } = shown;
    const isSilent = session.silenced.has(`${layer}.${head}`);
    const name = words.headTitle(layer + 1, head + 1);
    root.dataset.silent = isSilent;
    title.textContent = isSilent ? words.silent(name) : name;
    map.draw(session, shown);
    fill(list, readsOf(words, session, reading, shown, READ_FIRST));
  }
  return { root, draw };
}

/** The words that the rules allow in the place of the selected one. */
export function createAlternatives(words, session, glossOf) {
  const title = h("span", { class: "ml-label" });
  const list = h("div", { class: "ml-scroll", tabindex: -1 });
  const root = h("div", { class: "ml-instead scripted" }, title, list);
  let shown = "";

  function draw() {
    const { selected, ids, world, brokenAt } = session;
    const key = `${selected} ${ids.slice(0, selected + 1)} ${session.canUndo}`;
    if (key === shown) return;
    shown = key;
    const word = world.words[ids[selected]];
    const row = selected ? session.after(selected - 1).exact : null;
    const fitting = row ? [...row.keys()].filter((id) => row[id] > 0 && id !== ids[selected]) : [];
    const invitation = session.canUndo ? words.noInstead : ""; // one at a time
    const reason = !selected ? words.beginning : brokenAt !== null && !row ? words.unjudged : invitation;
    title.textContent = fitting.length ? words.instead(word) : reason;
    const chipOf = (id) => {
      const attrs = { type: "button", class: "ml-chip", onClick: () => session.replace(selected, id) };
      return h("button", attrs, wordWithGloss(world.words[id], glossOf(id)));
    };
    fill(list, fitting.map(chipOf));
  }
  return { root, draw };
}
