// What the rounded model answers and writes: its words to twelve questions, the next word of one text before and after,
// and a story up to its first word that cannot be.

import { createBar } from "../../web/kit/bars.js";
import { button, h, fill, setAttributes, clamp } from "../../web/kit/kit.js";

/** Chinese words take twice the room. */
const lengthOf = (text) => text.length + (text.match(/[\u3000-\u9fff\uff00-\uffef]/g) ?? []).length;

/** Where the longest end of a text begins, at a space, that has this room. */
function startFor(text, room) {
  let from = text.length;
  while (from > 0 && lengthOf(text.slice(from - 1)) <= room) from--;
  return Math.max(0, text.indexOf(" ", from));
}

/** The answers to all questions. onChoose(at) hears which was pressed; without it they are no buttons. */
export function createAnswers(words, onChoose) {
  const list = h("div", { class: "qg-list", role: "group", "aria-label": words.answers });
  const root = h("div", { class: "qg-answers" }, h("p", { class: "mm-label" }, words.answers), list);
  let answers = [];

  function go(event, at) {
    const way = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    const next = clamp(at + way, 0, answers.length - 1);
    answers[next].focus();
    onChoose(next);
  }

  function createAnswer(_, at) {
    if (!onChoose) return h("span", { class: "qg-answer", role: "img" });
    const listeners = { onClick: () => onChoose(at), onKeydown: (event) => go(event, at) };
    return h("button", { type: "button", class: "qg-answer", ...listeners });
  }

  /** answered: the word to each question; chosen: the place of the one that is shown, or null. */
  function draw(questions, answered, chosen) {
    if (!answers.length) fill(list, (answers = questions.map(createAnswer)));
    answers.forEach((place, at) => {
      const { text, answer } = questions[at];
      const isRight = answered[at] === answer;
      place.textContent = answered[at];
      place.dataset.right = isRight;
      const asked = text.slice(text.lastIndexOf(". ") + 1).trim();
      setAttributes(place, { "aria-label": words.asked(asked, words.answer(answered[at], answer)), title: asked });
      if (!onChoose) return;
      place.tabIndex = at === (chosen ?? 0) ? 0 : -1;
      setAttributes(place, { "aria-pressed": at === chosen });
    });
  }
  return { root, draw };
}

/** The end of a text, with a place for its next word, and bars for this word: outlines before, filled after. */
export function createNextWord(words) {
  const text = h("p", { class: "qg-text" });
  const list = h("div", { class: "qg-bars", "data-sym": "logits" });
  const root = h("div", { class: "qg-next" }, text, list);

  function drawText(whole, room) {
    const from = lengthOf(whole) > room ? startFor(whole, room) : 0;
    fill(text, from ? `…${whole.slice(from)}` : whole, " ", h("span", { class: "mm-slot" }));
  }

  function barOf({ word, before, after, isAnswer = false }) {
    const bar = createBar("qg-bar", ["mm-before", "mm-after"]);
    const [first, second] = [words.percent(before), words.percent(after)];
    const shares = [
      [0, before],
      [0, after],
    ];
    const value = first === second ? first : words.change(first, second);
    bar.set({ word, shares, value, label: words.bar(word, first, second) });
    bar.root.dataset.answer = isAnswer;
    return bar;
  }

  /** rows: [{ word, before, after, isAnswer }]; what they leave belongs to all other words. */
  function draw(whole, rows, room) {
    drawText(whole, room);
    const left = (name) => Math.max(0, 1 - rows.reduce((sum, row) => sum + row[name], 0));
    fill(list, rows.map(barOf), barOf({ word: words.others, before: left("before"), after: left("after") }));
  }
  return { root, draw };
}

/** A story that the model goes on with; its first impossible word is marked, and what follows it is pale. onAnother
 * hears that another one is asked for; without it there is none. */
export function createStory(words, onAnother) {
  const text = h("p", { class: "qg-story" });
  const another = onAnother && button({ label: words.another, onClick: onAnother });
  const root = h("div", { class: "qg-told" }, h("p", { class: "mm-label" }, words.writes, another), text);

  function impossible(word) {
    const label = words.impossible(word);
    return h("mark", { class: "qg-wrong", title: label, "aria-label": label }, word);
  }

  /** wrong: the index of the first impossible word, or null. */
  function draw({ beginning, words: story, wrong }) {
    const part = (name, from, to) => h("span", { class: `qg-${name}` }, joined(story.slice(from, to)));
    const held = [h("span", { class: "qg-begun" }, joined(beginning)), " ", part("held", 0, wrong ?? story.length)];
    fill(text, held, wrong === null ? [] : [" ", impossible(story[wrong]), " ", part("after", wrong + 1)]);
  }
  return { root, draw };
}

/** Words as a text: no space before a mark, nor between Chinese ones. */
const joined = (words) =>
  words
    .join(" ")
    .replace(/ (?=[.?:,])/g, "")
    .replace(/(?<=[^\x00-\x7f⇒]) (?=[^\x00-\x7f⇒])/g, "");
