// What the page of two models shows: the text, both answers, what comes next by each, and how far apart they are in
// every block and head.

import { WIDE, h, announcement, button, clamp, fill, setText, slider, toggle } from "../../web/kit/kit.js";
import { readsOf } from "../../web/stage/heads.js";
import { createMap } from "../../web/stage/map.js";
import { createOpened } from "../../web/stage/opened.js";
import { isSamePart } from "../../web/stage/parts.js";
import { createSampling, walkAlong } from "../../web/stage/writing.js";
import { createField } from "../field.js";
import { weightOfByte } from "../marks.js";
import { beginsLine, shownToken, shownTokens, textOf } from "../tokens.js";
import { comparable, partedAt } from "./compare.js";
import { FURTHEST, MOST_SEED, NEAREST } from "./session.js";

const TINT = 80; // percent of the color of a token at most
const HEAD_TINT = 45; // and of a head: its number stays readable
const BARS = 6; // likeliest tokens of each model
const MOST_BARS = 8;
const NAMED = 5; // heads
const READ = 3; // tokens of a head that are named
const LOW = 220; // pixels of a map where one is above the other
const HIGH = 440; // and where they are side by side
const UNRELATED = 1; // of embeddings: one as long as the other and at a right angle to it differ by the root of 2
const SIDES = ["A", "B"];

/** The sign of one of the two models. */
export const badge = (which) => h("b", { class: "bs-badge", "data-side": SIDES[which] }, SIDES[which]);

/** The field, and what makes both write. */
export function createAsking(words, session, data, door) {
  const field = createField(words, session, Boolean(data.tokenizer));
  const write = button({ label: words.write, onClick: () => (session.isWriting ? session.stop() : session.write()) });
  write.root.classList.add("mm-primary");
  const onChat = (isChat) => (session.set({ isChat }), session.type(field.text()));
  const chat = data.chat && toggle({ label: words.chat, checked: session.isChat, onChange: onChat });
  const complaint = announcement("in-complaint");
  const drawn = h("span", {});
  const onSeed = (seed) => session.set({ seed });
  const seed = slider({ label: words.seed, min: 1, max: MOST_SEED, step: 1, value: session.seed, onInput: onSeed });
  const drawing = createSampling(
    words,
    session,
    drawn,
    50,
    seed,
    h("p", { class: "mm-note" }, words.sameDraws, " "),
    door("drawing"),
  );
  const root = h("div", {}, field, complaint, h("div", { class: "st-presses" }, write, chat), drawing);

  function draw() {
    const { complaint: found } = session;
    field.draw();
    drawing.draw();
    seed.set(session.seed);
    chat?.set(session.isChat);
    complaint.set(found?.name ? words.complaints[found.name](found, data.most) : (found ?? ""));
    setText(drawn, words.drawing(session.settings.temperature));
    write.set(session.isWriting ? words.stop : words.write);
    write.root.disabled = !session.isWriting && (session.isBusy || !session.prompt.length);
  }
  return { root, draw };
}

/**
 * Tokens as buttons, each colored by how much of what comes after it has moved. idsOf(): all of them; from(): where
 * they stand in what the row has read.
 */
function createLine(words, session, reader, row, label, idsOf, from) {
  const line = h("div", { class: "in-line", role: "group", "aria-label": label });
  let [chips, drawn] = [[], null];
  const isHere = () => row === null || row === session.row;
  const lineRow = () => row ?? session.row;
  const walk = {
    get selected() {
      return clamp(session.selected - from(), 0, chips.length - 1);
    },
    select: (at) => session.pick(lineRow(), clamp(at, 0, chips.length - 1) + from()),
  };
  walkAlong(line, walk, () => chips);

  function build(ids) {
    if (drawn === ids) return;
    drawn = ids;
    const focused = chips.indexOf(document.activeElement);
    const shown = shownTokens(reader, ids);
    chips = shown.map(({ text, kind }, at) => {
      const onClick = () => session.pick(lineRow(), at + from());
      return h("button", { type: "button", class: "in-token", "data-kind": kind, onClick }, text);
    });
    const begins = (at) => at > 0 && beginsLine(shown[at - 1].text, shown[at].text);
    fill(
      line,
      chips.flatMap((chip, at) => (begins(at) ? [h("br", {}), chip] : [chip])),
    );
    if (focused >= 0) chips[Math.min(focused, chips.length - 1)]?.focus({ preventScroll: true });
  }

  /** parting: the token that differs from the other's, or null. */
  function draw(parting = null) {
    build(idsOf());
    const positions = session.rows[lineRow()];
    chips.forEach((chip, i) => {
      const at = i + from();
      const moved = positions[at]?.moved;
      const isSelected = isHere() && at === session.selected;
      chip.style.setProperty("--in-part", `${Math.round(TINT * Math.sqrt(moved ?? 0))}%`);
      chip.setAttribute("aria-current", isSelected);
      chip.dataset.parts = String(i === parting);
      chip.tabIndex =
        isSelected || (i === 0 && !chips.some((_, j) => isHere() && j + from() === session.selected)) ? 0 : -1;
      chip.title = moved === undefined ? "" : words.movedAfter(chip.textContent, moved);
    });
  }
  return { root: line, draw };
}

