// QuantizationGrid: one row of weights on a grid of few levels, and what a model of such rows still answers and writes.

import { WIDE, h, setAttributes, clamp, fmt, slider, choice, optionsFor, namedOptions } from "../../web/kit/kit.js";
import { announcement, row, setTraits } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { arrivedInTime, createSource } from "../../web/live/source.js";
import { createAnswers, createNextWord, createStory } from "./answers.js";
import { divergenceOf, largestValue, roundedRow, roundedTensors } from "./math.js";
import { createRowPlot } from "./row.js";
import { quantizationGridWords } from "./words.js";

const FEWEST = 2;
const MOST = 8;
const PARTS = {
  q_proj: "self_attn",
  k_proj: "self_attn",
  v_proj: "self_attn",
  o_proj: "self_attn",
  gate_proj: "mlp",
  up_proj: "mlp",
  down_proj: "mlp",
};
const STORIES = 3; // with the same beginning
const SHORT = 16; // words of one where there is little room
const FIRST_LETTER = "#".charCodeAt(0); // stands for the first word of the stories
const BARS = { wide: 5, narrow: 3 }; // words that are told, besides all others

const tensorName = ({ layer, matrix }) => `model.layers.${layer - 1}.${PARTS[matrix]}.${matrix}.weight`;
const placeOf = (model) => Object.fromEntries(["layer", "matrix", "row"].map((name) => [name, model.get(name)]));
const isSame = (place, row) => Object.keys(place).every((name) => place[name] === row[name]);

/** A row as the state holds it, from a tensor of the living model. */
function rowOfTensor({ shape: [rows, columns], data }, place) {
  const row = clamp(place.row, 0, rows - 1);
  const [from, to] = [row * columns, (row + 1) * columns];
  const others = data.reduce((most, weight, i) => (i >= from && i < to ? most : Math.max(most, Math.abs(weight))), 0);
  return { ...place, row, values: [...data.slice(from, to)], others, rows };
}

/** The rows that are asked for: the first is in the state, the others come with the living model. */
function createRows(model, changed) {
  let [living, shown, status, isReleased] = [null, null, "", false];

  async function fetchModel() {
    status = "loading";
    try {
      living = await arrivedInTime(model);
      status = "";
    } catch {
      status = "unavailable";
    }
    if (!isReleased) changed();
  }

  /** The row at this place, or the last one that was there. */
  function at(place) {
    const stored = model.get("weights");
    if (isSame(place, stored)) shown = stored;
    else if (living) shown = rowOfTensor(living.tensors[tensorName(place)], place);
    else if (!status) fetchModel();
    return (shown ??= stored);
  }
  return { at, status: () => status, release: () => (isReleased = true) };
}

/** What the grid makes of the reader's story; a model is rounded once for each grid. */
function createStoryReader() {
  const [models, known] = [new Map(), new Map()];

  function modelOf(living, bits, per) {
    const key = `${bits} ${per}`;
    const tensors = () => roundedTensors(living.tensors, bits, per);
    if (!models.has(key)) models.set(key, living.createLiveModel({ config: living.model.config, tensors: tensors() }));
    return models.get(key);
  }

  /** { text, rows: [{ word, before, after }], word: the likeliest before, instead: after, kl }. */
  function read({ living, ids, tokens, traces }, bits, per) {
    const logits = modelOf(living, bits, per)
      .run(ids)
      .traces.map((trace) => trace.logits);
    const before = traces.map((trace) => trace.logits);
    const [p, q] = [before, logits].map((all) => living.softmax(all.at(-1)));
    const order = [...p.keys()].sort((a, b) => p[b] + q[b] - p[a] - q[a]).slice(0, BARS.wide);
    const rows = order.map((id) => ({ word: living.world.words[id], before: p[id], after: q[id] }));
    const likeliest = (all) => living.world.words[all.indexOf(Math.max(...all))];
    const text = living.world.decode(ids.slice(1)) || tokens[0];
    return { text, rows, word: likeliest(p), instead: likeliest(q), kl: divergenceOf(before, logits) };
  }

  return (reading, bits, per) => {
    const key = `${bits} ${per} ${reading.ids}`;
    if (!known.has(key)) known.set(key, read(reading, bits, per));
    return known.get(key);
  };
}

/** The chosen row with its largest weight pulled, on its grid. */
function rowState(model, row) {
  const [bits, per, pull] = ["bits", "per", "pull"].map((name) => model.get(name));
  const sizes = row.values.map(Math.abs);
  const largestAt = sizes.indexOf(Math.max(...sizes));
  const values = row.values.map((weight, i) => (i === largestAt ? pull * weight : weight));
  const onGrid = roundedRow(values, { bits, per, others: row.others });
  return {
    place: row,
    own: row.values,
    others: per === "tensor" ? row.others : 0,
    values,
    largestAt,
    pull,
    bits,
    largest: largestValue(bits),
    ...onGrid,
  };
}

/** What is told of the answers: of one question, or of the reader's story. */
function answersState(model, reading, readStory) {
  const { questions, results } = model.get("exam");
  const [bits, per] = [model.get("bits"), model.get("per")];
  const result = results[per][bits];
  const answers = questions.map(({ words }, at) => words[result.said[at] ?? 0]);
  const right = questions.filter(({ answer }, at) => answer === answers[at]).length;
  const shared = { questions, right, answers, size: result.size };
  if (reading) return { ...shared, ...readStory(reading, bits, per), chosen: null, isRead: true };
  const chosen = model.get("question");
  if (chosen === null) return { ...shared, chosen, kl: result.kl };
  const { text, answer, words, before } = questions[chosen];
  const after = result.after[chosen];
  const rows = words.map((word, i) => ({
    word,
    before: (before[i] ?? 0) / 1000,
    after: (after[i] ?? 0) / 1000,
    isAnswer: word === answer,
  }));
  return { ...shared, text, rows, chosen, kl: result.kl };
}

