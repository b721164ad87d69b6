// The page that writes verse: what is typed, the poem with its marks, what it keeps of the rules, and heads to silence.

import {
  h,
  announcement,
  button,
  choice,
  fill,
  optionsFor,
  prefersReducedMotion,
  slider,
  wordsOf,
} from "../../web/kit/kit.js";
import { keepPart } from "../../web/kit/part.js";
import { doorsOf, homeOf } from "../door.js";
import { keepOfPage } from "../kept.js";
import { bytesIn, comparedWithTorch, weightsInPage } from "../opening.js";
import { createRunner } from "../runner.js";
import { createTheme } from "../theme.js";
import { addressOf, AT_FIRST, HOTTEST, readAddress } from "./link.js";
import { countsOf, EITHER, groupsOf, judge, layOut, LEVEL, LINES, OBLIQUE, WIDTHS } from "./poem.js";
import { COUNTED, createSession } from "./session.js";
import { verseWords } from "./words.js";

const TONE_SIGNS = { [LEVEL]: "○", [OBLIQUE]: "●", [EITHER]: "◐", null: "·" };

/** A text field with its label. */
function field(label, hint, onText, more = {}) {
  const input = h("input", {
    type: "text",
    class: "vs-field",
    placeholder: hint,
    autocomplete: "off",
    spellcheck: "false",
    ...more,
  });
  let isComposing = false;
  input.addEventListener("compositionstart", () => (isComposing = true));
  input.addEventListener("compositionend", () => ((isComposing = false), onText(input.value)));
  input.addEventListener("input", () => isComposing || onText(input.value));
  const set = (text) => {
    if (input.value !== text && input !== document.activeElement) input.value = text;
  };
  return { root: h("label", { class: "vs-labelled" }, h("span", { class: "mm-label" }, label), input), input, set };
}

/** What is typed and chosen. */
function createAsking(words, session, door) {
  const begin = field(words.begin, words.beginHint, (text) => session.ask({ begin: text }));
  const rhyme = field(words.rhyme, "", (text) => session.ask({ rhyme: text }), { size: 3 });
  const press = () => session.write();
  for (const { input } of [begin, rhyme])
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.isComposing) press();
    });
  const lines = choice({
    label: words.lines,
    options: optionsFor(LINES, (count) => words.linesOf[count]),
    onChange: (value) => session.ask({ lines: value }),
  });
  const width = choice({
    label: words.width,
    options: optionsFor(WIDTHS, (count) => words.widthOf[count]),
    onChange: (value) => session.ask({ width: value }),
  });
  const again = button({ label: words.write, onClick: press });
  again.root.classList.add("mm-primary");
  const complaint = announcement("in-complaint");
  const drawn = h("summary", {});
  const temperature = slider({
    label: words.temperature,
    min: 0,
    max: HOTTEST,
    step: 0.05,
    value: AT_FIRST.temperature,
    format: (value) => (value ? value.toFixed(2) : words.greedy),
    onInput: (value) => session.ask({ temperature: value }),
  });
  const link = createLink(words, session);
  const root = h(
    "section",
    { class: "in-write vs-asking" },
    h("div", { class: "vs-fields" }, begin, rhyme),
    h("div", { class: "vs-fields" }, lines, width, again),
    complaint,
    h(
      "details",
      { class: "mm-more" },
      drawn,
      temperature,
      h("p", { class: "mm-note" }, words.how, " ", door("drawing")),
    ),
    link,
  );
  function draw() {
    const { asked, problem, written } = session;
    begin.set(asked.begin);
    rhyme.set(asked.rhyme);
    lines.set(asked.lines);
    width.set(asked.width);
    temperature.set(asked.temperature);
    drawn.textContent = words.drawing(asked.temperature);
    complaint.set(problem ? words.problems[problem.name](problem, session.known.size) : "");
    const isSame = written && ["begin", "rhyme", "lines", "width"].every((name) => written.asked[name] === asked[name]);
    again.set(isSame ? words.again : words.write);
    again.root.disabled = !session.isOpen || Boolean(problem);
    link.draw();
  }
  return { root, draw };
}

