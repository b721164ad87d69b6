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
import { doorsOf, homeOf } from "../door.js";
import { bytesIn, comparedWithTorch, weightsInPage } from "../opening.js";
import { createRunner } from "../runner.js";
import { createTheme } from "../theme.js";
import { addressOf, AT_FIRST, HOTTEST, MOST_SEED, readAddress } from "./link.js";
import { countsOf, EITHER, groupsOf, judge, layOut, LEVEL, LINES, OBLIQUE, soundsOf, WIDTHS } from "./poem.js";
import { verseWords } from "./words.js";

const STEP = 90; // milliseconds from one character to the next
const COUNTED = 10; // poems at a press
const SIGNS = { [LEVEL]: "○", [OBLIQUE]: "●", [EITHER]: "◐", null: "·" };
const newSeed = () => Math.floor(Math.random() * MOST_SEED);
const added = (sums, more) => sums.map((sum, i) => sum + more[i]);

/**
 * What the page knows, and what it does with it. changed() is called after each change.
 *
 *   asked     what the controls say: as readAddress gives it
 *   written   null, or the poem that is shown: { asked: of it, poem: its characters, given: how many of them are typed,
 *             lines, width, places, marks: as compose.js gives them }
 *   shown     how many of its characters are to be seen
 *   chosen    the index of the character that is looked at, or null
 *   tallies   of each set of silent heads { silenced, poems, rhymes, tones, marks }: [right, all] of each
 */
