// The page of two models: they run in a worker, read one text, and write their answers side by side.

import { h, announcement, fill, wordsOf } from "../../web/kit/kit.js";
import { keepPart } from "../../web/kit/part.js";
import { colorsOf } from "../../web/stage/colors.js";
import { doorsOf, homeOf } from "../door.js";
import { followAddress, hereAs } from "../following.js";
import { keepOfPage } from "../kept.js";
import { chipsOf } from "../marks.js";
import { bytesIn, weightsInPage } from "../opening.js";
import { createRunner } from "../runner.js";
import { checked, textFor } from "../start.js";
import { createTheme } from "../theme.js";
import { readerOf } from "../tokens.js";
import { insideWords } from "../words.js";
import { addressOf, readAddress } from "./address.js";
import { createPair } from "./session.js";
import { badge, createAnswers, createApart, createAsking, createNext, createReading } from "./views.js";
import { besideWords } from "./words.js";

/** Who the two are. */
function headerOf(words, data) {
  const lines = data.models.map((model, which) =>
    h(
      "div",
      { class: "bs-model" },
      badge(which),
      h("strong", {}, model.name),
      h(
        "span",
        { class: "in-facts" },
        words.facts({ ...model, tokenizer: data.tokenizer }).map((fact) => h("span", {}, fact)),
      ),
    ),
  );
  return [h("h1", {}, words.title), h("div", { class: "bs-models" }, lines)];
}

async function startPage() {
  const main = document.querySelector("main");
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = { ...wordsOf(insideWords), ...wordsOf(besideWords) };
  const { reader, problem } = readerOf(data, words);
  const door = doorsOf(words, data);
  const chip = chipsOf(reader, () => ({ all: [] }));
  let [colors, isWaiting] = [null, false];
  const draw = () => {
    isWaiting = false;
    columns.hidden = !session.now;
    for (const view of views) view.draw();
    main.dataset.busy = String(session.isBusy || session.isTyping);
  };
  const changed = () => {
    main.dataset.busy = "true";
    if (!isWaiting) requestAnimationFrame(draw);
    isWaiting = true;
  };
  const runner = createRunner(document.getElementById("worker").textContent, (message) => session.hear(message));
  const session = createPair({ data, reader, runner }, changed);

  const state = announcement("in-state");
  const checks = data.models.map(() => announcement("in-check"));
  const telling = { draw: () => session.failure && state.set(words.failed(session.failure), "bad") };
  const reading = createReading(words, session, reader, () => colors);
  const asking = createAsking(words, session, data, door);
  const answers = createAnswers(words, session, data, reader, door);
  const next = createNext(words, session, chip);
  const apart = createApart(words, session, data, chip, reading, door);
  const address = () => addressOf(session, data);
  const isSettled = () => !session.isBusy && !session.isTyping;
  const followed = followAddress(session, address, (hash) => readAddress(hash, data), isSettled);
  const kept = { text: answers, next, apart };
  const here = () => hereAs(address());
  for (const [name, { root }] of Object.entries(kept)) keepPart(root, `beside-${name}`, keepOfPage, here);
  const views = [asking, answers, next, apart, telling, followed];
  const columns = h("div", { class: "in-columns", hidden: true }, h("div", { class: "in-left" }, next), apart);
  const write = h("section", { class: "in-write" }, asking, answers);
  const feet = data.models.map((model, which) => [
    h("div", { class: "bs-checked" }, badge(which), checks[which]),
    model.bits < 32 && h("p", {}, words.rounding(model.bits, model.check), " ", door("rounding")),
    model.assumed && h("p", {}, words.assumed(model.assumed)),
  ]);
  fill(
    main,
    h(
      "header",
      { class: "in-top" },
      h("div", { class: "in-bar-top" }, homeOf(words, data.links)),
      headerOf(words, data),
      h("p", { class: "in-private" }, words.privateBoth),
      state,
    ),
    write,
    columns,
    h(
      "footer",
      { class: "in-foot" },
      data.note && h("p", {}, words.notes[data.note[0]](...data.note.slice(1))),
      feet,
      data.links && h("p", {}, words.madeWith, " ", door("inside")),
    ),
  );
  const theme = createTheme(words, () => ((colors = colorsOf(main)), changed()));
  main.querySelector(".in-bar-top").append(theme.root);
  theme.show();
  addEventListener("resize", changed);
  write.inert = true; // nobody would answer

  try {
    if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
    const sizes = data.models.map(({ bytes }) => bytes);
    const buffers = await weightsInPage(sizes, (part) => state.set(words.opening(part)));
    const ropes = data.models.map(({ rope }) => rope);
    const why = await runner.open(buffers, ropes, bytesIn(document.getElementById("step")).buffer);
    write.inert = false;
    state.set(problem);
    followed.start(problem ? data.models[0].check.ids.join(" ") : textFor(data, reader));
    for (const [which, model] of data.models.entries()) {
      const asked = { look: (what, place) => runner.look(what, { ...place, which }) };
      const about = { ...data, ...model };
      checks[which].set(await checked(words, about, reader, !problem, asked, why));
    }
  } catch (error) {
    state.set(words.failed(error.message), "bad");
  }
}

export default startPage;
