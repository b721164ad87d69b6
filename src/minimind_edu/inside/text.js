// The text: the field, what writes, and its tokens, each colored by how little it was expected.

import { h, fill, toggle, announcement, setText } from "../web/kit/kit.js";
import { createSampling, createWriteButtons, walkAlong } from "../web/stage/writing.js";
import { createField } from "./field.js";
import { readBy, weightOfByte } from "./marks.js";
import { beginsLine, shownToken, shownTokens } from "./tokens.js";

const DARKEST = 14; // bits of surprise
const TINT = { surprise: 80, read: 45 }; // percent of the color at most: the letters on it stay readable
const SHORT = 13; // letters: fewer than a token has room for, even as wide as Chinese ones

/** The field and the buttons. hasText: whether there is a tokenizer. */
export function createWriting(words, session, reader, data, hasText, door) {
  const field = createField(words, session, hasText);
  const isFull = () => !session.ids.length || session.ids.length >= data.most;
  const onChat = (isChat) => (session.set({ isChat }), session.type(field.text()));
  const chat = data.chat && toggle({ label: words.chat, checked: session.isChat, onChange: onChat });
  const complaint = announcement("in-complaint");
  const presses = createWriteButtons(words, session, isFull, chat);
  presses.next.root.classList.add("mm-primary");
  const drawn = h("span", {});
  const drawing = createSampling(words, session, drawn, 50, door("drawing"));
  const root = h("div", {}, field, complaint, presses, drawing);

  const loopText = () => session.paused.loop.map((id) => shownToken(reader, id).text).join("");
  function complaintText() {
    const { complaint: found } = session;
    if (session.hasEnded) return words.ended;
    if (session.paused?.loop) return words.loops(loopText(), session.settings.temperature);
    if (session.paused) return words.played(session.paused.count);
    if (session.ids.length >= data.most) return words.full(data.most);
    return found?.name ? words.complaints[found.name](found, data.most) : (found ?? "");
  }
  function draw() {
    field.draw();
    drawing.draw();
    chat?.set(session.isChat);
    complaint.set(complaintText());
    setText(drawn, words.drawing(session.settings.temperature));
    presses.draw();
  }
  return { root, draw };
}

/** Where ids differ from others: [from, to), between what both begin and what both end with; not where they go on. */
export function differing(others, ids) {
  if (!others) return [0, 0];
  const shorter = Math.min(others.length, ids.length);
  let [from, same] = [0, 0];
  while (from < shorter && ids[from] === others[from]) from++;
  if (from === others.length) return [0, 0];
  while (same < shorter - from && ids.at(-1 - same) === others.at(-1 - same)) same++;
  return [from, ids.length - same];
}

