// All heads of all blocks as small maps, what each block would say, and how far each part pushes the target.

import { h, fill, button, announcement } from "../kit/kit.js";
import { createPush, readBy } from "./marks.js";
import { silentParts } from "./session.js";

const EDGE = 96; // points of a small map
const BETWEEN = 400; // milliseconds between two drawings of a map while a text is read
const LEAST_BYTE = 10; // of a byte: below, a weight is not drawn
const NEEDED = 3; // heads that are named after a trial

/** The map of a head: a point for each pair of tokens, the strongest of a square where there are too many. */
function paint(canvas, told, place, [red, green, blue]) {
  const count = told.length;
  const size = Math.max(1, Math.min(count, EDGE));
  const by = count / size;
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  told.forEach((one, y) => {
    const to = Math.floor(y / by) * size;
    readBy(one, place).forEach((byte, x) => {
      const at = 4 * (to + Math.floor(x / by));
      if (byte < LEAST_BYTE || byte <= image.data[at + 3]) return;
      image.data.set([red, green, blue, byte], at);
    });
  });
  context.putImageData(image, 0, 0);
}

function createHead(words, session, layer, head, look) {
  const canvas = h("canvas", { width: 1, height: 1 });
  const [push, need] = [createPush(), createPush("in-push in-need")];
  const place = { layer, head };
  const attrs = {
    type: "button",
    class: "in-head",
    "aria-label": words.headButton(layer + 1, head + 1),
    onClick: () => session.toggle({ part: "head", ...place }),
    onPointerenter: () => look(place),
    onPointerleave: () => look(null),
    onFocus: () => look(place),
    onBlur: () => look(null),
  };
  const root = h("button", attrs, canvas, push, need);
  let [isSeen, painted] = [false, { last: null, count: 0, rgb: null, at: 0 }];

  /** Paint the map if it is in sight and there is more to show than last time. */
  function drawMap(rgb) {
    const { told } = session;
    const isSame = painted.last === told.at(-1) && painted.count === told.length && painted.rgb === rgb;
    const isEarly = (session.isBusy || session.isPlaying) && performance.now() - painted.at < BETWEEN;
    if (!isSeen || isSame || isEarly || !session.sees(layer)) return;
    painted = { last: told.at(-1), count: told.length, rgb, at: performance.now() };
    paint(canvas, told, place, rgb);
  }
  function draw() {
    const { zoom } = session;
    root.dataset.silent = session.silenced.has(`${layer}.${head}`);
    root.setAttribute("aria-expanded", zoom?.part === "head" && zoom.layer === layer && zoom.head === head);
  }
  const see = (isIn) => (isSeen = isIn);
  return { root, push, need, draw, drawMap, see };
}

/** zoom: the view of what is open; look(place or null): the head that the mouse or the focus is on. */
export function createBlocks(words, session, chip, data, zoom, look) {
  const { num_hidden_layers: L, num_attention_heads: H, use_moe: isMixture } = data.config;
  const title = h("h2", {});
  const target = h("span", {});
  const note = h("p", { class: "mm-note" }, words.maps, target, words.mapsEnd);
  const tryAll = button({ label: words.tryAll, onClick: () => session.tryAll() });
  const tried = h("p", { class: "mm-note in-tried", "aria-live": "polite" });
  const nameOf = { head: words.head, feed: (layer) => words.feed(layer, isMixture), block: words.block };
  const silent = h("p", { class: "in-silent", "aria-live": "polite" });

  const blocks = Array.from({ length: L }, (_, layer) => {
    const heads = Array.from({ length: H }, (_, head) => createHead(words, session, layer, head, look));
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
    h("div", { class: "in-presses" }, tryAll, tried),
    blocks.map((one) => one.root),
  );
  let colors = null;
  const see = (entries) => {
    for (const { target: seen, isIntersecting } of entries) every.find((one) => one.root === seen).see(isIntersecting);
    drawMaps();
  };
  const observer = new IntersectionObserver(see, { rootMargin: "200px" });
  every.forEach((one) => observer.observe(one.root));
  const drawMaps = () => colors && session.told.length && every.forEach((one) => one.drawMap(colors.rgb));

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
      const most = Math.max(...written.flatMap(({ heads, feed }) => [...heads, feed].map(Math.abs)), 1e-6);
      written.forEach(({ heads, feed }, layer) => {
        heads.forEach((value, head) => blocks[layer].heads[head].push.draw(value, most));
        blocks[layer].push.draw(feed, most);
      });
    });
  }

  /** How much ln p falls without each head, and the heads that it falls most without. */
  function drawTrial() {
    const { trial, now } = session;
    const isOfNow = Boolean(trial && now && trial.at === session.selected && trial.token === session.targetNow);
    root.dataset.tried = isOfNow;
    tryAll.root.disabled = session.isBusy;
    if (!isOfNow) return fill(tried);
    const all = Math.log(now.top.find(([id]) => id === trial.token)[1]);
    const most = Math.max(0.7, ...trial.found.map(({ without }) => Math.abs(all - without)));
    for (const { layer, head, without } of trial.found) blocks[layer].heads[head].need.draw(all - without, most);
    const count = L * H - [...session.silenced].filter((key) => !key.endsWith("feed")).length;
    if (trial.found.length < count) return fill(tried, words.trying(trial.found.length, count));
    const worst = [...trial.found].sort((a, b) => a.without - b.without).slice(0, NEEDED);
    const [before, between, end] = words.tried;
    const named = worst.map(({ layer, head, without }, i) => {
      const onClick = () => session.toggle({ part: "head", layer, head });
      const link = h("button", { type: "button", class: "in-link", onClick }, words.head(layer + 1, head + 1));
      return [i ? between : "", link, words.without(Math.exp(all), Math.exp(without))];
    });
    return fill(tried, before, named, end, words.needBars);
  }

  function drawSilent() {
    const parts = silentParts(session.silenced, data.config);
    const names = parts.slice(0, 4).map(({ part, layer, head }) => nameOf[part](layer + 1, head + 1));
    const onClick = () => session.silence(new Set());
    const back = h("button", { type: "button", class: "in-link", onClick }, words.bringBack);
    const said = words.silent(names, parts.length - names.length);
    if (silent.dataset.said === said) return;
    silent.dataset.said = said;
    silent.hidden = !parts.length;
    fill(silent, parts.length ? [said, back] : null);
  }

  /** The row under which the open part is shown. */
  function placeZoom() {
    const row = session.zoom && blocks[session.zoom.layer].root;
    if (row && row.nextSibling !== zoom.root) row.after(zoom.root);
    zoom.root.hidden = !row;
  }

  let shown = null;
  function draw() {
    const id = session.ids[session.selected];
    const heading = `${session.selected} ${id} ${session.targetNow}`;
    if (heading !== shown && id !== undefined) {
      shown = heading;
      fill(title, words.inside, chip(id));
      fill(target, session.targetNow === null ? "" : chip(session.targetNow));
    }
    drawMaps();
    every.forEach((one) => one.draw());
    blocks.forEach(({ name, feed }, layer) => {
      const part = session.zoom?.layer === layer && session.zoom.part;
      name.setAttribute("aria-expanded", part === "block");
      feed.setAttribute("aria-expanded", part === "feed");
      feed.dataset.silent = session.silenced.has(`${layer}.feed`);
    });
    drawSilent();
    drawTrial();
    placeZoom();
    if (!session.now || session.isPlaying) return; // while it writes, the time is the next token's
    drawSaying();
    drawPushes();
  }
  const paintWith = (found) => ((colors = found), draw());
  return { root, draw, paintWith };
}