/** The text that both read, and how each of them goes on. */
export function createAnswers(words, session, data, reader, door) {
  const none = [];
  const prompt = createLine(
    words,
    session,
    reader,
    null,
    words.prompt,
    () => session.prompt,
    () => 0,
  );
  const start = () => session.prompt.length;
  const parting = announcement("bs-parting");
  const legend = h("p", { class: "mm-note in-legend" }, h("i", {}), words.shade);
  const columns = data.models.map(({ name }, row) => {
    const answer = h("p", { class: "bs-said" });
    const idsOf = () => session.answers[row] ?? none;
    const line = createLine(words, session, reader, row, words.answerOf(SIDES[row]), idsOf, start);
    const end = h("p", { class: "mm-note" });
    return {
      root: h("div", { class: "bs-answer" }, h("h2", {}, badge(row), " ", name), answer, line, end),
      answer,
      line,
      end,
    };
  });
  const answered = h("div", { class: "bs-answers" }, columns);
  const under = h("div", { class: "in-under" }, legend, door("tokens"));
  const root = h(
    "div",
    { class: "in-tokens" },
    h("p", { class: "mm-label" }, words.bothRead),
    prompt,
    parting,
    answered,
    under,
  );

  const wordAt = (row, at) => {
    const id = session.answers[row][at];
    return id === undefined ? null : shownToken(reader, id).text;
  };
  function partingText() {
    const { answers, partsAt, isWriting } = session;
    if (!answers[0].length || !answers[1].length) return "";
    if (partsAt === null) return isWriting ? words.sameSoFar : words.sameAnswer(answers[0].length);
    return words.parting(partsAt + 1, wordAt(0, partsAt), wordAt(1, partsAt));
  }
  function draw() {
    const { partsAt, answers, ended } = session;
    prompt.draw();
    parting.set(partingText());
    answered.hidden = !answers.some((ids) => ids.length);
    const texts = answers.map((ids) =>
      textOf(
        reader,
        ids.filter((id) => !reader.isSpecial(id)),
      ),
    );
    let same = 0;
    while (same < texts[0].length && texts[0][same] === texts[1][same]) same++;
    columns.forEach(({ answer, line, end }, row) => {
      const rest = texts[row].slice(same);
      const key = `${same} ${texts[row]}`;
      if (answer.dataset.key !== key) fill(answer, texts[row].slice(0, same), rest && h("mark", {}, rest));
      answer.dataset.key = key;
      line.draw(partsAt);
      setText(end, ended[row] ? words.ended[ended[row]](answers[row].length) : "");
    });
  }
  return { root, draw };
}

/** What comes next by each of the two: a pair of bars for a token. */
export function createNext(words, session, chip) {
  const title = h("h2", { "aria-live": "polite" });
  const list = h("div", { class: "bs-bars" });
  const moved = h("p", {});
  const root = h("section", {}, title, h("p", { class: "mm-note bs-key" }, badge(0), badge(1)), list, moved);
  const shareOf = (top, id) => {
    const known = top.find(([token]) => token === id);
    return { p: (known ?? top.at(-1))[1], isLess: !known };
  };
  function rowOf(id, tops) {
    const both = tops.map((top) => shareOf(top, id));
    const name = chip(id);
    const tracks = both.map(({ p, isLess }, side) =>
      h("i", { class: "bs-bar", "data-side": SIDES[side], style: { width: `${isLess ? 0 : 100 * p}%` } }),
    );
    const numbers = both.map(({ p, isLess }) => h("span", {}, words.share(p, isLess)));
    const label = words.bothExpect(name.textContent, ...both.map(({ p, isLess }) => words.share(p, isLess)));
    return h(
      "div",
      { class: "bs-next", role: "img", "aria-label": label },
      name,
      h("span", { class: "bs-track" }, tracks),
      h("span", { class: "bs-numbers" }, numbers),
    );
  }
  let drawn = null;
  function draw() {
    const { now, ids, selected } = session;
    if (!now || now === drawn) return;
    drawn = now;
    fill(title, words.after[0], chip(ids[selected]), words.after[1]);
    const best = new Map();
    for (const top of now.tops) {
      for (const [id, p] of top.slice(0, BARS)) best.set(id, Math.max(p, best.get(id) ?? 0));
    }
    const order = [...best.keys()].sort((a, b) => best.get(b) - best.get(a)).slice(0, MOST_BARS);
    fill(
      list,
      order.map((id) => rowOf(id, now.tops)),
    );
    moved.textContent = words.movedNext(now.moved);
  }
  return { root, draw };
}

