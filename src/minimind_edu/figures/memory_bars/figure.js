// MemoryBars: where the memory of a card goes in training and serving, part by part.

import { createBar } from "../../web/kit/bars.js";
import { h, slider, toggle, choice, namedOptions, optionsFor, row, fmt, grouped } from "../../web/kit/kit.js";
import { figure } from "../../web/kit/figure.js";
import { bytesText, memoryOf } from "./math.js";
import { memoryBarsWords } from "./words.js";

const TRAITS = ["kind", "batch", "length", "half", "card", "model"];
// In the order in which they lie in memory here; gradients come when the activations have gone.
const PARTS = ["weights", "reference", "adam", "copies", "cache", "activations", "logits", "gradients"];
const BATCHES = Array.from({ length: 9 }, (_, power) => 2 ** power);
const LENGTHS = Array.from({ length: 8 }, (_, power) => 2 ** (power + 6));
const CARDS = [8, 16, 24, 80];
const GB = 1e9;

/** Where each part lies, from and to, in bytes. */
function places(memory) {
  let at = 0;
  return PARTS.map((part) => {
    const from = part === "gradients" ? memory.always : at;
    at = from + memory[part];
    return [from, at];
  });
}

function measuredPeak(get) {
  const asked = ["model", "batch", "length", "kind", "half"].map(get);
  return get("measured").find((known) => asked.every((value, i) => known[i] === value))?.[5];
}

export default figure({
  words: memoryBarsWords,
  traits: TRAITS,
  create({ model, words, isCompact, bound }) {
    const get = (name) => model.get(name);
    const card = createBar("mb-row mb-card", ["mb-taken", "mm-tick"]);
    const rows = PARTS.map((part) => createBar("mb-row", [`mb-part mb-${part}`, "mm-tick"]));
    const batch = bound(slider, "batch", { label: words.batch, stops: BATCHES });
    const length = bound(slider, "length", { label: words.length, stops: LENGTHS, format: grouped });
    const kind = bound(choice, "kind", { label: words.kind, options: namedOptions(words.kinds) });
    const size = bound(choice, "card", { label: words.card, options: optionsFor(CARDS, words.cardOf) });
    const half = bound(toggle, "half", { label: words.half });
    const all = h("div", {}, row(batch, length), row(kind, size), row(half));

    function draw() {
      const [memory, capacity] = [memoryOf(get("sizes")[get("model")], optionsNow()), get("card") * GB];
      const fits = memory.peak <= capacity;
      const percent = (share) => words.percent(fmt(100 * share, share < 0.0995 ? 1 : 0));
      const whole = Math.max(memory.peak, capacity); // one scale for all bars
      const end = fits ? null : capacity / whole;
      card.root.dataset.tone = fits ? "good" : "bad";
      card.set({
        word: words.all,
        shares: [[0, memory.peak / whole], end],
        value: bytesText(memory.peak),
        label: words.cardLabel(get("card"), percent(memory.peak / capacity)),
      });
      const at = places(memory).map((ends) => ends.map((bytes) => bytes / whole));
      rows.forEach((bar, i) => {
        const [name, bytes] = [words.parts[PARTS[i]], memory[PARTS[i]]];
        const value = bytes ? bytesText(bytes) : "–";
        bar.root.dataset.absent = !bytes;
        bar.set({ word: name, shares: [bytes ? at[i] : null, end], value, label: `${name}: ${value}` });
      });
      return says(memory, fits, percent);
    }

    const optionsNow = () => Object.fromEntries(["kind", "batch", "length", "half"].map((name) => [name, get(name)]));

    function says(memory, fits, percent) {
      const serves = get("kind") === "serve";
      const moment = serves ? "serve" : memory.backward >= memory.step ? "backward" : "step";
      const there =
        moment === "step"
          ? (part) => !["copies", "activations", "logits"].includes(part)
          : (part) => part !== "gradients";
      const largest = PARTS.filter(there).reduce((most, part) => (memory[part] > memory[most] ? part : most));
      const peak = measuredPeak(get);
      const tokens = get("batch") * get("length");
      return {
        title: words.most(words.parts[largest], percent(memory[largest] / memory.peak)),
        verdict: words[fits ? "fits" : "doesNotFit"](get("card"), bytesText(memory.peak), words.moments[moment]),
        tone: fits ? "good" : "bad",
        numbers: [
          [words.tokens, grouped(tokens)],
          [words.perToken, bytesText((memory.activations + memory.logits * !serves + memory.cache) / tokens)],
          [words.measured, peak ? bytesText(peak) : "–"],
        ],
      };
    }

    return {
      stage: h("div", { class: "mm-column mb-rows" }, card, rows),
      control: isCompact ? row(batch) : all,
      more: [bound(choice, "model", { label: words.model, options: namedOptions(words.models) })],
      draw,
    };
  },
});
