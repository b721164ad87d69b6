// The page of a reader's own model: a text, what comes next, and all parts of the model at any token. The model runs in
// a worker; what it is asked and what it answers is all that the page knows of it.

import { h, announcement, keeperOf, wordsOf } from "../web/kit/kit.js";
import { leadTo } from "../web/stage/opened.js";
import { addressOf, readAddress } from "./address.js";
import { doorsOf } from "./door.js";
import { bytesIn, weightsInPage } from "./opening.js";
import { createRunner } from "./runner.js";
import { checked, textFor } from "./start.js";
import { createTheme } from "./theme.js";
import { createViews } from "./views.js";
import { insideWords } from "./words.js";

const ADDRESSED = 500; // milliseconds after a change until the address tells it: browsers allow few changes

/**
 * Let the address tell what is chosen, and choose what it tells. start(text) begins with what it tells, or else with a
 * text, and gives whether it told something; draw() is called after each drawing.
 */
function followAddress(session, data) {
  let [timer, written] = [0, ""];
  const write = () => {
    const address = session.isUnsettled || session.isPlaying ? written : addressOf(session);
    if (address === written) return;
    written = address;
    try {
      history.replaceState(null, "", `#${address}`);
    } catch {
      // a browser that lets no file change its address
    }
  };
  const read = () => {
    const found = readAddress(location.hash.slice(1), data);
    if (found) session.restore(found);
    return Boolean(found);
  };
  const start = (text) => {
    const isTold = read();
    if (!isTold) session.type(text);
    written = addressOf(session);
    addEventListener("hashchange", read);
    return isTold;
  };
  const draw = () => {
    clearTimeout(timer);
    if (written) timer = setTimeout(write, ADDRESSED);
  };
  return { start, draw };
}

/** Of page.py's PARTS: what is opened, or where it stands. */
const AIMS = {
  attention: { part: "head", layer: 0, head: 0 },
  cache: ".in-cache",
  "feed-forward": { part: "feed", layer: 0 },
  experts: { part: "feed", layer: 0 },
  block: { part: "block", layer: 0 },
  generation: ".in-write details",
};

/** A view that leads to one of AIMS once, when what stands above it is there. */
function createLead(main, session, part) {
  const named = typeof AIMS[part] === "string" ? main.querySelector(AIMS[part]) : AIMS[part];
  let isLed = false;
  function draw() {
    if (isLed || session.isUnsettled || !session.now) return;
    isLed = true;
    leadTo(session, named);
  }
  return { draw };
}

async function startPage() {
  const main = document.querySelector("main");
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = wordsOf(insideWords);
  const check = announcement("in-check");
  const rounded = data.bits < 32 && [words.rounding(data.bits, data.check), " ", doorsOf(words, data)("rounding")];
  const rounding = h("p", {}, rounded || null);
  const runnerOf = (hear) => createRunner(document.getElementById("worker").textContent, hear);
  const assumed = data.assumed && h("p", {}, words.assumed(data.assumed));
  const address = h("p", {}, location.hostname === "127.0.0.1" ? words.addressServed : words.address);
  const views = createViews(main, data, words, runnerOf, check, assumed, rounding, address);
  const { session, reader, runner, problem, state } = views;
  const followed = followAddress(session, data);
  views.follow(followed);
  const here = () => new URL(`#${addressOf(session)}`, location.href).href;
  views.opened.append(keeperOf(async () => window.minimindFigures.keep(), views.opened, here));
  const theme = createTheme(words, views.paint);
  main.querySelector(".in-bar-top").append(theme.root);
  theme.show();
  const field = main.querySelector(".in-write");
  field.inert = true; // nobody would answer

  try {
    if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
    const [buffer] = await weightsInPage([data.bytes], (part) => state.set(words.opening(part)));
    const why = await runner.open(buffer, data.rope, bytesIn(document.getElementById("step")).buffer);
    field.inert = false;
    state.set(problem);
    check.set(words.checking);
    const isTold = followed.start(problem ? data.check.ids.join(" ") : textFor(data, reader));
    if (data.at && !isTold) views.follow(createLead(main, session, data.at));
    check.set(await checked(words, data, reader, !problem, runner, why));
  } catch (error) {
    state.set(words.failed(error.message), "bad");
    check.set(words.unchecked);
  }
}

export default startPage;