function createSession(data, runner, changed) {
  const characters = ["<s>", "</s>", ...data.characters];
  const known = new Map(characters.map((one, id) => [one, id]).slice(4));
  const soundOf = soundsOf(data.sounds);
  const session = { asked: { ...AT_FIRST }, written: null, shown: 0, chosen: null, tallies: [], counting: 0 };
  Object.assign(session, { problem: null, isOpen: false, isBusy: false, failure: null, known, soundOf, characters });
  let [latest, timer] = [0, null]; // the newest poem that was asked for; what shows the next character

  const laidOut = () => layOut(session.asked, known);
  const planOf = (asked) => {
    const { given, rhyme, lines, width } = layOut(asked, known);
    const { seed, temperature, silenced } = asked;
    const ids = given.map((one) => known.get(one));
    return { given: ids, rhyme: rhyme === null ? null : known.get(rhyme), lines, width, seed, temperature, silenced };
  };

  /** Other controls. A poem that is there is written again where its draws stay and something else is asked of them. */
  function ask(changes) {
    const isTyped = "begin" in changes || "rhyme" in changes || "lines" in changes || "width" in changes;
    session.asked = { ...session.asked, ...changes };
    const { problem, lines, width } = laidOut();
    session.problem = problem;
    if (isTyped || "temperature" in changes) session.tallies = [];
    if (!problem) Object.assign(session.asked, { lines, width });
    if (!isTyped && session.written && !problem) return write(session.asked.seed, true);
    changed();
  }

  /** Write a poem of these draws. isWhole: at once, not a character after the other. */
  async function write(seed = newSeed(), isWhole = false) {
    if (!session.isOpen || session.problem) return changed();
    session.asked = { ...session.asked, seed };
    const [run, asked] = [++latest, session.asked];
    session.isBusy = true;
    changed();
    const plan = planOf(asked);
    const answer = await answerOf(plan);
    if (run !== latest || !answer) return;
    const poem = answer.places.map(({ id }) => characters[id]);
    const written = { ...answer, asked, poem, lines: plan.lines, width: plan.width, given: plan.given.length };
    const isStill = isWhole || prefersReducedMotion();
    Object.assign(session, { written, isBusy: false, chosen: null });
    session.shown = isStill ? poem.length : plan.given.length;
    clearTimeout(timer);
    changed();
    if (!isStill) timer = setTimeout(showNext, STEP);
  }

  async function answerOf(plan) {
    try {
      return await runner.look("write", plan);
    } catch (error) {
      Object.assign(session, { failure: error.message, isBusy: false, counting: 0 });
      changed();
      return null;
    }
  }

  function showNext() {
    if (session.shown >= session.written.poem.length) return;
    session.shown++;
    changed();
    timer = setTimeout(showNext, STEP);
  }

  /** Another character at a place, and from there a new poem that begins as this one. */
  function put(at, id) {
    const { poem, width } = session.written;
    const all = [...poem.slice(0, at), characters[id]];
    const lines = Array.from({ length: Math.ceil(all.length / width) }, (_, i) =>
      all.slice(i * width, (i + 1) * width),
    );
    const { rhyme } = session.asked;
    ask({ begin: lines.map((line) => line.join("")).join("，"), rhyme: at < 2 * width - 1 ? rhyme : "" });
    return write();
  }

  function toggleHead(key) {
    const { silenced } = session.asked;
    ask({ silenced: silenced.includes(key) ? silenced.filter((one) => one !== key) : [...silenced, key].sort() });
  }

  /** More poems as the one that is asked for, of other draws: what they keep is added up. */
  async function count() {
    if (!session.isOpen || session.problem || session.counting) return;
    const [asked, tallies] = [session.asked, session.tallies];
    const key = asked.silenced.join("_");
    for (let done = 0; done < COUNTED; done++) {
      session.counting = done + 1;
      changed();
      const plan = { ...planOf(asked), seed: newSeed() };
      const answer = await answerOf(plan);
      if (!answer) return;
      if (session.tallies !== tallies) break; // something else is asked for
      const poem = answer.places.map(({ id }) => characters[id]);
      const { rhymes, tones, ends } = countsOf(judge(poem, plan, soundOf));
      const marks = [answer.marks.filter(Boolean).length, answer.marks.length];
      let row = tallies.find((one) => one.key === key);
      if (!row)
        tallies.push((row = { key, silenced: asked.silenced, poems: 0, rhymes: [0, 0], tones: [0, 0], marks: [0, 0] }));
      row.poems++;
      row.rhymes = added(row.rhymes, rhymes);
      row.tones = added(row.tones, added(tones, ends));
      row.marks = added(row.marks, marks);
    }
    session.counting = 0;
    changed();
  }

  /** Begin with what an address says. */
  function restore(asked) {
    session.asked = { ...AT_FIRST };
    session.written = null;
    latest++;
    ask(asked);
    if (asked.seed !== null) write(asked.seed, true);
  }

  const choose = (at) => ((session.chosen = session.chosen === at ? null : at), changed());
  const judged = () => {
    const { poem, lines, width } = session.written;
    const seen = poem.map((one, at) => (at < session.shown ? one : null));
    return judge(seen, { lines, width }, soundOf);
  };
  return Object.assign(session, { ask, write, put, toggleHead, count, restore, choose, judged });
}

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
    options: optionsFor(WIDTHS),
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
    h("div", { class: "vs-fields" }, lines, width),
    complaint,
    h("div", { class: "vs-fields" }, again, link),
    h(
      "details",
      { class: "mm-more" },
      drawn,
      temperature,
      h("p", { class: "mm-note" }, words.how, " ", door("drawing")),
    ),
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
  const told = announcement("mm-note vs-copied");
  const shown = h("input", { type: "text", class: "vs-field", readonly: "", hidden: true, "aria-label": words.toCopy });
  const copy = button({ label: words.copy, onClick: copyNow });
  let last = "";
  async function copyNow() {
    try {
      await navigator.clipboard.writeText(last);
      told.set(words.copied);
    } catch {
      told.set(words.toCopy);
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
    told.set("");
    shown.hidden = true;
  }
  return { root: h("div", { class: "vs-link" }, copy, told, shown), draw };
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
    const wrong = new Set(kept.tones.filter((one) => !one.isRight).flatMap(({ at, above }) => [at, above]));
    kept.ends.filter((one) => !one.isRight).forEach(({ at }) => wrong.add(at));
    const given = written ? written.given : poem.length;
    const cell = (at) => {
      const one = seen[at];
      if (one === null) return h("span", { class: "vs-blank" });
      const { tone } = session.soundOf(one);
      const looks = { "data-given": at < given, "data-rhyme": rhymes.get(at) ?? "", "data-wrong": wrong.has(at) };
      const said = words.character(one, words.tones[tone], words.rhymed[rhymes.get(at)]);
      return h(
        "button",
        {
          type: "button",
          class: "vs-char",
          ...looks,
          "aria-label": said,
          "aria-pressed": chosen === at,
          onClick: () => session.choose(at),
        },
        h("b", {}, one),
        h("i", {}, SIGNS[tone]),
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
    const kept = session.judged();
    const { rhymes, tones, ends } = countsOf(kept);
    const groups = groupsOf(kept, written.poem, session.soundOf);
    const marks = written.marks.slice(0, Math.floor(shown / written.width) + Number(shown === written.poem.length));
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
      const one = session.characters[id];
      const label = [h("b", { lang: "zh-CN" }, words.signs[one] ?? one), " ", words.percent(p)];
      if (!session.known.has(one)) return h("span", { class: "vs-other" }, label);
      const press = () => session.put(chosen, id);
      return h("button", { type: "button", class: "vs-other", "aria-label": words.put(one, p), onClick: press }, label);
    };
    const own = place.top.some(([id]) => id === place.id) ? [] : [[place.id, place.p]];
    return fill(root, h("p", {}, words.expected(written.poem[chosen])), [...place.top, ...own].map(say));
  }
  return { root, draw };
}