/** The link to the poem that is shown, which a button copies where the browser lets it. */
function createLink(words, session) {
  const note = announcement("mm-note vs-copied");
  const shown = h("input", { type: "text", class: "vs-field", readonly: "", hidden: true, "aria-label": words.toCopy });
  const copy = button({ label: words.copy, onClick: copyNow });
  let last = "";
  async function copyNow() {
    try {
      await navigator.clipboard.writeText(last);
      note.set(words.copied);
    } catch {
      note.set(words.toCopy);
      shown.hidden = false;
      shown.value = last;
      shown.select();
    }
  }
  function draw() {
    const now = session.written ? session.linkOf(session.written.asked) : "";
    copy.root.disabled = !now;
    if (now === last) return;
    last = now;
    note.set("");
    shown.hidden = true;
  }
  return { root: h("div", { class: "vs-link" }, copy, note, shown), draw };
}

/** The poem: a line a row, below each character its tone. */
function createPoem(words, session) {
  const root = h("div", { class: "vs-poem", role: "group", "aria-label": words.poem });
  const legend = h("p", { class: "mm-note vs-legend" }, words.legend[0], " ", words.legend[1]);
  let drawn = null;

  function draw() {
    const { written, shown, chosen, asked } = session;
    const state = JSON.stringify([
      written && [written.poem, written.lines, written.width],
      shown,
      chosen,
      !written && asked,
    ]);
    if (state === drawn) return;
    drawn = state;
    const laid = layOut(asked, session.known);
    const { lines, width, poem } = written ?? { ...laid, poem: laid.problem ? [] : laid.given };
    const seen = Array.from({ length: lines * width }, (_, at) =>
      at < (written ? shown : poem.length) ? poem[at] : null,
    );
    const kept = judge(seen, { lines, width }, session.soundOf);
    const rhymes = new Map(kept.rhymes.map(({ at, found }) => [at, found]));
    kept.first.forEach((at) => rhymes.set(at, "first"));
    const wrong = new Set(kept.tones.filter((pair) => !pair.isRight).flatMap(({ at, above }) => [at, above]));
    kept.ends.filter((end) => !end.isRight).forEach(({ at }) => wrong.add(at));
    const given = written ? written.given : poem.length;
    const cell = (at) => {
      const character = seen[at];
      if (character === null) return h("span", { class: "vs-blank" }, h("i", {}));
      const { tone } = session.soundOf(character);
      const looks = {
        "data-given": String(at < given),
        "data-rhyme": rhymes.get(at) ?? "",
        "data-wrong": String(wrong.has(at)),
      };
      const label = words.character(character, words.tones[tone], words.rhymed[rhymes.get(at)]);
      return h(
        "button",
        {
          type: "button",
          class: "vs-char",
          ...looks,
          "aria-label": label,
          "aria-pressed": String(chosen === at),
          onClick: () => session.choose(at),
        },
        h("b", {}, character),
        h("i", {}, TONE_SIGNS[tone]),
      );
    };
    const focused = [...root.querySelectorAll("button")].indexOf(document.activeElement);
    fill(
      root,
      Array.from({ length: lines }, (_, line) => {
        const places = Array.from({ length: width }, (_, i) => line * width + i);
        const isWhole = seen[places.at(-1)] !== null;
        const mark = h("span", { class: "vs-mark" }, isWhole ? (line % 2 ? "。" : "，") : "");
        return h("div", { class: "vs-line", lang: "zh-CN" }, places.map(cell), mark);
      }),
    );
    if (focused >= 0) root.querySelectorAll("button")[focused]?.focus({ preventScroll: true });
  }
  const others = createOthers(words, session);
  const drawAll = () => (draw(), others.draw());
  return { root: h("section", { class: "vs-left" }, root, others, legend), draw: drawAll };
}

