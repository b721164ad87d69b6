// The reader's story in place of a figure's example: the switch, the living model that reads the story, its words.
// Nothing is fetched before the reader asks for the story; who has asked once finds it again in the next figure.

import { h, fill, clamp, fmt, choice, optionsFor, announcement, loadLiving, wordsOf } from "../kit/kit.js";
import { liveSourceWords } from "./source_words.js";
import { tellingHead } from "./heads.js";

/**
 * @typedef {import("../kit/kit.js").Model} Model
 * @typedef {import("./model.js").Cache} Cache
 * @typedef {import("./model.js").Trace} Trace
 * @typedef {{ model: import("./model.js").LiveModel, world: import("./world.js").World, story: string, page: string,
 *   heads: import("./heads.js").Heads, storyOf(world: World, byDefault?: string): number[],
 *   hashOfStory(ids: number[], world: World): string,
 *   onStory(world: World, callback: (ids: number[]) => void): () => void }} Living
 * @typedef {import("./world.js").World} World
 * @typedef {{ living: Living, ids: number[], tokens: string[], traces: Trace[], cache: Cache, at: number,
 *   layer: number, head: number }} Reading
 */

const SOURCE_KEY = "minimind-source"; // of the browser's storage
const PATIENCE_FOR_MODEL = 20_000; // milliseconds: a kernel that is gone never answers

/** Whether the reader has chosen the story before; storage may be forbidden, as in a frame of another page. */
function wantedBefore() {
  try {
    return localStorage.getItem(SOURCE_KEY) === "story";
  } catch {
    return false;
  }
}

function rememberWish(name) {
  try {
    localStorage.setItem(SOURCE_KEY, name);
  } catch {
    // nothing is kept
  }
}

/** The page on which the reader can change the story; none where no page of the book is around the figure. */
/** @type {(living: Living, ids: number[]) => string | null} */
function addressOfStory(living, ids) {
  const root = document.documentElement.dataset.content_root;
  return root === undefined ? null : `${root}${living.page}${living.hashOfStory(ids, living.world)}`;
}

/**
 * The switch of a figure. model: the figure's, which can ask for the living model; changed() is called after each
 * change. picks: for figures that show one layer, or one head of it: "layer" or "head"; the one that counts most in
 * questions of this `kind` is chosen first.
 *
 *   root        the control, to be folded below the figure
 *   reading()   null while the example is shown, else
 *               { living, ids, tokens: their words, traces, cache, at: the chosen position, layer, head }, from 0
 *   choose({ at, layer, head })  another position, layer or head, those that are named
 *   release()
 */
/**
 * @type {(model: Model, changed: () => void, options?: { picks?: "layer" | "head" | null, kind?: string }) =>
 *   { root: Element, reading: () => Reading | null, choose: (change: Partial<Reading>) => void, release: () => void }}
 */
export function createSource(model, changed, { picks = null, kind = "recall" } = {}) {
  const words = wordsOf(liveSourceWords);
  const status = announcement("mm-note");
  const link = h("a", { class: "mm-change" }, words.change);
  const pickers = h("div", { class: "mm-controls" });
  /** @type {[Living | null, Reading | null, boolean, (() => void) | null, boolean]} */
  let [living, read, isOn, unfollow, isReleased] = [null, null, false, null, false];

  const options = optionsFor(Object.keys(words.sources), (name) => words.sources[name]);
  const onChange = (name) => {
    rememberWish(name);
    show(name === "story");
  };
  const source = choice({ label: words.label, options, value: "example", onChange });
  const root = h("div", { class: "mm-source" }, source, h("p", {}, status, link), pickers);

  /** @type {(ids: number[]) => void} */
  function readStory(ids) {
    const { traces, cache } = living.model.run(ids, { lens: true });
    const chosen = read ?? tellingHead(living.heads, kind);
    const tokens = ids.map((id) => living.world.words[id]);
    read = { living, ids, tokens, traces, cache, at: ids.length - 1, layer: chosen.layer, head: chosen.head };
  }

  /** A choice for each number that can be picked, from 1 as people count. */
  function createPickers({ num_hidden_layers: L, num_attention_heads: H }) {
    const pick = (name, count) => {
      const numbers = optionsFor([...Array(count).keys()], (at) => at + 1);
      const onChange = (at) => choose({ [name]: at });
      return choice({ label: words[name], options: numbers, value: read[name], onChange });
    };
    fill(pickers, picks && pick("layer", L), picks === "head" && pick("head", H));
  }

  function tell() {
    pickers.hidden = !isOn || !picks;
    link.hidden = !isOn || !addressOfStory(living, read.ids);
    if (!isOn) return;
    const { layer, head } = tellingHead(living.heads, kind);
    const share = words.percent(fmt(100 * living.heads.lost_without[kind][layer][head], 0));
    const telling = picks === "head" ? ` ${words.telling[kind](layer + 1, head + 1, share)}` : "";
    status.set(words.reads(read.tokens.length, read.tokens.at(-1)) + telling);
    if (!link.hidden) link.href = addressOfStory(living, read.ids);
  }

  async function show(isWanted) {
    if (isWanted && !living) status.set(words.loading);
    try {
      living ??= isWanted && (await arrivedInTime(model));
    } catch {
      if (!isReleased) status.set(words.unavailable);
      return source.set("example");
    }
    if (isReleased || (source.get() === "story") !== isWanted) return; // the reader has changed the mind
    isOn = isWanted;
    if (isOn && !read) {
      readStory(living.storyOf(living.world, living.story));
      createPickers(living.model.config);
      unfollow = living.onStory(living.world, (ids) => {
        readStory(ids);
        update();
      });
    }
    if (!isOn) status.set("");
    update();
  }

  function update() {
    tell();
    changed();
  }

  function choose(change) {
    const { at = read.at, ...others } = change;
    Object.assign(read, others, { at: clamp(at, 0, read.ids.length - 1) });
    changed();
  }

  tell();
  if (wantedBefore())
    requestAnimationFrame(() => {
      source.set("story");
      show(true);
    });
  const release = () => {
    isReleased = true;
    unfollow?.();
  };
  return { root, reading: () => (isOn ? read : null), choose, release };
}

/** The living model, unless it takes longer than anybody waits. @type {(model: Model) => Promise<Living>} */
export function arrivedInTime(model) {
  const late = (_, reject) => setTimeout(() => reject(new Error("no answer")), PATIENCE_FOR_MODEL);
  return Promise.race([loadLiving(model), new Promise(late)]);
}

/**
 * A model whose traits the story may cover: what is set while it covers them stays in the figure, and comes to no
 * kernel and into no state. cover(values) begins it, cover(null) ends it; both leave the drawing to the caller.
 */
/** @type {(model: Model) => Model & { cover: (values: Record<string, any> | null) => void }} */
export function coverable(model) {
  const listeners = new Map();
  let covered = null;
  const isCovered = (name) => covered !== null && name in covered;
  return {
    get: (name) => (isCovered(name) ? covered[name] : model.get(name)),
    set(name, value) {
      if (!isCovered(name)) return model.set(name, value);
      covered[name] = value;
      (listeners.get(`change:${name}`) ?? []).forEach((callback) => callback());
    },
    on(event, callback) {
      listeners.set(event, [...(listeners.get(event) ?? []), callback]);
      model.on(event, callback);
    },
    off(event, callback) {
      listeners.set(
        event,
        (listeners.get(event) ?? []).filter((listener) => listener !== callback),
      );
      model.off(event, callback);
    },
    save_changes: () => model.save_changes(),
    send: (content) => model.send(content),
    cover: (values) => (covered = values),
    address: model.address,
  };
}