/** The story that is shown, its first words where there is little room, and how many free ones hold. */
function storyState(model, isCompact) {
  const { words, beginning, texts, count, results } = model.get("stories");
  const { holds, texts: drawn } = results[model.get("per")][model.get("bits")];
  const [letters, wrong] = texts[drawn[model.get("story")]];
  const wordsOf = (spelled) => [...spelled].map((letter) => words[letter.charCodeAt(0) - FIRST_LETTER]);
  const most = isCompact ? SHORT : letters.length;
  const shown = wordsOf(letters).slice(0, most);
  const isCut = most < letters.length;
  return {
    beginning: wordsOf(beginning),
    words: isCut ? [...shown, "…"] : shown,
    wrong: wrong < most ? wrong : null,
    holds,
    count,
  };
}

/** So many of the rows, in their order: the answer, and the likeliest before or after. */
function likeliestOf(rows, count) {
  const weight = ({ before, after, isAnswer }) => (isAnswer ? 2 : Math.max(before, after));
  const kept = [...rows].sort((a, b) => weight(b) - weight(a)).slice(0, count);
  return rows.filter((row) => kept.includes(row));
}

function gridVerdict(row, answers, per, words) {
  const { same, all, some, none, kept, lost } = words.verdict;
  const [levels, count] = [2 * row.largest + 1, answers.questions.length];
  if (per === "row" && row.bits === MOST) return same;
  if (answers.isRead)
    return answers.word === answers.instead ? kept(levels, answers.word) : lost(levels, answers.word, answers.instead);
  if (answers.right === count) return all(levels, count);
  return answers.right ? some(levels, answers.right, count) : none(levels, count);
}

function gridNumbers({ size, kl }, { holds, count }, words) {
  return [
    [words.hold, words.of(holds, count)],
    [words.kl, kl < 0.0005 ? words.less("0.001") : fmt(kl, kl < 0.1 ? 3 : 2)],
    [words.size, fmt(size, 2)],
  ];
}

/** The control, and the folded ones. */
function createGridControls(model, bound, rows, words) {
  const format = (bits) => words.levels(bits, 2 * largestValue(bits) + 1);
  const bits = bound(slider, "bits", { label: words.bits, min: FEWEST, max: MOST, step: 1, format });
  const per = bound(choice, "per", { label: words.per, options: namedOptions(words.perNames) });
  const layer = bound(choice, "layer", { label: words.layer, options: optionsFor([1, 2, 3, 4]) });
  const matrix = bound(choice, "matrix", { label: words.matrix, options: optionsFor(Object.keys(PARTS)) });
  const fromOne = (row) => row + 1;
  // While a row is on its way, the slider is under the reader's hand, which may be ahead of the model.
  const shown = (row) => (rows.status() === "loading" ? row : rows.at(placeOf(model)).row);
  const number = bound(slider, "row", { label: words.rowNumber, min: 0, max: 127, step: 1, format: fromOne, shown });
  return { bits, number, folded: [per, row(layer, number), matrix] };
}

export default figure({
  words: quantizationGridWords,
  traits: ["bits", "per", "layer", "matrix", "row", "pull", "question", "story", "weights"],
  create({ model, words, isCompact, bound, redraw }) {
    const rows = createRows(model, redraw);
    const readStory = createStoryReader();
    const source = isCompact ? null : createSource(model, redraw);
    const plot = createRowPlot(words, (pull) => setTraits(model, { pull }));
    const choose = (at) => setTraits(model, { question: at === model.get("question") ? null : at });
    const answers = createAnswers(words, isCompact ? null : choose);
    const next = createNextWord(words);
    const further = () => setTraits(model, { story: (model.get("story") + 1) % STORIES });
    const story = createStory(words, isCompact ? null : further);
    const { bits, number, folded } = createGridControls(model, bound, rows, words);
    const status = announcement("mm-note");
    const [whole, note] = [h("p", { class: "mm-note" }), h("p", { class: "mm-note" }, words.note)];
    const below = h("div", { class: "mm-column qg-model" }, answers, story, isCompact ? null : next);

    function draw(width) {
      const shown = rows.at(placeOf(model));
      const s = rowState(model, shown);
      const answered = answersState(model, source?.reading(), readStory);
      const isWide = width >= WIDE;
      plot.draw(s, width, isCompact);
      answers.draw(answered.questions, answered.answers, answered.chosen);
      setAttributes(number.input, { max: shown.rows - 1 });
      const shownStory = storyState(model, isCompact);
      const isStory = !answered.rows;
      story.draw(shownStory);
      story.root.hidden = !isStory;
      next.root.hidden = isStory;
      if (!isStory)
        next.draw(answered.text, likeliestOf(answered.rows, BARS[isWide ? "wide" : "narrow"]), isWide ? 68 : 60);
      status.set(words[rows.status()] ?? "");
      whole.textContent = isStory ? "" : words.whole(answered.text);
      return {
        verdict: gridVerdict(s, answered, model.get("per"), words),
        numbers: gridNumbers(answered, shownStory, words),
      };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column" }, plot, below),
      control: row(bits),
      more: [h("div", { class: "mm-column qg-more" }, folded, status, whole, note), source],
      parts: [plot, rows, source],
      draw,
    };
  },
});