/** What the poem keeps of the rules. */
function createKept(words, session) {
  const list = h("dl", { class: "vs-kept" });
  const root = h("section", {}, h("h2", {}, words.kept), list);
  function draw() {
    const { written, shown } = session;
    root.hidden = !written;
    if (!written) return;
    const { lines, width, poem } = written;
    const seen = poem.map((character, at) => (at < shown ? character : null));
    const kept = judge(seen, { lines, width }, session.soundOf);
    const { rhymes, tones, ends } = countsOf(kept);
    const groups = groupsOf(kept, poem, session.soundOf);
    const marks = written.marks.slice(0, Math.floor(shown / width) + Number(shown === poem.length));
    const rows = [
      [words.rhymes(groups), rhymes],
      [words.opposed, tones],
      [words.ends, ends],
      [words.marks, [marks.filter(Boolean).length, marks.length]],
    ];
    const say = (share) => (share[1] ? words.share(share) : words.nothing);
    fill(
      list,
      rows.map(([label, share]) => h("div", {}, h("dt", {}, label), h("dd", {}, say(share)))),
    );
  }
  return { root, draw };
}

/** At the character that is chosen: what else was expected there. */
function createOthers(words, session) {
  const root = h("div", { class: "vs-others", "aria-live": "polite" });
  function draw() {
    const { written, chosen } = session;
    const place = chosen === null ? null : written?.places[chosen];
    if (!place) return fill(root);
    const say = ([id, p]) => {
      const character = session.characters[id];
      const label = [h("b", { lang: "zh-CN" }, words.signs[character] ?? character), " ", words.percent(p)];
      if (!session.known.has(character)) return h("span", { class: "vs-other" }, label);
      const press = () => session.put(chosen, id);
      return h(
        "button",
        { type: "button", class: "vs-other", "aria-label": words.put(character, p), onClick: press },
        label,
      );
    };
    const itself = place.top.some(([id]) => id === place.id) ? [] : [[place.id, place.p]];
    return fill(root, h("p", {}, words.expected(written.poem[chosen])), [...place.top, ...itself].map(say));
  }
  return { root, draw };
}

/** The heads, and what poems keep without some of them. */
function createHeads(words, session, { num_hidden_layers: L, num_attention_heads: H }, door) {
  const keys = Array.from({ length: L }, (_, layer) => Array.from({ length: H }, (_, head) => `${layer}.${head}`));
  const buttons = new Map();
  const make = (key, head) => {
    const toggle = h(
      "button",
      { type: "button", class: "vs-head", "aria-label": words.headName(key), onClick: () => session.toggleHead(key) },
      head + 1,
    );
    buttons.set(key, toggle);
    return toggle;
  };
  const rows = keys.map((all, layer) =>
    h("div", { class: "vs-block" }, h("span", { class: "mm-label" }, words.block(layer)), all.map(make)),
  );
  const note = announcement("mm-note");
  const back = button({ label: words.bringBack, onClick: () => session.ask({ silenced: [] }) });
  const count = button({ label: words.count(COUNTED), onClick: () => session.count() });
  const table = h("table", { class: "vs-tally" });
  const root = h(
    "section",
    {},
    h("h2", {}, words.heads),
    h("p", { class: "mm-note" }, words.headsHint, " ", door("heads")),
    rows,
    note,
    h("div", { class: "vs-fields" }, back, count),
    table,
  );
  function draw() {
    const { silenced } = session.asked;
    for (const [key, toggle] of buttons) toggle.setAttribute("aria-pressed", silenced.includes(key));
    note.set(silenced.length ? words.without(silenced) : words.whole);
    back.root.disabled = !silenced.length;
    count.root.disabled = !session.isOpen || Boolean(session.problem) || session.counting > 0;
    count.set(session.counting ? words.counting(session.counting, COUNTED) : words.count(COUNTED));
    table.hidden = !session.tallies.length;
    const part = ([right, all]) => h("td", {}, words.tallied(right / all));
    fill(
      table,
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", {}),
          words.tally.map((title) => h("th", { scope: "col" }, title)),
        ),
      ),
      h(
        "tbody",
        {},
        session.tallies.map(({ silenced: without, poems, rhymes, tones, marks }) => {
          const name = without.length ? words.without(without) : words.whole;
          return h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            h("td", {}, poems),
            part(rhymes),
            part(tones),
            part(marks),
          );
        }),
      ),
    );
  }
  return { root, draw };
}