/** Of a slider that moves by factors: its place for a share, and back. */
const placeOf = (share) => Math.log10(share);
const shareAt = (place) => Number((10 ** place).toPrecision(2));

/** Every block with how far apart the streams are after it, and its heads with how much of their attention moved. */
export function createApart(words, session, data, chip, reading, door) {
  const { blocks, heads } = comparable(data.models.map(({ config }) => config));
  const { num_attention_heads: H } = data.config;
  const depths = data.models.map(({ config }) => config.num_hidden_layers);
  const title = h("h2", {});
  const verdict = announcement("bs-verdict");
  const unrelated = h("p", {}, words.unrelated);
  const shown = Math.max(blocks ?? 0, heads);
  const onBeyond = (place) => session.set({ beyond: shareAt(place) });
  const beyond = slider({
    label: words.beyond,
    min: placeOf(NEAREST),
    max: placeOf(FURTHEST),
    step: 0.01,
    value: placeOf(session.beyond),
    format: (place) => words.percent(shareAt(place)),
    onInput: onBeyond,
  });
  beyond.root.classList.add("bs-beyond");

  function headOf(layer, head) {
    const part = { part: "head", layer, head };
    const number = h("span", {});
    const root = h("button", { type: "button", class: "bs-head", onClick: () => session.toggle(part) }, number);
    function draw(moved) {
      setText(number, moved === null ? "" : String(Math.round(100 * moved)));
      root.style.setProperty("--bs-part", `${Math.round(HEAD_TINT * Math.sqrt(moved ?? 0))}%`);
      root.setAttribute("aria-label", words.headMoved(layer + 1, head + 1, moved ?? 0));
      root.setAttribute("aria-expanded", isSamePart(session.zoom, part));
    }
    return { root, draw };
  }
  const rows = Array.from({ length: shown + 1 }, (_, at) => {
    const [bar, tick, number] = [h("i", { class: "mm-after" }), h("i", { class: "mm-tick" }), h("b", {})];
    const name = at ? words.block(at) : words.embeddingName;
    const all = Array.from({ length: at && at <= heads ? H : 0 }, (_, head) => headOf(at - 1, head));
    const line = h(
      "div",
      { class: "bs-apart" },
      h("span", {}, name),
      h("span", { class: "mm-track" }, bar, tick),
      number,
    );
    line.hidden = blocks === null;
    const grid = h("div", { class: "bs-heads" }, all);
    grid.style.setProperty("--bs-count", Math.min(H, 8));
    const root = h("div", { class: "bs-block" }, blocks === null && at ? h("span", {}, name) : line, at > 0 && grid);
    return { root, bar, tick, number, all };
  });
  const most = h("p", { class: "bs-most" });
  const limits = [
    blocks === null && words.otherWidths(...data.models.map(({ config }) => config.hidden_size)),
    blocks !== null && depths[0] !== depths[1] && words.otherDepths(...depths),
    !heads && words.otherHeads(...data.models.map(({ config }) => config.num_attention_heads)),
  ].filter(Boolean);
  const root = h(
    "section",
    { class: "bs-inside" },
    title,
    limits.map((limit) => h("p", { class: "mm-note" }, limit)),
    blocks !== null && [verdict, unrelated, beyond],
    heads > 0 && most,
    h("div", { class: "bs-blocks" }, blocks === null ? rows.slice(1) : rows),
    blocks !== null && h("p", { class: "mm-note" }, words.apartNote, " ", door("block")),
    heads > 0 && h("p", { class: "mm-note" }, words.headsNote, " ", door("heads")),
  );

  function drawStreams({ apart }) {
    const longest = Math.max(1e-9, ...apart) * 1.02;
    const parted = partedAt(apart, session.beyond);
    rows.forEach(({ root: row, bar, tick, number }, at) => {
      bar.style.width = `${(100 * apart[at]) / longest}%`;
      tick.hidden = session.beyond > longest;
      tick.style.left = `${(100 * session.beyond) / longest}%`;
      number.textContent = words.far(apart[at]);
      row.dataset.parted = String(at === parted);
    });
    unrelated.hidden = apart[0] < UNRELATED;
    const bound = words.percent(session.beyond);
    if (parted !== null) verdict.set(words.parted(parted, words.far(apart[parted]), bound));
    else verdict.set(words.together(bound, words.far(Math.max(...apart))));
  }

  function drawHeads() {
    const moved = session.headsNow();
    rows
      .slice(1)
      .forEach(({ all }, layer) => all.forEach((square, head) => square.draw(moved[layer * H + head] ?? null)));
    const order = [...moved.keys()]
      .sort((a, b) => moved[b] - moved[a])
      .slice(0, NAMED)
      .filter((at) => moved[at] > 0);
    const named = order.map((at, i) => {
      const place = { layer: Math.floor(at / H), head: at % H };
      const onClick = () => session.toggle({ part: "head", ...place });
      const name = words.head(place.layer + 1, place.head + 1);
      return [
        i ? words.between : "",
        h("button", { type: "button", class: "mm-link", onClick }, name),
        words.inBrackets(moved[at]),
      ];
    });
    fill(most, named.length ? [words.most, named, words.mostEnd] : words.noneMoved);
  }

  let drawn = [];
  function draw() {
    const { now, ids, selected, beyond: bound, zoom } = session;
    const state = [now, bound, zoom];
    if (!now || state.every((value, i) => value === drawn[i])) return;
    drawn = state;
    beyond.set(placeOf(bound));
    fill(title, words.inside, chip(ids[selected]));
    if (blocks !== null) drawStreams(now);
    if (heads) drawHeads();
  }
  const opened = createOpened(
    words,
    session,
    { head: createBoth(words, session, data, reading) },
    ({ layer }) => rows[layer + 1].root,
  );
  return { root, draw: () => (draw(), opened.draw()) };
}

