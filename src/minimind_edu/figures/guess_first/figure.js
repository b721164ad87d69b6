// GuessFirst: the reader guesses, the model answers, and one press takes away the head that knew. The weights come
// with the first guess. What is said is said of what the model has computed, whatever was pressed.

import { createBar } from "../../web/kit/bars.js";
import { h, fill, announcement, grouped, loadLiving, wordsOf, frame, mount } from "../../web/kit/kit.js";
import { missedHead } from "../../web/live/heads.js";
import { createRoad, outlineOf, shine } from "../../web/stage/road.js";
import { answerOf, textOf } from "./math.js";
import { guessFirstWords } from "./words.js";

const LEAST_BAR = 0.0006; // of the track: what is shorter would not be drawn, and could not grow
const LEAST_READ = 0.04; // weight: below it a word has no tint
const NO_SPACE_BEFORE = /^[.,:?。，：？]/u;
const CHINESE = /\p{Script=Han}|[。，：？]/u;

const keyOf = ({ layer, head }) => `${layer}.${head}`;

/** The words of the story and the question, and how much each is read. */
function createTelling(texts) {
  const [story, question] = [h("p", { class: "gf-story" }), h("p", { class: "gf-question" })];
  const slot = h("span", { class: "mm-slot gf-slot" }, "?");
  let [words, drawn] = [[], ""];

  /** Words with the spaces between them. */
  function lineOf(parts) {
    return parts.flatMap((text, i) => {
      const isJoined = !i || NO_SPACE_BEFORE.test(text) || (CHINESE.test(parts[i - 1]) && CHINESE.test(text));
      const word = h("span", { class: "gf-word" }, text);
      words.push(word);
      return isJoined ? [word] : [" ", word];
    });
  }

  function draw(tongue, language, answer, weights, isSilent) {
    if (drawn !== `${tongue}${language}`) {
      drawn = `${tongue}${language}`;
      words = [];
      fill(story, lineOf(texts.story[tongue].flatMap((part) => part.words)));
      fill(question, lineOf(texts.question[language].words), " ", slot);
    }
    fill(slot, h("span", {}, answer ?? "?"));
    slot.dataset.said = answer !== null;
    words.forEach((word, i) => {
      const weight = weights?.[i + 1] ?? 0; // the first is <s>
      word.style.setProperty("--gf-read", weight < LEAST_READ ? "0%" : `${(100 * Math.sqrt(weight)).toFixed(0)}%`);
      word.dataset.silent = isSilent;
    });
  }
  return { root: h("div", { class: "gf-telling" }, story, question), draw };
}

/** The places: answers to guess from, and then bars, the ones before as outlines. */
function createPlaces(words, onGuess) {
  const rows = [0, 1, 2].map((at) => createBar("gf-row st-bar mm-shows", ["mm-said", "mm-before"], () => onGuess(at)));
  const root = h("div", { class: "gf-rows", role: "group", "aria-label": words.rows }, rows);

  function draw(names, glosses, guess, answer, before) {
    root.dataset.asked = answer !== null;
    rows.forEach((row, at) => {
      const [share, ghost] = [answer?.shares[at] ?? null, before?.shares[at] ?? null];
      const [your, guessed] = words.yours;
      const mine = guess === at ? h("span", { class: "gf-yours" }, h("span", {}, your), guessed) : null;
      row.set({
        word: [h("span", {}, names[at]), glosses ? h("small", {}, glosses[at]) : null, mine],
        shares: [[0, Math.max(share ?? 0, LEAST_BAR)], outlineOf(ghost)],
        value: share === null ? "?" : words.percent(share),
        label: share === null ? words.guess(names[at]) : words.bar(names[at], share, ghost, guess === at),
      });
      row.root.disabled = guess !== null;
      row.root.dataset.yours = guess === at;
      row.root.dataset.said = answer?.top.place === at;
    });
  }
  return { root, draw };
}

