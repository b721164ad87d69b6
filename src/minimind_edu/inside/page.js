// The page of a reader's own model: a text, what comes next, and all parts of the model at any token. The model runs in
// a worker; what it is asked and what it answers is all that the page knows of it.

import { h, announcement, wordsOf } from "../web/kit/kit.js";
import { leadTo } from "../web/stage/opened.js";
import { addressOf, readAddress } from "./address.js";
import { doorsOf } from "./door.js";
import { followAddress, hereAs } from "./following.js";
import { keepOfPage } from "./kept.js";
import { bytesIn, weightsInPage } from "./opening.js";
import { createRunner } from "./runner.js";
import { checked, textFor } from "./start.js";
import { createTheme } from "./theme.js";
import { createViews } from "./views.js";
import { insideWords } from "./words.js";

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
  const keep = { given: keepOfPage, addressOf: (session) => hereAs(addressOf(session)) };
  const views = createViews(main, data, words, runnerOf, keep, check, assumed, rounding, address);
  const { session, reader, runner, problem, state } = views;
  const isSettled = () => !session.isUnsettled && !session.isPlaying;
  const followed = followAddress(
    session,
    () => addressOf(session),
    (hash) => readAddress(hash, data),
    isSettled,
  );
  views.follow(followed);
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
