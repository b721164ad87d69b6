// NeuronWords: neurons at one word of a story, what they answer to and push, and what comes next without one of them.

import { createBar } from "../../web/kit/bars.js";
import { WIDE, h, fill, fmt, setTraits, wordsOf } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { phraseGlosses } from "../../web/live/glosses.js";
import { createWordLine } from "../../web/live/word_line.js";
import { neuronWordsWords } from "./words.js";

const LITTLE = 0.01; // of all probability: less than that counts as nothing

/** The neurons at the chosen word, [block][{ name, number, activation, moved, without, fires, up, down }]. */
function neuronsAt(reading, at) {
  return reading.top[at].map((ofBlock, block) =>
    ofBlock.map(([index, activation, moved, without]) => {
      const { fires, up, down } = reading.neurons[block][index];
      const here = Math.abs(activation) / reading.rms[at]; // from one unit of activation to what the logits change by
      const pushed = (sign, words) => words.map(([word, push]) => [word, sign * push * here]);
      const [raised, lowered] = activation > 0 ? [up, down] : [down, up];
      const [first, last] = [block + 1, index + 1];
      const words = { fires, up: pushed(1, raised), down: pushed(-1, lowered) };
      return { name: `${first}.${last}`, block: first, number: last, activation, moved, without, ...words };
    }),
  );
}

function neuronState(model) {
  const reading = model.get("reading");
  const at = Math.min(model.get("word"), reading.tokens.length - 1);
  const blocks = neuronsAt(reading, at);
  const off = blocks.flat().find(({ name }) => name === model.get("off"));
  const [words, usual] = [0, 1].map((part) => reading.next[at].map((pair) => pair[part]));
  return { at, reading, token: reading.tokens[at], blocks, off, words, usual, now: off?.without ?? usual };
}

/** A word, and in small letters what it means and a number, if there are any. */
function wordWith(word, gloss, number) {
  const small = [gloss, number].filter(Boolean).map((text) => [" ", h("small", {}, text)]);
  return h("span", { class: "nw-word" }, word, small);
}

/** Rows of neurons, their names buttons that switch them off: what they answer to, push up, and how much they move. */
function createRows(words, glossOf, onPress) {
  const titles = ["neuron", "fires", "up", "moves"].map((name) => h("span", {}, words.heads[name]));
  const head = h("li", { class: "nw-head mm-label", "aria-hidden": "true" }, titles);
  const root = h("ul", { class: "nw-rows" });

  function drawWords(name, pairs, most) {
    const each = pairs.slice(0, most).map(([word]) => wordWith(word, glossOf(word)));
    const sym = name === "fires" ? "embed" : "logits";
    return h("span", { class: "nw-words", "data-sym": sym }, h("span", { class: "nw-label" }, words.heads[name]), each);
  }

  function drawRow(neuron, isFirst, s, most) {
    const isOff = neuron === s.off;
    const attrs = {
      class: "mm-button nw-switch",
      "aria-pressed": String(isOff),
      onClick: () => onPress(neuron, isOff),
    };
    const name = h("button", { type: "button", ...attrs }, words.neuron(neuron.block, neuron.number));
    const share = words.percent(fmt(100 * neuron.moved, 0));
    const moved = h("span", { class: "nw-moved" }, h("span", { class: "nw-label" }, words.heads.moves), share);
    const looks = { class: isFirst ? "nw-row nw-first" : "nw-row", "data-off": isOff, "data-sym": "ffn" };
    return h("li", looks, name, drawWords("fires", neuron.fires, most), drawWords("up", neuron.up, most), moved);
  }

  function draw(s, count, most) {
    const focused = [...root.querySelectorAll("button")].indexOf(document.activeElement);
    const rowsOf = (neurons) => neurons.slice(0, count).map((neuron, i) => drawRow(neuron, i === 0, s, most));
    fill(root, head, s.blocks.map(rowsOf));
    if (focused >= 0) root.querySelectorAll("button")[focused]?.focus();
  }
  return { root, draw };
}

