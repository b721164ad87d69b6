// What comes after the selected token, and who wrote it.

import { h, fill, fmt, button } from "../web/kit/kit.js";
import { createPush } from "./marks.js";
import { times } from "./numbers.js";
import { silentParts } from "./session.js";
import { textOf } from "./tokens.js";

const BARS = 8;
const PINNED = 8; // tokens of a pinned text that are named
const PARTS = 6; // that are named one by one

/** The likeliest next tokens. */
export function createBars(words, session, chip, data, reader, door) {
  const size = data.config.vocab_size;
  const title = h("h2", { "aria-live": "polite" });
  const list = h("div", { class: "in-bars" });
  const [legend, rest] = [h("p", { class: "mm-note in-was" }), h("p", { class: "mm-note" })];
  const pin = button({ label: words.pin, onClick: () => session.pin() });
  const unpin = button({ label: words.unpin, onClick: () => session.set({ pinned: null }) });
  const how = h("p", { class: "mm-note" }, words.pressBars);
  const presses = h("div", { class: "st-presses" }, pin, unpin);
  const root = h("section", {}, title, how, list, legend, rest, presses, door("after"));

  /** The share of a token among those that were told: { p, isLess: whether it is only known to be less }. */
  function shareIn(top, id) {
    const known = top.find(([token]) => token === id);
    return { p: (known ?? top.at(-1))[1], isLess: !known };
  }

  function barOf(id) {
    const { p, isLess } = shareIn(session.now.top, id);
    const before = session.referenceNow && shareIn(session.referenceNow.top, id);
    const isTarget = id === session.targetNow;
    const name = chip(id);
    const put = { type: "button", class: "in-put", onClick: () => session.answer(id) };
    const ask = { type: "button", class: "in-ask", onClick: () => session.set({ target: id }) };
    const track = h(
      "span",
      { class: "mm-track" },
      h("i", { class: "mm-after", style: { width: `${100 * p}%` } }),
      before && h("i", { class: "in-mark", style: { left: `${100 * before.p}%` } }),
    );
    const number = h("span", { class: "in-number" }, words.share(p, isLess));
    if (before) number.append(h("small", {}, words.was(before)));
    return h(
      "div",
      { class: "in-bar", "data-target": String(isTarget) },
      h("button", { ...put, "aria-label": words.put(name.textContent), title: words.put(name.textContent) }, name),
      h(
        "button",
        { ...ask, "aria-pressed": String(isTarget), "aria-label": words.ask(name.textContent, p) },
        track,
        number,
      ),
    );
  }

  let drawn = "";
  function draw() {
    const { now, ids, selected, targetNow, referenceNow, pinned, silenced } = session;
    if (!now) return;
    const key = `${selected} ${ids[selected]} ${targetNow} ${now.top} ${referenceNow?.top} ${Boolean(pinned)}`;
    if (key === drawn) return;
    drawn = key;
    const [bars, focused] = [now.top.slice(0, BARS), [...list.querySelectorAll("button")]];
    const shown = bars.map(([id]) => id);
    const former = referenceNow?.top[0][0]; // what was likeliest there is shown here, too
    if (former !== undefined && !shown.includes(former)) shown.push(former);
    const at = focused.indexOf(document.activeElement);
    fill(title, words.after[0], chip.at(selected), words.after[1]);
    fill(list, shown.map(barOf));
    if (at >= 0) list.querySelectorAll("button")[at]?.focus({ preventScroll: true });
    legend.textContent = pinned ? words.pinned(textOf(reader, pinned.ids.slice(-PINNED))) : "";
    if (!pinned && referenceNow) legend.textContent = words.legend(silentParts(silenced, data.config).length);
    unpin.root.hidden = !pinned;
    const share = 1 - bars.reduce((sum, [, p]) => sum + p, 0);
    rest.textContent = words.rest(size - bars.length, Math.max(0, share), Math.exp(now.entropy));
  }
  return { root, draw };
}

/** The parts that raise and lower the target, the strongest first. */
export function createWho(words, session, chip, isMixture, door) {
  const title = h("h2", {});
  const list = h("div", { class: "in-parts" });
  const sum = h("p", { class: "mm-note" });
  const other = button({ label: "", onClick: () => session.set({ isAgainst: !session.isAgainst }) });
  const root = h("section", { class: "in-who" }, title, list, sum, other, door("who"));
  const signed = (x) => (x < 0 ? fmt(x, 1) : `+${fmt(x, 1)}`);
  const names = {
    head: ({ layer, head }) => words.head(layer + 1, head + 1),
    feed: ({ layer }) => words.feed(layer + 1, isMixture),
    embedding: () => words.embedding,
  };

  function lineOf(name, value, most, zoom) {
    const push = createPush();
    push.draw(value, most);
    const cells = [h("span", {}, name), push, h("b", {}, signed(value))];
    if (!zoom) return h("div", { class: "in-part" }, cells);
    return h("button", { type: "button", class: "in-part", onClick: () => session.toggle(zoom) }, cells);
  }

  function show(written, target, against) {
    const parts = written.blocks.flatMap(({ heads, feed }, layer) => [
      ...heads.map((value, head) => ({ part: "head", layer, head, value })),
      { part: "feed", layer, value: feed },
    ]);
    parts.push({ part: "embedding", value: written.embedding });
    parts.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    const [named, others] = [parts.slice(0, PARTS), parts.slice(PARTS)];
    const most = Math.max(Math.abs(named[0].value), 1e-6);
    const together = others.reduce((total, { value }) => total + value, 0);
    const [who, rather, end] = words.who;
    fill(title, who, chip(target), against === null ? null : [rather, chip(against)], end);
    fill(
      list,
      named.map(({ part, value, ...place }) => {
        const zoom = part === "embedding" ? null : { part, ...place };
        return lineOf(names[part](place), value, most, zoom);
      }),
      lineOf(words.others(others.length), together, most, null),
    );
    const total = signed(written.logit);
    const sentence = against === null ? words.aboveMean(total) : words.aboveOther(total, times(written.logit));
    sum.textContent = `${sentence}${words.exact}`;
    other.set(against === null ? words.compare : words.compareMean);
  }

  let drawn = null;
  function draw() {
    const { selected: at, targetNow: target, againstNow: against } = session;
    if (!session.now || session.isPlaying) return;
    session.look("wrote", { at, token: target, against }, (written) => {
      if (written === drawn) return;
      drawn = written;
      show(written, target, against);
    });
  }
  return { root, draw };
}
