// All views of a model on one page, whoever runs it: a worker, or a kernel.

import { h, fill, announcement, setText } from "../web/kit/kit.js";
import { keepPart } from "../web/kit/part.js";
import { colorsOf } from "../web/stage/colors.js";
import { createBars, createWho } from "./bars.js";
import { createBlocks } from "./blocks.js";
import { doorsOf, homeOf } from "./door.js";
import { chipsOf, readBy, weightOfByte } from "./marks.js";
import { createSession } from "./session.js";
import { createTokens, createWriting } from "./text.js";
import { readerOf, shownTokens } from "./tokens.js";
import { createZoom } from "./zoom.js";

// Milliseconds between two drawings while the model writes, for its next token comes first:
const WRITING = 40; // of the text and the bars,
const FOLLOWING = 400; // and of what nobody reads as fast.

/**
 * Fill an element with the views. data: what page.py wrote; runnerOf(hear): who runs the model; keep: { given(),
 * addressOf(session) } for kit.js, what draws pictures and where a state is found, or nowhere; foot: more lines at the
 * end. Gives { session, reader, runner, problem: of the tokenizer, state: what is told at the head, follow(view): draw
 * one more, changed(), paint(): take the colors of now }.
 */
export function createViews(main, data, words, runnerOf, keep, ...foot) {
  const { reader, problem } = readerOf(data, words);
  const chip = chipsOf(reader, () => shownNow());
  const door = doorsOf(words, data);
  let [looked, waiting, colors] = [null, null, null];
  let whole = { at: 0, zoom: null }; // when all was drawn last, and what was open
  const draw = () => {
    waiting = null;
    columns.hidden &&= !session.now; // until there is something
    const { isPlaying, zoom: open } = session;
    const isPart = isPlaying && open === whole.zoom && performance.now() - whole.at < FOLLOWING;
    if (!isPart) whole = { at: performance.now(), zoom: open };
    for (const view of isPart ? [tokens, bars] : views) view.draw();
    main.dataset.busy = String(session.isUnsettled);
  };
  const drawSoon = () => requestAnimationFrame(draw);
  const changed = () => {
    main.dataset.busy = "true";
    waiting ??= session.isPlaying ? setTimeout(drawSoon, WRITING) : drawSoon();
  };
  const runner = runnerOf((message) => session.hear(message));
  const session = createSession({ data, reader, runner }, changed);
  const look = (place) => ((looked = place), changed());
  let shown = { ids: null, all: [], texts: [] };
  function shownNow() {
    if (shown.ids === session.ids) return shown;
    const all = shownTokens(reader, session.ids);
    return (shown = { ids: session.ids, all, texts: all.map(({ text }) => text) });
  }
  const texts = () => shownNow().texts;

  const placeOf = (at) => (at === session.selected ? words.itself : words.back(session.selected - at));
  const reading = {
    count: () => session.told.length,
    texts,
    named: (at) => [chip.at(at), " ", h("small", {}, placeOf(at))],
    isHere: ({ layer }) => Boolean(session.now) && session.sees(layer),
    weightAt: (place, y, x) => weightOfByte(readBy(session.told[y], place)[x]),
    colors: () => colors,
  };

  const state = announcement("in-state");
  const cached = h("span", {});
  const cache = h("p", { class: "mm-note in-cache" }, cached, " ", door("cache"));
  const writing = createWriting(words, session, reader, data, Boolean(data.tokenizer), door);
  const tokens = createTokens(words, session, reader, () => looked, door);
  const blocks = createBlocks(words, session, chip, data, look, door);
  const zoom = createZoom(words, session, chip, data, reading, blocks.rowOf, door);
  const bars = createBars(words, session, chip, data, reader, door);
  const who = createWho(words, session, chip, data.config.use_moe, door);
  const telling = {
    draw() {
      if (session.failure) state.set(words.failed(session.failure), "bad");
      setText(cached, words.cache(data.config, session.ids.length));
    },
  };
  const facts = words.facts(data).map((fact) => h("span", {}, fact));
  const columns = h("div", { class: "in-columns", hidden: true }, h("div", { class: "in-left" }, bars, who), blocks);
  fill(
    main,
    h(
      "header",
      { class: "in-top" },
      h("div", { class: "in-bar-top" }, homeOf(words, data.links)),
      h("h1", {}, words.title, h("em", {}, data.name)),
      h("p", { class: "in-facts" }, facts),
      h("p", { class: "in-private" }, data.isKernel ? words.privateKernel : words.private),
      h(
        "ol",
        { class: "in-steps" },
        words.steps(Boolean(data.tokenizer)).map((step) => h("li", {}, step)),
      ),
      state,
    ),
    h("section", { class: "in-write" }, writing, tokens),
    columns,
    h("footer", { class: "in-foot" }, cache, foot, data.links && h("p", {}, words.madeWith, " ", door("inside"))),
  );
  const kept = { text: tokens, next: bars, who, heads: blocks, part: zoom };
  const address = keep.addressOf && (() => keep.addressOf(session));
  for (const [name, { root }] of Object.entries(kept)) keepPart(root, `inside-${name}`, keep.given, address);
  const views = [writing, tokens, bars, who, blocks, zoom, telling];
  const paint = () => {
    colors = colorsOf(main);
    blocks.paintWith(colors);
  };
  const printed = () => blocks.drawAll();
  addEventListener("resize", changed);
  addEventListener("beforeprint", printed);
  const release = () => {
    removeEventListener("resize", changed);
    removeEventListener("beforeprint", printed);
  };
  const follow = (view) => views.push(view);
  return { session, reader, runner, problem, state, follow, paint, release };
}
