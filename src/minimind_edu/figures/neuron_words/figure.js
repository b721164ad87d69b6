// NeuronWords: the strongest neurons at one word of a story, the words they answer to, and the words they push.

import { WIDE, h, fill, fmt, readout, announcement, setTraits, wordsOf, frame, mount } from "../kit/kit.js";
import { createWordLine } from "../live/word_line.js";
import { neuronWordsWords } from "./words.js";

const TRAITS = ["word", "reading"];
const BAR = 58; // pixels of the longest bar

/** The strongest neurons of each block at the chosen word, [block][{ index, activation, share, fires, up, down }]. */
function neuronsAt(reading, at) {
  return reading.top[at].map((ofBlock, block) =>
    ofBlock.map(([index, activation, share]) => {
      const { fires, up, down } = reading.neurons[block][index];
      const here = Math.abs(activation) / reading.rms[at]; // from one unit of activation to what the logits change by
      const pushed = (sign, words) => words.map(([word, push]) => [word, sign * push * here]);
      const [raised, lowered] = activation > 0 ? [up, down] : [down, up];
      return { index, activation, share, fires, up: pushed(1, raised), down: pushed(-1, lowered) };
    }),
  );
}

/** Rows of neurons under their blocks. sides: which of "up" and "down" are told. */
function createRows(words, sides) {
  const titles = ["strength", "fires", ...sides].map((name) => h("span", {}, words[name]));
  const head = h("li", { class: "nw-head mm-label", "aria-hidden": "true" }, h("span", {}), titles);
  const root = h("ul", { class: "nw-rows", "data-sides": sides.length });
  const signed = (x) => `${x > 0 ? "+" : ""}${fmt(x, 1)}`;
  let [most, largest] = [0, 1]; // words of a list, part of a block that the longest bar stands for

  function drawWords(name, pairs, marked, numberOf) {
    const each = pairs.slice(0, most).map(([word, value]) => {
      const text = word === marked ? h("b", { class: "nw-marked" }, word) : word;
      return h("span", { class: "nw-word" }, text, numberOf ? h("small", {}, numberOf(value)) : null);
    });
    const sym = name === "fires" ? "embed" : "logits";
    return h("span", { class: "nw-words", "data-sym": sym }, h("span", { class: "nw-label" }, words[name]), each);
  }

  function drawStrength({ activation, share }) {
    const text = words.ofBlock(words.percent(fmt(100 * share, 0)));
    return h(
      "span",
      { class: "nw-strength" },
      h("span", { class: activation < 0 ? "nw-minus" : "nw-plus" }, signed(activation)),
      h("i", { class: "nw-bar", role: "img", "aria-label": text, style: `width: ${(BAR * share) / largest}px` }),
    );
  }

  function drawRow(one, block, isFirst, s) {
    const place = h("span", { class: "nw-block" }, words.block(block + 1));
    const name = h("span", {}, place, h("span", { class: "nw-index" }, words.neuron(one.index)));
    const pushed = sides.map((side) => drawWords(side, one[side], s.next, signed));
    const attrs = { class: isFirst ? "nw-row nw-first" : "nw-row", "data-sym": "ffn" };
    return h("li", attrs, name, drawStrength(one), drawWords("fires", one.fires, s.token, null), pushed);
  }

  function draw(s, count, mostWords) {
    [most, largest] = [mostWords, Math.max(...s.blocks.flat().map((one) => one.share))];
    const rowsOf = (neurons, block) => neurons.slice(0, count).map((one, i) => drawRow(one, block, i === 0, s));
    fill(root, head, s.blocks.map(rowsOf));
  }
  return { root, draw };
}

function neuronState(model) {
  const reading = model.get("reading");
  const at = Math.min(model.get("word"), reading.tokens.length - 1);
  const [next, probability] = reading.next[at];
  return { at, reading, token: reading.tokens[at], next, probability, blocks: neuronsAt(reading, at) };
}

/** Whether the neurons on the picture have the word that comes next among the words they push up. */
function neuronVerdict(s, count, mostWords, words) {
  const lists = (one) => one.up.slice(0, mostWords).some(([word]) => word === s.next);
  const has = (neurons) => neurons.slice(0, count).some(lists);
  const blocks = s.blocks.flatMap((neurons, block) => (has(neurons) ? [block + 1] : []));
  const { pushed, spread } = words.verdict;
  return blocks.length ? pushed(s.next, blocks) : spread(s.next);
}

function neuronNumbers(s, inner, words) {
  const share = words.percent(fmt(100 * s.probability, 0));
  return [
    [words.next, words.nextWord(s.next, share)],
    [words.half, words.halfOf(s.reading.half[s.at], inner)],
  ];
}

function renderNeurons({ model, el }) {
  const words = wordsOf(neuronWordsWords);
  const isCompact = model.get("compact");
  const { inner, stories } = model.get("sizes");
  const line = createWordLine((word) => setTraits(model, { word }));
  const rows = createRows(words, ["up"]);
  const all = createRows(words, ["up", "down"]);
  const verdict = announcement();
  const numbers = readout([]);
  const stage = h("div", { class: "mm-stage mm-column nw-stage" }, line, rows);
  const below = h("div", { class: "nw-below" }, verdict, numbers);
  const more = [h("p", { class: "mm-note" }, words.note), all];
  const framed = { ...words, caption: words.caption(stories) };
  const root = frame(framed, { stage, numbers: below, more }, isCompact);

  function draw(width) {
    const s = neuronState(model);
    const isWide = width >= WIDE;
    const count = isWide && !isCompact ? Infinity : 1;
    const mostWords = isWide ? Infinity : isCompact ? 1 : 2;
    line.draw(s.reading.tokens, s.at, (at) => ({ tone: at === s.at ? "ink" : "" }));
    rows.draw(s, count, mostWords);
    if (isCompact) return;
    all.draw(s, Infinity, mostWords);
    verdict.set(neuronVerdict(s, count, mostWords, words));
    numbers.set(neuronNumbers(s, inner, words));
  }

  return mount(el, root, { model, traits: TRAITS, boxes: [stage], draw });
}

export default { render: renderNeurons };
