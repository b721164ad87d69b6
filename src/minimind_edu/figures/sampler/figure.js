// Sampler: the trained model's next word, what the knobs of generation make of its distribution, and draws from it.

import { WIDE, h, fill, fmt, slider, choice, namedOptions, button, announcement, row } from "../../web/kit/kit.js";
import { setTraits } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { drawnFrom, entropyInNats, reshape, softmax } from "../../web/live/sampling.js";
import { createSource } from "../../web/live/source.js";
import { createSamplerBars } from "./bars.js";
import { createDraws } from "./draws.js";
import { createText } from "./text.js";
import { samplerWords } from "./words.js";

const KNOBS = ["repetition_penalty", "temperature", "top_k", "top_p", "min_p"]; // in the order in which they apply
const STEP_OF = {
  repetition_penalty: "penalty",
  temperature: "temperature",
  top_k: "topK",
  top_p: "topP",
  min_p: "minP",
};
const PRESETS = {
  plain: {},
  greedy: { top_k: 1 },
  careful: { temperature: 0.7, top_p: 0.9 },
  free: { temperature: 1.5, min_p: 0.05 },
};
const TOP_KS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50]; // stops of the slider; one more keeps all
const RANGES = {
  repetition_penalty: [1, 2, 0.05],
  temperature: [0.1, 2, 0.05],
  top_p: [0.05, 1, 0.05],
  min_p: [0, 1, 0.01],
};
const MANY = 100; // draws of the second button
const NO_SPACE_BEFORE = /^[.,:?。，：？]/u;
const CHINESE = /\p{Script=Han}|[。，：？]/u;

/** What each knob is when it changes nothing. */
const neutralOf = (model) => {
  return { repetition_penalty: 1, temperature: 1, top_k: model.get("words").length, top_p: 1, min_p: 0 };
};

/** The text before the words that fit, with room for the word that comes next. */
function createTextLine(words) {
  const root = h("p", { class: "sp-text" });

  function draw({ ids, added }, table, last, room) {
    const tokens = ids.slice(1).map((id) => table[id]); // without <s>
    let [from, length] = [tokens.length, 0];
    while (from > 0 && (length += tokens[from - 1].length + 1) <= room) from--;
    const shown = tokens.slice(from).map((token, i) => {
      const before = tokens[from + i - 1] ?? "";
      const isJoined = NO_SPACE_BEFORE.test(token) || (CHINESE.test(before) && CHINESE.test(token));
      const isAdded = from + i >= tokens.length - added;
      return [isJoined ? "" : " ", isAdded ? h("b", {}, token) : token];
    });
    const slot = h("span", { class: "mm-slot sp-slot" }, last === null ? "" : table[last]);
    fill(
      root,
      [from ? "…" : "", shown, " ", slot].flat(2).filter((part) => part !== ""),
    );
  }
  return { root, draw };
}

/** One slider for each knob, which says how many words are left after it: count(steps). */
function createKnobs(model, bound, words) {
  const all = model.get("words").length;
  const neutral = neutralOf(model);
  let left = {};

  function textOf(name) {
    const value = model.get(name);
    if (value === neutral[name] && name.startsWith("top")) return words.all;
    if (value === neutral[name] && name === "min_p") return words.none;
    return name === "top_k" ? fmt(value, 0) : fmt(value, 2);
  }

  function createKnob(name) {
    const [min, max, step] = RANGES[name] ?? [];
    const range = name === "top_k" ? { stops: [...TOP_KS, all] } : { min, max, step };
    const format = () => (name in left ? words.left(textOf(name), left[name]) : textOf(name));
    return bound(slider, name, { label: words.knobs[name], ...range, format });
  }

  const knobs = Object.fromEntries(KNOBS.map((name) => [name, createKnob(name)]));
  const count = (steps) => {
    const counted = (name) => steps[STEP_OF[name]].filter(Number.isFinite).length;
    left = Object.fromEntries(["top_k", "top_p", "min_p"].map((name) => [name, counted(name)]));
  };
  const active = () => KNOBS.filter((name) => model.get(name) !== neutral[name]);
  const recipe = () => words.recipe(active().map((name) => `${words.knobs[name]} ${textOf(name)}`));
  return { knobs, count, recipe };
}

