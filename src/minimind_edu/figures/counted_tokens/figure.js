// CountedTokens: a chat as a row of tokens, what each position must say, what counts, and how large its loss is.

import { h, svg, fill, textAt, setSize, setTraits, clamp, choice, slider, namedOptions } from "../../web/kit/kit.js";
import { optionsFor, prefersReducedMotion } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { createTransport } from "../../web/kit/transport.js";
import { countedTokens, labelsOf, reads, sentencesOf } from "./math.js";
import { countedTokensWords } from "./words.js";

const TRAITS = ["shows", "mask", "ahead", "trained", "stage", "reader"];
const STAGE = { template: 1, ids: 2, labels: 3, loss: 4, padding: 5, future: 6 }; // before them there is the chat
const BEAT = 2200; // milliseconds of a stage that plays
const WIDEST = 680; // pixels
const HEAD = 17; // the name of a row
const WORD = 65; // the longest word, upright
const LINE = 18; // a row of ids or dots
const BARS = 44;
const BUBBLE = { letter: 7, inside: 12, round: 10, apart: 22, widest: 400 }; // pixels: of a message before it is a row
const TIGHT = 20; // pixels: in a narrower column two digits stand upright, too
const MOST = 60; // tenths of a nat: the longest bar
const AHEADS = [1, 0, 2];
const CENTERED = { anchor: "middle" };
const AT_HEAD = ["answer", "early", "late", "all"];
const SHIFTED = ["answer", "all"]; // as SHIFTED of the trainings

/** All that is drawn. */
function stateOf(model) {
  const [stored, ...values] = ["stored", ...TRAITS].map((name) => model.get(name));
  const chosen = Object.fromEntries(TRAITS.map((name, i) => [name, values[i]]));
  const total = stored.words.length;
  const real = stored.words.indexOf("<pad>");
  const chat = { first: stored.prompt, last: real - 1, real, total };
  const look = stored.looks.indexOf(chosen.trained);
  // Each may be set alone, by a link: a mask without trainings of other shifts is shown with the right one.
  if (!stored.runs[chosen.mask][chosen.ahead]) chosen.ahead = 1;
  const run = stored.runs[chosen.mask][chosen.ahead];
  const [losses, says] = [run.losses[look], run.says[look]];
  return { ...chosen, ...stored, chat, losses, says, place: run.place[look], stop: run.stop[look] };
}

function createRow(words) {
  const root = svg("svg", { role: "img", class: "ct-row" });
  let stageBefore = null;

  /** A word, upright in its column; its end is at the top, below the name of its row. */
  function upright(text, x, top, cls) {
    const look = { class: `mm-small ${cls}`, "text-anchor": "end", "dominant-baseline": "central" };
    return svg("text", { ...look, transform: `translate(${x.toFixed(1)} ${top}) rotate(-90)` }, text);
  }

  /** Two messages, as they are sent: the user's at the right, the answer at the left. */
  function bubbles({ words: tokens, chat }, width) {
    const { letter, inside, round, apart, widest } = BUBBLE;
    const [left, right] = [-1, 1].map((side) => (width + side * Math.min(width, widest)) / 2);
    let top = apart;
    const message = (name, text, isRight) => {
      const lines = sentencesOf(text);
      const wide = 2 * inside + letter * Math.max(...lines.map((line) => line.length));
      const [x, high] = [isRight ? right - wide : left, LINE * lines.length + inside];
      const box = { x: x.toFixed(1), y: top + HEAD, width: wide, height: high, rx: round, class: "ct-bubble" };
      const parts = [
        textAt((isRight ? right : left).toFixed(1), top + 13, name, { anchor: isRight ? "end" : "start" }),
        svg("rect", box),
        lines.map((line, i) => textAt((x + inside).toFixed(1), top + HEAD + inside + 7 + LINE * i, line)),
      ];
      top += HEAD + high + apart;
      return svg("g", {}, parts);
    };
    const asks = message(tokens[1], tokens.slice(2, chat.first - 3), true);
    return svg("g", { class: "ct-chat" }, asks, message(tokens[chat.first - 1], [tokens[chat.first]], false));
  }

  function draw(s, width) {
    const { chat, shows } = s;
    const isRow = shows === "row";
    const stage = isRow ? s.stage : STAGE.loss;
    const cell = Math.min(width, WIDEST) / chat.total;
    const middle = (i) => (i + 0.5) * cell;
    const spoken = s.words.map((_, i) => (i > 1 && i < chat.first - 3) || i === chat.first);
    const isThere = (i) => stage >= (i < chat.real || !isRow ? STAGE.template : STAGE.padding);
    const counts = countedTokens(s.mask, chat);
    const labels = labelsOf(s.mask, s.ahead, chat);
    const parts = [];
    let y = 0;
    const begin = (name, from = 0) => {
      if (stage >= from) parts.push(textAt(0, y + 13, name));
      y += HEAD;
    };

    if (!stage) parts.push(bubbles(s, cell * chat.total));
    begin(words.reads, STAGE.template);
    y += WORD;
    s.words.forEach((word, i) => {
      if (!stage) return; // the messages are there
      const isRead = stage < STAGE.future || reads(s.reader, i, chat);
      const flags = [!spoken[i] && "ct-template", !isThere(i) && "ct-away", !isRead && "ct-unread"];
      const cls = ["ct-word", ...flags].filter(Boolean).join(" ");
      parts.push(upright(word, middle(i), y - WORD + 2, cls));
    });
    if (isRow) {
      const line = (cls, at) => svg("g", { class: `ct-part${at ? "" : " ct-away"}` }, cls);
      y += LINE;
      const numbers = s.ids.map((id, i) => {
        if (!isThere(i)) return null;
        return cell < TIGHT
          ? upright(id, middle(i), y - LINE + 2, "")
          : textAt(middle(i).toFixed(1), y - 5, id, CENTERED);
      });
      parts.push(line(numbers, stage >= STAGE.ids));
      y += 4;
    }
    begin(words.says, STAGE.labels);
    y += WORD;
    const isSliding = isRow && stage === STAGE.labels && stageBefore === STAGE.labels - 1 && !prefersReducedMotion();
    const targets = labels.map(({ token, counts: isCounted }, i) => {
      if (!stage) return null;
      if (token === null) return upright(words.none, middle(i), y - WORD + 2, "ct-template");
      if (isRow && !isThere(token)) return null;
      const isStrong = stage >= STAGE.loss && isCounted;
      const cls = stage < STAGE.loss ? "ct-word" : isStrong ? "ct-counts mm-strong" : "ct-template";
      return upright(s.words[token], middle(i), y - WORD + 2, cls);
    });
    const shift = isSliding ? { class: "ct-part ct-slides", style: `--ct-cell: ${cell.toFixed(1)}px` } : null;
    parts.push(svg("g", shift ?? { class: `ct-part${stage >= STAGE.labels ? "" : " ct-away"}` }, targets));
    if (isRow) {
      begin(words.looks, STAGE.future);
      const dots = s.words.map((_, i) => {
        const kind = reads(s.reader, i, chat) ? "ct-look" : "ct-blind";
        return svg("circle", { class: kind, cx: middle(i).toFixed(1), cy: y + 7, r: Math.min(5, cell / 3) });
      });
      parts.push(svg("g", { class: `ct-part${stage >= STAGE.future ? "" : " ct-away"}` }, dots));
      y += LINE;
    } else {
      begin(words.loss);
      const floor = y + BARS + 4;
      labels.forEach(({ counts: isCounted }, i) => {
        const long = Math.max(1, (Math.min(s.losses[i], MOST) / MOST) * BARS);
        const box = { x: (i * cell + 1.5).toFixed(1), width: (cell - 3).toFixed(1), y: (floor - long).toFixed(1) };
        const cls = `ct-bar${isCounted ? " ct-strong" : ""}`;
        parts.push(svg("rect", { ...box, height: long.toFixed(1), class: cls, "data-loss": s.losses[i] }));
      });
      parts.push(svg("path", { class: "ct-floor", d: `M0 ${floor + 0.5}H${(cell * chat.total).toFixed(1)}` }));
      y = floor + 2;
    }
    stageBefore = stage;
    const caption = isRow ? words.stages[stage] : "";
    setSize(root, Math.min(width, WIDEST), y, words.picture(caption, counts.filter(Boolean).length));
    fill(root, parts);
  }
  return { root, draw };
}

