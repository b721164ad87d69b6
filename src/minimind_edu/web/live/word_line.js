// The words of a story as a row of buttons.

import { h, fill, setAttributes, clamp, wordsOf } from "../kit/kit.js";
import { liveSourceWords } from "./source_words.js";

/**
 * The words of a story as a row of buttons: one tab stop, arrow keys inside. onChoose(at) hears which was pressed.
 * draw(tokens, at, looksOf): looksOf(place) gives { tone: of the word's frame, fill: tone of its ground, part: its
 * share of the ground in percent, note: a number below the word, spoken: what a screen reader says }, all as needed.
 */
export function createWordLine(onChoose) {
  const words = wordsOf(liveSourceWords);
  const root = h("div", { class: "mm-words", role: "group", "aria-label": words.words });
  let [buttons, shown] = [[], ""];

  function step(event, at) {
    const way = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    const next = clamp(at + way, 0, buttons.length - 1);
    buttons[next].focus();
    onChoose(next);
  }

  function createWord(token, at) {
    const listeners = { onClick: () => onChoose(at), onKeydown: (event) => step(event, at) };
    return h("button", { type: "button", class: "mm-word", ...listeners }, token, h("small", {}));
  }

  function draw(tokens, at, looksOf) {
    if (tokens.join() !== shown) fill(root, (buttons = tokens.map(createWord)));
    shown = tokens.join();
    // a long story scrolls within its box: the chosen word stays in sight
    root.scrollTop = buttons[at].offsetTop - root.offsetTop - root.clientHeight / 2;
    buttons.forEach((button, place) => {
      const { tone = "", fill = "soft", part = 0, note = "", spoken = "" } = looksOf(place);
      button.tabIndex = place === at ? 0 : -1;
      button.dataset.tone = tone;
      button.style.setProperty("--mm-ground", `var(--mm-${fill})`);
      button.style.setProperty("--mm-part", `${part.toFixed(0)}%`);
      button.lastChild.textContent = note;
      setAttributes(button, {
        "aria-pressed": place === at,
        "aria-label": `${tokens[place]} ${spoken || note}`.trim(),
      });
    });
  }
  return { root, draw };
}
