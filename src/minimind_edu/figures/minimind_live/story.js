// The story: its words as chips, what a head reads of them, and what could stand instead of a word.

import { h, fill } from "../../web/kit/kit.js";
import { readsOf } from "../../web/stage/heads.js";
import { walkAlong } from "../../web/stage/writing.js";
import { wordWithGloss } from "./marks.js";

const LEAST_TINT = 0.04; // weight: below it a word has no tint
const READ_FIRST = 4; // words of the head beside the bars

/** glossOf(id) -> text or nothing. */
export function createStory(words, session, glossOf) {
  const line = h("div", { class: "ml-chips", role: "group", "aria-label": words.story });
  const root = h("div", { class: "ml-story" }, line);
  let [chips, drawn, tinted] = [[], null, []];

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
  }

  function select() {
    chips.forEach((chip, at) => {
      chip.setAttribute("aria-current", at === session.selected);
      chip.tabIndex = at === session.selected ? 0 : -1;
    });
  }

  /** The weights [T] of a head, or null: a tint for each word that is read. */
  function tint(weights) {
    tinted.forEach((chip) => chip.style.removeProperty("--ml-read"));
    const read = weights ? [...weights.keys()].filter((at) => weights[at] >= LEAST_TINT) : [];
    tinted = read.map((at) => chips[at]);
    tinted.forEach((chip, i) => chip.style.setProperty("--ml-read", `${100 * weights[read[i]]}%`));
  }

  function draw() {
    if (drawn?.ids !== session.ids || drawn.written !== session.written) build();
    select();
  }
  return { root, draw, tint };
}

/** The head that was pressed last, or shown by a press of the guide: what it reads most, the way to all of it. */
export function createLens(words, session, reading) {
  const [title, list] = [h("p", { class: "ml-title" }), h("ol", { class: "st-list" })];
  const onClick = () => session.toggle({ part: "head", ...session.shown });
  const open = h("button", { type: "button", class: "mm-link", onClick }, words.openBelow);
  const lens = [h("div", {}, title, open), list];
  const hint = h("p", { class: "ml-hint" }, words.noHead);
  const root = h("div", { class: "ml-lens" }, hint, lens);

  function draw() {
    const { shown, now } = session;
    hint.hidden = Boolean(shown && now);
    lens.forEach((line) => (line.hidden = !hint.hidden));
    if (!hint.hidden) return;
    const { layer, head } = shown;
    const isSilent = session.silenced.has(`${layer}.${head}`);
    const name = words.headTitle(layer + 1, head + 1);
    root.dataset.silent = isSilent;
    title.textContent = isSilent ? words.silent(name) : name;
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
