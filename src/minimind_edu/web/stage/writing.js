// How a text goes on: by the model, by the keys that lead along it, and how a token is drawn.

import { h, button, fmt, row, slider } from "../kit/kit.js";

const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity };

/** Next, play and undo. isFull(): whether no token has room. */
export function createWriteButtons(words, session, isFull, ...more) {
  const next = button({ label: words.next, onClick: () => (session.stop(), session.next()) });
  const play = button({ label: words.play, onClick: () => (session.isPlaying ? session.stop() : session.play()) });
  const undo = button({ label: words.undo, onClick: () => session.undo() });
  const root = h("div", { class: "st-presses" }, next, play, undo, more);
  const draw = () => {
    play.set(session.isPlaying ? words.stop : words.play);
    next.root.disabled = play.root.disabled = isFull();
    undo.root.disabled = !session.canUndo;
  };
  return { root, next, draw };
}

/** The sliders of a draw, folded; mostK: the largest top-k. */
export function createSampling(words, session, title, mostK, ...more) {
  const knob = (name, min, max, step, [off, offText]) => {
    const format = (x) => (x === off ? offText : fmt(x, step === 1 ? 0 : 2));
    const onInput = (value) => session.set({ settings: { ...session.settings, [name]: value } });
    return slider({ label: words[name], min, max, step, value: session.settings[name], format, onInput });
  };
  const knobs = {
    temperature: knob("temperature", 0, 2, 0.05, [0, words.greedy]),
    topK: knob("topK", 0, mostK, 1, [0, words.all]),
    topP: knob("topP", 0.05, 1, 0.05, [1, words.all]),
  };
  /** An address may have set them. */
  const draw = () => Object.entries(knobs).forEach(([name, control]) => control.set(session.settings[name]));
  const root = h("details", { class: "mm-more" }, h("summary", {}, title), row(...Object.values(knobs)), more);
  return { root, draw };
}

/** Keys lead along the tokens of a line, which is one stop of the tab key. chips(): their buttons. */
export function walkAlong(line, session, chips) {
  line.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    session.select(session.selected + step);
    chips()[session.selected].focus();
  });
}
