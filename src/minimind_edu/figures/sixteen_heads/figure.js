// SixteenHeads: a story, a switch for each head, and what the living model says without those that are off. The weights
// come with the first press. The view of the chain has the heads that are needed in the order in which they work.

import { h, svg, fill, fmt, setAttributes, setSize, setText, setTraits } from "../../web/kit/kit.js";
import { choice, button, loadLiving, namedOptions, wordsOf } from "../../web/kit/kit.js";
import { createBar } from "../../web/kit/bars.js";
import { figure } from "../../web/kit/figure.js";
import { phraseGlosses } from "../../web/live/glosses.js";
import { headsIn, readingOf, saidIn, toggled } from "./math.js";
import { sixteenHeadsWords } from "./words.js";

const FEW = 4; // heads that are named one by one
const WEAK = 0.5; // a weight below which a head reads nobody in particular
const ROW = 46; // pixels of a row of the chain, with the space below it
const ARROW = 22; // pixels at the right of the chain
const NO_SPACE_BEFORE = /^[.,:?。，：？]/u;
const CHINESE = /\p{Script=Han}|[。，：？]/u;
// the heads of the chain: column and row, and whose work each hands its own to; null: to the answer
const CHAIN = {
  1.2: { column: 0, row: 0, to: "3.4" },
  1.4: { column: 0, row: 1, to: "3.4" },
  1.3: { column: 0, row: 2, to: null },
  3.4: { column: 2, row: 1, to: "4.2" },
  4.2: { column: 3, row: 1, to: null },
};

/** The story, the answer in its place, and, in the view of the chain, what two heads read. */
function createStory(glossOf, hasTags) {
  const root = h("p", { class: "mm-story sx-story" });
  const slot = h("b", { class: "mm-slot mm-next-word", "data-sym": "logits" });
  let [telling, words, tags] = [null, [], new Map()];

  const wordOf = (text) => {
    const gloss = glossOf(text);
    return [text, gloss ? h("small", { class: "mm-gloss" }, gloss) : null];
  };

  function tell(next, spots) {
    telling = next;
    tags = new Map();
    words = telling.words.map((text, at) => {
      const tag = hasTags && spots.includes(at) ? h("small", { class: "sx-tag" }) : null;
      if (tag) tags.set(at, tag);
      return h("span", { class: "sx-word" }, h("span", {}, wordOf(text)), tag);
    });
    const isJoined = (at) => {
      const [before, text] = telling.words.slice(at - 1, at + 1);
      return at === 1 || NO_SPACE_BEFORE.test(text) || (!glossOf(text) && CHINESE.test(before) && CHINESE.test(text));
    };
    const spaced = words.slice(1).flatMap((word, i) => (isJoined(i + 1) ? [word] : [" ", word]));
    fill(root, spaced, " ", slot);
  }

  function draw(s) {
    const spots = [...s.telling.spots, s.telling.ids.length - 1];
    if (telling !== s.telling) tell(s.telling, spots);
    fill(slot, wordOf(s.answer[0]));
    slot.dataset.right = s.answer[2] === 0;
    if (!hasTags) return;
    spots.forEach((spot, i) => {
      const [from, weight] = s.read.whose[i];
      setText(tags.get(spot), `${s.telling.words[from]} ${fmt(weight, 2)}`);
      tags.get(spot).style.setProperty("--sx-share", `${(100 * weight).toFixed(0)}%`);
      tags.get(spot).dataset.weak = String(weight < WEAK);
      tags.get(spot).dataset.silent = s.isSilent(s.whose);
      const share = s.isSilent(s.fetches) ? 0 : (s.read.fetched[i] ?? 0);
      words[spot].style.setProperty("--sx-read", `${(60 * share).toFixed(0)}%`);
    });
  }
  return { root, draw };
}

/** Bars of the places of the story and of the likeliest other word. */
function createBars(words, glossOf, isCompact) {
  const bars = Array.from({ length: isCompact ? 3 : 4 }, () => createBar("mm-word-bar", ["mm-said"]));
  const root = h("div", { class: "sx-bars", "data-sym": "logits" }, bars);

  function draw({ names, read }) {
    const places = names.map((name, i) => [name, read.shares[i]]).slice(0, bars.length - 1);
    [...places, read.other].forEach(([word, share], i) => {
      const [gloss, value] = [glossOf(word), words.percent(fmt(100 * share, 0))];
      const shown = gloss ? [word, " ", h("small", {}, gloss)] : word;
      bars[i].set({ word: shown, shares: [[0, share]], value, label: words.bar(word, value) });
    });
  }
  return { root, draw };
}