/** The tokens. looked(): the head that the mouse is on, or null. */
export function createTokens(words, session, reader, looked, door) {
  const line = h("div", { class: "in-line", role: "group", "aria-label": words.tokens });
  const legend = h("p", { class: "mm-note in-legend" });
  const count = announcement("mm-note in-count");
  const answerText = h("span", {});
  const answer = h("p", { class: "in-answer", hidden: true }, h("b", {}, words.answer), answerText);
  const pieces = h("p", { class: "mm-note in-pieces", hidden: true });
  const under = h("div", { class: "in-under" }, legend, count, door("tokens"));
  const root = h("div", { class: "in-tokens" }, answer, line, under, pieces);
  let [chips, drawn, inSight] = [[], null, null]; // chips: { root, begin: of a line before it, key, looks }

  const buttons = () => chips.map(({ root: chip }) => chip);
  walkAlong(line, session, buttons);

  function createChip({ text, kind }, at) {
    const looks = { class: "in-token", "data-kind": kind, "data-short": String(text.length <= SHORT) };
    return h("button", { type: "button", ...looks, onClick: () => session.select(at) }, text);
  }

  /** Chips that stay the same are kept where they are: most of a text does, when a token is written. */
  function build() {
    if (drawn === session.ids) return;
    drawn = session.ids;
    const focused = buttons().indexOf(document.activeElement);
    const shown = shownTokens(reader, session.ids);
    const found = shown.map(({ text, kind }, at) => `${session.ids[at]} ${kind} ${text}`);
    const differs = found.findIndex((key, at) => key !== chips[at]?.key);
    const same = differs < 0 ? found.length : differs;
    for (const { root: chip, begin } of chips.splice(same)) [chip, begin].forEach((node) => node?.remove());
    for (let at = same; at < shown.length; at++) {
      const begin = beginsLine(shown[at - 1]?.text ?? "", shown[at].text) ? h("br", {}) : null;
      chips.push({ root: createChip(shown[at], at), begin, key: found[at], looks: "" });
      line.append(...[begin, chips[at].root].filter(Boolean));
    }
    const kinds = new Set(shown.map(({ kind }) => kind));
    const notes = ["part", "bytes"].filter((kind) => kinds.has(kind)).map((kind) => words.pieces[kind]);
    pieces.hidden = !notes.length;
    setText(pieces, notes.join(" "));
    if (focused >= 0) chips[session.selected]?.root.focus({ preventScroll: true });
  }

  /**
   * known: what was expected of the token, or null; part: percent of the color; isRead: which of the two colors;
   * isOther: whether the text that it is compared with has something else there.
   */
  function describe(entry, at, known, part, isRead, isOther) {
    const [isSelected, isWritten] = [at === session.selected, session.written.has(at)];
    const looks = `${known?.probability} ${known?.rank} ${part} ${isRead} ${isOther} ${isSelected} ${isWritten}`;
    if (looks === entry.looks) return; // a browser would style it again
    entry.looks = looks;
    const chip = entry.root;
    chip.style.setProperty("--in-part", `${part}%`);
    chip.dataset.read = isRead;
    chip.dataset.other = isOther;
    chip.setAttribute("aria-current", isSelected);
    chip.tabIndex = isSelected ? 0 : -1;
    chip.dataset.written = isWritten;
    const expected = known ? words.expected(known) : "";
    chip.title = `${words.token(chip.textContent, session.ids[at], at)}${expected}${isWritten ? words.written : ""}`;
  }

  /** Bring the token that was selected last into the box of the tokens; the page stays where it is. */
  function follow() {
    const chip = chips[session.selected]?.root;
    if (!chip || chip === inSight) return;
    inSight = chip;
    const [box, { top, bottom }] = [line.getBoundingClientRect(), chip.getBoundingClientRect()];
    if (top < box.top) line.scrollTop -= box.top - top;
    if (bottom > box.bottom) line.scrollTop += bottom - box.bottom;
  }

  function drawAnswer() {
    const text = session.answerNow;
    answer.hidden = !text;
    setText(answerText, text);
    answer.scrollTop = answer.scrollHeight;
  }

  function draw() {
    build();
    drawAnswer();
    const head = looked() ?? (session.zoom?.part === "head" ? session.zoom : null);
    const reading = head && session.now && session.sees(head.layer) ? readBy(session.now, head) : null;
    const [from, to] = differing(session.pinned?.ids, session.ids.slice(0, session.selected + 1));
    chips.forEach((entry, at) => {
      const seen = session.told[at - 1]?.next;
      const known = seen?.id === session.ids[at] ? seen : null;
      const surprise = known ? Math.min(1, -Math.log2(known.probability) / DARKEST) : 0;
      const share = reading ? Math.sqrt(at < reading.length ? weightOfByte(reading[at]) : 0) : surprise;
      const part = Math.round(TINT[reading ? "read" : "surprise"] * share);
      describe(entry, at, known, part, Boolean(reading), at >= from && at < to);
    });
    follow();
    drawLegend(reading && head);
    const isReading = session.isBusy && session.told.length < session.ids.length;
    count.set(isReading ? words.reading(session.told.length, session.ids.length) : words.read(session.ids.length));
  }

  function drawLegend(head) {
    const text = head ? words.tint(head.layer + 1, head.head + 1) : words.shade;
    if (legend.textContent === text) return;
    legend.dataset.read = Boolean(head);
    fill(legend, h("i", {}), text);
  }
  return { root, draw };
}