function createPresets(model, words) {
  const neutral = neutralOf(model);
  const valuesOf = (name) => ({ ...neutral, ...PRESETS[name] });
  const onChange = (name) => setTraits(model, valuesOf(name));
  const options = namedOptions(words.presetNames);
  const presets = choice({ label: words.presets, options, value: null, onChange });
  const fits = (name) => Object.entries(valuesOf(name)).every(([knob, value]) => model.get(knob) === value);
  return { root: presets.root, draw: () => presets.set(Object.keys(PRESETS).find(fits)) };
}

/** Draw one or many, take the word that was drawn last, take it back. While one is taken, the next is to be drawn. */
function createActions(words, draws, text) {
  const take = button({ label: words.take(""), onClick: takeLast });
  const buttons = [
    button({ label: words.drawOne, onClick: () => draws.draw(1) }),
    button({ label: words.drawMany(MANY), onClick: () => draws.draw(MANY) }),
    take,
  ];
  const back = button({ label: words.back, onClick: text.back });

  let isTaking = false;

  async function takeLast() {
    isTaking = true;
    await text.add(draws.now().last);
    isTaking = false;
  }

  function draw({ added, status }, table) {
    const { last, isDrawing } = draws.now();
    const isBusy = last === null || isDrawing || status === "full";
    take.set(words.take(isBusy ? "" : table[last]));
    disable(take.root, isBusy);
    disable(back.root, !added);
  }

  /** A disabled button gives the focus to the first. */
  function disable(action, isDisabled) {
    const hasFocus = action === action.getRootNode().activeElement;
    action.disabled = isDisabled;
    if (isDisabled && hasFocus) buttons[0].root.focus({ preventScroll: true });
  }
  return { root: h("div", { class: "sp-actions" }, buttons), back, draw, isTaking: () => isTaking };
}

/** What is drawn: the distributions before and after the knobs, and the words in the order of the first. */
function samplerState(model, text) {
  const { ids, logits } = text.now();
  const settings = { seen: ids };
  for (const name of KNOBS) settings[STEP_OF[name]] = model.get(name);
  const steps = reshape(logits, settings);
  const [before, after] = [softmax(logits), drawnFrom(logits, settings)];
  const order = [...before.keys()].sort((a, b) => before[b] - before[a]);
  return { ids, settings, steps, before, after, order, isCut: (id) => steps.minP[id] === -Infinity };
}

/** Rows for the likeliest words, and one for all others. */
function rowsOf(state, draws, table, count, words) {
  const { before, after, order, isCut, ids, settings } = state;
  const { counts, total, last } = draws.now();
  const shareOf = (count, p) => (count || total * p >= 1 ? count / total : null); // no dot where none was expected
  const occurred = new Set(settings.penalty === 1 ? [] : ids);
  const first = order.slice(0, count).map((id) => ({
    id,
    word: table[id],
    before: before[id],
    after: after[id],
    share: shareOf(counts[id], after[id]),
    isCut: isCut(id),
    isSeen: occurred.has(id),
    isLast: id === last,
  }));
  const others = order.slice(count);
  const sumOf = (values) => others.reduce((sum, id) => sum + values[id], 0);
  first.push({
    id: null,
    word: words.others(others.length),
    before: sumOf(before),
    after: sumOf(after),
    share: shareOf(sumOf(counts), sumOf(after)),
    isCut: others.every(isCut),
    isSeen: false,
    isLast: others.includes(last),
  });
  return first;
}

/** Each seed, and each length of the text, has numbers of its own. */
const seedAt = (model, length) => Math.imul(model.get("seed") + 1, 0x9e3779b1) + length;