/** The heads, and what poems keep without some of them. */
function createHeads(words, session, { num_hidden_layers: L, num_attention_heads: H }, door) {
  const keys = Array.from({ length: L }, (_, layer) => Array.from({ length: H }, (_, head) => `${layer}.${head}`));
  const buttons = new Map();
  const make = (key, head) => {
    const one = h(
      "button",
      { type: "button", class: "vs-head", "aria-label": words.headName(key), onClick: () => session.toggleHead(key) },
      head + 1,
    );
    buttons.set(key, one);
    return one;
  };
  const rows = keys.map((all, layer) =>
    h("div", { class: "vs-block" }, h("span", { class: "mm-label" }, words.block(layer)), all.map(make)),
  );
  const said = announcement("mm-note");
  const back = button({ label: words.bringBack, onClick: () => session.ask({ silenced: [] }) });
  const count = button({ label: words.count(COUNTED), onClick: () => session.count() });
  const table = h("table", { class: "vs-tally" });
  const root = h(
    "section",
    {},
    h("h2", {}, words.heads),
    h("p", { class: "mm-note" }, words.headsHint, " ", door("heads")),
    rows,
    said,
    h("div", { class: "vs-fields" }, back, count),
    table,
  );
  function draw() {
    const { silenced } = session.asked;
    for (const [key, one] of buttons) one.setAttribute("aria-pressed", silenced.includes(key));
    said.set(silenced.length ? words.without(silenced) : words.whole);
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
          words.tally.map((one) => h("th", { scope: "col" }, one)),
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
    const said = session.written ? addressOf(session.written.asked) : "";
    if (said === written) return;
    written = said;
    try {
      history.replaceState(null, "", `#${said}`);
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
  const session = createSession(data, runner, changed);
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
    h("div", { class: "vs-columns" }, poem, h("div", { class: "vs-right" }, kept, heads)),
    h("footer", { class: "in-foot" }, check, h("p", {}, door("verse"))),
  );
  const theme = createTheme(words, () => {});
  main.querySelector(".in-bar-top").append(theme.root);
  theme.show();
  followed.read();
  addEventListener("hashchange", () => followed.read());

  try {
    if (document.readyState === "loading") await new Promise((done) => addEventListener("DOMContentLoaded", done));
    const buffer = await weightsInPage(data.bytes, (part) => state.set(words.opening(part)));
    const why = await runner.open(buffer, data.rope, bytesIn(document.getElementById("step")).buffer);
    session.isOpen = true;
    state.set("");
    check.set(words.checking);
    if (session.asked.seed !== null) session.write(session.asked.seed, true);
    changed();
    check.set(words.checked({ ...(await comparedWithTorch(data, runner, why)), why }));
  } catch (error) {
    state.set(words.failed(error.message), "bad");
  }
}

export default startPage;