/** The switches, a column for each block; in the view of the chain the others stand below. */
function createHeads(words, names, isChain, press) {
  const buttons = names.map((name, i) => {
    const job = isChain && CHAIN[name] ? h("small", {}, words.jobs[name]) : null;
    const root = h("button", { type: "button", class: "sx-head", onClick: () => press(i) }, h("span", {}, name), job);
    const [block, head] = name.split(".").map((part) => part - 1);
    const { column, row } = job ? CHAIN[name] : { column: block, row: head };
    Object.assign(root.style, { gridColumn: column + 1, gridRow: row + 2 });
    return root;
  });
  const blocks = [1, 2, 3, 4].map((number) => {
    const style = { gridColumn: number, gridRow: 1 };
    return h("span", { class: "sx-block", style }, words.block(number));
  });
  const lines = isChain ? svg("svg", { class: "sx-lines", role: "img" }) : null;
  const isIn = (i) => !isChain || CHAIN[names[i]];
  const inside = buttons.filter((_, i) => isIn(i));
  const grid = h("div", { class: "sx-grid", role: "group", "aria-label": words.blocks }, lines, blocks, inside);
  const others = isChain
    ? h(
        "div",
        { class: "sx-others" },
        words.others,
        buttons.filter((_, i) => !isIn(i)),
      )
    : null;
  const root = h("div", { class: isChain ? "sx-heads sx-chain" : "sx-heads" }, grid, others);

  function drawLines(s, width) {
    const style = getComputedStyle(grid);
    const gap = Number.parseFloat(style.columnGap);
    const column = (width - ARROW - 4 * gap) / 4;
    const top = blocks[0].offsetHeight + Number.parseFloat(style.rowGap);
    const leftOf = ({ column: at }) => at * (column + gap);
    const middleOf = ({ row }) => top + row * ROW + (ROW - Number.parseFloat(style.rowGap)) / 2;
    setSize(lines, width, top + 3 * ROW, words.picture);
    const answer = { x: width - 2, y: middleOf(CHAIN["4.2"]) };
    const paths = Object.entries(CHAIN).map(([name, place]) => {
      const { to } = place;
      const [x, y] = [leftOf(place) + column, middleOf(place)];
      const end = to ? { x: leftOf(CHAIN[to]), y: middleOf(CHAIN[to]) } : answer;
      const isOff = s.isSilent(name) || (to !== null && s.isSilent(to));
      const from = end.x - gap - (to || y === end.y ? 0 : ARROW); // where it begins to climb
      const d = `M${x} ${y}H${from}C${from + gap} ${y} ${end.x - gap} ${end.y} ${end.x} ${end.y}`;
      return svg("path", { class: "sx-link", d, "data-off": String(isOff) });
    });
    const tip = svg("path", { class: "sx-tip", d: `M${answer.x - 8} ${answer.y - 5}L${answer.x} ${answer.y}l-8 5` });
    fill(lines, paths, tip);
  }

  function draw(s, width) {
    buttons.forEach((root, i) => {
      const isSilent = s.isSilent(names[i]);
      setAttributes(root, { "aria-pressed": isSilent, "aria-label": words.head(names[i], isSilent) });
    });
    if (isChain) drawLines(s, width);
  }
  return { root, draw, box: grid };
}

export default figure({
  words: sixteenHeadsWords,
  traits: ["silent", "story"],
  verdict: "sx-verdict",
  create({ model, words, isCompact, bound, verdict, redraw }) {
    const stored = model.get("stored");
    const { names, needed, whose, fetches } = stored;
    const isChain = model.get("shows") === "chain" && !isCompact;
    const meanings = wordsOf(phraseGlosses);
    const all = "在" in meanings ? { ...stored.glosses, ...meanings } : {}; // Chinese readers need none
    const glossOf = (word) => all[word];
    const others = names.reduce((sum, name, i) => (needed.includes(name) ? sum : sum | (1 << i)), 0);

    const story = createStory(glossOf, isChain);
    const bars = createBars(words, glossOf, isCompact);
    const heads = createHeads(words, names, isChain, (i) =>
      setTraits(model, { silent: toggled(model.get("silent"), i) }),
    );
    let [living, isAsked, isLost, shown] = [null, false, false, null];

    async function ask() {
      if (isAsked) return;
      isAsked = true;
      living = await loadLiving(model).catch(() => null);
      isLost = !living;
      redraw();
    }

    /** What is read with these heads silenced, or null until the model has come. */
    function readingNow(telling, silent) {
      if (!silent.length) return telling.first;
      if (!living) {
        ask();
        return null;
      }
      return readingOf(living, telling, { whose, fetches }, silent);
    }

    function draw(width) {
      const telling = stored.told[model.get("story")];
      const silent = headsIn(model.get("silent"), names.length).map((i) => names[i]);
      const read = readingNow(telling, silent);
      shown = read ?? (shown?.telling === telling ? shown.read : telling.first);
      shown = { telling, read: shown };
      const placeNames = telling.places.map((id) => telling.words[telling.ids.indexOf(id)]);
      const answer = saidIn(shown.read, placeNames);
      const isSilent = (name) => silent.includes(name);
      const s = { telling, read: shown.read, answer, names: placeNames, isSilent, whose, fetches };
      story.draw(s);
      bars.draw(s);
      heads.draw(s, width);
      if (!read) return { verdict: isLost ? words.unavailable : words.loading };
      const [word, share] = [words.glossed(answer[0], glossOf(answer[0])), words.percent(fmt(100 * answer[1], 0))];
      if (!silent.length) return { verdict: words.whole(word, share) };
      if (silent.length > FEW) return { verdict: words.withoutMany(silent.length, word, share) };
      return { verdict: words.without(silent, word, share) };
    }

    const set = (silent) => () => setTraits(model, { silent });
    const presses = [button({ label: words.all, onClick: set(0) })];
    if (isChain) presses.push(button({ label: words.eleven, onClick: set(others) }));
    const which = bound(choice, "story", { label: words.story, options: namedOptions(words.stories) });
    const control = isCompact ? verdict : h("div", { class: "sx-control" }, presses, isChain ? which : null);
    const stage = h("div", { class: "mm-stage mm-column sx-stage" }, story, bars, heads);
    const shows = isCompact ? "head" : isChain ? "chain" : "heads";
    return {
      stage,
      control,
      numbers: isCompact ? null : verdict,
      title: words.titles[shows],
      caption: words.captions[shows],
      boxes: [heads.box],
      draw,
    };
  },
});