/** What the model answers, and of 200 new chats how many are right. */
function createAnswer(words) {
  const answer = h("b", { class: "ct-said" });
  const root = h("p", { class: "ct-answer" }, h("span", {}, words.answers), answer);
  function draw({ says, words: tokens, prompt, place, stop }) {
    const isRight = says.length === 2 && says[0] === tokens[prompt] && says[1] === tokens[prompt + 1];
    answer.textContent = says.join(" ");
    answer.dataset.tone = isRight ? "good" : "bad";
    root.dataset.place = place;
    root.dataset.stop = stop;
  }
  return { root, draw };
}

export default figure({
  words: countedTokensWords,
  traits: TRAITS,
  verdict: "ct-verdict",
  create({ model, words, isCompact, bound, verdict, numbers }) {
    const shows = model.get("shows");
    const isRow = shows === "row";
    const stored = model.get("stored");
    const row = createRow(words);
    const answer = isRow ? null : createAnswer(words);
    const last = words.stages.length - 1;
    const go = (direction) => setTraits(model, { stage: clamp(model.get("stage") + direction, 0, last) });
    const transport = isRow ? createTransport(words, go, { beat: BEAT, isCompact }) : null;
    const few = isCompact ? AT_HEAD : shows === "shift" ? SHIFTED : null;
    const offered = namedOptions(words.masks).filter(({ value }) => !few || few.includes(value));
    const masks = () => bound(choice, "mask", { label: words.mask, options: offered });
    const trained = () => bound(slider, "trained", { label: words.trained, stops: stored.looks, format: words.steps });
    const aheads = () =>
      bound(choice, "ahead", { label: words.ahead, options: optionsFor(AHEADS, (at) => words.aheads[at]) });
    const reader = isRow
      ? bound(slider, "reader", {
          label: words.reader,
          min: 0,
          max: stored.words.length - 1,
          step: 1,
          format: (at) => stored.words[at],
        })
      : null;
    const control = isRow
      ? h("div", { class: "ct-control" }, verdict, transport, reader)
      : h("div", { class: "ct-control" }, trained(), masks(), shows === "shift" ? aheads() : null);

    function draw(width) {
      const s = stateOf(model);
      row.draw(s, width);
      answer?.draw(s);
      if (isRow) {
        transport.set(s.stage, last);
        reader.root.style.visibility = s.stage === STAGE.future ? "" : "hidden"; // its place stays
        return { verdict: words.stages[s.stage], title: words.titles.row };
      }
      const shares = [s.place, s.stop].map((share, i) => [words.numbers[i], words.percent(share)]);
      return isCompact ? {} : { numbers: shares, title: words.titles[shows] };
    }
    return {
      stage: h("div", { class: "mm-stage ct-stage" }, row, answer),
      control,
      numbers: isRow ? h("div", {}) : numbers.root,
      caption: words.captions[isRow ? "row" : "masks"],
      title: isCompact ? words.titleCompact : words.titles[shows],
      parts: [transport],
      draw,
    };
  },
});