/** Let the address tell the poem that is shown, and a poem be shown that it tells. */
function followAddress(session, data) {
  let written = "";
  const read = () => session.restore(readAddress(location.hash.slice(1), data.config));
  const draw = () => {
    const address = session.written ? addressOf(session.written.asked) : "";
    if (address === written) return;
    written = address;
    try {
      history.replaceState(null, "", `#${address}`);
    } catch {
      // a browser that lets no file change its address
    }
  };
  return { read, draw };
}

async function startPage() {
  const main = document.querySelector("main");
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = wordsOf(verseWords);
  const door = doorsOf(words, data);
  let isWaiting = false;
  const draw = () => {
    isWaiting = false;
    for (const view of views) view.draw();
    main.dataset.busy = String(session.isBusy || session.counting > 0);
  };
  const changed = () => {
    main.dataset.busy = "true";
    if (!isWaiting) requestAnimationFrame(draw);
    isWaiting = true;
  };
  const hear = ({ message }) => ((session.failure = message), changed());
  const runner = createRunner(document.getElementById("worker").textContent, hear);
  const session = createSession({ data, runner, isStill: prefersReducedMotion }, changed);
  const here = location.protocol === "file:" ? data.published : location.href.split("#")[0];
  session.linkOf = (asked) => `${here}#${addressOf(asked)}`;

  const state = announcement("in-state");
  const check = announcement("in-check");
  const followed = followAddress(session, data);
  const telling = { draw: () => session.failure && state.set(words.failed(session.failure), "bad") };
  const [asking, poem, kept] = [
    createAsking(words, session, door),
    createPoem(words, session),
    createKept(words, session),
  ];
  const heads = createHeads(words, session, data.config, door);
  const right = h("div", { class: "vs-right" }, kept, heads);
  const address = () => (session.written ? session.linkOf(session.written.asked) : null);
  keepPart(poem.root, "verse-poem", keepOfPage, address);
  keepPart(right, "verse-rules", keepOfPage, address);
  const views = [asking, poem, kept, heads, followed, telling];
  fill(
    main,
    h(
      "header",
      { class: "in-top" },
      h("div", { class: "in-bar-top" }, homeOf(words, data.links)),
      h("h1", {}, words.title),
      h("p", { class: "vs-lead" }, words.lead(data.parameters)),
      state,
    ),
    asking,
    h("div", { class: "vs-columns" }, poem, right),
    h(
      "footer",
      { class: "in-foot" },
      h("p", {}, words.private),
      check,
      h("p", { class: "vs-doors" }, door("verse"), door("rhyme")),
    ),
  );
  const theme = createTheme(words, () => {});
  main.querySelector(".in-bar-top").append(theme.root);
  theme.show();
  followed.read();
  addEventListener("hashchange", () => followed.read());

  try {
    if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
    const [buffer] = await weightsInPage([data.bytes], (part) => state.set(words.opening(part)));
    const why = await runner.open(buffer, data.rope, bytesIn(document.getElementById("step")).buffer);
    state.set("");
    check.set(words.checking);
    session.open();
    check.set(words.checked({ ...(await comparedWithTorch(data, runner, why)), why }));
  } catch (error) {
    state.set(words.failed(error.message), "bad");
  }
}

export default startPage;