/** A head that is open: what it reads in both models, side by side. */
function createBoth(words, session, data, reading) {
  const title = h("p", { class: "st-title" });
  const about = h("p", {});
  const sides = data.models.map((_, which) => {
    const of = reading.of(which);
    const list = h("ol", { class: "st-list" });
    const map = createMap(words, session, of, () => (innerWidth < WIDE ? LOW : HIGH));
    const root = h("div", { class: "bs-side" }, h("p", {}, badge(which), " ", words.reads), list, map);
    return { root, of, list, map };
  });
  const root = h("div", {}, title, about, h("div", { class: "bs-sides" }, sides));
  function draw(zoom) {
    const { layer, head } = zoom;
    title.textContent = words.headTitle(layer + 1, head + 1);
    const moved = session.now && session.headsNow()[layer * data.config.num_attention_heads + head];
    about.textContent = moved === null ? "" : words.movedHead(moved);
    if (!session.now || !session.mapsOf(zoom)) return;
    for (const { of, list, map } of sides) {
      fill(list, readsOf(words, session, of, zoom, READ));
      map.show(zoom);
    }
  }
  return { root, draw };
}

/** For maps: what a head reads in each of the two models. */
export function createReading(words, session, reader, colors) {
  let shown = { ids: null, texts: [] };
  function texts() {
    const { ids } = session;
    if (`${shown.ids}` !== `${ids}`) shown = { ids, texts: shownTokens(reader, ids).map(({ text }) => text) };
    return shown.texts;
  }
  const placeOfToken = (at) => (at === session.selected ? words.itself : words.back(session.selected - at));
  const of = (which) => ({
    count: () => session.rows[session.row].length,
    texts,
    named: (at) => [h("span", { class: "in-token" }, texts()[at]), " ", h("small", {}, placeOfToken(at))],
    isHere: () => true,
    weightAt(place, y, x) {
      const bytes = session.mapsOf(place)?.[which];
      return bytes ? weightOfByte(bytes[(y * (y + 1)) / 2 + x]) : 0;
    },
    colors,
  });
  return { of };
}