function samplerVerdict(model, state, table, words) {
  const { before, settings, order, isCut } = state;
  const kept = order.filter((id) => !isCut(id));
  const share = kept.reduce((sum, id) => sum + before[id], 0);
  if (kept.length === 1) return words.verdict.one(table[kept[0]], share);
  if (kept.length < order.length) return words.verdict.cut(kept.length, order.length, 1 - share);
  if (settings.temperature !== 1) return settings.temperature < 1 ? words.verdict.sharper : words.verdict.flatter;
  return settings.penalty === 1 ? words.verdict.plain : words.verdict.penalized;
}

function samplerNumbers(state, draws, words) {
  const nats = (probabilities) => words.nats(fmt(entropyInNats(probabilities), 2));
  const gap = draws.gap();
  return [
    [words.before, nats(state.before)],
    [words.after, nats(state.after)],
    [words.gap(draws.now().total), gap === null ? words.noGap : words.percent(gap)],
  ];
}

export default figure({
  words: samplerWords,
  traits: ["start", "seed", ...KNOBS],
  create({ model, words, isCompact, bound, verdict, numbers, redraw }) {
    const table = model.get("words");
    const text = createText(model, redraw);
    const draws = createDraws(redraw);
    const source = isCompact ? null : createSource(model, redraw);
    const knobs = createKnobs(model, bound, words);
    const presets = createPresets(model, words);
    const actions = createActions(words, draws, text);
    const line = createTextLine(words);
    const bars = createSamplerBars(words, isCompact ? null : text.add);
    const start = bound(choice, "start", { label: words.start, options: namedOptions(words.starts) });
    const recipe = h("p", { class: "sp-recipe" });
    const status = announcement("sp-status");
    const seed = button({ label: "", onClick: () => setTraits(model, { seed: model.get("seed") + 1 }) });
    const { repetition_penalty: penalty, ...turned } = knobs.knobs;
    const begin = h("div", { class: "sp-begin" }, start, actions.back);
    const beside = h("div", { class: "mm-column sp-beside" }, isCompact ? line : [begin, line, status]);
    const recipeAndVerdict = isCompact ? null : h("div", { class: "sp-told" }, recipe, verdict);
    const inSight = h("div", { class: "mm-controls sp-knobs" }, Object.values(turned), actions);
    const chosen = h("div", { class: "sp-chosen" }, presets, seed);

    /** The text that is given: the reader's story, or one of the figure's own. */
    function given() {
      const reading = source?.reading();
      if (!reading) return model.get("starts")[model.get("start")];
      return { ids: reading.ids, logits: reading.traces.at(-1).logits };
    }

    function draw(width) {
      text.begin(given());
      const now = text.now();
      const state = samplerState(model, text);
      const isWide = width >= WIDE;
      const key = JSON.stringify([now.ids, state.settings, model.get("seed")]);
      draws.follow(key, state.after, { seed: seedAt(model, now.ids.length), first: actions.isTaking() ? 1 : 0 });
      bars.draw(rowsOf(state, draws, table, isWide ? (isCompact ? 7 : 9) : 6, words));
      const { last, isDrawing } = draws.now();
      line.draw(now, table, isDrawing ? null : last, isWide ? 160 : 84);
      knobs.count(state.steps);
      start.root.hidden = Boolean(source?.reading());
      recipe.textContent = knobs.recipe();
      presets.draw();
      seed.set(words.newSeed(model.get("seed") + 1));
      actions.draw(now, table);
      status.set(words.status[now.status]);
      return { verdict: samplerVerdict(model, state, table, words), numbers: samplerNumbers(state, draws, words) };
    }
    return {
      stage: h("div", { class: "mm-stage mm-column sp-stage" }, beside, bars, recipeAndVerdict),
      control: isCompact ? row(turned.temperature) : inSight,
      numbers,
      more: [chosen, row(penalty), h("p", { class: "mm-note" }, words.order), source],
      parts: [text, draws, source],
      draw,
    };
  },
});