/** A bar for each word that may come next: how likely it is now, and a tick where it was with all neurons on. */
function createBars(words, glossOf) {
  const title = h("p", { class: "mm-label" });
  const root = h("div", { class: "nw-bars", "data-sym": "logits" });

  function drawBar(word, share, usual, isOff) {
    const bar = createBar("nw-bar", ["mm-said", "mm-tick"]);
    const value = words.percent(fmt(100 * share, 0));
    bar.set({ word: wordWith(word, glossOf(word)), shares: [[0, share], isOff ? usual : null], value });
    return bar;
  }

  function draw(s) {
    title.textContent = s.off ? words.nextWithout(s.token, s.off.block, s.off.number) : words.next(s.token);
    const bars = s.words.map((word, i) => drawBar(word, s.now[i], s.usual[i], Boolean(s.off)));
    fill(root, title, bars);
  }
  return { root, draw };
}

/** The sentence up to a word, as a line of text: in small, the switches are the one control. */
function createTold() {
  const root = h("p", { class: "nw-told" });
  const draw = (tokens, at) => {
    const before = tokens.slice(tokens.lastIndexOf(".", at - 1) + 1, at);
    fill(root, `… ${before.join(" ")} `, h("b", {}, tokens[at]), " …");
  };
  return { root, draw };
}

/** All numbers of the neurons on the picture, as a table. */
function createNumbers(words, glossOf) {
  const root = h("table", { class: "nw-table" });
  const signed = (x) => `${x > 0 ? "+" : ""}${fmt(x, 1)}`;
  const cell = (pairs) =>
    h(
      "td",
      {},
      pairs.map(([word, value]) => wordWith(word, glossOf(word), signed(value))),
    );

  function draw(s) {
    const head = ["neuron", "activation", "up", "down"].map((name) => h("th", { scope: "col" }, words.heads[name]));
    const rowOf = (neuron) => {
      const name = h("th", { scope: "row" }, words.neuron(neuron.block, neuron.number));
      return h("tr", {}, name, h("td", {}, signed(neuron.activation)), cell(neuron.up), cell(neuron.down));
    };
    fill(root, h("thead", {}, h("tr", {}, head)), h("tbody", {}, s.blocks.flat().map(rowOf)));
  }
  return { root, draw };
}

function neuronVerdict(s, words) {
  const { press, same, other } = words.verdict;
  if (!s.off) return press;
  const [usual, then] = [s.usual, s.now].map((shares) => s.words[shares.indexOf(Math.max(...shares))]);
  const share = words.percent(fmt(100 * Math.max(...s.now), 0));
  if (usual === then) return same(usual, share, s.off.moved < LITTLE);
  return other(usual, words.glossed(then, s.glossOf(then)), share);
}

export default figure({
  words: neuronWordsWords,
  traits: ["word", "off", "reading"],
  create({ model, words, isCompact, verdict }) {
    const { stories, twins } = model.get("sizes");
    const glosses = { ...twins, ...wordsOf(phraseGlosses) };
    const glossOf = (word) => glosses[word];
    const line = isCompact ? createTold() : createWordLine((word) => setTraits(model, { off: "", word }));
    const rows = createRows(words, glossOf, ({ name }, isOff) => setTraits(model, { off: isOff ? "" : name }));
    const [bars, table] = [createBars(words, glossOf), createNumbers(words, glossOf)];
    const halves = h("div", { class: "nw-halves" }, rows, h("div", { class: "nw-next" }, bars, verdict));

    function draw(width) {
      const s = { ...neuronState(model), glossOf };
      const hasRoom = width >= WIDE && !isCompact;
      line.draw(s.reading.tokens, s.at, (at) => ({ tone: at === s.at ? "ink" : "" }));
      rows.draw(s, hasRoom ? Infinity : 1, hasRoom ? 2 : 1);
      bars.draw(s);
      table.draw(s);
      return { verdict: neuronVerdict(s, words) };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column nw-stage" }, line, halves),
      numbers: null,
      more: [h("p", { class: "mm-note" }, words.note), table],
      caption: words.caption(stories),
      draw,
    };
  },
});