function renderGuessFirst({ model, el }) {
  const words = wordsOf(guessFirstWords);
  const [texts, sizes] = ["texts", "sizes"].map((name) => model.get(name));
  const { tongue } = words;
  const start = { guess: null, language: tongue, silenced: new Set(), answer: null, before: null };
  let [state, living, telling, looked] = [start, null, 0, null];

  const story = createTelling(texts);
  const places = createPlaces(words, (guess) => go({ guess }));
  const road = createRoad(words, sizes, (place) => touch(place), look);
  const hint = h("p", { class: "gf-hint" });
  const status = announcement("gf-said");
  const big = h("button", { type: "button", class: "mm-button mm-primary gf-go" });
  const more = h("a", { class: "mm-button mm-primary gf-go", href: model.get("page") }, words.open);
  const again = h("button", { type: "button", class: "mm-link", onClick: () => become(start) }, words.again);
  const other = h("button", { type: "button", class: "mm-button" });
  const control = h("div", { class: "gf-presses" }, big, more, other, again);
  let isAsked = false; // for the weights: an answer may still come
  let shown = null; // the head whose reading tints the story

  const isHeld = (head) => head && state.silenced.has(keyOf(head));
  const nameOf = (id) => living.world.words[id];
  /** A word of the model with its meaning, where it is not in the language of the story. */
  function named({ id, place }) {
    return words.named(nameOf(id), state.language !== tongue && place >= 0 ? texts.names[tongue][place] : null);
  }

  /** Something else is asked: the weights come, once, and the model reads. */
  async function go(changes) {
    const mine = ++telling;
    const hadFocus = [places.root, control].some((part) => part.contains(document.activeElement));
    const next = { ...state, ...changes };
    if (!living) {
      state = { ...state, guess: next.guess };
      status.set(words.loading);
      draw();
      isAsked = true;
      living = await loadLiving(model).catch(() => null);
      if (!living) return status.set(words.unavailable);
      if (mine !== telling) return undefined;
    }
    const ids = textOf(texts, tongue, next.language);
    const answer = answerOf(living, ids, texts.places[next.language], next.silenced);
    become({ ...next, answer, before: state.answer });
    more.href = `${model.get("page")}${living.hashOfStory(ids, living.world)}`;
    if (hadFocus) (big.hidden ? more : big).focus({ preventScroll: true }); // what was pressed may be gone
    return undefined;
  }

  function become(next) {
    state = next;
    if (living) shown ??= missedHead(living.heads);
    draw();
    shine(root, Boolean(state.answer));
  }

  function touch(place) {
    const silenced = new Set(state.silenced);
    if (!silenced.delete(keyOf(place))) silenced.add(keyOf(place));
    shown = place;
    go({ silenced });
  }

  function look(place) {
    looked = state.answer ? place : null;
    tell();
  }

  /** Story and hint: what the head that is looked at reads. */
  function tell() {
    const { answer, language } = state;
    const head = looked ?? shown;
    const weights = answer && head ? answer.weights(head) : null;
    const answered = answer ? nameOf(answer.top.id) : null;
    story.draw(tongue, language, answered, weights, isHeld(head));
    const [short, long] = !answer ? words.hintBefore : isHeld(head) ? words.hintSilent : words.hint;
    fill(hint, short, h("span", {}, long));
  }

  function verdict() {
    const { answer, silenced, language, guess } = state;
    const { top } = answer;
    const [name, isRight] = [named(top), top.place === texts.right];
    const silent = [...silenced].map((key) => key.split(".").map((number) => Number(number) + 1));
    if (!silent.length)
      return language === tongue && !state.wasBroken
        ? words.first(name, top.share, guess === top.place)
        : words.whole(name, top.share);
    if (isRight) return words.still(silent, name, top.share);
    const isThatHead = silent.length === 1 && isHeld(missedHead(living.heads));
    const isOwner = top.place === texts.places[0].length - 1;
    if (language !== tongue && isOwner && isThatHead) return words.wrongToo(name, top.share);
    return words.wrong(silent, name, top.share, isOwner, isThatHead);
  }

  /** The press to go on with, and another one: the road is broken, asked in the other language, mended, open. */
  function presses() {
    const { silenced, language } = state;
    const head = missedHead(living.heads);
    const silence = [words.silence, { silenced: new Set([keyOf(head)]), wasBroken: true }];
    const ask = [words.ask[1 - language], { language: 1 - language }];
    const back = [words.back, { silenced: new Set() }];
    if (!silenced.size) {
      if (!state.wasBroken) return [silence, null];
      return [language === tongue ? ask : null, null];
    }
    return language === tongue ? [ask, back] : [back, null];
  }

  function set(button, press) {
    button.hidden = !press;
    if (!press) return;
    button.textContent = press[0];
    button.onclick = () => {
      if (press[1].silenced?.size) shown = missedHead(living.heads);
      go(press[1]);
    };
  }

  function draw() {
    const { guess, answer, before, language, silenced } = state;
    const isRight = answer?.top.place === texts.right;
    const glosses = language === tongue ? null : texts.names[tongue];
    places.draw(texts.names[language], glosses, guess, answer, before);
    const lens = answer?.lens.map(({ id, share }) => [nameOf(id), share]);
    road.draw(lens, silenced, shown);
    tell();
    const [next, aside] = answer ? presses() : [];
    set(big, next);
    set(other, aside);
    more.hidden = !answer || Boolean(next) || !model.get("page");
    again.hidden = more.hidden;
    root.dataset.begun = Boolean(answer);
    if (answer) status.set(verdict(), isRight ? "good" : "bad");
    else if (guess === null) status.set(words.invite(grouped(model.get("sizes").parameters)));
  }

  const inside = h("div", { class: "gf-inside" }, road, hint);
  const stage = h("div", { class: "mm-stage mm-column gf-stage" }, story, inside, places);
  const root = frame(words, { stage, control: [status, control] }, true);
  root.classList.add("gf-fig");
  const parts = [{ release: () => isAsked && model.off("msg:custom") }];
  return mount(el, root, { model, traits: [], draw, boxes: [stage], parts });
}

export default { render: renderGuessFirst };
