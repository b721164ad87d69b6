// Play, back and step of a figure whose idea is a process. Nothing moves before a reader presses.

import { h, button } from "./kit.js";

/**
 * A row of buttons: play, back and step, and a way to the beginning where the words name one (`reset`); compact, play
 * and step. go(direction) makes a step, 1 or -1, and -Infinity goes to the beginning; the figure then tells by
 * set(place, last) where it is. Played to the end it stops; pressed there, it shows the beginning for a beat.
 *
 * A button that has nothing left to do is disabled, and the focus moves to play.
 */
/**
 * @type {(words: Record<string, any>, go: (direction: number) => void,
 *   options: { beat: number, isCompact?: boolean }) =>
 *   { root: any, set: (place: number, last: number) => void, pause: () => void, release: () => void }}
 */
export function createTransport(words, go, { beat, isCompact = false }) {
  let timer = null;
  let isAtEnd = false;
  const pause = () => {
    clearInterval(timer);
    timer = null;
    play.set(words.play);
  };
  const advance = () => {
    go(1);
    if (isAtEnd) pause();
  };
  const press = () => {
    if (timer !== null) return pause();
    play.set(words.pause);
    timer = setInterval(advance, beat); // milliseconds
    if (isAtEnd) go(-Infinity);
    else advance();
  };
  const byHand = (label, direction) => button({ label, onClick: () => (pause(), go(direction)) });
  const play = button({ label: words.play, onClick: press });
  const [back, step] = [byHand(words.back, -1), byHand(words.step, 1)];
  const reset = words.reset ? byHand(words.reset, -Infinity) : null;
  play.root.classList.add("mm-primary", "mm-play");

  function set(place, last) {
    isAtEnd = place === last;
    const useful = new Map([
      [back, place > 0],
      [step, !isAtEnd],
      [reset, place > 0],
    ]);
    for (const [control, isUseful] of useful) {
      if (!control) continue;
      const hasFocus = control.root === control.root.getRootNode().activeElement;
      control.root.disabled = !isUseful;
      if (hasFocus && !isUseful) play.root.focus({ preventScroll: true });
    }
  }
  const shown = isCompact ? [play, step] : [play, back, step, reset];
  return { root: h("div", { class: "mm-transport" }, shown), set, pause, release: () => clearInterval(timer) };
}
