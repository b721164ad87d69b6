// All heads of all blocks as small maps, what each block would say, and how far each part pushes the target.

import { h, fill, button, announcement } from "../web/kit/kit.js";
import { createHead } from "../web/stage/heads.js";
import { isSamePart } from "../web/stage/parts.js";
import { createPush, readBy } from "./marks.js";
import { silentParts } from "./session.js";

const EDGE = 96; // points of a small map
const BETWEEN = 400; // milliseconds between two drawings of a map while a text is read
const RESTED = 600; // milliseconds after the last change until maps out of sight are drawn
const LEAST_BYTE = 10; // of a byte: below, a weight is not drawn
const NEEDED = 3; // heads that are named after a trial, at most
const LEAST_LOSS = 0.05; // of ln p: without a head that is needed it falls by more

/** The map of a head: a point for each pair of tokens, the strongest of a square where there are too many. */
function paint(canvas, positions, place, [red, green, blue]) {
  const count = positions.length;
  const size = Math.max(1, Math.min(count, EDGE));
  const columns = Uint8Array.from({ length: count }, (_, x) => Math.floor((x * size) / count));
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const context = canvas.getContext("2d", { willReadFrequently: true }); // or each would be a layer of its own
  const image = context.createImageData(size, size);
  const points = new Uint32Array(image.data.buffer); // a point at once, its lowest byte first, as all browsers have it
  const color = (blue << 16) | (green << 8) | red;
  for (let y = 0; y < count; y++) {
    const [bytes, row] = [readBy(positions[y], place), columns[y] * size];
    for (let x = 0; x < bytes.length; x++) {
      const at = row + columns[x];
      if (bytes[x] >= LEAST_BYTE && bytes[x] > points[at] >>> 24) points[at] = (bytes[x] << 24) | color;
    }
  }
  context.putImageData(image, 0, 0);
}

function createSquare(words, session, place, look) {
  const { layer, head } = place;
  const canvas = h("canvas", { width: 1, height: 1 });
  const [push, need] = [createPush(), createPush("in-push in-need")];
  const { root, draw } = createHead(session, words.headButton(layer + 1, head + 1), place, look, canvas, push, need);
  let [isSeen, painted] = [false, { last: null, count: 0, rgb: null, at: 0 }];

  /** Paint the map if it is in sight and there is more to show than last time. */
  function drawMap(rgb, isWanted = isSeen) {
    const { told: positions } = session;
    const isSame = painted.last === positions.at(-1) && painted.count === positions.length && painted.rgb === rgb;
    const isEarly = (session.isBusy || session.isPlaying) && performance.now() - painted.at < BETWEEN;
    if (!isWanted || isSame || isEarly || !session.sees(layer)) return;
    painted = { last: positions.at(-1), count: positions.length, rgb, at: performance.now() };
    paint(canvas, positions, place, rgb);
  }
  const see = (isIn) => (isSeen = isIn);
  return { root, push, need, draw, drawMap, see };
}

