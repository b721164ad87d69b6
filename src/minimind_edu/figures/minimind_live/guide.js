// Seven presses that show what the model can do, two that break it. What was seen is said from what has happened.

import { h, announcement, prefersReducedMotion } from "../../web/kit/kit.js";
import { missedHead } from "../../web/live/heads.js";
import { descending } from "./session.js";
import { twinOf } from "./marks.js";

const WRITTEN = 12; // words of the last press
const WORD_TIME = 220; // milliseconds
const LONG = 160; // words of a story beyond the training
const CERTAIN = 0.999;

const pause = (time) => new Promise((done) => setTimeout(done, time));

/**
 * What the presses do to a session, each giving the sentence about what was seen. heads: the card's tables.
 * Every press brings about what it needs, so that they can be pressed in any order.
 */
export function createPresses(words, session, stories, sizes, glossOf, heads) {
  const { world } = session;
  const story = (...texts) => [0, ...world.encode(texts.join(" "))];
  const { tongue } = words; // the language of the page, in which its story is told
  const text = stories.told[tongue];
  const asked = story(text, stories.question[tongue]);
  const ownerAt = story(text).at(-2); // the last place of the story
  const missed = missedHead(heads);
  const whereHead = `${missed.layer}.${missed.head}`;
  const named = (id) => words.glossed(words.quoted(world.words[id]), glossOf(id));
  const isStory = (ids) => `${session.ids}` === `${ids}`;
  const goTo = (ids) => (isStory(ids) ? session.select(ids.length - 1) : session.load(ids));

  /** The likeliest word and the right one at the end of the story, with their probabilities. */
  function answerNow() {
    const { model, exact } = session.after(session.ids.length - 1);
    const [id] = descending(model);
    const right = exact ? descending(exact)[0] : null;
    return { id, part: model[id], right, rightPart: right === null ? null : model[right] };
  }

  const verdict = ({ id, right }) => (id === right ? words.saw.right : words.saw.wrong(named(right)));
  /** All heads again, and none below the story. */
  function hear() {
    session.silenceSome([...session.silenced], false);
    session.show(null);
  }

  /** guess: the id that the reader has pressed before, or null. */
  function ask(guess = null) {
    hear();
    goTo(asked);
    const now = answerNow();
    return words.saw.ask(guess === null ? null : named(guess), named(now.id), now.part, verdict(now));
  }

  function other() {
    hear();
    goTo(story(text, stories.question[1 - tongue]));
    const now = answerNow();
    return words.saw.other(named(now.id), now.part, verdict(now));
  }

  function owner() {
    hear();
    goTo(story(text, stories.owner[tongue]));
    const now = answerNow();
    return words.saw.owner(named(now.id), now.part, verdict(now));
  }

  function look() {
    hear();
    goTo(asked);
    session.show(missed);
    const weights = session.traces.at(-1).blocks[missed.layer].weights[missed.head];
    const [at] = descending(weights);
    const read = session.ids[at];
    const { right } = answerNow();
    const isAnswer = read === right || twinOf(session.tables, read) === right;
    return words.saw.look(missed.layer + 1, missed.head + 1, world.words[read], weights[at], isAnswer);
  }

  function silence() {
    hear();
    goTo(asked);
    const before = answerNow();
    session.show(missed);
    session.silenceSome([whereHead], true);
    const now = answerNow();
    const parts = [before.rightPart, now.rightPart];
    const isOwner = now.id === ownerAt;
    return words.saw.silence(named(now.right), ...parts, named(now.id), now.part, now.id === now.right, isOwner);
  }

  function translate() {
    session.silenceSome([whereHead], true);
    session.show(missed);
    goTo(story(text, stories.translation[tongue]));
    const now = answerNow();
    return words.saw.translate(named(now.id), now.part, now.id === now.right);
  }

  async function write() {
    hear();
    goTo(story(text));
    const begun = session.ids.length;
    for (let count = 0; count < WRITTEN; count++) {
      session.next();
      const { ids } = session;
      if (!prefersReducedMotion()) await pause(WORD_TIME);
      if (session.ids !== ids) break; // the reader went on to something else
    }
    const { brokenAt } = session;
    const written = session.ids.length - begun;
    return words.saw.write(written, brokenAt === null ? null : world.words[session.ids[brokenAt]]);
  }

  /** How many words with only one right answer the model knows between two positions: [right, all]. */
  function knownBetween(begin, end) {
    let [right, all] = [0, 0];
    for (let at = begin; at < end - 1; at++) {
      const { model, exact } = session.after(at);
      if (!(exact?.[session.ids[at + 1]] > CERTAIN)) continue;
      all += 1;
      right += descending(model)[0] === session.ids[at + 1];
    }
    return [right, all];
  }

  function long() {
    hear();
    session.load(world.write(Math.random, LONG));
    const { trained } = sizes;
    return words.saw.long(trained, ...knownBetween(0, trained), ...knownBetween(trained, LONG));
  }

  function unknown() {
    hear();
    goTo(story(text, stories.unknown[tongue]));
    const now = answerNow();
    return words.saw.unknown(named(now.id), now.part);
  }

  const guide = { ask, other, owner, look, silence, translate, write };
  const breaks = { long, unknown };
  return { guide, breaks };
}

/** The guide: the press to go on with, all of them as numbers, what was seen. press(name, given): a promise of it. */
export function createGuide(words, parameters, press) {
  const names = Object.keys(words.guide);
  const seen = announcement("ml-seen");
  const big = h("button", { type: "button", class: "mm-button mm-primary ml-go", onClick: () => go(nextStep) });
  const steps = names.map((name, at) => {
    const label = words.guideStep(at + 1, words.guide[name]);
    const attrs = { type: "button", class: "ml-step", "aria-label": label, title: label, onClick: () => go(at) };
    return h("button", { ...attrs, "data-number": at + 1 });
  });
  const root = h(
    "div",
    { class: "ml-guide scripted", role: "group", "aria-label": words.guideLabel },
    h("div", { class: "st-presses" }, big, h("div", { class: "ml-steps" }, steps)),
    seen,
  );
  let nextStep = 0;

  function draw(isOver = false) {
    big.textContent = isOver ? words.guideAgain : words.guideStep(nextStep + 1, words.guide[names[nextStep]]);
    steps.forEach((step, at) => step.setAttribute("aria-current", at === nextStep ? "step" : false));
  }

  async function go(at, given) {
    root.dataset.begun = steps[at].dataset.done = true;
    nextStep = (at + 1) % names.length;
    draw(!nextStep);
    seen.set(await press(names[at], given));
  }
  seen.set(words.guideStart(parameters));
  draw();
  return { root, say: seen.set, go };
}

/** What a head reads, in a room of its own, and two presses that show where the model ends. */
export function createBreaks(words, sizes, lens, press) {
  const seen = announcement("ml-seen");
  const labels = { ...words.breaks, long: words.breaks.long(sizes.trained) };
  const buttons = Object.entries(labels).map(([name, label]) => {
    const onClick = async () => seen.set(await press(name));
    return h("button", { type: "button", class: "mm-button", onClick }, label);
  });
  const root = h("div", { class: "mm-column ml-breaks" }, lens, h("div", { class: "st-presses" }, buttons), seen);
  return { root, say: seen.set };
}