/** look(place or null): the head that the mouse or the focus is on. */
export function createBlocks(words, session, chip, data, look, door) {
  const { num_hidden_layers: L, num_attention_heads: H, use_moe: isMixture } = data.config;
  const title = h("h2", {});
  const target = h("span", {});
  const note = h("p", { class: "mm-note" }, words.maps, target, words.mapsEnd, " ", door("heads"));
  const onTry = () => (trialNow()?.isGoing ? session.stopTrying() : session.tryAll());
  const tryAll = button({ label: words.tryAll, onClick: onTry });
  const tried = h("p", { class: "mm-note in-tried", "aria-live": "polite" });
  const nameOf = { head: words.head, feed: (layer) => words.feed(layer, isMixture), block: words.block };
  const silent = h("p", { class: "in-silent", "aria-live": "polite" });

  const blocks = Array.from({ length: L }, (_, layer) => {
    const heads = Array.from({ length: H }, (_, head) => createSquare(words, session, { layer, head }, look));
    const push = createPush();
    const opens = (part) => ({ type: "button", onClick: () => session.toggle({ part, layer }) });
    const name = h("button", { ...opens("block"), class: "in-name" }, words.block(layer + 1));
    const label = h("span", {}, isMixture ? words.expertsName : words.feedName);
    const feed = h("button", { ...opens("feed"), class: "in-feed" }, label, push);
    const says = h("span", { class: "in-says" });
    const root = h(
      "div",
      { class: "in-block", role: "group", "aria-label": words.block(layer + 1) },
      name,
      h("div", { class: "in-heads" }, heads),
      h("div", { class: "in-side" }, feed, h("span", { class: "mm-label" }, words.says), says),
    );
    root.querySelector(".in-heads").style.setProperty("--in-count", Math.min(H, 8));
    return { root, name, heads, feed, push, says };
  });
  const every = blocks.flatMap(({ heads }) => heads);
  const root = h(
    "section",
    { class: "in-blocks" },
    title,
    note,
    silent,
    h("div", { class: "st-presses" }, tryAll, tried),
    blocks.map((block) => block.root),
  );
  let colors = null;
  const see = (entries) => {
    for (const { target: seen, isIntersecting } of entries)
      every.find((head) => head.root === seen).see(isIntersecting);
    drawMaps();
  };
  const observer = new IntersectionObserver(see, { rootMargin: "200px" });
  every.forEach((head) => observer.observe(head.root));
  const drawMaps = () => colors && session.told.length && every.forEach((head) => head.drawMap(colors.rgb));

  function drawSaying() {
    session.look("lens", { at: session.selected }, (lens) =>
      blocks.forEach(({ says }, layer) => {
        const [[id, p]] = lens[layer];
        fill(says, chip(id), h("b", {}, words.percent(p)));
        says.style.setProperty("--in-sure", `${(100 * p).toFixed(0)}%`);
      }),
    );
  }

  function drawPushes() {
    const place = { at: session.selected, token: session.targetNow, against: session.againstNow };
    session.look("wrote", place, ({ blocks: written }) => {
      // Heads have a scale of their own: often one feed-forward part pushes more than all of them.
      const mostOf = (values) => Math.max(1e-6, ...values.map(Math.abs));
      const ofHeads = mostOf(written.flatMap(({ heads }) => heads));
      const ofFeeds = mostOf(written.map(({ feed }) => feed));
      written.forEach(({ heads, feed }, layer) => {
        heads.forEach((value, head) => blocks[layer].heads[head].push.draw(value, ofHeads));
        blocks[layer].push.draw(feed, ofFeeds);
      });
    });
  }

  /** The trial of this token at this position, or null. */
  function trialNow() {
    const { trial, now, selected, targetNow } = session;
    return trial && now && trial.at === selected && trial.token === targetNow ? trial : null;
  }

  let drawnTrial = []; // the trial, and what had come of it
  /** How much ln p falls without each head, and the heads that it falls most without. */
  function drawTrial() {
    const trial = trialNow();
    root.dataset.tried = Boolean(trial);
    tryAll.root.disabled = session.isBusy;
    const isOf = [trial, trial?.found.length, trial?.isGoing];
    if (isOf.every((value, i) => value === drawnTrial[i])) return;
    drawnTrial = isOf;
    tryAll.set(trial?.isGoing ? words.stopTrying : words.tryAll);
    if (!trial) return fill(tried);
    const all = Math.log(session.now.top.find(([id]) => id === trial.token)[1]);
    const losses = new Map(trial.found.map(({ layer, head, without }) => [blocks[layer].heads[head], all - without]));
    const most = Math.max(0.7, ...[...losses.values()].map(Math.abs));
    every.forEach((head) => head.need.draw(losses.get(head) ?? 0, most));
    const count = L * H - [...session.silenced].filter((key) => !key.endsWith("feed")).length;
    if (trial.found.length < count) return fill(tried, words.trying(trial.found.length, count, trial.isGoing));
    const needed = trial.found.filter(({ without }) => all - without > LEAST_LOSS);
    const worst = needed.sort((a, b) => a.without - b.without).slice(0, NEEDED);
    if (!worst.length) return fill(tried, words.triedNone, words.needBars);
    const [before, between, end] = words.tried;
    const named = worst.map(({ layer, head, without }, i) => {
      const onClick = () => session.toggle({ part: "head", layer, head });
      const link = h("button", { type: "button", class: "mm-link", onClick }, words.head(layer + 1, head + 1));
      return [i ? between : "", link, words.without(Math.exp(all), Math.exp(without))];
    });
    return fill(tried, before, named, end, words.needBars);
  }

  function drawSilent() {
    const parts = silentParts(session.silenced, data.config);
    const names = parts.slice(0, 4).map(({ part, layer, head }) => nameOf[part](layer + 1, head + 1));
    const onClick = () => session.silenceSome([...session.silenced], false);
    const back = h("button", { type: "button", class: "mm-link", onClick }, words.bringBack);
    const sentence = words.silent(names, parts.length - names.length);
    if (silent.dataset.said === sentence) return;
    silent.dataset.said = sentence;
    silent.hidden = !parts.length;
    fill(silent, parts.length ? [sentence, back] : null);
  }

  let [shown, waiting] = [null, null];
  function draw() {
    const id = session.ids[session.selected];
    const heading = `${session.selected} ${id} ${session.targetNow}`;
    if (heading !== shown && id !== undefined) {
      shown = heading;
      fill(title, words.inside, chip.at(session.selected));
      fill(target, session.targetNow === null ? "" : chip(session.targetNow));
    }
    drawMaps();
    clearTimeout(waiting);
    waiting = setTimeout(() => session.isUnsettled || session.isPlaying || drawAll(), RESTED);
    every.forEach((head) => head.draw());
    blocks.forEach(({ name, feed }, layer) => {
      name.setAttribute("aria-expanded", isSamePart(session.zoom, { part: "block", layer }));
      feed.setAttribute("aria-expanded", isSamePart(session.zoom, { part: "feed", layer }));
      feed.dataset.silent = session.silenced.has(`${layer}.feed`);
    });
    drawSilent();
    drawTrial();
    if (!session.now || session.isPlaying) return; // while it writes, the time is the next token's
    drawSaying();
    drawPushes();
  }
  const paintWith = (found) => ((colors = found), draw());
  const rowOf = ({ layer }) => blocks[layer].root;
  /** Those out of sight, too: who prints the page, or keeps a picture, sees all of it. */
  const drawAll = () => colors && session.told.length && every.forEach((head) => head.drawMap(colors.rgb, true));
  root.addEventListener("mm-picture", drawAll);
  return { root, draw, drawAll, paintWith, rowOf };
}
